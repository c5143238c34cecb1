"""Makes one run of an experiment after the other; executors stay open in between, their tables are emptied."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType

from cluster.executor import Executor, ResultEvent, ThreadExecutor
from cluster.position_rules import words_of
from cluster.records import Task, WorkerInfo
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.scaling.crew import Crew, Span, crews_of_one, spread
from cluster.scaling.plan import BATCH, LIMIT, SIMULATED, THREADS, Configuration, PlannedRun, Problem
from cluster.scaling.positions import PositionLine
from cluster.scaling.records import Costs, IterationTime, RunRecord, duration_counts
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.split_settings import SplitSettings
from cluster.strategies import SINGLE
from search.flags import Algorithm, Flags
from search.limits import NO_NODE_LIMIT, Limits
from search.mcts_settings import MonteCarloSettings
from search.mcts_tree import LAST_NUMBER
from search.referee import print_notice
from search.rules import Game
from search.scores import INFINITY
from search.solving import Question
from tt_store.errors import RunFailedError

_PINGS = 40
_ANSWER_S = 10.0
_SETTLE_S = 0.005
"""A ping's answer is there so long after it was sent."""


@dataclass(frozen=True)
class Bench:
    """What all runs of an experiment have in common."""

    game: Game
    flags: Flags
    most_workers: Mapping[str, int]
    """How many workers each address must have."""
    settings: Mapping[str, SplitSettings]
    """The splitter's settings by name."""
    problems: tuple[Problem, ...] = ()
    """All of them: what a batch searches."""
    is_cold: bool = True
    """Whether tables are emptied before each run."""
    workers_a_machine: int = 16
    """Of a simulated cluster."""
    question: Question | None = None
    """What is asked of positions that are searched to the end; None to deepen until they are solved."""


