"""The usual experiments as data: strong and weak scaling, throughput, sweeps of the table's size and of settings."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path

from cluster.scaling.plan import BATCH, LIMIT, SIMULATED, SPLIT, STANDARD, THREADS, Configuration
from cluster.scaling.positions import PositionLine
from cluster.split_settings import SplitSettings
from cluster.strategies import DYNAMIC, ROOT, SINGLE, TEAM
from search.controls import MAX_WORKERS
from search.flags import Algorithm
from search.limits import Limits
from search.rules import RulesError

STRONG, WEAK, THROUGHPUT, TABLE, SETTINGS = "strong", "weak", "throughput", "table", "settings"
PRESETS = {
    STRONG: "one problem, more workers",
    WEAK: "more workers get deeper problems: as many times the sequential time as there are workers",
    THROUGHPUT: "whole positions shared out over the workers, as a batch does",
    TABLE: "strong scaling with tables of several sizes",
    SETTINGS: "strong scaling with several settings of the splitter",
}
TABLE_SIZES_MB = (4.0, 16.0, 64.0, 256.0)
_SWEPT = ("grain_s", "tasks_per_worker", "budget_grains", "pv_share")
_FACTORS = (0.5, 2.0)
LOCAL = "local"


@dataclass(frozen=True)
class Design:
    """All that says what an experiment runs; two experiments of one design have the same rows."""

    game: str
    positions: tuple[PositionLine, ...]
    addresses: tuple[str, ...] = (THREADS,)
    workers: tuple[int, ...] = (1, 2)
    strategies: tuple[str, ...] = (DYNAMIC, TEAM, ROOT)
    machines: tuple[int, ...] = ()
    """How many machines the workers are spread over, each number in turn; empty for as few as hold them."""
    tables_mb: tuple[float, ...] = (256.0,)
    settings: tuple[tuple[str, SplitSettings], ...] = ((STANDARD, SplitSettings()),)
    preset: str = STRONG
    depth: int | None = None
    """Of positions whose line does not say one."""
    sequential_s: float | None = None
    """Choose each depth so that the sequential search takes about so long."""
    is_solving: bool = False
    """Search until solved."""
    repeats: int = 3
    seed: int = 1
    exact_depth: bool = False
    is_cold: bool = True
    filler: bool = False
    """Keep idle cores busy."""
    simulate: tuple[int, ...] = ()
    simulated_problems: int | None = None
    """Simulate only so many problems, the first ones; None for all."""
    stretch: float = 1.0
    """A simulated worker takes so many times as long for a node: the same trees, as if they were longer."""
    workers_a_machine: int = 16
    algorithm: str | None = None
    """A name of `search.algorithms`; None for the one that suits the game, unless that is mcts."""
    playouts: int | None = None
    """Of mcts, for positions whose line does not say how many nodes."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def baseline_address(self) -> str:
        """Where the sequential searches run: in this process, but for a cluster of other machines."""
        is_here = any(address in (THREADS, LOCAL) for address in self.addresses)
        return THREADS if is_here else self.addresses[0]

    @property
    def most_workers(self) -> dict[str, int]:
        """How many workers each address must have."""
        return {THREADS: 1} | dict.fromkeys(self.addresses, max(self.workers))

    def configurations(self) -> list[Configuration]:
        """Return all that search, but for the simulated ones."""
        found = []
        for table_mb in self.tables_mb:
            if BATCH in self.strategies:
                found += [
                    Configuration(address, BATCH, workers, table_mb)
                    for address in self.addresses
                    for workers in sorted({1, *self.workers})
                ]
                continue
            found.append(Configuration(self.baseline_address, SINGLE, 1, table_mb))
            for address in self.addresses:
                for workers in self.workers:
                    found += self._parallel(address, workers, table_mb)
        return found

    def simulated(self) -> list[Configuration]:
        """Return the simulated clusters."""
        return [
            replace(item, address=SIMULATED)
            for table_mb in self.tables_mb
            for workers in self.simulate
            for item in self._parallel(SIMULATED, workers, table_mb)
            if item.strategy != LIMIT
        ]

    def _parallel(self, address: str, workers: int, table_mb: float) -> list[Configuration]:
        found = []
        for machines in self.machines if self.machines and address != THREADS else (None,):
            if machines is not None and machines > workers:
                continue
            if workers > 1:
                found.append(Configuration(address, LIMIT, workers, table_mb, machines=machines))
            for strategy in self.strategies:
                names = [name for name, _ in self.settings] if strategy in (DYNAMIC, TEAM) else [STANDARD]
                found += [Configuration(address, strategy, workers, table_mb, name, machines) for name in names]
        return found


def with_preset(design: Design) -> Design:
    """Return a design with what its preset asks for and the user has not set."""
    if design.preset == THROUGHPUT:
        return replace(design, strategies=(BATCH,))
    if design.preset == TABLE and len(design.tables_mb) == 1:
        return replace(design, tables_mb=TABLE_SIZES_MB)
    if design.preset == SETTINGS and len(design.settings) == 1:
        return replace(design, settings=((STANDARD, SplitSettings()), *_sweep()), strategies=(DYNAMIC,))
    return design


