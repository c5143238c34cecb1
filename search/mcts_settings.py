"""How a Monte Carlo tree search weighs, grows and plays; and where a worker's memory keeps that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from search import workspace as at
from search.limits import NO_NODE_LIMIT
from search.mcts_tree import LAST_NUMBER
from search.random_stream import origin_of
from tt_store.errors import RootsplitError
from tt_store.layout import WORD_BYTES

# Words of the workspace behind those of all searches.
TREE_ADDRESS = at.FIRST_FREE
TREE_NUMBER = at.FIRST_FREE + 1 * WORD_BYTES
TREE_CAPACITY = at.FIRST_FREE + 2 * WORD_BYTES
STREAM = at.FIRST_FREE + 3 * WORD_BYTES
"""The random numbers of the running playout."""
ORIGIN = at.FIRST_FREE + 4 * WORD_BYTES
FIRST_STREAM = at.FIRST_FREE + 5 * WORD_BYTES
EXPLORATION = at.FIRST_FREE + 6 * WORD_BYTES
FIRST_PLAY_URGENCY = at.FIRST_FREE + 7 * WORD_BYTES
EXPAND_AFTER = at.FIRST_FREE + 8 * WORD_BYTES
LONGEST_PLAYOUT = at.FIRST_FREE + 9 * WORD_BYTES

PATH_NODES, PATH_SIDES, PATH_FLOORS = at.LINES, at.LINES + at.LINE_BYTES, at.LINES + 2 * at.LINE_BYTES
"""Of each ply: its node, its side to move, and whether that has a sure draw. Other searches keep lines there."""

THOUSAND = 1000
_GREATEST = 1 << 20


class SettingsError(RootsplitError):
    """A setting of a Monte Carlo tree search that makes no sense."""


class Part(NamedTuple):
    """A part of a machine's table memory."""

    number: int = 0
    """From 0."""
    of: int = 1
    """How many equal parts there are."""


class Slice(NamedTuple):
    """What a slice of playouts must know beside its position and their number: all that a task carries."""

    tree_number: int
    """Of `search.mcts_tree`."""
    origin: int
    """Where the seed's streams of random numbers begin."""
    first_stream: int
    """Number of the stream of the slice's first playout; each has one of its own."""
    part: int
    parts: int
    """The tree lies in this `Part` of the table's memory."""
    exploration: int
    first_play_urgency: int
    expand_after: int
    longest_playout: int


def slice_of(words: Sequence[int]) -> Slice:
    """Return the slice that another process has sent.

    Raises
    ------
    SettingsError
        If the words are none.
    """
    if len(words) == len(Slice._fields):
        found = Slice(*words)
        is_tree = 1 <= found.tree_number <= LAST_NUMBER and 0 <= found.part < found.parts
        if is_tree and found.first_stream >= 0 and max(map(abs, found[3:])) <= _GREATEST:
            return found
    raise SettingsError("a task of Monte Carlo tree search does not say how to play")


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
        least = {"exploration": 0, "first_play_urgency": -_GREATEST, "expand_after": 1, "longest_playout": 1}
        for name, lowest in least.items():
            if not lowest <= getattr(self, name) <= _GREATEST:
                raise SettingsError(f"{name} must be from {lowest} to {_GREATEST}, not {getattr(self, name)}")

    def slice(self, tree_number: int, first_stream: int, part: Part = Part()) -> Slice:
        """Return what a slice of playouts of a tree must know."""
        return Slice(
            tree_number, origin_of(self.seed), first_stream % NO_NODE_LIMIT, *part, self.exploration,
            self.first_play_urgency, self.expand_after, self.longest_playout,
        )  # fmt: skip
