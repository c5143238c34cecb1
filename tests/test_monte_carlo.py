"""Monte Carlo tree search on many workers: slices, merged machines, limits, and the commands that ask for it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import REPOSITORY, MakeExecutor, silent

import cluster
from cluster.checkpoint import CheckpointError
from cluster.checkpointer import CheckpointFile
from cluster.executor import SerialExecutor
from cluster.monte_carlo import MonteCarloSplitter
from cluster.position_rules import words_of
from cluster.records import Task, TaskResult, WorkerInfo, pack_tasks, unpack_tasks
from cluster.request import SearchRequest
from cluster.session import Session, open_session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.splitter import Root
from search import workspace as at
from search.aspiration import FULL_WINDOW
from search.flags import Algorithm, Flags
from search.limits import Limits
from search.mcts_driver import Growth
from search.mcts_settings import MonteCarloSettings, Slice
from search.mcts_standing import RootMove, Standing
from search.mcts_tree import LOST, UNKNOWN, WON
from search.referee import Referee
from search.results import Iteration
from search.rules import Game, RulesError
from search.statistics import Statistics
from tt_store.errors import RunFailedError

MCTS = Flags(algorithm=Algorithm.MCTS)
START = "........."
HERE, THERE = WorkerInfo("here", 0), WorkerInfo("there", 1)


class Field:
    """A splitter without workers: the test plays them."""

    def __init__(self, game: Game, *, is_single: bool = False) -> None:
        self.iterations: list[Iteration] = []
        position = game.parse(START)
        self.growth = Growth(Referee(game, silent), position, (1, 2, 3), 2, self.iterations.append, lambda: 0.0)
        root = Root(words_of(position), 1, lambda _position: ())  # type: ignore[arg-type, return-value]
        self.splitter = MonteCarloSplitter(root, itertools.count(1), self.growth, slice_s=0.1, is_single=is_single)
        self.splitter.start(1, FULL_WINDOW, 7, 2)

    def report(self, task: Task, rows: list[RootMove], line: tuple[int, ...] = (), nodes: int | None = None) -> None:
        values = Standing(tuple(rows)).words()
        made = Statistics(nodes=task.node_limit if nodes is None else nodes, selective_depth=3)
        result = TaskResult(task.task_id, 7, 0, -1, 1, at.RUNNING, line, made, 0.01, 1, values)
        self.splitter.on_result(result)


def rows(*visits: int, verdict: int = UNKNOWN) -> list[RootMove]:
    return [RootMove(move, count, count // 2, verdict) for move, count in enumerate(visits, 1)]


def test_every_worker_gets_a_slice_with_random_numbers_of_its_own(tic_tac_toe: Game) -> None:
    field = Field(tic_tac_toe)
    tasks = field.splitter.next_tasks([HERE, THERE], [HERE])
    assert [info for info, _task in tasks] == [HERE, THERE, HERE]
    slices = [Slice(*task.settings) for _info, task in tasks]
    counts = [task.node_limit for _info, task in tasks]
    assert [each.first_stream for each in slices] == [0, counts[0], counts[0] + counts[1]]
    assert len({each.tree_number for each in slices}) == 1
    assert all(set(task.left_out) == {4, 5, 6, 7, 8, 9} for _info, task in tasks)
    assert unpack_tasks(pack_tasks([task for _info, task in tasks])) == [task for _info, task in tasks]


def test_slices_grow_with_the_rate_and_end_where_playouts_double(tic_tac_toe: Game) -> None:
    field = Field(tic_tac_toe)
    given, seen = 0, []
    for _ in range(20):
        ((_info, task),) = field.splitter.next_tasks([HERE])
        given += task.node_limit
        seen.append(given)
        field.report(task, rows(given, 0, 0))
    # 6,400 to the second from the first slice on: 640 in a tenth of one, cut at each doubling.
    assert seen[0] == 64
    assert {256, 512, 1024, 2048} <= set(seen)
    assert max(after - before for before, after in itertools.pairwise(seen)) > 500
    spent = [iteration.statistics.nodes for iteration in field.iterations]
    assert list(itertools.accumulate(spent)) == [256 << number for number in range(len(spent))]


def test_machines_are_added_up_and_an_older_view_of_one_does_not_count(tic_tac_toe: Game) -> None:
    field = Field(tic_tac_toe)
    (_, first), (_, second), (_, third) = field.splitter.next_tasks([HERE, THERE], [HERE])
    field.report(third, rows(70, 20, 10), (1, 5))
    field.report(second, rows(5, 150, 5), (2, 9))
    field.report(first, rows(30, 10, 5), (1,))
    result = field.growth.result(Statistics(nodes=260))
    assert [(row.move, row.visits) for row in result.root_moves] == [(2, 170), (1, 75), (3, 15)]
    assert result.line == (2, 9)
    assert result.best_move == 2
    assert not result.is_solved
    assert [line.moves for line in result.lines] == [(2, 9), (1, 5)]


def test_the_root_is_proved_by_proofs_of_different_machines(tic_tac_toe: Game) -> None:
    field = Field(tic_tac_toe)
    (_, first), (_, second) = field.splitter.next_tasks([HERE, THERE])
    field.report(first, [*rows(10, 10, verdict=LOST), RootMove(3, 1, 0, UNKNOWN)])
    assert field.splitter.result() is None
    field.report(second, [*rows(10, 10), RootMove(3, 5, 5, WON)])
    found = field.splitter.result()
    assert found is not None
    result = field.growth.result(Statistics(nodes=46))
    assert (result.is_solved, result.score, result.best_move) == (True, 1000, 3)


def test_a_lost_slice_is_forgotten_and_others_go_on(tic_tac_toe: Game) -> None:
    field = Field(tic_tac_toe)
    (_, lost), (_, kept) = field.splitter.next_tasks([HERE, THERE])
    field.splitter.on_lost(lost.task_id)
    field.report(lost, rows(9_000, 1, 1))
    field.report(kept, rows(10, 20, 30))
    assert field.growth.result(Statistics()).root_moves[0].visits == 30
    assert field.splitter.aborts() == field.splitter.bounds() == []
    ((info, _task),) = field.splitter.next_tasks([THERE])
    assert info == THERE


def test_one_worker_alone_is_not_sent_ahead_and_is_replaced_when_lost(tic_tac_toe: Game) -> None:
    field = Field(tic_tac_toe, is_single=True)
    ((info, task),) = field.splitter.next_tasks([HERE, THERE], [HERE])
    assert info == HERE
    assert field.splitter.next_tasks([THERE]) == []
    field.splitter.on_lost(task.task_id)
    assert [info for info, _task in field.splitter.next_tasks([THERE])] == [THERE]


def test_an_answer_that_does_not_fit_ends_the_search(tic_tac_toe: Game) -> None:
    field = Field(tic_tac_toe)
    ((_, task),) = field.splitter.next_tasks([HERE])
    with pytest.raises(RunFailedError, match="does not fit the 3 moves"):
        field.report(task, rows(1, 2))


def test_playouts_are_exactly_as_many_as_asked_for_on_every_executor(executor: MakeExecutor, tic_tac_toe: Game) -> None:
    with Session(tic_tac_toe, executor(tic_tac_toe, table_mb=8.0, flags=MCTS), 8.0, silent) as session:
        report = session.search(SearchRequest(START, limits=Limits(nodes=3_000)))
        again = session.search(SearchRequest("X...O....", limits=Limits(nodes=50_000)))
    found = report.as_json()
    assert found["algorithm"] == "mcts"
    assert found["playouts"] == found["nodes"] == sum(move["visits"] for move in found["root_moves"]) == 3_000
    assert found["proved"] is None
    assert found["bound"] is None
    assert found["best_move"] == found["root_moves"][0]["move"] == found["pv"][0]
    # The first player stands better, and playouts between novices know no forced draw.
    assert 0.5 < found["win_rate"] < 0.9
    assert len(found["root_moves"]) == 9
    assert again.as_json()["proved"] == "draw"
    assert again.score_text() == "drawn"
    assert again.result.statistics.nodes < 50_000


def test_one_worker_with_one_seed_does_the_same_again(tic_tac_toe: Game) -> None:
    def found(seed: int) -> object:
        executor = SerialExecutor(tic_tac_toe, 1, 8.0, flags=MCTS, notice=silent)
        with Session(tic_tac_toe, executor, 8.0, silent) as session:
            request = SearchRequest(limits=Limits(nodes=5_000), monte_carlo=MonteCarloSettings(seed=seed))
            session.search(SearchRequest("X........", limits=Limits(nodes=500)))
            report = session.search(request)
        return [report.result.root_moves, [(item.lines, item.statistics) for item in report.result.iterations]]

    assert found(1) == found(1)
    assert found(1) != found(2)


def test_a_session_on_threads_does_what_the_serial_one_does_with_one_worker(tic_tac_toe: Game) -> None:
    request = SearchRequest(limits=Limits(nodes=4_000), algorithm="mcts")
    found = []
    for _ in range(2):
        with open_session("tic_tac_toe", request, 1, 8.0, notice=silent) as session:
            found.append(session.search(request).result.root_moves)
    with Session(tic_tac_toe, SerialExecutor(tic_tac_toe, 1, 8.0, flags=MCTS, notice=silent), 8.0, silent) as session:
        found.append(session.search(request).result.root_moves)
    assert found[0] == found[1] == found[2]


def test_a_time_limit_and_stop_end_it_at_once() -> None:
    request = SearchRequest(limits=Limits(time_s=0.3), algorithm="mcts")
    with open_session("tic_tac_toe", request, 2, 1.0, notice=silent) as session:
        started_s = time.monotonic()
        report = session.search(SearchRequest(START, limits=Limits(time_s=0.3)), lambda _iteration: None)
        assert time.monotonic() - started_s < 1.5
        assert report.best_move is not None


def test_virtual_machines_grow_trees_of_their_own(tic_tac_toe: Game) -> None:
    model = ClusterModel(node_rate=1e5, workers_a_machine=2)
    executor = SimulatedExecutor(tic_tac_toe, 4, 4.0, model=model, flags=MCTS, notice=silent)
    with Session(tic_tac_toe, executor, 4.0, silent) as session:
        report = session.search(SearchRequest(limits=Limits(nodes=4_000)))
    assert report.machines == 2
    assert report.result.statistics.nodes == 4_000
    assert sum(move.visits for move in report.result.root_moves) == 4_000
    # Four workers of a virtual cluster make as many playouts in a quarter of the time, and a little more.
    assert 0.01 < report.result.time_s < 0.04


@pytest.mark.parametrize(
    ("limits", "more", "sentence"),
    [
        (Limits(depth=5), {}, "mcts goes to no depth: give it playouts, nodes or a time"),
        (Limits(mate=2), {}, "mcts proves no mates and no solutions: give it playouts, nodes or a time"),
        (Limits(nodes=9), {"contempt": 3}, "it takes no contempt"),
        (
            Limits(nodes=9),
            {"strategy": "dynamic"},
            "mcts cannot be split so: the strategy is tree or single, not dynamic",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(limits: Limits, more: dict[str, object], sentence: str) -> None:
    request = SearchRequest(limits=limits, algorithm="mcts", **more)  # type: ignore[arg-type]
    with pytest.raises(RulesError, match=sentence):
        open_session("tic_tac_toe", request, 1, 1.0, notice=silent)


def test_a_tree_takes_no_checkpoint(tic_tac_toe: Game, tmp_path: Path) -> None:
    with Session(tic_tac_toe, SerialExecutor(tic_tac_toe, 1, 1.0, flags=MCTS, notice=silent), 1.0, silent) as session:
        with pytest.raises(CheckpointError, match="takes no checkpoint"):
            session.search(SearchRequest(limits=Limits(nodes=9)), checkpoint=CheckpointFile(tmp_path / "saved", 60.0))
        with pytest.raises(RulesError, match="this session runs mcts"):
            session.search(SearchRequest(limits=Limits(nodes=9), algorithm="alpha-beta"))


def test_a_batch_gives_every_position_a_tree_and_repeats_itself() -> None:
    positions = [START, "X...O....", "XX.OO....", "no board"]
    runs = [
        [
            (row.status, row.best_move, row.score, row.score_text, row.nodes)
            for row in cluster.analyse(
                "tic_tac_toe", positions, Limits(nodes=2_000), workers=workers, table_mb=1.0, is_deterministic=True,
                algorithm="mcts",
            )
        ]
        for workers in (1, 2)
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert [status for status, *_rest in runs[0]] == ["ok", "ok", "ok", "error"]
    assert runs[0][2][1:4] == ("3", 1000, "won")
    assert runs[0][0][4] == 2_000


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cluster.cli", *words], capture_output=True, text=True, timeout=120, cwd=REPOSITORY,
        check=False,
    )  # fmt: skip


def test_the_command_proves_a_small_board_of_hex() -> None:
    run = command("search", "hex:3", "--playouts", "20000", "--workers", "2", "--seed", "3", "--json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["algorithm"] == "mcts"
    assert found["proved"] == "win"
    assert found["score_text"] == "won"
    assert found["strategy"] == "tree"
    assert found["root_moves"][0]["proved"] == "win"
    text = command("search", "hex:3", "--playouts", "20000", "--workers", "1").stdout
    assert "b2" in text
    assert "proved win" in text


def test_playouts_are_for_mcts() -> None:
    run = command("search", "tic_tac_toe", "--playouts", "100")
    assert run.returncode == 2
    assert run.stderr == "rootsplit: only mcts makes playouts: give --nodes, or --algorithm mcts\n"


def test_an_experiment_compares_one_worker_with_two_and_the_machines_limit(tmp_path: Path) -> None:
    positions = tmp_path / "positions.jsonl"
    positions.write_text('{"position": "start"}\n{"position": "a1", "nodes": 3000}\n')
    words = ["scale", "hex:3", str(positions), "-o", str(tmp_path / "report"), "--playouts", "2000", "--repeats", "1"]
    refused = command(*words, "--depth", "3")
    assert refused.returncode == 2
    assert "mcts goes to no depth: give --playouts" in refused.stderr
    run = command(*words, "--json", "--table", "8")
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in (tmp_path / "report" / "results.jsonl").read_text().splitlines()]
    runs = [row for row in rows if row.get("kind", row.get("row")) == "run" or "configuration" in row]
    assert {run["configuration"]["strategy"] for run in runs} == {"single", "tree", "limit"}
