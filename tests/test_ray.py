"""Workers on Ray: the executor's protocol, right values, dead workers, refusals, and nothing left behind."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import alive, descendants, wait_until

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray
from conftest import start_as_by_default

from cluster import coordinator, ray_executor, ray_fleet
from cluster.batch.jobs import pack_jobs, unpack_answers
from cluster.batch.planner import Planner
from cluster.batch.rows import InputRow
from cluster.batch.settings import RunSettings
from cluster.cluster_options import ClusterOptions
from cluster.executor import Event, ResultEvent, SerialExecutor, WorkerJoined, WorkerLost
from cluster.fingerprint import fingerprint
from cluster.ray_connection import AUTO, LOCAL
from cluster.ray_errors import ClusterError
from cluster.ray_executor import RayExecutor
from cluster.ray_machines import Machine
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.request import SearchRequest
from cluster.session import Session, open_session
from search import workspace as at
from search.algorithms import flags_for
from search.driver import search
from search.flags import Flags
from search.game_files import load_game
from search.limits import NO_NODE_LIMIT, Limits
from search.results import Iteration
from search.scores import INFINITY
from tt_store.errors import RunFailedError, TableError

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]

EXACT = Flags(exact_depth=True)
TABLE_MB = 8.0
WORKERS = 2
LONG = SearchRequest(limits=Limits(depth=18))
"""Some seconds of Connect Four on one core."""
KILL_DEPTH, KILL_AFTER_S = 15, 0.1
"""When a worker is killed: so long after the iteration of this depth, with most of `LONG` to come."""

SAMPLE = {
    "connect_four": [("", 9), ("4453", 9), ("52753311433677442422121", 30), ("11223", 8), ("444444", 10)],
    "einstein": [
        ("ABC../DE.../F...f/...ed/..cba b 5", 3),
        ("ABC../DE.../F...f/...ed/..cba r 3", 4),
        ("A..../..B../..f../..C../...a. b 2", 5),
    ],
    "kalah": [("", 8), ("0,0,0,0,5,2,10/1,0,2,0,0,4,24 n", 10), ("4,4,4,4,4,4,0/0,1,5,5,5,5,3 s", 8)],
    "random_tree": [("3:4:7", 7), ("4:1-6:8:60", 8), ("5:8:6:0", 6), ("6:1:5", 5), ("7:12:7:40", 6), ("8:3-9:9:90", 7)],
}

HEAD = """
import sys, ray
ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=128 << 20, log_to_driver=False,
         _system_config={"metrics_report_interval_ms": 500})
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module", autouse=True)
def _one_way_to_authenticate() -> Iterator[None]:
    """Turn tokens off: a private Ray would turn them on for the rest of this process, and the cluster has none."""
    with pytest.MonkeyPatch.context() as patch:
        start_as_by_default(patch)
        yield


