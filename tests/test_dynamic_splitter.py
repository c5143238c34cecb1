"""The dynamic splitter's invariants, against plain minimax, whatever order, delay, loss or budget results meet.

No kernel runs here: workers are simulated, and answer with any result that the fail-soft contract allows.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.demands import demands
from cluster.dynamic_splitter import DynamicSplitter
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.split_settings import SplitSettings
from cluster.splitter import Root
from cluster.team_splitter import TeamSplitter
from cluster.upper_tree import Child
from search import workspace as at
from search.aspiration import FULL_WINDOW, Window
from search.statistics import Statistics

EXAMPLES = 600
STEPS = 20_000


class Tree:
    """A random tree with equal positions, uneven leaves and extra turns; nodes are numbers, scores small integers."""

    def __init__(self, rng: random.Random) -> None:
        self.depth = rng.randint(1, 6)
        self._rng, self._branching = rng, rng.randint(1, 4)
        self._has_extra_turns, self._has_twins = rng.random() < 0.5, rng.random() < 0.6
        self.children: list[list[int]] = []
        self.sides: list[int] = []
        self.scores: list[int] = []
        self._levels: dict[tuple[int, int], list[int]] = {}
        self.root = self._grow(self.depth, 0)

    def _grow(self, depth: int, side: int) -> int:
        rng = self._rng
        level = self._levels.setdefault((depth, side), [])
        if self._has_twins and depth < self.depth - 1 and level and rng.random() < 0.3:
            return rng.choice(level)
        number = len(self.children)
        self.children.append([])
        self.sides.append(side)
        self.scores.append(rng.randint(-20, 20))
        ends = depth == 0 or (depth < self.depth and rng.random() < 0.1)
        for _ in range(0 if ends else rng.randint(1, self._branching)):
            keeps_turn = self._has_extra_turns and rng.random() < 0.25
            self.children[number].append(self._grow(depth - 1, side if keeps_turn else 1 - side))
        level.append(number)
        return number

    def minimax(self, node: int, depth: int) -> int:
        """Return a node's value at a depth, from its own side to move."""

        @cache
        def value(node: int, depth: int) -> int:
            if depth == 0 or not self.children[node]:
                return self.scores[node]
            return max(
                value(child, depth - 1) if self.sides[child] == self.sides[node] else -value(child, depth - 1)
                for child in self.children[node]
            )

        return value(node, depth)

    def expand(self, position: tuple[int, ...], _ply: int, _side: int, _history: tuple[int, ...]) -> list[Child]:
        return [
            Child(number + 1, (child,), self.sides[child], child, None if self.children[child] else self.scores[child])
            for number, child in enumerate(self.children[position[0]])
        ]

    def as_root(self) -> Root:
        return Root((self.root,), self.root, self.expand)


