"""The figures of a report for machines: JSON and CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster.scaling.statistics import Interval
from cluster.scaling.summary import Row


def interval_json(interval: Interval | None) -> dict[str, float | None] | None:
    """Return an interval as an object of JSON, whose missing ends are null."""
    if interval is None:
        return None
    return {name: None if math.isnan(value) else value for name, value in interval._asdict().items()}


def row_json(row: Row) -> dict[str, Any]:
    """Return a configuration's figures as an object of JSON."""
    parts = row.decomposition
    return asdict(row.configuration) | {
        "imitated": row.imitated,
        "simulated": row.is_simulated,
        "validation": row.is_validation,
        "machines_used": row.machines,
        "problems": len(row.pairs),
        "runs": row.runs,
        "sequential_s": row.sequential_s,
        "time_s": row.time_s,
        "speedup": interval_json(row.speedup),
        "speedup_geometric_mean": interval_json(row.speedup_mean),
        "efficiency": interval_json(row.efficiency),
        "exponent": row.exponent,
        "limit": interval_json(row.limit),
        "share_of_limit": interval_json(row.share_of_limit),
        "decomposition": None if parts is None else asdict(parts) | {"identity": parts.identity},
        "nodes_per_s": row.nodes_per_s,
        "tasks": row.tasks,
        "task_s": row.task_s,
        "splitter_s": row.splitter_s,
        "table_fill": row.table_fill,
    }


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows flat: a field of a field is a column of its own."""
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(flat)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= {f"{name}_{inner}": item for inner, item in value.items()}
        else:
            found[name] = value
    return found
