"""One simulated worker, and what the workers of a simulated machine tell each other on its boards."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.records import Task, TaskResult, WorkerInfo
from cluster.task_runner import answered, followed, search_task, taken_up
from search import workspace as at
from search.controls import Controls
from search.searchers import AnySearcher
from search.statistics import Statistics
from search.turns import Turns


class ControlMessage(NamedTuple):
    """A control word on its way to a worker."""

    arrival_s: float
    task_id: int
    bound: int | None
    """None to abort."""


@dataclass(eq=False)
class SimulatedWorker:
    """A thread that searches when its turn has come, and the books of its virtual time."""

    info: WorkerInfo
    machine: int
    searcher: AnySearcher
    turns: Turns
    inbox: deque[Task] = field(default_factory=deque)
    calls: deque[int] = field(default_factory=deque)
    """The sizes of the calls that have arrived and have not been answered."""
    results: list[TaskResult] = field(default_factory=list)
    """Of the first call: they travel together."""
    messages: list[ControlMessage] = field(default_factory=list)
    task: Task | None = None
    """What its kernel is at."""
    result: TaskResult | None = None
    failure: BaseException | None = None
    nodes_seen: int = 0
    free_s: float = 0.0
    """When its last task ended."""
    has_turn: bool = False
    """Whether a turn is coming."""
    follow: Task | None = None
    """The task that tells whose to take up."""
    followed_id: int = 0
    """The task that it took up last."""
    followed_nodes: Statistics = Statistics()
    is_closing: bool = False
    thread: threading.Thread | None = None

    @property
    def controls(self) -> Controls:
        """The control words of its machine."""
        return self.searcher.controls

    def work(self) -> None:
        """Run tasks, each when its turn has come: the thread's body."""
        while True:
            self.turns.wait()
            if self.is_closing or self.task is None:
                return
            try:
                self.result = search_task(self.searcher, self.task, 0 if self.follow is None else self.follow.task_id)
            except BaseException as error:
                self.failure = error
            self.turns.give_back()

    def take(self) -> Task | None:
        """Take the next task; returns it if it is to be searched, None if others are to be followed."""
        task = self.inbox.popleft()
        if task.follows:
            self.follow, self.followed_id, self.followed_nodes = task, 0, Statistics()
            return None
        return task

    def deliver(self, time_s: float) -> None:
        """Write the control words that have arrived by now."""
        if not self.messages:
            return
        due = [message for message in self.messages if message.arrival_s <= time_s]
        self.messages = [message for message in self.messages if message.arrival_s > time_s]
        for message in due:
            if message.bound is None:
                self.controls.abort(message.task_id)
            else:
                self.controls.set_bound(message.task_id, message.bound)

    def end_following(self, follow: Task, status: int, node_rate: float) -> TaskResult:
        """Stop following, and return what came of it."""
        self.follow = None
        return followed(follow, status, self.followed_nodes, self.followed_nodes.nodes / node_rate)


class SimulatedBoards:
    """The boards of all machines: who leads what, and what a follower has answered."""

    def __init__(self) -> None:
        self._led: dict[tuple[int, int], Task] = {}
        self._answers: dict[int, TaskResult] = {}

    def lead(self, worker: SimulatedWorker, task: Task) -> None:
        """Write a leader's task on its board."""
        if task.board:
            self._led[worker.machine, task.board] = task

    def task_for(self, worker: SimulatedWorker, follow: Task) -> Task | None:
        """Return the task that a follower is to take up, None if there is none or it has been at it."""
        led = self._led.get((worker.machine, follow.board))
        task = taken_up(follow, led, worker.followed_id, worker.followed_nodes.nodes)
        if task is not None:
            worker.followed_id = task.task_id
        return task

    def end_led(self, worker: SimulatedWorker, task: Task, result: TaskResult) -> TaskResult:
        """End a leader's task, and return its result or a follower's answer."""
        answer = self._answers.pop(task.task_id, None)
        if not task.board:
            return result
        if self._led.get((worker.machine, task.board)) is task:
            del self._led[worker.machine, task.board]
        worker.controls.abort(task.task_id)
        return answered(result, answer) if answer is not None and result.status == at.ABORTED else result

    def end_followed(self, worker: SimulatedWorker, follow: Task, result: TaskResult) -> None:
        """Take what came of a task that a follower took up; if it is an answer it ends the others."""
        worker.followed_nodes = worker.followed_nodes.merged(result.statistics)
        led = self._led.get((worker.machine, follow.board))
        if result.is_finished and led is not None and led.task_id == result.task_id:
            self._answers.setdefault(result.task_id, result)
            worker.controls.abort(result.task_id)
