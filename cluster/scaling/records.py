"""What an experiment remembers of each run: frozen records that are lines of JSON in its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from cluster.scaling.crew import Span
from cluster.scaling.plan import Configuration, PlannedRun, Problem

DURATION_EDGES_S = tuple(float(edge) for edge in np.logspace(-5, 3, 33))
"""Edges of the classes in which task durations are counted: four a decade."""


class IterationTime(NamedTuple):
    """When an iteration was finished."""

    depth: int
    time_s: float
    """From the start of the search."""
    nodes: int


@dataclass(frozen=True)
class RunRecord:
    """One run: what was planned, what came of it, and where the time went."""

    problem: Problem
    configuration: Configuration
    repeat: int
    is_validation: bool
    imitated: str
    time_s: float
    """Real, or virtual of a simulated run; of independent searches, until the last has ended."""
    nodes: int
    """Of all workers together."""
    scores: tuple[int, ...]
    """The value; of independent searches, each one's."""
    best_move: str
    reached_depth: int
    is_solved: bool
    machines: int
    """How many were used."""
    table_fill: float
    """Share 0..1 of the tables in use at the end."""
    idle: float
    communication: float
    """Shares of workers times seconds, as the coordinator's books say."""
    busy_s: float
    """Seconds that all workers together searched, as the tasks' own clocks say."""
    tasks: int
    aborted_tasks: int
    wasted_nodes: int
    splitter_s: float
    exchanged_entries: int
    iterations: tuple[IterationTime, ...]
    durations: tuple[int, ...]
    """How many tasks lasted how long: counts between `DURATION_EDGES_S`."""
    spans: tuple[Span, ...] = ()
    """What the workers did, of the few runs that keep it."""
    load_average: float = 0.0
    """Of the machine, when the run began."""

    @property
    def key(self) -> tuple[object, ...]:
        """The key of the planned run that it is."""
        return PlannedRun(self.problem, self.configuration, self.repeat, self.is_validation, self.imitated).key

    @property
    def rate(self) -> float:
        """Nodes a second, all workers together."""
        return self.nodes / max(self.time_s, 1e-9)

    def as_json(self) -> dict[str, Any]:
        """Return the record as an object of JSON."""
        return asdict(self) | {
            "iterations": [list(item) for item in self.iterations],
            "spans": [[item.worker, round(item.begin_s, 5), round(item.end_s, 5), item.is_finished, item.nodes]
                      for item in self.spans],
        }  # fmt: skip

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> RunRecord:
        """Return the record of an object of JSON.

        Raises
        ------
        KeyError, TypeError
            If it is another kind of object.
        """
        values = {field.name: row[field.name] for field in fields(cls)}
        return cls(
            **values
            | {
                "problem": Problem(**row["problem"] | {"moves": tuple(row["problem"]["moves"])}),
                "configuration": Configuration(**row["configuration"]),
                "scores": tuple(row["scores"]),
                "iterations": tuple(IterationTime(*item) for item in row["iterations"]),
                "durations": tuple(row["durations"]),
                "spans": tuple(Span(*item) for item in row["spans"]),
            }
        )


@dataclass(frozen=True)
class Costs:
    """What messages and the splitter cost at an address, as measured; the rest of a `ClusterModel`."""

    address: str
    latency_s: float
    """One way of a message."""
    master_s: float
    """Of the master, for each call sent and for each answer."""
    least_grain_s: float
    """The executor's."""


def duration_counts(spans: Iterable[Span]) -> tuple[int, ...]:
    """Return how many tasks lasted how long; those outside the classes count in the first or the last."""
    durations = np.clip([span.end_s - span.begin_s for span in spans], DURATION_EDGES_S[0], DURATION_EDGES_S[-1])
    return tuple(int(count) for count in np.histogram(durations, DURATION_EDGES_S)[0])
