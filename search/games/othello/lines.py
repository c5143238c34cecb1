"""Moves and flips on bitboards, all eight directions at once, each in its lane of a vector.

Bit 0 is a1, bit 7 h1, bit 63 h8.

Moves: a direction is a rotation of the board's 64 bits. What leaves an edge comes in again at the other one, but no
line of discs that are to be flipped touches the edge that it runs to, so that a mask of the inner squares stops it.
Lines are filled in three doubling steps (parallel prefix: Kogge and Stone 1973).

Flips: along a ray to higher squares a carry runs through the other's discs to the first square that is none of them;
along a ray to lower squares that one is found by the zeros above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from search.jit import inlined
from tt_store.lanes import count_leading_zeros, join_lanes, lanes_of, load_lanes, rotate_lanes, spread
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_word, constant_table, trailing_zeros, word_primitive

_INNER_ROWS, _INNER_COLUMNS = 0x00FF_FFFF_FFFF_FF00, 0x7E7E_7E7E_7E7E_7E7E
_INNER = _INNER_ROWS & _INNER_COLUMNS
_WIDTH, _WORD_BITS = 8, 64
_WORD_MASK, _TOP_BIT = (1 << 64) - 1, 1 << 63
_FORTH = ((1, 0), (0, 1), (1, 1), (-1, 1))
"""Columns and rows that a step goes: to the right, up, up to the right, up to the left; then the same ones back."""
DIRECTIONS = (*_FORTH, *((-right, -up) for right, up in _FORTH))
STEPS = tuple((right + _WIDTH * up) % _WORD_BITS for right, up in DIRECTIONS)
OPEN = (_INNER_COLUMNS, _INNER_ROWS, _INNER, _INNER) * 2
"""The squares where a line in each direction goes on."""
LANES = len(DIRECTIONS)
_HALF = LANES // 2
RAY_BYTES = LANES * WORD_BYTES


def _ray(square: int, right: int, up: int) -> int:
    """Return the squares from one, without it, to the edge."""
    column, row, squares = square % _WIDTH + right, square // _WIDTH + up, 0
    while 0 <= column < _WIDTH and 0 <= row < _WIDTH:
        squares |= 1 << column + _WIDTH * row
        column, row = column + right, row + up
    return squares


RAYS = [[_ray(square, right, up) for right, up in DIRECTIONS] for square in range(_WORD_BITS)]
_rays = constant_table("othello_rays", np.array(RAYS, np.uint64).view(np.int64))


def plain_reachable(own: int, other: int) -> int:
    """Return what `reachable` does, on Python's integers."""
    empty = _WORD_MASK & ~(own | other)
    squares = (1 << square for square in range(_WORD_BITS) if empty >> square & 1)
    return sum(square for square in squares if plain_flips(own, other, square))


def plain_flips(own: int, other: int, square: int) -> int:
    """Return what `flips` does, on Python's integers."""
    flipped = 0
    start = square.bit_length() - 1
    for right, up in DIRECTIONS:
        line, column, row = 0, start % _WIDTH + right, start // _WIDTH + up
        while 0 <= column < _WIDTH and 0 <= row < _WIDTH:
            disc = 1 << column + _WIDTH * row
            if not disc & other:
                flipped |= line if disc & own else 0
                break
            line |= disc
            column, row = column + right, row + up
    return flipped


def _emit_reachable(builder: Any, own: Any, other: Any) -> Any:
    steps = lanes_of(STEPS)
    twice = lanes_of([2 * step % _WORD_BITS for step in STEPS])
    line = builder.and_(spread(builder, other, LANES), lanes_of(OPEN))
    filled = builder.and_(rotate_lanes(builder, spread(builder, own, LANES), steps), line)
    filled = builder.or_(filled, builder.and_(rotate_lanes(builder, filled, steps), line))
    pairs = builder.and_(line, rotate_lanes(builder, line, steps))
    filled = builder.or_(filled, builder.and_(rotate_lanes(builder, filled, twice), pairs))
    filled = builder.or_(filled, builder.and_(rotate_lanes(builder, filled, twice), pairs))
    ends = join_lanes(builder, rotate_lanes(builder, filled, steps))
    return builder.and_(ends, builder.not_(builder.or_(own, other)))


@word_primitive(_emit_reachable, 2)
def reachable(own: Word, other: Word) -> Word:
    """Return the empty squares where a disc of `own` would flip some of `other`."""
    return np.uint64(plain_reachable(int(own), int(other)))


def _emit_flips(builder: Any, own: Any, other: Any, rays: Any) -> Any:
    nothing, one = lanes_of([0] * _HALF), lanes_of([1] * _HALF)
    owns, others = spread(builder, own, _HALF), spread(builder, other, _HALF)
    ray = load_lanes(builder, rays, _HALF)
    carried = builder.add(builder.or_(others, builder.not_(ray)), one)
    end = builder.and_(builder.and_(carried, owns), ray)
    # All bits below the end, none where there is no end: then -1 is not added.
    below = builder.add(end, builder.sext(builder.icmp_unsigned("!=", end, nothing), end.type))
    upward = builder.and_(below, ray)
    ray = load_lanes(builder, builder.add(rays, rays.type(_HALF * WORD_BYTES)), _HALF)
    stops = builder.and_(builder.not_(others), ray)
    # Bit 0 keeps the count defined; it is no end unless it lies on the ray and holds an own disc, and then it is one.
    zeros = count_leading_zeros(builder, builder.or_(stops, one))
    end = builder.and_(builder.and_(builder.lshr(lanes_of([_TOP_BIT] * _HALF), zeros), owns), ray)
    # All bits above the end, none where there is no end.
    downward = builder.and_(builder.sub(nothing, builder.shl(end, one)), ray)
    return join_lanes(builder, builder.or_(upward, downward))


@word_primitive(_emit_flips, 3)
def _flips_along(own: Word, other: Word, rays: Word) -> Word:
    """Return what a disc of `own` flips from a square whose rays lie at an address."""
    return np.uint64(plain_flips(int(own), int(other), 1 << (int(rays) - _rays()) // RAY_BYTES))


@inlined
def flips(own: Word, other: Word, square: Word) -> Word:
    """Return the discs of `other` that a disc of `own` on an empty square, given as its bit, flips."""
    return _flips_along(own, other, as_word(_rays() + trailing_zeros(square) * RAY_BYTES))
