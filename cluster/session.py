"""The public face: open a session, search, close."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from cluster.executor import Executor, ResultEvent, ThreadExecutor, WorkerLost
from cluster.records import Task, TaskResult, WorkerInfo
from cluster.report import Overheads, SearchReport
from cluster.splitter import STRATEGIES, Child, Root, Splitter
from search import workspace as at
from search.aspiration import Window
from search.controls import MAX_WORKERS
from search.driver import DEFAULT_TABLE_MB, Iteration, RootResult, SearchResult, deepen
from search.flags import Flags
from search.limits import Limits, stopped_after
from search.referee import Referee, print_notice
from search.rules import Game, RulesError, load_game
from search.statistics import Statistics
from tt_store.errors import RunFailedError
from tt_store.segment import Segment

_POLL_S = 0.1
_NO_WORKER_S = 60.0
_ANSWER_S = 60.0
_LEAST_SHARE = 1000
"""A task is not handed out again for fewer nodes than this."""


@dataclass(frozen=True)
class SearchRequest:
    """What a user asks."""

    position: str = ""
    """Text of the position; empty for the game's usual start."""
    moves: tuple[str, ...] = ()
    """Moves played from there."""
    limits: Limits = Limits()
    strategy: str | None = None
    """A key of `STRATEGIES`; None for the one that suits the number of workers."""
    contempt: int = 0
    """What a draw costs the side to move, in the game's units."""


def open_session(
    game_name: str,
    request: SearchRequest,
    workers: int | None = None,
    table_mb: float = DEFAULT_TABLE_MB,
    address: str | None = None,
    *,
    flags: Flags = Flags(),
    notice: Callable[[str], None] = print_notice,
) -> Session:
    """Open a session for a request, which is checked before anything is started.

    Parameters
    ----------
    game_name
        A game's name, or the path of its file.
    request
        The first search.
    workers
        How many, 1 or more; None for all cores that there are.
    table_mb
        Size of each machine's table in MB.
    address
        None for threads of this process; else as for `cluster.ray_executor.RayExecutor`.
    flags, notice
        As for `search.searcher.Searcher`.

    Raises
    ------
    RootsplitError
        If the game, the position, the strategy, the table's size, the number of workers or the address are wrong.
    """
    game = load_game(game_name)
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise RulesError(f"the number of workers must be from 1 to {MAX_WORKERS}, not {workers}")
    _check_strategy(request)
    Segment.private(table_mb).close()
    referee = Referee(game, notice)
    position = referee.play_texts(game.parse(request.position), request.moves)
    facts = referee.facts(position)
    if facts.is_over:
        score = game.score_text(position, facts.outcome, True)
        raise RulesError(f"the game is over in this position (score {score} for the side to move): nothing to search")
    if address is None:
        return Session(game, ThreadExecutor(game, workers or cores(), table_mb, flags=flags, notice=notice), table_mb)
    from cluster.ray_executor import RayExecutor

    return Session(game, RayExecutor(game, workers, table_mb, address, flags=flags, notice=notice), table_mb)


