"""Sessions: the same answer for every strategy, executor, number of workers and size of the table."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from conftest import EXECUTOR_KINDS, MakeExecutor, silent

from cluster.coordinator import _NodePool
from cluster.executor import Executor, ThreadExecutor
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session, open_session
from cluster.strategies import STRATEGIES
from search.driver import search
from search.flags import Flags
from search.limits import Limits
from search.referee import Referee
from search.results import SearchResult
from search.rules import Game, RulesError
from search.scores import DRAW, MATE, mate_distance
from tt_store.errors import RootsplitError, TableError

EXACT_DEPTH = Flags(exact_depth=True)
TABLES_MB = (1, 3, 64)
SOLVED_IN_A_MOMENT = "226744515337"
QUESTIONS = [
    ("tic_tac_toe", "", 9),
    ("tic_tac_toe", "X...O....", 7),
    ("connect_four", "", 9),
    ("connect_four", "4453", 10),
    ("connect_four", "32164625", 8),
    # Full columns, few root moves, a win nearby.
    ("connect_four", "444444333333", 10),
    ("connect_four", SOLVED_IN_A_MOMENT, 10),
    ("kalah", "", 8),
    # The first side may move many times in a row.
    ("kalah", "6,5,4,3,2,1,0/4,4,4,4,4,4,0 s", 8),
    ("kalah", "0,0,3,1,2,1,9/2,4,0,4,1,1,12 n", 8),
    ("random_tree", "1:8:6", 6),
    ("random_tree", "7:2-6:7:50", 7),
]

Load = Callable[[str], Game]


@contextmanager
def session_on(kind: str, game: Game, table_mb: float = 1.0, flags: Flags = Flags()) -> Iterator[Session]:
    make, workers = EXECUTOR_KINDS[kind]
    with Session(game, make(game, workers, table_mb, flags=flags, notice=silent), table_mb, silent) as session:
        yield session


def ask(
    session: Session, text: str = "", strategy: str | None = None, contempt: int = 0, **limits: Any
) -> SearchReport:
    return session.search(SearchRequest(text, (), Limits(**limits), strategy, contempt))


def values(result: SearchResult) -> list[tuple[int, int]]:
    return [(iteration.depth, iteration.score) for iteration in result.iterations]


def value_at_the_end(game: Game, result: SearchResult, contempt: int = 0) -> int:
    """Replay a line by the rules; returns what its end is worth to the side to move at its beginning."""
    referee = Referee(game, silent)
    position, is_ours = result.position, True
    for move in result.line:
        assert move in referee.legal_moves(position)
        following = referee.play(position, move)
        is_ours ^= referee.changes_side(position, following)
        position = following
    facts = referee.facts(position)
    if not facts.is_over:
        assert len(result.line) == result.depth
        score = facts.evaluation
    elif abs(facts.outcome) == MATE:
        score = facts.outcome - len(result.line) if facts.outcome > 0 else facts.outcome + len(result.line)
    elif facts.outcome == DRAW:
        score = -contempt if is_ours else contempt
    else:
        score = facts.outcome
    return score if is_ours else -score


def is_complete(game: Game, result: SearchResult) -> bool:
    """Tell whether a line goes to the horizon or to the end of the game."""
    referee = Referee(game, silent)
    played, end = referee.legal_prefix(result.position, result.line)
    assert tuple(played) == result.line
    return len(played) == result.depth or referee.facts(end).is_over


@pytest.mark.parametrize(("name", "text", "depth"), QUESTIONS)
def test_every_way_to_search_gives_the_same_values(load: Load, name: str, text: str, depth: int) -> None:
    game = load(name)
    expected = values(search(game, game.parse(text), Limits(depth=depth), flags=EXACT_DEPTH, notice=silent))
    complete = total = 0
    for kind, table_mb in product(EXECUTOR_KINDS, TABLES_MB):
        with session_on(kind, game, table_mb, EXACT_DEPTH) as session:
            # The second strategy, and the repetition of the first, meet a warm table.
            for strategy in (*STRATEGIES, *STRATEGIES):
                report = ask(session, text, strategy, depth=depth)
                assert values(report.result) == expected, (kind, table_mb, strategy)
                total += 1
                if is_complete(game, report.result):
                    complete += 1
                    assert value_at_the_end(game, report.result) == report.result.score, (kind, strategy)
                assert report.result.best_move == report.result.line[0]
    # A table hit cuts a line short where its own continuation has been overwritten.
    assert complete > total / 5


@pytest.mark.parametrize("name", ["tic_tac_toe", "kalah"])
@pytest.mark.parametrize("contempt", [-9, 9])
def test_contempt_is_the_same_for_every_strategy_and_from_both_sides(load: Load, name: str, contempt: int) -> None:
    game = load(name)
    text, depth = ("", 9) if name == "tic_tac_toe" else ("0,0,0,0,1,1,0/0,0,0,0,1,1,0 s", 12)
    limits = Limits(depth=depth)
    expected = search(game, game.parse(text), limits, flags=EXACT_DEPTH, contempt=contempt, notice=silent)
    with session_on("threads-2", game, flags=EXACT_DEPTH) as session:
        for strategy, sign in product(STRATEGIES, (1, -1)):
            # The same table serves searches of other contempts: nothing of theirs must be met.
            report = ask(session, text, strategy, contempt * sign, depth=depth)
            if sign == 1:
                assert values(report.result) == values(expected)
            if name == "tic_tac_toe":
                assert report.result.score == -contempt * sign
                after = session.search(SearchRequest(text, ("5",), limits, strategy, contempt * sign))
                assert after.result.score == -contempt * sign


def test_connect_four_is_solved_by_every_executor(executor: MakeExecutor, connect_four: Game) -> None:
    with Session(connect_four, executor(connect_four, table_mb=16), 16, silent) as session:
        for strategy in STRATEGIES:
            for text, score_text in ((SOLVED_IN_A_MOMENT, "+7"), ("475772722323", "+4")):
                report = ask(session, text, strategy)
                assert (report.score_text(), report.result.is_solved) == (score_text, True)
            cold, warm = (ask(session, SOLVED_IN_A_MOMENT, strategy) for _ in range(2))
            assert cold.result.score == warm.result.score == MATE - 17


@pytest.mark.parametrize("nodes", [1, 2, 7, 50, 1_000, 2_500, 40_000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_node_limit_is_kept_by_all_workers_together(
    executor: MakeExecutor, connect_four: Game, strategy: str, nodes: int
) -> None:
    pool = executor(connect_four)
    with Session(connect_four, pool, 1, silent) as session:
        for _ in range(3):
            result = ask(session, "44444", strategy, nodes=nodes).result
            assert result.statistics.nodes <= nodes + len(pool.workers()) * connect_four.max_moves
            assert result.best_move in session.referee.legal_moves(result.position)
    if nodes >= 1_000:
        assert result.depth >= 2


def test_a_node_limit_is_used_up(executor: MakeExecutor, connect_four: Game) -> None:
    with Session(connect_four, executor(connect_four), 1, silent) as session:
        assert ask(session, "", "root", nodes=60_000).result.statistics.nodes > 50_000


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_time_limit_is_kept(executor: MakeExecutor, connect_four: Game, strategy: str) -> None:
    threads = threading.active_count()
    pool = executor(connect_four)
    working = threading.active_count()
    with Session(connect_four, pool, 1, silent) as session:
        started = time.monotonic()
        result = ask(session, "", strategy, depth=40, time_s=0.15).result
        assert 0.1 < time.monotonic() - started < 2
        assert 1 <= result.depth < 40
        assert threading.active_count() == working
    assert threading.active_count() == threads


def test_short_time_limits_one_after_the_other(executor: MakeExecutor, connect_four: Game) -> None:
    """A limit that is reached as a search ends must not touch the next one."""
    with Session(connect_four, executor(connect_four), 1, silent) as session:
        for number in range(60):
            result = ask(session, "44", "root", time_s=0.0005 + number % 7 * 0.0005).result
            assert result.best_move in session.referee.legal_moves(result.position)
        assert ask(session, "44", "root", depth=6).result.depth == 6


def test_stop_from_another_thread_gives_the_last_iteration(executor: MakeExecutor, connect_four: Game) -> None:
    with Session(connect_four, executor(connect_four), 1, silent) as session:
        for strategy in STRATEGIES:
            stopped_s: list[float] = []

            def stop(stopped_s: list[float] = stopped_s) -> None:
                stopped_s.append(time.monotonic())
                session.stop()

            timer = threading.Timer(0.2, stop)
            timer.start()
            result = ask(session, "", strategy, depth=40).result
            assert time.monotonic() - stopped_s[0] < 1
            timer.join()
            assert 1 <= result.depth < 40
            # The session goes on: older stops are past.
            assert ask(session, "4453", strategy, depth=7).result.depth == 7


def test_a_late_stop_does_not_hold_up_the_next_search(connect_four: Game) -> None:
    """A stop that is not through when its search ends must end that one only, or the next one in earnest."""

    class SlowEvent(threading.Event):
        """Leaves time for a whole search to end between the flag and the stop word."""

        def set(self) -> None:
            super().set()
            time.sleep(0.2)

    with session_on("threads-2", connect_four) as session:
        session._stop_wanted = SlowEvent()
        timer = threading.Timer(0.1, session.stop)
        timer.start()
        ask(session, "", "root", depth=40)
        result = ask(session, "4453", "root", depth=16, time_s=20).result
        timer.join()
        assert result.depth == 16


def test_nodes_beyond_a_reserve_are_taken_from_the_others() -> None:
    pool = _NodePool(100)
    assert [pool.take(2), pool.take(1), pool.take(1)] == [50, 50, 0]
    pool.give_back(50, 57)
    assert pool.take(1) == 0
    pool.give_back(50, 40)
    assert [pool.take(3), pool.take(2), pool.take(1), pool.take(1)] == [1, 1, 1, 0]


def test_a_stop_while_nothing_runs_ends_no_later_search(tic_tac_toe: Game) -> None:
    with session_on("threads-2", tic_tac_toe) as session:
        session.stop()
        assert ask(session, depth=9).result.is_solved


def test_tasks_of_all_searches_have_numbers_of_their_own(connect_four: Game) -> None:
    """A control word that was written for a task of one search must not reach a task of the next."""
    pool = ThreadExecutor(connect_four, 2, 1.0, notice=silent)
    submitted: list[int] = []

    class Recorder:
        """Passes everything on, and remembers what was submitted."""

        def __getattr__(self, name: str) -> Any:
            return getattr(pool, name)

        def submit(self, worker: int, tasks: list[Any]) -> None:
            submitted.extend(task.task_id for task in tasks)
            pool.submit(worker, tasks)

    recorder: Any = Recorder()
    with Session(connect_four, recorder, 1, silent) as session:
        for strategy in ("root", "single", "root"):
            ask(session, "4453", strategy, depth=6)
    assert len(submitted) > 50
    assert len(set(submitted)) == len(submitted)


def test_leftovers_of_one_search_do_not_change_the_next(connect_four: Game) -> None:
    with session_on("threads-3", connect_four, flags=EXACT_DEPTH) as session:
        first = values(ask(session, "4453", "single", depth=9).result)
        for text in ("", "123", "32164625", "7"):
            ask(session, text, "root", depth=9)
        for strategy in STRATEGIES:
            assert values(ask(session, "4453", strategy, depth=9).result) == first


def test_a_finished_game_has_no_move(executor: MakeExecutor, connect_four: Game) -> None:
    with Session(connect_four, executor(connect_four), 1, silent) as session:
        report = ask(session, "1212121", depth=4)
        assert (report.best_move, report.result.score, report.result.is_solved) == (None, -MATE, True)
        assert report.as_json()["pv"] == []
        assert report.score_text() == "-18"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (SearchRequest("128"), "column"),
        (SearchRequest("1111111"), "full"),
        (SearchRequest("4x"), "digit"),
        (SearchRequest("44", ("4", "4", "4", "4", "4")), "move 5, 4, is not legal"),
        (SearchRequest("", ("9",)), "digit"),
        (SearchRequest("1212121", ("3",)), "move 1, 3, is not legal"),
        (SearchRequest("", (), Limits(depth=3), "guess"), "unknown strategy 'guess'.*root, single"),
    ],
)
def test_a_bad_request_is_one_sentence(connect_four: Game, asked: SearchRequest, words: str) -> None:
    with pytest.raises(RulesError, match=words) as caught:
        open_session("connect_four", asked, 1, 1.0, notice=silent)
    assert "\n" not in str(caught.value)
    # A later request of an open session is judged alike, and the session survives it.
    with session_on("threads-1", connect_four) as session:
        with pytest.raises(RulesError, match=words):
            session.search(asked)
        assert ask(session, depth=3).result.depth == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"game_name": "no_such_game"}, "unknown game 'no_such_game'.*connect_four"),
        ({"workers": 0}, "workers must be from 1"),
        ({"workers": 100_000}, "workers must be from 1"),
        ({"request": SearchRequest("1212121")}, "game is over.*-18"),
    ],
)
def test_a_session_that_makes_no_sense_is_refused(arguments: dict[str, Any], words: str) -> None:
    plain: dict[str, Any] = {"game_name": "connect_four", "request": SearchRequest(), "workers": 1, "table_mb": 1.0}
    with pytest.raises(RulesError, match=words):
        open_session(**(plain | arguments), notice=silent)


@pytest.mark.parametrize("table_mb", [0, -1, float("nan"), float("inf"), 1e8])
def test_a_table_that_cannot_be_made_is_refused(table_mb: float) -> None:
    before = threading.active_count()
    with pytest.raises(TableError):
        open_session("connect_four", SearchRequest(), 2, table_mb, notice=silent)
    assert threading.active_count() == before


def test_an_open_session_uses_the_cores_that_there_are() -> None:
    with open_session("tic_tac_toe", SearchRequest(), table_mb=1.0, notice=silent) as session:
        assert len(session.executor.workers()) >= 1
        assert ask(session).result.is_solved


def test_a_failed_worker_ends_the_search_with_a_sentence(connect_four: Game) -> None:
    with session_on("threads-2", connect_four) as session:
        executor: Executor = session.executor
        assert isinstance(executor, ThreadExecutor)

        def fail(_job: object) -> None:
            raise MemoryError("no memory for this line")

        for searcher in executor._searchers:
            searcher.run = fail  # type: ignore[method-assign, assignment]
        with pytest.raises(RootsplitError, match="a worker failed: MemoryError: no memory for this line"):
            ask(session, depth=5)


JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "game": str,
    "position": str,
    "moves": list,
    "best_move": str,
    "score": int,
    "score_text": str,
    "bound": str,
    "solved": bool,
    "mate_in": (int, type(None)),
    "depth": int,
    "seldepth": int,
    "pv": list,
    "nodes": int,
    "time_s": float,
    "nps": int,
    "workers": int,
    "machines": int,
    "table_mb": (int, float),
    "strategy": str,
    "first_move_fail_high_rate": float,
    "iterations": list,
    "overheads": dict,
}


def test_the_report_is_json_with_all_fields(connect_four: Game) -> None:
    with session_on("threads-2", connect_four) as session:
        request = SearchRequest("22674451", ("5", "3", "3", "7"), Limits())
        seen: list[int] = []
        report = session.search(request, lambda iteration: seen.append(iteration.depth))
    row = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert {name for name, kind in JSON_TYPES.items() if not isinstance(row[name], kind)} == set()
    assert (row["game"], row["position"], row["moves"]) == ("connect_four", "22674451", ["5", "3", "3", "7"])
    assert (row["best_move"], row["score_text"], row["bound"], row["solved"]) == ("4", "+7", "exact", True)
    assert (row["mate_in"], row["score"], row["depth"]) == (9, MATE - 17, 17)
    assert (row["workers"], row["machines"], row["table_mb"], row["strategy"]) == (2, 1, 1.0, "team")
    assert row["pv"][0] == row["best_move"]
    assert row["seldepth"] >= 17
    assert row["nodes"] == report.result.statistics.nodes == sum(item["nodes"] for item in row["iterations"])
    assert 0 < row["first_move_fail_high_rate"] <= 1
    assert row["nps"] == pytest.approx(row["nodes"] / row["time_s"], rel=0.01)
    assert [item["depth"] for item in row["iterations"]] == seen == list(range(1, 18))
    for item in row["iterations"]:
        assert item.keys() >= {"depth", "score", "bound", "pv", "nodes", "seldepth", "time_s", "researches"}
        assert all(isinstance(move, str) for move in item["pv"])
        assert 0 <= item["time_s"] <= row["time_s"]
    overheads = row["overheads"]
    assert overheads.keys() >= {"search", "idle", "communication"}
    assert 0 <= overheads["idle"] <= 1
    assert 0 <= overheads["communication"] <= 1
    assert overheads["tasks"] > overheads["aborted_tasks"] >= 0


def test_the_report_of_a_lost_game_counts_moves_below_zero(connect_four: Game) -> None:
    with session_on("threads-1", connect_four) as session:
        report = ask(session, "41516")
    assert report.as_json()["mate_in"] == -1
    assert mate_distance(report.result.score) == -2
    assert report.strategy == "single"
