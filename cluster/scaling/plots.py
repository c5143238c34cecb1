"""The plots of a report: each a function from rows to a figure; no state, no window, no network."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from cluster.scaling.anchors import ANCHORS
from cluster.scaling.plan import BATCH, LIMIT
from cluster.scaling.records import DURATION_EDGES_S, RunRecord
from cluster.scaling.summary import Row
from cluster.scaling.tables import label_of
from cluster.strategies import SINGLE

INK = "#1f2328"
"""The colour of all text and axes: the page replaces it by its own."""
PALE = "#8b949e"
COLOURS = ("#2f81c7", "#d9722e", "#2f9e68", "#a661c2", "#b8901c", "#cc4457", "#3f9a9a", "#7a6ff0")
_PARTS = (
    ("useful", "#2f9e68"), ("search overhead", "#d9722e"), ("slower nodes", "#b8901c"),
    ("communication", "#a661c2"), ("idle", "#8b949e"),
)  # fmt: skip
_SIZE_IN = (5.0, 3.5)
_RASTER_FROM = 1500
"""So many bars and more are drawn as pixels."""
_STYLE: dict[str, object] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), INK),
    "legend.frameon": False,
    "legend.fontsize": 8,
}

Draw = Callable[[Axes], None]


def _figure(draw: Draw, height_in: float = _SIZE_IN[1]) -> Figure:
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = Figure((_SIZE_IN[0], height_in), layout="constrained")
        draw(figure.add_subplot())
    return figure


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write a figure as SVG and as PNG; returns the SVG's text.

    Parameters
    ----------
    figure
        What one of the functions below has returned.
    folder
        Must be there.
    name
        Of the files, without ending.
    """
    text = io.StringIO()
    with mpl.rc_context(_STYLE | {"svg.hashsalt": name}):  # type: ignore[arg-type]
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        figure.savefig(folder / f"{name}.png", dpi=200, facecolor="white")
    (folder / f"{name}.svg").write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()


