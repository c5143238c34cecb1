"""Writes down what an experiment found: one HTML page, plots, and the figures for machines."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cluster.scaling import plots
from cluster.scaling.agreement import Difference, differences
from cluster.scaling.export import interval_json, row_json, write_csv
from cluster.scaling.page import compose
from cluster.scaling.plan import SIMULATED
from cluster.scaling.presets import Design
from cluster.scaling.records import RunRecord
from cluster.scaling.results import Results
from cluster.scaling.summary import Row, Validation, summarise, validations, warnings_of
from cluster.scaling.tables import (
    Table,
    decomposition_table,
    effort_table,
    headline,
    speedup_table,
    validation_table,
)
from cluster.strategies import SINGLE
from search.rules import RulesError

_QUIET = 0.5


@dataclass(frozen=True)
class Report:
    """All that an experiment says, before it is written down."""

    design: Design
    results: Results
    rows: tuple[Row, ...]
    validations: tuple[Validation, ...]
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]
    timeline: RunRecord | None
    """The run whose time line is drawn."""

    @classmethod
    def of(cls, design: Design, results: Results, timeline: int | None = None) -> Report:
        """Return the report of an experiment.

        Parameters
        ----------
        design, results
            The experiment.
        timeline
            Number of the problem whose time line is drawn; None for the one that took longest.

        Raises
        ------
        RulesError
            If that problem has no time line.
        """
        rows = summarise(results.records, design.baseline_address)
        warnings = warnings_of(rows)
        loads = [session["load_average"] for session in results.sessions]
        if loads and max(loads) > _QUIET:
            warnings.append(
                f"the machine was not quiet when the experiment began (load average {max(loads):.1f}): times are those"
                " of a machine that does other work too"
            )
        kept = [record for record in results.records if record.spans and record.configuration.address != SIMULATED]
        if timeline is not None:
            kept = [record for record in kept if record.problem.number == timeline]
            if not kept:
                raise RulesError(
                    f"problem {timeline} has no time line: there is none of that number, or no run kept it"
                )
        return cls(
            design, results, tuple(rows), tuple(validations(rows)), tuple(differences(results.records)),
            tuple(warnings), max(kept, key=lambda record: record.time_s, default=None),
        )  # fmt: skip

    def tables(self) -> list[Table]:
        """Return the tables for a terminal."""
        found = [speedup_table(self.rows, simulated=False), decomposition_table(self.rows), effort_table(self.rows)]
        if any(row.is_simulated for row in self.rows):
            found += [speedup_table(self.rows, simulated=True), validation_table(self.validations)]
        return [table for table in found if table.rows]

    def agreement(self) -> str:
        """Return whether all runs found the sequential value, in a sentence."""
        runs = len(self.results.records)
        if not self.differences:
            return f"All {runs} runs found the value that the sequential search found."
        return (
            f"{len(self.differences)} of {runs} runs found another value than the sequential search, which is no error"
            " with a table whose deeper entries say more: "
            + "; ".join(item.text for item in self.differences[:20])
            + ("; ..." if len(self.differences) > 20 else ".")
        )

    def as_json(self) -> dict[str, Any]:
        """Return the summary for machines."""
        return {
            "game": self.design.game,
            "headline": headline(self.rows),
            "warnings": list(self.warnings),
            "runs": len(self.results.records),
            "different_values": [item.text for item in self.differences],
            "rows": [row_json(row) for row in self.rows],
            "validations": [
                {
                    "configuration": asdict(item.real.configuration),
                    "simulated_over_real": interval_json(item.ratio),
                    "problems": item.problems,
                    "real_speedup": item.speedup,
                    "predicted_speedup": item.predicted,
                }
                for item in self.validations
            ],
            "models": [asdict(use) for use in self.results.models],
            "sessions": self.results.sessions,
            "design": asdict(self.design),
        }


def write_report(report: Report, folder: Path) -> Path:
    """Write the page, the plots and the summaries into a folder; returns the page's path.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    pictures = folder / "plots"
    pictures.mkdir(exist_ok=True)
    drawings = [
        (name, plots.save(figure, pictures, name), caption) for name, figure, caption in _figures(report) if figure
    ]
    summary = report.as_json()
    (folder / "summary.json").write_text(json.dumps(summary, ensure_ascii=False, indent=1), encoding="utf-8")
    write_csv(folder / "summary.csv", summary["rows"])
    path = folder / "report.html"
    path.write_text(compose(report, drawings), encoding="utf-8")
    return path


def _figures(report: Report) -> list[tuple[str, Any, str]]:
    rows, chosen = report.rows, report.timeline
    same = _of_problem(report, chosen) if chosen else []
    which = f"problem {chosen.problem.label}" if chosen else ""
    who = f"{chosen.configuration.label}, {chosen.configuration.workers} workers" if chosen else ""
    several = len({row.configuration.workers for row in rows}) > 1
    return [
        (
            "speedup", plots.speedup(rows) if several else None,
            "Speed-up over the sequential search (both axes logarithmic). Filled: measured, with 95 % intervals;"
            " hollow: simulated. Diamonds: published figures of other programs on other machines, for orientation.",
        ),
        ("efficiency", plots.efficiency(rows) if several else None, "Speed-up a worker, with 95 % intervals."),
        (
            "overheads", plots.overheads(rows),
            "Where the workers' time went; the number behind each name is that of the workers. Useful: what the"
            " sequential search would have needed. Negative losses are not drawn.",
        ),
        (
            "timeline", plots.timeline(chosen) if chosen else None,
            f"What each worker did when: {which}, {who}. Gaps are idle. A task that brought no score was moot, or had"
            " to be split.",
        ),
        ("iterations", plots.iterations(same, rows), f"Seconds of each iteration of {which}."),
        ("durations", plots.durations(rows), "How long tasks last, of the configurations with most workers."),
        (
            "speedup-over-time", plots.speedup_over_time(rows),
            "Speed-up of each problem over its sequential time: short problems have less to share.",
        ),
        ("tables", plots.sweep(rows, "table"), "Total time by the size of the table, with most workers."),
        ("settings", plots.sweep(rows, "settings"), "Total time by the splitter's settings, with most workers."),
    ]  # fmt: skip


def _of_problem(report: Report, chosen: RunRecord) -> list[tuple[Row, RunRecord]]:
    """Return the runs of the chosen run's problem by the sequential search, and by all with as many workers as it."""
    return [
        (row, pair.record)
        for row in report.rows
        if row.configuration.strategy == SINGLE
        or (row.configuration.workers == chosen.configuration.workers and not row.is_simulated)
        for pair in row.pairs
        if pair.problem == chosen.problem
    ]
