"""The dynamic splitter: splits wherever work is wanted, at any depth, in tasks of a grain that fits the cluster; pure.

There is one state: the bounds (`cluster.upper_tree`). What is wanted of each node follows from its own bounds, its
siblings' and its parent's demand (`cluster.demands`), and is derived anew wherever a bound has changed.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from cluster.demands import NOTHING, Demand, demands
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.split_settings import SplitSettings
from cluster.splitter import Root
from cluster.upper_tree import Node, Role, UpperTree
from search import workspace as at
from search.aspiration import FULL_WINDOW, Window
from search.limits import NO_NODE_LIMIT
from search.results import NOTHING_FOUND, RootResult
from search.statistics import Statistics

_Ready = tuple[float, int, tuple[int, ...], int, int, Node]
"""A ready leaf: the most probable first, then PV, then from left to right; the number of the push, the version."""


class DynamicSplitter:
    """Splits wherever work is wanted, at any depth.

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
        self._root, self.settings = root, settings
        self._least_depth = settings.least_depth if root.depth_change is None else settings.least_selective_depth
        self.tree = UpperTree(root.as_child(), root.expand, root.depth_change)
        self._ids = task_ids
        self._pushes = itertools.count()
        self._ready: dict[str | None, list[_Ready]] = {}
        self._running: dict[int, Node] = {}
        self._retired: dict[int, Node] = {}
        self._parked: list[Node] = []
        self._aborts: list[int] = []
        self._bounds: dict[int, int] = {}
        self._depth = self._epoch = 0
        self._window = FULL_WINDOW
        self._workers = 1
        self.guess = 0
        """What the iteration is expected to score, from the root's side to move."""
        self._scores: defaultdict[int, list[int]] = defaultdict(list)
        """Scores of the iterations, by the number of moves that were left out: each line has its own."""
        self._rate = settings.first_rate
        self._measured_nodes = self._measured_s = 0.0
        self._totals: list[int] = []
        self._so_far = NOTHING_FOUND
        """What the root's own task had found when it was stopped."""
        self._growth = settings.first_growth

    # Root searches

    def start(self, depth: int, window: Window, epoch: int, workers: int, left_out: tuple[int, ...] = ()) -> None:
        """Begin a root search; within one depth the tree keeps its bounds, and only the demand moves."""
        self._epoch, self._window, self._workers = epoch, window, max(1, workers)
        root = self.tree.root
        if self._depth and (depth, left_out) != (self._depth, self.tree.left_out):
            self._scores[len(self.tree.left_out)].append(root.lo)
        if depth != self._depth:
            self._begin_depth(depth)
        else:
            for node in self.tree.attached():
                node.clear_demand()
        if left_out != self.tree.left_out:
            self.tree.leave_out(left_out)
        self._ready, self._running, self._retired, self._parked = {}, {}, {}, []
        self._aborts, self._bounds = [], {}
        self._so_far = NOTHING_FOUND
        # What the iteration is expected to score: odd and even depths differ, so the last score but one says more.
        scores = self._scores[len(left_out)]
        expected = scores[-2:][0] if scores else 0
        self.guess = min(max(expected, window.alpha + 1), window.beta - 1)
        root.alpha, root.beta, root.probability, root.role = window.alpha, window.beta, 1.0, Role.PV
        self._refresh(root)

    def result(self) -> RootResult | None:
        """Return the root's result once its bounds decide the window."""
        root = self.tree.root
        if root.is_exact() or root.lo >= self._window.beta:
            return RootResult(root.lo, self.tree.principal_variation(), Statistics(), is_finished=True)
        if root.hi <= self._window.alpha:
            return RootResult(root.hi, (), Statistics(), is_finished=True)
        return None

    def so_far(self) -> RootResult:
        """Return the best move once the first one is known to be no better."""
        children = self.tree.root.children
        if not children:
            return self._so_far
        first, best = children[0], max(children, key=Node.low)
        if best.low() <= self._window.alpha or (best is not first and first.high() > best.low()):
            return NOTHING_FOUND
        return RootResult(best.low(), (best.move, *best.line), Statistics(), is_finished=False)

    def _begin_depth(self, depth: int) -> None:
        root = self.tree.root
        if self._depth:
            nodes = root.spent
            self._totals.append(max(1, nodes))
            if len(self._totals) > 2:
                # Over two iterations: odd and even depths differ in cost as they do in score.
                self._growth = min(8.0, max(1.2, math.sqrt(self._totals[-1] / self._totals[-3])))
            grain = self._grain_nodes(nodes * self._growth)
            self.tree.start_iteration(depth, self._growth, self.settings.collapse_grains * grain)
        else:
            self.tree.start_iteration(depth, 1.0, 0.0)
        self._depth = depth

    def _grain_nodes(self, iteration_nodes: float) -> float:
        """Return the size of a task that is worth splitting, in nodes."""
        settings, workers = self.settings, self._workers
        iteration_s = iteration_nodes / self._rate
        grain_s = max(
            settings.grain_s,
            2 * workers * settings.master_s,
            iteration_s / (settings.tasks_per_worker * workers),
        )
        return grain_s * self._rate

    # Demands

    def _refresh(self, node: Node) -> None:
        """Derive what is wanted below a node from its bounds and its own demand."""
        node.is_dirty = False
        if node.reduction and node.probability and (node.hi <= node.alpha or node.beta - node.alpha > 1):
            self._deepen(node)
        if node.probability == 0 or node.lo >= node.beta or node.hi <= node.alpha or node.is_exact():
            self._drop(node)
        elif node.children is None:
            self._refresh_leaf(node)
        else:
            for child, demand in zip(node.children, demands(node, self.settings, self.guess), strict=True):
                self._assign(child, demand)

    def _assign(self, child: Node, demand: Demand) -> None:
        if not child.is_dirty and demand == (child.alpha, child.beta, child.probability, child.role):
            return
        if demand[2] == 0 and child.probability == 0:
            child.is_dirty = False
            return
        child.alpha, child.beta, child.probability, child.role = demand
        self._refresh(child)

    def _drop(self, node: Node) -> None:
        """Want nothing of a node and of all below it."""
        waiting = [node]
        while waiting:
            current = waiting.pop()
            current.alpha, current.beta, current.probability, current.role = NOTHING
            current.version += 1
            if current.task_id is not None:
                self._abort(current)
            waiting.extend(child for child in current.children or () if child.probability > 0)

    def _deepen(self, node: Node) -> None:
        """Search a reduced node to its whole depth: its move is as good as was not expected."""
        if node.task_id is not None:
            self._abort(node)
        for child in node.children or ():
            if child.probability > 0:
                self._drop(child)
        node.estimate *= self._growth**node.reduction
        self.tree.deepen(node)

    def _refresh_leaf(self, node: Node) -> None:
        """Keep, narrow or abort a leaf's task; put it on the ready heap if it has none."""
        if node.task_id is not None and node.window is not None:
            task_alpha, task_beta = node.window
            if node.beta < task_beta and node.alpha < task_beta:
                # The task's window shrinks from above; a null window moves down with its beta.
                task_alpha, task_beta = min(task_alpha, node.beta - 1), node.beta
            covers = task_alpha <= node.alpha and task_beta >= node.beta
            proves = (node.role == Role.CUT and task_beta >= node.beta) or (
                node.role == Role.ALL and task_alpha <= node.alpha
            )
            if covers or proves:
                if (task_alpha, task_beta) != node.window:
                    node.window = (task_alpha, task_beta)
                    self._bounds[node.task_id] = task_beta
                return
            self._abort(node)
        self._push(node)

    def _push(self, node: Node) -> None:
        node.version += 1
        rank = (-node.probability, int(node.role != Role.PV), node.path, next(self._pushes), node.version, node)
        heapq.heappush(self._ready.setdefault(node.machine, []), rank)

    def _abort(self, node: Node) -> None:
        """Detach a node's task: whatever it brings is counted, and touches nothing."""
        if node.task_id is None:
            return
        self._running.pop(node.task_id, None)
        self._retired[node.task_id] = node
        self._bounds.pop(node.task_id, None)
        self._aborts.append(node.task_id)
        node.task_id = node.window = None

    # Tasks

    def next_tasks(self, idle: Sequence[WorkerInfo], ahead: Sequence[WorkerInfo] = ()) -> list[tuple[WorkerInfo, Task]]:
        """Return the most probable tasks, each to a worker of the machine that knows its subtree where possible."""
        tasks: list[tuple[WorkerInfo, Task]] = []
        if not idle and not ahead:
            return tasks
        self._wake_parked()
        # An iteration that has outgrown its estimate is taken for half done: its tasks grow with it.
        root = self.tree.root
        grain = self._grain_nodes(max(root.estimate, 2.0 * root.spent))
        for workers, least in ((idle, 0.0), (ahead, self.settings.prefetch_least)):
            for worker in workers:
                if self.result() is not None:
                    return tasks
                node = self._take(worker.machine, grain, least)
                if node is None:
                    break
                tasks.append((worker, self._task(node, worker, grain)))
        return tasks

    def _take(self, machine: str, grain: float, least: float) -> Node | None:
        """Return the best ready leaf of at least so probable ones, splitting on the way those that are too large."""
        while True:
            heap = self._best_heap(machine)
            if heap is None or -heap[0][0] < least:
                return None
            node = heapq.heappop(heap)[-1]
            if self._is_answered_by_twin(node):
                self._parked.append(node)
                continue
            if self._is_too_large(node, grain):
                self._expand(node)
                if self.result() is not None:
                    return None
                continue
            return node

    def _is_answered_by_twin(self, node: Node) -> bool:
        """Tell whether the search of an equal position, as a task or split, will say what is wanted of this one.

        A node waits for nodes of its own depth, and these for deeper ones only: nobody waits in a circle.
        """
        for twin in self.tree.twins(node):
            if twin is node:
                continue
            if twin.task_id is not None:
                return True
            is_wanted = twin.children is not None and twin.probability >= node.probability
            if is_wanted and twin.alpha <= node.alpha and twin.beta >= node.beta:
                return True
        return False

    def _wake_parked(self) -> None:
        """Make leaves ready again that no twin answers any more."""
        parked, self._parked = self._parked, []
        for node in parked:
            if node.probability == 0 or node.task_id is not None or node.children is not None:
                continue
            if self._is_answered_by_twin(node):
                self._parked.append(node)
            else:
                self._push(node)

    def _best_heap(self, machine: str) -> list[_Ready] | None:
        """Return the heap whose first leaf is most probable, the machine's own among equals; stale entries go."""
        best = None
        for owner, heap in self._ready.items():
            while heap and (heap[0][-2] != heap[0][-1].version or heap[0][-1].task_id is not None):
                heapq.heappop(heap)
            if heap:
                rank = (*heap[0][:2], owner != machine, heap[0][2])
                if best is None or rank < best[0]:
                    best = (rank, heap)
        return None if best is None else best[1]

    def _is_too_large(self, node: Node, grain: float) -> bool:
        if node.depth < self._least_depth or self._workers == 1:
            return False
        if node is self.tree.root:
            return node.force or node.estimate > max(grain, self.settings.prefix_s * self._rate)
        if self._tries_first(node):
            return False
        return node.force or node.estimate > (grain / 2 if node.role == Role.PV else grain)

    def _tries_first(self, node: Node) -> bool:
        """Tell whether a task may still decide a node by what only the kernel does: a null move, say."""
        is_null = node.beta - node.alpha == 1
        return self._root.depth_change is not None and node.role == Role.CUT and is_null and not node.was_tried

    def _expand(self, node: Node) -> None:
        self.tree.expand(node)
        children = node.children or []
        first_share = {Role.PV: self.settings.first_pv_estimate, Role.CUT: self.settings.first_cut_estimate}.get(
            node.role, 1 / len(children)
        )
        rest_share = (1 - first_share) / max(1, len(children) - 1)
        for number, child in enumerate(children):
            child.estimate = node.estimate * (rest_share if number else first_share)
        self._move_bounds(node, *self.tree.bounds_by_children(node))
        self._refresh(node)

    def _move_bounds(self, node: Node, lo: int, hi: int) -> None:
        """Tighten bounds, and derive the demands anew from above the highest nodes that changed."""
        for top in self.tree.set_bounds(node, lo, hi):
            self._refresh(top.parent if top.parent is not None else top)

    def _task(self, node: Node, worker: WorkerInfo, grain: float) -> Task:
        root, task_id = self._root, next(self._ids)
        node.task_id, node.window, node.machine = task_id, (node.alpha, node.beta), worker.machine
        node.version += 1
        self._running[task_id] = node
        budget = NO_NODE_LIMIT
        if node.depth >= self._least_depth and self._workers > 1:
            budget = int(self.settings.budget_grains * grain)
            if self._tries_first(node):
                budget = max(budget, int(self.settings.trial_share * node.estimate))
                node.was_tried = True
            if node is self.tree.root:
                budget = max(budget, int(self.settings.prefix_s * self._rate))
        return Task(
            task_id, self._epoch, node.position, node.depth, node.alpha, node.beta, node.ply, node.side,
            budget, root.contempt, root.salt, node.history, self.tree.left_out if node is self.tree.root else (),
        )  # fmt: skip

    # Results

    def on_result(self, result: TaskResult) -> None:
        """Take a result, finished or not; of an aborted task only its nodes count."""
        if result.epoch != self._epoch:
            return
        node = self._running.pop(result.task_id, None)
        if node is None:
            retired = self._retired.pop(result.task_id, None)
            if retired is not None:
                self._spend(retired, result.statistics.nodes)
            return
        self._bounds.pop(result.task_id, None)
        self._measure(result)
        self._spend(node, result.statistics.nodes)
        node.task_id = node.window = None
        if result.best_move:
            node.best_move = result.best_move
        if not result.is_finished:
            if node is self.tree.root:
                self._so_far = self._so_far.or_better(result.score, result.line)
            if result.status == at.OUT_OF_NODES and node.depth >= self._least_depth:
                node.force = True
                node.estimate = max(2 * node.estimate, 2.0 * node.spent)
            self._give_back(node)
            return
        if result.score > result.alpha:
            node.line = result.line
        lo = result.score if result.score > result.alpha else node.lo
        hi = result.score if result.score < result.beta else node.hi
        node.is_dirty = True
        self._move_bounds(node, lo, hi)
        self._give_back(node)

    def on_lost(self, task_id: int) -> None:
        """Give a task back that will bring no result."""
        node = self._running.pop(task_id, None)
        self._bounds.pop(task_id, None)
        if node is None:
            self._retired.pop(task_id, None)
            return
        node.task_id = node.window = None
        self._give_back(node)

    def _give_back(self, node: Node) -> None:
        """Make a leaf whose task has ended ready again, if it is still wanted."""
        if node.probability > 0 and node.task_id is None and node.children is None:
            self._refresh(node)

    def aborts(self) -> list[int]:
        """Return the tasks that became moot."""
        aborts, self._aborts = self._aborts, []
        return aborts

    def bounds(self) -> list[tuple[int, int]]:
        """Return the tasks whose window shrank."""
        bounds, self._bounds = self._bounds, {}
        return list(bounds.items())

    def _spend(self, node: Node | None, nodes: int) -> None:
        while node is not None:
            node.spent += nodes
            node = node.parent

    def _measure(self, result: TaskResult) -> None:
        """Follow the rate of the workers, the latest tasks weighing most; tiny ones measure but their overhead."""
        if result.statistics.nodes < self.settings.measured_nodes and result.elapsed_s < self.settings.grain_s:
            return
        self._measured_nodes += result.statistics.nodes
        self._measured_s += result.elapsed_s
        if self._measured_s > 0:
            self._rate = max(1.0, self._measured_nodes / self._measured_s)
        if self._measured_s > self.settings.rate_memory_s:
            self._measured_nodes /= 2
            self._measured_s /= 2