class Started:
    """Keeps one executor: starting one costs seconds, and a process can be on one Ray at a time."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self._executor: RayExecutor | None = None
        self._key: tuple[str, str] | None = None
        self._epochs = 0

    def executor(self, game_name: str, address: str) -> RayExecutor:
        if self._executor is not None:
            # What the test before has cost.
            wait_until(lambda: self._executor is None or len(self.polled()) == WORKERS, 10)
        if self._executor is None or self._key != (game_name, address) or len(self.polled()) < WORKERS:
            self.close()
            self._key = (game_name, address)
            game = load_game(game_name)
            flags = flags_for(game, flags=EXACT)
            # The default options carry the run of all executors of this process.
            self._executor = RayExecutor(
                game, WORKERS, TABLE_MB, address, flags=flags, notice=self.notices.append, options=ClusterOptions()
            )
        self.notices.clear()
        return self._executor

    def polled(self) -> list[WorkerInfo]:
        assert self._executor is not None
        self._executor.poll(0.0)
        return self._executor.workers()

    def session(self, game_name: str, address: str) -> Session:
        return Session(load_game(game_name), self.executor(game_name, address), TABLE_MB)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()
        self._executor = None


@pytest.fixture(scope="module")
def started() -> Iterator[Started]:
    kept = Started()
    yield kept
    kept.close()


@pytest.fixture(scope="module")
def cluster(started: Started) -> Iterator[str]:
    """Return the address of a cluster of one machine with two CPUs: another process's Ray."""
    command = [sys.executable, "-c", HEAD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
        assert head.stdin is not None
        assert head.stdout is not None
        yield head.stdout.readline().strip()
        started.close()
        head.stdin.close()
        assert head.wait(timeout=30) == 0


def sequential_score(game_name: str, request: SearchRequest, _known: dict[Any, int] = {}) -> int:  # noqa: B006
    if (game_name, request) not in _known:
        game = load_game(game_name)
        flags = flags_for(game, flags=EXACT)
        result = search(game, game.parse(request.position), request.limits, flags=flags, table_mb=TABLE_MB)
        _known[game_name, request] = result.score
    return _known[game_name, request]


def pids(executor: RayExecutor) -> dict[int, int]:
    """Return the process of each worker."""
    members = executor._fleet.members.values()
    return {member.info.worker: ray.get(member.actor.ready.remote(), timeout=60) for member in members}


# The protocol.


def connect_four_task(task_id: int, columns: str, depth: int, epoch: int = 1) -> Task:
    position = tuple(int(word) for word in load_game("connect_four").parse(columns))
    return Task(task_id, epoch, position, depth, -INFINITY, INFINITY, 0, 0, NO_NODE_LIMIT, 0, 0)


def results_of(executor: RayExecutor | SerialExecutor, count: int, seconds: float = 60.0) -> list[TaskResult]:
    """Poll until so many results have come."""
    events: list[Event] = []
    end = time.monotonic() + seconds
    while len(events) < count:
        assert time.monotonic() < end, f"{len(events)} of {count} results after {seconds} s"
        events.extend(executor.poll(0.1))
    assert all(isinstance(event, ResultEvent) for event in events)
    return [event.result for event in events if isinstance(event, ResultEvent)]


def test_two_workers_of_one_machine_are_there(started: Started) -> None:
    infos = started.executor("connect_four", LOCAL).workers()
    assert [info.worker for info in infos] == [0, 1]
    assert len({info.machine for info in infos}) == 1


def test_each_task_has_one_result_and_the_serial_executors_score(started: Started) -> None:
    executor = started.executor("connect_four", LOCAL)
    columns = ["", "4", "44", "4453", "1234567", "1122", "7654", "112233", "71", "5"]
    tasks = [connect_four_task(number, text, 6) for number, text in enumerate(columns, 1)]
    # Two calls wait at the first worker, one has a single task.
    for worker, batch in ((0, tasks[:4]), (0, tasks[4:6]), (1, tasks[6:9]), (1, tasks[9:])):
        executor.submit(worker, batch)
    results = {result.task_id: result for result in results_of(executor, len(tasks))}
    serial = SerialExecutor(load_game("connect_four"), 1, TABLE_MB, flags=EXACT)
    serial.submit(0, tasks)
    expected = {result.task_id: result for result in results_of(serial, len(tasks))}
    serial.close()
    assert sorted(results) == sorted(expected)
    for task_id, result in results.items():
        assert result.is_finished
        assert (result.score, result.alpha, result.beta) == (expected[task_id].score, -INFINITY, INFINITY)
        assert result.line[0] == expected[task_id].line[0] or result.score == expected[task_id].score
    assert executor.poll(0.0) == []


def test_a_moot_task_ends_at_once_and_another_runs_on(started: Started) -> None:
    executor = started.executor("connect_four", LOCAL)
    executor.submit(0, [connect_four_task(101, "", 41)])
    executor.submit(1, [connect_four_task(102, "4", 41)])
    time.sleep(0.3)
    executor.abort([101])
    (first,) = results_of(executor, 1, seconds=10)
    assert (first.task_id, first.status) == (101, at.ABORTED)
    assert executor.poll(0.3) == []
    executor.abort([102])
    assert results_of(executor, 1, seconds=10)[0].status == at.ABORTED


def test_a_task_is_narrowed_while_it_runs(started: Started) -> None:
    executor = started.executor("connect_four", LOCAL)
    executor.submit(0, [connect_four_task(111, "", 24)])
    time.sleep(0.3)
    executor.set_bound(111, -20_000)
    (result,) = results_of(executor, 1)
    assert result.is_finished
    assert result.beta == -20_000
    assert result.score >= result.beta


def test_the_generation_advances_and_the_table_fills(started: Started) -> None:
    executor = started.executor("connect_four", LOCAL)
    executor.begin_search()
    assert 0 < executor.hashfull() <= 1


def test_stop_ends_the_tasks_up_to_its_epoch_only(started: Started) -> None:
    executor = started.executor("connect_four", LOCAL)
    executor.submit(0, [connect_four_task(121, "", 41, epoch=5)])
    executor.submit(1, [connect_four_task(122, "", 41, epoch=6)])
    time.sleep(0.2)
    executor.stop(4)
    assert executor.poll(0.3) == []
    executor.stop(5)
    (first,) = results_of(executor, 1, seconds=10)
    assert (first.task_id, first.status) == (121, at.STOPPED)
    executor.stop(6)
    (second,) = results_of(executor, 1, seconds=10)
    assert (second.task_id, second.status) == (122, at.STOPPED)


def test_all_calls_of_a_dead_worker_come_back_as_lost_once(started: Started) -> None:
    executor = started.executor("connect_four", LOCAL)
    before = pids(executor)
    executor.submit(0, [connect_four_task(131, "", 41, epoch=10), connect_four_task(132, "", 4, epoch=10)])
    executor.submit(0, [connect_four_task(133, "", 4, epoch=10)])
    time.sleep(0.2)
    os.kill(before[0], signal.SIGKILL)
    events: list[Event] = []
    assert wait_until(lambda: bool(events.extend(executor.poll(0.1)) or len(events) > 1), 20)
    lost, joined = events
    assert isinstance(lost, WorkerLost)
    assert (lost.worker, sorted(lost.task_ids)) == (0, [131, 132, 133])
    assert isinstance(joined, WorkerJoined)
    assert pids(executor)[0] != before[0]
    assert "worker 0" in started.notices[0]
    executor.submit(0, [connect_four_task(134, "", 4, epoch=10)])
    assert results_of(executor, 1)[0].is_finished


def test_a_second_executor_in_one_process_is_refused_in_a_sentence(started: Started) -> None:
    started.executor("connect_four", LOCAL)
    with pytest.raises(ClusterError, match="close the other session first"):
        RayExecutor(load_game("kalah"), 1, TABLE_MB)
    assert ray.is_initialized()


def test_close_leaves_no_process_and_no_table_and_may_be_called_twice(started: Started) -> None:
    executor = started.executor("connect_four", LOCAL)
    tables = [Path(machine.path) for machine in executor._fleet.machines]
    ours = descendants(os.getpid())
    assert any("raylet" in process.command for process in ours)
    assert all(table.exists() for table in tables)
    workers = set(pids(executor).values())
    assert workers <= {process.pid for process in ours}
    # One that is in the middle of a task goes too.
    executor.submit(0, [connect_four_task(141, "", 41, epoch=20)])
    started.close()
    executor.close()
    assert [table for table in tables if table.exists()] == []
    assert wait_until(lambda: not alive(ours), 10), alive(ours)


# Right values.


@pytest.mark.parametrize("game_name", sorted(SAMPLE))
def test_searches_one_after_the_other_equal_the_sequential_driver(
    game_name: str, started: Started, cluster: str
) -> None:
    with_cluster = started.session(game_name, cluster)
    for (text, depth), strategy in itertools.product(SAMPLE[game_name], ("root", "single")):
        request = SearchRequest(text, limits=Limits(depth=depth), strategy=strategy)
        report = with_cluster.search(request)
        plain = SearchRequest(text, limits=Limits(depth=depth))
        assert report.result.score == sequential_score(game_name, plain), (text, depth, strategy)
        assert report.result.depth == min(depth, report.result.iterations[-1].depth)
        assert report.workers == WORKERS
        legal = with_cluster.referee.legal_prefix(report.result.position, report.result.line)[0]
        assert tuple(legal) == report.result.line


# What Prometheus reads.


def metrics(names: tuple[str, ...], run: str) -> list[float]:
    """Return metrics, summed over a run's processes on the one machine of a cluster."""
    node = ray.nodes()[0]
    url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if f'run="{run}"' in line]
    return [
        sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"ray_rootsplit_{name}{{"))
        for name in names
    ]


