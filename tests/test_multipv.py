"""Several lines and chosen first moves: against plain minimax, for all executors, strategies and numbers of workers."""

from __future__ import annotations

import json
import random
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import silent
from oracle import Kalah, Node, RandomTree, minimax_black, minimax_white

from cluster.cli import main
from cluster.executor import Executor, SerialExecutor, ThreadExecutor
from cluster.records import RecordError, Task, pack_tasks, unpack_tasks
from cluster.report import SearchReport
from cluster.request import SearchRequest, checked_game
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.split_settings import SplitSettings
from search.aspiration import Window
from search.driver import deepen, search
from search.flags import FULL_WIDTH, Flags
from search.game_files import load_game
from search.limits import MAX_FIRST_MOVES, Limits
from search.referee import Referee
from search.results import RootResult
from search.rules import Game, RulesError
from search.scores import MATE, mate_distance
from search.statistics import Statistics

EXACT = Flags(exact_depth=True)
EXPLICIT_TREE = str(Path(__file__).parent / "games" / "explicit_tree.py")
PIECES = SplitSettings(grain_s=5e-5, master_s=0.0, prefix_s=0.0, least_depth=2, tasks_per_worker=1e6, first_rate=1e6)
"""Splits wherever it can."""
TREES = 60
MODEL = ClusterModel(node_rate=20_000, workers_a_machine=2)
CROWDS: dict[str, Callable[[Game], Executor]] = {
    **{
        f"serial-{workers}": lambda game, workers=workers: SerialExecutor(game, workers, 1, flags=EXACT, notice=silent)
        for workers in (1, 2, 5, 8)
    },
    **{
        f"threads-{workers}": lambda game, workers=workers: ThreadExecutor(game, workers, 1, flags=EXACT, notice=silent)
        for workers in (1, 3, 8)
    },
    **{
        f"simulated-{workers}": lambda game, workers=workers: SimulatedExecutor(
            game, workers, 1, model=MODEL, flags=EXACT, notice=silent
        )
        for workers in (2, 8)
    },
}
STRATEGIES = ("dynamic", "team", "root", "single")


@pytest.fixture(scope="module")
def chess() -> Iterator[Session]:
    game = load_game("chess")
    with Session(game, ThreadExecutor(game, 2, 16, notice=silent), 16, silent) as session:
        yield session


@pytest.fixture
def one_core() -> Iterator[Session]:
    """Return a session of one worker and a cold table: what its selective search finds is the same each time."""
    game = load_game("chess")
    with Session(game, SerialExecutor(game, 1, 16, notice=silent), 16, silent) as session:
        yield session


def ask(session: Session, text: str, multipv: int, *root_moves: str, **limits: Any) -> SearchReport:
    report = session.search(SearchRequest(text, (), Limits(**limits), multipv=multipv, root_moves=root_moves))
    check_lists(session.referee, report)
    return report


def check_lists(referee: Referee, report: SearchReport) -> None:
    """Check what holds for all lists of lines: different first moves, no score that rises, one depth, legal lines."""
    for iteration, ranked in zip(report.result.iterations, report.iteration_lines, strict=True):
        assert len({line.move for line in ranked}) == len(ranked) == len(report.lines) <= report.multipv
        assert [line.rank for line in ranked] == list(range(1, len(ranked) + 1))
        assert [line.score for line in ranked] == sorted((line.score for line in ranked), reverse=True)
        assert {(line.depth, line.bound) for line in ranked} == {(iteration.depth, "exact")}
        for line, texts in zip(iteration.lines, ranked, strict=True):
            assert referee.legal_prefix(report.result.position, line.moves)[0] == list(line.moves)
            assert texts.principal_variation[0] == texts.move
            distance = mate_distance(line.score)
            assert distance is None or len(line.moves) <= abs(distance)
    if report.lines:
        assert (report.best_move, report.result.score) == (report.lines[0].move, report.lines[0].score)


