"""Where positions are searched: the protocol, and the pools that need no Ray."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from cluster.batch.analyst import Analyst
from cluster.batch.jobs import Answer, PositionJob
from cluster.batch.settings import RunSettings, SettingsError
from cluster.cluster_options import ClusterOptions
from cluster.executor import WorkerJoined, WorkerLost
from cluster.records import WorkerInfo
from cluster.request import cores
from search.controls import CONTROL_WORDS, MAX_WORKERS, Controls
from search.referee import print_notice
from search.rules import Game
from search.searchers import open_searcher
from tt_store.errors import RunFailedError
from tt_store.segment import Segment

_STUBBORN_S = 1.0
"""For a thread that did not let its position go, to do so after all when the pool closes."""
SMALLEST_MB = 0.01


class Answered(NamedTuple):
    """A call has been answered: its first positions; the others had not been begun when its time was up."""

    worker: int
    job_ids: tuple[int, ...]
    """Of the whole call."""
    answers: tuple[Answer, ...]


PoolEvent = Answered | WorkerLost | WorkerJoined


class Pool(Protocol):
    """Workers that each search one position after the other."""

    def workers(self) -> list[WorkerInfo]:
        """Return the workers that are ready."""

    def awaits_workers(self) -> bool:
        """Tell whether workers are on their way: a start ends, well or not."""

    def submit(self, worker: int, jobs: Sequence[PositionJob]) -> None:
        """Send a call of some positions to a worker, which answers its calls in turn."""

    def poll(self, timeout_s: float) -> list[PoolEvent]:
        """Return what has happened, after at most so many seconds without an event."""

    def replace(self, worker: int) -> None:
        """Give a worker up that does not answer, and start another one in its place: events tell of both."""

    def close(self) -> None:
        """Stop the workers and give everything back; a second call does nothing."""


class Inbox(Protocol):
    """What a thread of a pool runs calls on."""

    def run(self, jobs: Sequence[PositionJob]) -> list[Answer]:
        """Search positions in turn, until the time of a call is up."""

    def close(self) -> None:
        """Give everything back; called when nothing runs."""


class _Thread:
    """A thread with its calls; ended by None in its inbox."""

    def __init__(self, worker: int, make: Callable[[], Inbox], events: queue.SimpleQueue[PoolEvent | BaseException]):
        self.calls: list[tuple[int, ...]] = []
        self.is_given_up = False
        self.inbox: queue.SimpleQueue[Sequence[PositionJob] | None] = queue.SimpleQueue()
        self.runs_on = make()
        self._worker, self._events = worker, events
        self.thread = threading.Thread(target=self._work, name=f"rootsplit-analyst-{worker}", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while (jobs := self.inbox.get()) is not None:
            try:
                answers = self.runs_on.run(jobs)
            except BaseException as error:
                self._events.put(error)
                return
            if self.is_given_up:
                # Nobody waits for it any more; another thread has its place.
                return
            self._events.put(Answered(self._worker, tuple(job.job_id for job in jobs), tuple(answers)))


class ThreadPool:
    """Threads of this process.

    Parameters
    ----------
    make
        Makes what the thread of a number runs on; called again for its replacement, with a number never used before.
    workers
        How many threads.
    stop
        Ends all that runs, for good.
    release
        Called when all threads have ended.
    notice
        Gets a line about a thread that cannot be ended.
    """

    MACHINE = "this"

    def __init__(
        self,
        make: Callable[[int], Inbox],
        workers: int,
        stop: Callable[[], None],
        release: Callable[[], None],
        notice: Callable[[str], None] = print_notice,
    ) -> None:
        self._make, self._stop, self._release, self._notice = make, stop, release, notice
        self._events: queue.SimpleQueue[PoolEvent | BaseException] = queue.SimpleQueue()
        self._threads: list[_Thread] = []
        self._given_up: list[_Thread] = []
        self._next_number = 0
        self._is_closed = False
        try:
            for worker in range(workers):
                self._threads.append(self._start(worker))
        except BaseException:
            self.close()
            raise

    def workers(self) -> list[WorkerInfo]:
        """Return all workers."""
        return [WorkerInfo(self.MACHINE, worker) for worker in range(len(self._threads))]

    def awaits_workers(self) -> bool:
        """Return False: a thread is made ready before it runs."""
        return False

    def submit(self, worker: int, jobs: Sequence[PositionJob]) -> None:
        """Queue positions at a thread."""
        thread = self._threads[worker]
        thread.calls.append(tuple(job.job_id for job in jobs))
        thread.inbox.put(jobs)

    def poll(self, timeout_s: float) -> list[PoolEvent]:
        """Wait for answers.

        Raises
        ------
        RunFailedError
            If a thread has failed.
        """
        events: list[PoolEvent] = []
        try:
            item = self._events.get(timeout=timeout_s) if timeout_s > 0 else self._events.get_nowait()
            while True:
                if isinstance(item, BaseException):
                    raise RunFailedError(f"a worker failed: {type(item).__name__}: {item}") from item
                if isinstance(item, Answered):
                    # Absent where it came just before its thread was given up: the answers are good all the same.
                    calls = self._threads[item.worker].calls
                    if item.job_ids in calls:
                        calls.remove(item.job_ids)
                events.append(item)
                item = self._events.get_nowait()
        except queue.Empty:
            return events

    def replace(self, worker: int) -> None:
        """Start another thread in a thread's place: one that does not obey cannot be ended."""
        thread = self._threads[worker]
        thread.is_given_up = True
        thread.inbox.put(None)
        self._given_up.append(thread)
        lost = tuple(job_id for call in thread.calls for job_id in call)
        self._notice(
            f"worker {worker} does not let its position go: a thread cannot be ended, so it runs on beside its"
            " replacement"
        )
        self._threads[worker] = self._start(worker)
        self._events.put(WorkerLost(worker, lost))
        self._events.put(WorkerJoined(WorkerInfo(self.MACHINE, worker)))

    def close(self) -> None:
        """Stop and join the threads; what a thread uses that does not end stays until the process ends."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stop()
        for thread in self._threads:
            thread.inbox.put(None)
        for thread in self._threads:
            thread.thread.join()
            thread.runs_on.close()
        for thread in self._given_up:
            thread.thread.join(timeout=_STUBBORN_S)
        if not any(thread.thread.is_alive() for thread in self._given_up):
            self._release()

    def _start(self, worker: int) -> _Thread:
        number = self._next_number
        self._next_number += 1
        return _Thread(worker, lambda: self._make(number), self._events)


class _ThreadAnalyst:
    """An analyst of this process, with a table of its own if it is to be fresh."""

    def __init__(self, analyst: Analyst, own: Segment | None) -> None:
        self._analyst, self._own = analyst, own

    def run(self, jobs: Sequence[PositionJob]) -> list[Answer]:
        """Search."""
        return self._analyst.run(jobs)

    def close(self) -> None:
        """Give the table back."""
        if self._own is not None:
            self._own.close()


def thread_pool(
    game: Game, settings: RunSettings, workers: int, notice: Callable[[str], None] = print_notice
) -> ThreadPool:
    """Return a pool of threads, each of which searches positions by itself.

    Parameters
    ----------
    game, settings
        What to search, and how.
    workers
        How many threads.
    notice
        As for `Searcher`.
    """
    # Its control words serve all; its table does where they share one.
    own_mb = settings.own_table_mb(game)
    machine = Segment.private(SMALLEST_MB if own_mb else settings.table_mb, control_words=CONTROL_WORDS)
    controls = Controls(machine.control_address)

    def make(number: int) -> Inbox:
        own = Segment.private(own_mb) if own_mb else None
        slot = number % MAX_WORKERS
        searcher = open_searcher(game, own or machine, controls, flags=settings.flags(game), slot=slot, notice=notice)
        return _ThreadAnalyst(Analyst(searcher, slot, is_fresh=own is not None), own)

    return ThreadPool(make, workers, lambda: controls.stop(1 << 62), machine.close, notice)


def open_pool(
    game: Game,
    settings: RunSettings,
    workers: int | None,
    address: str | None,
    notice: Callable[[str], None] = print_notice,
    options: ClusterOptions = ClusterOptions(),
) -> Pool:
    """Return the pool that a run's settings ask for.

    Parameters
    ----------
    game, settings
        What to search, and how.
    workers
        How many in all, 1 or more; None for all cores that there are.
    address
        None for threads of this process; else as for `cluster.ray_executor.RayExecutor`.
    notice
        As for `Searcher`.
    options
        Of workers on Ray.

    Raises
    ------
    RootsplitError
        If the number of workers, the table's size or the address are wrong.
    """
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise SettingsError(f"the number of workers must be from 1 to {MAX_WORKERS}, not {workers}")
    if settings.split > 1:
        from cluster.batch.session_pool import session_pool

        return session_pool(game, settings, workers, address, notice, options)
    if address is not None:
        from cluster.batch.ray_pool import RayPool

        return RayPool(game, settings, workers, address, notice, options)
    return thread_pool(game, settings, workers or cores(), notice)
