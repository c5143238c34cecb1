"""Keeps all workers busy with the rows of an input, and puts their answers in order.

Rows come in one by one and go out one by one; between the two at most `WINDOW` of them wait. An answer goes to the
journal before its row goes out, so that a run which is killed at any instant can be gone on with.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from cluster.batch.analyst import CALL_S
from cluster.batch.index import AnswerIndex
from cluster.batch.jobs import Answer, PositionJob, Status, pack_answer, unpack_answer
from cluster.batch.journal import Journal, JournalError
from cluster.batch.planner import Plan, Planner
from cluster.batch.pool import Answered, Pool
from cluster.batch.results import ResultRow, result_row
from cluster.batch.rows import InputRow
from cluster.batch.settings import RunSettings
from cluster.batch.summary import Tally
from cluster.executor import WorkerLost
from tt_store.errors import RunFailedError

WINDOW = 16_384
"""Rows between the last one written and the last one read: priorities reach no further, nor does an early answer wait
for an earlier row any longer."""
_SLICE = 256
"""Rows that are read before the workers are looked after again."""
_DEPTH = 2
"""Calls at a worker: one runs, one waits."""
_MOST_A_CALL = 1024
_POLL_S = 0.1
_ATTEMPTS = 3
"""A position whose workers have died so often is given up."""
_GRACE_S = 2.0
"""After the deadline, for a worker to answer before it is replaced."""
_DRAIN_S = 10.0
_NO_WORKER_S = 60.0
"""A batch whose workers have all been gone for so long, with none on its way, ends."""
_MEMORY = 0.8
"""Weight of the past in the mean time of a position."""


@dataclass(eq=False, slots=True)
class _Slot:
    """A row between its reading and its writing."""

    plan: Plan
    answer: Answer | None = None


@dataclass(eq=False, slots=True)
class _Search:
    """A position that is searched for one or more rows."""

    identity: int
    job: PositionJob
    priority: int
    slots: list[_Slot] = field(default_factory=list)
    attempts: int = 1
    is_alone: bool = False
    """Whether it gets a call of its own: its last worker died."""


class Runner:
    """Runs one batch.

    Parameters
    ----------
    planner, pool
        What to do with rows, and who does it.
    settings
        The run's.
    journal, index
        Where answers go, and which ones are there.
    is_ordered
        Whether rows go out in the order in which they came in.
    tally
        Counts of the rows that are written already and need not be looked at.
    skipped
        So many rows of the input are in the tally.
    written
        Indices of the rows that are written, but not in the tally.
    """

    def __init__(
        self,
        planner: Planner,
        pool: Pool,
        settings: RunSettings,
        journal: Journal,
        index: AnswerIndex,
        *,
        is_ordered: bool = True,
        tally: Tally | None = None,
        skipped: int = 0,
        written: Collection[int] = (),
    ) -> None:
        self._planner, self._pool, self._settings = planner, pool, settings
        self._journal, self._index, self._is_ordered = journal, index, is_ordered
        self._skipped, self._written = skipped, written
        self.tally = tally or Tally()
        self.is_complete = False
        """Whether all rows have gone out."""
        self.replaced_workers = 0
        self._stop_wanted = threading.Event()
        self._window: deque[_Slot] = deque()
        self._ready: deque[_Slot] = deque()
        self._open_rows = 0
        self._is_read = False
        self._searches: dict[int, _Search] = {}
        """By the number of their jobs: those that have no answer."""
        self._by_identity: dict[int, _Search] = {}
        self._waiting: list[tuple[int, int]] = []
        """A heap of (minus the priority, number of the job)."""
        self._calls: dict[int, deque[tuple[int, ...]]] = {}
        self._manned_s = time.monotonic()
        """When there was a worker last, or one on its way."""
        self._running_since_s: dict[int, float] = {}
        self._mean_s = CALL_S

    @property
    def rows_read(self) -> int | None:
        """How many rows the input has, once it has been read to its end."""
        return self.tally.rows + self._open_rows if self._is_read else None

    @property
    def busy_workers(self) -> int:
        """How many workers have a call."""
        return sum(1 for calls in self._calls.values() if calls)

    def stop(self) -> None:
        """Hand out nothing more: what runs may end, then the run does; from any thread."""
        self._stop_wanted.set()

    def run(self, rows: Iterator[InputRow | None]) -> Iterator[ResultRow | None]:
        """Yield the rows with their answers, and None from time to time where there is none.

        Parameters
        ----------
        rows
            The input; None where it has none yet.

        Raises
        ------
        RunFailedError
            If no worker is left.
        """
        while not self._stop_wanted.is_set():
            is_reading = self._read(rows)
            self._hand_out()
            yield from self._emit()
            if self._is_read and not self._open_rows:
                self.is_complete = True
                return
            self._take_in(0.0 if is_reading else _POLL_S)
            self._supervise()
            yield None
        yield from self._drain()

    def _read(self, rows: Iterator[InputRow | None]) -> bool:
        """Read and plan a slice of rows; returns whether more should be read at once."""
        for _ in range(_SLICE):
            if self._is_read or self._open_rows >= WINDOW:
                return False
            row = next(rows, _END)
            if row is _END:
                self._is_read = True
            elif row is None:
                return False
            elif row.index >= self._skipped:
                self._admit(self._planner.plan(row))
        return not self._is_read

    def _admit(self, plan: Plan) -> None:
        """Find out what a row waits for."""
        slot = _Slot(plan, plan.answer)
        if slot.answer is None:
            place = self._index.get(plan.identity)
            if place is not None:
                slot.answer = unpack_answer(self._journal.answer(place))
        if self._written and plan.row.index in self._written:
            self._count_written(slot)
            return
        self._open_rows += 1
        if self._is_ordered:
            self._window.append(slot)
        elif slot.answer is not None:
            self._ready.append(slot)
        if slot.answer is None:
            self._wish(slot)

    def _count_written(self, slot: _Slot) -> None:
        if slot.answer is None:
            raise JournalError("the output holds a row whose answer the journal does not know: give --restart")
        self._row_of(slot)

    def _wish(self, slot: _Slot) -> None:
        """Have a row's position searched, or wait for the search of an equal one."""
        plan = slot.plan
        search = self._by_identity.get(plan.identity)
        if search is None:
            assert plan.job is not None
            search = _Search(plan.identity, plan.job, plan.row.overrides.priority)
            self._searches[plan.job.job_id] = self._by_identity[plan.identity] = search
            self._queue(search)
        search.slots.append(slot)

    def _queue(self, search: _Search) -> None:
        heapq.heappush(self._waiting, (-search.priority, search.job.job_id))

    def _hand_out(self) -> None:
        """Give each worker its next calls: each of about as many positions as a call's time is enough for."""
        workers = self._pool.workers()
        now_s = time.monotonic()
        if workers or self._pool.awaits_workers() or not self._searches:
            self._manned_s = now_s
        if now_s - self._manned_s > _NO_WORKER_S:
            raise RunFailedError(
                f"no worker has been left for {_NO_WORKER_S:.0f} s: run the same command again to go on"
            )
        for depth in range(_DEPTH):
            for info in workers:
                if not self._waiting:
                    return
                calls = self._calls.setdefault(info.worker, deque())
                if len(calls) > depth:
                    continue
                if depth and self._may_read_more and len(self._waiting) < self._wanted_a_call():
                    # The worker is busy: its next call may grow meanwhile.
                    return
                jobs = self._next_jobs(len(workers))
                if not jobs:
                    return
                if not calls:
                    self._running_since_s[info.worker] = time.monotonic()
                calls.append(tuple(job.job_id for job in jobs))
                self._pool.submit(info.worker, jobs)

    @property
    def _may_read_more(self) -> bool:
        return not self._is_read and self._open_rows < WINDOW

    def _wanted_a_call(self) -> int:
        """Return for how many positions a call's time is enough; with a deadline one, so that its time is known."""
        if self._settings.deadline_s is not None:
            return 1
        return max(1, min(round(CALL_S / self._mean_s), _MOST_A_CALL))

    def _next_jobs(self, workers: int) -> list[PositionJob]:
        """Return the next call's positions."""
        most = self._wanted_a_call()
        if not self._may_read_more:
            # Near the end all workers should have some.
            most = min(most, -(-len(self._waiting) // (workers * _DEPTH)))
        jobs: list[PositionJob] = []
        while self._waiting and len(jobs) < most:
            search = self._searches.get(self._waiting[0][1])
            if search is not None and search.is_alone and jobs:
                break
            heapq.heappop(self._waiting)
            if search is None:
                # It came back from a lost worker, and then an answer of that worker after all.
                continue
            jobs.append(search.job)
            if search.is_alone:
                break
        return jobs

    def _take_in(self, timeout_s: float) -> None:
        """Wait for what happens, and deal with it."""
        for event in self._pool.poll(timeout_s):
            if isinstance(event, Answered):
                self._on_answered(event)
            elif isinstance(event, WorkerLost):
                self._on_lost(event.worker)

    def _on_answered(self, event: Answered) -> None:
        calls = self._calls.get(event.worker)
        if calls and calls[0] == event.job_ids:
            calls.popleft()
            now_s = time.monotonic()
            took_s = now_s - self._running_since_s[event.worker]
            self._running_since_s[event.worker] = now_s
            if event.answers:
                mean_s = max(took_s / len(event.answers), 1e-6)
                self._mean_s = _MEMORY * self._mean_s + (1 - _MEMORY) * mean_s if self._mean_s < CALL_S else mean_s
        for answer in event.answers:
            self._settle(answer, event.worker)
        for job_id in event.job_ids[len(event.answers) :]:
            # The call's time was up before it was begun.
            if (search := self._searches.get(job_id)) is not None:
                self._queue(search)

    def _settle(self, answer: Answer, worker: int) -> None:
        """Journal an answer and give it to its rows; a second one to the same position is no news."""
        search = self._searches.pop(answer.job_id, None)
        if search is None:
            return
        answer = answer._replace(attempts=search.attempts, worker=worker)
        del self._by_identity[search.identity]
        self._index.put(search.identity, self._journal.add_answer(search.identity, pack_answer(answer)))
        for slot in search.slots:
            slot.answer = answer
            if not self._is_ordered:
                self._ready.append(slot)

    def _on_lost(self, worker: int) -> None:
        """Give a dead worker's positions to others at once; those that it may have died of, one by one."""
        self.replaced_workers += 1
        calls = self._calls.pop(worker, deque())
        for number, job_ids in enumerate(calls):
            for job_id in job_ids:
                search = self._searches.get(job_id)
                if search is None:
                    continue
                if number == 0:
                    search.is_alone = True
                    search.attempts += 1
                if search.attempts > _ATTEMPTS:
                    search.attempts -= 1
                    reason = f"its worker died {_ATTEMPTS} times"
                    self._settle(Answer(job_id, Status.ERROR, reason), worker)
                else:
                    self._queue(search)

    def _supervise(self) -> None:
        """Give up positions whose worker does not answer after the deadline, and replace the worker."""
        deadline_s = self._settings.deadline_s
        if deadline_s is None:
            return
        now_s = time.monotonic()
        for worker, calls in list(self._calls.items()):
            if not calls or now_s - self._running_since_s[worker] < deadline_s + _GRACE_S:
                continue
            for job_id in calls[0]:
                reason = f"its search did not end within {deadline_s:g} s, and its worker did not obey"
                self._settle(Answer(job_id, Status.DEADLINE, reason, time_s=deadline_s), worker)
            self._pool.replace(worker)

    def _emit(self) -> Iterator[ResultRow]:
        """Yield the rows that may go out."""
        queue = self._window if self._is_ordered else self._ready
        while queue and queue[0].answer is not None:
            self._open_rows -= 1
            yield self._row_of(queue.popleft())

    def _row_of(self, slot: _Slot) -> ResultRow:
        """Return a row with its answer, and count it."""
        plan, answer = slot.plan, slot.answer
        assert answer is not None
        is_duplicate = plan.job is not None and plan.job.job_id != answer.job_id
        row = result_row(plan, answer, answer.job_id if is_duplicate else None, self._settings.is_deterministic)
        self.tally.add(row, plan.error_kind, answer.time_s)
        return row

    def _drain(self) -> Iterator[ResultRow | None]:
        """Wait for what each worker is at, for a while; what waits behind it is dropped."""
        end_s = time.monotonic() + _DRAIN_S
        wanted = {calls[0] for calls in self._calls.values() if calls}
        while any(calls and calls[0] in wanted for calls in self._calls.values()) and time.monotonic() < end_s:
            self._take_in(_POLL_S)
            yield from self._emit()
            yield None
        yield from self._emit()


_END = InputRow(-1, "", 0)
