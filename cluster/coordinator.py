"""Moves messages between a splitter and an executor, and keeps the limits on nodes and time."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cluster.executor import Executor, ResultEvent, WorkerLost
from cluster.logs import LOGGER
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.report import Overheads
from cluster.splitter import Splitter
from search import workspace as at
from search.aspiration import Window
from search.limits import NO_NODE_LIMIT, Limits
from search.results import NOTHING_FOUND, RootResult
from search.scores import MATE, mate_distance
from search.statistics import Statistics
from tt_store.errors import RunFailedError

_POLL_S = 0.1
_NO_WORKER_S = 60.0
_ANSWER_S = 60.0
_FASTEST_NODES_PER_S = 100e6
"""No worker searches more."""
_LEAST_SHARE = 1000
"""A task is not handed out again for fewer nodes than this."""
_CALLS_WORTH = 10.0
"""A call's tasks should take so many times as long as the call itself costs; short ones travel in lists. Not more: a
list's results come late. Lists that spared a master of 256 workers cost three times the nodes (simulated)."""
_MOST_A_CALL = 16
_MEMORY = 0.98
"""Weight of the past in the mean length of a task."""


class Epochs:
    """Numbers the root searches of a session, and ends them from any thread.

    Parameters
    ----------
    executor
        Where the tasks of the root searches run.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._epoch = 0
        self._stop_wanted = threading.Event()
        self._lock = threading.Lock()

    @property
    def current(self) -> int:
        """Number of the latest root search."""
        return self._epoch

    @property
    def is_stopped(self) -> bool:
        """Whether the whole search is to end."""
        return self._stop_wanted.is_set()

    def begin(self) -> None:
        """Begin a whole search: what was stopped before is forgotten."""
        self._stop_wanted.clear()

    def next(self) -> int | None:
        """Return the number of a new root search, or None if the whole search is to end."""
        with self._lock:
            self._epoch = next(self._executor.numbers.epochs)
            return None if self.is_stopped else self._epoch

    def stop(self) -> None:
        """End the whole search at once; from any thread."""
        # Flag and stop word change together: a root search that begins meanwhile sees both or neither. One whose
        # epoch alone were stopped would hand out its tasks for ever.
        with self._lock:
            self._stop_wanted.set()
            self._executor.stop(self._epoch)


class _NodePool:
    """Shares a node limit out over running tasks, so that their sum never passes it."""

    def __init__(self, limit: int) -> None:
        self.free = limit

    def take(self, sharers: int, most: int = NO_NODE_LIMIT) -> int:
        """Reserve an equal share of what is free for one of so many tasks, which has no use for more than so much."""
        share = max(1, min(self.free // sharers, most)) if self.free > 0 else 0
        self.free -= share
        return share

    def give_back(self, reserved: int, used: int) -> None:
        """Return what a task did not use, or take what it used beyond: a kernel ends a few nodes late."""
        self.free += reserved - used


@dataclass
class _Running:
    """A task that is out."""

    worker: int
    call: int
    reserved: int
    submitted_s: float
    follows: bool
    """Whether it waits for what others search."""


class Coordinator:
    """The root search of a cluster.

    Parameters
    ----------
    executor, splitter
        Between whom messages move.
    epochs
        Numbers root searches, and says when to end.
    limits
        Nodes are kept here; time is kept by whoever calls `Epochs.stop`.
    splitter_after
        Returns the strategy for the position after a line, and whether the root's side is to move there.
    on_poll
        Called after each poll of the executor.
    """

    def __init__(
        self,
        executor: Executor,
        splitter: Splitter,
        epochs: Epochs,
        limits: Limits,
        splitter_after: Callable[[tuple[int, ...]], tuple[Splitter, bool]],
        on_poll: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_poll = on_poll
        self._executor, self._splitter, self._epochs = executor, splitter, epochs
        self._strategy, self._splitter_after = splitter, splitter_after
        self._pool = _NodePool(limits.node_limit)
        self._running: dict[int, _Running] = {}
        self._leading = 0
        """How many of those search something of their own."""
        self._spent = Statistics()
        self._is_out_of_nodes = False
        self._has_run_out = False
        """Whether a task of this root search has come to the end of its nodes."""
        self._deadline_s = math.inf
        if executor.is_simulated and limits.time_s is not None:
            self._deadline_s = executor.now_s() + limits.time_s
        self._busy_s: defaultdict[int, float] = defaultdict(float)
        self._calls: defaultdict[int, Counter[int]] = defaultdict(Counter)
        """Of each worker the calls that are out, with the number of tasks that each still has."""
        self._mean_task_s = math.inf
        self._since_s: dict[int, float] = {}
        self._assigned_s = self._splitter_s = 0.0
        self._wasted_nodes = 0
        self._exchanged_before = executor.exchanged_entries
        self._tasks = self._aborted = 0

    def __call__(self, depth: int, window: Window, left_out: tuple[int, ...]) -> RootResult:
        """Search the root to a depth with a window, without some of the first moves."""
        self._spent = Statistics()
        self._splitter = self._strategy
        result = self._search(depth, window, left_out)
        wants_line = result.is_finished and window.beta - window.alpha > 1 and result.score > window.alpha
        if wants_line and not result.line:
            # Null windows had proved the score: a tree that knows nothing of it finds a line, the tables warm.
            self._splitter, _ = self._splitter_after(())
            result = self._search(depth, window, left_out)
        if result.is_finished and window.holds(result.score):
            result = replace(result, line=self._whole_line(result))
        return replace(result, statistics=self._spent)

    def _whole_line(self, result: RootResult) -> tuple[int, ...]:
        """Return the line to a decided game's end: null windows proved the score, and know no line beyond their root.

        What is missing is searched from where the line ends; the tables hold most of it.
        """
        line, distance = result.line, mate_distance(result.score)
        while distance is not None and 0 < len(line) < abs(distance):
            left = abs(distance) - len(line)
            self._splitter, is_same_side = self._splitter_after(line)
            score = MATE - left if (distance > 0) == is_same_side else left - MATE
            found = self._search(left, Window(score - 1, score + 1))
            # A selective search need not find again what it found with other windows.
            if not found.is_finished or found.score != score or not found.line:
                break
            line += found.line
        return line

    def _search(self, depth: int, window: Window, left_out: tuple[int, ...] = ()) -> RootResult:
        """Have the present splitter search its root."""
        epoch = self._epochs.next()
        if epoch is None:
            return NOTHING_FOUND
        self._has_run_out = False
        self._splitter.start(depth, window, epoch, len(self._executor.workers()), left_out)
        last_sign_s = self._executor.now_s()
        while (result := self._splitter.result()) is None:
            self._hand_out()
            if self._executor.now_s() >= self._deadline_s:
                self._epochs.stop()
            if self._epochs.is_stopped or (self._is_out_of_nodes and not self._leading):
                self.drain()
                return self._splitter.so_far()
            if self._take_in() or self._executor.workers() or self._executor.awaits_workers():
                last_sign_s = self._executor.now_s()
            elif self._executor.now_s() - last_sign_s > _NO_WORKER_S:
                raise RunFailedError(f"no worker has been left for {_NO_WORKER_S:.0f} s, so the search ends")
            self._on_poll()
        self.drain()
        return result

    def drain(self) -> None:
        """End what still runs and wait for it: workers answer within a poll of their kernel.

        Its nodes belong to this root search, and an idle worker is what the next one needs.

        Raises
        ------
        RunFailedError
            If a worker does not answer.
        """
        if not self._running:
            return
        self._executor.stop(self._epochs.current)
        deadline_s = self._executor.now_s() + _ANSWER_S
        while self._running:
            self._take_in()
            if self._executor.now_s() > deadline_s:
                raise RunFailedError(f"{len(self._running)} workers have not answered for {_ANSWER_S:.0f} s")

    def overheads(self, time_s: float, workers: int) -> Overheads:
        """Return where the workers' time went."""
        capacity_s = max(time_s * workers, 1e-9)
        return Overheads(
            idle=max(0.0, 1 - self._assigned_s / capacity_s),
            communication=max(0.0, (self._assigned_s - sum(self._busy_s.values())) / capacity_s),
            tasks=self._tasks,
            aborted_tasks=self._aborted,
            wasted_nodes=self._wasted_nodes,
            splitter_s=self._splitter_s,
            exchanged_entries=self._executor.exchanged_entries - self._exchanged_before,
            busy_s=tuple(self._busy_s[worker] for worker in sorted(self._busy_s)),
        )

    def _hand_out(self) -> None:
        """Give the idle workers what the splitter wants; abort and narrow what runs."""
        calls, workers = self._calls, self._executor.workers()
        idle = [info for info in workers if not calls[info.worker]]
        ahead = [info for info in workers if 0 < len(calls[info.worker]) <= self._executor.prefetch]
        if not self._is_out_of_nodes:
            further = (idle + ahead) * (self._tasks_a_call() - 1)
            started_s = time.perf_counter()
            tasks = self._splitter.next_tasks(idle, ahead + further)
            self._splitter_s += time.perf_counter() - started_s
            self._submit(tasks)
        self._executor.abort(self._splitter.aborts())
        for task_id, bound in self._splitter.bounds():
            self._executor.set_bound(task_id, bound)

    def _tasks_a_call(self) -> int:
        """Return how many tasks a call should carry, so that it costs little beside what it carries."""
        wanted = _CALLS_WORTH * self._executor.call_s / self._mean_task_s
        return max(1, min(_MOST_A_CALL, round(wanted)))

    def _submit(self, tasks: list[tuple[WorkerInfo, Task]]) -> None:
        """Send tasks, each worker's as one call, which is known by its first task."""
        lists: dict[int, list[Task]] = {}
        for number, (info, task) in enumerate(tasks):
            reserved = self._pool.take(len(tasks) - number, task.node_limit)
            if not reserved:
                # Others hold what is left of the nodes; some may come back.
                self._splitter.on_lost(task.task_id)
                self._is_out_of_nodes = not self._leading
                continue
            batch = lists.setdefault(info.worker, [])
            batch.append(task._replace(node_limit=reserved))
            call = batch[0].task_id
            self._running[task.task_id] = _Running(info.worker, call, reserved, self._executor.now_s(), task.follows)
            self._leading += not task.follows
            self._tasks += not task.follows
        for worker, batch in lists.items():
            if not self._calls[worker]:
                self._since_s[worker] = self._executor.now_s()
            self._calls[worker][batch[0].task_id] = len(batch)
            LOGGER.debug("worker=%d tasks=%s submitted", worker, [task.task_id for task in batch])
            self._executor.submit(worker, batch)

    def _take_in(self) -> bool:
        """Wait for events and feed them to the splitter; returns False if there were none."""
        events = self._executor.poll(_POLL_S)
        for event in events:
            if isinstance(event, ResultEvent):
                self._on_result(event.result)
            elif isinstance(event, WorkerLost):
                self._on_lost(event.task_ids)
        return bool(events)

    def _end(self, task_id: int) -> _Running | None:
        """Take a task off its worker; returns None if it was not out."""
        running = self._running.pop(task_id, None)
        if running is not None:
            self._leading -= not running.follows
            calls = self._calls[running.worker]
            calls[running.call] -= 1
            if not calls[running.call]:
                del calls[running.call]
            if not calls:
                self._assigned_s += self._executor.now_s() - self._since_s.pop(running.worker)
        return running

    def _on_result(self, result: TaskResult) -> None:
        running = self._end(result.task_id)
        if running is None:
            return
        self._busy_s[running.worker] += result.elapsed_s
        if running.follows:
            # Where nobody led it was without a task.
            self._assigned_s -= max(0.0, self._executor.now_s() - running.submitted_s - result.elapsed_s)
        else:
            past = result.elapsed_s if math.isinf(self._mean_task_s) else self._mean_task_s
            self._mean_task_s = max(1e-6, _MEMORY * past + (1 - _MEMORY) * result.elapsed_s)
        self._spent = self._spent.merged(result.statistics)
        self._pool.give_back(running.reserved, result.statistics.nodes)
        started_s = time.perf_counter()
        self._splitter.on_result(result)
        self._splitter_s += time.perf_counter() - started_s
        if not result.is_finished and not running.follows:
            self._aborted += 1
            self._wasted_nodes += result.statistics.nodes
        self._has_run_out |= result.status == at.OUT_OF_NODES
        if self._has_run_out and not self._leading and self._pool.free < _LEAST_SHARE:
            self._is_out_of_nodes = True

    def _on_lost(self, task_ids: Iterable[int]) -> None:
        """Hand a lost worker's tasks to others; what it spent is unknown, but no more than its time allowed."""
        for task_id in task_ids:
            running = self._end(task_id)
            if running is not None:
                elapsed_s = self._executor.now_s() - running.submitted_s
                self._pool.give_back(running.reserved, min(running.reserved, int(elapsed_s * _FASTEST_NODES_PER_S)))
                self._splitter.on_lost(task_id)
