"""A batch's workers on Ray: those that also share single searches (`cluster.ray_executor`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cluster.batch.jobs import PositionJob, pack_jobs, unpack_answers
from cluster.batch.pool import SMALLEST_MB, Answered, PoolEvent
from cluster.batch.settings import RunSettings
from cluster.cluster_options import ClusterOptions
from cluster.executor import WorkerJoined, WorkerLost
from cluster.ray_executor import RayExecutor
from cluster.records import WorkerInfo
from search.referee import print_notice
from search.rules import Game


class RayPool:
    """Ray actors that each search one position after the other.

    Parameters
    ----------
    game, settings
        What to search, and how.
    workers
        How many at most; None for one a CPU of the cluster.
    address, notice, options
        As for `RayExecutor`.

    Raises
    ------
    RootsplitError
        As `RayExecutor` does.
    """

    def __init__(
        self,
        game: Game,
        settings: RunSettings,
        workers: int | None,
        address: str,
        notice: Callable[[str], None] = print_notice,
        options: ClusterOptions = ClusterOptions(),
    ) -> None:
        own_mb = settings.own_table_mb(game)
        self._executor = RayExecutor(
            game, workers, SMALLEST_MB if own_mb else settings.table_mb, address,
            flags=settings.flags(game), notice=notice, options=options, own_table_mb=own_mb,
        )  # fmt: skip
        self._events: list[PoolEvent] = []

    def workers(self) -> list[WorkerInfo]:
        """Return the workers that are ready."""
        return self._executor.workers()

    def awaits_workers(self) -> bool:
        """Tell whether workers, or machines for them, are starting."""
        return self._executor.awaits_workers()

    def submit(self, worker: int, jobs: Sequence[PositionJob]) -> None:
        """Send positions to a worker as one call."""
        job_ids = tuple(job.job_id for job in jobs)

        def answered(from_worker: int, message: bytes) -> list[PoolEvent]:
            self._executor.renew(from_worker)
            return [Answered(from_worker, job_ids, tuple(unpack_answers(message)))]

        self._executor.send(worker, "analyse", pack_jobs(jobs), job_ids, answered)

    def poll(self, timeout_s: float) -> list[PoolEvent]:
        """Wait for calls that have been answered, or whose worker has died."""
        events, self._events = self._events, []
        for event in self._executor.poll(0.0 if events else timeout_s):
            if isinstance(event, Answered | WorkerLost | WorkerJoined):
                events.append(event)
        return events

    def replace(self, worker: int) -> None:
        """Kill a worker that does not answer, and start another one."""
        for event in self._executor.replace(worker):
            if isinstance(event, WorkerLost | WorkerJoined):
                self._events.append(event)

    def close(self) -> None:
        """End the actors and leave the cluster."""
        self._executor.close()
