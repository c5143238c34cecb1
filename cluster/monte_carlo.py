"""Monte Carlo tree search on many workers: hands out slices of playouts; pure, driven by events, like all splitters.

The workers of a machine grow one tree together; machines grow trees of their own, with other random numbers, whose
roots' counts are added up (root parallelization: Cazenave and Jouandeau 2007; Chaslot, Winands and van den Herik
2008). A slice that is lost with its worker needs no replacement: others make the playouts that are left of the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster.records import Task, TaskResult, WorkerInfo
from cluster.splitter import Root
from search.aspiration import Window
from search.limits import NO_NODE_LIMIT
from search.mcts_driver import Growth
from search.mcts_settings import MonteCarloSettings, Part
from search.mcts_tree import tree_number
from search.results import NOTHING_FOUND, RootResult
from search.scores import INFINITY
from search.statistics import Statistics

SLICE_S = 0.05
"""How long a slice should take: so late, at most, comes what is proved, and the root's counts."""
_FIRST_SLICE = 64
_LEAST_SLICE = 16
_MEMORY = 0.8
"""Weight of the past in the mean rate of playouts."""


class MonteCarloSplitter:
    """Hands out playouts of one root until it is proved; whoever keeps the limits ends it before.

    Parameters
    ----------
    root
        The position to search.
    task_ids
        Numbers for tasks.
    growth
        Takes what the workers report.
    settings
        The search's numbers.
    slice_s
        Seconds that a slice should take.
    is_single
        Whether one worker alone makes all playouts.
    part
        Of each machine's table memory.
    """

    def __init__(
        self,
        root: Root,
        task_ids: Iterator[int],
        growth: Growth,
        settings: MonteCarloSettings = MonteCarloSettings(),
        slice_s: float = SLICE_S,
        is_single: bool = False,
        part: Part = Part(),
    ) -> None:
        self._root, self._task_ids, self._growth, self._settings = root, task_ids, growth, settings
        self._slice_s, self._is_single, self._part = slice_s, is_single, part
        self._epoch = 0
        self._handed_out = 0
        """Playouts so far: the number of the next one's stream of random numbers."""
        self._rate = 0.0
        """Playouts a worker makes in a second; 0 if none has told."""
        self._machine_of: dict[int, str] = {}
        self._only: int | None = None

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a tree of its own for an epoch; depth, window and left out moves are not asked: see `Growth`."""
        self._epoch, self._handed_out = epoch, 0
        self._machine_of.clear()

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return a slice for each worker."""
        # One alone is not sent ahead: its proof then leaves nothing that runs, and would be told to stop.
        workers = self._chosen(idle) if self._is_single else [*idle, *ahead]
        return [(info, self._task(info)) for info in workers]

    def on_result(self, result: TaskResult) -> None:
        """Take a slice's end: its root's counts, and how quick its worker is."""
        machine = self._machine_of.pop(result.task_id, None)
        if machine is None or result.epoch != self._epoch:
            return
        if result.elapsed_s > 0 and result.statistics.nodes >= _LEAST_SLICE:
            rate = result.statistics.nodes / result.elapsed_s
            self._rate = _MEMORY * self._rate + (1 - _MEMORY) * rate if self._rate else rate
        self._growth.take(machine, result.values, result.line, result.statistics.selective_depth)

    def on_lost(self, task_id: int) -> None:
        """Forget a slice that will bring no result: whatever it had done lies in its tree."""
        self._machine_of.pop(task_id, None)
        self._only = None

    def aborts(self) -> list[int]:
        """Return nothing: no slice becomes moot before all do."""
        return []

    def bounds(self) -> list[tuple[int, int]]:
        """Return nothing: there is no window."""
        return []

    def result(self) -> RootResult | None:
        """Return that the search is over where the value is proved; what came of it is in the `Growth`."""
        return RootResult(0, (), Statistics(), is_finished=False) if self._growth.is_proved else None

    def so_far(self) -> RootResult:
        """Return nothing: every answer of playouts is one."""
        return NOTHING_FOUND

    def _chosen(self, workers: Sequence[WorkerInfo]) -> list[WorkerInfo]:
        """Return the slots of the one worker that searches."""
        if self._only is None and workers:
            self._only = workers[0].worker
        return [info for info in workers if info.worker == self._only]

    def _task(self, info: WorkerInfo) -> Task:
        task_id = next(self._task_ids)
        # A slice ends where the playouts double: one worker then reports at the same numbers in each run.
        wanted = max(_LEAST_SLICE, int(self._rate * self._slice_s)) if self._rate else _FIRST_SLICE
        count = min(wanted, self._growth.to_milestone(self._handed_out), NO_NODE_LIMIT)
        settings = self._settings.slice(tree_number(self._epoch), self._handed_out, self._part)
        self._handed_out += count
        self._machine_of[task_id] = info.machine
        root = self._root
        return Task(
            task_id, self._epoch, root.position, 1, -INFINITY, INFINITY, 0, 0, count, 0, 0, root.history,
            self._growth.left_out, tuple(settings),
        )  # fmt: skip
