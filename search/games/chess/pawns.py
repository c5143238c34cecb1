"""Pawns: their structure, set-wise, and passed pawns one by one.

Isolated, doubled, backward and passed pawns are as old as the theory of chess (Philidor 1749, Nimzowitsch 1925); to
find them by filling files is from the bitboard programs (Slate and Atkin 1977).
"""

from __future__ import annotations

import numpy as np

from search.games.chess.attacks import pawn_attacks_downward, pawn_attacks_upward
from search.games.chess.board import NOTHING, ONE, RANK_1, Position, bit, occupied, own_king
from search.games.chess.terms import OFFSETS, weight
from search.games.chess.views import Activity, beside, distance, fill_down, fill_up
from search.jit import inlined
from tt_store.native import Word, as_word, count_ones, swap_bytes, trailing_zeros

DOUBLED, ISOLATED, BACKWARD = OFFSETS["doubled"], OFFSETS["isolated"], OFFSETS["backward"]
SUPPORTED, PHALANX = OFFSETS["supported"], OFFSETS["phalanx"]
PASSED, SUPPORTED_PASSED = OFFSETS["passed"], OFFSETS["passed_supported"]
FREE_STEP, FREE_PATH, UNSTOPPABLE = (
    OFFSETS["passed_free_step"], OFFSETS["passed_free_path"], OFFSETS["passed_unstoppable"],
)  # fmt: skip
OWN_KING, OTHER_KING = OFFSETS["passed_own_king"], OFFSETS["passed_other_king"]

FIRST_FAR_RANK = 3
"""From the fourth rank on the kings' distances to a passed pawn count, more with each rank."""


@inlined
def pawn_structure(view: Position, weights: int) -> int:
    """Return what the structure of a side's pawns is worth."""
    own, theirs = view.pawns & view.own, view.pawns & ~view.own
    opposed = fill_down(theirs)
    supported_squares = pawn_attacks_upward(own)
    isolated = own & ~beside(fill_up(own) | fill_down(own))
    # No pawn of ours can ever protect its next square, and one of theirs watches it.
    hard_steps = own << np.uint64(8) & pawn_attacks_downward(theirs) & ~pawn_attacks_upward(fill_up(own))
    backward = hard_steps >> np.uint64(8) & ~isolated
    score = weight(weights, DOUBLED) * count_ones(own & fill_up(own) << np.uint64(8))
    score += weight(weights, ISOLATED) * count_ones(isolated & opposed)
    score += weight(weights, ISOLATED + 1) * count_ones(isolated & ~opposed)
    score += weight(weights, BACKWARD) * count_ones(backward & opposed)
    score += weight(weights, BACKWARD + 1) * count_ones(backward & ~opposed)
    supported, phalanx = own & supported_squares, own & beside(own)
    for rank in range(1, 7):
        row = RANK_1 << as_word(8 * rank)
        score += weight(weights, SUPPORTED + rank) * count_ones(supported & row)
        score += weight(weights, PHALANX + rank) * count_ones(phalanx & row)
    return score


@inlined
def passed_pawns(view: Position) -> Word:
    """Return a side's pawns before which no pawn stands, of either side, on their file or theirs on the next ones."""
    own, theirs = view.pawns & view.own, view.pawns & ~view.own
    watched = fill_down(theirs)
    return own & ~(watched | pawn_attacks_downward(watched) | fill_down(own >> np.uint64(8)))


@inlined
def passed_score(view: Position, own: Activity, other: Activity, is_to_move: int, weights: int) -> int:
    """Return what a side's passed pawns are worth.

    Parameters
    ----------
    view
        The side's.
    own, other
        What both sides attack, each as itself sees it.
    is_to_move
        1 if the side is to move, else 0.
    weights
        The table's address.
    """
    score = 0
    waiting = passed_pawns(view)
    if waiting == NOTHING:
        return score
    men = occupied(view)
    attacked = swap_bytes(other.all)
    their_king = trailing_zeros(view.kings & ~view.own)
    has_pieces = men & ~view.own & ~(view.pawns | view.kings) != NOTHING
    while waiting != NOTHING:
        square = trailing_zeros(waiting)
        rank, step = square >> 3, square + 8
        path = fill_up(bit(step))
        score += weight(weights, PASSED + rank)
        if bit(square) & own.pawns != NOTHING:
            score += weight(weights, SUPPORTED_PASSED + rank)
        if bit(step) & men == NOTHING and (bit(step) & attacked == NOTHING or bit(step) & own.all != NOTHING):
            score += weight(weights, FREE_STEP + rank)
        if path & men == NOTHING:
            if path & attacked == NOTHING:
                score += weight(weights, FREE_PATH + rank)
            # The rule of the square, of use where nothing but the king can catch the pawn.
            steps_left = min(7 - rank, 5) - is_to_move
            if not has_pieces and distance(their_king, (square & 7) + 56) > steps_left + 1:
                score += weight(weights, UNSTOPPABLE)
        if rank >= FIRST_FAR_RANK:
            urgency = rank - FIRST_FAR_RANK + 1
            score += weight(weights, OWN_KING + distance(own_king(view), step)) * urgency
            score += weight(weights, OTHER_KING + distance(their_king, step)) * urgency
        waiting &= waiting - ONE
    return score