@dataclass(frozen=True)
class PlantedTree:
    """A random tree with White to move, and its text as a position."""

    root: Node
    depth: int
    text: str

    @classmethod
    def grown(cls, game: Game, rng: random.Random) -> PlantedTree:
        recipe = RandomTree(
            rng.randint(1, 5), rng.randint(2, 5), rng.choice((2, 30, 20_000)), mate=rng.choice((0, 0.3))
        )
        root = recipe.grow(rng)
        rows, waiting, numbered = [], deque([root]), 1
        while waiting:
            node = waiting.popleft()
            rows.append((node.score, numbered, len(node.children)))
            numbered += len(node.children)
            waiting.extend(node.children)
        return cls(root, recipe.depth, f"{game.module.plant(rows)}:0:0")

    def values(self, depth: int) -> dict[str, int]:
        """Return the value of each first move, by plain minimax."""
        return {
            str(number): minimax_black(child, depth - 1, ply=1) for number, child in enumerate(self.root.children, 1)
        }

    def worth(self, line: tuple[int, ...], depth: int) -> int | None:
        """Return what the end of a line is worth to White, None if it is cut short."""
        node = self.root
        for move in line:
            node = node.children[move - 1]
        return minimax_white(node, 0, ply=len(line)) if len(line) == depth or not node.children else None


@pytest.mark.parametrize("crowd", CROWDS)
def test_lines_are_the_best_first_moves_of_minimax(crowd: str, load: Callable[[str], Game]) -> None:
    game, rng = load(EXPLICIT_TREE), random.Random(crowd)
    whole_lines = 0
    with Session(game, CROWDS[crowd](game), 1, silent) as session:
        for number in range(TREES):
            tree = PlantedTree.grown(game, rng)
            allowed = [str(move) for move in range(1, len(tree.root.children) + 1)]
            if number % 3 == 0:
                allowed = rng.sample(allowed, rng.randint(1, len(allowed)))
            request = SearchRequest(
                tree.text, (), Limits(depth=tree.depth), STRATEGIES[number % 2 * rng.randint(1, 2)], settings=PIECES,
                multipv=rng.randint(1, 6), root_moves=tuple(allowed) if number % 3 == 0 else (),
            )  # fmt: skip
            report = session.search(request)
            check_lists(session.referee, report)
            for iteration, ranked in zip(report.result.iterations, report.iteration_lines, strict=True):
                values = {move: value for move, value in tree.values(iteration.depth).items() if move in allowed}
                best = sorted(values.values(), reverse=True)[: request.multipv]
                assert [line.score for line in ranked] == best, request
                assert [values[line.move] for line in ranked] == best, request
                worth = [tree.worth(line.moves, iteration.depth) for line in iteration.lines]
                assert all(found in (None, line.score) for found, line in zip(worth, ranked, strict=True)), request
                whole_lines += sum(found is not None for found in worth)
            # What was found without some of the moves does not answer for the whole position, nor the other way.
            assert session.search(SearchRequest(tree.text, (), Limits(depth=tree.depth))).result.score == max(
                tree.values(report.result.depth).values()
            )
    assert whole_lines > TREES


def negamax(referee: Referee, position: Any, depth: int, ply: int) -> int:
    """Return the value for the side to move, by the rules alone; only for games that change sides."""
    facts = referee.facts(position)
    if facts.is_over:
        return facts.outcome + ply if facts.outcome == -MATE else facts.outcome
    if depth == 0:
        return facts.evaluation
    moves = referee.legal_moves(position)
    return max(-negamax(referee, referee.play(position, move), depth - 1, ply + 1) for move in moves)


