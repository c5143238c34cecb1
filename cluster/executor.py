"""Where tasks run: the protocol, and the executors that need no Ray.

All executors pass one test suite; the serial one, which runs each task when it is polled for, is the oracle.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from cluster.records import Task, TaskResult, WorkerInfo
from cluster.task_runner import run_task
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags
from search.mcts_settings import Part
from search.referee import print_notice
from search.rules import Game
from search.searcher import variant_salt
from search.searchers import open_searcher
from tt_store.deepest import deepest
from tt_store.errors import RunFailedError
from tt_store.exchange import deliver
from tt_store.segment import Segment


class ResultEvent(NamedTuple):
    """A task has ended, finished or not."""

    worker: int
    result: TaskResult


class WorkerLost(NamedTuple):
    """A worker is gone; its tasks must be given to others."""

    worker: int
    task_ids: tuple[int, ...]


class WorkerJoined(NamedTuple):
    """A worker is ready."""

    worker: WorkerInfo


Event = ResultEvent | WorkerLost | WorkerJoined


class Numbers:
    """Numbers that an executor's control words never see twice, whatever sessions use it one after the other."""

    def __init__(self) -> None:
        self.task_ids = itertools.count(1)
        self.epochs = itertools.count(1)


class Executor(Protocol):
    """Carries tasks to workers and their results back."""

    numbers: Numbers
    flags: Flags
    """Which kernel the workers run."""
    least_grain_s: float
    """A task that is shorter than this costs more to carry than it is worth to split."""
    call_s: float
    """What a call to a worker costs, whatever it carries: short tasks travel in lists."""
    prefetch: int
    """How many calls may wait at a worker behind the one that runs."""

    @property
    def exchanged_entries(self) -> int:
        """How many entries of tables have gone to other machines so far."""

    table_part: Part
    """Which part of each machine's table a search may fill with what is its own; entries lie all over it."""
    is_simulated: bool
    """Whether its time is virtual: whoever polls keeps the time limit then."""
    has_teams: bool
    """Whether workers of a machine run side by side, so that one may follow another."""

    def workers(self) -> list[WorkerInfo]:
        """Return the workers that are ready."""

    def awaits_workers(self) -> bool:
        """Tell whether workers are on their way: a start ends, well or not."""

    def now_s(self) -> float:
        """Return the time in seconds, from any fixed moment on."""

    def known_move(self, key: int) -> int:
        """Return what a table within reach holds for best at a salted hash; `NO_MOVE` if nothing, perhaps illegal."""

    def begin_search(self) -> None:
        """Advance the generation of every table: older entries give way first."""

    def forget(self) -> None:
        """Empty every table and every worker's history of moves, as if just opened; no task may be running."""

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Queue tasks at a worker."""

    def poll(self, timeout_s: float) -> list[Event]:
        """Return what has happened, after at most so many seconds without an event."""

    def abort(self, task_ids: Iterable[int]) -> None:
        """Tell tasks that they are moot; their results still come."""

    def set_bound(self, task_id: int, bound: int) -> None:
        """Tell a task that its beta fell; see `Controls.set_bound`."""

    def stop(self, epoch: int) -> None:
        """End all tasks up to an epoch; may be called from any thread; their results still come."""

    def hashfull(self) -> float:
        """Return the share 0..1 of the tables that is in use, sampled."""

    def deepest(self, most: int) -> list[bytes]:
        """Return the deepest entries of the tables, at most so many in all: messages of `tt_store.exchange`."""

    def deliver(self, messages: Sequence[bytes]) -> None:
        """Put the entries of messages into every table."""

    def close(self) -> None:
        """Stop the workers and give everything back; a second call does nothing."""


class _OneMachine:
    """What the executors of this process share: one table, one set of control words, a searcher a worker."""

    MACHINE = "this"
    least_grain_s = 0.0
    call_s = 0.0
    prefetch = 0
    exchanged_entries = 0
    table_part = Part()
    is_simulated = False
    has_teams = True

    def __init__(self, game: Game, workers: int, table_mb: float, flags: Flags, notice: Callable[[str], None]) -> None:
        self.numbers = Numbers()
        self._segment = Segment.private(table_mb, control_words=CONTROL_WORDS)
        self._controls = Controls(self._segment.control_address)
        self.flags, self._salt = flags, variant_salt(flags)
        self._searchers = [
            open_searcher(game, self._segment, self._controls, flags=flags, slot=slot, notice=notice)
            for slot in range(workers)
        ]

    def workers(self) -> list[WorkerInfo]:
        """Return all workers: none of this process is ever lost."""
        return [WorkerInfo(self.MACHINE, worker) for worker in range(len(self._searchers))]

    def awaits_workers(self) -> bool:
        """Return False: all are there from the beginning."""
        return False

    def now_s(self) -> float:
        """Return the real time."""
        return time.monotonic()

    def known_move(self, key: int) -> int:
        """Ask the table."""
        return self._searchers[0].referee.known_move(self._segment, key ^ self._salt)

    def begin_search(self) -> None:
        """Advance the table's generation."""
        self._segment.advance_generation()

    def forget(self) -> None:
        """Empty the table and every searcher's history."""
        self._segment.clear()
        for searcher in self._searchers:
            searcher.forget()

    def abort(self, task_ids: Iterable[int]) -> None:
        """Write the tasks' control cells."""
        for task_id in task_ids:
            self._controls.abort(task_id)

    def set_bound(self, task_id: int, bound: int) -> None:
        """Write the task's control cell."""
        self._controls.set_bound(task_id, bound)

    def stop(self, epoch: int) -> None:
        """Write the stop word."""
        self._controls.stop(epoch)

    def hashfull(self) -> float:
        """Return the share of the table that is in use."""
        return self._segment.hashfull()

    def deepest(self, most: int) -> list[bytes]:
        """Look through the table."""
        return deepest(self._segment, most)

    def deliver(self, messages: Sequence[bytes]) -> None:
        """Put entries into the table."""
        for message in messages:
            deliver(self._segment, message)


