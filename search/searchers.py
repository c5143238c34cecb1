"""Opens the searcher that an algorithm asks for; executors carry tasks to it and know no algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from search.algorithms import check_sound, seen_by
from search.controls import Controls
from search.flags import Algorithm, Flags
from search.mcts_searcher import MonteCarloSearcher
from search.multiplayer_searcher import MultiplayerSearcher
from search.referee import Referee, print_notice
from search.rules import Game
from search.searcher import Job, Outcome, Searcher
from search.turns import Turns
from tt_store.segment import Segment


class AnySearcher(Protocol):
    """Runs jobs on the calling thread: what all algorithms have in common."""

    game: Game
    flags: Flags
    referee: Referee
    segment: Segment
    controls: Controls
    slot: int

    def run(self, job: Job) -> Outcome:
        """Search a job to its end, its limits, or a control word."""

    def forget(self) -> None:
        """Forget what was learned, as before an unrelated search."""


_KINDS: dict[Algorithm, Callable[..., AnySearcher]] = {
    Algorithm.ALPHA_BETA: Searcher,
    Algorithm.EXPECTIMINIMAX: Searcher,
    Algorithm.MCTS: MonteCarloSearcher,
    Algorithm.MAX_N: MultiplayerSearcher,
    Algorithm.PARANOID: Searcher,
}


def open_searcher(
    game: Game,
    segment: Segment,
    controls: Controls,
    *,
    flags: Flags = Flags(),
    slot: int = 0,
    notice: Callable[[str], None] = print_notice,
    turns: Turns | None = None,
    step_nodes: int = 0,
) -> AnySearcher:
    """Return a searcher of the flags' algorithm; parameters are as for `search.searcher.Searcher`.

    Raises
    ------
    RulesError
        If the algorithm is not sound for the game.
    """
    check_sound(game, flags.algorithm)
    kind, seen = _KINDS[flags.algorithm], seen_by(game, flags.algorithm)
    return kind(seen, segment, controls, flags=flags, slot=slot, notice=notice, turns=turns, step_nodes=step_nodes)
