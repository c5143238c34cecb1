"""From playouts to an answer: what workers report of their trees, as iterations and a result; and one core's loop.

Pure but for the clock that is handed in. An iteration is a doubling of the playouts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from search import workspace as at
from search.limits import Limits, LimitsError
from search.mcts_settings import MonteCarloSettings
from search.mcts_standing import RootMove, Standing, merged, standing_of
from search.mcts_tree import UNKNOWN
from search.referee import Referee
from search.results import Iteration, RootLine, SearchResult
from search.searcher import Job, Outcome
from search.searchers import AnySearcher
from search.statistics import Statistics
from tt_store.errors import RunFailedError
from tt_store.layout import BOUND_EXACT, BOUND_NONE

FIRST_MILESTONE = 256
"""Playouts of the first iteration."""


class Growth:
    """What has come of the trees of all machines so far.

    Parameters
    ----------
    referee, position
        The game and its position, in which it goes on.
    root_moves
        The legal first moves that are searched; empty for all.
    multipv
        How many lines an iteration has, at least 1; fewer where there are fewer moves.
    on_iteration
        Called when the playouts have doubled.
    clock
        Tells the time in seconds.
    """

    def __init__(
        self,
        referee: Referee,
        position: Any,
        root_moves: tuple[int, ...] = (),
        multipv: int = 1,
        on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        legal = referee.legal_moves(position)
        self._referee, self._position, self._multipv = referee, position, multipv
        self.moves = tuple(sorted(move for move in legal if not root_moves or move in root_moves))
        self.left_out = tuple(move for move in legal if move not in self.moves)
        self._on_iteration, self._clock, self._started_s = on_iteration, clock, clock()
        self._of_machines: dict[str, tuple[Standing, tuple[int, ...]]] = {}
        self._standing: Standing | None = None
        self._iterations: list[Iteration] = []
        self._selective_depth = 0
        self._milestone = FIRST_MILESTONE

    @property
    def is_proved(self) -> bool:
        """Whether the root's value is known."""
        return self._standing is not None and self._standing.verdict != UNKNOWN

    def to_milestone(self, playouts: int) -> int:
        """Return how many playouts there are from a number of them to the next doubling, at least 1."""
        milestone = self._milestone
        while milestone <= playouts:
            milestone *= 2
        return milestone - playouts

    def take(self, machine: str, values: Sequence[int], line: tuple[int, ...], selective_depth: int) -> None:
        """Take what a worker has seen of its machine's tree; of each machine the view with most playouts counts.

        Parameters
        ----------
        machine
            Whose tree.
        values
            Words of the standing; empty if the tree has not been begun.
        line
            The best one in that tree.
        selective_depth
            Of the worker's playouts.

        Raises
        ------
        RunFailedError
            If the values are not those of the root's moves.
        """
        self._selective_depth = max(self._selective_depth, selective_depth)
        if not values:
            return
        seen = standing_of(self.moves, values)
        if seen is None:
            raise RunFailedError(f"a worker's answer does not fit the {len(self.moves)} moves of the position")
        before = self._of_machines.get(machine)
        if before is None or seen.playouts >= before[0].playouts:
            self._of_machines[machine] = seen, line
            self._standing = merged(standing for standing, _line in self._of_machines.values())
        while self._standing is not None and self._standing.playouts >= self._milestone:
            if self._standing.playouts < 2 * self._milestone:
                self._note()
            self._milestone *= 2

    def result(self, statistics: Statistics) -> SearchResult:
        """Return the answer, given what all workers have counted."""
        if self._standing is None:
            move = self.moves[0]
            return SearchResult(self._position, (), statistics, self._elapsed_s(), False, move, 0, (move,))
        noted = sum(iteration.statistics.nodes for iteration in self._iterations)
        if not self._iterations or noted < self._standing.playouts:
            self._note()
        best = self._iterations[-1].lines[0]
        return SearchResult(
            self._position, tuple(self._iterations), statistics, self._elapsed_s(), self.is_proved,
            best.moves[0], best.score, best.moves,
            BOUND_EXACT if self.is_proved else BOUND_NONE, self._standing.ranked,
        )  # fmt: skip

    def _note(self) -> None:
        """Make an iteration of what is known now."""
        standing = self._standing
        assert standing is not None
        ranked = standing.ranked[: self._multipv]
        lines = tuple(RootLine(row.score, self._line(row), row.verdict != UNKNOWN) for row in ranked)
        noted = sum(iteration.statistics.nodes for iteration in self._iterations)
        spent = Statistics(nodes=standing.playouts - noted, selective_depth=self._selective_depth)
        self._iterations.append(Iteration(self._selective_depth, lines, spent, self._elapsed_s(), 0))
        self._on_iteration(self._iterations[-1])

    def _line(self, first: RootMove) -> tuple[int, ...]:
        """Return a legal line that begins with a move: that of a machine whose best move it is."""
        lines = [line for _standing, line in self._of_machines.values() if line[:1] == (first.move,)]
        longest = max(lines, key=len, default=(first.move,))
        return tuple(self._referee.legal_prefix(self._position, longest)[0])

    def _elapsed_s(self) -> float:
        return self._clock() - self._started_s


def grow(
    searcher: AnySearcher,
    job: Job,
    limits: Limits,
    growth: Growth,
    settings: MonteCarloSettings = MonteCarloSettings(),
    tree_number: int = 1,
) -> SearchResult:
    """Search with one core until a limit or a control word ends it, or the value is proved.

    Parameters
    ----------
    searcher
        Makes the playouts.
    job
        What all slices have in common: the position, its history, the task and epoch by which they are ended.
    limits
        Nodes are kept here, and are playouts.
    growth
        Takes what comes of them.
    settings
        The search's numbers.
    tree_number
        Of the tree: another one than that of any search before on the same memory.

    Raises
    ------
    LimitsError
        If there is a limit that it cannot keep.
    """
    if limits.depth is not None or limits.mate is not None:
        raise LimitsError("mcts goes to no depth and asks for no mate: give it nodes or a time")
    total = Statistics()
    while total.nodes < limits.node_limit and not growth.is_proved:
        count = min(limits.node_limit - total.nodes, growth.to_milestone(total.nodes))
        outcome: Outcome = searcher.run(
            job._replace(
                node_limit=count, left_out=growth.left_out, settings=tuple(settings.slice(tree_number, total.nodes))
            )
        )
        total = total.merged(outcome.statistics)
        growth.take("", outcome.values, outcome.line, outcome.statistics.selective_depth)
        if outcome.status != at.RUNNING:
            break
    return growth.result(total)
