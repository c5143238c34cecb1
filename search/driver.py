"""Iterative deepening: one loop for one core and for a cluster, which differ only in how a root is searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from search import workspace as at
from search.algorithms import flags_for
from search.aspiration import FULL_WINDOW, Aspiration, Window
from search.chance_rules import chance_rules_of
from search.controls import CONTROL_WORDS, Controls
from search.flags import Algorithm, Flags
from search.limits import MAX_DEPTH, WHOLE_DEPTH, Limits, stopped_after
from search.referee import Facts, Referee, print_notice
from search.results import FailedWindow, Iteration, RootLine, RootResult, RootSearch, SearchResult
from search.rules import Game
from search.scores import mate_distance
from search.searcher import Job
from search.searchers import AnySearcher, open_searcher
from search.statistics import Statistics
from tt_store.layout import BOUND_LOWER, BOUND_UPPER
from tt_store.segment import Segment

DEFAULT_TABLE_MB = 64.0
_CHANCE_WIDTHS = 64
"""Expected values move from iteration to iteration by about this share of their range."""


def deepen(
    root_search: RootSearch,
    referee: Referee,
    position: Any,
    limits: Limits,
    on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
    clock: Callable[[], float] = time.monotonic,
    is_selective: bool = False,
    multipv: int = 1,
    root_moves: tuple[int, ...] = (),
    before: Sequence[Iteration] = (),
    has_windows: bool = True,
    on_failure: Callable[[FailedWindow], None] = lambda _failure: None,
) -> SearchResult:
    """Search deeper and deeper until a limit is reached or all lines are solved.

    Each iteration searches the root once for each line, every time without the first moves of the lines before; the
    table is warm by then. A solved line is not searched again: it is what it is at any depth. An iteration that is
    stopped between two lines counts for nothing: all lines of a result have one depth. A selective search may find
    that a later line is the better one; lines are sorted by their scores.

    Parameters
    ----------
    root_search
        Searches one depth with one window; says so if it was stopped.
    referee, position
        The game and its position.
    limits
        Depth and mate are kept here; `root_search` keeps nodes and time. All hold for the lines together; the best
        line alone can be the mate that is asked for.
    on_iteration
        Called after each finished iteration.
    clock
        Tells the time in seconds: real, or that of a simulated cluster.
    is_selective
        Whether the search leaves moves out. The first mate it finds need not be the shortest one; an iteration that
        begins with its score looks for nothing but shorter ones.
    multipv
        How many lines are wanted, at least 1; there are fewer where there are fewer first moves.
    root_moves
        The legal first moves that are searched; empty for all.
    before
        Iterations that an earlier run has finished, from depth 1 on: this one goes on behind them.
    has_windows
        Whether the search is quicker with narrow windows; without, each one is open.
    on_failure
        Called when a score has fallen outside its window.
    """
    started = clock()
    facts = referee.facts(position)
    if not referee.legal_moves(position):
        return SearchResult(position, (), Statistics(), 0.0, True, None, facts.outcome, ())
    plies_left = referee.game.plies_left(position)
    last_depth = limits.last_depth if plies_left is None else min(limits.last_depth, plies_left)
    legal = referee.legal_moves(position)
    first_moves = [move for move in legal if not root_moves or move in root_moves]
    left_out = tuple(move for move in legal if move not in first_moves)
    certain = chance_rules_of(referee.game).value_bound
    half_width = max(Aspiration.half_width, certain // _CHANCE_WIDTHS)
    first_narrow = Aspiration.first_depth if has_windows else MAX_DEPTH + 1
    # Where chance moves first there is one value, and no move of a better one to leave out.
    wanted = 1 if facts.is_chance else multipv
    aspirations = [Aspiration(half_width, first_depth=first_narrow) for _ in first_moves[:wanted]]
    lines = _Lines(aspirations, left_out)
    iterations: list[Iteration] = []
    total = Statistics()
    for item in before:
        if item.depth <= last_depth:
            lines.restore(item.lines)
            iterations.append(item)
            total = total.merged(item.statistics)
            started = clock() - item.time_s
    depth = iterations[-1].depth if iterations else 0
    unfinished: RootResult | None = None
    while depth < last_depth:
        if iterations and (not lines.unsolved or _is_wanted_mate(mate_distance(iterations[-1].score), limits)):
            break
        depth = min(referee.game.next_depth(position, depth), last_depth)
        # Only a forged entry of the table gives a score without moves: those of before, or any legal one, stand in.
        known = [line.moves for line in lines.unsolved] + [(move,) for move in first_moves]
        results, spent, researches = _search_lines(
            root_search, lines.aspirations, depth, lines.left_out, known, on_failure
        )
        total = total.merged(spent)
        if not results[-1].is_finished:
            # One line's first move may be better than what is known; of several lines none is without the others.
            unfinished = results[0] if wanted == 1 and results[0].line else None
            break
        earlier = [line.score for line in lines.unsolved] if is_selective else None
        ranked = lines.take(_judged(results, earlier, depth, plies_left, certain))
        iterations.append(Iteration(depth, ranked, spent, clock() - started, researches))
        on_iteration(iterations[-1])
    return _conclude(position, first_moves[0], facts, iterations, unfinished, total, clock() - started)


@dataclass
class _Lines:
    """The lines of a search between two iterations."""

    aspirations: list[Aspiration]
    """Of those that are not solved."""
    left_out: tuple[int, ...]
    """First moves that are not searched, those of solved lines included."""
    solved: list[RootLine] = field(default_factory=list)
    unsolved: list[RootLine] = field(default_factory=list)

    def take(self, fresh: list[RootLine]) -> tuple[RootLine, ...]:
        """Take what an iteration has searched, the best first; returns all lines of that iteration."""
        ranked = sorted(self.solved + fresh, key=lambda line: -line.score)
        self.aspirations = [item for item, line in zip(self.aspirations, fresh, strict=True) if not line.is_solved]
        self.solved = [line for line in ranked if line.is_solved]
        self.unsolved = [line for line in fresh if not line.is_solved]
        self.left_out += tuple(line.moves[0] for line in fresh if line.is_solved)
        return tuple(ranked)

    def restore(self, ranked: Sequence[RootLine]) -> None:
        """Take an iteration of an earlier run."""
        fresh = [line for line in ranked if line not in self.solved]
        for aspiration, line in zip(self.aspirations, fresh, strict=True):
            aspiration.finish(line.score)
        self.take(fresh)


def _judged(
    results: list[RootResult], earlier: list[int] | None, depth: int, plies_left: int | None, certain: int
) -> list[RootLine]:
    """Return the lines of an iteration, the best first, and whether their scores stay.

    Parameters
    ----------
    results
        What the root's searches came to.
    earlier
        Scores of the lines that were not solved one iteration before; None if a mate needs no confirmation by them.
    depth, plies_left
        Of the iteration, and to the end of the longest game.
    certain
        The score of a game of chance that is surely won, or lost: as good as a mate. 0 for other games.
    """
    lines = []
    for rank, result in enumerate(sorted(results, key=lambda result: -result.score)):
        distance = mate_distance(result.score)
        # A mate within the horizon is proved, and no shorter one was found before. A selective search sees but half as
        # far in lines that it takes for bad: only so deep is a shorter mate out of the question.
        horizon = depth if earlier is None else min(depth, (depth + WHOLE_DEPTH) // 2)
        is_mate = distance is not None and abs(distance) <= horizon
        is_confirmed = earlier is None or earlier[rank : rank + 1] == [result.score]
        is_certain = 0 < certain == abs(result.score)
        is_solved = depth == plies_left or is_certain or (is_mate and is_confirmed)
        lines.append(RootLine(result.score, result.line, is_solved, result.values))
    return lines


def _search_lines(
    root_search: RootSearch,
    aspirations: list[Aspiration],
    depth: int,
    left_out: tuple[int, ...],
    known: list[tuple[int, ...]],
    on_failure: Callable[[FailedWindow], None],
) -> tuple[list[RootResult], Statistics, int]:
    """Search one depth for all lines; returns fewer, the last unfinished, if the search was stopped before.

    A finished result without a line gets the first known one whose move is not left out.
    """
    results: list[RootResult] = []
    spent, researches = Statistics(), 0
    for rank, aspiration in enumerate(aspirations, 1):
        tell = partial(_tell_failure, on_failure, depth, rank, spent)
        result, more, failures = _search_depth(root_search, aspiration, depth, left_out, tell)
        spent, researches = spent.merged(more), researches + failures
        if not result.is_finished:
            return [*results, result], spent, researches
        line = result.line or next(line for line in known if line[0] not in left_out)
        results.append(replace(result, line=line))
        left_out += line[:1]
    return results, spent, researches


def _tell_failure(
    on_failure: Callable[[FailedWindow], None],
    depth: int,
    rank: int,
    before: Statistics,
    window: Window,
    result: RootResult,
    spent: Statistics,
) -> None:
    """Tell a bound; `before` counts the lines above this one, `spent` all tries at it."""
    is_low = result.score <= window.alpha
    line, bound = ((), BOUND_UPPER) if is_low else (result.line, BOUND_LOWER)
    on_failure(FailedWindow(depth, rank, result.score, bound, line, before.merged(spent)))


def _search_depth(
    root_search: RootSearch,
    aspiration: Aspiration,
    depth: int,
    left_out: tuple[int, ...],
    on_failure: Callable[[Window, RootResult, Statistics], None],
) -> tuple[RootResult, Statistics, int]:
    """Search one depth until its score lies inside the window; returns what all tries counted, and how many failed.

    If it is stopped after a window has failed high, what reached its beta is the best that is known.
    """
    window = aspiration.begin(depth)
    spent = Statistics()
    researches = 0
    best: RootResult | None = None
    while True:
        result = root_search(depth, window, left_out)
        spent = spent.merged(result.statistics)
        if not result.is_finished:
            return result if result.line or best is None else best, spent, researches
        if window.holds(result.score) or window == FULL_WINDOW:
            aspiration.finish(result.score)
            return result, spent, researches
        researches += 1
        best = replace(result, is_finished=False) if result.score >= window.beta else None
        on_failure(window, result, spent)
        window = aspiration.after_failure(window, result.score)


def _is_wanted_mate(distance: int | None, limits: Limits) -> bool:
    if distance is None or limits.mate is None or distance <= 0:
        return False
    return (distance + 1) // 2 <= limits.mate


def _conclude(
    position: Any,
    any_move: int,
    facts: Facts,
    iterations: list[Iteration],
    unfinished: RootResult | None,
    total: Statistics,
    time_s: float,
) -> SearchResult:
    best = iterations[-1].lines[0] if iterations else None
    if unfinished is not None and (best is None or unfinished.line[0] != best.moves[0]):
        best = RootLine(unfinished.score, unfinished.line, False)
    if best is None:
        score = facts.outcome if facts.is_over else facts.evaluation
        move, line = (None, ()) if facts.is_chance else (any_move, (any_move,))
        return SearchResult(position, (), total, time_s, False, move, score, line)
    move = None if facts.is_chance else best.moves[0]
    return SearchResult(position, tuple(iterations), total, time_s, best.is_solved, move, best.score, best.moves)


def search(
    game: Game,
    position: Any,
    limits: Limits,
    *,
    flags: Flags | None = None,
    table_mb: float = DEFAULT_TABLE_MB,
    contempt: int = 0,
    on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
    notice: Callable[[str], None] = print_notice,
    multipv: int = 1,
    root_moves: tuple[int, ...] = (),
) -> SearchResult:
    """Search a position on the calling thread with a table of its own.

    Parameters
    ----------
    game, position
        From `search.game_files.load_game` and `Game.parse`; the game as the flags' algorithm sees it.
    limits
        At least one should be set: without, it searches until the position is solved.
    flags
        The variant of the kernel; None for the best one of the algorithm that suits the game.
    table_mb
        Size of the table in MB (2^20 bytes).
    contempt
        What a draw costs the side to move, in the game's units.
    on_iteration, notice
        Called after each iteration, and with a line if something must be compiled first.
    multipv, root_moves
        As for `deepen`.
    """
    flags = flags_for(game) if flags is None else flags
    control_words = np.zeros(CONTROL_WORDS, np.int64)
    controls = Controls(control_words.ctypes.data)
    with Segment.private(table_mb) as segment:
        searcher = open_searcher(game, segment, controls, flags=flags, notice=notice)
        position = searcher.game.root_position(position)
        root_search = OneCore(searcher, Job(position, depth=1, contempt=contempt), limits)
        with stopped_after(limits.time_s, lambda: controls.stop(Job(None, 0).epoch)):
            if flags.algorithm == Algorithm.MCTS:
                from search import mcts_driver  # It is built on this module's records.

                growth = mcts_driver.Growth(searcher.referee, position, root_moves, multipv, on_iteration)
                return mcts_driver.grow(searcher, Job(position, depth=1), limits, growth)
            return deepen(
                root_search, searcher.referee, position, limits, on_iteration,
                is_selective=game.leaves_out(flags), multipv=multipv, root_moves=root_moves,
                has_windows=flags.has_windows,
            )  # fmt: skip


class OneCore:
    """The root search of one core.

    Parameters
    ----------
    searcher
        Runs the jobs.
    job
        What they have in common: the position, its history, the task and epoch by which they are ended.
    limits
        Nodes are kept here.
    """

    def __init__(self, searcher: AnySearcher, job: Job, limits: Limits) -> None:
        self._searcher, self._job = searcher, job
        self._nodes_left = limits.node_limit

    def __call__(self, depth: int, window: Window, left_out: tuple[int, ...]) -> RootResult:
        """Search the root to a depth with a window, without some of the first moves."""
        alpha, beta = window
        job = self._job._replace(depth=depth, alpha=alpha, beta=beta, node_limit=self._nodes_left, left_out=left_out)
        outcome = self._searcher.run(job)
        self._nodes_left = max(0, self._nodes_left - outcome.statistics.nodes)
        is_finished = outcome.status == at.RUNNING
        return RootResult(outcome.score, outcome.line, outcome.statistics, is_finished, outcome.values)