class SerialExecutor(_OneMachine):
    """Runs tasks on the calling thread, one a poll, in the order of submission.

    Parameters
    ----------
    game
        The game.
    workers
        How many workers to pretend.
    table_mb
        Size of the table in MB.
    flags, notice
        As for `Searcher`.
    """

    has_teams = False

    def __init__(
        self,
        game: Game,
        workers: int = 1,
        table_mb: float = 64.0,
        *,
        flags: Flags = Flags(),
        notice: Callable[[str], None] = print_notice,
    ) -> None:
        super().__init__(game, workers, table_mb, flags, notice)
        self._waiting: deque[tuple[int, Task]] = deque()

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Queue tasks."""
        self._waiting.extend((worker, task) for task in tasks)

    def poll(self, timeout_s: float) -> list[Event]:
        """Run the next task to its end, whatever the time-out."""
        if not self._waiting:
            return []
        worker, task = self._waiting.popleft()
        return [ResultEvent(worker, run_task(self._searchers[worker], task))]

    def close(self) -> None:
        """Give the table back."""
        self._waiting.clear()
        self._segment.close()


class ThreadExecutor(_OneMachine):
    """Runs tasks on threads of this process, without the GIL while kernels run: the embedded default.

    Parameters
    ----------
    game
        The game.
    workers
        Number of threads.
    table_mb
        Size of the table that they share, in MB.
    flags, notice
        As for `Searcher`.
    """

    prefetch = 1

    def __init__(
        self,
        game: Game,
        workers: int,
        table_mb: float = 64.0,
        *,
        flags: Flags = Flags(),
        notice: Callable[[str], None] = print_notice,
    ) -> None:
        super().__init__(game, workers, table_mb, flags, notice)
        self._events: queue.SimpleQueue[ResultEvent | BaseException] = queue.SimpleQueue()
        self._inboxes: list[queue.SimpleQueue[Task | None]] = [queue.SimpleQueue() for _ in range(workers)]
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, args=(worker,), name=f"rootsplit-worker-{worker}", daemon=True)
            for worker in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Queue tasks at a thread."""
        for task in tasks:
            self._inboxes[worker].put(task)

    def poll(self, timeout_s: float) -> list[Event]:
        """Wait for results.

        Raises
        ------
        RunFailedError
            If a worker's thread has failed.
        """
        events: list[Event] = []
        try:
            item = self._events.get(timeout=max(timeout_s, 0.0)) if timeout_s > 0 else self._events.get_nowait()
            while True:
                if isinstance(item, BaseException):
                    raise RunFailedError(f"a worker failed: {type(item).__name__}: {item}") from item
                events.append(item)
                item = self._events.get_nowait()
        except queue.Empty:
            return events

    def close(self) -> None:
        """End running tasks, join the threads and give the table back."""
        if self._is_closed:
            return
        self._is_closed = True
        self.stop(1 << 62)
        for inbox in self._inboxes:
            inbox.put(None)
        for thread in self._threads:
            thread.join()
        self._segment.close()

    def _work(self, worker: int) -> None:
        searcher = self._searchers[worker]
        while (task := self._inboxes[worker].get()) is not None:
            try:
                self._events.put(ResultEvent(worker, run_task(searcher, task)))
            except BaseException as error:
                self._events.put(error)
                return
