"""What a side's men attack, gathered once for all terms, and the terms of single pieces.

Mobility counts the squares that a piece may go to without loss to a pawn (Slate and Atkin 1977, Hartmann 1987); sliders
look through friends that move the same way. A piece that reaches the squares around the other king adds to the danger
there: see `search.games.chess.king_safety`.
"""

from __future__ import annotations

import numpy as np

from search.games.chess.attacks import (
    bishop_attacks,
    king_attacks,
    knight_attacks,
    pawn_attacks_downward,
    pawn_attacks_upward,
    rook_attacks,
)
from search.games.chess.board import (
    DARK_SQUARES,
    NOTHING,
    ONE,
    RANK_1,
    RANK_2,
    RANK_3,
    RANK_8,
    Position,
    bit,
    occupied,
    own_king,
)
from search.games.chess.terms import OFFSETS, weight
from search.games.chess.views import Activity, fill_down, fill_up
from search.jit import helper, inlined
from tt_store.native import Word, count_ones, trailing_zeros

KNIGHT_MOBILITY, BISHOP_MOBILITY = OFFSETS["knight_mobility"], OFFSETS["bishop_mobility"]
ROOK_MOBILITY, QUEEN_MOBILITY = OFFSETS["rook_mobility"], OFFSETS["queen_mobility"]
BISHOP_PAIR, BISHOP_PAWNS = OFFSETS["bishop_pair"], OFFSETS["bishop_pawns"]
KNIGHT_OUTPOST, BISHOP_OUTPOST = OFFSETS["knight_outpost"], OFFSETS["bishop_outpost"]
MINOR_BEHIND_PAWN, CASTLING_RIGHT = OFFSETS["minor_behind_pawn"], OFFSETS["castling_right"]
OPEN_FILE, HALF_OPEN_FILE = OFFSETS["rook_open_file"], OFFSETS["rook_half_open_file"]
SEVENTH = OFFSETS["rook_seventh"]
ATTACKERS, RING = OFFSETS["danger_attackers"], OFFSETS["danger_ring"]

RANK_7 = np.uint64(0xFF << 48)
OUTPOST_RANKS = np.uint64(0xFFFFFF << 24)
"""The fourth to the sixth."""


@inlined
def ring_of(king: int) -> Word:
    """Return the squares around a king."""
    return king_attacks(king) | bit(king)


@inlined
def zone_of(king: int) -> Word:
    """Return the squares where an attack from below endangers a king: the ring around it and the row before that."""
    ring = ring_of(king)
    return ring | ring >> np.uint64(8)


@inlined
def _pressure(reached: Word, zone: Word, ring: Word, piece: int, weights: int) -> int:
    """Return the units of danger of a piece that attacks some squares; `piece` counts from the knight, 0."""
    if reached & zone == NOTHING:
        return 0
    return weight(weights, ATTACKERS + piece) + weight(weights, RING) * count_ones(reached & ring)


