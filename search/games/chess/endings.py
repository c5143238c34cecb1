"""End games that the sum of the terms judges wrongly: drawish ones, and the art of mating a bare king."""

from __future__ import annotations

import numpy as np

from search.games.chess.board import DARK_SQUARES, FILE_A, FILE_H, NOTHING, Position, bit, occupied, own_king
from search.games.chess.pawns import passed_pawns
from search.games.chess.terms import FULL_PHASE
from search.games.chess.views import distance
from search.jit import helper, inlined
from tt_store.native import Word, count_ones, trailing_zeros

NORMAL = 64
"""The scale of a position that is won or lost as its value says."""
DRAWN, HARDLY_WON, DRAWISH = 0, 4, 14
OPPOSITE_BISHOPS, OPPOSITE_BISHOPS_A_PASSED_PAWN = 18, 5
OPPOSITE_BISHOPS_WITH_MORE = 46
FEW_PAWNS, A_PAWN = 40, 6
"""The fewer pawns are left to win with, the more is drawn (Heinz 2000)."""

MINOR, MAJOR, MIGHTIEST = 3, 5, 9
"""What pieces weigh where only their balance is asked for."""
ENOUGH_TO_MATE = 5
EDGE_STEP, KING_STEP, CORNER_STEP = 12, 20, 60


@inlined
def might(view: Position, men: Word) -> int:
    """Return the weight of the pieces among some men."""
    queens = count_ones(view.diagonals & view.straights & men)
    minors = count_ones(view.knights & men) + count_ones(view.diagonals & men) - queens
    return MINOR * minors + MAJOR * (count_ones(view.straights & men) - queens) + MIGHTIEST * queens


@helper
def bare_king(view: Position) -> int:
    """Return what it is worth to a side that the other has a king alone, which it drives to the edge to mate it.

    With bishop and knight, to a corner of the bishop's colour.
    """
    others = occupied(view) & ~view.own
    if others & ~view.kings != NOTHING:
        return 0
    # Knights alone do not force mate.
    if might(view, view.own) < ENOUGH_TO_MATE or view.pawns | view.diagonals | view.straights == NOTHING:
        return 0
    king = trailing_zeros(view.kings & others)
    file, rank = king & 7, king >> 3
    from_edge = min(file, 7 - file) + min(rank, 7 - rank)
    score = EDGE_STEP * (6 - from_edge) + KING_STEP * (7 - distance(own_king(view), king))
    bishops = view.diagonals & ~view.straights
    if view.pawns | view.straights == NOTHING and bishops & (bishops - np.uint64(1)) == NOTHING:
        # Steps along the diagonal to the nearest corner of the bishop's colour; a1 is dark.
        is_dark = bishops & DARK_SQUARES != NOTHING
        from_corner = min(file + rank, 14 - file - rank) if is_dark else min(7 - file + rank, file + 7 - rank)
        score += CORNER_STEP * (7 - from_corner)
    return score


@helper
def scale(view: Position, phase: int) -> int:
    """Return how much of its advantage a side can hope to win, 0..`NORMAL`; `view` is that side's."""
    own, others = view.own, occupied(view) & ~view.own
    pawns = view.pawns & own
    ahead = might(view, own) - might(view, others)
    if pawns == NOTHING:
        return _without_pawns(view, ahead)
    bishops = view.diagonals & ~view.straights
    if is_wrong_corner(view, bishops):
        return DRAWN
    factor = min(NORMAL, FEW_PAWNS + A_PAWN * count_ones(pawns))
    own_bishop, other_bishop = bishops & own, bishops & others
    if count_ones(own_bishop) == 1 and count_ones(other_bishop) == 1:
        is_opposite = (own_bishop & DARK_SQUARES == NOTHING) != (other_bishop & DARK_SQUARES == NOTHING)
        if is_opposite:
            if might(view, own) == MINOR and might(view, others) == MINOR:
                freed = OPPOSITE_BISHOPS_A_PASSED_PAWN * count_ones(passed_pawns(view))
                factor = min(factor, OPPOSITE_BISHOPS + freed)
            else:
                factor = min(factor, OPPOSITE_BISHOPS_WITH_MORE)
    # All of this is about the end game.
    return NORMAL - (NORMAL - factor) * (FULL_PHASE - phase) // FULL_PHASE


@helper
def _without_pawns(view: Position, ahead: int) -> int:
    """Return the scale for a side without pawns: a minor piece more wins nothing, and two knights do not mate."""
    own, others = view.own, occupied(view) & ~view.own
    is_two_knights = own & ~(view.knights | view.kings) == NOTHING and count_ones(own) == 3
    if might(view, own) < ENOUGH_TO_MATE or is_two_knights:
        # Two knights may only hope where the other side has a pawn that keeps it from stalemate.
        return DRAWN if view.pawns == NOTHING else HARDLY_WON
    return DRAWISH if ahead <= MINOR and others & ~view.kings != NOTHING else NORMAL


@helper
def is_wrong_corner(view: Position, bishops: Word) -> bool:
    """Tell whether a side has but rook pawns and a bishop that does not command the corner where the king waits."""
    own, others = view.own, occupied(view) & ~view.own
    pawns = view.pawns & own
    if own & ~(pawns | view.kings | bishops) != NOTHING or others & ~(view.kings | view.pawns) != NOTHING:
        return False
    if pawns & ~FILE_A != NOTHING and pawns & ~FILE_H != NOTHING:
        return False
    corner = 56 if pawns & ~FILE_A == NOTHING else 63
    if distance(trailing_zeros(view.kings & others), corner) > 1:
        return False
    # Without a bishop too the king in the corner is never driven out.
    is_dark_corner = bit(corner) & DARK_SQUARES != NOTHING
    helpful = bishops & DARK_SQUARES if is_dark_corner else bishops & ~DARK_SQUARES
    return bool(helpful & own == NOTHING)
