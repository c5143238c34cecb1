"""The strategies as state machines: no kernel, no clock; a fake cluster answers whatever the contract allows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from cluster.records import Task, TaskResult, WorkerInfo
from cluster.root_splitter import RootSplitter, SingleSplitter
from cluster.splitter import Root, Splitter
from cluster.upper_tree import Child
from search import workspace as at
from search.aspiration import FULL_WINDOW, Window
from search.limits import NO_NODE_LIMIT
from search.results import RootResult
from search.scores import INFINITY, MATE
from search.statistics import Statistics

CASES = 4_000
ROOT_POSITION = (1_000_000,)
CONTROLS = {"root": RootSplitter, "single": SingleSplitter}
UNFINISHED = (at.OUT_OF_NODES, at.STOPPED, at.ABORTED)


@dataclass
class Tree:
    """A root whose children have known values."""

    values: list[int]
    """Exact, each from its child's own side to move."""
    sides: list[int]
    contempt: int = 0
    salt: int = 0

    @classmethod
    def grow(cls, rng: random.Random) -> Tree:
        reach = rng.choice((0, 2, 40, 2_000))
        values = []
        for _ in range(rng.randint(1, 8)):
            mate = MATE - rng.randint(1, 40)
            values.append(rng.choice((mate, -mate)) if rng.random() < 0.15 else rng.randint(-reach, reach))
        sides = [0 if rng.random() < 0.3 else 1 for _ in values]
        return cls(values, sides, rng.randint(-50, 50), rng.randint(-5, 5))

    @property
    def root(self) -> Root:
        children = [Child(100 + index, (index,), side, index) for index, side in enumerate(self.sides)]
        return Root(ROOT_POSITION, -1, lambda _position, _ply, _side, _history: children, self.contempt, self.salt)

    def move_value(self, move: int) -> int:
        """Return a move's value from the root's side to move."""
        index = move - 100
        return -self.values[index] if self.sides[index] else self.values[index]

    @property
    def moves(self) -> list[int]:
        return [100 + index for index in range(len(self.values))]

    @property
    def value(self) -> int:
        return max(self.move_value(move) for move in self.moves)

    def value_at(self, position: tuple[int, ...]) -> int:
        return self.value if position == ROOT_POSITION else self.values[position[0]]


def legal_answer(value: int, window: Window, rng: random.Random) -> int:
    """Return some result that the kernel's contract allows."""
    if value <= window.alpha:
        return rng.choice((value, window.alpha, rng.randint(value, window.alpha)))
    if value >= window.beta:
        return rng.choice((value, window.beta, rng.randint(window.beta, value)))
    return value


def random_window(rng: random.Random, value: int) -> Window:
    if rng.random() < 0.3:
        return FULL_WINDOW
    near = value + rng.randint(-3, 3)
    alpha = max(-INFINITY, min(INFINITY - 1, rng.choice((near, near - 30, rng.randint(-100, 100)))))
    return Window(alpha, min(INFINITY, alpha + rng.choice((1, 2, 50, 2 * INFINITY))))


