"""The runner by itself: order, duplicates, lost and stubborn workers, deadlines, priorities; pools of threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

import pytest
from conftest import silent

from cluster.batch import runner as runner_module
from cluster.batch.index import AnswerIndex
from cluster.batch.jobs import Answer, PositionJob, Status
from cluster.batch.journal import Journal
from cluster.batch.planner import Planner, identity_of
from cluster.batch.pool import Answered, PoolEvent, ThreadPool, thread_pool
from cluster.batch.results import ResultRow
from cluster.batch.rows import Expectation, InputRow, Overrides
from cluster.batch.runner import Runner
from cluster.batch.settings import RunSettings, SettingsError
from cluster.executor import WorkerJoined, WorkerLost
from cluster.records import WorkerInfo
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.rules import Game
from tt_store.errors import RunFailedError

SETTINGS = RunSettings(Limits(depth=3), table_mb=0.1)
OTHER = ("1", "2", "3", "4", "5", "6", "7", "11", "12", "13", "14", "15", "16", "17", "21", "22", "23", "24")


def answer_to(job: PositionJob) -> Answer:
    return Answer(job.job_id, Status.OK, None, "4", 1, "~+1", "exact", 3, 10, 0.001, ("4",))


class ScriptedPool:
    """Answers each poll by the next call of a script, else as soon as it can, in reverse."""

    def __init__(self, workers: int, *, per_call: int | None = None) -> None:
        self.alive = [WorkerInfo("here", worker) for worker in range(workers)]
        self.calls: list[tuple[int, list[PositionJob]]] = []
        self.asked: list[int] = []
        self.events: list[PoolEvent] = []
        self.replaced: list[int] = []
        self.per_call = per_call
        self.deaths: list[int] = []
        """Numbers of jobs of which a worker dies, once a mention."""
        self.silent_about: set[int] = set()
        self.comes_after_s = 0.0
        """When its workers have started."""
        self.opened_s = time.monotonic()

    def workers(self) -> list[WorkerInfo]:
        return [] if self.awaits_workers() else self.alive

    def awaits_workers(self) -> bool:
        return time.monotonic() - self.opened_s < self.comes_after_s

    def submit(self, worker: int, jobs: Sequence[PositionJob]) -> None:
        self.calls.append((worker, list(jobs)))
        self.asked.extend(job.job_id for job in jobs)

    def poll(self, timeout_s: float) -> list[PoolEvent]:
        events, self.events = self.events, []
        begun: set[int] = set()
        for worker, jobs in list(self.calls):
            if worker in begun:
                continue
            begun.add(worker)
            if self.silent_about & {job.job_id for job in jobs}:
                continue
            deadly = [job.job_id for job in jobs if job.job_id in self.deaths]
            if deadly:
                self.deaths.remove(deadly[0])
                self._lose(worker, events)
                continue
            self.calls.remove((worker, jobs))
            answered = jobs[: self.per_call]
            events.append(Answered(worker, tuple(job.job_id for job in jobs), tuple(map(answer_to, answered))))
        events.reverse()
        return events

    def replace(self, worker: int) -> None:
        self.replaced.append(worker)
        self._lose(worker, self.events)

    def close(self) -> None:
        """Do nothing."""

    def _lose(self, worker: int, events: list[PoolEvent]) -> None:
        lost = tuple(job.job_id for by, jobs in self.calls if by == worker for job in jobs)
        self.calls = [(by, jobs) for by, jobs in self.calls if by != worker]
        events += [WorkerLost(worker, lost), WorkerJoined(WorkerInfo("here", worker))]


@pytest.fixture(scope="module")
def game() -> Game:
    return load_game("connect_four")


@pytest.fixture(scope="module")
def referee(game: Game) -> Referee:
    return Referee(game, silent)


def rows_from(texts: Iterable[str | InputRow]) -> list[InputRow]:
    return [
        item._replace(index=index) if isinstance(item, InputRow) else InputRow(index, "here", index + 1, position=item)
        for index, item in enumerate(texts)
    ]


@pytest.fixture
def start(game: Game, referee: Referee) -> Callable[..., Runner]:
    """Return a function that makes a runner."""

    def make(pool: ScriptedPool | ThreadPool, settings: RunSettings = SETTINGS, **options: bool) -> Runner:
        planner = Planner(game, referee, settings)
        return Runner(planner, pool, settings, Journal.temporary(), AnswerIndex(), **options)

    return make


def finished(runner: Runner, texts: Iterable[str | InputRow]) -> list[ResultRow]:
    return [row for row in runner.run(iter(rows_from(texts))) if row is not None]


@pytest.mark.parametrize("per_call", [None, 1, 2])
@pytest.mark.parametrize("workers", [1, 3])
def test_rows_come_in_order_each_once(workers: int, per_call: int | None, start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(workers, per_call=per_call)
    runner = start(pool)
    rows = finished(runner, OTHER)
    assert [row.index for row in rows] == list(range(len(OTHER)))
    assert [row.position for row in rows] == list(OTHER)
    assert all(row.status == Status.OK and row.attempts == 1 for row in rows)
    assert runner.is_complete
    assert runner.tally.searched == len(OTHER)


def test_without_order_all_rows_come_too(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(3, per_call=1)
    rows = finished(start(pool, is_ordered=False), [*OTHER, "4x", "1"])
    assert sorted(row.index for row in rows) == list(range(len(OTHER) + 2))


def test_equal_positions_are_searched_once(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(2)
    # 1,2,3 and 3,2,1 lead to one position; the last row comes when its answer has long been journalled.
    runner = start(pool)
    late = ["123", "4", "321", "123", *OTHER[:6], "4"]
    rows = finished(runner, late)
    assert [row.duplicate_of for row in rows] == [None, None, 0, 0, None, None, None, 1, None, None, 1]
    assert len(pool.asked) == len(set(pool.asked)) == 7
    assert (runner.tally.searched, runner.tally.duplicates, runner.tally.nodes) == (7, 4, 70)
    assert rows[2].best_move == rows[0].best_move


def test_other_limits_are_another_search(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(1)
    deeper = InputRow(0, "here", 1, position="4", overrides=Overrides(depth=5))
    rows = finished(start(pool), ["4", deeper, deeper])
    assert [row.duplicate_of for row in rows] == [None, None, 1]
    assert rows[0].settings != rows[1].settings == rows[2].settings


def test_bad_rows_and_finished_games_are_rows_too(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(1)
    full = "455714637617614767242476316455122212535333"
    unread = InputRow(0, "here", 3, position="?", error="it is a riddle")
    bad_limit = InputRow(0, "here", 4, position="4", overrides=Overrides(depth=9999))
    bad_move = InputRow(0, "here", 5, position="4", moves=("4", "9"))
    runner = start(pool)
    rows = finished(runner, ["1212121", "1", unread, bad_limit, bad_move, full])
    assert [row.status for row in rows] == ["over", "ok", "error", "error", "error", "over"]
    assert rows[2].reason == "it is a riddle"
    assert "depth" in (rows[3].reason or "")
    assert "9" in (rows[4].reason or "")
    assert (rows[5].best_move, rows[5].score, rows[5].score_text, rows[5].nodes) == (None, 0, "0", None)
    assert rows[0].score is not None
    assert rows[0].score < 0
    assert dict(runner.tally.errors) == {"unreadable": 1, "bad limit": 1, "impossible position": 1}
    assert pool.asked == [1]


def test_a_dead_workers_positions_go_to_others_at_once(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(2)
    pool.deaths = [3]
    runner = start(pool)
    rows = finished(runner, OTHER)
    assert [row.index for row in rows] == list(range(len(OTHER)))
    assert rows[3].attempts == 2
    assert runner.replaced_workers == 1
    assert all(row.status == Status.OK for row in rows)


def test_a_position_that_kills_its_workers_is_given_up(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(2)
    pool.deaths = [3] * 10
    runner = start(pool)
    rows = finished(runner, OTHER)
    assert [row.index for row in rows if row.status == Status.ERROR] == [3]
    assert (rows[3].attempts, rows[3].reason) == (3, "its worker died 3 times")
    assert dict(runner.tally.errors) == {"worker died": 1}
    # Those that shared its first call went alone from then on: none of them died with it again.
    assert max(row.attempts or 0 for row in rows if row.index != 3) <= 2


def test_without_workers_the_run_ends_in_a_sentence(
    start: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ScriptedPool(0)
    monkeypatch.setattr(runner_module, "_NO_WORKER_S", 0.3)
    with pytest.raises(RunFailedError, match="no worker has been left for 0 s"):
        finished(start(pool), ["4"])


def test_higher_priorities_come_first(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(1)
    urgent = InputRow(0, "here", 1, position="77", overrides=Overrides(priority=5))
    rows = finished(start(pool), [*OTHER, urgent])
    assert pool.asked[0] == len(OTHER)
    assert [row.index for row in rows] == list(range(len(OTHER) + 1))


def test_the_supervisor_gives_a_position_up_and_replaces_its_worker(
    start: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "_GRACE_S", 0.05)
    pool = ScriptedPool(2)
    pool.silent_about = {1}
    runner = start(pool, RunSettings(Limits(depth=3), deadline_s=0.05))
    rows = finished(runner, OTHER[:6])
    assert [row.status for row in rows] == ["ok", "deadline", "ok", "ok", "ok", "ok"]
    assert rows[1].reason is not None
    assert "did not obey" in rows[1].reason
    assert len(pool.replaced) == 1
    assert runner.tally.failed == 1


def test_workers_that_still_start_are_waited_for(start: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch) -> None:
    """A replacement may have to compile the kernel, or the machine be busy."""
    pool = ScriptedPool(1)
    pool.comes_after_s = 1.0
    monkeypatch.setattr(runner_module, "_NO_WORKER_S", 0.3)
    rows = finished(start(pool), OTHER)
    assert [row.status for row in rows] == [Status.OK] * len(OTHER)


def test_a_stopped_runner_keeps_what_ran_and_hands_out_no_more(start: Callable[..., Runner]) -> None:
    pool = ScriptedPool(1, per_call=1)
    runner = start(pool)
    rows = []
    for row in runner.run(iter(rows_from(OTHER))):
        if row is not None:
            rows.append(row)
            runner.stop()
    assert 1 <= len(rows) < len(OTHER)
    assert not runner.is_complete
    assert [row.index for row in rows] == list(range(len(rows)))


def test_the_window_is_bounded(start: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "WINDOW", 5)
    pool = ScriptedPool(1)
    pool.silent_about = {0}
    runner = start(pool, RunSettings(Limits(depth=3), deadline_s=60))
    read = []

    def reading():
        for row in rows_from(OTHER):
            read.append(row.index)
            yield row

    for number, _row in enumerate(runner.run(reading())):
        if number > 20:
            break
    assert read == [0, 1, 2, 3, 4]


# Real threads.


def test_threads_answer_like_a_single_search(start: Callable[..., Runner], game: Game) -> None:
    from search.driver import search

    with_threads = thread_pool(game, SETTINGS, 2, silent)
    try:
        rows = finished(start(with_threads), OTHER)
    finally:
        with_threads.close()
    for row in rows:
        expected = search(game, game.parse(row.position), Limits(depth=3), table_mb=1, notice=silent)
        assert (row.score, row.depth, row.bound) == (expected.score, 3, "exact")
        assert row.worker in (0, 1)
        assert row.pv[0] == row.best_move


@pytest.mark.parametrize("limits", [Limits(depth=6), Limits(nodes=3000)])
def test_deterministic_rows_are_equal_for_any_number_of_workers(
    limits: Limits, start: Callable[..., Runner], game: Game
) -> None:
    settings = RunSettings(limits, table_mb=0.5, is_deterministic=True)
    found = []
    for workers in (1, 2, 3):
        pool = thread_pool(game, settings, workers, silent)
        try:
            found.append(finished(start(pool, settings), OTHER))
        finally:
            pool.close()
    assert found[0] == found[1] == found[2]
    assert found[0][0].time_s is None
    assert found[0][0].nodes


def test_a_time_limit_and_a_deadline_end_a_search(start: Callable[..., Runner], game: Game) -> None:
    pool = thread_pool(game, SETTINGS, 2, silent)
    timed = [
        InputRow(0, "here", 1, position=text, overrides=Overrides(depth=42, time_s=time_s))
        for text, time_s in (("", 0.1), ("1", 0.1), ("", 20.0))
    ]
    begun = time.monotonic()
    try:
        rows = finished(start(pool, RunSettings(Limits(depth=3), deadline_s=0.3)), timed)
    finally:
        pool.close()
    assert time.monotonic() - begun < 5
    assert [row.status for row in rows] == ["ok", "ok", "deadline"]
    assert all(row.depth and row.best_move for row in rows)


class Stubborn:
    """Does not come back from its first call for a while, whatever it is told."""

    def __init__(self, number: int) -> None:
        self.number = number

    def run(self, jobs: Sequence[PositionJob]) -> list[Answer]:
        if self.number == 0:
            time.sleep(0.6)
        return [answer_to(job) for job in jobs]

    def close(self) -> None:
        """Do nothing."""


def test_a_thread_that_does_not_obey_is_told_of_and_replaced(
    start: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "_GRACE_S", 0.1)
    notices: list[str] = []
    pool = ThreadPool(Stubborn, 1, lambda: None, lambda: None, notices.append)
    rows = finished(start(pool, RunSettings(Limits(depth=3), deadline_s=0.1)), OTHER)
    pool.close()
    assert [row.status for row in rows] == ["deadline"] + ["ok"] * (len(OTHER) - 1)
    assert len(notices) == 1
    assert "cannot be ended" in notices[0]


class Broken:
    """Fails."""

    def run(self, jobs: Sequence[PositionJob]) -> list[Answer]:
        raise ValueError("a bug")

    def close(self) -> None:
        """Do nothing."""


def test_a_thread_that_fails_ends_the_run(start: Callable[..., Runner]) -> None:
    pool = ThreadPool(lambda _number: Broken(), 1, lambda: None, lambda: None, silent)
    with pytest.raises(RunFailedError, match="a worker failed: ValueError: a bug"):
        finished(start(pool), ["4"])
    pool.close()


# What is planned.


def test_a_history_matters_where_a_position_came_twice() -> None:
    assert identity_of(7, (), "s") == identity_of(7, (1, 2, 3), "s")
    assert identity_of(7, (1, 2, 1), "s") == identity_of(7, (9, 1, 1), "s")
    assert len({identity_of(7, (1, 2, 1), "s"), identity_of(7, (), "s"), identity_of(8, (), "s")}) == 3
    assert identity_of(7, (), "s") != identity_of(7, (), "t")


def test_a_root_that_has_been_there_before_is_another_position() -> None:
    game = load_game("chess")
    planner = Planner(game, Referee(game, silent), RunSettings(Limits(depth=1)))
    there_and_back = ("g1f3", "g8f6", "f3g1", "f6g8")
    first, again = (planner.plan(InputRow(0, "", 1, position="", moves=moves)) for moves in ((), there_and_back))
    # From the second on, to come back is to come a third time.
    assert first.identity != again.identity


def test_the_index_finds_what_it_was_given() -> None:
    identities = [hash((number, "x")) % (1 << 64) or 1 for number in range(20_000)] + [1, (1 << 63) - 1, 1 << 63]
    identities.append((1 << 64) - 1)
    with closing(AnswerIndex()) as index:
        for place, identity in enumerate(identities):
            assert index.get(identity) is None
            index.put(identity, place)
        index.put(identities[5], 77)
        assert index.get(identities[5]) == 77
        assert [index.get(identity) for identity in identities[6:]] == list(range(6, len(identities)))
        assert index.get(12345) is None


def test_an_index_that_finds_no_room_says_so() -> None:
    with closing(AnswerIndex()) as index:
        index._table.execute("PRAGMA max_page_count = 16")

        def fill() -> None:
            for identity in range(1, 100_000):
                index.put(identity * 7919, identity)

        with pytest.raises(RunFailedError, match=r"index of answers cannot be kept .* full"):
            fill()


def test_a_suite_says_what_is_solved_and_since_when(start: Callable[..., Runner], game: Game) -> None:
    expected = [
        ("226744515337", Expectation(best_moves=("4",), score=7)),
        ("226744515337", Expectation(score=6)),
        ("4453", Expectation(score=-18)),
        ("1", Expectation(avoid_moves=("1",))),
    ]
    suite = [InputRow(0, "here", 1, position=text, expectation=wanted) for text, wanted in expected]
    settings = RunSettings(Limits(depth=42, nodes=1_000_000), table_mb=8)
    pool = thread_pool(game, settings, 2, silent)
    runner = start(pool, settings)
    try:
        rows = finished(runner, suite)
    finally:
        pool.close()
    assert [row.solved for row in rows] == [True, False, False, True]
    assert (runner.tally.scored, runner.tally.solved, runner.tally.searched) == (4, 2, 3)
    assert 0 < (rows[0].solved_nodes or 0) <= (rows[0].nodes or 0)
    assert rows[2].solved_nodes is None


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"limits": Limits()}, "needs a limit"),
        ({"limits": Limits(depth=1), "multipv": 0}, "lines must be"),
        ({"limits": Limits(depth=1), "split": 0}, "at least one worker"),
        ({"limits": Limits(depth=1), "deadline_s": 0.0}, "deadline must be"),
        ({"limits": Limits(time_s=1), "is_deterministic": True}, "not by a time"),
        ({"limits": Limits(mate=1), "is_deterministic": True}, "by a depth or by nodes"),
        ({"limits": Limits(depth=1), "is_deterministic": True, "split": 2}, "leave out --split"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(options: dict, match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        RunSettings(**options)
