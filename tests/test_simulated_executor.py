"""The simulated cluster: real values, virtual time, repeatable runs."""

from __future__ import annotations

import json
import threading

import pytest

from cluster.executor import ResultEvent
from cluster.records import Task
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.simulation import simulate
from cluster.strategies import STRATEGIES
from search import workspace as at
from search.driver import search
from search.flags import Flags
from search.game_files import load_game
from search.limits import NO_NODE_LIMIT, Limits
from search.rules import Game
from search.scores import INFINITY

EXACT = Flags(exact_depth=True)
SLOW = ClusterModel(node_rate=20_000, workers_a_machine=4)


@pytest.fixture(scope="module")
def connect_four() -> Game:
    return load_game("connect_four")


def run(game: Game, text: str, depth: int, workers: int, strategy: str, flags: Flags = EXACT, **limits: float):
    executor = SimulatedExecutor(game, workers, 4, model=SLOW, flags=flags, notice=lambda _line: None)
    with Session(game, executor, 4, lambda _line: None) as session:
        return session.search(SearchRequest(text, limits=Limits(depth=depth, **limits), strategy=strategy))


def task_of(game: Game, task_id: int, depth: int, epoch: int = 1) -> Task:
    words = tuple(int(word) for word in game.parse(""))
    return Task(task_id, epoch, words, depth, -INFINITY, INFINITY, 0, 0, NO_NODE_LIMIT, 0, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("name", "text", "depth"), [("connect_four", "4453", 9), ("kalah", "", 8)])
def test_every_size_of_cluster_finds_the_sequential_value(name: str, text: str, depth: int, strategy: str) -> None:
    game = load_game(name)
    true_score = search(game, game.parse(text), Limits(depth=depth), flags=EXACT, notice=lambda _line: None).score
    for workers in (1, 3, 8):
        assert run(game, text, depth, workers, strategy).result.score == true_score


def test_a_run_is_repeatable(connect_four: Game) -> None:
    first, second = (run(connect_four, "4453", 11, 6, "dynamic", Flags()) for _ in range(2))
    assert first.result == second.result
    assert first.overheads.busy_s == second.overheads.busy_s


def test_virtual_time_is_nodes_over_rate(connect_four: Game) -> None:
    result = run(connect_four, "4453", 10, 1, "single").result
    assert result.time_s == pytest.approx(result.statistics.nodes / SLOW.node_rate, rel=0.05, abs=0.05)


def test_more_workers_take_less_virtual_time(connect_four: Game) -> None:
    times_s = [run(connect_four, "2267", 13, workers, "dynamic", Flags()).result.time_s for workers in (1, 4)]
    assert times_s[1] < 0.6 * times_s[0]


@pytest.mark.parametrize("strategy", ["root", "dynamic", "team"])
def test_no_worker_searches_more_than_time_allows(connect_four: Game, strategy: str) -> None:
    report = run(connect_four, "2267", 13, 4, strategy, Flags())
    assert len(report.overheads.busy_s) == 4
    assert max(report.overheads.busy_s) <= report.result.time_s * 1.001
    nodes = report.result.statistics.nodes
    assert sum(report.overheads.busy_s) == pytest.approx(nodes / SLOW.node_rate, rel=1e-6)


def test_the_time_limit_is_in_virtual_seconds(connect_four: Game) -> None:
    result = run(connect_four, "", 40, 3, "dynamic", Flags(), time_s=2.0).result
    assert 2.0 <= result.time_s < 2.3


def test_an_abort_costs_the_work_before_it(connect_four: Game) -> None:
    executor = SimulatedExecutor(connect_four, 1, 4, model=SLOW, notice=lambda _line: None)
    try:
        executor.submit(0, [task_of(connect_four, 1, depth=40)])
        assert executor.poll(0.5) == []
        executor.abort([1])
        (event,) = executor.poll(1.0)
        assert isinstance(event, ResultEvent)
        assert event.result.status == at.ABORTED
        assert event.result.statistics.nodes == pytest.approx(0.5 * SLOW.node_rate, rel=0.1)
        assert executor.now_s() == pytest.approx(0.5, abs=0.01)
    finally:
        executor.close()


def test_closing_ends_all_threads(connect_four: Game) -> None:
    before = threading.active_count()
    executor = SimulatedExecutor(connect_four, 5, 4, model=SLOW, notice=lambda _line: None)
    executor.submit(2, [task_of(connect_four, 1, depth=40)])
    executor.poll(0.1)
    executor.close()
    executor.close()
    assert threading.active_count() == before


def test_a_simulation_says_that_it_is_one(connect_four: Game) -> None:
    request = SearchRequest("2267", limits=Limits(depth=12))
    simulation = simulate(connect_four, request, 4, 4, SLOW, notice=lambda _line: None)
    row = json.loads(json.dumps(simulation.as_json(), allow_nan=False))
    assert row["simulated"] is True
    assert row["workers"] == 4
    assert row["speedup"] == pytest.approx(row["sequential_time_s"] / row["time_s"], rel=1e-3)
    assert row["speedup"] > 1
