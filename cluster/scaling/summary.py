"""What the runs of an experiment say of each configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.scaling.plan import BATCH, LIMIT, SIMULATED, Configuration, Problem, baseline_of
from cluster.scaling.records import RunRecord
from cluster.scaling.statistics import (
    Books,
    Decomposition,
    Interval,
    bootstrap,
    decompose,
    exponent,
    geometric_mean_of_ratios,
    ratio_of_totals,
)
from cluster.strategies import SINGLE

FULL_TABLE = 0.3
"""A table that is fuller loses entries that a search would have used."""
IDENTITY_ERROR = 0.01
"""The factors of a speed-up must give it to within this."""


@dataclass(frozen=True)
class Pair:
    """One problem by a configuration and by its baseline: of each the run of median time."""

    problem: Problem
    baseline: RunRecord
    record: RunRecord

    @property
    def speedup(self) -> float:
        """Sequential over parallel time."""
        return self.baseline.time_s / self.record.time_s


@dataclass(frozen=True)
class Row:
    """One configuration over all its problems."""

    configuration: Configuration
    imitated: str
    """The address whose costs a simulated cluster has; empty for real runs."""
    is_validation: bool
    pairs: tuple[Pair, ...]
    runs: int
    sequential_s: float
    """Total over the problems, of the baseline."""
    time_s: float
    """Total, of the configuration."""
    speedup: Interval
    """Ratio of the totals."""
    speedup_mean: Interval
    """Geometric mean over the problems."""
    exponent: float | None
    limit: Interval | None
    """What the machine itself allows so many workers: geometric mean over the problems."""
    share_of_limit: Interval | None
    decomposition: Decomposition | None
    """None for independent searches, which have no parallel search to take apart."""
    nodes_per_s: float
    tasks: float
    """Of a run, on average."""
    task_s: float
    """Mean length of a task."""
    splitter_s: float
    """The splitter's own time in a run, on average."""
    table_fill: float
    """The fullest table's share in use."""
    machines: int
    identity: float
    """What the factors say over the speed-up, of the run that is farthest from 1."""

    @property
    def efficiency(self) -> Interval:
        """Ratio of the totals, a worker."""
        return Interval(*(figure / self.configuration.workers for figure in self.speedup))

    @property
    def is_simulated(self) -> bool:
        """Whether its times are virtual."""
        return self.configuration.address == SIMULATED

    @property
    def label(self) -> str:
        """The configuration's, with what a simulation imitates."""
        if not self.is_simulated:
            return self.configuration.label
        return replace(self.configuration, address=f"simulated {self.imitated}").label


@dataclass(frozen=True)
class Validation:
    """The simulator beside the real runs at workers that exist, over the problems that both have."""

    row: Row
    real: Row
    ratio: Interval
    """Simulated over real time: geometric mean over the problems."""
    problems: int
    sequential_s: float
    real_s: float
    simulated_s: float
    """Total times."""

    @property
    def speedup(self) -> float:
        """The real one."""
        return self.sequential_s / self.real_s

    @property
    def predicted(self) -> float:
        """The speed-up over the real sequential time that the simulator would have promised."""
        return self.sequential_s / self.simulated_s


