"""Workers of a machine in teams, each of which searches one subtree together, while teams split the tree; pure.

Each team has a leader, which gets tasks as a lone worker does. The others are told once in a root search that they
follow: from then on they take up whatever their leader searches, without a message (`cluster.task_runner`), so that
even subtrees of a millisecond are shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cluster.dynamic_splitter import DynamicSplitter
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.root_splitter import SingleSplitter
from cluster.split_settings import SplitSettings
from cluster.splitter import Root, Splitter
from search.aspiration import FULL_WINDOW, Window
from search.boards import BOARDS
from search.limits import NO_NODE_LIMIT
from search.results import RootResult


@dataclass(eq=False)
class _Team:
    """Workers of one machine that search the same task."""

    board: int
    """Where its leader tells the others what it searches."""
    size: int = 0
    """Workers that were ever seen."""
    leader: int | None = None
    """The worker that gets its tasks in this root search, once there was one."""


class TeamSplitter:
    """Splits between teams as the dynamic splitter does between workers.

    A selective search is not split: each machine's leader searches all of it, and machines exchange entries.

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
        self._root, self._ids, self._settings = root, task_ids, settings
        is_split = root.depth_change is None
        self._team_size = settings.team_size if is_split or settings.team_size == 1 else BOARDS * settings.team_size
        self._share_nodes = settings.share_nodes if is_split else settings.selective_share_nodes
        self._between: Splitter = (
            DynamicSplitter(root, task_ids, settings.for_teams())
            if is_split
            else SingleSplitter(root, task_ids, is_race=True)
        )
        """Takes a team for a worker."""
        self._team_of: dict[int, _Team] = {}
        """Of each worker that was ever seen."""
        self._known: dict[str, list[_Team]] = {}
        """The teams of each machine."""
        self._leads: dict[int, _Team] = {}
        """Of each task that is out."""
        self._follows: dict[int, _Team] = {}
        """Of each follower, by its task."""
        self._nodes = settings.first_search_nodes
        """Of all root searches so far, or what is expected of the first one."""
        self._spent_s = settings.first_follow_s
        """That all workers have searched so far, or what is expected."""
        self._share_depth = self._epoch = self._looks = 0

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a search of the root."""
        self._epoch, self._looks = epoch, 0
        self._leads, self._follows = {}, {}
        teams = set(self._team_of.values())
        for team in teams:
            team.leader = None
        # A tree of so many nodes grows evenly with each ply, as far as one knows.
        self._share_depth = round(depth * math.log(self._share_nodes) / math.log(self._nodes))
        # Whoever was never seen is in a team all the same.
        unseen = -(-max(0, workers - len(self._team_of)) // self._team_size)
        self._between.start(depth, window, epoch, max(1, len(teams) + unseen), left_out)

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return tasks for leaders, and who is to follow them."""
        for info in (*idle, *ahead):
            self._enrol(info)
        self._looks += bool(idle)
        chosen: dict[_Team, int] = {}
        for info in sorted(idle, key=lambda info: info.worker):
            team = self._team_of[info.worker]
            if team.leader in (None, info.worker):
                chosen.setdefault(team, info.worker)
        leaders = [info for info in idle if chosen.get(self._team_of[info.worker]) == info.worker]
        queued = [info for info in ahead if self._team_of[info.worker].leader == info.worker]
        tasks = [(info, self._led(info, task)) for info, task in self._between.next_tasks(leaders, queued)]
        followers = [info for info in idle if self._team_of[info.worker].leader not in (None, info.worker)]
        if followers and self._between.result() is None and self._is_worth_telling():
            tasks += [(info, self._following(self._team_of[info.worker])) for info in followers]
        return tasks

    def _enrol(self, info: WorkerInfo) -> None:
        """Put a worker that is new into a team of its machine."""
        if info.worker in self._team_of:
            return
        teams = self._known.setdefault(info.machine, [])
        if not teams or teams[-1].size >= self._team_size:
            teams.append(_Team(board=len(teams) % BOARDS + 1))
        teams[-1].size += 1
        self._team_of[info.worker] = teams[-1]

    def _led(self, info: WorkerInfo, task: Task) -> Task:
        """Return a task as a team's leader gets it."""
        team = self._team_of[info.worker]
        team.leader = info.worker
        self._leads[task.task_id] = team
        return task if team.size == 1 else task._replace(share_depth=self._share_depth, board=team.board)

    def _following(self, team: _Team) -> Task:
        """Return the task of one more follower of a team."""
        task = Task(
            next(self._ids), self._epoch, self._root.position, 0, *FULL_WINDOW, 0, 0, NO_NODE_LIMIT, 0, 0,
            board=team.board, follows=True,
        )  # fmt: skip
        self._follows[task.task_id] = team
        return task

    def _is_worth_telling(self) -> bool:
        """Tell whether leaders alone are expected to search long beside the time that it takes to tell all followers.

        The next iteration takes as long as all before it, at least. A single team, of whose present task nothing is
        known before it ends, does not wait longer than for one look at the events.
        """
        teams = sum(map(len, self._known.values()))
        if teams == 1 and self._looks > 1:
            return True
        telling_s = (len(self._team_of) - teams) * self._settings.follow_s
        return self._spent_s / teams >= self._settings.follow_worth * telling_s

    def on_result(self, result: TaskResult) -> None:
        """Take a leader's result; of a follower only its nodes count."""
        if result.epoch != self._epoch:
            return
        self._nodes += result.statistics.nodes
        self._spent_s += result.elapsed_s
        if self._follows.pop(result.task_id, None) is None and self._leads.pop(result.task_id, None) is not None:
            self._between.on_result(result)

    def on_lost(self, task_id: int) -> None:
        """Have a leader's task handed out again, to a team that has a leader."""
        self._follows.pop(task_id, None)
        team = self._leads.pop(task_id, None)
        if team is not None:
            team.leader = None
            self._between.on_lost(task_id)

    def aborts(self) -> list[int]:
        """Return what runs of tasks that became moot, and the followers that are to lead."""
        return self._between.aborts() + self._recalled()

    def _recalled(self) -> list[int]:
        """Return a follower of each team that has lost its leader, each time: a control word may be lost."""
        recalled = {team: task_id for task_id, team in self._follows.items() if team.leader is None}
        return list(recalled.values())

    def bounds(self) -> list[tuple[int, int]]:
        """Return the tasks whose window shrank."""
        return self._between.bounds()

    def result(self) -> RootResult | None:
        """Return the root's result, None while it is not known."""
        return self._between.result()

    def so_far(self) -> RootResult:
        """Return what a root search that was stopped has found."""
        return self._between.so_far()
