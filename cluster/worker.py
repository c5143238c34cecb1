"""The Ray actors: one `NodeAgent` a machine owns the table and the control words, one `Worker` a core searches."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import ray

from cluster.executor import run_task
from cluster.records import pack_results, unpack_tasks
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags, Pruning
from search.rules import load_game
from search.searcher import Searcher
from tt_store.reclaim import reclaim
from tt_store.segment import Segment

HEARTBEAT_S = 1.0
DEAD_AGENT_S = 30.0
"""A worker whose agent has shown no heartbeat for so long leaves: its machine has been given up."""


def _flags_of(words: tuple[int, ...]) -> Flags:
    pruning, *switches = words
    return Flags(Pruning(pruning), *(bool(switch) for switch in switches))


def _log_notice(line: str) -> None:
    """Leave a line in the actor's log: the driver tells its user by itself."""
    print(f"rootsplit: {line}", flush=True)


@ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, enable_task_events=False)
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
    """

    def __init__(self, game_name: str, flags: tuple[int, ...], table_mb: float, label: str) -> None:
        reclaim()
        self._segment = Segment.create(table_mb, control_words=CONTROL_WORDS, label=label)
        self._controls = Controls(self._segment.control_address)
        self._closing = threading.Event()
        threading.Thread(target=self._beat, name="rootsplit-heartbeat", daemon=True).start()
        try:
            Searcher(
                load_game(game_name), self._segment, self._controls, flags=_flags_of(flags), notice=_log_notice
            )
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

    def hashfull(self) -> float:
        """Return the share of the table that is in use."""
        return self._segment.hashfull()

    def close(self) -> None:
        """Remove the table."""
        self._closing.set()
        self._segment.close()

    def _beat(self) -> None:
        while not self._closing.wait(HEARTBEAT_S):
            self._segment.heartbeat(time.time())


@ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, enable_task_events=False)
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
    """

    def __init__(self, game_name: str, flags: tuple[int, ...], path: str, slot: int) -> None:
        self._segment = Segment.attach(Path(path))
        self._searcher = Searcher(
            load_game(game_name),
            self._segment,
            Controls(self._segment.control_address),
            flags=_flags_of(flags),
            slot=slot,
            notice=_log_notice,
        )
        threading.Thread(target=self._watch_agent, name="rootsplit-watch", daemon=True).start()

    def ready(self) -> int:
        """Return this process's id."""
        return os.getpid()

    def run(self, message: bytes) -> bytes:
        """Run a message of tasks; returns the message of their results."""
        return pack_results([run_task(self._searcher, task) for task in unpack_tasks(message)])

    def _watch_agent(self) -> None:
        """Leave when the agent is gone, even from within a kernel: nobody wants the result any more."""
        while True:
            time.sleep(HEARTBEAT_S)
            if self._segment.heartbeat_age_s(time.time()) > DEAD_AGENT_S:
                os._exit(1)
