"""Results as annotated PGN: [%eval] comments, best lines as variations; games are read as one where they are one.

Rows that follow each other along the moves of one game become one game. Each game names the rows that it holds, so that
a run which is killed can be gone on with: a game without its end is torn.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import chess
import chess.engine
import chess.pgn

from cluster.batch.epd_writer import line_of, start_board
from cluster.batch.jobs import Status
from cluster.batch.journal import JournalError
from cluster.batch.results import ResultRow
from cluster.batch.writers import FormatError
from tt_store.errors import writing

_ROWS = re.compile(rb'\[RootsplitRows "(\d+)-(\d+)"\]')
_COLUMNS = 80
_PLY = re.compile(r" ply \d+$")
_MOST_ROWS = 2_000


class PgnWriter:
    """One game at a time.

    Parameters
    ----------
    path
        Of the output.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._rows: list[ResultRow] = []
        self._text = bytearray()
        self._whole = 0
        self.settled = 0

    @property
    def is_due(self) -> bool:
        """Whether a megabyte waits."""
        return len(self._text) > 1 << 20

    def recover(self) -> Iterator[int]:
        """Open the output, or make it; cut off a game without its end."""
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o644)
        except OSError as error:
            raise FormatError(f"the output {self._path} cannot be written: {error.strerror}") from None
        place = whole = 0
        rows: range | None = None
        before = b""
        with open(self._descriptor, "rb", closefd=False) as lines:
            for number, line in enumerate(lines, 1):
                place += len(line)
                if found := _ROWS.match(line):
                    rows = range(int(found[1]), int(found[2]) + 1)
                if line == b"\n" and before.endswith(b"*\n"):
                    if rows is None or rows.start != self.settled:
                        raise JournalError(
                            f"{self._path}, line {number}, ends a game that this run did not write: choose another"
                            " output, or give --restart"
                        )
                    whole, self.settled = place, rows.stop
                    yield from rows
                    rows = None
                before = line
        os.ftruncate(self._descriptor, whole)

    def add(self, row: ResultRow) -> None:
        """Take the next row: of the same game as those before it, or of the next one."""
        if self._rows and (not _goes_on(self._rows[-1], row) or len(self._rows) >= _MOST_ROWS):
            self._end_game()
        self._rows.append(row)

    def flush(self, *, is_last: bool = False) -> None:
        """Write the games that are whole."""
        if is_last and self._rows:
            self._end_game()
        with writing(self._path):
            while self._text:
                written = os.write(self._descriptor, self._text)
                del self._text[:written]
        self.settled += self._whole
        self._whole = 0

    def close(self) -> None:
        """Close the file; the rows of a game that is not whole are in the journal."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _end_game(self) -> None:
        self._text += game_text(self._rows).encode()
        self._whole += len(self._rows)
        self._rows.clear()


def _goes_on(before: ResultRow, row: ResultRow) -> bool:
    """Tell whether a row is about a later position of the same game."""
    is_same_start = (row.source, row.line, row.position) == (before.source, before.line, before.position)
    return (
        is_same_start
        and Status.ERROR not in (row.status, before.status)
        and len(row.moves) > len(before.moves)
        and row.moves[: len(before.moves)] == before.moves
    )


def game_text(rows: list[ResultRow]) -> str:
    """Return the PGN of the rows of one game; it ends with an empty line."""
    first, last = rows[0], rows[-1]
    game = chess.pgn.Game()
    headers = game.headers
    headers["Event"], headers["Site"] = _tag(_PLY.sub("", first.id or "?")), _tag(f"{first.source}:{first.line}")
    headers["RootsplitRows"] = f"{first.index}-{last.index}"
    headers["Annotator"] = "rootsplit"
    if first.status == Status.ERROR:
        headers["RootsplitError"] = _tag(first.reason or "")
        return _exported(game)
    game.setup(start_board(first.position))
    node: chess.pgn.GameNode = game
    by_ply = {len(row.moves): row for row in rows}
    line = line_of(game.board(), last.moves)
    for ply in range(len(line) + 1):
        row = by_ply.get(ply)
        if row is not None:
            _annotate(node, row, is_end=ply == len(line))
        if ply < len(line):
            node = node.add_main_variation(line[ply])
    return _exported(game)


def _exported(game: chess.pgn.Game) -> str:
    return game.accept(chess.pgn.StringExporter(columns=_COLUMNS)) + "\n\n"


def _annotate(node: chess.pgn.GameNode, row: ResultRow, *, is_end: bool) -> None:
    """Give a node its evaluation and the best line from there."""
    board = node.board()
    if row.score is not None:
        score: chess.engine.Score = chess.engine.Cp(row.score)
        if row.mate_in is not None:
            score = chess.engine.Mate(row.mate_in)
        node.set_eval(chess.engine.PovScore(score, board.turn), row.depth or None)
    moves = line_of(board, row.pv) if row.depth else []
    if moves and is_end and row.moves:
        # A variation needs a move to stand beside.
        text = f"best: {board.variation_san(moves)}"
        node.comment = f"{node.comment} {text}".strip() if isinstance(node.comment, str) else text
    elif moves:
        node.add_line(moves)
    if row.status != Status.OK:
        reason = row.reason or f"the game is over, {row.score_text}"
        node.comment = f"{node.comment} {reason}".strip()


def _tag(text: str) -> str:
    return " ".join(text.split())
