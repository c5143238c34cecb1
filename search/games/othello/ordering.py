"""Which moves to try first: those that leave the opponent few moves (fastest first), corners, no gifts of corners."""

from __future__ import annotations

import numpy as np

from search.games.othello.board import NOTHING, ONE, PASS, Position, play
from search.games.othello.endgame import CORNERS, odd_quarters
from search.games.othello.evaluation import evaluate
from search.games.othello.lines import reachable
from search.jit import helper
from tt_store.native import count_ones

HISTORY_SIZE = 0


@helper
def order(position: Position, move: int) -> int:
    """Estimate a move by the opponent's answers and by the estimate after it."""
    if move == PASS:
        return 0
    child = play(position, move)
    answers = reachable(child.own, child.other)
    rank = -16 * (count_ones(answers) + count_ones(answers & CORNERS))
    square = ONE << np.uint64(move - 1)
    if square & odd_quarters(~(position.own | position.other)) != NOTHING:
        rank += 8
    return rank - evaluate(child)


@helper
def move_slot(position: Position, move: int) -> int:
    """Return the square's place in the history, for each side its own."""
    return int(position.side) * (PASS + 1) + move