def test_metrics_tell_what_the_workers_did(started: Started, cluster: str) -> None:
    started.close()  # Another run counts from nothing.
    executor = started.executor("connect_four", cluster)
    run, names = executor._fleet._setup.run, ("tasks_total", "nodes_total", "positions_total", "workers")
    for worker in range(WORKERS):
        task_id, epoch = next(executor.numbers.task_ids), next(executor.numbers.epochs)
        executor.submit(worker, [connect_four_task(task_id, "44", 8, epoch)])
    nodes = sum(result.statistics.nodes for result in results_of(executor, WORKERS))
    planner = Planner(load_game("connect_four"), executor._referee, RunSettings(Limits(depth=6)))
    job = planner.plan(InputRow(0, "here", 1, position="4")).job
    assert job is not None
    answers: list[bytes] = []
    executor.send(0, "analyse", pack_jobs([job]), (0,), lambda _worker, message: answers.append(message) or [])
    assert wait_until(lambda: executor.poll(0.1) == [] and answers != [], 30)
    nodes += unpack_answers(answers[0])[0].nodes
    wanted = [WORKERS, nodes, 1, WORKERS]
    assert wait_until(lambda: executor.poll(0.1) == [] and metrics(names, run) == wanted, 30), metrics(names, run)


# Dead workers. The searches go on; the value is the sequential one.


