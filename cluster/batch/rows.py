"""Records of the input: what a line says, and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tt_store.errors import RootsplitError

FORMATS = ("auto", "fen", "epd", "pgn", "jsonl", "csv", "moves", "obf")
"""How an input may be written; see `cluster.batch.readers`."""

SANE_LENGTH = 200
"""Characters of an unreadable text that are kept, and of the sentence that says why."""


class InputError(RootsplitError):
    """An input that cannot be read at all, or not in the way that is asked."""


class Expectation(NamedTuple):
    """What the input says of the right answer; empty where it says nothing."""

    best_moves: tuple[str, ...] = ()
    """In the game's canonical text; checked to be legal."""
    avoid_moves: tuple[str, ...] = ()
    """Likewise."""
    score: int | None = None
    """In the convention of the game's users, for the side to move: Connect Four as Pons's, Othello in discs."""
    mate_in: int | None = None
    """Moves to mate; negative where the side to move is mated."""


class Overrides(NamedTuple):
    """Limits that a row itself asks for; None for the run's."""

    depth: int | None = None
    nodes: int | None = None
    time_s: float | None = None
    mate: int | None = None
    multipv: int | None = None
    priority: int = 0


class Draft(NamedTuple):
    """What a reader makes of one position of the input."""

    position: str = ""
    """Accepted by `Game.parse`; the raw text, cut, where there is an error."""
    row_id: str | None = None
    moves: tuple[str, ...] = ()
    """Played from the position, in the game's canonical text; each is legal where it is played."""
    expectation: Expectation = Expectation()
    """Of the position after the moves."""
    overrides: Overrides = Overrides()
    warnings: tuple[str, ...] = ()
    error: str | None = None
    """One sentence; None where the position can be searched, or is a finished game."""


class InputRow(NamedTuple):
    """One position of the input, and where it stands."""

    index: int  # type: ignore[assignment]
    """From 0 over the whole run."""
    source: str
    """The file's name as given, ``-`` for standard input."""
    line: int
    """Where the row begins, from 1; for the positions of a PGN, where their game begins."""
    row_id: str | None = None
    position: str = ""
    moves: tuple[str, ...] = ()
    expectation: Expectation = Expectation()
    overrides: Overrides = Overrides()
    warnings: tuple[str, ...] = ()
    error: str | None = None
    """See `Draft`, whose fields these are."""


Found = tuple[int, Draft]
"""A line's number and what begins there."""


@dataclass(frozen=True)
class ReadOptions:
    """How an input is to be read.

    Raises
    ------
    InputError
        If an option is out of range.
    """

    format: str = "auto"
    """One of `FORMATS`."""
    position_column: str | None = None
    """Of JSONL and CSV; None for the usual names."""
    first_ply: int = 0
    """Of a PGN game's positions: the first one that is wanted, counted from the game's start."""
    last_ply: int | None = None
    """The last one that is wanted; None for all."""
    every: int = 1
    """Every so many plies from the first one on."""
    only_last: bool = False
    """Only the position in which a PGN game ends; the three above do not matter then."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise InputError(f"unknown format {self.format!r}: there are {', '.join(FORMATS)}")
        if self.every < 1:
            raise InputError(f"every Nth position: N must be at least 1, not {self.every}")
        if self.first_ply < 0:
            raise InputError(f"the first ply must be at least 0, not {self.first_ply}")
        if self.last_ply is not None and self.last_ply < self.first_ply:
            raise InputError(f"the last ply, {self.last_ply}, comes before the first one, {self.first_ply}")

    def wants(self, ply: int) -> bool:
        """Tell whether the position after so many plies of a game is wanted, the last one apart."""
        if self.only_last or ply < self.first_ply or (self.last_ply is not None and ply > self.last_ply):
            return False
        return (ply - self.first_ply) % self.every == 0


def failure(text: str, reason: str, row_id: str | None = None) -> Draft:
    """Return the draft of what cannot be read, its text cut to a sane length and free of control characters."""
    return Draft(position=shortened(text), row_id=row_id, error=shortened(reason))


def shortened(text: str) -> str:
    """Return a text of a sane length without control characters."""
    kept = text if len(text) <= SANE_LENGTH else text[: SANE_LENGTH - 4] + " ..."
    return kept if kept.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in kept)
