"""A cluster in virtual time: any number of machines and workers, real searches of the real kernel.

Each simulated worker is a thread whose kernel stops at every poll and waits for its turn (`Flags.stepped`), so that its
whole state stays on its own stack: nothing is searched twice, and an abort costs just the work done before it. One
thread runs at any moment, always the one that is earliest in virtual time; so a run is repeatable, and every search
meets the table of its machine as it stood at that virtual moment, to within one step. A step costs two switches of
threads, about 20 microseconds of real time.

Virtual time: a worker advances by nodes over `node_rate`; a message takes `latency_s` each way; the master is busy for
`master_s` with each call sent and each answer taken in, and for `event_s` with each of the tasks and results in them.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cluster.executor import Event, Numbers, ResultEvent
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.simulated_worker import ControlMessage, SimulatedBoards, SimulatedWorker
from cluster.task_runner import following_status
from search import workspace as at
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags
from search.mcts_settings import Part
from search.referee import print_notice
from search.rules import Game
from search.searcher import variant_salt
from search.searchers import open_searcher
from search.turns import Turns
from tt_store.deepest import deepest
from tt_store.errors import RunFailedError
from tt_store.exchange import Outbox, deliver, period_s
from tt_store.layout import NO_MOVE
from tt_store.news import News
from tt_store.segment import Segment

WORKERS_A_MACHINE = 16


@dataclass(frozen=True)
class ClusterModel:
    """What a simulated cluster costs; the defaults were measured on a two-core machine with Ray."""

    node_rate: float = 5e6
    """Nodes a second of one worker."""
    latency_s: float = 0.00075
    """One way of a message."""
    master_s: float = 0.00015
    """Of the master, for each call sent and for each answer."""
    event_s: float = 0.00005
    """Of the master, for each task and each result: the splitter's own time."""
    step_s: float = 0.001
    """How long a worker runs before others get their turn: what a table shows is this exact."""
    workers_a_machine: int = WORKERS_A_MACHINE
    board_s: float = 0.0001
    """Until a worker sees what another one of its machine has told."""
    exchange_s: float | None = None
    """Between two batches of deep entries from a machine to all the others; 0 for none, None as on Ray."""


class _Call(NamedTuple):
    """Tasks on their way to a worker."""

    tasks: tuple[Task, ...]


class _Answer(NamedTuple):
    """A call's results on their way to the master."""

    results: tuple[TaskResult, ...]


_Payload = _Call | _Answer | bytes | None


