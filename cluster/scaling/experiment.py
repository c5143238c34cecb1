"""Runs an experiment from its design to its last line, going on where an earlier start of it was ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from cluster.request import cores
from cluster.scaling.agreement import check
from cluster.scaling.environment import describe
from cluster.scaling.filler import filled
from cluster.scaling.plan import (
    BATCH,
    LIMIT,
    SIMULATED,
    THREADS,
    Configuration,
    PlannedRun,
    Problem,
    interleaved,
)
from cluster.scaling.positions import PositionLine
from cluster.scaling.presets import WEAK, Design
from cluster.scaling.records import RunRecord
from cluster.scaling.results import ModelUse, Results
from cluster.scaling.runner import Bench, Runner
from cluster.scaling.summary import median_run
from cluster.simulated_executor import ClusterModel
from cluster.strategies import SINGLE
from search.algorithms import PROVES_MATES, chosen, flags_to_answer, seen_by
from search.flags import Algorithm, Flags
from search.game_files import load_game
from search.referee import Referee, print_notice
from search.rules import Game, RulesError
from search.solving import Question

_WARM_UP_S = 1.0
_SPANS_KEPT = 20_000
"""Of one run: a longer one's time line would be a black bar anyway."""


class Watcher(Protocol):
    """Is told how an experiment gets on."""

    def begin(self, runs: Sequence[PlannedRun], done: Sequence[RunRecord]) -> None:
        """Learn what is to be run, and what has been."""

    def say(self, what: str) -> None:
        """Learn what is done besides runs."""

    def start(self, run: PlannedRun) -> None:
        """Learn which run begins."""

    def finish(self, record: RunRecord) -> None:
        """Learn what came of it."""


def run_experiment(
    design: Design,
    folder: Path,
    watcher: Watcher,
    *,
    restart: bool = False,
    notice: Callable[[str], None] = print_notice,
) -> Results:
    """Run what of an experiment has not been run yet, and return all that is known.

    Parameters
    ----------
    design
        What.
    folder
        Where its file is kept; two starts with the same design and folder are one experiment.
    watcher
        Is told of each run.
    restart
        Throw away what an earlier start has found.
    notice
        Gets a line if something must be compiled first.

    Raises
    ------
    RootsplitError
        If a position is wrong, an address has too few workers, a run fails or finds a value that it must not find.
    """
    game = load_game(design.game)
    question = _question(game, design)
    flags = flags_to_answer(game, design.algorithm, Flags(exact_depth=design.exact_depth), question=question)
    game = seen_by(game, flags.algorithm)
    _check_positions(game, design, notice)
    environment = describe()
    with Results(folder, design, environment.commit, restart) as results:
        results.begin(environment.as_json())
        bench = Bench(
            game=game,
            flags=flags,
            most_workers=design.most_workers,
            settings=dict(design.settings),
            is_cold=design.is_cold,
            workers_a_machine=design.workers_a_machine,
            question=question,
        )
        with Runner(bench, notice) as runner:
            _Experiment(design, game, results, runner, watcher).run()
    return results


def _question(game: Game, design: Design) -> Question | None:
    """Return what a search to the end asks, as `search --solve` does; None to deepen until a mate is found."""
    if not design.is_solving or chosen(game, design.algorithm) not in PROVES_MATES:
        return None
    return Question.SCORE if game.plies_left(game.parse("")) is not None else None


