"""What the tuner knows of a position: how often each weight enters its evaluation.

The compiled evaluation itself is asked: with a table of zeros and a single 1 it returns how often that weight enters.
A packed sum has room for four small numbers, so that it is asked once for four weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from search.games.chess.board import BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK, TURN_SQUARE, Position
from search.games.chess.endings import NORMAL, bare_king, scale
from search.games.chess.evaluation import evaluate, phase, term_sums
from search.games.chess.pawn_ending import is_pawn_ending
from search.games.chess.terms import DANGER_START, FULL_PHASE, packed_weights, square_index
from search.games.chess.views import opposite
from tt_store.layout import WORD_BYTES
from tt_store.native import entry, read_int, read_word, write_int

FIELDS = len(Position._fields)
_LANES, _LANE_BITS = 4, 16
_RESULTS = 3
_WORD_MASK = (1 << 64) - 1
TERMS = DANGER_START
"""Number of packed weights but for those of men on squares, which come after them."""
SQUARES = 6 * 32
KINDS = 6
COLUMNS = TERMS + SQUARES + KINDS


@dataclass(frozen=True)
class Features:
    """Counts of `N` positions, seen from the side to move."""

    counts: NDArray[np.float32]
    """`[N, COLUMNS]`: of the packed weights, of men on squares by kind, of men by kind."""
    attack: NDArray[np.float32]
    """`[N, D]`: of the units of danger to the other king."""
    defence: NDArray[np.float32]
    """`[N, D]`: of the units of danger to the own king."""
    share: NDArray[np.float32]
    """`[N]`: how much of the middle game is left, 0..1."""
    scale: NDArray[np.float32]
    """`[N]`: how much of an advantage counts, 0..1."""
    is_bare: NDArray[np.bool_]
    """`[N]`: whether a king stands alone and more than the sum of terms is known; such positions follow other rules."""


@entry
def _position(words: int, index: int) -> Any:
    row = words + index * FIELDS * WORD_BYTES
    return Position(
        read_word(row),
        read_word(row + WORD_BYTES),
        read_word(row + 2 * WORD_BYTES),
        read_word(row + 3 * WORD_BYTES),
        read_word(row + 4 * WORD_BYTES),
        read_word(row + 5 * WORD_BYTES),
        read_word(row + 6 * WORD_BYTES),
        np.int64(read_int(row + 7 * WORD_BYTES)),
        read_word(row + 8 * WORD_BYTES),
        np.int64(read_int(row + 9 * WORD_BYTES)),
    )


@entry
def _sums(words: int, number: int, weights: int, results: int) -> None:
    """Write the three sums of each position with some weights; all arguments but `number` are addresses."""
    for index in range(number):
        score, danger_to_other, danger_to_own = term_sums(_position(words, index), weights)
        row = results + index * _RESULTS * WORD_BYTES
        write_int(row, score)
        write_int(row + WORD_BYTES, danger_to_other)
        write_int(row + 2 * WORD_BYTES, danger_to_own)


@entry
def _circumstances(words: int, number: int, results: int) -> None:
    """Write each position's phase, its scale, and whether its estimate is not that of the terms alone."""
    for index in range(number):
        position = _position(words, index)
        turned = opposite(position)
        share = phase(position)
        better = position if evaluate(position) > 0 else turned
        row = results + index * _RESULTS * WORD_BYTES
        write_int(row, share)
        write_int(row + WORD_BYTES, scale(better, share))
        is_known = bare_king(position) != 0 or bare_king(turned) != 0 or is_pawn_ending(position)
        write_int(row + 2 * WORD_BYTES, 1 if is_known else 0)


def extract(positions: Sequence[Any]) -> Features:
    """Return the features of some positions."""
    fields = [[int(field) & _WORD_MASK for field in each] for each in positions]
    words = np.array(fields, np.uint64).reshape(len(positions), FIELDS).view(np.int64)
    table = packed_weights()
    counts = np.zeros((len(words), COLUMNS), np.float32)
    attack = np.zeros((len(words), len(table) - TERMS), np.float32)
    defence = np.zeros_like(attack)
    results = np.zeros((len(words), _RESULTS), np.int64)
    for first, last in _groups(len(table)):
        table[:] = 0
        table[first:last] = 1 << (_LANE_BITS * np.arange(last - first))
        _sums(words.ctypes.data, len(words), table.ctypes.data, results.ctypes.data)
        for column in range(first, last):
            lanes = _take_lane(results)
            if column < TERMS:
                counts[:, column] = lanes[:, 0]
            else:
                attack[:, column - TERMS], defence[:, column - TERMS] = lanes[:, 1], lanes[:, 2]
    _count_men(words, counts)
    _circumstances(words.ctypes.data, len(words), results.ctypes.data)
    share, scales = (results[:, :2] / (FULL_PHASE, NORMAL)).astype(np.float32).T
    return Features(counts, attack, defence, share, scales, results[:, 2] != 0)


def _groups(number: int) -> list[tuple[int, int]]:
    """Return the ranges of weights that are asked for at once; packed ones and units apart."""
    starts = [*range(0, TERMS, _LANES), *range(TERMS, number, _LANES)]
    return [(start, min(start + _LANES, TERMS if start < TERMS else number)) for start in starts]


def _take_lane(results: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lowest of the small numbers in each sum, and shift it out."""
    half = 1 << (_LANE_BITS - 1)
    lowest = ((results + half) & ((1 << _LANE_BITS) - 1)) - half
    results[:] = (results - lowest) >> _LANE_BITS
    return lowest


def _count_men(words: NDArray[np.int64], counts: NDArray[np.float32]) -> None:
    """Fill in the columns of men on squares, and of men."""
    bits = np.unpackbits(words[:, :6].copy().view(np.uint8).reshape(len(words), 6, 8), axis=2, bitorder="little")
    own, pawns, knights, diagonals, straights, kings = (bits[:, field].astype(np.bool_) for field in range(6))
    queens = diagonals & straights
    by_kind = {PAWN: pawns, KNIGHT: knights, KING: kings, QUEEN: queens}
    by_kind |= {BISHOP: diagonals & ~queens, ROOK: straights & ~queens}
    turned = np.arange(64) ^ TURN_SQUARE
    for kind, men in by_kind.items():
        balance = (men & own).astype(np.int8) - (men & ~own)[:, turned]
        for square in range(64):
            counts[:, TERMS + kind * 32 + square_index(square)] += balance[:, square]
        counts[:, TERMS + SQUARES + kind] = balance.sum(axis=1)