def median_run(records: Iterable[RunRecord]) -> RunRecord:
    """Return the run whose time is the median of its repeats; of an even number, the lower of the middle two."""
    ordered = sorted(records, key=lambda record: record.time_s)
    return ordered[(len(ordered) - 1) // 2]


def summarise(records: Sequence[RunRecord], baseline_address: str) -> list[Row]:
    """Return a row for each configuration that has runs of problems whose baseline has run too.

    Parameters
    ----------
    records
        All runs, in any order.
    baseline_address
        Where the sequential searches ran.
    """
    groups: defaultdict[tuple[Configuration, str, bool], defaultdict[Problem, list[RunRecord]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for record in records:
        groups[record.configuration, record.imitated, record.is_validation][record.problem].append(record)
    medians = {
        key: {problem: median_run(runs) for problem, runs in by_problem.items()} for key, by_problem in groups.items()
    }
    runs = {key: [run for several in by_problem.values() for run in several] for key, by_problem in groups.items()}
    rows = []
    for (configuration, imitated, is_validation), by_problem in medians.items():
        baseline = medians.get((baseline_of(configuration, baseline_address), "", False), {})
        limit_of = replace(configuration, strategy=LIMIT, settings="standard")
        pairs = [
            Pair(problem, _as_baseline(baseline[problem], record), record)
            for problem, record in by_problem.items()
            if problem in baseline
        ]
        if pairs:
            pairs.sort(key=lambda pair: pair.problem.number)
            own_runs = runs[configuration, imitated, is_validation]
            limits = medians.get((limit_of, "", False), {})
            rows.append(_row(configuration, imitated, is_validation, pairs, own_runs, limits))
    return sorted(rows, key=_order)


def validations(rows: Sequence[Row]) -> list[Validation]:
    """Return each row that imitates real workers, beside theirs."""
    real = {row.configuration: row for row in rows if not row.is_simulated}
    found = []
    for row in rows:
        twin = real.get(replace(row.configuration, address=row.imitated)) if row.is_validation else None
        if twin is None:
            continue
        simulated = {pair.problem: pair.record.time_s for pair in row.pairs}
        both = [pair for pair in twin.pairs if pair.problem in simulated]
        if both:
            real_s = [pair.record.time_s for pair in both]
            simulated_s = [simulated[pair.problem] for pair in both]
            ratio = bootstrap(geometric_mean_of_ratios, simulated_s, real_s)
            sequential_s = sum(pair.baseline.time_s for pair in both)
            found.append(Validation(row, twin, ratio, len(both), sequential_s, sum(real_s), sum(simulated_s)))
    return found


def warnings_of(rows: Sequence[Row]) -> list[str]:
    """Return what a reader must know before the figures are believed."""
    full = [row for row in rows if row.table_fill > FULL_TABLE and row.configuration.strategy not in (LIMIT, BATCH)]
    texts = []
    if full:
        fullest = max(full, key=lambda row: row.table_fill)
        texts.append(
            f"tables were more than {FULL_TABLE:.0%} full in {len(full)} of {len(rows)} configurations, at most"
            f" {fullest.table_fill:.0%} ({fullest.label}, {fullest.configuration.workers} workers,"
            f" {fullest.configuration.table_mb:g} MB): entries were lost, so compare with a larger table"
        )
    texts += [
        f"in a run of {row.label}, {row.configuration.workers} workers, load, rate and search overhead give"
        f" {row.identity:.3f} times its speed-up: two clocks disagree by more than {IDENTITY_ERROR:.0%}"
        for row in rows
        if abs(row.identity - 1) > IDENTITY_ERROR
    ]
    return texts


def _worst_identity(workers: int, pairs: Sequence[Pair], runs: Sequence[RunRecord]) -> float:
    """Return what the factors of the runs say over their speed-ups, of the run that is farthest from 1."""
    baselines = {pair.problem: books_of(pair.baseline) for pair in pairs}
    known = [run for run in runs if run.problem in baselines]
    identities = [decompose(workers, baselines[run.problem], books_of(run)).identity for run in known]
    return max(identities, key=lambda identity: abs(identity - 1))


def books_of(record: RunRecord) -> Books:
    """Return what a run spent."""
    capacity_s = record.time_s * record.configuration.workers
    return Books(
        record.time_s, record.nodes, record.busy_s, record.idle * capacity_s, record.communication * capacity_s
    )


def _as_baseline(single: RunRecord, record: RunRecord) -> RunRecord:
    """Return the sequential run, for a simulated one at the simulated workers' node rate."""
    if record.configuration.address != SIMULATED:
        return single
    return replace(single, time_s=single.nodes * record.busy_s / max(1, record.nodes))


def _limit_of(single: RunRecord, limit: RunRecord) -> float:
    """Return how many single workers the machine is worth to several: by nodes a second, whatever was searched."""
    return limit.rate / single.rate


def _row(
    configuration: Configuration,
    imitated: str,
    is_validation: bool,
    pairs: list[Pair],
    runs: Sequence[RunRecord],
    limits: Mapping[Problem, RunRecord],
) -> Row:
    before = [pair.baseline.time_s for pair in pairs]
    after = [pair.record.time_s for pair in pairs]
    is_apart = configuration.strategy in (LIMIT, BATCH)
    if configuration.strategy == LIMIT:
        # Not one search, but as many as there are workers: the machine does the work of all of them.
        before = [_limit_of(pair.baseline, pair.record) * time_s for pair, time_s in zip(pairs, after, strict=True)]
    speedup = bootstrap(ratio_of_totals, before, after)
    mean = bootstrap(geometric_mean_of_ratios, before, after)
    bounded = [pair for pair in pairs if pair.problem in limits and not is_apart]
    allowed = [_limit_of(pair.baseline, limits[pair.problem]) for pair in bounded]
    ones = [1.0] * len(bounded)
    decomposition = None if is_apart else decompose(
        configuration.workers, _sum([pair.baseline for pair in pairs]), _sum([pair.record for pair in pairs])
    )  # fmt: skip
    return Row(
        configuration=configuration,
        imitated=imitated,
        is_validation=is_validation,
        pairs=tuple(pairs),
        runs=len(runs),
        sequential_s=sum(pair.baseline.time_s for pair in pairs),
        time_s=sum(after),
        speedup=speedup,
        speedup_mean=mean,
        exponent=exponent(speedup.value, configuration.workers),
        limit=bootstrap(geometric_mean_of_ratios, allowed, ones) if bounded else None,
        share_of_limit=bootstrap(geometric_mean_of_ratios, [pair.speedup for pair in bounded], allowed)
        if bounded
        else None,
        decomposition=decomposition,
        nodes_per_s=sum(run.nodes for run in runs) / max(1e-9, sum(run.time_s for run in runs)),
        tasks=sum(run.tasks for run in runs) / len(runs),
        task_s=sum(run.busy_s for run in runs) / max(1, sum(run.tasks for run in runs)),
        splitter_s=sum(run.splitter_s for run in runs) / len(runs),
        table_fill=max(run.table_fill for run in runs),
        machines=max(run.machines for run in runs),
        identity=1.0 if is_apart else _worst_identity(configuration.workers, pairs, runs),
    )


def _sum(records: Sequence[RunRecord]) -> Books:
    return Books(*(sum(column) for column in zip(*map(books_of, records), strict=True)))


def _order(row: Row) -> tuple[object, ...]:
    strategies = {SINGLE: 0, BATCH: 1, LIMIT: 2}
    configuration = row.configuration
    return (
        row.is_simulated,
        row.is_validation,
        configuration.table_mb,
        strategies.get(configuration.strategy, 3),
        row.imitated,
        configuration.label,
        configuration.workers,
    )