def _sweep() -> list[tuple[str, SplitSettings]]:
    """Return the standard settings with one number halved or doubled."""
    standard = SplitSettings()
    return [
        (f"{name}={getattr(standard, name) * factor:g}", replace(standard, **{name: getattr(standard, name) * factor}))
        for name in _SWEPT
        for factor in _FACTORS
    ]


def read_settings(path: Path) -> tuple[tuple[str, SplitSettings], ...]:
    """Return the standard settings, and those of a TOML file: a table for each, with the numbers that differ.

    Raises
    ------
    RulesError
        If the file cannot be read, or names a number that there is not.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RulesError(f"{path} cannot be read: {reason}") from None
    known = {field.name: type(getattr(SplitSettings(), field.name)) for field in fields(SplitSettings)}
    found = [(STANDARD, SplitSettings())]
    for name, table in tables.items():
        if not isinstance(table, dict) or name == STANDARD:
            raise RulesError(f"{path}: {name!r} is no name for settings: write [name], not {STANDARD!r}, and numbers")
        for key, value in table.items():
            if key not in known:
                raise RulesError(f"{path}, [{name}]: no setting is called {key!r}: there are {', '.join(known)}")
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number or value < 0 or (known[key] is int and value != int(value)):
                raise RulesError(f"{path}, [{name}]: {key} must be a number of 0 or more, not {value!r}")
        found.append((name, SplitSettings(**{key: known[key](value) for key, value in table.items()})))
    return tuple(found)


def _check(design: Design) -> None:
    """Refuse what cannot be run, in one sentence."""
    if design.preset not in PRESETS:
        raise RulesError(f"unknown preset {design.preset!r}: there are {', '.join(PRESETS)}")
    wrong = [name for name in design.strategies if name not in (*SPLIT, BATCH)]
    if wrong or not design.strategies:
        named = ", ".join(wrong) or "none"
        raise RulesError(f"{named} is no strategy to compare with single: give dynamic, team, root or tree")
    for workers in (*design.workers, *design.simulate):
        if workers < 1 or (workers > MAX_WORKERS and workers in design.workers):
            raise RulesError(f"the number of workers must be from 1 to {MAX_WORKERS}, not {workers}")
    if not design.workers or not design.addresses or not design.tables_mb:
        raise RulesError("an experiment needs at least one number of workers, one address and one size of table")
    if any(machines < 1 for machines in design.machines) or design.workers_a_machine < 1:
        raise RulesError("a number of machines, and of workers a machine, must be at least 1")
    if sum(address != THREADS for address in design.addresses) > 1:
        raise RulesError("an experiment runs on one Ray cluster at most: give one address besides threads")
    if design.filler and any(address not in (THREADS, LOCAL) for address in design.addresses):
        raise RulesError("filler load runs on this machine alone: it is of no use on a cluster")
    if design.simulated_problems is not None and design.simulated_problems < 1:
        raise RulesError(f"at least 1 problem must be simulated, not {design.simulated_problems}")
    if design.repeats < 1 or not (math.isfinite(design.stretch) and design.stretch > 0):
        raise RulesError("repeats must be at least 1, and the stretch of simulated time more than 0")
    Limits(depth=design.depth, time_s=design.sequential_s)
    chosen = [design.depth is not None, design.sequential_s is not None, design.is_solving]
    if sum(chosen) > 1:
        raise RulesError("give one of a depth, a sequential time and a search to the solution")
    if design.simulate and design.preset in (WEAK, THROUGHPUT):
        raise RulesError(f"the preset {design.preset} has no simulated clusters: leave --simulate out")
    if design.algorithm == Algorithm.MCTS.label:
        _check_playouts(design, sum(chosen) > 0)
        return
    if design.playouts is not None:
        raise RulesError("playouts are for mcts: give --depth, --seconds or --solve")
    if design.preset == WEAK and design.sequential_s is None:
        raise RulesError("weak scaling needs the sequential time of one worker's problem (--seconds)")
    open_lines = [item.line for item in design.positions if item.depth is None]
    if not any(chosen) and open_lines:
        raise RulesError(
            f"line {open_lines[0]} of the positions says no depth: give --depth, --seconds or --solve, or a file with"
            " depths (JSONL, CSV, or EPD with acd)"
        )


def _check_playouts(design: Design, has_depth: bool) -> None:
    """Refuse an experiment with Monte Carlo tree search that cannot be run."""
    if has_depth or design.exact_depth or design.preset in (WEAK, SETTINGS):
        raise RulesError("mcts goes to no depth: give --playouts, and the preset strong, throughput or table")
    Limits(nodes=design.playouts)
    open_lines = [item.line for item in design.positions if item.nodes is None]
    if design.playouts is None and open_lines:
        raise RulesError(f"line {open_lines[0]} of the positions says no nodes: give --playouts")
