"""How a Monte Carlo tree search weighs, grows and plays; and where a worker's memory keeps that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from search import workspace as at
from search.limits import NO_NODE_LIMIT
from search.random_stream import origin_of
from tt_store.errors import RootsplitError
from tt_store.layout import WORD_BYTES

# Words of the workspace behind those of all searches.
TREE_NUMBER = 40 * WORD_BYTES
TREE_CAPACITY = 41 * WORD_BYTES
STREAM = 42 * WORD_BYTES
"""The random numbers of the running playout."""
ORIGIN = 43 * WORD_BYTES
FIRST_STREAM = 44 * WORD_BYTES
EXPLORATION = 45 * WORD_BYTES
FIRST_PLAY_URGENCY = 46 * WORD_BYTES
EXPAND_AFTER = 47 * WORD_BYTES
LONGEST_PLAYOUT = 48 * WORD_BYTES

PATH_NODES, PATH_SIDES = at.LINES, at.LINES + at.LINE_BYTES
"""Of each ply: its node, and its side to move. Other searches keep lines there."""

THOUSAND = 1000


class SettingsError(RootsplitError):
    """A setting of a Monte Carlo tree search that makes no sense."""


class Slice(NamedTuple):
    """What a slice of playouts must know beside its position and their number: all that a task carries."""

    tree_number: int
    """Of `search.mcts_tree`."""
    origin: int
    """Where the seed's streams of random numbers begin."""
    first_stream: int
    """Number of the stream of the slice's first playout; each has one of its own."""
    exploration: int
    first_play_urgency: int
    expand_after: int
    longest_playout: int


@dataclass(frozen=True)
class MonteCarloSettings:
    """The numbers of a Monte Carlo tree search. A result is 1 for a win, 0 for a draw, -1 for a loss.

    Raises
    ------
    SettingsError
        If one is out of range.
    """

    seed: int = 0
    """Of all random numbers: one worker does the same again. Any integer; what is equal modulo 2^64 is the same."""
    exploration: int = 700
    """Weight of what is not known yet against the mean result (UCT's constant), in thousandths."""
    first_play_urgency: int = 1000
    """What a move without a visit counts, in thousandths of a result (Gelly and Wang 2006)."""
    expand_after: int = 5
    """A position gets its children once it has so many visits; the root has them at once. Less memory the more."""
    longest_playout: int = 1000
    """A random game counts as drawn after so many plies."""

    def __post_init__(self) -> None:
        for name, least, greatest in (
            ("exploration", 0, 1 << 20),
            ("first_play_urgency", -(1 << 20), 1 << 20),
            ("expand_after", 1, 1 << 20),
            ("longest_playout", 1, 1 << 20),
        ):
            if not least <= getattr(self, name) <= greatest:
                raise SettingsError(f"{name} must be from {least} to {greatest}, not {getattr(self, name)}")

    def slice(self, tree_number: int, first_stream: int) -> Slice:
        """Return what a slice of playouts of a tree must know."""
        return Slice(
            tree_number, origin_of(self.seed), first_stream % NO_NODE_LIMIT, self.exploration,
            self.first_play_urgency, self.expand_after, self.longest_playout,
        )  # fmt: skip
