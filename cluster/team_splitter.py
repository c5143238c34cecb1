"""Workers of a machine in teams, each of which searches one subtree together, while teams split the tree; pure.

All members of a team search the same task (`search.sharing`): what one has found the others meet in the table that they
share. The first that ends has the answer. No message passes between them, so that even subtrees of a millisecond are
shared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cluster.dynamic_splitter import DynamicSplitter
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.split_settings import SplitSettings
from cluster.splitter import Root
from search.aspiration import Window
from search.results import RootResult

_TeamName = tuple[str, int]
"""The machine, and a number on it."""
_EVERYWHERE: _TeamName = "", 0


@dataclass
class _Team:
    """The workers that search one task."""

    task: Task
    members: set[int] = field(default_factory=set)
    """The number of each one's own task."""
    best: TaskResult | None = None
    """Of those that have ended."""
    is_ending: bool = False
    """Whether no more members may join."""

    def take(self, result: TaskResult) -> None:
        """Take a member's result; of unfinished ones the best line counts."""
        self.members.discard(result.task_id)
        self.is_ending = True
        best = self.best
        if best is None or result.is_finished or (result.line and (not best.line or result.score > best.score)):
            self.best = result


class TeamSplitter:
    """Splits between teams as the dynamic splitter does between workers.

    A selective search is not split: all workers are one team, whose machines exchange no more than entries.

    Parameters
    ----------
    root
        The position and its rules.
    task_ids
        Numbers for tasks that no other search of the session uses.
    settings
        The strategy's numbers.
    """

    def __init__(self, root: Root, task_ids: Iterator[int], settings: SplitSettings = SplitSettings()) -> None:
        self._ids, self._settings = task_ids, settings
        self._is_split = root.depth_change is None
        self._share_nodes = settings.share_nodes if self._is_split else settings.selective_share_nodes
        # A task of a team costs the splitter as much as one for each member.
        between = replace(settings, master_s=settings.master_s * settings.team_size)
        self._between = DynamicSplitter(root, task_ids, between)
        """Takes a team for a worker."""
        self._team_of: dict[int, _TeamName] = {}
        """Of each worker that was ever seen."""
        self._known: Counter[str] = Counter()
        """Workers seen on each machine."""
        self._teams: dict[_TeamName, _Team] = {}
        """Those that have a task."""
        self._aborts: list[int] = []
        self._nodes = settings.first_search_nodes
        self._share_depth = 0

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a search of the root."""
        self._teams, self._aborts = {}, []
        # A tree of so many nodes grows evenly with each ply, as far as one knows.
        self._share_depth = round(depth * math.log(self._share_nodes) / math.log(self._nodes))
        self._between.start(depth, window, epoch, max(1, len(set(self._team_of.values()))), left_out)

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return the task of its team for each idle worker; a team without one gets a new one."""
        for info in (*idle, *ahead):
            if info.worker not in self._team_of:
                name = info.machine, self._known[info.machine] // self._settings.team_size
                self._team_of[info.worker] = name if self._is_split else _EVERYWHERE
                self._known[info.machine] += 1
        names = {info.worker: self._team_of[info.worker] for info in idle}
        leaders = {name: info for info in idle if (name := names[info.worker]) not in self._teams}
        for info, task in self._between.next_tasks(list(leaders.values())):
            self._teams[names[info.worker]] = _Team(task._replace(share_depth=self._share_depth))
        teams = [(info, self._teams.get(names[info.worker])) for info in idle]
        return [(info, self._join(team)) for info, team in teams if team is not None and not team.is_ending]

    def _join(self, team: _Team) -> Task:
        task_id = next(self._ids)
        team.members.add(task_id)
        return team.task._replace(task_id=task_id)

    def on_result(self, result: TaskResult) -> None:
        """Take the result of the first member that finishes, or the best of all; the first that ends ends them all."""
        self._nodes += result.statistics.nodes
        name = self._name_of(result.task_id)
        if name is None:
            return
        team = self._teams[name]
        self._aborts += [] if team.is_ending else team.members - {result.task_id}
        team.take(result)
        if result.is_finished or not team.members:
            self._end(name)

    def _end(self, name: _TeamName) -> None:
        """Tell what has come of a team's task; what its members still bring is ignored."""
        team = self._teams.pop(name)
        if team.best is None:
            self._between.on_lost(team.task.task_id)
        else:
            self._between.on_result(team.best._replace(task_id=team.task.task_id))

    def on_lost(self, task_id: int) -> None:
        """Go on with the other members; without any the task is handed out again."""
        name = self._name_of(task_id)
        if name is not None:
            self._teams[name].members.discard(task_id)
            if not self._teams[name].members:
                self._end(name)

    def aborts(self) -> list[int]:
        """Return what runs of tasks that became moot, and the members that were too late."""
        moot = set(self._between.aborts())
        for team in self._teams.values():
            if team.task.task_id in moot:
                team.is_ending = True
                self._aborts += team.members
        found, self._aborts = self._aborts, []
        return found

    def bounds(self) -> list[tuple[int, int]]:
        """Return the new beta of each member whose task has one."""
        moved = dict(self._between.bounds())
        return [
            (task_id, moved[team.task.task_id])
            for team in self._teams.values()
            if team.task.task_id in moved
            for task_id in team.members
        ]

    def result(self) -> RootResult | None:
        """Return the root's result, None while it is not known."""
        return self._between.result()

    def so_far(self) -> RootResult:
        """Return what a root search that was stopped has found."""
        return self._between.so_far()

    def _name_of(self, task_id: int) -> _TeamName | None:
        return next((name for name, team in self._teams.items() if task_id in team.members), None)
