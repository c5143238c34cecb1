"""End games that are known better than by the network: what hardly wins, and the art of mating a bare king."""

from __future__ import annotations

import numpy as np

from search.games.chess.board import DARK_SQUARES, FILE_A, FILE_H, NOTHING, Position, bit, occupied, own_king
from search.games.chess.views import distance
from search.jit import helper, inlined
from tt_store.native import Word, count_ones, trailing_zeros

NORMAL = 64
"""The scale of a position that is won or lost as its value says."""
DRAWN, HARDLY_WON, DRAWISH = 0, 4, 14

MINOR, MAJOR, MIGHTIEST = 3, 5, 9
"""What pieces weigh where only their balance is asked for."""
ENOUGH_TO_MATE = 5
MIGHT = 100
"""What a unit of might is worth against a bare king, in centipawns."""
EDGE_STEP, KING_STEP, CORNER_STEP = 12, 20, 60


@inlined
def might(view: Position, men: Word) -> int:
    """Return the weight of the pieces among some men."""
    queens = count_ones(view.diagonals & view.straights & men)
    minors = count_ones(view.knights & men) + count_ones(view.diagonals & men) - queens
    return MINOR * minors + MAJOR * (count_ones(view.straights & men) - queens) + MIGHTIEST * queens


@helper
def mating_value(view: Position) -> int:
    """Return what it is worth to a side that the other has a king alone, 0 where that cannot be mated by force.

    The king is driven to the edge; with bishop and knight, to a corner of the bishop's colour.
    """
    # Knights alone do not force mate.
    if might(view, view.own) < ENOUGH_TO_MATE or view.pawns | view.diagonals | view.straights == NOTHING:
        return 0
    king = trailing_zeros(view.kings & ~view.own)
    file, rank = king & 7, king >> 3
    from_edge = min(file, 7 - file) + min(rank, 7 - rank)
    score = MIGHT * (might(view, view.own) + count_ones(view.pawns))
    score += EDGE_STEP * (6 - from_edge) + KING_STEP * (7 - distance(own_king(view), king))
    bishops = view.diagonals & ~view.straights
    if view.pawns | view.straights == NOTHING and bishops & (bishops - np.uint64(1)) == NOTHING:
        # Steps along the diagonal to the nearest corner of the bishop's colour; a1 is dark.
        is_dark = bishops & DARK_SQUARES != NOTHING
        from_corner = min(file + rank, 14 - file - rank) if is_dark else min(7 - file + rank, file + 7 - rank)
        score += CORNER_STEP * (7 - from_corner)
    return score


@helper
def scale(view: Position) -> int:
    """Return how much of its advantage a side can hope to win, 0..`NORMAL`; `view` is that side's.

    A minor piece more wins nothing without pawns, nor do two knights, nor rook pawns with the wrong bishop.
    """
    own, others = view.own, occupied(view) & ~view.own
    if view.pawns & own != NOTHING:
        return DRAWN if is_wrong_corner(view, view.diagonals & ~view.straights) else NORMAL
    is_two_knights = own & ~(view.knights | view.kings) == NOTHING and count_ones(own) == 3
    if might(view, own) < ENOUGH_TO_MATE or is_two_knights:
        # Two knights may only hope where the other side has a pawn that keeps it from stalemate.
        return DRAWN if view.pawns == NOTHING else HARDLY_WON
    ahead = might(view, own) - might(view, others)
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
