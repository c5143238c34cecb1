"""The splitter of max^n as a state machine: any order of answers, and any loss, leads to the same move."""

from __future__ import annotations

import itertools
import random

from cluster.max_n_splitter import MaxNSplitter
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.splitter import Root
from cluster.upper_tree import Child
from search import workspace as at
from search.aspiration import FULL_WINDOW
from search.results import RootResult
from search.statistics import Statistics

CASES = 2_000
WORKERS = [WorkerInfo("a", 0), WorkerInfo("a", 1), WorkerInfo("b", 2)]


def splitter_of(moves: list[int]) -> MaxNSplitter:
    children = [Child(move, (move,), 0, move) for move in moves]
    return MaxNSplitter(Root((0,), 0, lambda *_: children), itertools.count(1))


def answer(task: Task, values: dict[int, tuple[int, ...]], rng: random.Random) -> TaskResult:
    """Return what a worker may say: nothing, or the values of the task's one move, unless they are of no use."""
    (move,) = set(values) - set(task.left_out)
    status = rng.choice((at.STOPPED, at.OUT_OF_NODES)) if rng.random() < 0.1 else at.RUNNING
    score, line, known = values[move][0], (move, 7), values[move]
    if score <= task.alpha:
        score, line, known = task.alpha, (), ()
    counts = Statistics()._replace(nodes=rng.randint(1, 100))
    return TaskResult(task.task_id, task.epoch, score, task.alpha, task.beta, status, line, counts, 0.1, 0, known)


def searched(splitter: MaxNSplitter, values: dict[int, tuple[int, ...]], rng: random.Random) -> RootResult:
    """Hand out tasks until the answer is there; some are lost, and answers come in any order."""
    out: list[Task] = []
    while (result := splitter.result()) is None:
        idle = rng.sample(WORKERS, rng.randint(0, len(WORKERS)))
        out += [task for _worker, task in splitter.next_tasks(idle, WORKERS[: rng.randint(0, 1)])]
        assert splitter.aborts() == splitter.bounds() == []
        if out and rng.random() < 0.7:
            task = out.pop(rng.randrange(len(out)))
            if rng.random() < 0.1:
                splitter.on_lost(task.task_id)
            else:
                splitter.on_result(answer(task, values, rng))
        late = answer(task_of_another_search(), {1: (5, 5, 5)}, rng)
        splitter.on_result(late)
    return result


def task_of_another_search() -> Task:
    return Task(1 << 40, 99, (0,), 3, *FULL_WINDOW, 0, 0, 1000, 0, 0)


def test_the_best_move_of_the_lowest_number_wins_whatever_comes_first() -> None:
    rng = random.Random(1)
    for _ in range(CASES):
        moves = rng.sample(range(1, 50), rng.randint(1, 8))
        values = {move: tuple(rng.randint(0, 3) for _ in range(3)) for move in moves}
        splitter = splitter_of(moves)
        left_out: tuple[int, ...] = ()
        for epoch in (1, 2, 3):
            splitter.start(4, FULL_WINDOW, epoch, len(WORKERS), left_out)
            result = searched(splitter, values, rng)
            best = max((move for move in moves if move not in left_out), key=lambda move: (values[move][0], -move))
            assert (result.score, result.values, result.line) == (values[best][0], values[best], (best, 7))
            if len(left_out) + 1 < len(moves):
                left_out += (best,)


def test_all_first_moves_are_handed_out_at_once() -> None:
    splitter = splitter_of([5, 3, 4])
    splitter.start(4, FULL_WINDOW, 1, 3)
    tasks = splitter.next_tasks(WORKERS)
    assert [task.left_out for _worker, task in tasks] == [(3, 4), (5, 4), (5, 3)]
    assert {task.alpha for _worker, task in tasks} == {FULL_WINDOW.alpha}
    assert splitter.next_tasks(WORKERS) == []
    rng = random.Random(2)
    values = {3: (2, 9, 9), 4: (2, 8, 8), 5: (2, 7, 7)}
    splitter.on_lost(tasks[1][1].task_id)
    first = answer(tasks[2][1], values, rng)._replace(status=at.RUNNING, score=2, line=(4, 7), values=values[4])
    splitter.on_result(first)
    (again,) = splitter.next_tasks(WORKERS)
    # Of a lower number than 4: an equal score is of use.
    assert (again[1].left_out, again[1].alpha) == ((5, 4), 1)
