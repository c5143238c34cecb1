"""The controls that a speed-up is measured against: no splitting, and splitting at the root alone; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cluster.records import Task, TaskResult, WorkerInfo
from cluster.splitter import Root
from cluster.upper_tree import Child
from search.aspiration import Window
from search.limits import NO_NODE_LIMIT
from search.results import NOTHING_FOUND, RootResult
from search.scores import INFINITY
from search.statistics import Statistics


class SingleSplitter:
    """No splitting: the whole root is one task; the control that every speed-up is measured against.

    Parameters
    ----------
    root
        The position and its rules.
    task_ids
        Numbers for tasks that no other search of the session uses.
    is_race
        Whether every machine gets the task: the first that is through has the result.
    """

    def __init__(self, root: Root, task_ids: Iterator[int], *, is_race: bool = False) -> None:
        self._root, self._ids, self._is_race = root, task_ids, is_race
        self._task: Task | None = None
        """Without a number of its own."""
        self._running: dict[int, str] = {}
        """The machine of each task that is out."""
        self._aborts: list[int] = []
        self._result: RootResult | None = None
        self._so_far = NOTHING_FOUND

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a search of the root."""
        root = self._root
        self._task = Task(
            0, epoch, root.position, depth, *window, 0, 0, NO_NODE_LIMIT, root.contempt, root.salt,
            root.history, left_out,
        )  # fmt: skip
        self._running, self._aborts = {}, []
        self._result, self._so_far = None, NOTHING_FOUND

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return the one task, once; always to the worker of the lowest number, whose history is warm."""
        tasks: list[tuple[WorkerInfo, Task]] = []
        if self._task is None or self._result is not None:
            return tasks
        for info in sorted(idle, key=lambda info: info.worker):
            taken = self._running.values()
            if info.machine not in taken if self._is_race else not taken:
                task = self._task._replace(task_id=next(self._ids))
                self._running[task.task_id] = info.machine
                tasks.append((info, task))
        return tasks

    def on_result(self, result: TaskResult) -> None:
        """Take the one result; an unfinished task is handed out again, under a new number."""
        if self._task is None or result.epoch != self._task.epoch or self._running.pop(result.task_id, None) is None:
            return
        if not result.is_finished:
            self._so_far = self._so_far.or_better(result.score, result.line)
        elif self._result is None:
            self._result = RootResult(result.score, result.line, Statistics(), True, result.values)
            self._aborts = list(self._running)

    def on_lost(self, task_id: int) -> None:
        """Hand the task out again, under a new number: a late result of the lost one touches nothing."""
        self._running.pop(task_id, None)

    def aborts(self) -> list[int]:
        """Return the tasks that came too late."""
        aborts, self._aborts = self._aborts, []
        return aborts

    def bounds(self) -> list[tuple[int, int]]:
        """Return nothing: the root's window does not change while it is searched."""
        return []

    def result(self) -> RootResult | None:
        """Return the result of the task that was finished first."""
        return self._result

    def so_far(self) -> RootResult:
        """Return the best of what unfinished tasks had found."""
        return self._so_far


@dataclass
class _Branch:
    """A root move in this root search; all scores from the root's side to move."""

    child: Child
    lower: int = -INFINITY
    upper: int = INFINITY
    """Fail-soft bounds of the move's value."""
    line: tuple[int, ...] = ()
    """Best reply and what follows, from the search that raised `lower` last."""
    task_id: int | None = None
    """Its running task."""
    asked: Window | None = None
    """Window of that task."""
    nodes: int = 0
    """Spent on it in this root search: a measure of how hard it is to refute."""

    @classmethod
    def of(cls, child: Child) -> _Branch:
        """Return a root move about which nothing is known, unless it ends the game."""
        if child.score is None:
            return cls(child)
        score = -child.score if child.side == 1 else child.score
        return cls(child, score, score)

    @property
    def changes_side(self) -> bool:
        return self.child.side == 1

    def turned(self, window: Window) -> Window:
        """Return a root's window as the child sees it, and back."""
        return Window(-window.beta, -window.alpha) if self.changes_side else window


