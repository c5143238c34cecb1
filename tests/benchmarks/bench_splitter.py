"""The dynamic splitter alone: events per second with many workers that answer at once.

Run it as ``python tests/benchmarks/bench_splitter.py [--workers 1000] [--events 20000]``. The tree is made of hashes,
and workers answer what its leaves' sums say to within the fail-soft contract, so that only the splitter's own time is
measured: the first wall that a bigger cluster meets.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections import deque
from dataclasses import dataclass

from cluster.dynamic_splitter import DynamicSplitter
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.split_settings import SplitSettings
from cluster.splitter import Root
from cluster.upper_tree import Child
from search import workspace as at
from search.aspiration import Window
from search.statistics import Statistics

BRANCHING = 12
DEPTH = 12
NODES_A_TASK = 100_000
SECONDS_A_TASK = 0.02


@dataclass(frozen=True)
class SplitterSpeed:
    """What was measured."""

    workers: int
    events: int
    """Results taken in."""
    time_s: float

    @property
    def events_per_s(self) -> float:
        """Results a second, each with the task that replaces it."""
        return self.events / self.time_s


def expand(position: tuple[int, ...], _ply: int, side: int, _history: tuple[int, ...]) -> list[Child]:
    """Return children whose keys are hashes of their parent's."""
    return [
        Child(move, (key,), 1 - side, key)
        for move, key in ((move, hash((position[0], move))) for move in range(1, BRANCHING + 1))
    ]


def answer(task: Task, rng: random.Random) -> TaskResult:
    """Return a result that most often is what the window expects."""
    score = rng.choice((task.alpha, task.alpha, task.beta)) if task.beta - task.alpha == 1 else task.beta - 1
    return TaskResult(
        task.task_id, task.epoch, score, task.alpha, task.beta, at.RUNNING, (1,),
        Statistics(nodes=NODES_A_TASK), SECONDS_A_TASK,
    )  # fmt: skip


def measure(workers: int, events: int, machines: int = 16) -> SplitterSpeed:
    """Drive the splitter until so many results have been taken in."""
    rng = random.Random(1)
    splitter = DynamicSplitter(Root((1,), 1, expand), itertools.count(1), SplitSettings(prefix_s=0.0))
    splitter.tree.root.estimate = 1e12
    infos = [WorkerInfo(f"machine {worker % machines}", worker) for worker in range(workers)]
    idle = deque(infos)
    running: deque[tuple[WorkerInfo, Task]] = deque()
    taken, epoch = 0, 0
    time_s = 0.0
    while taken < events:
        epoch += 1
        splitter.start(DEPTH + epoch % 2, Window(-50, 50), epoch, workers)
        running.clear()
        idle = deque(infos)
        started_s = time.perf_counter()
        while splitter.result() is None and taken < events:
            for info, task in splitter.next_tasks(list(itertools.islice(idle, 64))):
                idle.remove(info)
                running.append((info, task))
            splitter.aborts()
            splitter.bounds()
            if not running:
                break
            info, task = running.popleft()
            splitter.on_result(answer(task, rng))
            idle.append(info)
            taken += 1
        time_s += time.perf_counter() - started_s
    return SplitterSpeed(workers, taken, time_s)


def main() -> None:
    """Print one line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 16, 128, 1000])
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    for workers in options.workers:
        speed = measure(workers, options.events)
        print(f"{speed.workers:5} workers: {speed.events_per_s:9.0f} events/s ({1e6 / speed.events_per_s:.0f} us each)")


if __name__ == "__main__":
    main()
