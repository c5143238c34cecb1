"""Results as EPD (Edwards 1994): acd acn ce dm pv bm, a line a row; moves in SAN by python-chess."""

from __future__ import annotations

from typing import Any

import chess

from cluster.batch.jobs import Status
from cluster.batch.results import ResultRow
from cluster.batch.writers import LineWriter


class EpdWriter(LineWriter):
    """A position a line; a row without an answer is a comment with its reason."""

    def line(self, row: ResultRow) -> str:
        """Return a position with its operations."""
        if row.status == Status.ERROR:
            return f"# {row.source}:{row.line}: {row.reason}"
        board = board_of(row)
        operations: dict[str, Any] = {}
        if row.best_move is not None and row.depth:
            operations |= {"acd": row.depth, "acn": row.nodes, "bm": [_move(board, row.best_move)]}
            if row.time_s is not None:
                operations["acs"] = round(row.time_s)
        if row.mate_in is not None:
            operations["dm"] = row.mate_in
        elif row.score is not None:
            operations["ce"] = row.score
        if row.pv and row.depth:
            operations["pv"] = line_of(board, row.pv)
        if row.id is not None:
            operations["id"] = _one_line(row.id)
        if row.status != Status.OK:
            operations["c0"] = _one_line(row.reason or f"the game is over, {row.score_text}")
        return board.epd(**operations)


def board_of(row: ResultRow) -> chess.Board:
    """Return the position of a row, its moves played."""
    board = start_board(row.position)
    for text in row.moves:
        board.push(_move(board, text))
    return board


def start_board(text: str) -> chess.Board:
    """Return the position of a text as our reader takes it: fields that it leaves out have their usual values."""
    from search.game_files import load_game

    game = load_game("chess")
    full = game.text(game.parse(text))
    castling = full.split()[2]
    # Our own writer tells Chess960 by the rooks' files.
    is_chess960 = any(letter not in "KQkq-" for letter in castling)
    return chess.Board(full, chess960=is_chess960)


def line_of(board: chess.Board, texts: tuple[str, ...]) -> list[chess.Move]:
    """Return a line of moves; python-chess checks each."""
    board = board.copy(stack=False)
    line = []
    for text in texts:
        line.append(_move(board, text))
        board.push(line[-1])
    return line


def _move(board: chess.Board, text: str) -> chess.Move:
    return board.parse_uci(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
