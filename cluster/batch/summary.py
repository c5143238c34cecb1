"""What a run has done, in numbers: kept while it runs, told at its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from cluster.batch.jobs import Status
from cluster.batch.results import ResultRow

DEADLINE, DIED = "deadline", "worker died"
"""Kinds of errors that come with a search; the planner has the others."""


@dataclass
class Tally:
    """Counts of rows; those of an interrupted run are taken over by the one that goes on."""

    rows: int = 0
    over: int = 0
    """Finished games."""
    searched: int = 0
    """Positions that were searched: as many as there are different ones."""
    duplicates: int = 0
    """Rows that were answered by another row's search."""
    scored: int = 0
    """Rows whose answer the input knows."""
    solved: int = 0
    nodes: int = 0
    search_s: float = 0.0
    """Seconds of search, all workers together."""
    errors: Counter[str] = field(default_factory=Counter)
    """Failed rows by kind."""

    def add(self, row: ResultRow, error_kind: str | None, time_s: float) -> None:
        """Count a row.

        Parameters
        ----------
        row
            The row.
        error_kind
            The planner's, if it was refused.
        time_s
            Of its search.
        """
        self.rows += 1
        if row.is_failure:
            self.errors[error_kind or (DEADLINE if row.status == Status.DEADLINE else DIED)] += 1
        if row.status == Status.OVER:
            self.over += 1
        elif row.duplicate_of is not None:
            self.duplicates += 1
        elif row.nodes is not None:
            self.searched += 1
            self.nodes += row.nodes
            self.search_s += time_s
        if row.solved is not None:
            self.scored += 1
            self.solved += row.solved

    @property
    def failed(self) -> int:
        """Rows without an answer, or with one that the deadline cut off."""
        return self.errors.total()

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        return {
            "rows": self.rows,
            "over": self.over,
            "searched": self.searched,
            "duplicates": self.duplicates,
            "scored": self.scored,
            "solved": self.solved,
            "nodes": self.nodes,
            "search_s": round(self.search_s, 6),
            "errors": dict(sorted(self.errors.items())),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Tally:
        """Return the counts that `as_json` made an object of."""
        return cls(**(values | {"errors": Counter(values["errors"])}))


@dataclass(frozen=True)
class Summary:
    """What is told at the end of a run."""

    tally: Tally
    output: str
    is_complete: bool
    """Whether all rows of the input have been written."""
    kept_rows: int
    """Rows that an earlier run had written already."""
    time_s: float
    """Of this run."""
    new_rows: int
    """Rows that this run has written."""
    new_nodes: int
    """Nodes that it searched for them."""
    workers: int
    replaced_workers: int

    def as_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        tally = self.tally
        return {
            "output": self.output,
            "complete": self.is_complete,
            **tally.as_json(),
            "failed": tally.failed,
            "solved_percent": round(self.solved_percent, 2) if tally.scored else None,
            "kept_rows": self.kept_rows,
            "new_rows": self.new_rows,
            "time_s": round(self.time_s, 3),
            "rows_per_s": round(self.new_rows / max(self.time_s, 1e-9), 1),
            "nodes_per_s": round(self.new_nodes / max(self.time_s, 1e-9)),
            "workers": self.workers,
            "replaced_workers": self.replaced_workers,
        }

    @property
    def solved_percent(self) -> float:
        """Share of the rows with a known answer that were solved, 0..100; 100 without any."""
        return 100 * self.tally.solved / self.tally.scored if self.tally.scored else 100.0

    def lines(self) -> list[str]:
        """Return the summary as text."""
        tally = self.tally
        lines = [f"{tally.rows} rows in {self.output}" + ("" if self.is_complete else ", more to come")]
        parts = [f"{tally.searched} positions searched"]
        if tally.duplicates:
            parts.append(f"{tally.duplicates} duplicates answered by them")
        if tally.over:
            parts.append(f"{tally.over} finished games")
        lines.append(", ".join(parts))
        if tally.scored:
            lines.append(f"solved {tally.solved} of {tally.scored} ({self.solved_percent:.1f}%)")
        if tally.failed:
            kinds = ", ".join(f"{count} {kind}" for kind, count in tally.errors.most_common())
            lines.append(f"{tally.failed} rows failed: {kinds}")
        if self.kept_rows:
            lines.append(f"{self.kept_rows} rows were there already")
        rate, nodes = self.new_rows / max(self.time_s, 1e-9), self.new_nodes / max(self.time_s, 1e-9)
        replaced = f", {self.replaced_workers} replaced" if self.replaced_workers else ""
        lines.append(
            f"{self.new_rows} rows in {self.time_s:.1f} s: {rate:.1f} rows/s, {nodes / 1e6:.2f} M nodes/s,"
            f" {self.workers} workers{replaced}"
        )
        return lines
