"""A view of an executor: some of its workers, as an executor of their own that remembers what they did."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cluster.executor import Event, Executor, ResultEvent
from cluster.records import Task, WorkerInfo
from search.mcts_settings import Part

_PUMP_S = 0.002
_SALT_STEP = 0x2545F4914F6CDD1D
_SALT_MASK = (1 << 62) - 1


class Span(NamedTuple):
    """What a worker did from when to when, in seconds from the beginning of the crew."""

    worker: int
    begin_s: float
    end_s: float
    is_finished: bool
    """Whether the task brought a score."""
    nodes: int


class Crew:
    """Some workers of an executor that stays another's: closing the crew does not end it.

    Parameters
    ----------
    executor
        Whose workers they are.
    workers
        Which.
    poll
        Where their events come from; the executor's own where they are the only ones at work.
    salt
        Mixed into their tasks' keys: crews of different salts share nothing in a table.
    least_grain_s
        Overrides the executor's: of a simulation that imitates another.
    table_part
        Which part of each machine's table is the crew's, as far as what lies there is one search's own.
    """

    def __init__(
        self,
        executor: Executor,
        workers: Sequence[WorkerInfo],
        poll: Callable[[float], list[Event]] | None = None,
        salt: int = 0,
        least_grain_s: float | None = None,
        table_part: Part = Part(),
    ) -> None:
        self._executor, self._infos, self._salt = executor, list(workers), salt
        self._poll = poll or executor.poll
        self.numbers, self.flags = executor.numbers, executor.flags
        self.least_grain_s = executor.least_grain_s if least_grain_s is None else least_grain_s
        self.call_s, self.prefetch = executor.call_s, executor.prefetch
        self.is_simulated, self.has_teams, self.table_part = executor.is_simulated, executor.has_teams, table_part
        self.spans: list[Span] = []
        self._begin_s = executor.now_s()

    @property
    def exchanged_entries(self) -> int:
        """How many entries the executor's machines have exchanged so far."""
        return self._executor.exchanged_entries

    def workers(self) -> list[WorkerInfo]:
        """Return those of the crew that live."""
        alive = {info.worker for info in self._executor.workers()}
        return [info for info in self._infos if info.worker in alive]

    def awaits_workers(self) -> bool:
        """Tell whether the executor's workers are on their way."""
        return self._executor.awaits_workers()

    def now_s(self) -> float:
        """Return the executor's time."""
        return self._executor.now_s()

    def known_move(self, key: int) -> int:
        """Ask the executor's tables."""
        return self._executor.known_move(key ^ self._salt)

    def begin_search(self) -> None:
        """Advance the generation of the executor's tables."""
        self._executor.begin_search()

    def forget(self) -> None:
        """Empty the executor's tables."""
        self._executor.forget()

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Queue tasks at a worker."""
        salted = [task._replace(salt=task.salt ^ self._salt) for task in tasks] if self._salt else tasks
        self._executor.submit(worker, salted)

    def poll(self, timeout_s: float) -> list[Event]:
        """Return the crew's events, and note what its workers did."""
        events = self._poll(timeout_s)
        end_s = dict.fromkeys((info.worker for info in self._infos), self._executor.now_s() - self._begin_s)
        # Results of one worker that arrive together were found one after the other.
        for event in reversed(events):
            if isinstance(event, ResultEvent):
                result, end = event.result, end_s[event.worker]
                begin = max(0.0, end - result.elapsed_s)
                self.spans.append(Span(event.worker, begin, end, result.is_finished, result.statistics.nodes))
                end_s[event.worker] = begin
        return events

    def abort(self, task_ids: Iterable[int]) -> None:
        """Tell tasks that they are moot."""
        self._executor.abort(task_ids)

    def set_bound(self, task_id: int, bound: int) -> None:
        """Tell a task that its beta fell."""
        self._executor.set_bound(task_id, bound)

    def stop(self, epoch: int) -> None:
        """End all tasks of the executor up to an epoch."""
        self._executor.stop(epoch)

    def hashfull(self) -> float:
        """Return the share of the executor's tables that is in use."""
        return self._executor.hashfull()

    def deepest(self, most: int) -> list[bytes]:
        """Return the deepest entries of the executor's tables."""
        return self._executor.deepest(most)

    def deliver(self, messages: Sequence[bytes]) -> None:
        """Put entries into the executor's tables."""
        self._executor.deliver(messages)

    def close(self) -> None:
        """Do nothing: the executor is another's."""


def spread(infos: Sequence[WorkerInfo], workers: int, machines: int | None) -> list[WorkerInfo]:
    """Return so many workers on so many machines, evenly; None for as few machines as hold them.

    Returns fewer workers than asked where there are not enough.
    """
    by_machine: dict[str, list[WorkerInfo]] = {}
    for info in infos:
        by_machine.setdefault(info.machine, []).append(info)
    if machines is None:
        return list(itertools.chain.from_iterable(by_machine.values()))[:workers]
    seats = list(by_machine.values())[:machines]
    rounds = itertools.zip_longest(*seats)
    return [info for seat in rounds for info in seat if info is not None][:workers]


@contextmanager
def crews_of_one(executor: Executor, workers: Sequence[WorkerInfo]) -> Iterator[list[Crew]]:
    """Make each of some workers a crew of its own that shares nothing with the others, to search at once.

    One thread polls the executor for all and passes the events on; it ends with the block.
    """
    inboxes: dict[int, queue.SimpleQueue[Event | BaseException]] = {
        info.worker: queue.SimpleQueue() for info in workers
    }
    is_over = threading.Event()

    def pump() -> None:
        while not is_over.is_set():
            try:
                for event in executor.poll(_PUMP_S):
                    inboxes[event.worker if isinstance(event.worker, int) else event.worker.worker].put(event)
            except BaseException as error:
                for inbox in inboxes.values():
                    inbox.put(error)
                return

    thread = threading.Thread(target=pump, name="rootsplit-pump", daemon=True)
    thread.start()
    try:
        yield [
            Crew(
                executor,
                [info],
                _reader(inboxes[info.worker]),
                number * _SALT_STEP & _SALT_MASK,
                table_part=Part(number, len(workers)),
            )
            for number, info in enumerate(workers)
        ]
    finally:
        is_over.set()
        thread.join()


def _reader(inbox: queue.SimpleQueue[Event | BaseException]) -> Callable[[float], list[Event]]:
    def poll(timeout_s: float) -> list[Event]:
        try:
            item = inbox.get(timeout=max(timeout_s, 1e-6))
        except queue.Empty:
            return []
        if isinstance(item, BaseException):
            raise item
        return [item]

    return poll