class SimulatedExecutor:
    """Runs tasks in virtual time.

    Parameters
    ----------
    game
        The game.
    workers
        How many workers, on as many machines as `model` needs for them.
    table_mb
        Size of each machine's table in MB.
    model
        The cluster's costs.
    flags, notice
        As for `Searcher`.
    """

    least_grain_s = 0.0
    prefetch = 1
    table_part = Part()
    is_simulated = True
    has_teams = True

    def __init__(
        self,
        game: Game,
        workers: int,
        table_mb: float = 64.0,
        *,
        model: ClusterModel = ClusterModel(),
        flags: Flags = Flags(),
        notice: Callable[[str], None] = print_notice,
    ) -> None:
        self.model = model
        self.call_s = 2 * model.master_s
        self.numbers = Numbers()
        machines = -(-workers // model.workers_a_machine)
        self._segments = [Segment.private(table_mb, control_words=CONTROL_WORDS) for _ in range(machines)]
        self._controls = [Controls(segment.control_address) for segment in self._segments]
        self.flags, self._salt = flags, variant_salt(flags)
        self._now_s = 0.0
        self.exchanged_entries = 0
        self._exchange_s = period_s(machines) if model.exchange_s is None else model.exchange_s
        travels = machines > 1 and self._exchange_s > 0 and flags.keeps_entries
        self._next_exchange_s = self._exchange_s if travels else math.inf
        machine_tables = zip(self._segments, self._controls, strict=True) if travels else ()
        self._outboxes = [Outbox(segment, News(controls.news_address)) for segment, controls in machine_tables]
        self._order = itertools.count()
        self._events: list[tuple[float, int, int, _Payload]] = []
        """(time, order among equals, worker or machine, what): a call, its answer or a batch of entries arrives, or,
        with None, a worker has its turn."""
        self._boards = SimulatedBoards()
        self._worker_of: dict[int, int] = {}
        self._is_closed = False
        step_nodes = max(1, int(model.step_s * model.node_rate))
        self._workers = [
            self._spawn(game, number, flags._replace(stepped=True), step_nodes, notice) for number in range(workers)
        ]

    def awaits_workers(self) -> bool:
        """Return False: all are there from the beginning."""
        return False

    def now_s(self) -> float:
        """Return the virtual time, as the master sees it."""
        return self._now_s

    def workers(self) -> list[WorkerInfo]:
        """Return all workers: none is ever lost."""
        return [worker.info for worker in self._workers]

    def begin_search(self) -> None:
        """Advance every table's generation."""
        for segment in self._segments:
            segment.advance_generation()

    def forget(self) -> None:
        """Empty every table and every worker's history."""
        for segment in self._segments:
            segment.clear()
        for outbox in self._outboxes:
            outbox.forget()
        for worker in self._workers:
            worker.searcher.forget()

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Send tasks to a worker as one call."""
        self._now_s += self.model.master_s + self.model.event_s * len(tasks)
        self._worker_of.update((task.task_id, worker) for task in tasks)
        self._schedule(self._now_s + self.model.latency_s, worker, _Call(tuple(tasks)))

    def poll(self, timeout_s: float) -> list[Event]:
        """Let virtual time pass until a result has reached the master, or so many virtual seconds are over."""
        deadline_s = self._now_s + timeout_s
        while self._events:
            if self._events[0][0] > deadline_s:
                break
            if self._events[0][0] >= self._next_exchange_s:
                self._exchange(self._events[0][0])
            time_s, _, number, payload = heapq.heappop(self._events)
            if isinstance(payload, bytes):
                self.exchanged_entries += deliver(self._segments[number], payload)
                continue
            worker = self._workers[number]
            worker.has_turn = worker.has_turn and payload is not None
            if isinstance(payload, _Answer):
                self._now_s = max(self._now_s, time_s) + self.model.master_s
                self._now_s += self.model.event_s * len(payload.results)
                for result in payload.results:
                    self._worker_of.pop(result.task_id, None)
                return [ResultEvent(number, result) for result in payload.results]
            if payload is None:
                self._advance(worker, time_s)
                continue
            worker.inbox.extend(payload.tasks)
            worker.calls.append(len(payload.tasks))
            self._wake(worker, max(time_s, worker.free_s))
        self._now_s = max(self._now_s, deadline_s)
        return []

    def abort(self, task_ids: Iterable[int]) -> None:
        """Send word to tasks that they are moot."""
        for task_id in task_ids:
            self._send(task_id, None)

    def set_bound(self, task_id: int, bound: int) -> None:
        """Send word to a task that its beta fell."""
        self._send(task_id, bound)

    def stop(self, epoch: int) -> None:
        """End all tasks up to an epoch, at their next step."""
        for controls in self._controls:
            controls.stop(epoch)
        for worker in self._workers:
            if worker.follow is not None:
                self._wake(worker, self._now_s + self.model.latency_s)

    def known_move(self, key: int) -> int:
        """Ask all machines' tables, as if their answers had come with the last results."""
        referee = self._workers[0].searcher.referee
        moves = (referee.known_move(segment, key ^ self._salt) for segment in self._segments)
        return next((move for move in moves if move != NO_MOVE), NO_MOVE)

    def hashfull(self) -> float:
        """Return the mean share of the tables that is in use."""
        return sum(segment.hashfull() for segment in self._segments) / len(self._segments)

    def deepest(self, most: int) -> list[bytes]:
        """Look through all tables, at no virtual cost."""
        return [message for segment in self._segments for message in deepest(segment, most // len(self._segments))]

    def deliver(self, messages: Sequence[bytes]) -> None:
        """Put entries into all tables, at no virtual cost."""
        for segment in self._segments:
            for message in messages:
                deliver(segment, message)

    def close(self) -> None:
        """End all threads and give the tables back."""
        if self._is_closed:
            return
        self._is_closed = True
        self.stop(1 << 62)
        for worker in self._workers:
            while worker.task is not None and worker.result is None and worker.failure is None:
                worker.turns.take()
            worker.is_closing = True
            worker.turns.resume()
            if worker.thread is not None:
                worker.thread.join()
            worker.turns.close()
        for segment in self._segments:
            segment.close()

    def _spawn(
        self, game: Game, number: int, flags: Flags, step_nodes: int, notice: Callable[[str], None]
    ) -> SimulatedWorker:
        machine, slot = divmod(number, self.model.workers_a_machine)
        turns = Turns()
        searcher = open_searcher(
            game, self._segments[machine], self._controls[machine], flags=flags, slot=slot, notice=notice,
            turns=turns, step_nodes=step_nodes,
        )  # fmt: skip
        worker = SimulatedWorker(WorkerInfo(f"machine {machine}", number), machine, searcher, turns)
        worker.thread = threading.Thread(target=worker.work, name=f"rootsplit-simulated-{number}", daemon=True)
        worker.thread.start()
        return worker

    def _schedule(self, time_s: float, number: int, payload: _Payload = None) -> None:
        heapq.heappush(self._events, (time_s, next(self._order), number, payload))

    def _exchange(self, time_s: float) -> None:
        """Have each machine send a batch of deep entries to all the others."""
        self._next_exchange_s = time_s + self._exchange_s
        for sender, outbox in enumerate(self._outboxes):
            message = outbox.collect()
            if message:
                for receiver in range(len(self._segments)):
                    if receiver != sender:
                        self._schedule(time_s + self.model.latency_s, receiver, message)

    def _send(self, task_id: int, bound: int | None) -> None:
        number = self._worker_of.get(task_id)
        if number is not None:
            worker, arrival_s = self._workers[number], self._now_s + self.model.latency_s
            worker.messages.append(ControlMessage(arrival_s, task_id, bound))
            if worker.follow is not None:
                self._wake(worker, arrival_s)

    def _wake(self, worker: SimulatedWorker, time_s: float) -> None:
        """Give a worker that waits for something a turn."""
        if worker.task is None and not worker.has_turn:
            worker.has_turn = True
            self._schedule(time_s, worker.info.worker)

    def _begin(self, worker: SimulatedWorker, time_s: float) -> bool:
        """Give a worker its next task; returns False if it has none, and waits or is through."""
        if worker.follow is None:
            if not worker.inbox:
                return False
            worker.task = worker.take()
        if worker.task is not None:
            self._boards.lead(worker, worker.task)
            for other in self._workers_of(worker.machine) if worker.task.board else ():
                if other.follow is not None and other.follow.board == worker.task.board:
                    self._wake(other, time_s + self.model.board_s)
        elif worker.follow is not None:
            worker.deliver(time_s)
            status = following_status(worker.controls, worker.follow, worker.followed_nodes.nodes)
            if status != at.RUNNING:
                self._answer(worker, worker.end_following(worker.follow, status, self.model.node_rate), time_s)
                return False
            worker.task = self._boards.task_for(worker, worker.follow)
        worker.nodes_seen = 0
        return worker.task is not None

    def _workers_of(self, machine: int) -> list[SimulatedWorker]:
        first = machine * self.model.workers_a_machine
        return self._workers[first : first + self.model.workers_a_machine]

    def _advance(self, worker: SimulatedWorker, time_s: float) -> None:
        """Let a worker run one step of its task, or of the next one; it has one turn at a time in the heap."""
        if worker.task is None and not self._begin(worker, time_s):
            return
        worker.deliver(time_s)
        # Only this worker's thread runs until it gives its turn back.
        worker.turns.take()
        if worker.failure is not None:
            raise RunFailedError(f"a simulated worker failed: {worker.failure}") from worker.failure
        result, task = worker.result, worker.task
        if result is None or task is None:
            nodes = worker.controls.progress(worker.searcher.slot)
            time_s += max(1, nodes - worker.nodes_seen) / self.model.node_rate
            worker.nodes_seen = nodes
            worker.has_turn = True
            self._schedule(time_s, worker.info.worker)
            return
        total = result.statistics.nodes
        time_s += max(0, total - worker.nodes_seen) / self.model.node_rate
        result = result._replace(elapsed_s=total / self.model.node_rate)
        worker.task, worker.result, worker.free_s = None, None, time_s
        if worker.follow is not None:
            self._boards.end_followed(worker, worker.follow, result)
            self._wake(worker, time_s)
        else:
            self._answer(worker, self._boards.end_led(worker, task, result), time_s)

    def _answer(self, worker: SimulatedWorker, result: TaskResult, time_s: float) -> None:
        """Send the results of a call once all of them are there, and go on."""
        worker.results.append(result)
        if len(worker.results) == worker.calls[0]:
            worker.calls.popleft()
            self._schedule(time_s + self.model.latency_s, worker.info.worker, _Answer(tuple(worker.results)))
            worker.results.clear()
        if worker.inbox:
            self._wake(worker, time_s)
