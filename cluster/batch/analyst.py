"""One worker's side of a batch: the whole iterative deepening of one position after the other, on one core."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from cluster.batch.jobs import Answer, Line, PositionJob, Status, Step
from cluster.findings import findings_of
from cluster.report import AT_BOUND, BOUND_NAMES
from search.controls import CELLS
from search.driver import OneCore, deepen
from search.flags import Algorithm
from search.limits import stopped_after
from search.mcts_driver import Growth, grow
from search.mcts_tree import tree_number
from search.referee import Referee
from search.results import RootLine, SearchResult
from search.rules import Game
from search.searcher import Job
from search.searchers import AnySearcher
from search.solving import Question, solve

CALL_S = 1.0
"""A call ends with the position during which this time is up, so that no finished answer waits for long."""


class Analyst:
    """Searches positions on the calling thread.

    Parameters
    ----------
    searcher
        This worker's own.
    slot
        Its number on its machine: it alone uses the control cells of this remainder.
    is_fresh
        Whether the table, which is then this worker's alone, is emptied before each position, and all else forgotten.
    """

    def __init__(self, searcher: AnySearcher, slot: int, is_fresh: bool = False) -> None:
        self._searcher, self._slot, self._is_fresh = searcher, slot, is_fresh
        self._searches = 0

    def run(self, jobs: Iterable[PositionJob]) -> list[Answer]:
        """Search positions in turn; those that the call's time does not reach have no answer yet."""
        end_s = time.monotonic() + CALL_S
        if not self._is_fresh:
            # Race: two workers may advance it to the same number. It is no more than a clock.
            self._searcher.segment.advance_generation()
        answers = []
        for job in jobs:
            answers.append(self._answer(job))
            if time.monotonic() >= end_s:
                break
        return answers

    def _answer(self, job: PositionJob) -> Answer:
        searcher = self._searcher
        game, referee = searcher.game, searcher.referee
        if self._is_fresh and searcher.flags.keeps_entries:
            searcher.segment.clear()
            searcher.forget()
        position = game.position(job.words)
        self._searches += 1
        # A cell of its own: two tasks of one cell would lose each other's abort.
        task_id = self._searches * CELLS + self._slot
        task = Job(position, depth=1, task_id=task_id, history=job.history)
        root_search = OneCore(searcher, task, job.limits)
        started_s = time.monotonic()
        seconds = [limit for limit in (job.time_s, job.deadline_s) if limit is not None]
        with stopped_after(min(seconds, default=None), partial(searcher.controls.abort, task_id)):
            if searcher.flags.algorithm == Algorithm.MCTS:
                growth = Growth(referee, position, multipv=job.multipv)
                result = grow(searcher, task, job.limits, growth, tree_number=tree_number(self._searches))
            elif job.solve is not None:
                result = solve(root_search, referee, position, Question(job.solve))
            else:
                result = deepen(
                    root_search, referee, position, job.limits,
                    is_selective=game.leaves_out(searcher.flags), multipv=job.multipv,
                    has_windows=searcher.flags.has_windows,
                )  # fmt: skip
        return answer_of(referee, result, job, time.monotonic() - started_s)


def answer_of(referee: Referee, result: SearchResult, job: PositionJob, elapsed_s: float) -> Answer:
    """Return what a search of a job's position came to.

    Parameters
    ----------
    referee
        Of the game.
    result
        What was found.
    job
        What was asked.
    elapsed_s
        From before its clock was started: the search's own time may be a moment less than the deadline that ended it.
    """
    game, position = referee.game, result.position
    pv = tuple(referee.line_texts(position, result.line))
    steps = tuple(_steps(game, position, result))
    is_given_up = (
        job.deadline_s is not None
        and elapsed_s >= job.deadline_s
        and (job.time_s is None or job.time_s > job.deadline_s)
        and not result.is_solved
        and result.depth != job.depth
    )
    return Answer(
        job_id=job.job_id,
        status=Status.DEADLINE if is_given_up else Status.OK,
        reason=f"its search did not end within {job.deadline_s:g} s" if is_given_up else None,
        best_move=None if result.best_move is None else game.move_text(position, result.best_move),
        score=result.score,
        score_text=AT_BOUND[result.bound] + game.value_text(position, result.score, result.values, result.is_solved),
        bound=BOUND_NAMES[result.bound] if result.iterations else None,
        depth=result.depth,
        nodes=result.statistics.nodes,
        time_s=round(result.time_s, 6),
        pv=pv,
        steps=steps,
        lines=tuple(_ranked(referee, position, line) for line in result.lines) if job.multipv > 1 else (),
        findings=findings_of(game, result),
    )


def _ranked(referee: Referee, position: Any, line: RootLine) -> Line:
    texts = tuple(referee.line_texts(position, line.moves))
    score_text = referee.game.value_text(position, line.score, line.values, line.is_solved)
    return Line(texts[0], line.score, score_text, "exact", texts, line.values or None)


def _steps(game: Game, position: Any, result: SearchResult) -> Iterable[Step]:
    nodes = 0
    for iteration in result.iterations:
        nodes += iteration.statistics.nodes
        is_solved = result.is_solved and iteration is result.iterations[-1]
        yield Step(
            iteration.depth,
            game.move_text(position, iteration.line[0]),
            iteration.score,
            game.value_text(position, iteration.score, iteration.lines[0].values, is_solved),
            nodes,
            round(iteration.time_s, 6),
        )
