"""Iterative deepening: one loop for one core and for a cluster, which differ only in how a root is searched."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from search import workspace as at
from search.aspiration import FULL_WINDOW, Aspiration, Window
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags
from search.limits import Limits, stopped_after
from search.referee import Facts, Referee, print_notice
from search.rules import Game
from search.scores import mate_distance
from search.searcher import Job, Searcher
from search.statistics import Statistics
from tt_store.segment import Segment

DEFAULT_TABLE_MB = 64.0


@dataclass(frozen=True)
class RootResult:
    """What a search of the root with one window came to."""

    score: int
    """By the kernel's contract; void unless finished."""
    line: tuple[int, ...]
    """Best line; may be empty if the score is at or below alpha."""
    statistics: Statistics
    is_finished: bool


class RootSearch(Protocol):
    """Searches the root: on this core, or with all workers of a cluster."""

    def __call__(self, depth: int, window: Window) -> RootResult:
        """Search to a depth with a window."""


@dataclass(frozen=True)
class Iteration:
    """One finished depth."""

    depth: int
    score: int
    """Exact at this depth, from the root's side to move."""
    line: tuple[int, ...]
    """Principal variation."""
    statistics: Statistics
    """Of this iteration alone, aborted and repeated searches included."""
    time_s: float
    """From the start of the whole search."""
    researches: int
    """How often the root's window had to be moved."""


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
    """None if the game is over; any legal move if not even the first iteration was finished."""
    score: int
    """Of the last finished iteration; the outcome of a finished game; else the static estimate."""
    line: tuple[int, ...]

    @property
    def depth(self) -> int:
        """Depth of the last finished iteration, 0 if there is none."""
        return self.iterations[-1].depth if self.iterations else 0


def deepen(
    root_search: RootSearch,
    referee: Referee,
    position: Any,
    limits: Limits,
    on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
    clock: Callable[[], float] = time.monotonic,
    is_selective: bool = False,
) -> SearchResult:
    """Search deeper and deeper until a limit is reached or the position is solved.

    Parameters
    ----------
    root_search
        Searches one depth with one window; says so if it was stopped.
    referee, position
        The game and its position.
    limits
        Depth and mate are kept here; `root_search` keeps nodes and time.
    on_iteration
        Called after each finished iteration.
    clock
        Tells the time in seconds: real, or that of a simulated cluster.
    is_selective
        Whether the search leaves moves out. The first mate it finds need not be the shortest one; an iteration that
        begins with its score looks for nothing but shorter ones.
    """
    started = clock()
    facts = referee.facts(position)
    if facts.is_over:
        return SearchResult(position, (), Statistics(), 0.0, True, None, facts.outcome, ())
    plies_left = referee.game.plies_left(position)
    last_depth = limits.last_depth if plies_left is None else min(limits.last_depth, plies_left)
    aspiration = Aspiration()
    iterations: list[Iteration] = []
    total = Statistics()
    is_solved = False
    depth = 0
    while depth < last_depth:
        depth = min(referee.game.next_depth(position, depth), last_depth)
        result, spent, researches = _search_depth(root_search, aspiration, depth)
        total = total.merged(spent)
        if not result.is_finished:
            break
        elapsed_s = clock() - started
        iterations.append(Iteration(depth, result.score, result.line, spent, elapsed_s, researches))
        on_iteration(iterations[-1])
        distance = mate_distance(result.score)
        # A mate within the horizon is proved, and no shorter one was found before.
        is_mate = distance is not None and abs(distance) <= depth
        is_confirmed = not is_selective or [item.score for item in iterations[-2:]] == [result.score] * 2
        is_solved = depth == plies_left or (is_mate and is_confirmed)
        if is_solved or _is_wanted_mate(distance, limits):
            break
    return _conclude(referee, position, facts, iterations, total, clock() - started, is_solved)


def _search_depth(root_search: RootSearch, aspiration: Aspiration, depth: int) -> tuple[RootResult, Statistics, int]:
    """Search one depth until its score lies inside the window; returns what all tries counted, and how many failed."""
    window = aspiration.begin(depth)
    spent = Statistics()
    researches = 0
    while True:
        result = root_search(depth, window)
        spent = spent.merged(result.statistics)
        if not result.is_finished:
            return result, spent, researches
        if window.holds(result.score) or window == FULL_WINDOW:
            aspiration.finish(result.score)
            return result, spent, researches
        researches += 1
        window = aspiration.after_failure(window, result.score)


def _is_wanted_mate(distance: int | None, limits: Limits) -> bool:
    if distance is None or limits.mate is None or distance <= 0:
        return False
    return (distance + 1) // 2 <= limits.mate


def _conclude(
    referee: Referee,
    position: Any,
    facts: Facts,
    iterations: list[Iteration],
    total: Statistics,
    time_s: float,
    is_solved: bool,
) -> SearchResult:
    if iterations:
        last = iterations[-1]
        # Only a forged entry of the table gives a score without a line: a legal move all the same.
        line = next((item.line for item in reversed(iterations) if item.line), ()) or (
            referee.legal_moves(position)[0],
        )
        return SearchResult(position, tuple(iterations), total, time_s, is_solved, line[0], last.score, line)
    move = referee.legal_moves(position)[0]
    return SearchResult(position, (), total, time_s, False, move, facts.evaluation, (move,))


def search(
    game: Game,
    position: Any,
    limits: Limits,
    *,
    flags: Flags = Flags(),
    table_mb: float = DEFAULT_TABLE_MB,
    contempt: int = 0,
    on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
    notice: Callable[[str], None] = print_notice,
) -> SearchResult:
    """Search a position on the calling thread with a table of its own.

    Parameters
    ----------
    game, position
        From `search.rules.load_game` and `Game.parse`.
    limits
        At least one should be set: without, it searches until the position is solved.
    flags
        The variant of the kernel.
    table_mb
        Size of the table in MB (2^20 bytes).
    contempt
        What a draw costs the side to move, in the game's units.
    on_iteration, notice
        Called after each iteration, and with a line if something must be compiled first.
    """
    control_words = np.zeros(CONTROL_WORDS, np.int64)
    controls = Controls(control_words.ctypes.data)
    with Segment.private(table_mb) as segment:
        searcher = Searcher(game, segment, controls, flags=flags, notice=notice)
        root_search = _OneCore(searcher, position, limits, contempt)
        with stopped_after(limits.time_s, lambda: controls.stop(Job(None, 0).epoch)):
            is_selective = game.is_selective and flags.is_selective
            return deepen(root_search, searcher.referee, position, limits, on_iteration, is_selective=is_selective)


class _OneCore:
    """The root search of one core."""

    def __init__(self, searcher: Searcher, position: Any, limits: Limits, contempt: int) -> None:
        self._searcher = searcher
        self._nodes_left = limits.node_limit
        self._job = Job(position, depth=1, contempt=contempt)

    def __call__(self, depth: int, window: Window) -> RootResult:
        job = self._job._replace(depth=depth, alpha=window.alpha, beta=window.beta, node_limit=self._nodes_left)
        outcome = self._searcher.run(job)
        self._nodes_left = max(0, self._nodes_left - outcome.statistics.nodes)
        return RootResult(outcome.score, outcome.line, outcome.statistics, outcome.status == at.RUNNING)
