"""What a cluster's dashboard can show of a search: metrics in Ray's own way, named ``rootsplit_*``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ray.util import metrics

from cluster.batch.jobs import Answer
from cluster.records import TaskResult

_TAGS = ("run", "game")


def _counter(name: str, description: str, tags: dict[str, str]) -> Any:
    counter = cast(Any, metrics).Counter(f"rootsplit_{name}", description=description, tag_keys=_TAGS)
    counter.set_default_tags(tags)
    return counter


def _gauge(name: str, description: str, tags: dict[str, str]) -> Any:
    gauge = cast(Any, metrics).Gauge(f"rootsplit_{name}", description=description, tag_keys=_TAGS)
    gauge.set_default_tags(tags)
    return gauge


def _count(counter: Any, amount: float) -> None:
    """Add to a counter: Ray's take no zero."""
    if amount > 0:
        counter.inc(amount)


class WorkerMetrics:
    """Counts what a worker's process does; rates are left to whoever reads.

    Parameters
    ----------
    run, game
        Tags of all its metrics.
    """

    def __init__(self, run: str, game: str) -> None:
        tags = {"run": run, "game": game}
        self._nodes = _counter("nodes", "Nodes searched.", tags)
        self._positions = _counter("positions", "Positions of batches that were searched.", tags)
        self._tasks = _counter("tasks", "Tasks that ended, finished or not.", tags)
        self._unfinished = _counter(
            "unfinished_tasks", "Tasks that were aborted, stopped, or out of their budget.", tags
        )
        self._busy_s = _counter("busy_seconds", "Seconds spent on tasks and positions.", tags)
        self._probes = _counter("table_probes", "Table probes.", tags)
        self._hits = _counter("table_hits", "Table probes that found their position.", tags)

    def note(self, results: Iterable[TaskResult]) -> None:
        """Count what came of some tasks."""
        for result in results:
            self._tasks.inc()
            if not result.is_finished:
                self._unfinished.inc()
            _count(self._nodes, result.statistics.nodes)
            _count(self._busy_s, result.elapsed_s)
            _count(self._probes, result.statistics.probes)
            _count(self._hits, result.statistics.hits)

    def note_answers(self, answers: Iterable[Answer]) -> None:
        """Count what came of some positions of a batch."""
        for answer in answers:
            self._positions.inc()
            _count(self._nodes, answer.nodes)
            _count(self._busy_s, answer.time_s)


class MachineMetrics:
    """Tells how a machine is: its table, its exchange with others, its workers.

    Parameters
    ----------
    run, game
        Tags of all its metrics.
    """

    def __init__(self, run: str, game: str) -> None:
        tags = {"run": run, "game": game}
        self.hashfull = _gauge("table_fill", "Share of the table in use, 0..1.", tags)
        self.workers = _gauge("workers", "Workers of this machine that run.", tags)
        self.sent = _counter("sent_entries", "Table entries sent to other machines.", tags)
        self.taken = _counter("taken_entries", "Table entries taken from other machines.", tags)
        self.refused = _counter("refused_batches", "Damaged batches of table entries from other machines.", tags)
        self.ended = _counter("ended_workers", "Workers that hung and were killed.", tags)