class _Experiment:
    """One start of an experiment."""

    def __init__(self, design: Design, game: Game, results: Results, runner: Runner, watcher: Watcher) -> None:
        self._design, self._game, self._results = design, game, results
        self._runner, self._watcher = runner, watcher

    def run(self) -> None:
        """Warm up, find depths, measure, simulate."""
        design = self._design
        self._warm_up()
        problems = self._problems()
        self._runner.bench = replace(self._runner.bench, problems=tuple(problems))
        if BATCH in design.strategies:
            problems = [Problem(0, f"all {len(problems)} positions", None)]
        real = interleaved(problems, design.configurations(), design.repeats, design.seed)
        simulated = self._simulated(problems)
        self._watcher.begin([*real, *simulated], self._results.records)
        done = {record.key for record in self._results.records}
        for planned in real:
            if planned.key not in done:
                self._measure(planned)
        for planned in simulated:
            if planned.key not in done:
                self._simulate(planned)

    def _measure(self, planned: PlannedRun) -> None:
        """Make a real run."""
        self._watcher.start(planned)
        busy: AbstractContextManager[None] = nullcontext()
        if self._design.filler:
            busy = filled(max(0, cores() - planned.configuration.workers))
        with busy:
            record = self._runner.run(planned)
        self._keep(record)

    def _simulate(self, planned: PlannedRun) -> None:
        """Make a run in virtual time, with costs that were measured in this experiment."""
        self._watcher.start(planned)
        use = ModelUse(planned.imitated, planned.configuration.workers, planned.is_validation, self._model(planned))
        self._results.add_model(use)
        self._keep(self._runner.run(planned, use.model, self._results.costs[planned.imitated].least_grain_s))

    def _keep(self, record: RunRecord) -> None:
        """Note a run; a wrong value ends the experiment, after it was noted."""
        is_shown = record.configuration.strategy == self._design.strategies[0] and record.repeat == 0
        is_widest = record.configuration.workers == max(self._design.workers)
        spans = record.spans[:_SPANS_KEPT] if is_shown and is_widest else ()
        record = replace(record, spans=spans)
        self._results.add(record)
        self._watcher.finish(record)
        same = [other for other in self._results.records if other.problem == record.problem]
        # ProbCut finds no mate and cuts nothing where the end is in sight: what it solves may not differ.
        is_selective = self._game.is_selective(Flags(prob_cut=False))
        check(same, self._design.exact_depth, is_selective)

    def _warm_up(self) -> None:
        """Let every worker of every address search for a moment: kernels are loaded, clocks are up, pages touched."""
        design = self._design
        first = design.positions[0]
        for address in dict.fromkeys((design.baseline_address, *design.addresses)):
            self._watcher.say(f"starting and warming up {address}")
            self._runner.warm_up(address, design.tables_mb[0], first, _WARM_UP_S)
            if design.simulate and address not in self._results.costs:
                self._results.add_costs(self._runner.costs(address, design.tables_mb[0]))

    def _problems(self) -> list[Problem]:
        """Return what is searched: each position to its depth, in weak scaling to one for each number of workers."""
        design = self._design
        problems: list[Problem] = []
        shares = sorted({1, *design.workers}) if design.preset == WEAK else [1]
        for item in design.positions:
            depths: list[int | None] = [None if design.is_solving else item.depth or design.depth] * len(shares)
            if design.sequential_s is not None:
                depths = list(self._depths(item, [design.sequential_s * share for share in shares]))
            for share, depth in zip(shares, depths, strict=True):
                workers = share if design.preset == WEAK else None
                playouts = (item.nodes or design.playouts) if design.algorithm == Algorithm.MCTS.label else None
                number, depth = len(problems) + 1, None if playouts else depth
                problems.append(Problem(number, item.position, depth, workers, item.line, item.moves, playouts))
        return problems

    def _depths(self, item: PositionLine, limits_s: list[float]) -> list[int]:
        design, results = self._design, self._results
        if item not in results.depths:
            self._watcher.say(f"looking for the depth of line {item.line} that takes {max(limits_s):g} s")
            depths = self._runner.depth_within(item, design.baseline_address, design.tables_mb[0], limits_s)
            results.add_depths(item, depths)
        return results.depths[item]

    def _simulated(self, problems: Sequence[Problem]) -> list[PlannedRun]:
        """Return the runs in virtual time: first those that imitate real workers, then the bigger clusters."""
        design = self._design
        if not design.simulate:
            return []
        twins = [
            (replace(item, address=SIMULATED), item.address)
            for item in design.configurations()
            if item.strategy not in (LIMIT, SINGLE)
        ]
        problems = problems[: design.simulated_problems]
        # A cluster's messages cost what Ray's do, where that was measured.
        costly = next((address for address in design.addresses if address != THREADS), THREADS)
        runs = [
            PlannedRun(problem, configuration, 0, True, address)
            for configuration, address in twins
            for problem in problems
        ]
        return runs + [
            PlannedRun(problem, configuration, 0, False, costly)
            for configuration in design.simulated()
            for problem in problems
        ]

    def _model(self, planned: PlannedRun) -> ClusterModel:
        """Return the costs of a simulated cluster: those of its address, at the node rate that its workers had."""
        costs = self._results.costs[planned.imitated]
        stretch = 1.0 if planned.is_validation else self._design.stretch
        return ClusterModel(
            node_rate=self._node_rate(planned) / stretch,
            latency_s=costs.latency_s,
            master_s=costs.master_s,
            event_s=self._event_s(planned.imitated),
        )

    def _node_rate(self, planned: PlannedRun) -> float:
        """Return a worker's nodes a second on a problem: of one that imitates real workers, while so many searched.

        A bigger cluster's machines are as busy as this one at the most workers that were measured.
        """
        records = [
            record
            for record in self._results.records
            if record.problem == planned.problem and record.configuration.table_mb == planned.configuration.table_mb
        ]
        single = median_run(record for record in records if record.configuration.strategy == SINGLE)
        limits: dict[Configuration, list[RunRecord]] = {}
        for record in records:
            configuration = record.configuration
            if configuration.strategy == LIMIT and configuration.address == planned.imitated:
                limits.setdefault(configuration, []).append(record)
        wanted = [item for item in limits if not planned.is_validation or item.workers == planned.configuration.workers]
        if not wanted:
            return max(1.0, single.rate)
        widest = max(wanted, key=lambda item: item.workers)
        return max(1.0, median_run(limits[widest]).rate / widest.workers)

    def _event_s(self, address: str) -> float:
        """Return what the splitter took for each task and each result, as the real runs say."""
        runs = [
            record
            for record in self._results.records
            if (record.configuration.address, record.configuration.strategy) == (address, self._design.strategies[0])
        ]
        tasks = sum(record.tasks for record in runs)
        return sum(record.splitter_s for record in runs) / (2 * tasks) if tasks else ClusterModel().event_s


def _check_positions(game: Game, design: Design, notice: Callable[[str], None]) -> None:
    """Refuse a position that is wrong or finished before anything is started."""
    referee = Referee(game, notice)
    for item in design.positions:
        try:
            facts = referee.facts(referee.play_texts(game.parse(item.position), item.moves))
        except RulesError as error:
            raise RulesError(f"line {item.line}: {error}") from None
        if facts.is_over:
            raise RulesError(f"line {item.line}: the game is over in this position: nothing to search")
