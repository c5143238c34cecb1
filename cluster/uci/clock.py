"""How long a move may take: soft and hard limits from a chess clock; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

_MOVES_LEFT = 26.0
"""In sudden death, a game is expected to last so many moves more."""
_INCREMENT_SHARE = 0.75
"""How much of the increment a move is expected to use."""
_HARD_FACTOR = 4.0
"""A difficult move may take so many times as long as an expected one."""
_HARD_SHARE = 0.4
"""No move takes a greater share of what is left, unless it is the last one before more time comes."""
_LAST_MOVE_SHARE = 0.85
_LEAST_S = 0.001
_NEXT_ITERATION = 0.6
"""An iteration that would begin later than at this share of the soft limit would hardly be finished."""
_STEADY, _UNSTEADY = 0.7, 1.6
"""Factors of the soft limit: where the best move has stayed for some iterations, and where it has just changed."""
_STEADY_ITERATIONS = 5


class Allotment(NamedTuple):
    """Seconds for one move."""

    soft_s: float
    """No iteration begins later, give or take how settled the move is; infinite where only the hard limit counts."""
    hard_s: float
    """The search ends whatever it has found; infinite where there is no clock."""


UNLIMITED = Allotment(math.inf, math.inf)


@dataclass(frozen=True)
class Clock:
    """What ``go`` says of the time; None where it says nothing."""

    left_s: float | None = None
    """Of the side to move; may be negative, with a GUI that tolerates it."""
    increment_s: float = 0.0
    moves_to_go: int | None = None
    """Moves until more time comes."""
    move_time_s: float | None = None
    """An exact time for this move."""

    def allot(self, overhead_s: float) -> Allotment:
        """Return the limits of this move.

        Parameters
        ----------
        overhead_s
            What passes between our answer and the stopping of the clock, 0 or more.
        """
        if self.move_time_s is not None:
            return Allotment(math.inf, max(_LEAST_S, self.move_time_s - overhead_s))
        if self.left_s is None:
            return UNLIMITED
        left_s = max(0.0, self.left_s - overhead_s)
        moves = min(_MOVES_LEFT, float(self.moves_to_go or _MOVES_LEFT))
        if moves <= 1.0:
            return Allotment(max(_LEAST_S, left_s * _LAST_MOVE_SHARE), max(_LEAST_S, left_s * _LAST_MOVE_SHARE))
        # The overhead of the moves to come is paid from the same clock.
        spare_s = max(0.0, left_s - overhead_s * (moves - 1))
        wanted_s = spare_s / moves + _INCREMENT_SHARE * self.increment_s
        hard_s = max(_LEAST_S, min(left_s * _HARD_SHARE, wanted_s * _HARD_FACTOR))
        return Allotment(max(_LEAST_S, min(wanted_s, hard_s)), hard_s)


class Patience:
    """Decides after each iteration whether the move is settled; one for each search.

    Parameters
    ----------
    allotment
        The limits.
    has_choice
        False if there is one legal move only: it is played at once.
    """

    def __init__(self, allotment: Allotment, has_choice: bool) -> None:
        self.allotment, self._has_choice = allotment, has_choice
        self._best_moves: list[int | None] = []

    def is_over(self, best_move: int | None, elapsed_s: float) -> bool:
        """Tell whether the search should end after an iteration.

        Parameters
        ----------
        best_move
            What the iteration found best.
        elapsed_s
            Since the clock started.
        """
        self._best_moves.append(best_move)
        soft_s = self.allotment.soft_s
        if math.isinf(soft_s):
            return elapsed_s >= self.allotment.hard_s
        if not self._has_choice:
            return True
        recent = self._best_moves[-_STEADY_ITERATIONS:]
        is_steady = len(recent) == _STEADY_ITERATIONS and len(set(recent)) == 1
        factor = _STEADY if is_steady else _UNSTEADY if len(set(recent[-2:])) > 1 else 1.0
        return elapsed_s >= _NEXT_ITERATION * factor * soft_s
