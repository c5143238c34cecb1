"""Crews: searches that share an executor and nothing else, and tables that are as cold as new."""

from __future__ import annotations

import pytest
from conftest import MakeExecutor, silent

from cluster.executor import ThreadExecutor
from cluster.request import SearchRequest
from cluster.scaling.crew import Crew
from cluster.scaling.plan import BATCH, LIMIT, STANDARD, Configuration, PlannedRun, Problem
from cluster.scaling.runner import Bench, Runner
from cluster.session import Session
from cluster.simulated_executor import SimulatedExecutor
from cluster.split_settings import SplitSettings
from search.driver import search
from search.flags import Flags
from search.limits import Limits
from search.rules import Game
from tt_store.errors import RunFailedError

TABLE_MB = 16.0
REQUEST = SearchRequest("33", limits=Limits(depth=11), strategy="single")
PROBLEMS = (Problem(1, "33", 11), Problem(2, "444", 10), Problem(3, "1", 12))
"""Of one horizon: what the table keeps of one position may answer for another, but not more deeply."""


@pytest.fixture
def runner(connect_four: Game):
    bench = Bench(connect_four, Flags(), {"threads": 2}, {STANDARD: SplitSettings()}, PROBLEMS)
    with Runner(bench, silent) as made:
        yield made


def run(runner: Runner, strategy: str, workers: int, problem: Problem = PROBLEMS[0]):
    return runner.run(PlannedRun(problem, Configuration("threads", strategy, workers, TABLE_MB), 0))


def sequential_nodes(game: Game, problem: Problem) -> int:
    limits = Limits(depth=problem.depth)
    return search(game, game.parse(problem.position), limits, table_mb=TABLE_MB, notice=silent).statistics.nodes


def test_an_executor_that_forgot_is_as_cold_as_a_new_one(executor: MakeExecutor, connect_four: Game) -> None:
    shared = executor(connect_four, table_mb=TABLE_MB)
    with Session(connect_four, Crew(shared, shared.workers()), TABLE_MB, silent) as session:
        first = session.search(REQUEST)
        warm = session.search(REQUEST)
        shared.forget()
        assert shared.hashfull() == 0
        cold = session.search(REQUEST)
    assert warm.result.statistics.nodes < first.result.statistics.nodes
    assert cold.result.statistics == first.result.statistics


def test_a_simulated_cluster_forgets_too(connect_four: Game) -> None:
    executor = SimulatedExecutor(connect_four, 2, 1.0, notice=silent)
    with Session(connect_four, executor, 1.0, silent) as session:
        session.search(REQUEST)
        assert executor.hashfull() > 0
        executor.forget()
        assert executor.hashfull() == 0


def test_the_baseline_is_the_sequential_search(runner: Runner, connect_four: Game) -> None:
    for problem in PROBLEMS:
        assert run(runner, "single", 1, problem).nodes == sequential_nodes(connect_four, problem)


def test_independent_searches_share_nothing(runner: Runner) -> None:
    # One worker's second search of its own table would be shorter; so would one that met the other's entries.
    alone = run(runner, "single", 1)
    pair = run(runner, LIMIT, 2)
    # They share buckets, though, so that now and then an entry of one gives way to one of the other.
    assert pair.nodes == pytest.approx(2 * alone.nodes, rel=0.01)
    assert pair.scores == alone.scores * 2
    assert pair.busy_s <= 2 * pair.time_s * 1.01


def test_a_batch_searches_each_position_once(runner: Runner, connect_four: Game) -> None:
    everything = Problem(0, "all", None)
    for workers in (1, 2):
        record = run(runner, BATCH, workers, everything)
        # A worker keeps its history of moves from one position to the next, as in a batch.
        assert record.nodes == pytest.approx(sum(sequential_nodes(connect_four, each) for each in PROBLEMS), rel=0.1)
        assert record.scores == tuple(run(runner, "single", 1, problem).scores[0] for problem in PROBLEMS)


def test_a_failure_of_one_search_ends_all(runner: Runner) -> None:
    runner.bench.game.parse("33")
    with pytest.raises(Exception, match="99"):
        run(runner, LIMIT, 2, Problem(1, "99", 10))


def test_a_crew_knows_what_its_workers_did(connect_four: Game) -> None:
    executor = ThreadExecutor(connect_four, 2, TABLE_MB, notice=silent)
    try:
        crew = Crew(executor, executor.workers())
        with Session(connect_four, crew, TABLE_MB, silent) as session:
            report = session.search(SearchRequest("33", limits=Limits(depth=13), strategy="dynamic"))
        assert len(crew.spans) == report.overheads.tasks
        assert sum(span.nodes for span in crew.spans) == report.result.statistics.nodes
        assert sum(span.end_s - span.begin_s for span in crew.spans) == pytest.approx(
            sum(report.overheads.busy_s), rel=0.01
        )
        assert sum(not span.is_finished for span in crew.spans) == report.overheads.aborted_tasks
        assert max(span.end_s for span in crew.spans) <= report.result.time_s + 0.05
    finally:
        executor.close()


def test_too_few_workers_are_said_so(runner: Runner) -> None:
    with pytest.raises(RunFailedError, match="needs 3 workers"):
        run(runner, "dynamic", 3)