@pytest.mark.parametrize("crowd", ["serial-1", "serial-8", "threads-3", "simulated-2"])
def test_lines_of_connect_four_and_kalah(crowd: str, connect_four: Game, kalah: Game) -> None:
    text, depth = "4455223", 4
    with Session(connect_four, CROWDS[crowd](connect_four), 1, silent) as session:
        root = connect_four.parse(text)
        values = {
            str(move): -negamax(session.referee, session.referee.play(root, move), depth - 1, 1)
            for move in session.referee.legal_moves(root)
        }
        for multipv in (3, 7):
            request = SearchRequest(text, (), Limits(depth=depth), settings=PIECES, multipv=multipv)
            report = session.search(request)
            check_lists(session.referee, report)
            assert [line.score for line in report.lines] == sorted(values.values(), reverse=True)[:multipv]
            assert all(line.score == values[line.move] for line in report.lines)
    # In kalah the first side may move again.
    plain, depth = Kalah(), 5
    with Session(kalah, CROWDS[crowd](kalah), 1, silent) as session:
        found = []
        for move in plain.legal_moves():
            twin = plain.copy()
            twin.play(move)
            found.append(twin.minimax(depth - 1))
        for multipv in (2, 6):
            request = SearchRequest(plain.text(), (), Limits(depth=depth), settings=PIECES, multipv=multipv)
            report = session.search(request)
            check_lists(session.referee, report)
            assert [line.score for line in report.lines] == sorted(found, reverse=True)[:multipv]


# When a search of several lines ends.


def test_a_mate_does_not_end_the_search_before_the_other_lines_are_solved(connect_four: Game) -> None:
    position = connect_four.parse("226744515337")
    result = search(connect_four, position, Limits(), table_mb=16, notice=silent, multipv=2)
    assert [(line.score, line.is_solved) for line in result.lines] == [(MATE - 17, True), (MATE - 19, True)]
    assert (result.depth, result.is_solved) == (19, True)
    # The depth may end it before: the best line is solved, the other one is an estimate.
    result = search(connect_four, position, Limits(depth=17), table_mb=16, notice=silent, multipv=2)
    assert [line.is_solved for line in result.lines] == [True, False]
    assert (result.depth, result.score, result.is_solved) == (17, MATE - 17, True)


def test_the_mate_that_was_asked_for_ends_the_search_with_all_lines_of_its_depth(connect_four: Game) -> None:
    position = connect_four.parse("226744515337")
    result = search(connect_four, position, Limits(mate=9), table_mb=16, notice=silent, multipv=3)
    assert (result.score, len(result.lines)) == (MATE - 17, 3)
    assert result.depth <= 17


def test_a_solved_line_is_not_searched_again(connect_four: Game) -> None:
    asked = []

    def root_search(depth: int, _window: Window, left_out: tuple[int, ...]) -> RootResult:
        asked.append((depth, left_out))
        found = {(): (MATE - 3, (4,)), (4,): (7 * depth, (2, 1))}[left_out]
        return RootResult(*found, Statistics(), is_finished=True)

    result = deepen(
        root_search, Referee(connect_four, silent), connect_four.parse(""), Limits(depth=5), multipv=2
    )  # fmt: skip
    assert sorted(set(asked)) == [(1, ()), (1, (4,)), (2, ()), (2, (4,)), (3, ()), (3, (4,)), (4, (4,)), (5, (4,))]
    assert [(line.score, line.moves) for line in result.lines] == [(MATE - 3, (4,)), (35, (2, 1))]


@pytest.mark.parametrize("searches", range(1, 9))
def test_a_stop_between_two_lines_gives_the_last_whole_list(connect_four: Game, searches: int) -> None:
    left = searches

    def root_search(depth: int, _window: Window, left_out: tuple[int, ...]) -> RootResult:
        nonlocal left
        left -= 1
        move = 1 + len(left_out)
        return RootResult(10 * depth - move, (move,), Statistics(nodes=1), is_finished=left >= 0)

    result = deepen(root_search, Referee(connect_four, silent), connect_four.parse(""), Limits(), multipv=3)
    depth = searches // 3
    assert result.depth == depth
    assert [line.score for line in result.lines] == [10 * depth - move for move in (1, 2, 3)][: 3 * depth]
    assert result.statistics.nodes == searches + 1


