"""The live line of an experiment: what runs, how many runs are done, and how long the rest will take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from cluster.progress import LiveLine
from cluster.scaling.plan import SIMULATED, Configuration, PlannedRun, Problem
from cluster.scaling.records import RunRecord


class Forecast:
    """Guesses how long runs will take from those that have been made."""

    def __init__(self) -> None:
        self._by_problem: defaultdict[Problem, list[float]] = defaultdict(list)
        self._by_configuration: defaultdict[Configuration, list[float]] = defaultdict(list)
        self._all: list[float] = []

    def learn(self, problem: Problem, configuration: Configuration, time_s: float) -> None:
        """Take in how long a run took, in real seconds."""
        self._by_problem[problem].append(time_s)
        self._by_configuration[configuration].append(time_s)
        self._all.append(time_s)

    def seconds(self, runs: Sequence[PlannedRun]) -> float | None:
        """Return how long some runs will take; None if nothing is known.

        A problem's share of the mean times a configuration's: both are known long before their product is.
        """
        if not self._all:
            return None
        mean_s = max(1e-9, sum(self._all) / len(self._all))

        def factor(times_s: list[float]) -> float:
            return sum(times_s) / len(times_s) / mean_s if times_s else 1.0

        return sum(
            mean_s * factor(self._by_problem[run.problem]) * factor(self._by_configuration[run.configuration])
            for run in runs
        )


class _TimeLeft(ProgressColumn):
    """The forecast."""

    def render(self, task: Task) -> Text:
        """Return the column's text."""
        left_s = task.fields.get("left_s")
        if left_s is None:
            return Text("")
        minutes, seconds = divmod(round(max(0.0, left_s)), 60)
        hours, minutes = divmod(minutes, 60)
        text = (
            f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
        )
        return Text(f"about {text} left")


class ExperimentProgress(LiveLine):
    """Shows how an experiment gets on, on stderr while it runs, if that is a terminal."""

    def __init__(self) -> None:
        super().__init__(
            SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), _TimeLeft(),
            TextColumn("{task.description}"),
        )  # fmt: skip
        self._task = self._progress.add_task("starting", total=None, left_s=None)
        self._forecast = Forecast()
        self._waiting: dict[tuple[object, ...], PlannedRun] = {}
        self._started_s = 0.0

    def begin(self, runs: Sequence[PlannedRun], done: Sequence[RunRecord]) -> None:
        """Learn what is to be run, and what has been."""
        self._waiting = {run.key: run for run in runs}
        for record in done:
            if self._waiting.pop(record.key, None) is not None and record.configuration.address != SIMULATED:
                self._forecast.learn(record.problem, record.configuration, record.time_s)
        self._progress.update(self._task, total=len(runs), completed=len(runs) - len(self._waiting))
        self._show_time_left()

    def say(self, what: str) -> None:
        """Show what is done besides runs."""
        self._progress.update(self._task, description=what)

    def start(self, run: PlannedRun) -> None:
        """Show which run begins."""
        configuration = run.configuration
        self._started_s = self._progress.get_time()
        self.say(f"{configuration.label}, {configuration.workers} workers, problem {run.problem.label[:40]}")

    def finish(self, record: RunRecord) -> None:
        """Count a run."""
        self._waiting.pop(record.key, None)
        # Not the run's own time: a simulated run's is virtual.
        self._forecast.learn(record.problem, record.configuration, self._progress.get_time() - self._started_s)
        self._progress.advance(self._task)
        self._show_time_left()

    def _show_time_left(self) -> None:
        self._progress.update(self._task, left_s=self._forecast.seconds(list(self._waiting.values())))