def _check_strategy(request: SearchRequest) -> None:
    if request.strategy is not None and request.strategy not in STRATEGIES:
        raise RulesError(f"unknown strategy {request.strategy!r}: there are {', '.join(sorted(STRATEGIES))}")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Session:
    """A game on some workers, ready to search one position after the other; the tables stay warm in between.

    Parameters
    ----------
    game
        The game.
    executor
        Where tasks run; closed with the session.
    table_mb
        Size of each machine's table in MB, for the reports.
    notice
        Gets a line if something must be compiled first.
    """

    def __init__(
        self, game: Game, executor: Executor, table_mb: float, notice: Callable[[str], None] = print_notice
    ) -> None:
        self.game = game
        self.referee = Referee(game, notice)
        self.executor = executor
        self._table_mb = table_mb
        self._epoch = 0
        # One sequence for all searches: the control words may still hold what was meant for an earlier task.
        self._task_ids = itertools.count(1)
        self._stop_wanted = threading.Event()
        self._stop_lock = threading.Lock()

    def __enter__(self) -> Session:
        """Return the session."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def position_of(self, request: SearchRequest) -> Any:
        """Return the position that a request is about.

        Raises
        ------
        RulesError
            If its text or a move is wrong.
        """
        return self.referee.play_texts(self.game.parse(request.position), request.moves)

    def search(
        self, request: SearchRequest, on_iteration: Callable[[Iteration], None] = lambda _iteration: None
    ) -> SearchReport:
        """Search a position until a limit is reached, it is solved, or `stop` is called.

        Raises
        ------
        RulesError
            If the request's position, moves or strategy are wrong.
        RunFailedError
            If no worker is left.
        """
        _check_strategy(request)
        position = self.position_of(request)
        workers = self.executor.workers()
        strategy = request.strategy or ("root" if len(workers) > 1 else "single")
        root_search = _ClusterSearch(self, self._splitter(request, position, strategy), request.limits)
        self._stop_wanted.clear()
        self.executor.begin_search()
        try:
            with stopped_after(request.limits.time_s, self.stop):
                result = deepen(root_search, self.referee, position, request.limits, on_iteration)
        except KeyboardInterrupt:
            root_search.drain()
            raise
        return SearchReport(
            game=self.game,
            request_text=request.position,
            moves=request.moves,
            result=result,
            line_texts=self._line_texts(result),
            workers=len(workers),
            machines=len({info.machine for info in workers}),
            table_mb=self._table_mb,
            strategy=strategy,
            overheads=root_search.overheads(result.time_s, max(1, len(workers))),
        )

    def stop(self) -> None:
        """End the running search at once; from any thread. It returns its last finished iteration."""
        # Flag and stop word change together: a root search that begins meanwhile sees both or neither. One whose
        # epoch alone were stopped would hand out its tasks for ever.
        with self._stop_lock:
            self._stop_wanted.set()
            self.executor.stop(self._epoch)

    def close(self) -> None:
        """Give workers and tables back."""
        self.executor.close()

    def next_epoch(self) -> int | None:
        """Return the number of a new root search, or None if the search is to end."""
        with self._stop_lock:
            self._epoch += 1
            return None if self._stop_wanted.is_set() else self._epoch

    @property
    def epoch(self) -> int:
        """Number of the latest root search."""
        return self._epoch

    def stop_wanted(self) -> bool:
        """Tell whether the search is to end."""
        return self._stop_wanted.is_set()

    def _splitter(self, request: SearchRequest, position: Any, strategy: str) -> Splitter:
        children = []
        for move in self.referee.legal_moves(position):
            child = self.referee.play(position, move)
            side = 1 if self.referee.changes_side(position, child) else 0
            children.append(Child(move, _words(child), side))
        # A draw's score depends on whom this search is for: its entries must not be met by another search.
        salt = hash((self._epoch + 1, request.contempt)) if request.contempt else 0
        return STRATEGIES[strategy](Root(_words(position), tuple(children), request.contempt, salt), self._task_ids)

    def _line_texts(self, result: SearchResult) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.referee.line_texts(result.position, item.line)) for item in result.iterations)


def _words(position: Any) -> tuple[int, ...]:
    return tuple(int(word) for word in position)


class _NodePool:
    """Shares a node limit out over running tasks, so that their sum never passes it."""

    def __init__(self, limit: int) -> None:
        self.free = limit

    def take(self, sharers: int) -> int:
        """Reserve an equal share of what is free for one of so many tasks."""
        share = max(1, self.free // sharers) if self.free > 0 else 0
        self.free -= share
        return share

    def give_back(self, reserved: int, used: int) -> None:
        """Return what a task did not use, or take what it used beyond: a kernel ends a few nodes late."""
        self.free += reserved - used


@dataclass
class _Running:
    """A task that is out."""

    worker: int
    reserved: int
    submitted_s: float


class _ClusterSearch:
    """The root search of a cluster: moves messages between a splitter and an executor."""

    def __init__(self, session: Session, splitter: Splitter, limits: Limits) -> None:
        self._session, self._splitter = session, splitter
        self._executor = session.executor
        self._pool = _NodePool(limits.node_limit)
        self._running: dict[int, _Running] = {}
        self._spent = Statistics()
        self._is_out_of_nodes = False
        self._busy_s = 0.0
        self._travel_s = 0.0
        self._tasks = self._aborted = 0

    def __call__(self, depth: int, window: Window) -> RootResult:
        """Search the root to a depth with a window."""
        self._spent = Statistics()
        epoch = self._session.next_epoch()
        if epoch is None:
            return self._unfinished()
        self._splitter.start(depth, window, epoch)
        last_sign_s = time.monotonic()
        while (result := self._splitter.result()) is None:
            self._hand_out()
            if self._session.stop_wanted() or (self._is_out_of_nodes and not self._running):
                self.drain()
                return self._unfinished()
            if self._take_in() or self._executor.workers():
                last_sign_s = time.monotonic()
            elif time.monotonic() - last_sign_s > _NO_WORKER_S:
                raise RunFailedError(f"no worker has been left for {_NO_WORKER_S:.0f} s, so the search ends")
        self.drain()
        return RootResult(result.score, result.line, self._spent, is_finished=True)

    def drain(self) -> None:
        """End what still runs and wait for it: workers answer within a poll of their kernel.

        Its nodes belong to this root search, and an idle worker is what the next one needs.

        Raises
        ------
        RunFailedError
            If a worker does not answer.
        """
        if not self._running:
            return
        self._executor.stop(self._session.epoch)
        deadline_s = time.monotonic() + _ANSWER_S
        while self._running:
            self._take_in()
            if time.monotonic() > deadline_s:
                raise RunFailedError(f"{len(self._running)} workers have not answered for {_ANSWER_S:.0f} s")

    def overheads(self, time_s: float, workers: int) -> Overheads:
        """Return where the workers' time went."""
        capacity_s = max(time_s * workers, 1e-9)
        return Overheads(
            idle=max(0.0, 1 - (self._busy_s + self._travel_s) / capacity_s),
            communication=min(1.0, self._travel_s / capacity_s),
            tasks=self._tasks,
            aborted_tasks=self._aborted,
        )

    def _unfinished(self) -> RootResult:
        return RootResult(0, (), self._spent, is_finished=False)

    def _hand_out(self) -> None:
        """Give the idle workers what the splitter wants; abort and narrow what runs."""
        busy = {running.worker for running in self._running.values()}
        idle = [info for info in self._executor.workers() if info.worker not in busy]
        if idle and not self._is_out_of_nodes:
            tasks = self._splitter.next_tasks(idle)
            for number, (info, task) in enumerate(tasks):
                self._submit(info, task, sharers=len(tasks) - number)
        self._executor.abort(self._splitter.aborts())
        for task_id, bound in self._splitter.bounds():
            self._executor.set_bound(task_id, bound)

    def _submit(self, info: WorkerInfo, task: Task, sharers: int) -> None:
        reserved = self._pool.take(sharers)
        if not reserved:
            # Others hold what is left of the nodes; some may come back.
            self._splitter.on_lost(task.task_id)
            self._is_out_of_nodes = not self._running
            return
        self._running[task.task_id] = _Running(info.worker, reserved, time.monotonic())
        self._tasks += 1
        self._executor.submit(info.worker, [task._replace(node_limit=reserved)])

    def _take_in(self) -> bool:
        """Wait for events and feed them to the splitter; returns False if there were none."""
        events = self._executor.poll(_POLL_S)
        for event in events:
            if isinstance(event, ResultEvent):
                self._on_result(event.result)
            elif isinstance(event, WorkerLost):
                self._on_lost(event.task_ids)
        return bool(events)

    def _on_result(self, result: TaskResult) -> None:
        running = self._running.pop(result.task_id, None)
        if running is None:
            return
        self._busy_s += result.elapsed_s
        self._travel_s += max(0.0, time.monotonic() - running.submitted_s - result.elapsed_s)
        self._spent = self._spent.merged(result.statistics)
        self._pool.give_back(running.reserved, result.statistics.nodes)
        if result.is_finished:
            self._splitter.on_result(result)
            return
        self._aborted += 1
        self._splitter.on_lost(result.task_id)
        if result.status == at.OUT_OF_NODES and not self._running and self._pool.free < _LEAST_SHARE:
            self._is_out_of_nodes = True

    def _on_lost(self, task_ids: Iterable[int]) -> None:
        """Hand a lost worker's tasks to others; what it spent is unknown, so its reserve is not given back."""
        for task_id in task_ids:
            if self._running.pop(task_id, None) is not None:
                self._splitter.on_lost(task_id)
