"""Discs that nobody can flip any more, and the bound of the score that follows.

A disc is stable if along each of the four axes its line is full, or it stands at the board's edge, or next to a
stable disc of its colour. That finds most of them, and none that is not.
"""

from __future__ import annotations

import numpy as np

from search.games.othello.board import DISC, NOTHING, SQUARES, Position, empties
from search.jit import helper, inlined
from search.scores import INFINITY
from tt_store.native import Word, count_ones

_LEFT, _RIGHT = 0x0101_0101_0101_0101, 0x8080_8080_8080_8080
_FIRST, _LAST = 0xFF, 0xFF << 56
_ALL = (1 << SQUARES) - 1

SIDES = np.uint64(_LEFT | _RIGHT)
ENDS = np.uint64(_FIRST | _LAST)
EDGE = np.uint64(_LEFT | _RIGHT | _FIRST | _LAST)
LEFT_COLUMN = np.uint64(_LEFT)
FIRST_ROW = np.uint64(_FIRST)

# Squares that a shift must not have wrapped to, once, twice and four times over: to the right, to the left.
NOT_LEFT_1, NOT_LEFT_2, NOT_LEFT_4 = (
    np.uint64(_ALL & ~sum(_LEFT << column for column in range(steps))) for steps in (1, 2, 4)
)
NOT_RIGHT_1, NOT_RIGHT_2, NOT_RIGHT_4 = (
    np.uint64(_ALL & ~sum(_RIGHT >> column for column in range(steps))) for steps in (1, 2, 4)
)
S1, S2, S4, S7, S8, S9 = (np.uint64(step) for step in (1, 2, 4, 7, 8, 9))
S14, S16, S18, S28, S32, S36 = (np.uint64(step) for step in (14, 16, 18, 28, 32, 36))


@inlined
def _full_rows(empty: Word) -> Word:
    """Return the squares of rows without an empty square."""
    some = empty | empty >> S4
    some |= some >> S2
    some |= some >> S1
    return ~((some & LEFT_COLUMN) * FIRST_ROW)


@inlined
def _full_columns(empty: Word) -> Word:
    """Return the squares of columns without an empty square."""
    some = empty | empty >> S32
    some |= some >> S16
    some |= some >> S8
    return ~((some & FIRST_ROW) * LEFT_COLUMN)


@inlined
def _full_rising(empty: Word) -> Word:
    """Return the squares of diagonals parallel to a1-h8 without an empty square."""
    up = empty | (empty << S9 & NOT_LEFT_1)
    up |= up << S18 & NOT_LEFT_2
    up |= up << S36 & NOT_LEFT_4
    down = empty | (empty >> S9 & NOT_RIGHT_1)
    down |= down >> S18 & NOT_RIGHT_2
    down |= down >> S36 & NOT_RIGHT_4
    return ~(up | down)


@inlined
def _full_falling(empty: Word) -> Word:
    """Return the squares of diagonals parallel to h1-a8 without an empty square."""
    up = empty | (empty << S7 & NOT_RIGHT_1)
    up |= up << S14 & NOT_RIGHT_2
    up |= up << S28 & NOT_RIGHT_4
    down = empty | (empty >> S7 & NOT_LEFT_1)
    down |= down >> S14 & NOT_LEFT_2
    down |= down >> S28 & NOT_LEFT_4
    return ~(up | down)


@helper
def stable(own: Word, other: Word) -> Word:
    """Return discs of `own` that will never be flipped: not all, but no others."""
    empty = ~(own | other)
    row, column = _full_rows(empty) | SIDES, _full_columns(empty) | ENDS
    rising, falling = _full_rising(empty) | EDGE, _full_falling(empty) | EDGE
    found = own & row & column & rising & falling
    before = NOTHING
    while found != before:
        before = found
        # A shift that wraps meets a square at the edge, where that axis is safe anyway.
        found = (
            own
            & (row | found << S1 | found >> S1)
            & (column | found << S8 | found >> S8)
            & (rising | found << S9 | found >> S9)
            & (falling | found << S7 | found >> S7)
        )
    return found


@inlined
def most_discs(own: Word, other: Word) -> int:
    """Return the best that the side to move can still score: the other's stable discs stay what they are."""
    return SQUARES - 2 * count_ones(stable(other, own))


@helper
def upper_bound(position: Position, depth: int, alpha: int) -> int:
    """Return a bound of the score, `INFINITY` where it is not worth the look or the search does not see the end."""
    if depth < 2 * empties(position) or DISC * (SQUARES - 2 * count_ones(position.other)) > alpha:
        return INFINITY
    return DISC * most_discs(position.own, position.other)