def search_and_kill(started: Started, cluster: str, victims: int) -> tuple[Session, dict[int, int]]:
    """Search; kill some workers on the way; returns the session and the workers' processes from before."""
    connect_four = started.session("connect_four", cluster)
    # What a former test has searched must not make this search short.
    connect_four.executor.begin_search()
    executor = started.executor("connect_four", cluster)
    before = pids(executor)

    def kill() -> None:
        for worker in range(victims):
            os.kill(before[worker], signal.SIGKILL)

    timer = threading.Timer(KILL_AFTER_S, kill)
    report = connect_four.search(LONG, lambda done: timer.start() if done.depth == KILL_DEPTH else None)
    timer.join()
    assert sum(" died and is " in notice for notice in started.notices) == victims
    assert report.result.depth == LONG.limits.depth
    assert report.result.score == sequential_score("connect_four", LONG)
    return connect_four, before


def renewed(executor: RayExecutor) -> None:
    """Give each worker all its replacements back."""
    for member in executor._fleet.members.values():
        member.respawns = 0


@pytest.mark.parametrize("victims", [1, 2])
def test_the_search_survives_kill_9_of_workers(victims: int, started: Started, cluster: str) -> None:
    started.close()
    connect_four, before = search_and_kill(started, cluster, victims)
    executor = started.executor("connect_four", cluster)
    assert len(executor.workers()) == WORKERS
    after = pids(executor)
    assert [worker for worker in before if before[worker] != after[worker]] == list(range(victims))
    request = SearchRequest("4453", limits=Limits(depth=9))
    assert connect_four.search(request).result.score == sequential_score("connect_four", request)


def spawn_badly(executor: RayExecutor, times: int, patch: pytest.MonkeyPatch) -> list[int]:
    """Let so many replacements die while they start; returns the list of their slots, which grows."""
    spawned: list[int] = []
    spawn: Callable[..., Any] = executor._fleet._spawn

    def spawn_or_fail(machine: Any, slot: int) -> Any:
        spawned.append(slot)
        if len(spawned) > times:
            return spawn(machine, slot)
        bad = Machine(machine.node_id, machine.agent, "/dev/shm/rootsplit-no-such-table")
        return spawn(bad, slot)

    patch.setattr(executor._fleet, "_spawn", spawn_or_fail)
    return spawned