def test_lines_are_sorted_where_a_later_search_finds_a_better_one(connect_four: Game) -> None:
    def root_search(_depth: int, _window: Window, left_out: tuple[int, ...]) -> RootResult:
        score, move = {(): (5, 4), (4,): (9, 2), (4, 2): (7, 1)}[left_out]
        return RootResult(score, (move,), Statistics(), is_finished=True)

    result = deepen(root_search, Referee(connect_four, silent), connect_four.parse(""), Limits(depth=3), multipv=3)
    assert [(line.score, line.moves) for line in result.lines] == [(9, (2,)), (7, (1,)), (5, (4,))]
    assert (result.best_move, result.score, result.line) == (2, 9, (2,))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_limit_on_nodes_holds_for_all_lines_together(connect_four: Game, workers: int) -> None:
    executor = ThreadExecutor(connect_four, workers, 1, notice=silent)
    with Session(connect_four, executor, 1, silent) as session:
        for nodes in (1, 500, 20_000):
            report = ask(session, "4453", 5, nodes=nodes)
            assert report.result.statistics.nodes <= nodes + workers * connect_four.max_moves
            assert all(len(item.lines) == 5 for item in report.result.iterations)
            assert report.best_move is not None


def test_a_stop_before_the_first_list_gives_one_of_the_chosen_moves(connect_four: Game) -> None:
    with Session(connect_four, SerialExecutor(connect_four, 1, 1, notice=silent), 1, silent) as session:
        report = ask(session, "4453", 2, "7", "6", nodes=1)
    assert (report.lines, report.best_move) == ((), "6")
    assert report.as_json()["lines"] == []


# Chess: what has gone wrong elsewhere.

SIX_MOVES = "r1bqkb1r/ppp2ppp/5n2/nB1Pp1N1/8/8/PPPP1PPP/RNBQK2R b KQkq - 2 6"
TWO_MOVES = "8/3R4/1p2n1P1/1P1kb3/8/3K4/8/8 b - - 1 60"
PAWN_ENDING = "3k4/8/4KP2/8/8/8/8/8 w - - 1 132"
MATED_IN_SIX = "8/8/8/4p3/5B2/6p1/7k/4KBN1 b - -"
MANY_MOVES = "3Q4/1Q4Q1/4Q3/2Q4R/Q4Q2/3Q4/1Q4Rp/1K1BBNNk w - -"


def test_fewer_first_moves_than_lines(chess: Session) -> None:
    report = ask(chess, SIX_MOVES, 10, depth=9)
    assert [line.depth for line in report.lines] == [9] * 6
    assert report.lines[0].move in ("c7c6", "c8d7")
    report = ask(chess, TWO_MOVES, 3, depth=8)
    assert [line.depth for line in report.lines] == [8] * 2


def test_chosen_moves_that_lose(chess: Session) -> None:
    report = ask(chess, SIX_MOVES, 4, "e8e7", "c7c6", "e8e7", depth=8)
    assert [line.move for line in report.lines] == ["c7c6", "e8e7"]
    assert report.lines[1].score < -100


def test_one_chosen_move_is_searched_to_the_limit(chess: Session) -> None:
    report = ask(chess, "", 1, "d2d4", nodes=30_000)
    assert report.best_move == report.principal_variation[0] == "d2d4"
    assert report.result.depth > 5
    assert len(report.principal_variation) > 3
    report = ask(chess, "r1b1k2r/1pqp1ppp/p1n1pn2/8/4P3/2NBB3/PPP1NPPb/R2Q1RK1 w kq - 0 10", 5, depth=8)
    assert [line.move for line in report.lines] == ["g1h1"]


def test_a_trivial_pawn_ending_has_six_lines(one_core: Session) -> None:
    report = ask(one_core, PAWN_ENDING, 6, depth=10)
    assert sorted(line.move for line in report.lines) == ["e6d5", "e6d6", "e6e5", "e6f5", "e6f7", "f6f7"]
    assert report.best_move == "f6f7"
    # All win: who strays from the pawn may come back to where he was.
    assert report.lines[5].score > 500


def test_all_218_moves(chess: Session) -> None:
    report = ask(chess, MANY_MOVES, 218, depth=2)
    assert len(report.lines) == 218
    assert report.lines[0].score == MATE - 1
    assert chess.referee.facts(
        chess.referee.play(report.result.position, report.result.lines[0].moves[0])
    ).outcome == -MATE  # fmt: skip


