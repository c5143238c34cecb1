"""Several workers on each position: teams, each with a session of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cluster.batch.analyst import CALL_S, answer_of
from cluster.batch.jobs import Answer, PositionJob
from cluster.batch.pool import ThreadPool
from cluster.batch.settings import RunSettings, SettingsError
from cluster.cluster_options import ClusterOptions
from cluster.executor import ThreadExecutor
from cluster.request import SearchRequest, cores
from cluster.session import Session
from search.limits import Limits
from search.referee import print_notice
from search.rules import Game
from search.solving import Question


class _Team:
    """Workers that search one position after the other together."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._is_stopped = False

    def run(self, jobs: Sequence[PositionJob]) -> list[Answer]:
        """Search positions in turn, until the time of a call is up."""
        end_s = time.monotonic() + CALL_S
        answers = []
        for job in jobs:
            answers.append(self._answer(job))
            if self._is_stopped or time.monotonic() >= end_s:
                break
        return answers

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self._is_stopped = True
        self.session.stop()

    def close(self) -> None:
        """Give workers and table back."""
        self.session.close()

    def _answer(self, job: PositionJob) -> Answer:
        seconds = min((limit for limit in (job.time_s, job.deadline_s) if limit is not None), default=None)
        limits = Limits(job.depth, job.nodes, seconds, job.mate)
        started_s = time.monotonic()
        question = None if job.solve is None else Question(job.solve)
        request = SearchRequest(job.position, job.moves, limits, multipv=job.multipv, solve=question)
        report = self.session.search(request)
        return answer_of(self.session.referee, report.result, job, time.monotonic() - started_s)


def session_pool(
    game: Game,
    settings: RunSettings,
    workers: int | None,
    address: str | None,
    notice: Callable[[str], None] = print_notice,
    options: ClusterOptions = ClusterOptions(),
) -> ThreadPool:
    """Return a pool whose members are teams of `settings.split` workers.

    On threads each team has its share of the table's memory. On Ray there is one team: a process joins one cluster.

    Parameters
    ----------
    game, settings
        What to search, and how.
    workers
        How many in all; None for all cores that there are.
    address
        None for threads of this process, else as for `RayExecutor`.
    notice
        As for `Searcher`.
    options
        Of workers on Ray.

    Raises
    ------
    SettingsError
        If there are fewer workers than a team has, or on Ray more.
    """
    split = settings.split
    wanted = workers or (cores() if address is None else split)
    if wanted < split:
        raise SettingsError(f"{split} workers on each position were asked for, and there are {wanted} in all")
    if address is not None and wanted > split:
        raise SettingsError(
            f"on Ray one team searches at a time: give --split {wanted} to have all {wanted} workers on each position,"
            " or leave it out to have one position on each worker"
        )
    teams = wanted // split
    made: list[_Team] = []

    def make(_number: int) -> _Team:
        if address is None:
            executor = ThreadExecutor(game, split, settings.table_mb / teams, flags=settings.flags(game), notice=notice)
            session = Session(game, executor, settings.table_mb / teams, notice)
        else:
            from cluster.ray_executor import RayExecutor

            on_ray = RayExecutor(
                game, split, settings.table_mb, address, flags=settings.flags(game), notice=notice, options=options
            )
            session = Session(game, on_ray, settings.table_mb, notice)
        made.append(_Team(session))
        return made[-1]

    def stop() -> None:
        for team in made:
            team.stop()

    return ThreadPool(make, teams, stop, lambda: None, notice)
