"""The Ray actors: one `NodeAgent` a machine owns the table and the control words, one `Worker` a core searches."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import ray

from cluster.batch.analyst import Analyst
from cluster.batch.jobs import pack_answers, unpack_jobs
from cluster.fingerprint import Fingerprint, fingerprint
from cluster.ray_errors import ClusterError
from cluster.ray_exchange import Courier
from cluster.ray_metrics import MachineMetrics, WorkerMetrics
from cluster.records import pack_results, unpack_tasks
from cluster.task_runner import run_task
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags
from search.game_files import load_game
from search.rules import Game
from search.searchers import open_searcher
from tt_store.deepest import deepest
from tt_store.errors import TableError
from tt_store.exchange import deliver
from tt_store.layout import BYTES_PER_MB
from tt_store.memory import default_directory, fitting_mb
from tt_store.reclaim import reclaim, remove_after
from tt_store.segment import Segment

HEARTBEAT_S = 1.0
_HELPERS = (b"ray::DashboardAgent", b"ray::RuntimeEnvAgent")
DEAD_AGENT_S = 30.0
"""A worker whose agent has shown no heartbeat for so long leaves: its machine has been given up."""


class Setup(NamedTuple):
    """What agents and workers are started with."""

    run: str
    """The run's id, for metrics and names of files."""
    game_name: str
    flags: tuple[int, ...]
    """Which kernel."""
    table_mb: float | None
    """None for what fits."""
    directory: str | None
    """Where tables go; None for shared memory."""
    ours: Fingerprint
    """Of the driver."""
    own_table_mb: float
    """Size of a table of each worker's own, emptied before each position of a batch; 0 for the machine's."""
    is_private: bool
    """Whether Ray runs for our driver alone, so that nothing of it must stay when that is killed."""


def _actor(num_cpus: int) -> Callable[[type[Any]], Any]:
    """Make a class an actor whose death the driver deals with: it alone starts replacements."""
    options = {"num_cpus": num_cpus, "max_restarts": 0, "max_task_retries": 0, "enable_task_events": False}
    return cast(Callable[[type[Any]], Any], cast(Any, ray).remote(**options))


def _log_notice(line: str) -> None:
    """Leave a line in the actor's log: the driver tells its user by itself."""
    print(f"rootsplit: {line}", flush=True)


def _check_same(game: Game, ours: Fingerprint) -> None:
    """Refuse to work for a driver of another installation: its tasks would mean something else here."""
    here, machine = fingerprint(game), os.uname().nodename
    if here.program != ours.program:
        raise ClusterError(
            f"machine {machine} has another rootsplit ({here.program}) than this program ({ours.program}):"
            " install the same on all machines"
        )
    if here.game != ours.game:
        raise ClusterError(
            f"machine {machine} has another file of the game {game.label} ({here.game}) than this program"
            f" ({ours.game}), or of what it imports: copy the same to all machines"
        )


def _status(pid: int) -> tuple[bytes, int] | None:
    """Return state and parent of a process; None if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[1])


def _is_running(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not. Where nothing tells of processes, all do."""
    status = _status(pid)
    return not Path("/proc/self/stat").exists() if status is None else status[0] not in (b"Z", b"X")


