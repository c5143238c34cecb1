"""What a user asks of a search, and whether it can be done: checked before anything is started."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster.split_settings import SplitSettings
from cluster.strategies import SINGLE, STRATEGY_NAMES, best_strategy, strategies_of
from search.algorithms import HAS_DEPTH, PROVES_MATES, SOUND, Kind, chosen, seen_by
from search.chance_rules import chance_rules_of
from search.controls import MAX_WORKERS
from search.flags import Algorithm
from search.game_files import load_game
from search.limits import MAX_FIRST_MOVES, Limits
from search.mcts_settings import MonteCarloSettings
from search.referee import Referee
from search.rules import Game, RulesError
from search.solving import Question, plies_to_solve
from tt_store.segment import Segment


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
    settings: SplitSettings = SplitSettings()
    """The numbers of the dynamic strategy."""
    multipv: int = 1
    """How many lines with different first moves are wanted, 1..`MAX_FIRST_MOVES`; fewer where there are fewer moves."""
    root_moves: tuple[str, ...] = ()
    """The first moves that are searched, each once however often it is named; empty for all."""
    solve: Question | None = None
    """What is to be proved, at one go; None for iterative deepening."""
    algorithm: str | None = None
    """A name of `search.algorithms`; None for the one that suits the game, or that a session runs already."""
    monte_carlo: MonteCarloSettings = MonteCarloSettings()
    """The numbers of a Monte Carlo tree search, whose limit of nodes is one of playouts."""


def check_options(request: SearchRequest) -> None:
    """Refuse options that are out of range, or contradict each other, whatever the game.

    Raises
    ------
    RulesError
        In one sentence.
    """
    if request.strategy is not None and request.strategy not in STRATEGY_NAMES:
        raise RulesError(f"unknown strategy {request.strategy!r}: there are {', '.join(STRATEGY_NAMES)}")
    if not 1 <= request.multipv <= MAX_FIRST_MOVES:
        raise RulesError(f"multipv must be from 1 to {MAX_FIRST_MOVES} lines, not {request.multipv}")
    limits = request.limits
    if request.solve is not None and (
        limits.depth is not None or limits.mate is not None or request.contempt or request.multipv != 1
    ):
        raise RulesError(
            "a solution is searched to the end of the game for one line: no depth, mate, contempt, multipv"
        )


def strategy_of(request: SearchRequest, algorithm: Algorithm, workers: int, is_chance: bool) -> str:
    """Return the strategy of a request for some workers.

    Raises
    ------
    RulesError
        If it cannot split such a search.
    """
    if is_chance and (request.strategy or SINGLE) != SINGLE:
        raise RulesError("chance moves first in this position, which leaves nothing to split: its strategy is single")
    if is_chance:
        return SINGLE
    possible = strategies_of(algorithm)
    if request.strategy not in (None, SINGLE, *possible):
        fitting = " or ".join((*possible, SINGLE))
        raise RulesError(f"{algorithm.label} cannot be split so: the strategy is {fitting}, not {request.strategy}")
    return request.strategy or best_strategy(algorithm, workers)


def check_question(game: Game, request: SearchRequest, algorithm: Algorithm, is_chance: bool) -> None:
    """Refuse what an algorithm does not answer.

    Raises
    ------
    RulesError
        In one sentence, which says what it does answer.
    """
    bound = chance_rules_of(game).value_bound
    if bound and abs(request.contempt) >= bound:
        raise RulesError(f"a draw must cost less than a lost game, {bound}, not {request.contempt}")
    if algorithm not in PROVES_MATES and (request.limits.mate is not None or request.solve is not None):
        measure = "a depth" if algorithm in HAS_DEPTH else "playouts"
        raise RulesError(f"{algorithm.label} proves no mates and no solutions: give it {measure}, nodes or a time")
    if algorithm not in HAS_DEPTH and request.limits.depth is not None:
        raise RulesError(f"{algorithm.label} goes to no depth: give it playouts, nodes or a time")
    if algorithm not in HAS_DEPTH and request.contempt:
        raise RulesError(f"{algorithm.label} knows wins, draws and losses alone: it takes no contempt")
    if algorithm in SOUND[Kind.SEVERAL_PLAYERS] and request.contempt:
        raise RulesError(f"{algorithm.label} has payoffs and no draws: leave --contempt out")
    if is_chance and (request.multipv > 1 or request.root_moves):
        raise RulesError("chance moves first in this position: it has one value, and no first moves to choose from")


def first_moves_of(referee: Referee, position: Any, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return the first moves that are given as text, each once.

    Raises
    ------
    RulesError
        If one is not legal.
    """
    legal = referee.legal_moves(position)
    moves = {referee.game.parse_move(position, text): text for text in texts}
    for move, text in moves.items():
        if move not in legal:
            raise RulesError(f"the root move {text} is not legal in this position")
    return tuple(moves)


def checked_game(
    game_name: str, request: SearchRequest, workers: int | None, table_mb: float | None, notice: Callable[[str], None]
) -> Game:
    """Return the game of a request that can be carried out, as its algorithm sees it.

    Raises
    ------
    RootsplitError
        As `open_session` does.
    """
    game = load_game(game_name)
    algorithm = chosen(game, request.algorithm)
    game = seen_by(game, algorithm)
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise RulesError(f"the number of workers must be from 1 to {MAX_WORKERS}, not {workers}")
    check_options(request)
    if table_mb is not None:
        Segment.private(table_mb).close()
    referee = Referee(game, notice)
    position = referee.play_texts(game.parse(request.position), request.moves)
    is_chance = bool(referee.facts(position).is_chance)
    strategy_of(request, algorithm, workers or cores(), is_chance)
    check_question(game, request, algorithm, is_chance)
    if request.solve is not None:
        plies_to_solve(game, position)
    if not referee.legal_moves(position):
        payoffs = referee.payoffs(position)
        score = game.value_text(position, referee.facts(position).outcome, payoffs, True)
        whose = "" if payoffs else " for the side to move"
        raise RulesError(f"the game is over in this position (score {score}{whose}): nothing to search")
    first_moves_of(referee, position, request.root_moves)
    return game


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
