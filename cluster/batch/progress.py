"""What a batch shows while it runs: one live line on a terminal."""

from __future__ import annotations

import time
from collections import deque

from rich.progress import BarColumn, TextColumn

from cluster.batch.run import RunState
from cluster.progress import LiveLine, short

_SPAN_S = 30.0
"""Rates are those of so many seconds."""
_UPDATE_S = 0.25


class BatchProgress(LiveLine):
    """Shows rows done, errors, rate, time left, nodes per second and workers on stderr, if that is a terminal."""

    def __init__(self) -> None:
        super().__init__(BarColumn(20), TextColumn("{task.description}"))
        self._task = self._progress.add_task("starting", total=None)
        self._points: deque[tuple[float, int, int]] = deque()
        self._next_s = 0.0

    def update(self, state: RunState) -> None:
        """Show how the run stands."""
        now_s = time.monotonic()
        if self._progress.disable or now_s < self._next_s:
            return
        self._next_s = now_s + _UPDATE_S
        self._points.append((now_s, state.new_rows, state.new_nodes))
        while now_s - self._points[0][0] > _SPAN_S:
            self._points.popleft()
        self._progress.update(
            self._task, description=self._text(state), completed=state.tally.rows, total=state.rows_in_all
        )

    def _text(self, state: RunState) -> str:
        (first_s, first_rows, first_nodes), (last_s, last_rows, last_nodes) = self._points[0], self._points[-1]
        span_s = max(last_s - first_s, 1e-9)
        rate, nodes = (last_rows - first_rows) / span_s, (last_nodes - first_nodes) / span_s
        total = "" if state.rows_in_all is None else f" of {state.rows_in_all}"
        parts = [f"{state.tally.rows}{total} rows"]
        if state.tally.failed:
            parts.append(f"{state.tally.failed} failed")
        parts.append(f"{short(rate)} rows/s")
        if state.rows_in_all is not None and rate > 0:
            parts.append(f"{_clock((state.rows_in_all - state.tally.rows) / rate)} left")
        parts.append(f"{short(nodes)} nodes/s")
        parts.append(f"{state.busy_workers} of {state.workers} workers")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
