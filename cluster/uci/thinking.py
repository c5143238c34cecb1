"""One ``go``: a search on a thread of its own, its clock, and the one best move at its end."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.uci.clock import UNLIMITED, Clock, Patience
from cluster.uci.commands import Go
from cluster.uci.information import info_line
from search.referee import Referee
from search.results import FailedWindow, Iteration
from search.statistics import Statistics
from tt_store.errors import RootsplitError
from tt_store.layout import BOUND_EXACT

NO_MOVE_TEXT = "(none)"
BOUNDS_AFTER_S = 1.0
"""A window that fails earlier is soon followed by an exact score, and not told."""
_HASHFULL_S = 0.5
"""The table is looked at no more often: on a cluster that takes a message."""


class Thinking:
    """A running search.

    Parameters
    ----------
    session
        The workers; nobody else uses them until this has ended.
    request
        What to search.
    go
        What the GUI asked for.
    clock
        Of the side to move.
    overhead_s
        See `Clock.allot`.
    say
        Takes a line for the GUI.
    """

    def __init__(
        self,
        session: Session,
        request: SearchRequest,
        go: Go,
        clock: Clock,
        overhead_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._session, self._request, self._go, self._say = session, request, go, say
        self._clock, self._overhead_s = clock, overhead_s
        self._referee: Referee = session.referee
        self._position = session.position_of(request)
        self._legal = self._referee.legal_moves(self._position)
        self._started_s = time.monotonic()
        self._nodes = 0
        self._hashfull, self._hashfull_s = 0.0, -math.inf
        self._is_stopped = threading.Event()
        self._may_answer = threading.Event()
        self._patience: Patience | None = None
        self._timer: threading.Timer | None = None
        self._thread = threading.Thread(target=self._run, name="rootsplit-uci-search", daemon=True)
        if not go.waits:
            self._start_clock()
        self._thread.start()

    def stop(self) -> None:
        """End the search at once; the best move follows."""
        self._is_stopped.set()
        self._may_answer.set()
        self._session.stop()

    def ponder_hit(self) -> None:
        """Let the clock run from now on: the expected move was played."""
        if self._go.is_ponder and not self._may_answer.is_set():
            self._start_clock()

    def join(self) -> None:
        """Wait until the best move has been told."""
        self._thread.join()

    def _start_clock(self) -> None:
        allotment = self._clock.allot(self._overhead_s)
        now_s = time.monotonic()
        self._clock_s = now_s
        if allotment != UNLIMITED:
            choices = len(set(self._request.root_moves) or self._legal)
            self._patience = Patience(allotment, choices > 1)
            self._timer = threading.Timer(allotment.hard_s, self.stop)
            self._timer.daemon = True
            self._timer.start()
        self._may_answer.set()

    def _run(self) -> None:
        best, reply = NO_MOVE_TEXT, ""
        try:
            if self._legal:
                report = self._session.search(self._request, self._on_iteration, on_failure=self._on_failure)
                best, reply = self._conclude(report)
            else:
                outcome = self._referee.facts(self._position).outcome
                self._tell(0, Statistics(), outcome, ())
        except RootsplitError as error:
            self._say(f"info string {' '.join(str(error).split())}")
            best = self._session.game.move_text(self._position, self._legal[0]) if self._legal else NO_MOVE_TEXT
        self._may_answer.wait()
        if self._timer is not None:
            self._timer.cancel()
        self._say(f"bestmove {best}" + (f" ponder {reply}" if reply else ""))

    def _conclude(self, report: SearchReport) -> tuple[str, str]:
        """Return the best move and the expected reply, and tell what no finished iteration has told."""
        result, line = report.result, report.line
        if not result.iterations or result.line != result.iterations[-1].line:
            # Its statistics are of the whole search.
            self._nodes = 0
            self._tell(result.depth + 1 if result.iterations else 0, result.statistics, result.score, line)
        return line[0], line[1] if len(line) > 1 else ""

    def _on_iteration(self, iteration: Iteration) -> None:
        for rank, line in enumerate(iteration.lines, 1):
            texts = tuple(self._referee.line_texts(self._position, line.moves))
            self._tell(iteration.depth, iteration.statistics, line.score, texts, rank)
        self._nodes += iteration.statistics.nodes
        patience = self._patience
        is_over = patience is not None and patience.is_over(iteration.line[0], time.monotonic() - self._clock_s)
        # A stop that came before the search began was forgotten by it: it ends here.
        if is_over or self._is_stopped.is_set():
            self._session.stop()

    def _on_failure(self, failure: FailedWindow) -> None:
        if time.monotonic() - self._started_s < BOUNDS_AFTER_S:
            return
        texts = tuple(self._referee.line_texts(self._position, failure.line))
        self._tell(failure.depth, failure.statistics, failure.score, texts, failure.rank, failure.bound)

    def _tell(
        self,
        depth: int,
        statistics: Statistics,
        score: int,
        line: tuple[str, ...],
        rank: int = 1,
        bound: int = BOUND_EXACT,
    ) -> None:
        now_s = time.monotonic()
        if now_s - self._hashfull_s > _HASHFULL_S:
            self._hashfull, self._hashfull_s = self._session.executor.hashfull(), now_s
        self._say(
            info_line(
                depth=depth,
                selective_depth=statistics.selective_depth,
                rank=rank,
                score=score,
                nodes=self._nodes + statistics.nodes,
                elapsed_s=now_s - self._started_s,
                hashfull=self._hashfull,
                bound=bound,
                line=line,
            )
        )
