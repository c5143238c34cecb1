"""What the coordinator sends: lists of short tasks, few calls at a time, each task once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from conftest import silent

from cluster.executor import Event, ResultEvent, ThreadExecutor
from cluster.records import Task
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.simulated_executor import SimulatedExecutor
from cluster.split_settings import SplitSettings
from search.driver import search
from search.flags import Flags
from search.limits import Limits
from search.rules import Game

EXACT_DEPTH = Flags(exact_depth=True)
POSITION, DEPTH = "4453", 12
FINE = SplitSettings(grain_s=1e-5, prefix_s=1e-4, first_rate=1e6)
"""Tasks of a few nodes."""


class RecordingExecutor(ThreadExecutor):
    """Two threads that remember their calls."""

    def __init__(self, game: Game, call_s: float) -> None:
        self.call_s = call_s
        self.sizes: list[int] = []
        self.task_ids: Counter[int] = Counter()
        self.most_calls = 0
        self._open: list[set[int]] = []
        super().__init__(game, 2, 1.0, flags=EXACT_DEPTH, notice=silent)

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Count a call."""
        self.sizes.append(len(tasks))
        self.task_ids.update(task.task_id for task in tasks)
        self._open.append({task.task_id for task in tasks})
        self.most_calls = max(self.most_calls, len(self._open))
        super().submit(worker, tasks)

    def poll(self, timeout_s: float) -> list[Event]:
        """Note which calls have been answered."""
        events = super().poll(timeout_s)
        done = {event.result.task_id for event in events if isinstance(event, ResultEvent)}
        self._open = [left for left in (call - done for call in self._open) if left]
        return events


@pytest.mark.parametrize(("call_s", "has_lists"), [(0.0, False), (1.0, True)])
def test_tasks_travel_in_lists_where_a_call_is_dear(connect_four: Game, call_s: float, has_lists: bool) -> None:
    expected = search(connect_four, connect_four.parse(POSITION), Limits(depth=DEPTH), flags=EXACT_DEPTH, notice=silent)
    executor = RecordingExecutor(connect_four, call_s)
    with Session(connect_four, executor, 1.0, silent) as session:
        report = session.search(SearchRequest(POSITION, (), Limits(depth=DEPTH), "dynamic", settings=FINE))
    assert report.result.score == expected.score
    assert (max(executor.sizes) > 1) is has_lists
    assert max(executor.sizes) <= 16
    assert executor.most_calls <= 4, "two calls at a time for each of two workers"
    assert set(executor.task_ids.values()) == {1}
    assert report.overheads.tasks == sum(executor.sizes)


def test_lists_run_in_virtual_time_too(connect_four: Game) -> None:
    expected = search(connect_four, connect_four.parse(POSITION), Limits(depth=DEPTH), flags=EXACT_DEPTH, notice=silent)
    executor = SimulatedExecutor(connect_four, 4, 1.0, flags=EXACT_DEPTH, notice=silent)
    executor.call_s = 1.0
    with Session(connect_four, executor, 1.0, silent) as session:
        report = session.search(SearchRequest(POSITION, (), Limits(depth=DEPTH), "dynamic", settings=FINE))
    assert report.result.score == expected.score
    assert report.overheads.tasks > 100