@dataclass
class FakeCluster:
    """Workers in no time: they answer in any order, or get lost, or are stopped."""

    tree: Tree
    rng: random.Random
    workers: int
    loss_rate: float
    running: dict[int, tuple[WorkerInfo, Task]] = field(default_factory=dict)
    bounds: dict[int, int] = field(default_factory=dict)
    seen_ids: set[int] = field(default_factory=set)
    steps: int = 0

    def search(self, splitter: Splitter, depth: int, window: Window, epoch: int) -> RootResult:
        splitter.start(depth, window, epoch, workers=3)
        while (result := splitter.result()) is None:
            self.steps += 1
            assert self.steps < 10_000, "the search does not end"
            self.hand_out(splitter, depth, window, epoch)
            self.obey(splitter)
            if self.rng.random() < 0.1:
                self.disturb(splitter, epoch)
            self.answer_one(splitter)
            while self.running and self.rng.random() < 0.3:
                self.answer_one(splitter)
            if self.rng.random() < 0.5 and splitter.result() is None:
                self.obey(splitter)
        assert splitter.next_tasks(self.idle()) == []
        # Some moot tasks end before the aborts are carried out, the others are left running; no result is needed.
        for _ in range(self.rng.randint(0, len(self.running))):
            self.answer_one(splitter)
        self.obey(splitter)
        late = splitter.result()
        assert late is not None
        assert late == result or late.score >= window.beta
        assert splitter.next_tasks(self.idle()) == []
        return late

    def idle(self) -> list[WorkerInfo]:
        busy = {info.worker for info, _ in self.running.values()}
        idle = [WorkerInfo("here", worker) for worker in range(self.workers) if worker not in busy]
        self.rng.shuffle(idle)
        return idle

    def hand_out(self, splitter: Splitter, depth: int, window: Window, epoch: int) -> None:
        offered = self.idle()
        if offered and self.running and self.rng.random() < 0.3:
            offered = offered[: self.rng.randrange(len(offered))]
        handed = splitter.next_tasks(offered)
        # No deadlock: something runs, or is handed out.
        assert self.running or handed
        assert len({info.worker for info, _ in handed}) == len(handed)
        for info, task in handed:
            assert info in offered
            self.check_task(task, depth, window, epoch)
            self.running[task.task_id] = info, task

    def check_task(self, task: Task, depth: int, window: Window, epoch: int) -> None:
        assert task.task_id not in self.seen_ids
        self.seen_ids.add(task.task_id)
        assert task.position not in [other.position for _, other in self.running.values()]
        assert (task.epoch, task.node_limit) == (epoch, NO_NODE_LIMIT)
        assert (task.contempt, task.salt) == (self.tree.contempt, self.tree.salt)
        assert -INFINITY <= task.alpha < task.beta <= INFINITY
        if task.position == ROOT_POSITION:
            assert (task.depth, task.ply, task.side) == (depth, 0, 0)
            assert Window(task.alpha, task.beta) == window
            return
        assert (task.depth, task.ply, task.side) == (depth - 1, 1, self.tree.sides[task.position[0]])
        asked = Window(-task.beta, -task.alpha) if task.side else Window(task.alpha, task.beta)
        assert window.alpha <= asked.alpha < asked.beta <= window.beta

    def obey(self, splitter: Splitter) -> None:
        """Take aborts and bounds: some reach their worker in time, some do not."""
        aborted = splitter.aborts()
        assert len(set(aborted)) == len(aborted)
        assert set(aborted) <= set(self.running)
        if aborted:
            assert splitter.result() is not None
        for task_id, bound in splitter.bounds():
            assert task_id in self.running
            task = self.running[task_id][1]
            assert bound < min(task.beta, self.bounds.get(task_id, INFINITY))
            assert task.side == 1
            self.bounds[task_id] = bound
        assert splitter.aborts() == []
        assert splitter.bounds() == []

    def answer_one(self, splitter: Splitter) -> None:
        task_id = self.rng.choice(list(self.running))
        _, task = self.running.pop(task_id)
        if self.rng.random() < self.loss_rate:
            self.lose(splitter, task)
            return
        result = self.result_of(task)
        splitter.on_result(result)
        if self.rng.random() < 0.2:
            splitter.on_result(result)

    def lose(self, splitter: Splitter, task: Task) -> None:
        """End a task without a score: its worker died, or it was stopped; a late result may still come."""
        if self.rng.random() < 0.5:
            status = self.rng.choice(UNFINISHED)
            splitter.on_result(self.result_of(task)._replace(status=status, score=12345, line=(9,)))
        splitter.on_lost(task.task_id)
        if self.rng.random() < 0.5:
            splitter.on_result(self.result_of(task))

    def result_of(self, task: Task) -> TaskResult:
        window = Window(task.alpha, task.beta)
        bound = self.bounds.get(task.task_id)
        if bound is not None and self.rng.random() < 0.7:
            window = Window(min(window.alpha, bound - 1), bound)
        score = legal_answer(self.tree.value_at(task.position), window, self.rng)
        line: tuple[int, ...] = ()
        if task.position == ROOT_POSITION and score > window.alpha:
            line = (self.rng.choice([move for move in self.tree.moves if self.tree.move_value(move) >= score]),)
        elif score > window.alpha and self.rng.random() < 0.8:
            line = (7, 8)
        nodes = self.rng.randint(1, 1_000)
        return TaskResult(
            task.task_id, task.epoch, score, *window, at.RUNNING, line, Statistics(nodes=nodes), elapsed_s=0.1
        )

    def disturb(self, splitter: Splitter, epoch: int) -> None:
        """Send what must touch nothing: unknown ids, older epochs."""
        wrong = [0, -INFINITY + 1, INFINITY - 1]
        for score in wrong:
            unknown = TaskResult(
                1 << 40, epoch, score, -INFINITY, INFINITY, at.RUNNING, (5,), Statistics(nodes=10**9), elapsed_s=0.1
            )
            splitter.on_result(unknown)
            for task_id in self.running:
                splitter.on_result(unknown._replace(task_id=task_id, epoch=epoch - 1))
            for task_id in self.seen_ids - set(self.running):
                splitter.on_result(unknown._replace(task_id=task_id))
        splitter.on_lost(1 << 40)