def _helpers_of(raylet: int) -> list[int]:
    """Return the processes of a raylet that outlive it by a minute, waiting for a head that has died with it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = _status(int(folder.name))
            if status is not None and status[1] == raylet and (folder / "cmdline").read_bytes().startswith(_HELPERS):
                found.append(int(folder.name))
    return found


@_actor(num_cpus=0)
class NodeAgent:
    """Owns a machine's table: makes it, marks it as alive, writes its control words, removes it.

    Parameters
    ----------
    setup
        What all agents have in common. The kernel is compiled here, once, before the workers start.
    label
        Of the node, for the segment's name: several nodes may share one ``/dev/shm``.
    """

    def __init__(self, setup: Setup, label: str) -> None:
        game = load_game(setup.game_name)
        _check_same(game, setup.ours)
        self._raylet = os.getppid()
        self._helpers = _helpers_of(self._raylet) if setup.is_private else []
        place = default_directory() if setup.directory is None else Path(setup.directory)
        reclaim(place)
        size_mb = fitting_mb(place) if setup.table_mb is None else setup.table_mb
        self._segment = Segment.create(
            size_mb, control_words=CONTROL_WORDS, label=f"{setup.run}{label}", directory=place
        )
        # A driver that is killed takes this process with it, without a word.
        remove_after(os.getpid(), Path(str(self._segment.path)))
        self._controls = Controls(self._segment.control_address)
        self._metrics = MachineMetrics(setup.run, game.label)
        self._courier = Courier(self._segment, self._controls.news_address, self._metrics.sent.inc)
        self._closing = threading.Event()
        threading.Thread(target=self._beat, name="rootsplit-heartbeat", daemon=True).start()
        try:
            flags = Flags.of_words(setup.flags)
            open_searcher(game, self._segment, self._controls, flags=flags, notice=_log_notice)
        except BaseException:
            self.close()
            raise

    def ready(self) -> tuple[str, float]:
        """Return the path of the segment, and the size of the table in MB."""
        return str(self._segment.path), self._segment.size_bytes / BYTES_PER_MB

    def pulse(self, workers: list[tuple[int, int]]) -> list[tuple[int, bool]]:
        """Return of workers, given by slot and process, their progress words and whether they run."""
        signs = [(self._controls.progress(slot), _is_running(pid)) for slot, pid in workers]
        self._metrics.workers.set(sum(is_running for _progress, is_running in signs))
        self._metrics.hashfull.set(self._segment.hashfull())
        return signs

    def end_worker(self, pid: int) -> None:
        """Kill a worker that hangs: a process that was stopped does not do what Ray asks of it."""
        status = _status(pid)
        if status is not None and status[1] == self._raylet:
            os.kill(pid, signal.SIGKILL)
            self._metrics.ended.inc()

    def set_bounds(self, bounds: list[tuple[int, int]]) -> None:
        """Write the control cells of running tasks: (task id, bound)."""
        for task_id, bound in bounds:
            self._controls.set_bound(task_id, bound)

    def stop(self, epoch: int) -> None:
        """Write the stop word."""
        self._controls.stop(epoch)

    def begin_search(self) -> None:
        """Advance the table's generation."""
        self._segment.advance_generation()

    def forget(self) -> None:
        """Empty the table, and tell others nothing more of what was in it."""
        self._segment.clear()
        self._courier.forget()

    def meet(self, peers: list[Any]) -> None:
        """Send deep entries to these agents from now on: those of all other machines."""
        self._courier.meet(peers)

    def sent_entries(self) -> tuple[str, int]:
        """Return the path of the segment, and how many entries have gone to other machines so far."""
        return str(self._segment.path), self._courier.entries

    def deliver(self, message: bytes) -> int:
        """Take a batch of another machine's entries; returns how many there were, 0 for a damaged one."""
        try:
            count = deliver(self._segment, message)
        except TableError as error:
            # Nobody waits for the answer, and nothing but some work is lost.
            _log_notice(str(error))
            self._metrics.refused.inc()
            return 0
        if count:
            self._metrics.taken.inc(count)
        return count

    def deepest(self, most: int) -> list[bytes]:
        """Return the deepest entries, at most so many."""
        return deepest(self._segment, most)

    def deliver_all(self, messages: list[bytes]) -> None:
        """Take the entries of a checkpoint."""
        for message in messages:
            deliver(self._segment, message)

    def hashfull(self) -> float:
        """Return the share of the table that is in use."""
        return self._segment.hashfull()

    def close(self) -> None:
        """Remove the table."""
        self._closing.set()
        self._courier.close()
        self._segment.close()

    def _beat(self) -> None:
        while not self._closing.wait(HEARTBEAT_S):
            self._segment.heartbeat(time.time())
            if os.getppid() != self._raylet:
                self._leave()

    def _leave(self) -> None:
        """Follow the raylet, which was killed, perhaps with the driver; Ray itself ends this process 2 s later."""
        if self._segment.path is not None:
            self._segment.path.unlink(missing_ok=True)
        for pid in self._helpers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os._exit(1)


@_actor(num_cpus=1)
class Worker:
    """Searches tasks on one core, on the table of its machine.

    Parameters
    ----------
    setup
        What all workers have in common. The kernel is loaded from the machine's cache.
    path
        The segment of this machine's agent.
    slot
        The worker's progress word.
    """

    def __init__(self, setup: Setup, path: str, slot: int) -> None:
        self._raylet = os.getppid()
        self._segment = Segment.attach(Path(path))
        self._own = Segment.private(setup.own_table_mb) if setup.own_table_mb else None
        game = load_game(setup.game_name)
        self._metrics = WorkerMetrics(setup.run, game.label)
        self._searcher = open_searcher(
            game,
            self._own or self._segment,
            Controls(self._segment.control_address),
            flags=Flags.of_words(setup.flags),
            slot=slot,
            notice=_log_notice,
        )
        self._analyst = Analyst(self._searcher, slot, is_fresh=self._own is not None)
        threading.Thread(target=self._watch_agent, name="rootsplit-watch", daemon=True).start()

    def ready(self) -> int:
        """Return this process's id."""
        return os.getpid()

    def forget(self) -> None:
        """Forget killers and history."""
        self._searcher.forget()

    def run(self, message: bytes) -> bytes:
        """Run a message of tasks; returns the message of their results."""
        results = [run_task(self._searcher, task) for task in unpack_tasks(message)]
        self._metrics.note(results)
        return pack_results(results)

    def analyse(self, message: bytes) -> bytes:
        """Search a message of positions in turn, until a call's time is up; returns the message of the answers."""
        answers = self._analyst.run(unpack_jobs(message))
        self._metrics.note_answers(answers)
        return pack_answers(answers)

    def _watch_agent(self) -> None:
        """Leave when agent or raylet are gone, even from within a kernel: nobody wants the result any more."""
        while True:
            time.sleep(HEARTBEAT_S)
            is_given_up = self._segment.heartbeat_age_s(time.time()) > DEAD_AGENT_S
            if is_given_up or os.getppid() != self._raylet:
                os._exit(1)
