"""Splitting max^n: each first move is a task, all of them at once; pure.

A vector has no window that another worker could be waiting for, so that nothing is gained by searching the first
move alone, as `cluster.root_splitter` does. A move that is handed out later is told what its player has by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from cluster.records import Task, TaskResult, WorkerInfo
from cluster.splitter import Root
from search.aspiration import FULL_WINDOW, Window
from search.limits import NO_NODE_LIMIT
from search.results import NOTHING_FOUND, RootResult
from search.statistics import Statistics


@dataclass
class _FirstMove:
    """A first move in this root search."""

    move: int
    nodes: int = 0
    """Spent on it in the last search: who takes longest should begin first."""
    is_running: bool = False
    answer: TaskResult | None = None

    @property
    def values(self) -> tuple[int, ...]:
        """What it is worth to each player; empty if not known, or if it was found to be of no use."""
        return () if self.answer is None else self.answer.values

    @property
    def score(self) -> int:
        """What it is worth to the player who moves, where its values are known."""
        return FULL_WINDOW.alpha if self.answer is None else self.answer.score


@dataclass
class MaxNSplitter:
    """First moves as tasks: the root without its other moves; the best, of equals that of the lowest number, wins.

    A move is of no use if it brings no more than another one of a lower number, or less than any other one.
    """

    root: Root
    task_ids: Iterator[int]
    """Numbers for the tasks, unique in a session."""
    _moves: list[_FirstMove] = field(default_factory=list)
    _left_out: tuple[int, ...] = ()
    _running: dict[int, _FirstMove] = field(default_factory=dict)
    _depth: int = 0
    _epoch: int = 0

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a search of the root; its window says nothing."""
        known = self._moves or [
            _FirstMove(child.move) for child in self.root.expand(self.root.position, 0, 0, self.root.history)
        ]
        best = self._best()
        # `sorted` is stable: moves without a past stay in the game's own order.
        ranked = sorted(known, key=lambda each: (each is not best, -each.nodes))
        self._moves = [_FirstMove(each.move, each.nodes) for each in ranked]
        self._left_out, self._running = left_out, {}
        self._depth, self._epoch = depth, epoch

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return the next moves to search."""
        waiting = (each for each in self._searched() if each.answer is None and not each.is_running)
        return [(worker, self._task(each)) for worker, each in zip(chain(idle, ahead), waiting, strict=False)]

    def on_result(self, result: TaskResult) -> None:
        """Take what a move is worth; an unfinished task is handed out again."""
        if result.epoch != self._epoch or result.task_id not in self._running:
            return
        each = self._running.pop(result.task_id)
        each.is_running = False
        each.nodes += result.statistics.nodes
        if result.is_finished:
            each.answer = result

    def on_lost(self, task_id: int) -> None:
        """Give a move back that was not searched to the end."""
        each = self._running.pop(task_id, None)
        if each is not None:
            each.is_running = False

    def aborts(self) -> list[int]:
        """Return nothing: no move is moot before the last one is known."""
        return []

    def bounds(self) -> list[tuple[int, int]]:
        """Return nothing: a running task has no window."""
        return []

    def result(self) -> RootResult | None:
        """Return the best move and its values once all moves are known."""
        if any(each.answer is None for each in self._searched()):
            return None
        best = self._best()
        if best is None or best.answer is None:
            return None
        return RootResult(best.score, best.answer.line, Statistics(), True, best.values)

    def so_far(self) -> RootResult:
        """Return nothing: only all moves together tell which is the best."""
        return NOTHING_FOUND

    def _searched(self) -> Iterator[_FirstMove]:
        """Yield the moves that are not left out."""
        return (each for each in self._moves if each.move not in self._left_out)

    def _best(self) -> _FirstMove | None:
        """Return the best move whose values are known."""
        known = [each for each in self._searched() if each.values]
        return max(known, key=lambda each: (each.score, -each.move), default=None)

    def _task(self, each: _FirstMove) -> Task:
        task_id = next(self.task_ids)
        self._running[task_id] = each
        each.is_running = True
        best, alpha = self._best(), FULL_WINDOW.alpha
        if best is not None:
            alpha = best.score if each.move > best.move else best.score - 1
        root = self.root
        others = tuple(other.move for other in self._moves if other is not each)
        return Task(
            task_id, self._epoch, root.position, self._depth, alpha, FULL_WINDOW.beta, 0, 0,
            NO_NODE_LIMIT, root.contempt, root.salt, root.history, others,
        )  # fmt: skip
