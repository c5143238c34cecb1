"""The estimate: counts of features, with weights that change as the board fills."""

from __future__ import annotations

import numpy as np

from search.games.othello.board import DISC, SQUARES, Position
from search.games.othello.features import FEATURES, features
from search.games.othello.weights import WEIGHTS
from search.jit import helper
from tt_store.layout import WORD_BYTES
from tt_store.native import constant_table, count_ones, read_int

STAGE_DISCS = 6
"""Weights are for so many discs on the board each."""
STAGES = SQUARES // STAGE_DISCS + 1
WEIGHT_SHIFT = 6
"""A unit of score is worth 2 to the power of so many in units of weights."""
MOST = DISC * SQUARES

_weights = constant_table("othello_weights", np.array(WEIGHTS, dtype=np.int64))


@helper
def evaluate(position: Position) -> int:
    """Estimate the final score; the same board with the other side to move gives the same with the opposite sign."""
    own, other = position.own, position.other
    counts = features(own, other)
    row = _weights() + count_ones(own | other) // STAGE_DISCS * FEATURES * WORD_BYTES
    total = 0
    for index in range(FEATURES):
        total += read_int(row + index * WORD_BYTES) * counts[index]
    size = min(abs(total) >> WEIGHT_SHIFT, MOST)
    return size if total > 0 else -size