def test_replacements_that_die_at_once_are_replaced_too(
    started: Started, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = started.executor("connect_four", cluster)
    renewed(executor)
    spawned = spawn_badly(executor, 2, monkeypatch)
    connect_four = started.session("connect_four", cluster)
    # Those that start are waited for, however long that takes.
    monkeypatch.setattr(coordinator, "_NO_WORKER_S", 0.1)
    for pid in pids(executor).values():
        os.kill(pid, signal.SIGKILL)
    request = SearchRequest("44", limits=Limits(depth=12), strategy="root")
    assert connect_four.search(request).result.score == sequential_score("connect_four", request)
    assert len(spawned) >= 3
    assert any("rootsplit-no-such-table" in notice for notice in started.notices)


def test_without_any_worker_left_the_search_ends_in_a_sentence_with_what_it_knows(
    started: Started, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "_NO_WORKER_S", 1.0)
    monkeypatch.setattr(ray_fleet, "_RESPAWNS", 0)
    connect_four = started.session("connect_four", cluster)
    executor = started.executor("connect_four", cluster)
    executor.begin_search()
    before = pids(executor)

    def kill_all(done: Iteration) -> None:
        for pid in before.values() if done.depth == 8 else ():
            os.kill(pid, signal.SIGKILL)

    sentence = r"^no worker has been left for 1 s, so the search ends; depth \d+ was finished with score \S+, line \d"
    with pytest.raises(RunFailedError, match=sentence):
        connect_four.search(LONG, kill_all)
    assert executor.workers() == []
    assert sum("given up" in notice for notice in started.notices) == WORKERS
    started.close()


def test_a_worker_that_is_not_replaced_leaves_the_others_the_work(
    started: Started, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_fleet, "_RESPAWNS", 0)
    connect_four, _before = search_and_kill(started, cluster, victims=1)
    assert [info.worker for info in connect_four.executor.workers()] == [1]
    started.close()


def test_an_idle_worker_that_dies_is_noticed_and_replaced(started: Started, cluster: str) -> None:
    executor = started.executor("connect_four", cluster)
    renewed(executor)
    before = pids(executor)
    os.kill(before[1], signal.SIGKILL)
    events: list[Event] = []
    assert wait_until(lambda: bool(events.extend(executor.poll(0.1)) or len(events) > 1), 20)
    lost, joined = events
    assert lost == WorkerLost(1, ())
    assert isinstance(joined, WorkerJoined)
    assert pids(executor)[1] != before[1]
    assert started.notices == [
        f"worker 1 on machine {joined.worker.machine} died and is replaced: its process has ended"
    ]


def test_a_stopped_worker_is_seen_within_seconds(
    started: Started, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = started.executor("connect_four", cluster)
    renewed(executor)
    monkeypatch.setattr(executor._fleet, "_hang_s", 2.0)
    before = pids(executor)
    epoch = next(executor.numbers.epochs)
    executor.submit(0, [connect_four_task(151, "", 41, epoch)])
    executor.submit(1, [connect_four_task(152, "", 41, epoch)])
    time.sleep(0.5)
    os.kill(before[0], signal.SIGSTOP)
    begun = time.monotonic()
    events: list[Event] = []
    assert wait_until(lambda: bool(events.extend(executor.poll(0.1)) or events), 20)
    assert time.monotonic() - begun < 8
    assert events == [WorkerLost(0, (151,))]
    assert "hung and is replaced: it has shown no progress for 2 s" in started.notices[0]
    # It cannot hold on to its core, and the one that works is left alone.
    assert wait_until(lambda: bool(events.extend(executor.poll(0.1)) or len(events) > 1), 20)
    assert isinstance(events[1], WorkerJoined)
    executor.abort([152])
    assert results_of(executor, 1, seconds=10)[0].status == at.ABORTED
    assert pids(executor)[0] != before[0]
    assert not Path(f"/proc/{before[0]}").exists()


# Refusals, each in its own sentence and fast.


def refused(kind: type[Exception], match: str, seconds: float, *words: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(kind, match=match):
        RayExecutor(load_game("connect_four"), *words)
    assert time.monotonic() - begun < seconds
    assert not ray.is_initialized()


def test_more_workers_than_cpus_are_refused(started: Started, cluster: str) -> None:
    started.close()
    refused(ClusterError, r"^3 workers were asked for, and the cluster has CPUs for 2$", 10, 3, TABLE_MB, cluster)


def test_an_agents_error_arrives_as_its_own_sentence(started: Started, cluster: str) -> None:
    started.close()
    refused(TableError, r"^a table of 50000000 MB does not fit into memory: .*--table$", 15, 1, 5e7, cluster)


def test_a_machine_with_another_program_is_refused(
    started: Started, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started.close()
    monkeypatch.setattr(ray_executor, "fingerprint", lambda game: fingerprint(game)._replace(program="other"))
    refused(
        ClusterError, r"^machine \S+ has another rootsplit \(\w+\) than this program \(other\)", 15, 1, 8.0, cluster
    )


def test_a_table_beyond_shared_memory_is_refused_before_ray_starts(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    started.close()
    monkeypatch.setattr(ray_executor, "free_bytes", lambda _directory: 64 << 20)
    refused(TableError, r"^a table of 65 MB does not fit into .*: 64 MB are free; ", 1, 1, 65.0, LOCAL)


def test_auto_without_a_cluster_fails_at_once(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    started.close()
    monkeypatch.setenv("RAY_TMPDIR", "/nonexistent")
    # Ray looks for any running one: others may have one on this machine.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", functools.cache(frozenset))
    refused(ClusterError, r"^the Ray cluster at auto cannot be joined: ", 5, 1, TABLE_MB, AUTO)


def test_auto_with_the_record_of_a_dead_cluster_fails_at_once(
    started: Started, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started.close()
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1\n")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    refused(ClusterError, r"^no Ray cluster answers at 127\.0\.0\.1:1: ", 8, 1, TABLE_MB, AUTO)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("127.0.0.1:1", r"^no Ray cluster answers at 127\.0\.0\.1:1: "),
        ("ray://127.0.0.1:10001", r"is a Ray Client address"),
        ("nowhere", r"'nowhere' is no cluster address"),
        ("host:99999", r"is no cluster address"),
    ],
)
def test_an_address_without_a_cluster_fails_at_once(address: str, sentence: str, started: Started) -> None:
    started.close()
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=sentence):
        open_session("connect_four", SearchRequest(), 1, TABLE_MB, address)
    assert time.monotonic() - begun < 8
