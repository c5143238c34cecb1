"""The dynamic strategy with real kernels: split to pieces, the answer stays what one core finds."""

from __future__ import annotations

import pytest

from cluster.dynamic_splitter import DynamicSplitter
from cluster.executor import Executor, SerialExecutor, ThreadExecutor
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.split_settings import SplitSettings
from search.driver import search
from search.flags import Flags
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.rules import Game
from search.scores import mate_distance

EXACT = Flags(exact_depth=True)
PIECES = SplitSettings(grain_s=5e-5, master_s=0.0, prefix_s=0.0, least_depth=2, tasks_per_worker=1e6, first_rate=1e6)
"""Splits wherever it can."""

CASES = (
    ("connect_four", "", 7),
    ("connect_four", "445322", 7),
    ("connect_four", "32164625", 7),
    ("kalah", "", 7),
    ("kalah", "0,3,1,0,5,2,9/4,0,0,1,6,2,15 n", 7),
    ("random_tree", "3:1-6:30:50", 7),
    ("random_tree", "4:8-16:30:60", 5),
    ("tic_tac_toe", "", 9),
)


def executors(game: Game) -> list[tuple[str, Executor]]:
    quiet = {"flags": EXACT, "notice": lambda _line: None}
    model = ClusterModel(node_rate=20_000, workers_a_machine=2)
    return [
        *((f"serial {workers}", SerialExecutor(game, workers, 4, **quiet)) for workers in (1, 2, 8)),
        *((f"threads {workers}", ThreadExecutor(game, workers, 4, **quiet)) for workers in (2, 3)),
        *((f"simulated {workers}", SimulatedExecutor(game, workers, 4, model=model, **quiet)) for workers in (3, 8)),
    ]


def worth(referee: Referee, report: SearchReport) -> int | None:
    """Return what the end of a whole line is worth to the root's side to move; None if the line is cut short."""
    result = report.result
    position, sign = result.position, 1
    for move in result.line:
        assert move in referee.legal_moves(position)
        after = referee.play(position, move)
        sign = -sign if referee.changes_side(position, after) else sign
        position = after
    facts = referee.facts(position)
    if len(result.line) < result.depth or facts.is_over:
        return None
    return sign * facts.evaluation


@pytest.mark.parametrize(("name", "text", "depth"), CASES)
def test_the_value_is_the_sequential_one_however_it_is_split(name: str, text: str, depth: int) -> None:
    game = load_game(name)
    referee = Referee(game)
    true = search(game, game.parse(text), Limits(depth=depth), flags=EXACT, notice=lambda _line: None)
    request = SearchRequest(text, limits=Limits(depth=depth), strategy="dynamic", settings=PIECES)
    for label, executor in executors(game):
        with Session(game, executor, 4, lambda _line: None) as session:
            report = session.search(request)
        scores = [iteration.score for iteration in report.result.iterations]
        assert scores == [iteration.score for iteration in true.iterations], label
        assert worth(referee, report) in (None, report.result.score), label
        distance = mate_distance(report.result.score)
        assert distance is None or len(report.result.line) == abs(distance), label
        if label.endswith((" 2", " 3", " 8")) and depth > 5:
            assert report.overheads.tasks > 3 * depth, f"{label} did not split"


def test_one_worker_searches_what_the_sequential_driver_does() -> None:
    game = load_game("connect_four")
    sequential = search(game, game.parse("2267"), Limits(depth=13), notice=lambda _line: None)
    with Session(game, ThreadExecutor(game, 1, notice=lambda _line: None), 64, lambda _line: None) as session:
        report = session.search(SearchRequest("2267", limits=Limits(depth=13), strategy="dynamic"))
    assert report.result.score == sequential.score
    assert report.result.statistics.nodes <= 1.05 * sequential.statistics.nodes


def test_split_work_is_done_from_left_to_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search further left has found helps: one worker at a tree split for sixteen searches hardly more."""
    split = DynamicSplitter.start
    monkeypatch.setattr(
        DynamicSplitter,
        "start",
        lambda self, depth, window, epoch, _workers, _left_out: split(self, depth, window, epoch, 16),
    )
    game = load_game("connect_four")
    sequential = search(game, game.parse("33"), Limits(depth=15), notice=lambda _line: None)
    executor = SimulatedExecutor(game, 1, 64, model=ClusterModel(node_rate=41_500), notice=lambda _line: None)
    with Session(game, executor, 64, lambda _line: None) as session:
        report = session.search(SearchRequest("33", limits=Limits(depth=15), strategy="dynamic"))
    assert report.overheads.tasks > 1_000
    assert report.result.statistics.nodes <= 1.2 * sequential.statistics.nodes


def test_nodes_of_all_workers_count_for_the_limit() -> None:
    game = load_game("connect_four")
    with Session(game, ThreadExecutor(game, 3, notice=lambda _line: None), 64, lambda _line: None) as session:
        for limit in (1, 1_000, 20_000):
            request = SearchRequest("", limits=Limits(nodes=limit), strategy="dynamic", settings=PIECES)
            report = session.search(request)
            assert report.result.statistics.nodes <= limit + 3 * game.max_moves
            assert report.best_move is not None
