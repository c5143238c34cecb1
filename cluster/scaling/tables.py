"""The tables of a report as data: the terminal, the HTML page and the CSV file show the same words."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cluster.scaling.plan import BATCH, LIMIT
from cluster.scaling.statistics import Interval
from cluster.scaling.summary import Row, Validation
from cluster.strategies import SINGLE


@dataclass(frozen=True)
class Table:
    """A caption, a header and rows of words; all columns but the first are figures."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def text(self) -> str:
        """Return the table as lines for a terminal."""
        cells = [self.header, *self.rows]
        widths = [max(_width(row[column]) for row in cells) for column in range(len(self.header))]
        lines = [self.caption]
        for row in cells:
            first = row[0] + " " * (widths[0] - _width(row[0]))
            others = (" " * (width - _width(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True))
            lines.append("  ".join([first, *others]).rstrip())
        return "\n".join(lines)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def label_of(row: Row, rows: Sequence[Row]) -> str:
    """Return a row's name, with the table's size where that differs."""
    sizes = {other.configuration.table_mb for other in rows}
    return row.label + (f", {row.configuration.table_mb:g} MB" if len(sizes) > 1 else "")


def speedup_table(rows: Sequence[Row], *, simulated: bool) -> Table:
    """Return the speed-ups of real or of simulated runs."""
    shown = [row for row in rows if row.is_simulated == simulated and not row.is_validation]
    caption = "Speed-up (SIMULATED: virtual time, real searches)" if simulated else "Speed-up"
    header = (
        "configuration", "workers", "sequential s", "time s", "speed-up",
        *(() if simulated else ("limit", "of the limit")), "efficiency", "geometric mean", "exponent", "problems",
    )  # fmt: skip
    return Table(caption, header, tuple(_speedup_cells(row, rows, simulated) for row in shown))


def _speedup_cells(row: Row, rows: Sequence[Row], simulated: bool) -> tuple[str, ...]:
    is_limit = row.configuration.strategy == LIMIT
    return (
        label_of(row, rows),
        str(row.configuration.workers),
        seconds(row.sequential_s),
        seconds(row.time_s) if not is_limit else "",
        row.speedup.text(),
        *(() if simulated else (optional(row.limit), optional(row.share_of_limit))),
        row.efficiency.text(),
        row.speedup_mean.text(),
        "" if row.exponent is None else f"{row.exponent:.2f}",
        str(len(row.pairs)),
    )


def decomposition_table(rows: Sequence[Row]) -> Table:
    """Return where the workers' time went."""
    header = (
        "configuration", "workers", "speed-up", "load", "rate", "search overhead", "idle", "communication",
        "factors / speed-up", "worst run",
    )  # fmt: skip
    cells = []
    for row in rows:
        parts = row.decomposition
        if parts is None or row.is_validation or row.configuration.strategy == SINGLE:
            continue
        cells.append(
            (
                label_of(row, rows), str(parts.workers), f"{parts.speedup:.2f}", percent(parts.load),
                f"{parts.rate:.3f}", percent(parts.search_overhead), percent(parts.idle),
                percent(parts.communication), f"{parts.identity:.3f}", f"{row.identity:.3f}",
            )
        )  # fmt: skip
    note = (
        "speed-up = workers * load * rate / (1 + search overhead). Load: share of the workers' time in which they"
        " search. Rate: their nodes a second while they do, over the sequential search's. Search overhead: nodes"
        " beyond the sequential search's."
    )
    return Table("Where the workers' time went", header, tuple(cells), note)


def effort_table(rows: Sequence[Row]) -> Table:
    """Return nodes, tasks and the table's fill."""
    header = (
        "configuration", "workers", "machines", "runs", "M nodes/s", "tasks", "mean task ms", "splitter s", "table full"
    )  # fmt: skip
    cells = [
        (
            label_of(row, rows), str(row.configuration.workers), str(row.machines), str(row.runs),
            f"{row.nodes_per_s / 1e6:.2f}", f"{row.tasks:.0f}", f"{row.task_s * 1e3:.1f}", f"{row.splitter_s:.3f}",
            percent(row.table_fill),
        )
        for row in rows
        if not row.is_validation
    ]  # fmt: skip
    note = "Tasks and the splitter's seconds are of one run, on average; the fill is the fullest run's."
    return Table("Nodes, tasks and table", header, tuple(cells), note)


def validation_table(found: Sequence[Validation]) -> Table:
    """Return the simulator beside the real runs."""
    header = (
        "configuration", "workers", "problems", "real s", "simulated s", "simulated / real", "real speed-up",
        "predicted",
    )  # fmt: skip
    cells = [
        (
            item.real.label, str(item.real.configuration.workers), str(item.problems), seconds(item.real_s),
            seconds(item.simulated_s), item.ratio.text(), f"{item.speedup:.2f}", f"{item.predicted:.2f}",
        )
        for item in found
    ]  # fmt: skip
    note = (
        "The simulator at workers that exist, with the node rate that they have when all of them search, beside the"
        " same searches in real time. 1.00 would be a perfect prediction."
    )
    return Table("Is the simulator right? (SIMULATED beside real)", header, tuple(cells), note)


def problem_table(rows: Sequence[Row]) -> Table:
    """Return each problem with its sequential time beside the speed-ups of the widest real configurations."""
    real = [row for row in rows if not row.is_simulated and row.configuration.strategy not in (SINGLE, LIMIT, BATCH)]
    most = max((row.configuration.workers for row in real), default=0)
    shown = [row for row in real if row.configuration.workers == most] if real else []
    singles = {pair.problem: pair.record for row in rows if row.configuration.strategy == SINGLE for pair in row.pairs}
    speedups = [{pair.problem: pair.speedup for pair in row.pairs} for row in shown]
    cells = []
    for problem, single in sorted(singles.items(), key=lambda item: item[0].number):
        found = tuple(f"{own[problem]:.2f}" if problem in own else "" for own in speedups)
        depth = "solved" if problem.goes_to_the_end else problem.extent.removeprefix("depth ")
        cells.append(
            (
                f"{problem.number}: {problem.text}", depth, str(single.scores[0]), single.best_move,
                seconds(single.time_s), f"{single.nodes / 1e6:.1f}", *found,
            )
        )  # fmt: skip
    header: tuple[str, ...] = ("position", "depth", "score", "move", "sequential s", "M nodes")
    header += tuple(f"{label_of(row, rows)}, {most} workers" for row in shown)
    return Table(f"Positions, and their speed-up with {most} workers", header, tuple(cells))


def headline(rows: Sequence[Row]) -> list[str]:
    """Return the result in sentences: of each line of configurations, the one with the most workers."""
    widest: dict[tuple[object, ...], Row] = {}
    for row in rows:
        if row.configuration.strategy in (SINGLE, LIMIT) or row.is_validation or row.configuration.workers == 1:
            continue
        key = (*row.configuration.series, row.imitated)
        if key not in widest or row.configuration.workers > widest[key].configuration.workers:
            widest[key] = row
    return [_sentence(row, rows) for row in widest.values()]


def _sentence(row: Row, rows: Sequence[Row]) -> str:
    mark = "Simulated: " if row.is_simulated else ""
    times = [pair.baseline.time_s for pair in row.pairs]
    count = "1 problem" if len(times) == 1 else f"{len(times)} problems"
    other = "its own one worker" if row.configuration.strategy == BATCH else "the sequential search"
    text = (
        f"{mark}{row.configuration.workers} workers, {label_of(row, rows)}: {row.speedup.text()} times as fast as"
        f" {other} ({count}, median {seconds(median(times))} s, total {seconds(row.sequential_s)} s of one worker)"
    )
    if row.limit is not None:
        text += f"; the machine itself allows {row.limit.text()}"
    return text + "."


def seconds(time_s: float) -> str:
    """Return seconds with three digits or more."""
    return f"{time_s:.0f}" if time_s >= 1000 else f"{time_s:.3g}"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{round(100 * share, 1) + 0.0:.1f} %"


def optional(interval: Interval | None) -> str:
    """Return an interval's text, nothing for none."""
    return "" if interval is None else interval.text()
