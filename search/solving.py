"""Solving: null windows to the end of the game, without iterative deepening; pure but for the root search it drives.

Each null window halves what is left of the value, or walks to it from a bound in growing steps (MTD, Plaat 1996). The
table stays warm in between. One more search, of the window around the value, then finds the line.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from search.aspiration import Window
from search.flags import Flags
from search.limits import MAX_DEPTH
from search.referee import Referee
from search.results import Iteration, RootLine, RootSearch, SearchResult
from search.rules import Game, RulesError
from search.scores import DRAW, MATE
from search.statistics import Statistics
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER


class Question(StrEnum):
    """What is to be proved."""

    SCORE = "score"
    """The exact value."""
    WDL = "wdl"
    """Whether the position is won, drawn or lost: a cheaper question."""


def question_of(text: str | None) -> Question | None:
    """Return the question that a user's word stands for; None for none.

    Raises
    ------
    RulesError
        If there is no such question.
    """
    if text is not None and text not in tuple(Question):
        raise RulesError(f"what can be proved is {' or '.join(Question)}, not {text!r}")
    return None if text is None else Question(text)


@dataclass
class Bracket:
    """What is proved of a value, and which null window to ask next; scores from the root's side to move."""

    question: Question
    lower: int = -MATE
    upper: int = MATE
    _step: int = 1

    @property
    def is_answered(self) -> bool:
        """Whether the question needs no further window."""
        is_told = self.question == Question.WDL and (self.lower > DRAW or self.upper < DRAW)
        return is_told or self.lower == self.upper

    @property
    def bound(self) -> int:
        """What `score` says of the value: `BOUND_EXACT`, `BOUND_LOWER` or `BOUND_UPPER`."""
        if self.lower == self.upper:
            return BOUND_EXACT
        return BOUND_LOWER if self.lower > DRAW else BOUND_UPPER

    @property
    def score(self) -> int:
        """The value, or the bound that answers the question."""
        return self.upper if self.bound == BOUND_UPPER else self.lower

    def next_window(self) -> Window:
        """Return the null window to ask: first on either side of a draw, then away from the bound that is known."""
        middle = (self.lower + self.upper) // 2
        if self.lower <= DRAW <= self.upper:
            alpha = DRAW if self.upper > DRAW else DRAW - 1
        elif self.lower > DRAW:
            alpha = min(self.lower + self._step - 1, middle)
        else:
            alpha = max(self.upper - self._step, middle)
        return Window(alpha, alpha + 1)

    def learn(self, window: Window, score: int) -> None:
        """Take the result of a null window, a bound that may lie outside it."""
        if self.lower > DRAW or self.upper < DRAW:
            self._step *= 2
        if score > window.alpha:
            self.lower = min(max(self.lower, score), self.upper)
        else:
            self.upper = max(min(self.upper, score), self.lower)

    def line_window(self) -> Window | None:
        """Return the window whose search finds the line; None where all moves are alike."""
        if self.bound == BOUND_EXACT:
            return Window(self.score - 1, self.score + 1)
        return Window(self.lower - 2, self.lower) if self.bound == BOUND_LOWER else None


def solving_flags(game: Game, flags: Flags) -> Flags:
    """Return the variant of the kernel that solves a game best, and cuts nothing that is only probable."""
    return flags._replace(table_depth=game.solve_table_depth, prob_cut=flags.prob_cut and not game.has_prob_cuts)


def plies_to_solve(game: Game, position: Any) -> int:
    """Return the depth at which a position is solved.

    Raises
    ------
    RulesError
        If the game does not say how long it lasts.
    """
    plies = game.plies_left(position)
    if plies is None or plies > MAX_DEPTH:
        raise RulesError(f"{game.label} cannot be solved: the game gives no bound of the plies that are left")
    return plies


def solve(
    root_search: RootSearch,
    referee: Referee,
    position: Any,
    question: Question = Question.SCORE,
    on_iteration: Callable[[Iteration], None] = lambda _iteration: None,
    clock: Callable[[], float] = time.monotonic,
    root_moves: tuple[int, ...] = (),
) -> SearchResult:
    """Prove a position's value.

    Parameters
    ----------
    root_search, referee, position
        As for `search.driver.deepen`.
    question
        What is to be proved.
    on_iteration
        Called once, when it is.
    clock
        Tells the time in seconds.
    root_moves
        The legal first moves that are searched; empty for all.

    Returns
    -------
    SearchResult
        One iteration of all plies that are left, or none if the search was stopped before.

    Raises
    ------
    RulesError
        If the game does not say how long it lasts.
    """
    started = clock()
    facts = referee.facts(position)
    legal = referee.legal_moves(position)
    if not legal:
        return SearchResult(position, (), Statistics(), 0.0, True, None, facts.outcome, ())
    depth = plies_to_solve(referee.game, position)
    first_moves = [move for move in legal if not root_moves or move in root_moves]
    left_out = tuple(move for move in legal if move not in first_moves)
    any_line = tuple(first_moves[:1])
    bracket, total, windows = Bracket(question), Statistics(), 0
    while not bracket.is_answered:
        window = bracket.next_window()
        result = root_search(depth, window, left_out)
        total, windows = total.merged(result.statistics), windows + 1
        if not result.is_finished:
            score = facts.evaluation
            return SearchResult(position, (), total, clock() - started, False, any_line[0], score, any_line)
        bracket.learn(window, result.score)
    line_window, moves = bracket.line_window(), any_line
    if line_window is not None:
        result = root_search(depth, line_window, left_out)
        total = total.merged(result.statistics)
        # Stopped here, the value stands all the same, but not which move has it.
        moves = result.line or any_line
    line = RootLine(bracket.score, moves, True)
    iteration = Iteration(depth, (line,), total, clock() - started, windows)
    on_iteration(iteration)
    return SearchResult(
        position, (iteration,), total, iteration.time_s, True, moves[0], bracket.score, moves, bracket.bound
    )
