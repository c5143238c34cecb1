"""What a search shows a person: a line for each iteration, a live line on a terminal, and the answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from search.mcts_standing import VERDICT_NAMES
from search.results import Iteration

if TYPE_CHECKING:
    from cluster.report import SearchReport


_SHOWN_MOVES = 8
"""Of a Monte Carlo tree search: all are in its JSON."""


class _TimeLeft(ProgressColumn):
    """Seconds to the time limit, where there is one."""

    def render(self, task: Task) -> Text:
        """Return the column's text."""
        if task.total is None or task.elapsed is None:
            return Text("")
        return Text(f"{max(0.0, task.total - task.elapsed):.0f} s left")


class LiveLine:
    """A line on stderr that lives as long as its block runs, if stderr is a terminal.

    Parameters
    ----------
    columns
        What it shows.
    """

    def __init__(self, *columns: ProgressColumn) -> None:
        console = Console(stderr=True)
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def __enter__(self) -> Self:
        """Begin to show it."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take it away."""
        self._progress.stop()


class SearchProgress(LiveLine):
    """Shows the running iteration on stderr while it runs, if that is a terminal.

    Parameters
    ----------
    workers
        Tells how many search: some may be lost or join. Which ones, the executor's notices say above the live line.
    time_s
        The time limit, if there is one.
    """

    def __init__(self, workers: Callable[[], int], time_s: float | None) -> None:
        super().__init__(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), _TimeLeft())
        self._task = self._progress.add_task(f"{workers()} workers, depth 1", total=time_s)
        self._workers = workers
        self._nodes = 0
        self._began_s = time.monotonic()

    def on_iteration(self, iteration: Iteration) -> None:
        """Show that a depth is finished."""
        self._nodes += iteration.statistics.nodes
        # Not the iteration's own time, which counts that of an earlier run whose checkpoint was taken.
        rate = self._nodes / max(time.monotonic() - self._began_s, 1e-9)
        self._progress.update(
            self._task,
            description=f"{self._workers()} workers, depth {iteration.depth + 1}, {short(rate)} nodes/s",
        )


def print_report(report: SearchReport) -> None:
    """Print the iterations and the answer on stdout."""
    out = sys.stdout
    result = report.result
    has_ranks = report.multipv > 1
    print(f"{'depth':>5}{' rank' * has_ranks} {'score':>8} {'nodes':>9} {'seconds':>8}  line", file=out)
    for iteration, lines in zip(result.iterations, report.iteration_lines, strict=True):
        for line in lines:
            # Nodes and time are the iteration's: they stand once.
            depth, nodes, seconds = "", "", ""
            if line.rank == 1:
                nodes, seconds = short(iteration.statistics.nodes), f"{iteration.time_s:.2f}"
                depth = str(iteration.depth)
            rank = f" {line.rank:4}" * has_ranks
            moves = " ".join(line.principal_variation)
            print(f"{depth:>5}{rank} {line.score_text:>8} {nodes:>9} {seconds:>8}  {moves}", file=out)
    if result.iterations and len(report.lines) < report.multipv:
        print(f"{len(report.lines)} of {report.multipv} lines: there are no more first moves", file=out)
    for move in result.root_moves[:_SHOWN_MOVES]:
        text = report.game.move_text(result.position, move.move)
        proved = "" if VERDICT_NAMES[move.verdict] is None else f"  proved {VERDICT_NAMES[move.verdict]}"
        print(f"{text:>8} {move.visits:>10} visits {move.win_rate:>7.1%} won{proved}", file=out)
    solved = ", solved" if result.is_solved else ""
    answer = "chance moves first" if report.best_move is None else f"best move {report.best_move}"
    print(f"{answer}, score {report.score_text()}{solved}", file=out)
    print(
        f"{short(result.statistics.nodes)} nodes in {result.time_s:.2f} s, {short(report.nodes_per_s)} nodes/s, "
        f"{report.workers} workers on {report.machines} machine(s), strategy {report.strategy}, "
        f"table {report.table_mb:g} MB, idle {report.overheads.idle:.0%}",
        file=out,
    )


def short(number: float) -> str:
    """Return a count with a unit: 1234567 as 1.2 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"