def _series(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the lines of a plot over numbers of workers, in the rows' order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if not row.is_validation and row.configuration.strategy not in (SINGLE, LIMIT):
            found.setdefault(label_of(row, rows), []).append(row)
    return found


def _workers_axis(axes: Axes, most: int) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlim(0.9, most * 1.15)
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.set_xlabel("workers")


def _errors(rows: Sequence[Row], efficiency: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return how far the intervals reach below and above, 0 where there is none."""
    intervals = [row.efficiency if efficiency else row.speedup for row in rows]
    reach = [(item.value - item.low, item.high - item.value) for item in intervals]
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.nan_to_num(np.array(reach, np.float64).T)
    return found


def speedup(rows: Sequence[Row]) -> Figure:
    """Draw speed-up over workers, both logarithmic, with the ideal, the machine's limit and published figures."""

    def draw(axes: Axes) -> None:
        most = max([row.configuration.workers for row in rows] + [2])
        shows_anchors = most > 2
        reach = max(most, *(anchor.workers for anchor in ANCHORS)) if shows_anchors else most
        axes.plot([1, reach], [1, reach], color=PALE, linewidth=1, linestyle="--", label="ideal")
        for colour, (label, line) in zip(_cycle(), _series(rows).items(), strict=False):
            _draw_line(axes, line, label, colour)
        limits = [row for row in rows if row.configuration.strategy == LIMIT]
        for colour, address in zip(
            (INK, PALE), dict.fromkeys(row.configuration.address for row in limits), strict=False
        ):
            own = [row for row in limits if row.configuration.address == address]
            axes.plot(
                [1, *(row.configuration.workers for row in own)], [1, *(row.speedup_mean.value for row in own)],
                color=colour, marker="_", markersize=12, linestyle=":", label=f"machine's limit ({address})",
            )  # fmt: skip
        for anchor in ANCHORS if shows_anchors else ():
            middle = math.sqrt(anchor.low * anchor.high)
            axes.errorbar(
                anchor.workers, middle, yerr=[[middle - anchor.low], [anchor.high - middle]],
                color=PALE, marker="D", markersize=4,
            )  # fmt: skip
            axes.annotate(
                anchor.name, (anchor.workers, middle), anchor.label_offset, textcoords="offset points",
                ha="right" if anchor.label_offset[0] < 0 else "left", va="center", color=PALE, fontsize=7,
            )  # fmt: skip
        _workers_axis(axes, reach)
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.set_ylabel("speed-up over the sequential search")
        axes.legend(loc="upper left")

    return _figure(draw, 4.2)


def _draw_line(axes: Axes, line: Sequence[Row], label: str, colour: str, beside: float | None = None) -> None:
    """Draw the speed-up of one series, or, some way beside the others' marks, its efficiency."""
    is_simulated, is_efficiency = line[0].is_simulated, beside is not None
    figures = [row.efficiency.value if is_efficiency else row.speedup.value for row in line]
    axes.errorbar(
        [row.configuration.workers * 2 ** (beside or 0.0) for row in line], figures, yerr=_errors(line, is_efficiency),
        color=colour, marker="o", markersize=5, markerfacecolor="none" if is_simulated else colour, capsize=3,
        linestyle="--" if is_simulated else "-", label=label,
    )  # fmt: skip


def _cycle() -> list[str]:
    return list(COLOURS) * 8


def _colours(rows: Sequence[Row]) -> dict[str, str]:
    """Return the colour that each series has in all plots."""
    return dict(zip(_series(rows), _cycle(), strict=False))


def efficiency(rows: Sequence[Row]) -> Figure:
    """Draw speed-up a worker, with its 95 % intervals."""

    def draw(axes: Axes) -> None:
        series = _series(rows)
        for place, (colour, (label, line)) in enumerate(zip(_cycle(), series.items(), strict=False)):
            _draw_line(axes, line, label, colour, beside=0.06 * (place - (len(series) - 1) / 2))
        axes.axhline(1.0, color=PALE, linewidth=1, linestyle="--")
        _workers_axis(axes, max([row.configuration.workers for row in rows] + [2]))
        axes.set_ylim(bottom=0)
        axes.set_ylabel("efficiency (speed-up a worker)")
        axes.legend(loc="best")

    return _figure(draw)


def overheads(rows: Sequence[Row]) -> Figure | None:
    """Draw where the workers' time went, as stacked shares; None if nothing ran in parallel."""
    shown = [row for row in rows if row.decomposition is not None and not row.is_validation]
    shown = [row for row in shown if row.configuration.strategy != SINGLE]
    if not shown:
        return None

    def draw(axes: Axes) -> None:
        names = [f"{label_of(row, rows)}, {row.configuration.workers}" for row in shown]
        left = np.zeros(len(shown))
        for part, colour in _PARTS:
            shares = np.array([max(0.0, _share(row, part)) for row in shown])
            axes.barh(names, shares, left=left, color=colour, label=part, height=0.7)
            left += shares
        axes.invert_yaxis()
        axes.set_xlabel("share of the workers' time")
        axes.set_xlim(0, max(1.0, float(left.max())))
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)

    return _figure(draw, 1.3 + 0.28 * len(shown))


def _share(row: Row, part: str) -> float:
    parts = row.decomposition
    if parts is None:
        return 0.0
    return {
        "useful": parts.efficiency,
        "search overhead": parts.lost_to_search,
        "slower nodes": parts.lost_to_rate,
        "communication": parts.communication,
        "idle": parts.idle,
    }[part]


def iterations(chosen: Sequence[tuple[Row, RunRecord]], rows: Sequence[Row]) -> Figure | None:
    """Draw how long each iteration of one problem took, by each configuration; None if there are none."""
    shown = [(row, record) for row, record in chosen if record.iterations]
    if not shown:
        return None

    def draw(axes: Axes) -> None:
        for row, record in shown:
            ends = [0.0, *(item.time_s for item in record.iterations)]
            times = [max(1e-5, end - begin) for begin, end in itertools.pairwise(ends)]
            label = label_of(row, rows)
            axes.plot(
                [item.depth for item in record.iterations], times, color=_colours(rows).get(label, INK), marker="o",
                markersize=3, label=f"{label}, {row.configuration.workers}",
            )  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_yscale("log")
        axes.set_xlabel("depth of the iteration")
        axes.set_ylabel("seconds of the iteration")
        axes.legend(loc="upper left")

    return _figure(draw)


def timeline(record: RunRecord) -> Figure | None:
    """Draw what each worker did when; None if the run has not kept it."""
    if not record.spans:
        return None

    def draw(axes: Axes) -> None:
        workers = sorted({span.worker for span in record.spans})
        many = len(record.spans) > _RASTER_FROM
        for place, worker in enumerate(workers):
            for is_finished, colour in ((True, COLOURS[0]), (False, COLOURS[1])):
                bars = [
                    (span.begin_s, span.end_s - span.begin_s)
                    for span in record.spans
                    if span.worker == worker and span.is_finished == is_finished
                ]
                axes.broken_barh(bars, (place - 0.4, 0.8), facecolors=colour, edgecolor="none", rasterized=many)
        last_s = 0.0
        for item in record.iterations:
            if item.time_s - last_s > 0.04 * record.time_s:
                last_s = item.time_s
                axes.axvline(item.time_s, color=INK, linewidth=0.6, linestyle=":")
                axes.annotate(
                    str(item.depth), (item.time_s, 1), (-1, 1), xycoords=("data", "axes fraction"),
                    textcoords="offset points", ha="right", va="bottom", fontsize=7,
                )  # fmt: skip
        axes.set_yticks(range(len(workers)), [f"worker {worker + 1}" for worker in workers])
        axes.set_xlabel("seconds from the start of the search; depths finished above")
        names = ("brought a score", "brought none")
        handles = [Patch(color=colour, label=name) for name, colour in zip(names, COLOURS, strict=False)]
        axes.figure.legend(handles=handles, loc="outside lower center", ncols=2)

    workers = len({span.worker for span in record.spans})
    return _figure(draw, 1.5 + 0.3 * min(workers, 24))


def durations(rows: Sequence[Row]) -> Figure | None:
    """Draw how long tasks last, of the configurations with most workers; None if nothing was split."""
    most = max(
        (line[-1].configuration.workers for line in _series(rows).values() if not line[0].is_simulated), default=0
    )
    shown = [
        (label, row)
        for label, line in _series(rows).items()
        for row in line
        if row.configuration.strategy != BATCH and not row.is_simulated and row.configuration.workers == most
    ]
    if not shown:
        return None

    def draw(axes: Axes) -> None:
        for label, row in shown:
            colour = _colours(rows)[label]
            counts = np.sum([pair.record.durations for pair in row.pairs], axis=0)
            share = counts / max(1, counts.sum())
            axes.stairs(share, np.array(DURATION_EDGES_S) * 1e3, color=colour, label=f"{label}, {most}", linewidth=1.5)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=12))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("length of a task, ms")
        used = np.flatnonzero(np.sum([pair.record.durations for _, row in shown for pair in row.pairs], axis=0))
        if used.size:
            axes.set_xlim(DURATION_EDGES_S[used[0]] * 1e3, DURATION_EDGES_S[used[-1] + 1] * 1e3)
        axes.set_ylabel("share of the tasks")
        axes.legend(loc="best")

    return _figure(draw)


