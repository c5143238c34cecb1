"""Who searches what next: the strategies' common face; pure, driven by events; no clock, no thread, no Ray.

A strategy is used like this, by `cluster.session`: `start` a root search, hand the tasks of `next_tasks` to idle
workers, feed each `TaskResult` to `on_result` (or a task that was lost to `on_lost`), carry out `aborts` and
`bounds`, until `result` is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cluster.records import Task, TaskResult, WorkerInfo
from cluster.upper_tree import Child, DepthChange, Expand
from search.aspiration import Window
from search.results import RootResult


class Root(NamedTuple):
    """The position to search, with what a strategy must know of its rules."""

    position: tuple[int, ...]
    key: int
    """Hash of the position."""
    expand: Expand
    """The rules."""
    contempt: int = 0
    salt: int = 0
    history: tuple[int, ...] = ()
    """Hashes of the positions before the root that can come back, the latest last."""
    depth_change: DepthChange | None = None
    """What a selective search makes of a move; None where all moves are searched to the same depth."""

    def as_child(self) -> Child:
        """Return the root as a position that no move leads to."""
        return Child(0, self.position, 0, self.key, history=self.history)


class Splitter(Protocol):
    """A strategy for one root; lives as long as the search of that root."""

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a search of the root to a depth with a window; whatever belongs to older epochs is moot.

        First moves that are left out are not searched; at least one remains.
        """

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return tasks for idle workers, at most one each; fewer where there is nothing useful to do.

        Workers of `ahead` have a task and may get a second one, which waits at theirs while its answer travels.
        """

    def on_result(self, result: TaskResult) -> None:
        """Take a result of this epoch, finished or not; others are ignored."""

    def on_lost(self, task_id: int) -> None:
        """Give a task back that will bring no result: it is handed out again."""

    def aborts(self) -> list[int]:
        """Return the running tasks that became moot since the last call."""

    def bounds(self) -> list[tuple[int, int]]:
        """Return (task, new beta from its own side to move) for running tasks whose window shrank since the last."""

    def result(self) -> RootResult | None:
        """Return the root's result, None while it is not known; its statistics are left to the caller."""

    def so_far(self) -> RootResult:
        """Return what a root search that was stopped has found: its best first move, else `NOTHING_FOUND`.

        The move that it began with is known too by then, and worth less if it is another one.
        """
