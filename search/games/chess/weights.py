"""What a man is worth on its square, in centipawns, for the middle game and for the end game.

A packed value holds both halves, ``middle << 32 + end``: values add up, subtract and change their sign as one integer.
The tables follow from a few ideas, written as formulas: men belong to the centre, knights most of all; pawns want to
advance, in the end game above all; rooks like the seventh rank; the king hides first and walks to the centre later.
"""

from __future__ import annotations

import numpy as np

from search.games.chess.board import BISHOP, KINDS, KNIGHT, PAWN, QUEEN, ROOK
from search.jit import helper, inlined
from tt_store.layout import WORD_BYTES
from tt_store.native import constant_table, read_int

MIDDLE_VALUES = (85, 330, 350, 480, 0, 1010)
END_VALUES = (105, 290, 310, 530, 0, 960)
"""By kind, in the order of `search.games.chess.board.LETTERS`."""

TEMPO = 12
"""What it is worth to be on the move, in the middle game."""

PHASE_WEIGHTS = (0, 1, 1, 2, 0, 4)
FULL_PHASE = 24
"""The phase of the start position: it falls to 0 as pieces leave the board."""

_HALF_BITS = 32
_HALF = 1 << (_HALF_BITS - 1)


def _centrality(square: int) -> int:
    """Return -3 in a corner to +3 in the centre."""
    from_middle = max(square % 8, 7 - square % 8) + max(square // 8, 7 - square // 8) - 8
    return 3 - from_middle


def square_values(kind: int, square: int) -> tuple[int, int]:
    """Return what a man is worth on a square as its side sees it, in the middle game and in the end game."""
    rank, file, centre = square // 8, square % 8, _centrality(square)
    is_central_file = file in (3, 4)
    middle, end = MIDDLE_VALUES[kind], END_VALUES[kind]
    if kind == PAWN:
        return middle + (rank - 1) * (4 if is_central_file else 1) + 6 * is_central_file, end + (rank - 1) ** 2 * 3
    if kind == KNIGHT:
        return middle + 10 * centre + 2 * rank, end + 7 * centre
    if kind == BISHOP:
        return middle + 5 * centre - 8 * (rank == 0), end + 3 * centre
    if kind == ROOK:
        return middle + 4 * is_central_file + 12 * (rank == 6), end + 2 * rank
    if kind == QUEEN:
        return middle + 2 * centre - 4 * (rank > 3), end + 5 * centre
    return -12 * rank - 8 * centre + 10 * (file in (1, 2, 6)) - 10, end + 9 * centre


def packed_value(kind: int, square: int) -> int:
    """Return both values of a man on a square as one integer."""
    middle, end = square_values(kind, square)
    return (middle << _HALF_BITS) + end


_square_values = constant_table(
    "chess_square_values",
    np.array([packed_value(kind, square) for kind in range(KINDS) for square in range(64)], np.int64),
)


@inlined
def man_value(kind: int, square: int) -> int:
    """Return the packed value of a man on a square as its side sees it."""
    return read_int(_square_values() + (kind * 64 + square) * WORD_BYTES)


@helper
def middle_half(score: int) -> int:
    """Return the middle-game half of a packed sum."""
    return score + _HALF >> _HALF_BITS


@helper
def end_half(score: int) -> int:
    """Return the end-game half of a packed sum."""
    return ((score + _HALF) & ((1 << _HALF_BITS) - 1)) - _HALF


def full_score(men: list[tuple[int, int, bool]]) -> np.int64:
    """Return a position's packed sum from scratch: of kind, square as the side to move sees it, whether it is its."""
    return np.int64(
        sum(packed_value(kind, square) if is_own else -packed_value(kind, square ^ 56) for kind, square, is_own in men)
    )