def test_no_mate_is_shorter_than_a_proof(one_core: Session) -> None:
    """Black is mated in six after either move of its king: so says a search of full width."""
    executor = SerialExecutor(one_core.game, 1, 16, flags=FULL_WIDTH, notice=silent)
    with Session(one_core.game, executor, 16, silent) as session:
        report = ask(session, MATED_IN_SIX, 4, "h2g1", "h2h1", depth=12)
    proved = [(line.score, line.is_solved) for line in report.lines]
    assert proved == [(12 - MATE, True)] * 2
    found = [line.score for lines in report.iteration_lines for line in lines if mate_distance(line.score) is not None]
    assert set(found) == {12 - MATE}
    report = ask(one_core, MATED_IN_SIX, 4, depth=14)
    # Mated in seven after either.
    assert report.best_move in ("e5f4", "e5e4")
    kings = [line for line in report.lines if line.move in ("h2g1", "h2h1")]
    assert len(kings) == 2
    assert all(line.score == 12 - MATE if line.is_solved else line.score >= 12 - MATE for line in kings)


# What travels, what is refused, what is printed.


def test_a_task_carries_the_moves_that_are_left_out() -> None:
    task = Task(7, 3, (5,), 12, -40, 41, 0, 0, 1_000, 0, -5, (), (1, 0xFFFF))
    assert unpack_tasks(pack_tasks([task])) == [task]
    for wrong in (
        task._replace(ply=1),
        task._replace(depth=0),
        task._replace(left_out=(0,)),
        task._replace(left_out=(1 << 16,)),
        task._replace(left_out=tuple(range(1, MAX_FIRST_MOVES + 2))),
    ):
        with pytest.raises(RecordError):
            unpack_tasks(pack_tasks([wrong]))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (SearchRequest(multipv=0), "multipv must be from 1 to 1024 lines, not 0"),
        (SearchRequest(multipv=1025), "not 1025"),
        (SearchRequest("444444", root_moves=("3", "4")), "the root move 4 is not legal in this position"),
        (SearchRequest(root_moves=("x",)), "digit"),
    ],
)
def test_a_bad_request_is_one_sentence(wish: SearchRequest, words: str, connect_four: Game) -> None:
    with pytest.raises(RulesError, match=re.escape(words)):
        checked_game("connect_four", wish, 1, 1.0, silent)
    with (
        Session(connect_four, SerialExecutor(connect_four, 1, 1, notice=silent), 1, silent) as session,
        pytest.raises(RulesError, match=re.escape(words)),
    ):
        session.search(wish)


def command(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr("sys.argv", ["rootsplit", *words])
    monkeypatch.setattr("cluster.cli._end_like_ctrl_c", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert (ended.value.code, captured.err) == (0, "")
    return captured.out


def test_the_command_prints_ranks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", "connect_four", "4453", "--depth", "3", "--workers", "1", "--table", "1", "--multipv", "3"]
    chosen = ["--root-moves", "4", "--root-moves", "1"]
    table = command([*words, *chosen], monkeypatch, capsys).splitlines()
    assert table[0].split() == ["depth", "rank", "score", "nodes", "seconds", "line"]
    assert [line.split()[:2] for line in table[1:7:2]] == [["1", "1"], ["2", "1"], ["3", "1"]]
    assert [line.split()[0] for line in table[2:7:2]] == ["2"] * 3
    assert table[7] == "2 of 3 lines: there are no more first moves"
    row = json.loads(command([*words, "--json"], monkeypatch, capsys))
    assert (row["multipv"], [line["rank"] for line in row["lines"]]) == (3, [1, 2, 3])
    assert row["lines"][0].items() >= {"move": row["best_move"], "score": row["score"], "depth": 3}.items()
    assert [line["pv"][0] for line in row["lines"]] == [line["move"] for line in row["lines"]]
    assert [len(item["lines"]) for item in row["iterations"]] == [3, 3, 3]
