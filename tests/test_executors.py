"""What every executor promises; the serial one, which runs a task when it is polled for, is the oracle.

Each test runs once for every kind of the `executor` fixture.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from conftest import MakeExecutor, silent

from cluster.executor import Executor, ResultEvent, SerialExecutor, ThreadExecutor
from cluster.records import Task, TaskResult
from search import workspace as at
from search.flags import Flags
from search.limits import NO_NODE_LIMIT
from search.rules import Game
from search.scores import INFINITY
from tt_store.errors import RootsplitError

PROMPT_S = 2.0
ENDLESS_DEPTH = 40
EXACT_DEPTH = Flags(exact_depth=True)


def task_for(position: Any, task_id: int, depth: int, **fields: Any) -> Task:
    plain = Task(
        task_id=task_id,
        epoch=1,
        position=tuple(int(word) for word in position),
        depth=depth,
        alpha=-INFINITY,
        beta=INFINITY,
        ply=0,
        side=0,
        node_limit=NO_NODE_LIMIT,
        contempt=0,
        salt=0,
    )
    return plain._replace(**fields)


def collect(executor: Executor, count: int, within_s: float = 30.0) -> dict[int, TaskResult]:
    """Poll until so many results are there; fails where one comes twice, or from a wrong worker's id."""
    results: dict[int, TaskResult] = {}
    deadline_s = time.monotonic() + within_s
    ids = {info.worker for info in executor.workers()}
    while len(results) < count:
        assert time.monotonic() < deadline_s, f"{len(results)} of {count} results within {within_s} s"
        for event in executor.poll(0.05):
            assert isinstance(event, ResultEvent)
            assert event.worker in ids
            assert event.result.task_id not in results
            results[event.result.task_id] = event.result
    return results


def submit_round_robin(executor: Executor, tasks: Iterable[Task]) -> None:
    workers = executor.workers()
    for number, task in enumerate(tasks):
        executor.submit(workers[number % len(workers)].worker, [task])


def is_serial(executor: Executor) -> bool:
    """Tell whether tasks run only when they are polled for: nothing then happens to one while it runs."""
    return isinstance(executor, SerialExecutor)


def test_workers_have_names_of_their_own(executor: MakeExecutor, tic_tac_toe: Game) -> None:
    workers = executor(tic_tac_toe).workers()
    assert 1 <= len(workers) <= 3
    assert len({info.worker for info in workers}) == len(workers)
    assert len({info.machine for info in workers}) == 1


def test_each_task_gives_exactly_one_result(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four, flags=EXACT_DEPTH)
    texts = ["", "4", "44", "4453", "123", "7654321", "334455", "1122"]
    tasks = [
        task_for(connect_four.parse(text), 1 + 8 * depth + number, depth)
        for depth in range(6)
        for number, text in enumerate(texts)
    ]
    random.Random(1).shuffle(tasks)
    submit_round_robin(pool, tasks)
    results = collect(pool, len(tasks))
    assert pool.poll(0.05) == []
    assert results.keys() == {task.task_id for task in tasks}
    with SerialOracle(connect_four) as oracle:
        for task in tasks:
            result = results[task.task_id]
            assert result.is_finished
            assert (result.epoch, result.alpha, result.beta) == (task.epoch, task.alpha, task.beta)
            assert result.score == oracle.run(task).score
            assert result.statistics.nodes >= 1
            assert 0 <= result.elapsed_s < 30


class SerialOracle:
    """A serial executor of one worker, for expected scores."""

    def __init__(self, game: Game) -> None:
        self._executor = SerialExecutor(game, 1, 1.0, flags=EXACT_DEPTH, notice=silent)

    def __enter__(self) -> SerialOracle:
        return self

    def __exit__(self, *_error: object) -> None:
        self._executor.close()

    def run(self, task: Task) -> TaskResult:
        self._executor.submit(0, [task])
        return collect(self._executor, 1)[task.task_id]


def test_many_tasks_can_be_submitted_at_once(executor: MakeExecutor, tic_tac_toe: Game) -> None:
    pool = executor(tic_tac_toe)
    position = tic_tac_toe.parse("")
    worker = pool.workers()[-1].worker
    pool.submit(worker, [task_for(position, task_id, 3) for task_id in range(1, 101)])
    assert len(collect(pool, 100)) == 100


