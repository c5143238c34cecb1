"""The statistics of an experiment: pure functions of times and counts.

Problems are the sample: an interval says how the figure would move with other positions of the same kind, not with
other runs of the same ones, whose spread the medians over repeats have taken out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
_PERCENTILES = (2.5, 97.5)
Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A figure with its 95 % interval; both ends are NaN where one problem says nothing of others."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """Return the figure, and its interval if there is one."""
        if math.isnan(self.low):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def ratio_of_totals(sequential_s: Floats, parallel_s: Floats) -> Floats:
    """Return total sequential over total parallel time, along the last axis: long problems weigh more."""
    return np.asarray(sequential_s.sum(axis=-1) / parallel_s.sum(axis=-1))


def geometric_mean_of_ratios(sequential_s: Floats, parallel_s: Floats) -> Floats:
    """Return the geometric mean of the ratios, along the last axis: each problem weighs the same."""
    return np.asarray(np.exp(np.log(sequential_s / parallel_s).mean(axis=-1)))


def bootstrap(
    statistic: Callable[[Floats, Floats], Floats], first: Sequence[float], second: Sequence[float], seed: int = 1
) -> Interval:
    """Return a statistic of pairs and its 95 % interval by the bootstrap (Efron 1979), percentile method.

    Parameters
    ----------
    statistic
        Of two arrays of shape `[..., problems]`, along the last axis.
    first, second
        Pairs, one a problem; both more than 0. A problem stays a pair when it is drawn.
    seed
        Of the draws.
    """
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    value = float(statistic(one, other))
    if len(one) < 2:
        return Interval(value, math.nan, math.nan)
    draws = np.random.default_rng(seed).integers(len(one), size=(RESAMPLES, len(one)))
    low, high = np.percentile(statistic(one[draws], other[draws]), _PERCENTILES)
    return Interval(value, float(low), float(high))


def exponent(speedup: float, workers: int) -> float | None:
    """Return log S / log P: 1 is ideal, 0.5 is the square root; None for one worker."""
    return math.log(speedup) / math.log(workers) if workers > 1 else None


class Books(NamedTuple):
    """What a run spent: sums of several runs add up field by field."""

    time_s: float
    nodes: float
    busy_s: float
    """Seconds in which workers searched, of all together."""
    idle_s: float
    communication_s: float


@dataclass(frozen=True)
class Decomposition:
    """Why a speed-up is what it is: ``speedup = workers * load * rate / (1 + search_overhead)``."""

    workers: int
    speedup: float
    load: float
    """Share of the workers' time in which they search."""
    rate: float
    """Nodes a second of a worker that searches, over those of the sequential search."""
    search_overhead: float
    """Nodes beyond the sequential search's, over its own; negative if fewer were enough."""
    idle: float
    communication: float
    """Shares of the workers' time; the load is the rest."""

    @property
    def identity(self) -> float:
        """What the factors say over what was measured: 1 but for the error of two kinds of clock."""
        return self.workers * self.load * self.rate / (1 + self.search_overhead) / self.speedup

    @property
    def efficiency(self) -> float:
        """Speed-up a worker."""
        return self.speedup / self.workers

    @property
    def lost_to_rate(self) -> float:
        """Share of the workers' time that they lost by searching more slowly than one alone; negative if faster."""
        return self.load * (1 - self.rate)

    @property
    def lost_to_search(self) -> float:
        """Share of the workers' time, at the sequential rate, in nodes that one worker would not have searched."""
        return self.load * self.rate * (1 - 1 / (1 + self.search_overhead))


def decompose(workers: int, sequential: Books, parallel: Books) -> Decomposition:
    """Return the factors of a speed-up, of one run or of sums.

    The load comes from the coordinator's books (what was neither idle nor communication), rate and overhead from the
    tasks' own clocks and counts: their product is the speed-up only if both keep the same time.

    Parameters
    ----------
    workers
        How many.
    sequential, parallel
        Of the same problems.
    """
    capacity_s = workers * parallel.time_s
    idle, communication = parallel.idle_s / capacity_s, parallel.communication_s / capacity_s
    return Decomposition(
        workers=workers,
        speedup=sequential.time_s / parallel.time_s,
        load=1 - idle - communication,
        rate=(parallel.nodes / parallel.busy_s) / (sequential.nodes / sequential.time_s),
        search_overhead=parallel.nodes / sequential.nodes - 1,
        idle=idle,
        communication=communication,
    )
