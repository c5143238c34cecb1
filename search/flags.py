"""The variants of the one search function; each flag is a constant that the compiler sees."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple


class Pruning(IntEnum):
    """What the search leaves out, from nothing to what PVS does."""

    NONE = 0
    """Plain negamax: every node."""
    FAIL_HARD = 1
    """Alpha-beta whose result never leaves the window (Knuth and Moore 1975)."""
    FAIL_SOFT = 2
    """Alpha-beta whose result is a bound that may lie outside the window (Fishburn 1983)."""
    PVS = 3
    """Fail-soft; null windows after the first move (Marsland and Campbell 1982, Reinefeld 1983)."""


class Algorithm(IntEnum):
    """What kind of search; `search.algorithms` says which is sound for which game."""

    ALPHA_BETA = 0
    """Negamax with all its pruning: `search.kernel`."""
    EXPECTIMINIMAX = 1
    """The same with chance nodes: `search.chance`."""
    MAX_N = 2
    """Several players, each for himself (Luckhardt and Irani 1986)."""
    PARANOID = 3
    """Alpha-beta of one player against a coalition of the others (Sturtevant and Korf 2000)."""
    MCTS = 4
    """Monte Carlo tree search (Kocsis and Szepesvari 2006)."""

    @property
    def label(self) -> str:
        """The name by which users ask for it."""
        return "max^n" if self == Algorithm.MAX_N else self.name.lower().replace("_", "-")


class Star(IntEnum):
    """What the search leaves out below chance nodes, where it prunes at all (Ballard 1983)."""

    NONE = 0
    """Nothing: every outcome is searched with the full window."""
    STAR1 = 1
    """What the bounds of the outcomes not yet searched decide."""
    STAR2 = 2
    """The same, with better bounds: each outcome's most promising move is searched before any other."""


class Flags(NamedTuple):
    """A variant of the kernel. The default is the one that searches best; tests and experiments ask for others."""

    pruning: Pruning = Pruning.PVS
    ordering: bool = True
    """Rank moves by the game's `order`, killers and history; without, they come as the game generates them."""
    table: bool = True
    """Probe and store the transposition table."""
    exact_depth: bool = False
    """A table hit needs equal depth: fixed-depth values are then equal for any number of workers and any table."""
    evaluation: bool = True
    """Score the horizon by the game's `evaluate`; without, by 0."""
    stepped: bool = False
    """Give the turn back at each poll: for simulated workers (see `search.turns`)."""
    repetition: bool = True
    """Score a position that came before as a draw; values then depend on the path."""
    quiescence: bool = True
    """Follow captures beyond the horizon (see `search.quiescence`)."""
    check_extension: bool = True
    """Search answers to a check one ply deeper; this and all that follow are the rules of `search.selectivity`."""
    null_move: bool = True
    """Cut where even a null move keeps the score above the window."""
    late_reduction: bool = True
    """Search late moves, and nodes without a table move, less deeply."""
    forward_pruning: bool = True
    """Leave out what, a few plies from the horizon, the estimate says will not reach the window."""

    singular_extension: bool = True
    """With extensions of checks: search the table's move deeper too where no other comes near it."""

    prob_cut: bool = True
    """Cut where a shallow search tells that the deep one will miss the window (see `search.prob_cut`)."""

    sound_moves: bool = True
    """Try no move that loses at once, where the game tells (see `search.foresight`); values stay as they are."""
    enhanced_cutoff: bool = True
    """Ask the table whether a child refutes the node, before any is searched."""
    table_depth: int = 0
    """Least depth of a node that the table is asked about: nearer to the horizon a search may cost less than that."""
    algorithm: Algorithm = Algorithm.ALPHA_BETA
    star: Star = Star.STAR2
    """Of games of chance."""

    @classmethod
    def of_words(cls, words: Sequence[int]) -> Flags:
        """Return the flags that travelled as integers, each of its own type again."""
        typed: list[Any] = [type(default)(word) for default, word in zip(cls(), words, strict=True)]
        return cls._make(typed)

    @property
    def keeps_entries(self) -> bool:
        """Whether the table's memory holds entries: those of a machine are of use to the others."""
        return self.table and self.algorithm != Algorithm.MCTS

    @property
    def has_windows(self) -> bool:
        """Whether a search is quicker where its value is known to lie between two bounds."""
        return self.algorithm != Algorithm.MAX_N

    @property
    def sees_repetition(self) -> bool:
        """Whether values depend on the path: never in a proof."""
        return self.repetition and not self.exact_depth

    @property
    def may_select(self) -> bool:
        """Whether rules may make a value other than that of a search of fixed depth: none does in a proof."""
        return not self.exact_depth and self.pruning == Pruning.PVS

    @property
    def judges_moves(self) -> bool:
        """Whether any rule is on that needs a game which tells checks."""
        return self.check_extension or self.null_move or self.late_reduction or self.forward_pruning


FULL_WIDTH = Flags(
    null_move=False, late_reduction=False, forward_pruning=False, singular_extension=False, prob_cut=False
)
"""Leaves no move out: who asks for a mate in so many moves wants the quiet sacrifices too."""
