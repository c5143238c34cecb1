"""Moves and flips on bitboards, all eight directions at once.

Bit 0 is a1, bit 7 h1, bit 63 h8. A direction is a rotation of the board's 64 bits: what leaves an edge comes in again
at the other one, but no line of discs that are to be flipped ever touches the edge it runs to, so that a mask of the
inner squares stops it. Each direction has its lane of a vector; lines are filled in three doubling steps (parallel
prefix: Kogge and Stone 1973).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tt_store.native import Word, join_lanes, lanes_of, rotate_lanes, spread, word_primitive

_ROWS, _COLUMNS = 0x00FF_FFFF_FFFF_FF00, 0x7E7E_7E7E_7E7E_7E7E
_WORD_BITS, _WORD_MASK = 64, (1 << 64) - 1
# The way to the right, up, up to the right, up to the left, and back.
_FORTH = (1, 8, 9, 7)
STEPS = (*_FORTH, *(_WORD_BITS - step for step in _FORTH))
INNER = (_COLUMNS, _ROWS, _COLUMNS & _ROWS, _COLUMNS & _ROWS) * 2
"""The squares where a line in each direction goes on."""


def _emit_fill(builder: Any, origin: Any, other: Any) -> tuple[Any, Any]:
    """Emit the discs of `other` in unbroken lines from `origin`, a lane each direction; returns them and the steps."""
    count = len(STEPS)
    steps = lanes_of(STEPS)
    twice = lanes_of([2 * step % _WORD_BITS for step in STEPS])
    open_to = builder.and_(spread(builder, other, count), lanes_of(INNER))
    start = spread(builder, origin, count)
    filled = builder.and_(rotate_lanes(builder, start, steps), open_to)
    filled = builder.or_(filled, builder.and_(rotate_lanes(builder, filled, steps), open_to))
    pairs = builder.and_(open_to, rotate_lanes(builder, open_to, steps))
    filled = builder.or_(filled, builder.and_(rotate_lanes(builder, filled, twice), pairs))
    filled = builder.or_(filled, builder.and_(rotate_lanes(builder, filled, twice), pairs))
    return filled, steps


def _emit_reachable(builder: Any, own: Any, other: Any) -> Any:
    filled, steps = _emit_fill(builder, own, other)
    ends = join_lanes(builder, rotate_lanes(builder, filled, steps))
    return builder.and_(ends, builder.not_(builder.or_(own, other)))


def _emit_flips(builder: Any, own: Any, other: Any, square: Any) -> Any:
    filled, steps = _emit_fill(builder, square, other)
    ends = builder.and_(rotate_lanes(builder, filled, steps), spread(builder, own, len(STEPS)))
    nothing = lanes_of([0] * len(STEPS))
    closed = builder.icmp_unsigned("!=", ends, nothing)
    return join_lanes(builder, builder.select(closed, filled, nothing))


def _rotated(word: int, step: int) -> int:
    return (word << step | word >> _WORD_BITS - step) & _WORD_MASK


def _filled(origin: int, other: int, lane: int) -> int:
    line = 0
    for _ in range(6):
        line |= _rotated(origin | line, STEPS[lane]) & other & INNER[lane]
    return line


def plain_reachable(own: int, other: int) -> int:
    """Return what `reachable` does, on Python's integers."""
    ends = 0
    for lane, step in enumerate(STEPS):
        ends |= _rotated(_filled(own, other, lane), step)
    return ends & ~(own | other)


def plain_flips(own: int, other: int, square: int) -> int:
    """Return what `flips` does, on Python's integers."""
    flipped = 0
    for lane, step in enumerate(STEPS):
        line = _filled(square, other, lane)
        if _rotated(line, step) & own:
            flipped |= line
    return flipped


@word_primitive(_emit_reachable, 2)
def reachable(own: Word, other: Word) -> Word:
    """Return the empty squares where a disc of `own` would flip some of `other`."""
    return np.uint64(plain_reachable(int(own), int(other)))


@word_primitive(_emit_flips, 3)
def flips(own: Word, other: Word, square: Word) -> Word:
    """Return the discs of `other` that a disc of `own` on a square, given as its bit, flips."""
    return np.uint64(plain_flips(int(own), int(other), int(square)))
