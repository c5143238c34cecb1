"""What a search comes to: of one root with one window, of one depth, and of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from search.aspiration import Window
from search.mcts_standing import RootMove
from search.statistics import Statistics
from tt_store.layout import BOUND_EXACT


@dataclass(frozen=True)
class RootResult:
    """What a search of the root with one window came to."""

    score: int
    """By the kernel's contract; of an unfinished search what its line is worth, void if there is none."""
    line: tuple[int, ...]
    """Best line; may be empty if the score is at or below alpha.

    Of an unfinished search: begins with the best first move among those searched, the first one of all included.
    """
    statistics: Statistics
    is_finished: bool
    values: tuple[int, ...] = ()
    """What the root is worth to each of several players, as far as the search tells."""

    def or_better(self, score: int, line: tuple[int, ...]) -> RootResult:
        """Return this unfinished result, or a line that is worth more and was found at the same depth and window."""
        is_better = line and (not self.line or score > self.score)
        return RootResult(score, line, Statistics(), is_finished=False) if is_better else self


NOTHING_FOUND = RootResult(0, (), Statistics(), is_finished=False)
"""Of a root search that was stopped before it knew a first move."""


class RootSearch(Protocol):
    """Searches the root: on this core, or with all workers of a cluster."""

    def __call__(self, depth: int, window: Window, left_out: tuple[int, ...]) -> RootResult:
        """Search to a depth with a window, without some of the first moves."""


@dataclass(frozen=True)
class RootLine:
    """The best line that begins with none of the first moves of the lines above it."""

    score: int
    """Exact at its iteration's depth, from the root's side to move."""
    moves: tuple[int, ...]
    """Principal variation, not empty."""
    is_solved: bool
    """Whether the score stays, however deep one looks."""
    values: tuple[int, ...] = ()
    """What the line is worth to each of several players, as far as the search tells."""


@dataclass(frozen=True)
class Iteration:
    """One finished depth."""

    depth: int
    lines: tuple[RootLine, ...]
    """As many as were asked for and there are first moves; the best first."""
    statistics: Statistics
    """Of this iteration alone, aborted and repeated searches included."""
    time_s: float
    """From the start of the whole search."""
    researches: int
    """How often the root's window had to be moved."""

    @property
    def score(self) -> int:
        """Score of the best line."""
        return self.lines[0].score

    @property
    def line(self) -> tuple[int, ...]:
        """Moves of the best line."""
        return self.lines[0].moves


@dataclass(frozen=True)
class FailedWindow:
    """A score outside its window: a bound, after which a wider window is searched."""

    depth: int
    rank: int
    """1 for the best line, and so on."""
    score: int
    """From the root's side to move."""
    bound: int
    """`BOUND_LOWER` or `BOUND_UPPER`."""
    line: tuple[int, ...]
    """What reaches a lower bound, as far as it is known."""
    statistics: Statistics
    """Of the iteration so far."""


@dataclass(frozen=True)
class SearchResult:
    """What a whole search came to."""

    position: Any
    iterations: tuple[Iteration, ...]
    statistics: Statistics
    """Of everything that was searched, the unfinished iteration included."""
    time_s: float
    is_solved: bool
    """Whether the score is the value of the game, however deep one looks."""
    best_move: int | None
    """None if the game is over, or chance moves; any legal move if nothing better is known.

    Of the last finished iteration, or a better one that an unfinished deeper one has found (the same for the next two).
    """
    score: int
    """The outcome of a finished game; the static estimate if no move was searched."""
    line: tuple[int, ...]
    bound: int = BOUND_EXACT
    """What the score says of the value: a cheaper question than the value (`search.solving`) finds but a bound.

    `BOUND_NONE` of a mean of playouts."""
    root_moves: tuple[RootMove, ...] = ()
    """What playouts say of the first moves, the best first; of Monte Carlo tree search only."""

    @property
    def depth(self) -> int:
        """Depth of the last finished iteration, 0 if there is none."""
        return self.iterations[-1].depth if self.iterations else 0

    @property
    def values(self) -> tuple[int, ...]:
        """What the best line is worth to each of several players; empty where the search does not tell."""
        return self.lines[0].values if self.lines else ()

    @property
    def lines(self) -> tuple[RootLine, ...]:
        """Lines of the last finished iteration: all of one depth."""
        return self.iterations[-1].lines if self.iterations else ()