class Runner:
    """Makes runs.

    Parameters
    ----------
    bench
        What they have in common.
    notice
        Gets a line if something must be compiled first.
    """

    def __init__(self, bench: Bench, notice: Callable[[str], None] = print_notice) -> None:
        self.bench, self._notice = bench, notice
        self._open: dict[str, tuple[float, Executor]] = {}

    def __enter__(self) -> Runner:
        """Return the runner."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all executors."""
        for _, executor in self._open.values():
            executor.close()
        self._open.clear()

    def run(self, planned: PlannedRun, model: ClusterModel | None = None, grain_s: float | None = None) -> RunRecord:
        """Make a run.

        Parameters
        ----------
        planned
            What.
        model, grain_s
            Of a simulated run: the cluster's costs, and its executor's least grain.

        Raises
        ------
        RunFailedError
            If no worker is left, or the address has not as many workers as are asked for.
        """
        configuration = planned.configuration
        if configuration.address == SIMULATED:
            executor: Executor = self._simulated(configuration, model or ClusterModel())
            try:
                return self._search(planned, Crew(executor, executor.workers(), least_grain_s=grain_s))
            finally:
                executor.close()
        executor = self.executor(configuration.address, configuration.table_mb)
        infos = spread(executor.workers(), configuration.workers, configuration.machines)
        machines = len({info.machine for info in infos})
        if len(infos) < configuration.workers or machines < (configuration.machines or 1):
            raise RunFailedError(
                f"{configuration.label} needs {configuration.workers} workers on {configuration.machines or 'any'}"
                f" machines, and there are {len(infos)} on {machines}"
            )
        if self.bench.is_cold:
            executor.forget()
        if configuration.strategy in (LIMIT, BATCH):
            return self._search_at_once(planned, executor, infos)
        return self._search(planned, Crew(executor, infos))

    def warm_up(self, address: str, table_mb: float, position: PositionLine, time_s: float) -> None:
        """Let all workers of an address search a position for so many seconds."""
        executor = self.executor(address, table_mb)
        with Session(self.bench.game, Crew(executor, executor.workers()), table_mb, self._notice) as session:
            session.search(SearchRequest(position.position, position.moves, Limits(time_s=time_s)))

    def depth_within(
        self, position: PositionLine, address: str, table_mb: float, limits_s: Sequence[float]
    ) -> list[int]:
        """Return the depths that the sequential search ends within each of some times, by one search of the longest."""
        executor = self.executor(address, table_mb)
        executor.forget()
        with Session(self.bench.game, Crew(executor, executor.workers()[:1]), table_mb, self._notice) as session:
            limits = Limits(time_s=max(limits_s))
            request = SearchRequest(position.position, position.moves, limits, SINGLE)
            iterations = session.search(request).result.iterations
        return [max((item.depth for item in iterations if item.time_s <= limit_s), default=1) for limit_s in limits_s]

    def costs(self, address: str, table_mb: float) -> Costs:
        """Measure what a message costs at an address, with tasks of no length."""
        executor = self.executor(address, table_mb)
        info = executor.workers()[0]
        words = words_of(self.bench.game.parse(""))
        rounds_s, sends_s, takes_s = [], [], []
        for _ in range(_PINGS):
            sent_s, trip_s, work_s, _taken_s = self._ping(executor, info, words, wait_s=0.0)
            rounds_s.append(trip_s - work_s)
            sends_s.append(sent_s)
            takes_s.append(self._ping(executor, info, words, wait_s=_SETTLE_S)[3])
        master_s = (statistics.median(sends_s) + statistics.median(takes_s)) / 2
        latency_s = max(0.0, statistics.median(rounds_s) - 2 * master_s) / 2
        return Costs(address, latency_s, master_s, executor.least_grain_s)

    def executor(self, address: str, table_mb: float) -> Executor:
        """Return the open executor of an address, opened anew if its table has another size."""
        size_mb, executor = self._open.get(address, (0.0, None))
        if executor is not None and size_mb == table_mb:
            return executor
        if executor is not None:
            del self._open[address]
            executor.close()
        bench, workers = self.bench, self.bench.most_workers[address]
        if address == THREADS:
            made: Executor = ThreadExecutor(bench.game, workers, table_mb, flags=bench.flags, notice=self._notice)
        else:
            from cluster.ray_executor import RayExecutor

            # A cluster's machines may be more than are needed: the runs choose among all.
            wanted = workers if address == "local" else None
            made = RayExecutor(bench.game, wanted, table_mb, address, flags=bench.flags, notice=self._notice)
        self._open[address] = (table_mb, made)
        return made

    def _simulated(self, configuration: Configuration, model: ClusterModel) -> Executor:
        workers, machines = configuration.workers, configuration.machines
        a_machine = self.bench.workers_a_machine if machines is None else -(-workers // machines)
        model = replace(model, workers_a_machine=a_machine)
        game, flags = self.bench.game, self.bench.flags
        return SimulatedExecutor(game, workers, configuration.table_mb, model=model, flags=flags, notice=self._notice)

    def _request(self, planned: PlannedRun) -> SearchRequest:
        problem, configuration = planned.problem, planned.configuration
        strategy = SINGLE if configuration.strategy in (LIMIT, BATCH) else configuration.strategy
        settings = self.bench.settings[configuration.settings]
        limits = Limits(problem.depth, problem.playouts)
        question = self.bench.question if problem.goes_to_the_end else None
        return SearchRequest(problem.position, problem.moves, limits, strategy, settings=settings, solve=question)

    def _search(self, planned: PlannedRun, crew: Crew) -> RunRecord:
        """One search by a crew."""
        load_average = os.getloadavg()[0]
        table_mb = planned.configuration.table_mb
        with Session(self.bench.game, crew, table_mb, self._notice) as session:
            report = session.search(self._request(planned))
        return _record(planned, report, crew, load_average)

    def _search_at_once(self, planned: PlannedRun, executor: Executor, infos: list[WorkerInfo]) -> RunRecord:
        """Independent sequential searches, one a worker at a time, that share nothing but the machine."""
        is_batch = planned.configuration.strategy == BATCH
        queue = iter(self.bench.problems if is_batch else [planned.problem] * len(infos))
        load_average = os.getloadavg()[0]
        with crews_of_one(executor, infos) as crews:
            sessions = [Session(self.bench.game, crew, planned.configuration.table_mb, self._notice) for crew in crews]
            started_s = executor.now_s()
            reports = _at_once(sessions, queue, lambda problem: self._request(replace(planned, problem=problem)))
            time_s = executor.now_s() - started_s
        spans = [span for crew in crews for span in crew.spans]
        busy_s = sum(span.end_s - span.begin_s for span in spans)
        first = reports[0][1]
        record = _record(planned, first, crews[0], load_average)
        return replace(
            record,
            time_s=time_s,
            nodes=sum(report.result.statistics.nodes for _, report in reports),
            scores=tuple(report.result.score for _, report in reports),
            reached_depth=min(report.result.depth for _, report in reports),
            is_solved=all(report.result.is_solved for _, report in reports),
            machines=len({info.machine for info in infos}),
            table_fill=executor.hashfull(),
            idle=max(0.0, 1 - busy_s / (len(infos) * max(time_s, 1e-9))),
            communication=0.0,
            busy_s=busy_s,
            tasks=len(spans),
            durations=duration_counts(spans),
            iterations=(),
            spans=(),
        )

    @staticmethod
    def _ping(
        executor: Executor, info: WorkerInfo, words: tuple[int, ...], wait_s: float
    ) -> tuple[float, float, float, float]:
        """Send a task of no length; returns the seconds of sending, round trip, work and last poll."""
        numbers = executor.numbers
        task = Task(
            next(numbers.task_ids), next(numbers.epochs), words, 0, -INFINITY, INFINITY, 0, 0, NO_NODE_LIMIT, 0, 0
        )
        started_s = time.perf_counter()
        if executor.flags.algorithm == Algorithm.MCTS:
            task = task._replace(node_limit=0, settings=tuple(MonteCarloSettings().slice(LAST_NUMBER, 0)))
        executor.submit(info.worker, [task])
        sent_s = time.perf_counter() - started_s
        time.sleep(wait_s)
        while time.perf_counter() - started_s < _ANSWER_S:
            polled_s = time.perf_counter()
            for event in executor.poll(0.1):
                if isinstance(event, ResultEvent) and event.result.task_id == task.task_id:
                    now_s = time.perf_counter()
                    return sent_s, now_s - started_s, event.result.elapsed_s, now_s - polled_s
        raise RunFailedError(f"a worker has not answered for {_ANSWER_S:.0f} s")


def _at_once(
    sessions: Sequence[Session], queue: Iterator[Problem], request_of: Callable[[Problem], SearchRequest]
) -> list[tuple[int, SearchReport]]:
    """Search the problems of a queue, each session one at a time on a thread of its own; returns them by number."""
    reports: list[tuple[int, SearchReport]] = []
    failures: list[BaseException] = []
    lock = threading.Lock()

    def work(session: Session) -> None:
        try:
            while True:
                with lock:
                    problem = next(queue, None)
                if problem is None or failures:
                    return
                reports.append((problem.number, session.search(request_of(problem))))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(session,), daemon=True) for session in sessions]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException as error:
        failures.append(error)
        for session in sessions:
            session.stop()
        for thread in threads:
            with suppress(KeyboardInterrupt):
                thread.join()
    if failures:
        raise failures[0]
    return sorted(reports, key=lambda item: item[0])