def random_case(number: int) -> tuple[Tree, FakeCluster, random.Random]:
    rng = random.Random(number)
    tree = Tree.grow(rng)
    return tree, FakeCluster(tree, rng, rng.randint(1, 10), rng.choice((0.0, 0.0, 0.3))), rng


def make(strategy: str, tree: Tree) -> Splitter:
    return CONTROLS[strategy](tree.root, itertools.count(1))


def check_result(tree: Tree, window: Window, result: RootResult) -> None:
    """Hold a root result against the contract of the kernel, and its line against the moves' values."""
    assert result.is_finished
    if result.score <= window.alpha:
        assert tree.value <= result.score
        return
    if result.score >= window.beta:
        assert tree.value >= result.score
    else:
        assert result.score == tree.value
    assert result.line
    assert tree.move_value(result.line[0]) >= result.score


@pytest.fixture(params=sorted(CONTROLS))
def strategy(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_any_answers_in_any_order_give_the_root_its_value(strategy: str) -> None:
    exact = 0
    for number in range(CASES):
        tree, cluster, rng = random_case(number)
        window = random_window(rng, tree.value)
        result = cluster.search(make(strategy, tree), rng.randint(1, 9), window, epoch=3)
        check_result(tree, window, result)
        exact += window.holds(result.score)
    assert exact > CASES / 5


def test_searches_follow_each_other(strategy: str) -> None:
    """A splitter serves all iterations; whatever the last search left running touches nothing."""
    for number in range(CASES // 4):
        tree, cluster, rng = random_case(number)
        splitter = make(strategy, tree)
        for epoch in range(2, 7):
            # New iterations have new values.
            tree.values = [value + rng.randint(-9, 9) for value in tree.values]
            window = random_window(rng, tree.value)
            left = list(cluster.running.values())
            cluster.running.clear()
            cluster.bounds.clear()
            check_result(tree, window, cluster.search(splitter, epoch, window, epoch))
            before = splitter.result()
            for _, task in left:
                splitter.on_result(cluster.result_of(task))
                splitter.on_lost(task.task_id)
            assert splitter.result() == before


def test_a_search_can_be_given_up_at_any_moment(strategy: str) -> None:
    """After a stop, `start` begins anew, whatever was running."""
    for number in range(CASES // 4):
        tree, cluster, rng = random_case(number)
        splitter = make(strategy, tree)
        splitter.start(5, FULL_WINDOW, 1, workers=3)
        for _ in range(rng.randint(0, 6)):
            if splitter.result() is None:
                cluster.hand_out(splitter, 5, FULL_WINDOW, 1)
                cluster.obey(splitter)
                cluster.answer_one(splitter)
        cluster.running.clear()
        window = random_window(rng, tree.value)
        check_result(tree, window, cluster.search(splitter, 6, window, 2))


def test_nothing_is_handed_out_without_idle_workers(strategy: str) -> None:
    splitter = make(strategy, Tree([1, 2, 3], [1, 1, 1]))
    splitter.start(3, FULL_WINDOW, 1, workers=3)
    assert splitter.next_tasks([]) == []
    assert splitter.result() is None


def first_tasks(splitter: Splitter, workers: int) -> Iterator[Task]:
    for _, task in splitter.next_tasks([WorkerInfo("here", worker) for worker in range(workers)]):
        yield task


def answer(task: Task, score: int, nodes: int = 1) -> TaskResult:
    return TaskResult(
        task.task_id, task.epoch, score, task.alpha, task.beta, at.RUNNING, (), Statistics(nodes=nodes), elapsed_s=0.0
    )


def test_single_gives_the_whole_root_to_the_first_worker() -> None:
    splitter = make("single", Tree([1, 2], [1, 1]))
    splitter.start(7, Window(-20, 20), 4, workers=3)
    ((info, task),) = splitter.next_tasks([WorkerInfo("here", 2), WorkerInfo("here", 1)])
    assert info.worker == 1
    assert (task.position, task.depth, task.alpha, task.beta) == (ROOT_POSITION, 7, -20, 20)
    assert list(first_tasks(splitter, 3)) == []


def test_root_searches_the_first_move_alone_then_the_others_with_null_windows() -> None:
    splitter = make("root", Tree([0] * 4, [1, 1, 0, 1]))
    splitter.start(7, Window(-20, 20), 4, workers=3)
    (first,) = first_tasks(splitter, 4)
    assert (first.position, first.alpha, first.beta) == ((0,), -20, 20)
    splitter.on_result(answer(first, -5))
    second, third, fourth = first_tasks(splitter, 4)
    # The best is 5 now: children of the other side are asked about (-6, -5), one of the same side about (5, 6).
    assert [(task.position[0], task.alpha, task.beta) for task in (second, third, fourth)] == [
        (1, -6, -5),
        (2, 5, 6),
        (3, -6, -5),
    ]
    splitter.on_result(answer(second, -9))
    # It beat its null window: it is searched again with the rest, and the others learn the better bound.
    assert splitter.bounds() == [(fourth.task_id, -9)]
    (again,) = first_tasks(splitter, 1)
    assert (again.position, again.alpha, again.beta) == ((1,), -20, -8)
    # Its own lower bound must not narrow it: the score would be known, but not its line.
    splitter.on_result(answer(third, 3))
    assert splitter.bounds() == []
    splitter.on_result(answer(fourth, 9))
    splitter.on_result(answer(again, -9))
    result = splitter.result()
    assert result is not None
    assert (result.score, result.line) == (9, (101,))


def test_root_aborts_what_a_refutation_makes_moot() -> None:
    splitter = make("root", Tree([0] * 4, [1] * 4))
    splitter.start(7, Window(-20, 20), 4, workers=3)
    (first,) = first_tasks(splitter, 4)
    splitter.on_result(answer(first, 5))
    second, third, fourth = first_tasks(splitter, 4)
    splitter.on_result(answer(third, -20))
    assert sorted(splitter.aborts()) == [second.task_id, fourth.task_id]
    assert splitter.aborts() == []
    result = splitter.result()
    assert result is not None
    assert (result.score, result.line[0]) == (20, 102)


def test_root_begins_with_the_best_move_of_the_last_search_and_then_the_hardest() -> None:
    splitter = make("root", Tree([0] * 4, [1] * 4))
    splitter.start(5, FULL_WINDOW, 1, workers=3)
    (first,) = first_tasks(splitter, 4)
    splitter.on_result(answer(first, 0, nodes=10))
    second, third, fourth = first_tasks(splitter, 4)
    splitter.on_result(answer(second, 4, nodes=20))
    splitter.on_result(answer(third, -3, nodes=30))
    (again,) = first_tasks(splitter, 1)
    splitter.on_result(answer(again, -3, nodes=5))
    splitter.on_result(answer(fourth, 4, nodes=40))
    assert splitter.result() is not None
    splitter.start(6, FULL_WINDOW, 2, workers=3)
    (first,) = first_tasks(splitter, 4)
    assert first.position == (2,)
    splitter.on_result(answer(first, -3))
    assert [task.position[0] for task in first_tasks(splitter, 4)] == [3, 1, 0]
