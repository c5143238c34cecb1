"""The public face: open a session, search, close."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from cluster.checkpoint import Checkpoint, CheckpointError, Identity
from cluster.checkpointer import Checkpointer, CheckpointFile
from cluster.cluster_options import ClusterOptions, OptionsError
from cluster.coordinator import Coordinator, Epochs
from cluster.executor import Executor, ThreadExecutor
from cluster.fingerprint import fingerprint
from cluster.logs import LOGGER
from cluster.monte_carlo import SLICE_S, MonteCarloSplitter
from cluster.position_rules import PositionRules, words_of
from cluster.report import RankedLine, SearchReport
from cluster.request import (
    SearchRequest,
    check_options,
    check_question,
    checked_game,
    cores,
    first_moves_of,
    strategy_of,
)
from cluster.splitter import Root, Splitter
from cluster.strategies import SINGLE, make_splitter
from search.algorithms import flags_to_answer, seen_by
from search.aspiration import FULL_WINDOW
from search.driver import DEFAULT_TABLE_MB, deepen
from search.flags import Algorithm, Flags
from search.game_record import GameRecord
from search.limits import stopped_after
from search.mcts_driver import Growth
from search.referee import Referee, print_notice
from search.results import FailedWindow, Iteration
from search.rules import Game, RulesError
from search.solving import solve
from tt_store.errors import RunFailedError
from tt_store.memory import fitting_mb


def open_session(
    game_name: str,
    request: SearchRequest,
    workers: int | None = None,
    table_mb: float | None = DEFAULT_TABLE_MB,
    address: str | None = None,
    *,
    flags: Flags = Flags(),
    notice: Callable[[str], None] = print_notice,
    options: ClusterOptions = ClusterOptions(),
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
        Size of each machine's table in MB; None for what fits.
    address
        None for threads of this process; else as for `cluster.ray_executor.RayExecutor`.
    flags, notice
        As for `search.searcher.Searcher`; the algorithm is the request's. If it asks for a mate, a selective search
        becomes one of full width; if it asks for a solution, the table is used as the game says.
    options
        Of workers on Ray.

    Raises
    ------
    RootsplitError
        If the game, the algorithm, the position, the strategy, the number of lines, the first moves, the table's size,
        the number of workers or the address are wrong.
    """
    if address is None and options.table_directory is not None:
        raise OptionsError("threads keep the table in their own memory: --table-dir is for workers on Ray (--address)")
    game = checked_game(game_name, request, workers, table_mb, notice)
    flags = flags_to_answer(game, request.algorithm, flags, mate=request.limits.mate, question=request.solve)
    if address is None:
        size_mb = fitting_mb() if table_mb is None else table_mb
        threads = ThreadExecutor(game, workers or cores(), size_mb, flags=flags, notice=notice)
        return Session(game, threads, size_mb, notice)
    from cluster.ray_executor import RayExecutor

    executor = RayExecutor(game, workers, table_mb, address, flags=flags, notice=notice, options=options)
    return Session(game, executor, executor.table_mb if table_mb is None else table_mb, notice)


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
        Gets a line if something must be compiled first, or a checkpoint cannot be written.
    """

    def __init__(
        self, game: Game, executor: Executor, table_mb: float, notice: Callable[[str], None] = print_notice
    ) -> None:
        self.game = seen_by(game, executor.flags.algorithm)
        self.referee = Referee(self.game, notice)
        self._record = GameRecord(self.referee)
        self.executor = executor
        self._table_mb, self._notice = table_mb, notice
        self._epochs = Epochs(executor)

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
        return self._record.place(request.position, request.moves).position

    def search(
        self,
        request: SearchRequest,
        on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
        checkpoint: CheckpointFile | None = None,
        on_failure: Callable[[FailedWindow], None] = lambda _failure: None,
    ) -> SearchReport:
        """Search a position until a limit is reached, it is solved, or `stop` is called.

        Parameters
        ----------
        request
            What to search. Limits of nodes and time are for this run, whatever an earlier one has spent.
        on_iteration
            Called after each iteration that this run finishes.
        checkpoint
            Where the search is saved; what an earlier run has left there, it goes on with.
        on_failure
            Called when the root's score has fallen outside its window.

        Raises
        ------
        RulesError
            If the request's position, moves or options are wrong.
        CheckpointError
            If the checkpoint cannot be made or trusted, or belongs to another search.
        RunFailedError
            If no worker is left; its sentence tells the last finished iteration.
        """
        check_options(request)
        root = self._root(request)
        position = self.game.position(root.position)
        first_moves = first_moves_of(self.referee, position, request.root_moves)
        workers, algorithm = self.executor.workers(), self.executor.flags.algorithm
        if request.algorithm not in (None, algorithm.label):
            raise RulesError(f"this session runs {algorithm.label}: {request.algorithm} needs one of its own")
        is_chance = bool(self.referee.facts(position).is_chance)
        check_question(self.game, request, algorithm, is_chance)
        machines = len({info.machine for info in workers})
        strategy = strategy_of(request, algorithm, len(workers), is_chance)
        if checkpoint is not None and algorithm == Algorithm.MCTS:
            raise CheckpointError("the tree of a Monte Carlo tree search is not saved: it takes no checkpoint")
        checkpointer = None if checkpoint is None else self._checkpointer(checkpoint, request, root, first_moves)
        before = None if checkpointer is None else checkpointer.resume()
        finished = [] if before is None else self._checked(before, position)

        def note(iteration: Iteration) -> None:
            finished.append(iteration)
            nodes, time_s = iteration.statistics.nodes, iteration.time_s
            LOGGER.info("depth=%d score=%d nodes=%d time_s=%.3f", iteration.depth, iteration.score, nodes, time_s)
            if checkpointer is not None:
                checkpointer.note(iteration)
            on_iteration(iteration)

        growth = None
        if algorithm == Algorithm.MCTS:
            growth = Growth(self.referee, position, first_moves, request.multipv, note, self.executor.now_s)
        root_search = Coordinator(
            self.executor,
            self._splitter(request, strategy, root) if growth is None else self._tree(request, strategy, root, growth),
            self._epochs,
            request.limits,
            partial(self._splitter_after, request, strategy, root),
            lambda: None if checkpointer is None else checkpointer.tick(),
        )
        self._epochs.begin()
        self.executor.begin_search()
        if before is not None:
            self.executor.deliver(before.entries)
        try:
            with stopped_after(None if self.executor.is_simulated else request.limits.time_s, self.stop):
                if growth is not None:
                    result = growth.result(root_search(1, FULL_WINDOW, ()).statistics)
                elif request.solve is not None:
                    result = solve(
                        root_search, self.referee, position, request.solve, note, self.executor.now_s, first_moves
                    )
                else:
                    result = deepen(
                        root_search, self.referee, position, request.limits, note, self.executor.now_s,
                        is_selective=self.game.leaves_out(self.executor.flags),
                        multipv=request.multipv, root_moves=first_moves, before=tuple(finished),
                        has_windows=self.executor.flags.has_windows, on_failure=on_failure,
                    )  # fmt: skip
            if checkpointer is not None:
                checkpointer.save()
        except KeyboardInterrupt:
            # Not drained: the interrupt may have come between two steps of the books, and what still runs is stale.
            self.stop()
            raise
        except RunFailedError as error:
            if not finished:
                raise
            raise RunFailedError(f"{error}; {self._told(position, finished[-1])}") from error
        return SearchReport(
            game=self.game,
            request_text=request.position,
            moves=request.moves,
            result=result,
            multipv=request.multipv,
            line=tuple(self.referee.line_texts(position, result.line)),
            iteration_lines=tuple(self._ranked_lines(position, iteration) for iteration in result.iterations),
            workers=len(workers),
            machines=machines,
            table_mb=self._table_mb,
            strategy=strategy,
            algorithm=algorithm,
            overheads=root_search.overheads(result.time_s, max(1, len(workers))),
        )

    def stop(self) -> None:
        """End the running search at once; from any thread. It returns the best that it has found."""
        self._epochs.stop()

    def close(self) -> None:
        """Give workers and tables back."""
        self.executor.close()

    def _root(self, request: SearchRequest) -> Root:
        # A draw's score depends on whom this search is for: its entries must not be met by another search.
        salt = hash((next(self.executor.numbers.epochs), request.contempt)) if request.contempt else 0
        rules = PositionRules(
            self.referee,
            request.contempt,
            lambda key: self.executor.known_move(key ^ salt),
            self.executor.flags.sees_repetition,
        )
        position, history = self._record.place(request.position, request.moves)
        key = self.referee.facts(position).table_key
        depth_change = self._depth_change if self.game.is_selective(self.executor.flags) else None
        return Root(words_of(position), key, rules.expand, request.contempt, salt, history, depth_change)

    def _splitter(self, request: SearchRequest, strategy: str, root: Root) -> Splitter:
        settings = request.settings if request.solve is None else request.settings.for_solver()
        executor = self.executor
        settings = settings.on_executor(executor.least_grain_s, executor.call_s, has_teams=executor.has_teams)
        numbers = executor.numbers.task_ids
        return make_splitter(strategy, self.executor.flags.algorithm, root, numbers, settings)

    def _tree(self, request: SearchRequest, strategy: str, root: Root, growth: Growth) -> Splitter:
        executor = self.executor
        return MonteCarloSplitter(
            root, executor.numbers.task_ids, growth, request.monte_carlo,
            max(SLICE_S, executor.least_grain_s), strategy == SINGLE, executor.table_part,
        )  # fmt: skip

    def _splitter_after(
        self, request: SearchRequest, strategy: str, root: Root, line: tuple[int, ...]
    ) -> tuple[Splitter, bool]:
        """Return the strategy for the position after a line, and whether the root's side is to move there."""
        start = self.game.position(root.position)
        position, history = self.referee.follow(start, root.history, line)
        facts = self.referee.facts(position)
        has_extra_turns = self.game.has_extra_turns
        is_same_side = not self.referee.changes_side(start, position) if has_extra_turns else len(line) % 2 == 0
        contempt = root.contempt if is_same_side else -root.contempt
        after = root._replace(position=words_of(position), key=facts.table_key, contempt=contempt, history=history)
        return self._splitter(request, strategy, after), is_same_side

    def _depth_change(self, rank: int, number: int, depth: int, gives_check: bool) -> tuple[int, int]:
        """Return what the workers' kernel makes of a move: as the referee says, but for rules that are off."""
        flags = self.executor.flags
        extension, reduction = self.referee.depth_change(rank, number, depth, gives_check)
        return extension if flags.check_extension else 0, reduction if flags.late_reduction else 0

    def _checkpointer(
        self, file: CheckpointFile, request: SearchRequest, root: Root, first_moves: tuple[int, ...]
    ) -> Checkpointer:
        identity = Identity(
            game=self.game.label,
            position=root.position,
            history=root.history,
            contempt=request.contempt,
            flags=tuple(int(flag) for flag in self.executor.flags),
            multipv=request.multipv,
            root_moves=first_moves,
            sources=fingerprint(self.game),
        )
        return Checkpointer(file, identity, self.executor.deepest, self._notice)

    def _checked(self, before: Checkpoint, position: Any) -> list[Iteration]:
        """Return the iterations of a checkpoint, whose lines must be legal: they are played and printed."""
        for iteration in before.iterations:
            for line in iteration.lines:
                if tuple(self.referee.legal_prefix(position, line.moves)[0]) != line.moves:
                    raise CheckpointError(f"the checkpoint's line of depth {iteration.depth} is not legal here")
        return list(before.iterations)

    def _told(self, position: Any, iteration: Iteration) -> str:
        """Return a clause that tells an iteration."""
        score = self.game.value_text(position, iteration.score, iteration.lines[0].values, False)
        line = " ".join(self.referee.line_texts(position, iteration.line))
        return f"depth {iteration.depth} was finished with score {score}, line {line}"

    def _ranked_lines(self, position: Any, iteration: Iteration) -> tuple[RankedLine, ...]:
        lines = []
        for rank, line in enumerate(iteration.lines, 1):
            texts = tuple(self.referee.line_texts(position, line.moves))
            score_text = self.game.value_text(position, line.score, line.values, line.is_solved)
            lines.append(
                RankedLine(
                    rank, texts[0], line.score, score_text, iteration.depth, texts, line.is_solved, values=line.values
                )
            )
        return tuple(lines)