def _record(planned: PlannedRun, report: SearchReport, crew: Crew, load_average: float) -> RunRecord:
    result, overheads = report.result, report.overheads
    spans: list[Span] = sorted(crew.spans, key=lambda span: (span.worker, span.begin_s))
    iterations: list[IterationTime] = [
        IterationTime(item.depth, item.time_s, item.statistics.nodes) for item in result.iterations
    ]
    return RunRecord(
        problem=planned.problem,
        configuration=planned.configuration,
        repeat=planned.repeat,
        is_validation=planned.is_validation,
        imitated=planned.imitated,
        time_s=result.time_s,
        nodes=result.statistics.nodes,
        scores=(result.score,),
        best_move=report.best_move or "",
        reached_depth=result.depth,
        is_solved=result.is_solved,
        machines=report.machines,
        table_fill=crew.hashfull(),
        idle=overheads.idle,
        communication=overheads.communication,
        busy_s=sum(span.end_s - span.begin_s for span in spans),
        tasks=overheads.tasks,
        aborted_tasks=overheads.aborted_tasks,
        wasted_nodes=overheads.wasted_nodes,
        splitter_s=overheads.splitter_s,
        exchanged_entries=overheads.exchanged_entries,
        iterations=tuple(iterations),
        durations=duration_counts(spans),
        spans=tuple(spans),
        load_average=load_average,
    )
