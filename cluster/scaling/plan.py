"""What an experiment runs, and in which order: data, and one pure function that shuffles it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.strategies import DYNAMIC, ROOT, SINGLE, TEAM, TREE

THREADS = "threads"
"""The address of threads of this process."""
SIMULATED = "simulated"
"""The address of a cluster in virtual time."""
LIMIT = "limit"
"""Not a strategy of search: as many independent sequential searches at once as there are workers."""
BATCH = "batch"
"""Nor this: the workers share all positions out, one whole position a worker."""
SPLIT = (DYNAMIC, TEAM, ROOT, TREE)
"""The strategies that share one search."""
STANDARD = "standard"
"""Name of the splitter's default settings."""


@dataclass(frozen=True)
class Problem:
    """What is searched: a position, to a depth."""

    number: int
    """From 1, in the order of the file; several problems may come from one line."""
    position: str
    depth: int | None
    """None to search to the end: until the position is solved."""
    workers: int | None = None
    """Weak scaling: only configurations of so many workers, and the baseline, search it."""
    line: int = 0
    """Where it stands in the file, from 1."""
    moves: tuple[str, ...] = ()
    """Played from the position."""
    playouts: int | None = None
    """Of Monte Carlo tree search, which goes to no depth."""

    @property
    def text(self) -> str:
        """The position and the moves from there, for people."""
        return " ".join([self.position or "start", *self.moves])

    @property
    def label(self) -> str:
        """A short name for tables."""
        return f"{self.number}: {self.text}, {self.extent}"

    @property
    def goes_to_the_end(self) -> bool:
        """Whether it is searched until it is solved."""
        return self.depth is None and self.playouts is None

    @property
    def extent(self) -> str:
        """How far it is searched."""
        if self.goes_to_the_end:
            return "to the end"
        return f"depth {self.depth}" if self.playouts is None else f"{self.playouts} playouts"


@dataclass(frozen=True)
class Configuration:
    """Who searches, and how."""

    address: str
    """`THREADS`, `SIMULATED`, or an address as for `cluster.ray_executor.RayExecutor`."""
    strategy: str
    """A key of `cluster.strategies.STRATEGIES`, `LIMIT` or `BATCH`."""
    workers: int
    table_mb: float
    """Of each machine."""
    settings: str = STANDARD
    """Name of the splitter's settings."""
    machines: int | None = None
    """How many machines the workers are spread over; None for as few as hold them."""

    @property
    def label(self) -> str:
        """A name for tables, without the number of workers."""
        machines = "" if self.machines is None else f", {self.machines} machines"
        if self.strategy == LIMIT:
            return f"machine's limit, {self.address}{machines}"
        words = self.strategy if self.settings == STANDARD else f"{self.strategy} {self.settings}"
        return f"{words} on {self.address}{machines}"

    @property
    def series(self) -> tuple[str, float]:
        """What one line of a plot is made of: everything but the number of workers."""
        return self.label, self.table_mb


@dataclass(frozen=True)
class PlannedRun:
    """One run to be made."""

    problem: Problem
    configuration: Configuration
    repeat: int
    """From 0."""
    is_validation: bool = False
    """Of the simulator: as many virtual workers as real ones have run."""
    imitated: str = ""
    """Of a simulated run: the address whose costs the simulated cluster has."""

    @property
    def key(self) -> tuple[object, ...]:
        """What tells the run from all others of its experiment."""
        return (self.problem, self.configuration, self.repeat, self.is_validation, self.imitated)


def baseline_of(configuration: Configuration, address: str) -> Configuration:
    """Return what a configuration is compared with.

    Parameters
    ----------
    configuration
        Any.
    address
        Where the experiment's sequential searches run.
    """
    if configuration.strategy == BATCH:
        return Configuration(configuration.address, BATCH, 1, configuration.table_mb)
    return Configuration(address, SINGLE, 1, configuration.table_mb)


def is_wanted(problem: Problem, configuration: Configuration) -> bool:
    """Tell whether a configuration searches a problem: in weak scaling each number of workers has its own."""
    return problem.workers is None or configuration.strategy == SINGLE or configuration.workers == problem.workers


def interleaved(
    problems: Sequence[Problem], configurations: Sequence[Configuration], repeats: int, seed: int
) -> list[PlannedRun]:
    """Return all runs as randomised complete blocks (Fisher 1935).

    A block is one repeat of one problem by all its configurations, one right after the other in random order, so that
    a machine that drifts touches all alike; the blocks of a repeat come in random order too.

    Parameters
    ----------
    problems, configurations
        What to cross; duplicates of configurations run once.
    repeats
        How often, at least 1.
    seed
        The same seed gives the same order.
    """
    runs = []
    for repeat in range(repeats):
        order = random.Random(f"{seed}:{repeat}")
        shuffled = list(problems)
        order.shuffle(shuffled)
        for problem in shuffled:
            block = [item for item in dict.fromkeys(configurations) if is_wanted(problem, item)]
            order.shuffle(block)
            runs += [PlannedRun(problem, configuration, repeat) for configuration in block]
    return runs