def speedup_over_time(rows: Sequence[Row]) -> Figure | None:
    """Draw each problem's speed-up over its sequential time, of the configurations with most workers."""
    series = {label: line[-1] for label, line in _series(rows).items() if line[-1].configuration.strategy != BATCH}
    series = {label: row for label, row in series.items() if row.configuration.workers > 1}
    if not series:
        return None

    def draw(axes: Axes) -> None:
        for label, row in series.items():
            colour = _colours(rows)[label]
            axes.plot(
                [pair.baseline.time_s for pair in row.pairs], [pair.speedup for pair in row.pairs],
                color=colour, marker="o", markersize=5, linestyle="none",
                markerfacecolor="none" if row.is_simulated else colour, label=f"{label}, {row.configuration.workers}",
            )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("sequential time of the problem, s")
        axes.set_ylabel("speed-up")
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=1)

    return _figure(draw, 4.0)


def sweep(rows: Sequence[Row], of: str) -> Figure | None:
    """Draw the times of the widest configurations by the table's size or by the splitter's settings.

    Parameters
    ----------
    rows
        All.
    of
        ``table`` or ``settings``.
    """
    parallel = [
        row for row in rows if not row.is_simulated and row.configuration.strategy not in (SINGLE, LIMIT, BATCH)
    ]
    if of == "table":
        kinds = {row.configuration.table_mb for row in parallel}
    else:
        parallel = [row for row in parallel if row.configuration.strategy == "dynamic"]
        kinds = {row.configuration.settings for row in parallel}  # type: ignore[misc]
    if len(kinds) < 2:
        return None
    most = max(row.configuration.workers for row in parallel)
    shown = [row for row in parallel if row.configuration.workers == most]
    shown += [row for row in rows if row.configuration.strategy == SINGLE and of == "table"]

    def draw(axes: Axes) -> None:
        names = [f"{label_of(row, rows)}, {row.configuration.workers}" for row in shown]
        axes.barh(names, [row.time_s for row in shown], color=COLOURS[0], height=0.6)
        axes.invert_yaxis()
        axes.set_xlabel("total time over the problems, s")

    return _figure(draw, 1.0 + 0.28 * len(shown))
