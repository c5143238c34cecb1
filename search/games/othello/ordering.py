"""Which moves to try first: those that leave the opponent few answers (fastest first), and what the estimate likes.

There are neither killers nor a history: what refuted a sibling, put before this order, made end games three times as
large.
"""

from __future__ import annotations

import numpy as np

from search.games.othello.board import NOTHING, ONE, PASS, Position, play
from search.games.othello.endgame import CORNERS, odd_quarters
from search.games.othello.evaluation import evaluate
from search.games.othello.lines import reachable
from search.jit import helper
from tt_store.native import count_ones


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
