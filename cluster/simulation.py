"""Predicting a bigger cluster: the same search in virtual time, beside the sequential one under the same model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.strategies import SINGLE
from search.algorithms import flags_for, flags_to_answer
from search.driver import search
from search.limits import Limits
from search.referee import print_notice
from search.results import Iteration
from search.rules import Game

_MEASURE_S = 1.0


@dataclass(frozen=True)
class SimulationReport:
    """A simulated search and its sequential twin."""

    report: SearchReport
    sequential_time_s: float
    """Virtual seconds of one worker without splitting, cold table."""
    model: ClusterModel

    @property
    def speedup(self) -> float:
        """How many times faster than the sequential search."""
        return self.sequential_time_s / max(self.report.result.time_s, 1e-9)

    def as_json(self) -> dict[str, Any]:
        """Return the report's object, marked as simulated."""
        return self.report.as_json() | {
            "simulated": True,
            "sequential_time_s": self.sequential_time_s,
            "speedup": self.speedup,
            "model": {
                "node_rate": self.model.node_rate,
                "latency_s": self.model.latency_s,
                "master_s": self.model.master_s,
                "workers_a_machine": self.model.workers_a_machine,
            },
        }


def measured_model(game: Game, request: SearchRequest) -> ClusterModel:
    """Return the default model with the node rate of this machine's core on this position, measured for a second."""
    position = game.parse(request.position)
    result = search(game, position, Limits(time_s=_MEASURE_S), flags=flags_for(game, request.algorithm))
    return ClusterModel(node_rate=max(1.0, result.statistics.nodes / max(result.time_s, 1e-9)))


def simulate(
    game: Game,
    request: SearchRequest,
    workers: int,
    table_mb: float,
    model: ClusterModel,
    *,
    on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
    notice: Callable[[str], None] = print_notice,
) -> SimulationReport:
    """Search in virtual time, first sequentially, then on a simulated cluster.

    Parameters
    ----------
    game, request
        What to search; its time limit is in virtual seconds.
    workers
        Of the simulated cluster.
    table_mb
        Of each machine.
    model
        The cluster's costs.
    on_iteration, notice
        As for `Session.search`.
    """
    flags = flags_to_answer(game, request.algorithm, question=request.solve)

    def run(number: int, strategy: str | None, tell: Callable[[Iteration], None]) -> SearchReport:
        executor = SimulatedExecutor(game, number, table_mb, model=model, flags=flags, notice=notice)
        with Session(game, executor, table_mb, notice) as session:
            return session.search(replace(request, strategy=strategy), tell)

    sequential = run(1, SINGLE, lambda _iteration: None)
    report = run(workers, request.strategy, on_iteration)
    return SimulationReport(report, sequential.result.time_s, model)
