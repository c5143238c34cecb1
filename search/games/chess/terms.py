"""The weights in memory: how the table of `search.games.chess.weights` is laid out, packed and read.

A packed weight holds its two values, ``middle << 32 + end``: weights add up, subtract, are multiplied by a small
number and change their sign as one integer. Evaluation functions get the address of the table, so that the tuner can
have them read another one: a table of zeros with a single 1 makes them count how often that weight enters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from search.games.chess import weights as table
from search.games.chess.board import KINDS, TURN_SQUARE
from search.jit import helper, inlined
from tt_store.layout import WORD_BYTES
from tt_store.native import constant_table, read_int

PHASE_WEIGHTS = (0, 1, 1, 2, 0, 4)
"""What a man adds to the phase, by kind in the order of `search.games.chess.board.LETTERS`."""
FULL_PHASE = 24
"""The phase of the start position: it falls to 0 as pieces leave the board."""

HALF_BITS = 32
_HALF = 1 << (HALF_BITS - 1)

SQUARE_TABLES = ("pawn_squares", "knight_squares", "bishop_squares", "rook_squares", "king_squares", "queen_squares")
"""By kind; each has 32 values, rank by rank from the side's own first, files a to d: files e to h mirror them."""
MATERIAL = "material"


def _offsets() -> dict[str, int]:
    """Return where each term's weights begin, in words."""
    offsets, end = {}, 0
    for name, values in table.WEIGHTS.items():
        if name not in SQUARE_TABLES and name != MATERIAL:
            offsets[name] = end
            end += len(values)
    for name, units in table.DANGER.items():
        offsets[name] = end
        end += len(units)
    return offsets


OFFSETS = _offsets()
"""Of all weights that the evaluation adds up itself; those of men on their squares are summed up by `play`."""
DANGER_START = OFFSETS[next(iter(table.DANGER))]
"""From here on, words are units of danger and not packed."""


def pack(middle: int, end: int) -> int:
    """Return both values of a weight as one integer."""
    return (middle << HALF_BITS) + end


def packed_weights() -> NDArray[np.int64]:
    """Return the table as the evaluation reads it."""
    words = [pack(*pair) for name in OFFSETS if name in table.WEIGHTS for pair in table.WEIGHTS[name]]
    words += [units for values in table.DANGER.values() for units in values]
    return np.array(words, np.int64)


def square_index(square: int) -> int:
    """Return the place of a square, as its man's side sees it, in a table of 32."""
    file = square % 8
    return square // 8 * 4 + min(file, 7 - file)


def packed_value(kind: int, square: int) -> int:
    """Return both values of a man on a square as one integer."""
    material, place = table.WEIGHTS[MATERIAL][kind], table.WEIGHTS[SQUARE_TABLES[kind]][square_index(square)]
    return pack(material[0] + place[0], material[1] + place[1])


term_weights = constant_table("chess_term_weights", packed_weights())
_SQUARE_VALUES = [packed_value(kind, square) for kind in range(KINDS) for square in range(64)]
_square_values = constant_table("chess_square_values", np.array(_SQUARE_VALUES, np.int64))


@inlined
def weight(weights: int, index: int) -> int:
    """Return a weight of the table at an address."""
    return read_int(weights + index * WORD_BYTES)


@inlined
def man_value(kind: int, square: int) -> int:
    """Return the packed value of a man on a square as its side sees it."""
    return read_int(_square_values() + (kind * 64 + square) * WORD_BYTES)


@helper
def middle_half(score: int) -> int:
    """Return the middle-game half of a packed sum."""
    return score + _HALF >> HALF_BITS


@helper
def end_half(score: int) -> int:
    """Return the end-game half of a packed sum."""
    return ((score + _HALF) & ((1 << HALF_BITS) - 1)) - _HALF


def full_score(men: list[tuple[int, int, bool]]) -> np.int64:
    """Return a position's packed sum from scratch: of kind, square as the side to move sees it, whether it is its."""
    total = 0
    for kind, square, is_own in men:
        if is_own:
            total += _SQUARE_VALUES[kind * 64 + square]
        else:
            total -= _SQUARE_VALUES[kind * 64 + (square ^ TURN_SQUARE)]
    return np.int64(total)