@dataclass
class RootSplitter:
    """Root moves as tasks: the first with the full window, then the others with null windows at the best score so far.

    A move that beats its null window is searched again with what is left of the window. A better score reaches
    running tasks through `bounds`. Root splitting stops at about three times the speed of one worker, however many
    there are, because one worker alone searches the first move: it is kept as a control.
    """

    root: Root
    task_ids: Iterator[int]
    """Numbers for the tasks, unique in a session."""
    _branches: list[_Branch] = field(default_factory=list)
    _set_aside: list[_Branch] = field(default_factory=list)
    """The moves that are left out, with what was found when they were not."""
    _running: dict[int, _Branch] = field(default_factory=dict)
    _window: Window = Window(-INFINITY, INFINITY)
    _depth: int = 0
    _epoch: int = 0
    _aborts: list[int] = field(default_factory=list)
    _bounds: list[tuple[int, int]] = field(default_factory=list)

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a search of the root; moves come in the order that the last one found."""
        everyone = [*self._set_aside, *self._branches] or [
            _Branch(child) for child in self.root.expand(self.root.position, 0, 0, self.root.history)
        ]
        self._set_aside = [branch for branch in everyone if branch.child.move in left_out]
        before = [branch for branch in everyone if branch.child.move not in left_out]
        # The best first, then those that took longest to refute: they are the likeliest to become best. `sorted` is
        # stable, so that moves without a past stay in the game's own order.
        best = max(before, key=lambda branch: branch.lower)
        ranked = sorted(before, key=lambda branch: (branch is not best, -branch.nodes))
        self._branches = [_Branch.of(branch.child) for branch in ranked]
        self._running = {}
        self._aborts, self._bounds = [], []
        self._depth, self._window, self._epoch = depth, window, epoch

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return the next moves to search."""
        workers = iter(idle)
        tasks = []
        for branch, window in self._wanted():
            worker = next(workers, None)
            if worker is None:
                break
            tasks.append((worker, self._task(branch, window)))
        return tasks

    def on_result(self, result: TaskResult) -> None:
        """Move the bounds of the task's root move; then of the root, and of what still runs."""
        if result.epoch != self._epoch:
            return
        branch = self._running.pop(result.task_id, None)
        if branch is None:
            return
        branch.task_id = branch.asked = None
        branch.nodes += result.statistics.nodes
        if not result.is_finished:
            return
        score = -result.score if branch.changes_side else result.score
        searched = branch.turned(Window(result.alpha, result.beta))
        if score > searched.alpha:
            branch.lower = score
            branch.line = result.line
        if score < searched.beta:
            branch.upper = score
        # Unequal depths in the table may make two searches of one position disagree: the later one is believed.
        branch.lower = min(branch.lower, branch.upper) if score < searched.beta else branch.lower
        branch.upper = max(branch.upper, branch.lower)
        self._tell_running_tasks()

    def on_lost(self, task_id: int) -> None:
        """Give a move back that was not searched to the end."""
        branch = self._running.pop(task_id, None)
        if branch is not None:
            branch.task_id = branch.asked = None

    def aborts(self) -> list[int]:
        """Return the tasks that became moot."""
        aborts, self._aborts = self._aborts, []
        return [task_id for task_id in dict.fromkeys(aborts) if task_id in self._running]

    def bounds(self) -> list[tuple[int, int]]:
        """Return the tasks whose window shrank."""
        bounds, self._bounds = self._bounds, []
        return [(task_id, bound) for task_id, bound in bounds if task_id in self._running]

    def result(self) -> RootResult | None:
        """Return the root's score once no move can change it."""
        best = self._best()
        if not self._is_refuted() and any(branch.upper > max(best, self._window.alpha) for branch in self._branches):
            return None
        if best > self._window.alpha:
            first = max(self._branches, key=lambda branch: branch.lower)
            return RootResult(best, (first.child.move, *first.line), Statistics(), is_finished=True)
        # Fail low: no move has more than its upper bound.
        return RootResult(max(branch.upper for branch in self._branches), (), Statistics(), is_finished=True)

    def so_far(self) -> RootResult:
        """Return the best move once the first one is known to be no better."""
        first, best = self._branches[0], max(self._branches, key=lambda branch: branch.lower)
        if best.lower <= self._window.alpha or (best is not first and first.upper > best.lower):
            return NOTHING_FOUND
        return RootResult(best.lower, (best.child.move, *best.line), Statistics(), is_finished=False)

    def _best(self) -> int:
        return max(branch.lower for branch in self._branches)

    def _is_refuted(self) -> bool:
        return self._best() >= self._window.beta

    def _wanted(self) -> Iterator[tuple[_Branch, Window]]:
        """Yield the moves to search now, each with its window."""
        if self._is_refuted():
            return
        alpha = max(self._window.alpha, self._best())
        first, *others = self._branches
        if first.upper > alpha and first.lower == -INFINITY:
            if first.task_id is None:
                yield first, self._window
            return
        for branch in (first, *others):
            if branch.task_id is not None or branch.upper <= alpha:
                continue
            if branch.lower >= alpha and branch.lower > -INFINITY:
                # It beat an older bound: what it is really worth lies between its lower bound and beta.
                yield branch, Window(max(self._window.alpha, branch.lower - 1), self._window.beta)
            else:
                yield branch, Window(alpha, alpha + 1)

    def _task(self, branch: _Branch, window: Window) -> Task:
        task_id = next(self.task_ids)
        branch.task_id, branch.asked = task_id, window
        self._running[task_id] = branch
        child, root = branch.child, self.root
        alpha, beta = branch.turned(window)
        return Task(
            task_id, self._epoch, child.position, self._depth - 1, alpha, beta, 1, child.side,
            NO_NODE_LIMIT, root.contempt, root.salt, child.history,
        )  # fmt: skip

    def _tell_running_tasks(self) -> None:
        """Abort what became moot; narrow what runs with an older alpha."""
        if self.result() is not None:
            self._aborts.extend(self._running)
            return
        best = self._best()
        for task_id, branch in self._running.items():
            # A move that holds the best score keeps a unit of overlap, so that its line comes out whole.
            alpha = best - 1 if branch.lower == best else best
            if branch.asked is not None and branch.asked.alpha < alpha and branch.changes_side:
                # The root's alpha is the child's beta. A child with the same side to move has no falling beta: its
                # result is judged when it comes.
                branch.asked = Window(alpha, max(branch.asked.beta, alpha + 1))
                self._bounds.append((task_id, -alpha))
