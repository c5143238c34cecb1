"""Threats: men that may be lost next, because a lesser man attacks them or nothing protects them."""

from __future__ import annotations

import numpy as np

from search.games.chess.attacks import pawn_attacks_downward, pawn_attacks_upward
from search.games.chess.board import RANK_3, Position, occupied
from search.games.chess.terms import OFFSETS, weight
from search.games.chess.views import Activity
from search.jit import inlined
from tt_store.native import count_ones, swap_bytes

BY_PAWN, BY_MINOR, BY_ROOK = OFFSETS["pawn_threat"], OFFSETS["minor_threat"], OFFSETS["rook_threat"]
HANGING, BY_PUSH = OFFSETS["hanging"], OFFSETS["push_threat"]


@inlined
def threats(view: Position, own: Activity, other: Activity, weights: int) -> int:
    """Return what a side's threats are worth.

    Parameters
    ----------
    view
        The side's.
    own, other
        What both sides attack, each as itself sees it.
    weights
        The table's address.
    """
    men = occupied(view)
    theirs = men & ~view.own
    queens = view.diagonals & view.straights & theirs
    knights, bishops, rooks = view.knights & theirs, view.diagonals & theirs ^ queens, view.straights & theirs ^ queens
    pieces = knights | bishops | rooks | queens
    by_their_pawns = pawn_attacks_downward(view.pawns & theirs)
    defended = swap_bytes(other.all)

    score = weight(weights, BY_PAWN) * count_ones(knights & own.pawns)
    score += weight(weights, BY_PAWN + 1) * count_ones(bishops & own.pawns)
    score += weight(weights, BY_PAWN + 2) * count_ones(rooks & own.pawns)
    score += weight(weights, BY_PAWN + 3) * count_ones(queens & own.pawns)

    # A pawn's protection is enough against a man of equal value, and none against a lesser one.
    by_minors, loose = own.knights | own.bishops, ~by_their_pawns
    score += weight(weights, BY_MINOR) * count_ones(view.pawns & theirs & by_minors & ~defended)
    score += weight(weights, BY_MINOR + 1) * count_ones(knights & by_minors & loose)
    score += weight(weights, BY_MINOR + 2) * count_ones(bishops & by_minors & loose)
    score += weight(weights, BY_MINOR + 3) * count_ones(rooks & by_minors)
    score += weight(weights, BY_MINOR + 4) * count_ones(queens & by_minors)
    score += weight(weights, BY_ROOK) * count_ones(view.pawns & theirs & own.rooks & ~defended)
    score += weight(weights, BY_ROOK + 1) * count_ones(knights & own.rooks & loose)
    score += weight(weights, BY_ROOK + 2) * count_ones(bishops & own.rooks & loose)
    score += weight(weights, BY_ROOK + 3) * count_ones(queens & own.rooks)
    score += weight(weights, HANGING) * count_ones(pieces & own.all & ~defended)

    steps = (view.pawns & view.own) << np.uint64(8) & ~men
    steps |= (steps & RANK_3) << np.uint64(8) & ~men
    safe_steps = steps & ~by_their_pawns & (own.all | ~defended)
    return score + weight(weights, BY_PUSH) * count_ones(pawn_attacks_upward(safe_steps) & pieces)
