"""What the estimate counts, each as the side to move's count less the other's."""

from __future__ import annotations

import numpy as np

from search.games.othello.lines import reachable
from search.games.othello.stability import stable
from search.jit import helper, inlined
from tt_store.native import Word, count_ones

_BOARD_BITS = 64
_NOT_LEFT, _NOT_RIGHT = 0xFEFE_FEFE_FEFE_FEFE, 0x7F7F_7F7F_7F7F_7F7F


def _squares(quarter: str) -> np.uint64:
    """Return all squares that the symmetries of the board make of some of its lower left quarter, such as a1 b1."""
    found = 0
    for square in quarter.split():
        column, row = ord(square[0]) - ord("a"), int(square[1]) - 1
        for x, y in ((column, row), (row, column)):
            found |= sum(1 << x_ + 8 * y_ for x_ in {x, 7 - x} for y_ in {y, 7 - y})
    return np.uint64(found)


CORNERS, C_SQUARES, A_SQUARES, B_SQUARES = (_squares(name) for name in ("a1", "b1", "c1", "d1"))
X_SQUARES, INNER_EDGE_A, INNER_EDGE_B = (_squares(name) for name in ("b2", "c2", "d2"))
BOX_CORNERS, BOX_SIDES, CENTRE = (_squares(name) for name in ("c3", "d3", "d4"))
NOT_LEFT, NOT_RIGHT = np.uint64(_NOT_LEFT), np.uint64(_NOT_RIGHT)
S1, S7, S8, S9 = (np.uint64(step) for step in (1, 7, 8, 9))

NAMES = (
    "mobility", "potential mobility", "frontier", "stable discs", "X at an empty corner", "C at an empty corner",
    "corners", "C squares", "A squares", "B squares", "X squares", "c2 and its like", "d2 and its like",
    "c3 and its like", "d3 and its like", "centre",
)  # fmt: skip
FEATURES = len(NAMES)


@inlined
def _around(squares: Word) -> Word:
    """Return the squares next to some, and perhaps some of them."""
    near = squares | (squares << S1 & NOT_LEFT) | (squares >> S1 & NOT_RIGHT)
    return near | near << S8 | near >> S8


@inlined
def _more(own: Word, other: Word, squares: Word) -> int:
    """Return how many discs more `own` has than `other` on some squares."""
    return count_ones(own & squares) - count_ones(other & squares)


@helper
def features(own: Word, other: Word) -> tuple[int, ...]:
    """Return the counts in the order of `NAMES`."""
    empty = ~(own | other)
    near_empty = _around(empty)
    open_corners = empty & CORNERS
    diagonal = open_corners << S9 | open_corners >> S9 | open_corners << S7 | open_corners >> S7
    beside = (
        (open_corners << S1 & NOT_LEFT) | (open_corners >> S1 & NOT_RIGHT) | open_corners << S8 | open_corners >> S8
    )
    return (
        count_ones(reachable(own, other)) - count_ones(reachable(other, own)),
        count_ones(_around(other) & empty) - count_ones(_around(own) & empty),
        _more(own, other, near_empty),
        count_ones(stable(own, other)) - count_ones(stable(other, own)),
        _more(own, other, diagonal & X_SQUARES),
        _more(own, other, beside & C_SQUARES),
        _more(own, other, CORNERS),
        _more(own, other, C_SQUARES),
        _more(own, other, A_SQUARES),
        _more(own, other, B_SQUARES),
        _more(own, other, X_SQUARES),
        _more(own, other, INNER_EDGE_A),
        _more(own, other, INNER_EDGE_B),
        _more(own, other, BOX_CORNERS),
        _more(own, other, BOX_SIDES),
        _more(own, other, CENTRE),
    )