@inlined
def activity(view: Position, weights: int) -> Activity:
    """Return what a side's men attack and what the single pieces are worth."""
    men = occupied(view)
    own, pawns = view.own, view.own & view.pawns
    their_pawns = view.pawns & ~own
    king = own_king(view)
    by_pawns, by_king = pawn_attacks_upward(pawns), king_attacks(king)
    every, twice = by_pawns | by_king, by_pawns & by_king
    # Pawns that cannot move or have hardly moved, our king, and what their pawns watch are no place to go.
    stuck = pawns & (men >> np.uint64(8) | RANK_2 | RANK_3)
    area = ~(stuck | pawn_attacks_downward(their_pawns) | view.kings & own)
    their_king = trailing_zeros(view.kings & ~own)
    ring, zone = ring_of(their_king), zone_of(their_king)
    queens = view.diagonals & view.straights & own
    score = _stations(view, weights)
    danger = 0

    by_knights = NOTHING
    waiting = view.knights & own
    while waiting != NOTHING:
        reached = knight_attacks(trailing_zeros(waiting))
        score += weight(weights, KNIGHT_MOBILITY + count_ones(reached & area))
        danger += _pressure(reached, zone, ring, 0, weights)
        by_knights |= reached
        twice |= every & reached
        every |= reached
        waiting &= waiting - ONE
    by_bishops = NOTHING
    waiting = view.diagonals & own & ~queens
    while waiting != NOTHING:
        reached = bishop_attacks(trailing_zeros(waiting), men ^ queens)
        score += weight(weights, BISHOP_MOBILITY + count_ones(reached & area))
        danger += _pressure(reached, zone, ring, 1, weights)
        by_bishops |= reached
        twice |= every & reached
        every |= reached
        waiting &= waiting - ONE
    by_rooks = NOTHING
    waiting = view.straights & own & ~queens
    while waiting != NOTHING:
        reached = rook_attacks(trailing_zeros(waiting), men ^ (view.straights & own))
        score += weight(weights, ROOK_MOBILITY + count_ones(reached & area))
        danger += _pressure(reached, zone, ring, 2, weights)
        by_rooks |= reached
        twice |= every & reached
        every |= reached
        waiting &= waiting - ONE
    by_queens = NOTHING
    waiting = queens
    while waiting != NOTHING:
        square = trailing_zeros(waiting)
        reached = bishop_attacks(square, men) | rook_attacks(square, men)
        score += weight(weights, QUEEN_MOBILITY + count_ones(reached & area))
        danger += _pressure(reached, zone, ring, 3, weights)
        by_queens |= reached
        twice |= every & reached
        every |= reached
        waiting &= waiting - ONE
    return Activity(score, danger, by_pawns, by_knights, by_bishops, by_rooks, by_queens, every, twice)


@helper
def _stations(view: Position, weights: int) -> int:
    """Return what the places of minor pieces and rooks are worth beside the pawns."""
    own, pawns, their_pawns = view.own, view.own & view.pawns, view.pawns & ~view.own
    queens = view.diagonals & view.straights
    knights, bishops, rooks = own & view.knights, own & view.diagonals & ~queens, own & view.straights & ~queens
    score = weight(weights, CASTLING_RIGHT) * count_ones(view.marks & own & RANK_1)
    # Where no pawn of theirs can ever attack, and one of ours protects.
    outposts = OUTPOST_RANKS & pawn_attacks_upward(pawns) & ~pawn_attacks_downward(fill_down(their_pawns))
    score += weight(weights, KNIGHT_OUTPOST) * count_ones(knights & outposts)
    score += weight(weights, MINOR_BEHIND_PAWN) * count_ones((knights | bishops) & view.pawns >> np.uint64(8))
    if bishops != NOTHING:
        dark, dark_pawns = bishops & DARK_SQUARES, pawns & DARK_SQUARES
        if dark != NOTHING and dark != bishops:
            score += weight(weights, BISHOP_PAIR)
        obstacles = count_ones(dark) * count_ones(dark_pawns)
        obstacles += count_ones(bishops ^ dark) * count_ones(pawns ^ dark_pawns)
        score += weight(weights, BISHOP_PAWNS) * obstacles
        score += weight(weights, BISHOP_OUTPOST) * count_ones(bishops & outposts)
    if rooks != NOTHING:
        without_own = rooks & ~(fill_up(pawns) | fill_down(pawns))
        their_files = fill_up(their_pawns) | fill_down(their_pawns)
        score += weight(weights, OPEN_FILE) * count_ones(without_own & ~their_files)
        score += weight(weights, HALF_OPEN_FILE) * count_ones(without_own & their_files)
        if (their_pawns & RANK_7 | view.kings & ~own & RANK_8) != NOTHING:
            score += weight(weights, SEVENTH) * count_ones(rooks & RANK_7)
    return score
