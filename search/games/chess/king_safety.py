"""The safety of kings: the pawns before them, and the danger from the pieces around.

Each attacker, each attacked square around the king, each square from which a piece could check in safety adds units
of danger; the sum counts by its square, because attackers help each other (Hyatt 1997, Romstad 2008).
"""

from __future__ import annotations

from search.games.chess.activity import ring_of
from search.games.chess.attacks import bishop_attacks, king_attacks, knight_attacks, rook_attacks
from search.games.chess.board import EVERYWHERE, FILE_A, NOTHING, Position, occupied, own_king
from search.games.chess.terms import HALF_BITS, OFFSETS, weight
from search.games.chess.views import Activity
from search.jit import inlined
from tt_store.native import Word, as_word, count_ones, swap_bytes, trailing_zeros

SHELTER_KING_FILE, SHELTER_SIDE_FILE = OFFSETS["shelter_king_file"], OFFSETS["shelter_side_file"]
STORM_FREE, STORM_BLOCKED = OFFSETS["storm_free"], OFFSETS["storm_blocked"]
BASE, WEAK, CHECKS = OFFSETS["danger_base"], OFFSETS["danger_weak"], OFFSETS["danger_checks"]
NO_QUEEN, HOLES = OFFSETS["danger_no_queen"], OFFSETS["danger_holes"]

MOST_DANGER = 400
MIDDLE_SHIFT = 6
"""Units squared, shifted so far, are centipawns of the middle game."""
END_SHIFT = 3
"""Units, shifted so far, are centipawns of the end game."""


@inlined
def shelter(view: Position, weights: int) -> int:
    """Return what the pawns on the three files around a side's king are worth to it."""
    king = own_king(view)
    # A king on the edge looks at the same files as the one beside it.
    middle_file = max(1, min(king & 7, 6))
    ahead = EVERYWHERE << as_word(king & 56)
    pawns, their_pawns = view.pawns & view.own & ahead, view.pawns & ~view.own & ahead
    score = 0
    for file in range(middle_file - 1, middle_file + 2):
        column = FILE_A << as_word(file)
        nearest = _nearest_rank(pawns & column)
        is_king_file = file == king & 7
        score += weight(weights, (SHELTER_KING_FILE if is_king_file else SHELTER_SIDE_FILE) + nearest)
        storming = _nearest_rank(their_pawns & column)
        is_blocked = nearest != 0 and storming == nearest + 1
        score += weight(weights, (STORM_BLOCKED if is_blocked else STORM_FREE) + storming)
    return score


@inlined
def _nearest_rank(pawns: Word) -> int:
    """Return the rank of the lowest of some pawns, 0 if there are none."""
    return trailing_zeros(pawns) >> 3 & 7


@inlined
def danger(view: Position, own: Activity, other: Activity, weights: int) -> int:
    """Return the units of danger that a side's pieces are to the other king; below 0 it is safe.

    Parameters
    ----------
    view
        The attacking side's.
    own, other
        What both sides attack, each as itself sees it.
    weights
        The table's address.
    """
    men = occupied(view)
    king = trailing_zeros(view.kings & ~view.own)
    defended, defended_twice = swap_bytes(other.all), swap_bytes(other.twice)
    # Only the king itself or the queen protects them: too little against two attackers.
    hardly = ~defended | (king_attacks(king) | swap_bytes(other.queens)) & ~defended_twice
    weak = own.all & hardly
    units = own.danger
    units += weight(weights, BASE) + weight(weights, WEAK) * count_ones(weak & ring_of(king))
    if view.diagonals & view.straights & view.own == NOTHING:
        units += weight(weights, NO_QUEEN)
    holes = 0
    middle_file = max(1, min(king & 7, 6))
    their_pawns = view.pawns & ~view.own
    for file in range(middle_file - 1, middle_file + 2):
        if their_pawns & FILE_A << as_word(file) == NOTHING:
            holes += 1
    units += weight(weights, HOLES) * holes

    safe = ~view.own & (~defended | weak & own.twice)
    along, across = rook_attacks(king, men) & safe, bishop_attacks(king, men) & safe
    if knight_attacks(king) & safe & own.knights != NOTHING:
        units += weight(weights, CHECKS)
    if across & own.bishops != NOTHING:
        units += weight(weights, CHECKS + 1)
    if along & own.rooks != NOTHING:
        units += weight(weights, CHECKS + 2)
    if (along | across) & own.queens != NOTHING:
        units += weight(weights, CHECKS + 3)
    return units


@inlined
def danger_value(units: int) -> int:
    """Return what so many units of danger are worth to the attacker, packed."""
    counted = max(0, min(units, MOST_DANGER))
    return (counted * counted >> MIDDLE_SHIFT << HALF_BITS) + (counted >> END_SHIFT)