def test_no_task_means_no_event(executor: MakeExecutor, tic_tac_toe: Game) -> None:
    pool = executor(tic_tac_toe)
    started = time.monotonic()
    assert pool.poll(0.0) == []
    assert pool.poll(0.05) == []
    pool.submit(pool.workers()[0].worker, [])
    assert pool.poll(0.0) == []
    assert time.monotonic() - started < PROMPT_S


def test_a_finished_game_is_a_task_too(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    submit_round_robin(pool, [task_for(connect_four.parse("1212121"), 5, 4, ply=3, side=1)])
    result = collect(pool, 1)[5]
    assert (result.score, result.status, result.line) == (3 - 30_000, at.RUNNING, ())


def test_a_node_limit_ends_a_task(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    submit_round_robin(pool, [task_for(connect_four.parse(""), 5, ENDLESS_DEPTH, node_limit=20_000)])
    result = collect(pool, 1)[5]
    assert result.status == at.OUT_OF_NODES
    assert not result.is_finished
    assert 20_000 <= result.statistics.nodes <= 20_000 + connect_four.max_moves


def test_running_and_waiting_tasks_can_be_aborted(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    position = connect_four.parse("")
    running = [task_for(position, 10 + number, ENDLESS_DEPTH) for number in range(len(pool.workers()))]
    waiting = [task._replace(task_id=task.task_id + 100) for task in running]
    submit_round_robin(pool, [*running, *waiting])
    if not is_serial(pool):
        assert pool.poll(0.2) == []
    ids = [task.task_id for task in (*running, *waiting)]
    started = time.monotonic()
    pool.abort(ids)
    results = collect(pool, len(ids))
    assert time.monotonic() - started < PROMPT_S
    assert {result.status for result in results.values()} == {at.ABORTED}
    if not is_serial(pool):
        assert all(results[task.task_id].statistics.nodes > 1_000 for task in running)
        assert all(results[task.task_id].statistics.nodes <= 1_024 for task in waiting)


def test_an_abort_ends_only_the_task_that_it_names(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    position = connect_four.parse("")
    doomed, other = task_for(position, 21, ENDLESS_DEPTH), task_for(position, 22, 8)
    pool.abort([21, 4_000_000])
    submit_round_robin(pool, [doomed, other])
    results = collect(pool, 2)
    assert (results[21].status, results[22].status) == (at.ABORTED, at.RUNNING)


def test_a_bound_narrows_waiting_tasks(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four, flags=EXACT_DEPTH)
    position = connect_four.parse("")
    with SerialOracle(connect_four) as oracle:
        value = oracle.run(task_for(position, 1, 9)).score
    for task_id, bound in ((31, value - 10), (32, value + 10), (33, value), (34, value + 1)):
        pool.set_bound(task_id, bound)
        submit_round_robin(pool, [task_for(position, task_id, 9, alpha=value - 20)])
        result = collect(pool, 1)[task_id]
        assert result.is_finished
        assert (result.alpha, result.beta) == (value - 20, bound)
        assert result.score >= bound if value >= bound else result.score == value


def test_a_bound_below_alpha_leaves_a_null_window(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four, flags=EXACT_DEPTH)
    pool.set_bound(41, -500)
    submit_round_robin(pool, [task_for(connect_four.parse(""), 41, 7, alpha=-50, beta=50)])
    result = collect(pool, 1)[41]
    assert (result.alpha, result.beta, result.status) == (-501, -500, at.RUNNING)
    assert result.score >= -500


def test_a_bound_narrows_a_running_task(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    if is_serial(pool):
        pytest.skip("a serial task runs within a poll: nobody can reach it")
    submit_round_robin(pool, [task_for(connect_four.parse(""), 51, ENDLESS_DEPTH, alpha=-10_000)])
    assert pool.poll(0.2) == []
    pool.set_bound(51, -9_000)
    assert pool.poll(0.2) == []
    # It goes on with the narrower window; we end it to see which one that was.
    pool.abort([51])
    result = collect(pool, 1)[51]
    assert (result.alpha, result.beta, result.status) == (-10_000, -9_000, at.ABORTED)


def test_a_bound_that_is_no_news_changes_nothing(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    pool.set_bound(61, 500)
    submit_round_robin(pool, [task_for(connect_four.parse(""), 61, 6, alpha=-50, beta=50)])
    result = collect(pool, 1)[61]
    assert (result.alpha, result.beta, result.status) == (-50, 50, at.RUNNING)


def test_stop_ends_tasks_up_to_an_epoch(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    position = connect_four.parse("")
    endless = [task_for(position, 70 + epoch, ENDLESS_DEPTH, epoch=epoch) for epoch in (5, 6, 7)]
    newer = task_for(position, 80, 8, epoch=8)
    submit_round_robin(pool, [*endless, newer])
    if not is_serial(pool):
        pool.poll(0.2)
    started = time.monotonic()
    pool.stop(7)
    results = collect(pool, 4)
    assert time.monotonic() - started < PROMPT_S
    assert all(results[task.task_id].status == at.STOPPED for task in endless)
    assert results[80].status == at.RUNNING
    # The stop word never goes back: what is told to end older tasks must not let these run.
    pool.stop(3)
    submit_round_robin(pool, [endless[-1]._replace(task_id=90)])
    assert collect(pool, 1)[90].status == at.STOPPED


def test_stop_reaches_a_running_task_from_another_thread(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four)
    submit_round_robin(pool, [task_for(connect_four.parse(""), 95, ENDLESS_DEPTH)])
    started = time.monotonic()
    timer = threading.Timer(0.2, pool.stop, (1,))
    timer.start()
    result = collect(pool, 1)[95]
    timer.join()
    assert result.status == at.STOPPED
    assert 0.15 < time.monotonic() - started < PROMPT_S


@pytest.mark.parametrize("fields", [1, 3])
def test_a_position_with_a_wrong_number_of_fields_is_a_clear_error(
    executor: MakeExecutor, connect_four: Game, fields: int
) -> None:
    pool = executor(connect_four)
    submit_round_robin(pool, [task_for((0,) * fields, 1, 4)])
    with pytest.raises(RootsplitError, match=f"connect_four has 2 fields, not {fields}") as caught:
        collect(pool, 1)
    assert "\n" not in str(caught.value)


def test_closing_twice_does_nothing(executor: MakeExecutor, tic_tac_toe: Game) -> None:
    pool = executor(tic_tac_toe)
    submit_round_robin(pool, [task_for(tic_tac_toe.parse(""), 1, 9)])
    collect(pool, 1)
    pool.close()
    pool.close()


def test_closing_while_tasks_run_is_prompt_and_leaves_no_thread(executor: MakeExecutor, connect_four: Game) -> None:
    before = threading.active_count()
    pool = executor(connect_four)
    if isinstance(pool, ThreadExecutor):
        assert threading.active_count() == before + len(pool.workers())
    tasks = [task_for(connect_four.parse(""), task_id, ENDLESS_DEPTH) for task_id in range(1, 10)]
    submit_round_robin(pool, tasks)
    time.sleep(0.1)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < PROMPT_S
    assert threading.active_count() == before


def test_each_search_begins_a_generation(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four, table_mb=0.25)
    assert isinstance(pool, SerialExecutor | ThreadExecutor)
    before = pool._segment.generation
    pool.begin_search()
    pool.begin_search()
    assert pool._segment.generation == before + 2
    # What is stored from now on bears it.
    submit_round_robin(pool, [task_for(connect_four.parse(""), 1, 11)])
    collect(pool, 1)
    assert pool._segment.hashfull(before + 2) > 0.02


def test_hashfull_is_a_share_that_grows(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four, table_mb=0.25)
    assert pool.hashfull() < 0.01
    submit_round_robin(pool, [task_for(connect_four.parse(""), 1, 11)])
    collect(pool, 1)
    assert 0.02 < pool.hashfull() <= 1


def test_all_workers_share_one_table(executor: MakeExecutor, connect_four: Game) -> None:
    pool = executor(connect_four, table_mb=16)
    position = connect_four.parse("")
    first, last = pool.workers()[0], pool.workers()[-1]
    pool.submit(first.worker, [task_for(position, 1, 10)])
    cold = collect(pool, 1)[1]
    pool.submit(last.worker, [task_for(position, 2, 10)])
    warm = collect(pool, 1)[2]
    assert (warm.score, warm.line[:1]) == (cold.score, cold.line[:1])
    assert warm.statistics.nodes < cold.statistics.nodes / 10
    # Another salt shares nothing with it.
    pool.submit(last.worker, [task_for(position, 3, 10, salt=12345)])
    assert collect(pool, 1)[3].statistics.nodes > cold.statistics.nodes / 3
