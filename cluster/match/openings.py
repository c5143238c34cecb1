"""Where games begin: positions of a file, or a small set of usual openings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import chess
import chess.pgn

from cluster.match.contestants import MatchError

USUAL = (
    "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6",
    "e4 e5 Nf3 Nc6 Bc4 Bc5 c3 Nf6",
    "e4 e5 Nf3 Nc6 d4 exd4 Nxd4 Nf6",
    "e4 e5 Nf3 Nf6 Nxe5 d6 Nf3 Nxe4",
    "e4 e5 Nc3 Nf6 f4 d5 fxe5 Nxe4",
    "e4 e5 f4 exf4 Nf3 g5 h4 g4",
    "e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6 Nc3 a6",
    "e4 c5 Nf3 Nc6 d4 cxd4 Nxd4 g6",
    "e4 c5 Nf3 e6 d4 cxd4 Nxd4 a6",
    "e4 c5 Nc3 Nc6 g3 g6 Bg2 Bg7",
    "e4 c5 c3 Nf6 e5 Nd5 d4 cxd4",
    "e4 e6 d4 d5 Nc3 Bb4 e5 c5",
    "e4 e6 d4 d5 Nd2 Nf6 e5 Nfd7",
    "e4 e6 d4 d5 e5 c5 c3 Nc6",
    "e4 c6 d4 d5 Nc3 dxe4 Nxe4 Bf5",
    "e4 c6 d4 d5 e5 Bf5 Nf3 e6",
    "e4 c6 d4 d5 exd5 cxd5 c4 Nf6",
    "e4 d5 exd5 Qxd5 Nc3 Qa5 d4 Nf6",
    "e4 d6 d4 Nf6 Nc3 g6 Nf3 Bg7",
    "e4 Nf6 e5 Nd5 d4 d6 Nf3 Bg4",
    "e4 g6 d4 Bg7 Nc3 d6 Be3 a6",
    "d4 d5 c4 e6 Nc3 Nf6 Bg5 Be7",
    "d4 d5 c4 e6 Nf3 Nf6 g3 Be7",
    "d4 d5 c4 c6 Nf3 Nf6 Nc3 dxc4",
    "d4 d5 c4 c6 Nc3 Nf6 e3 e6",
    "d4 d5 c4 dxc4 Nf3 Nf6 e3 e6",
    "d4 d5 Nf3 Nf6 Bf4 c5 e3 Nc6",
    "d4 d5 c4 e5 dxe5 d4 Nf3 Nc6",
    "d4 Nf6 c4 e6 Nc3 Bb4 e3 O-O",
    "d4 Nf6 c4 e6 Nc3 Bb4 Qc2 O-O",
    "d4 Nf6 c4 e6 Nf3 b6 g3 Ba6",
    "d4 Nf6 c4 g6 Nc3 Bg7 e4 d6 Nf3 O-O",
    "d4 Nf6 c4 g6 Nc3 d5 cxd5 Nxd5",
    "d4 Nf6 c4 c5 d5 e6 Nc3 exd5 cxd5 d6",
    "d4 Nf6 c4 c5 d5 b5 cxb5 a6",
    "d4 Nf6 Bg5 Ne4 Bf4 c5 f3 Qa5+",
    "d4 f5 g3 Nf6 Bg2 g6 Nf3 Bg7",
    "d4 f5 c4 Nf6 Nc3 e6 Nf3 Bb4",
    "c4 e5 Nc3 Nf6 Nf3 Nc6 g3 d5",
    "c4 c5 Nc3 Nc6 g3 g6 Bg2 Bg7",
    "c4 Nf6 Nc3 e6 e4 d5 e5 Ne4",
    "Nf3 d5 g3 Nf6 Bg2 e6 O-O Be7",
    "Nf3 Nf6 c4 b6 g3 Bb7 Bg2 e6",
    "Nf3 d5 c4 d4 g3 Nc6 Bg2 e5",
    "b3 e5 Bb2 Nc6 e3 Nf6 Bb5 Bd6",
    "f4 d5 Nf3 g6 e3 Bg7 d4 Nf6",
    "g3 d5 Bg2 Nf6 d3 e5 Nf3 Nc6",
    "e4 Nc6 d4 d5 Nc3 e6 Nf3 Bb4",
)
"""Fifty years' usual openings, neither side much ahead; played out in SAN."""


@dataclass(frozen=True)
class Opening:
    """A position to begin from, and the moves that lead out of it before the engines take over."""

    fen: str
    moves: tuple[chess.Move, ...]

    def board(self) -> chess.Board:
        """Return the board on which the engines begin."""
        board = chess.Board(self.fen)
        for move in self.moves:
            board.push(move)
        return board


def usual_openings() -> list[Opening]:
    """Return the set that comes with rootsplit."""
    return [_of_line(line) for line in USUAL]


def read_openings(path: Path, plies: int) -> list[Opening]:
    """Return the openings of a file: the first plies of each game (PGN), or each line's position (EPD, FEN).

    Raises
    ------
    MatchError
        If the file cannot be read, or a line is no position, or it holds none.
    """
    try:
        openings = list(_of_games(path, plies) if path.suffix.lower() == ".pgn" else _of_lines(path))
    except (OSError, UnicodeDecodeError) as error:
        raise MatchError(f"the openings {path} cannot be read: {error}") from None
    if not openings:
        raise MatchError(f"the file {path} holds no opening")
    return openings


def _of_line(line: str) -> Opening:
    board = chess.Board()
    moves = tuple(board.push_san(word) for word in line.split())
    return Opening(chess.STARTING_FEN, moves)


def _of_games(path: Path, plies: int) -> Iterator[Opening]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        while (game := chess.pgn.read_game(file)) is not None:
            moves = tuple(game.mainline_moves())[:plies]
            yield Opening(game.board().fen(), moves)


def _of_lines(path: Path) -> Iterator[Opening]:
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        fields = line.split()
        if not fields or line.startswith("#"):
            continue
        # The counters of a FEN are numbers; what follows the fourth field of an EPD is not.
        wanted = 6 if len(fields) >= 6 and all(word.isdecimal() for word in fields[4:6]) else 4
        try:
            board = chess.Board(" ".join([*fields[:wanted], *("0", "1")[: 6 - wanted]]))
        except ValueError as error:
            raise MatchError(f"{path}, line {number}: {error}") from None
        if not board.is_valid() or board.is_game_over():
            raise MatchError(f"{path}, line {number}: nobody can play on from {line[:80]!r}")
        yield Opening(board.fen(), ())