@dataclass
class Cluster:
    """Simulated workers: each holds one task; the outside world decides who answers, and how."""

    tree: Tree
    splitter: DynamicSplitter | TeamSplitter
    rng: random.Random
    workers: int
    running: dict[int, tuple[int, Task]] = field(default_factory=dict)
    doomed: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    """Workers that were lost in this root search; one always stays."""

    def search(self, depth: int, window: Window, epoch: int) -> int:
        """Run one root search and return its score."""
        self.running, self.doomed, self.gone = {}, set(), set()
        self.splitter.start(depth, window, epoch, self.workers)
        for _ in range(STEPS):
            if self.splitter.result() is not None:
                break
            self._hand_out()
            self.check_invariants()
            if self.splitter.result() is not None:
                break
            assert self.running, "nothing runs and nothing is ready: a deadlock"
            self._answer(self.rng.choice(list(self.running)))
            self.check_invariants()
        result = self.splitter.result()
        assert result is not None, "the search does not end"
        self._check_line(result.line)
        return result.score

    def _hand_out(self) -> None:
        busy = {worker for worker, _ in self.running.values()} | self.gone
        idle = [WorkerInfo(f"machine {worker % 2}", worker) for worker in range(self.workers) if worker not in busy]
        for info, task in self.splitter.next_tasks(idle):
            assert info.worker not in busy
            busy.add(info.worker)
            assert task.task_id not in self.released, "a task was released twice"
            self.released.add(task.task_id)
            self.running[task.task_id] = (info.worker, task)
        for task_id in self.splitter.aborts():
            assert task_id in self.running
            if self.rng.random() < 0.7:
                self.doomed.add(task_id)
        for task_id, beta in self.splitter.bounds():
            worker, task = self.running[task_id]
            assert beta < task.beta
            if self.rng.random() < 0.7:
                self.running[task_id] = (worker, task._replace(alpha=min(task.alpha, beta - 1), beta=beta))

    def _answer(self, task_id: int) -> None:
        if self.running[task_id][1].follows and task_id not in self.doomed:
            # It waits until it is recalled.
            return
        worker, task = self.running.pop(task_id)
        chance = self.rng.random()
        if task_id in self.doomed:
            self.splitter.on_result(self._result(task, 0, at.ABORTED))
        elif chance < 0.08:
            self.splitter.on_lost(task_id)
            self.gone |= {worker} if len(self.gone) + 1 < self.workers else set()
        elif chance < 0.2:
            self.splitter.on_result(self._result(task, 0, at.OUT_OF_NODES))
        elif chance < 0.25:
            stale = self._result(task, self.rng.randint(-30, 30), at.RUNNING)
            self.splitter.on_result(stale._replace(epoch=task.epoch - 1))
            self.splitter.on_result(stale._replace(task_id=task_id + 1_000_000))
            self.splitter.on_lost(task_id)
        else:
            self.splitter.on_result(self._result(task, self._any_score(task), at.RUNNING))

    def _any_score(self, task: Task) -> int:
        """Return any score that the fail-soft contract allows."""
        value = self.tree.minimax(task.position[0], task.depth)
        if value <= task.alpha:
            return self.rng.randint(value, task.alpha)
        if value >= task.beta:
            return self.rng.randint(task.beta, value)
        return value

    def _result(self, task: Task, score: int, status: int) -> TaskResult:
        nodes = self.rng.choice((1, 100, 1_000_000))
        return TaskResult(
            task.task_id, task.epoch, score, task.alpha, task.beta, status, (), Statistics(nodes=nodes), 0.0
        )

    def check_invariants(self) -> None:
        """Check invariants 1, 2, 6, 8 and 10 of the design on the whole tree."""
        splitter = self.splitter if isinstance(self.splitter, DynamicSplitter) else self.splitter._between
        assert isinstance(splitter, DynamicSplitter)
        tree = splitter.tree
        assert tree.contradictions == 0
        attached = set(map(id, tree.attached()))
        for node in tree.attached():
            assert node.lo <= self.tree.minimax(node.position[0], node.depth) <= node.hi
            assert all(id(twin) in attached for twin in tree.twins(node))
            if node.probability > 0 and node.parent is not None:
                assert node.parent.probability > 0
            if node.task_id is not None:
                assert node.children is None
                assert node.probability > 0
            if node.children and node.probability > 0:
                for child, demand in zip(node.children, demands(node, splitter.settings, splitter.guess), strict=True):
                    stored = (child.alpha, child.beta, child.probability, child.role)
                    alpha, beta = demand[:2]
                    is_answered = child.lo >= beta or child.hi <= alpha or child.is_exact()
                    assert stored == demand or (is_answered and child.probability == 0)

    def _check_line(self, line: tuple[int, ...]) -> None:
        node = self.tree.root
        for move in line:
            node = self.tree.children[node][move - 1]


def random_settings(rng: random.Random) -> SplitSettings:
    return SplitSettings(
        grain_s=rng.choice((1e-9, 0.02)),
        prefix_s=rng.choice((0.0, 0.0, 0.1)),
        least_depth=rng.randint(1, 3),
        master_s=0.0,
        tasks_per_worker=rng.choice((1.0, 12.0, 1e9)),
        team_size=rng.randint(1, 3),
        team_grain_s=0.0,
        follow_s=0.0,
    )


@pytest.mark.parametrize("kind", [DynamicSplitter, TeamSplitter])
@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=st.integers(0, 2**48))
def test_every_root_search_obeys_the_contract(kind: type[DynamicSplitter | TeamSplitter], seed: int) -> None:
    rng = random.Random(seed)
    tree = Tree(rng)
    splitter = kind(tree.as_root(), itertools.count(1), random_settings(rng))
    cluster = Cluster(tree, splitter, rng, workers=rng.randint(1, 6))
    epoch = 0
    for depth in range(1, tree.depth + 1):
        value = tree.minimax(tree.root, depth)
        middle = value + rng.randint(-6, 6)
        for window in (Window(middle - rng.randint(1, 4), middle + rng.randint(1, 4)), FULL_WINDOW):
            epoch += 1
            score = cluster.search(depth, window, epoch)
            if window.holds(value):
                assert score == value
                break
            assert value <= score <= window.alpha if value <= window.alpha else window.beta <= score <= value


def test_one_worker_is_never_asked_to_split() -> None:
    tree = Tree(random.Random(5))
    splitter = DynamicSplitter(tree.as_root(), itertools.count(1))
    splitter.start(tree.depth, FULL_WINDOW, 1, workers=1)
    tasks = splitter.next_tasks([WorkerInfo("machine", 0)])
    assert [task.depth for _, task in tasks] == [tree.depth]
    assert splitter.next_tasks([]) == []


@pytest.mark.parametrize("name", ["grain_s", "prefix_s", "least_depth", "tasks_per_worker"])
def test_the_strategy_is_data(name: str) -> None:
    changed = SplitSettings(**{name: 7})
    assert changed != SplitSettings()
    with pytest.raises(AttributeError):
        setattr(changed, name, 4)
