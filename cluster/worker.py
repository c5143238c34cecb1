"""The Ray actors: one `NodeAgent` a machine owns the table and the control words, one `Worker` a core searches."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import ray

from cluster.batch.analyst import Analyst
from cluster.batch.jobs import pack_answers, unpack_jobs
from cluster.executor import run_task
from cluster.records import pack_results, unpack_tasks
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags, Pruning
from search.rules import load_game
from search.searcher import Searcher
from tt_store.exchange import Outbox, deliver
from tt_store.reclaim import reclaim
from tt_store.segment import Segment

HEARTBEAT_S = 1.0
_PROC = Path("/proc")
_WORKER = b"ray::Worker"
_HELPERS = (b"ray::DashboardAgent", b"ray::RuntimeEnvAgent")
DEAD_AGENT_S = 30.0
"""A worker whose agent has shown no heartbeat for so long leaves: its machine has been given up."""


def _actor(num_cpus: int) -> Callable[[type[Any]], Any]:
    """Make a class an actor whose death the driver deals with: it alone starts replacements."""
    options = {"num_cpus": num_cpus, "max_restarts": 0, "max_task_retries": 0, "enable_task_events": False}
    return cast(Callable[[type[Any]], Any], cast(Any, ray).remote(**options))


def _flags_of(words: tuple[int, ...]) -> Flags:
    pruning, *switches = words
    return Flags(Pruning(pruning), *(bool(switch) for switch in switches))


def _log_notice(line: str) -> None:
    """Leave a line in the actor's log: the driver tells its user by itself."""
    print(f"rootsplit: {line}", flush=True)


def _helpers_of(raylet: int) -> list[int]:
    """Return the processes of a raylet that outlive it by a minute, waiting for a head that has died with it."""
    found = []
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            parent = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
            if parent == raylet and (folder / "cmdline").read_bytes().startswith(_HELPERS):
                found.append(int(folder.name))
    return found


@_actor(num_cpus=0)
class NodeAgent:
    """Owns a machine's table: makes it, marks it as alive, writes its control words, removes it.

    Parameters
    ----------
    game_name, flags
        Which kernel; compiled here, once, before the workers start.
    table_mb
        Size of the table.
    label
        Goes into the segment's name: several nodes may share one ``/dev/shm``.
    is_private
        Whether Ray runs for our driver alone, so that nothing of it must stay when that is killed.
    """

    def __init__(
        self, game_name: str, flags: tuple[int, ...], table_mb: float, label: str, is_private: bool = False
    ) -> None:
        self._raylet = os.getppid()
        self._helpers = _helpers_of(self._raylet) if is_private else []
        reclaim()
        self._segment = Segment.create(table_mb, control_words=CONTROL_WORDS, label=label)
        self._controls = Controls(self._segment.control_address)
        self._outbox = Outbox(self._segment)
        self._closing = threading.Event()
        threading.Thread(target=self._beat, name="rootsplit-heartbeat", daemon=True).start()
        try:
            Searcher(load_game(game_name), self._segment, self._controls, flags=_flags_of(flags), notice=_log_notice)
        except BaseException:
            self.close()
            raise

    def ready(self) -> str:
        """Return the path of the segment."""
        return str(self._segment.path)

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
        """Empty the table."""
        self._segment.clear()

    def collect(self) -> bytes:
        """Return the next batch of deep entries for other machines."""
        return self._outbox.collect()

    def deliver(self, message: bytes) -> int:
        """Take a batch of another machine's entries; returns how many there were. A damaged one is refused."""
        return deliver(self._segment, message)

    def hashfull(self) -> float:
        """Return the share of the table that is in use."""
        return self._segment.hashfull()

    def end_worker(self, pid: int) -> None:
        """Kill a worker of this machine that does not answer."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (_PROC / str(pid) / "cmdline").read_bytes().startswith(_WORKER):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Remove the table."""
        self._closing.set()
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
    game_name, flags
        Which kernel; loaded from the machine's cache.
    path
        The segment of this machine's agent.
    slot
        The worker's progress word.
    own_table_mb
        Size of a table of its own, emptied before each position of a batch; 0 for the machine's.
    """

    def __init__(self, game_name: str, flags: tuple[int, ...], path: str, slot: int, own_table_mb: float = 0.0) -> None:
        self._segment = Segment.attach(Path(path))
        self._own = Segment.private(own_table_mb) if own_table_mb else None
        self._searcher = Searcher(
            load_game(game_name),
            self._own or self._segment,
            Controls(self._segment.control_address),
            flags=_flags_of(flags),
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
        return pack_results([run_task(self._searcher, task) for task in unpack_tasks(message)])

    def analyse(self, message: bytes) -> bytes:
        """Search a message of positions in turn, until a call's time is up; returns the message of the answers."""
        return pack_answers(self._analyst.run(unpack_jobs(message)))

    def _watch_agent(self) -> None:
        """Leave when the agent is gone, even from within a kernel: nobody wants the result any more."""
        while True:
            time.sleep(HEARTBEAT_S)
            if self._segment.heartbeat_age_s(time.time()) > DEAD_AGENT_S:
                os._exit(1)
