"""Strictly legal moves: all of them, the captures of a quiescence search, or just their number."""

from __future__ import annotations

import numpy as np

from search.games.chess.attacks import (
    bishop_attacks,
    king_attacks,
    knight_attacks,
    line,
    pawn_attacks_downward,
    rook_attacks,
)
from search.games.chess.board import (
    CASTLING,
    DOUBLE_STEP,
    EN_PASSANT,
    FILE_A,
    FILE_H,
    NOTHING,
    ONE,
    PROMOTION,
    PROMOTION_TO_QUEEN,
    RANK_1,
    RANK_3,
    RANK_6,
    RANK_8,
    Position,
    bit,
    make_move,
    occupied,
    own_king,
)
from search.games.chess.legality import attacked_squares, attackers, restrictions
from search.jit import helper, inlined
from search.rules import push_move
from tt_store.native import Word, count_ones, trailing_zeros

MAX_MOVES = 256
"""218 is the most that a position reached by play is known to have."""

STEP, DOUBLE, LEFT, RIGHT = 8, 16, 7, 9
"""How far a pawn goes: ahead, two steps, and captures to either side."""

C1, D1, F1, G1 = 2, 3, 5, 6


@helper
def pawn_steps(
    position: Position, men: Word, targets: Word, pin_diagonals: Word, pin_straights: Word
) -> tuple[Word, Word]:
    """Return where pawns arrive by one step and by two."""
    pawns = position.own & position.pawns & ~pin_diagonals
    # A pawn pinned along its file stays on the pin's line; one pinned along its rank leaves it.
    free = (pawns & ~pin_straights) << np.uint64(STEP)
    pinned = (pawns & pin_straights) << np.uint64(STEP) & pin_straights
    single = (free | pinned) & ~men
    double = (single & RANK_3) << np.uint64(STEP) & ~men
    return single & targets, double & targets


@helper
def pawn_captures(
    position: Position, others: Word, targets: Word, pin_diagonals: Word, pin_straights: Word
) -> tuple[Word, Word]:
    """Return where pawns arrive by capturing to the left and to the right, en passant left out."""
    pawns = position.own & position.pawns & ~pin_straights
    victims = others & targets
    free = pawns & ~pin_diagonals
    pinned = pawns & pin_diagonals
    left = (free & ~FILE_A) << np.uint64(LEFT) | (pinned & ~FILE_A) << np.uint64(LEFT) & pin_diagonals
    right = (free & ~FILE_H) << np.uint64(RIGHT) | (pinned & ~FILE_H) << np.uint64(RIGHT) & pin_diagonals
    return left & victims, right & victims


@helper
def en_passant_pawns(position: Position, king: int, men: Word) -> Word:
    """Return the pawns that can legally take en passant: tried out, as two men leave a rank at once."""
    target = position.marks & RANK_6
    victim = target >> np.uint64(STEP)
    waiting = pawn_attacks_downward(target) & position.own & position.pawns
    legal = NOTHING
    while waiting != NOTHING:
        pawn = waiting & ~(waiting - ONE)
        if attackers(position, king, (men ^ pawn ^ victim) | target) == NOTHING:
            legal |= pawn
        waiting ^= pawn
    return legal


@helper
def castling_rooks(position: Position, king: int, men: Word, attacked: Word, pin_straights: Word) -> Word:
    """Return the rooks with which the king can castle now (Chess960 included)."""
    legal = NOTHING
    if attacked & bit(king) != NOTHING:
        return legal
    # A rook pinned along the rank would leave the king, which comes nearer to the edge, open to the pinning man.
    waiting = position.marks & position.own & RANK_1 & ~pin_straights
    while waiting != NOTHING:
        rook = trailing_zeros(waiting)
        king_path = line(king, C1 if rook < king else G1)
        path = king_path | line(rook, D1 if rook < king else F1)
        if path & men & ~(bit(king) | bit(rook)) == NOTHING and king_path & attacked == NOTHING:
            legal |= bit(rook)
        waiting &= waiting - ONE
    return legal


@inlined
def _unless_pinned(origin: int, reached: Word, pins: Word) -> Word:
    """Return what a slider reaches; if it is pinned, along the pin's line."""
    return reached & pins if bit(origin) & pins != NOTHING else reached


@inlined
def _push_targets(origin: int, targets: Word, end: int) -> int:
    while targets != NOTHING:
        end = push_move(end, make_move(origin, trailing_zeros(targets), 0))
        targets &= targets - ONE
    return end


@helper
def _push_pawns(arrivals: Word, distance: int, kind: int, end: int) -> int:
    """Push a move of this kind for each square where a pawn arrives from this far."""
    while arrivals != NOTHING:
        target = trailing_zeros(arrivals)
        end = push_move(end, make_move(target - distance, target, kind))
        arrivals &= arrivals - ONE
    return end


@helper
def _push_promotions(arrivals: Word, distance: int, lowest: int, end: int) -> int:
    """Push promotions to a queen and to lesser men down to this kind of move."""
    while arrivals != NOTHING:
        target = trailing_zeros(arrivals)
        for kind in range(PROMOTION_TO_QUEEN, lowest - 1, -1):
            end = push_move(end, make_move(target - distance, target, kind))
        arrivals &= arrivals - ONE
    return end


@helper
def _push_pieces(
    position: Position, men: Word, targets: Word, pin_diagonals: Word, pin_straights: Word, end: int
) -> int:
    """Push the moves of knights, bishops, rooks and queens to these targets."""
    waiting = position.own & position.knights & ~(pin_diagonals | pin_straights)
    while waiting != NOTHING:
        origin = trailing_zeros(waiting)
        end = _push_targets(origin, knight_attacks(origin) & targets, end)
        waiting &= waiting - ONE
    waiting = position.own & position.diagonals & ~pin_straights
    while waiting != NOTHING:
        origin = trailing_zeros(waiting)
        reached = _unless_pinned(origin, bishop_attacks(origin, men), pin_diagonals)
        end = _push_targets(origin, reached & targets, end)
        waiting &= waiting - ONE
    waiting = position.own & position.straights & ~pin_diagonals
    while waiting != NOTHING:
        origin = trailing_zeros(waiting)
        reached = _unless_pinned(origin, rook_attacks(origin, men), pin_straights)
        end = _push_targets(origin, reached & targets, end)
        waiting &= waiting - ONE
    return end


@helper
def _push_pawn_captures(
    position: Position, king: int, men: Word, others: Word, limits: tuple[Word, Word, Word], lowest: int, end: int
) -> int:
    left, right = pawn_captures(position, others, limits[0], limits[1], limits[2])
    end = _push_promotions(left & RANK_8, LEFT, lowest, end)
    end = _push_promotions(right & RANK_8, RIGHT, lowest, end)
    end = _push_pawns(left & ~RANK_8, LEFT, 0, end)
    end = _push_pawns(right & ~RANK_8, RIGHT, 0, end)
    if position.marks & RANK_6 != NOTHING:
        waiting = en_passant_pawns(position, king, men)
        target = trailing_zeros(position.marks & RANK_6)
        while waiting != NOTHING:
            end = push_move(end, make_move(trailing_zeros(waiting), target, EN_PASSANT))
            waiting &= waiting - ONE
    return end


@helper
def moves(position: Position, end: int) -> int:
    """Push all legal moves."""
    men = occupied(position)
    others = men & ~position.own
    king = own_king(position)
    limits = restrictions(position, king, others)
    targets, pin_diagonals, pin_straights = limits
    if targets != NOTHING:
        end = _push_pawn_captures(position, king, men, others, limits, PROMOTION, end)
        single, double = pawn_steps(position, men, targets, pin_diagonals, pin_straights)
        end = _push_promotions(single & RANK_8, STEP, PROMOTION, end)
        end = _push_pieces(position, men, targets & ~position.own, pin_diagonals, pin_straights, end)
        end = _push_pawns(single & ~RANK_8, STEP, 0, end)
        end = _push_pawns(double, DOUBLE, DOUBLE_STEP, end)
    reached = king_attacks(king) & ~position.own
    castlers = position.marks & position.own & RANK_1
    if reached | castlers != NOTHING:
        attacked = attacked_squares(position, men & ~bit(king))
        end = _push_targets(king, reached & ~attacked, end)
        if castlers != NOTHING:
            waiting = castling_rooks(position, king, men, attacked, pin_straights)
            while waiting != NOTHING:
                end = push_move(end, make_move(king, trailing_zeros(waiting), CASTLING))
                waiting &= waiting - ONE
    return end


@helper
def captures(position: Position, end: int) -> int:
    """Push the legal captures, and promotions to a queen but to nothing less."""
    men = occupied(position)
    others = men & ~position.own
    king = own_king(position)
    limits = restrictions(position, king, others)
    targets, pin_diagonals, pin_straights = limits
    if targets != NOTHING:
        end = _push_pawn_captures(position, king, men, others, limits, PROMOTION_TO_QUEEN, end)
        single, _double = pawn_steps(position, men, targets, pin_diagonals, pin_straights)
        end = _push_promotions(single & RANK_8, STEP, PROMOTION_TO_QUEEN, end)
        end = _push_pieces(position, men, targets & others, pin_diagonals, pin_straights, end)
    reached = king_attacks(king) & others
    if reached != NOTHING:
        end = _push_targets(king, reached & ~attacked_squares(position, men & ~bit(king)), end)
    return end


@helper
def _count_pieces(position: Position, men: Word, targets: Word, pin_diagonals: Word, pin_straights: Word) -> int:
    """Count what `_push_pieces` would push."""
    total = 0
    waiting = position.own & position.knights & ~(pin_diagonals | pin_straights)
    while waiting != NOTHING:
        total += count_ones(knight_attacks(trailing_zeros(waiting)) & targets)
        waiting &= waiting - ONE
    waiting = position.own & position.diagonals & ~pin_straights
    while waiting != NOTHING:
        origin = trailing_zeros(waiting)
        total += count_ones(_unless_pinned(origin, bishop_attacks(origin, men), pin_diagonals) & targets)
        waiting &= waiting - ONE
    waiting = position.own & position.straights & ~pin_diagonals
    while waiting != NOTHING:
        origin = trailing_zeros(waiting)
        total += count_ones(_unless_pinned(origin, rook_attacks(origin, men), pin_straights) & targets)
        waiting &= waiting - ONE
    return total


@helper
def count_moves(position: Position) -> int:
    """Return the number of legal moves without listing them."""
    men = occupied(position)
    others = men & ~position.own
    king = own_king(position)
    targets, pin_diagonals, pin_straights = restrictions(position, king, others)
    total = 0
    if targets != NOTHING:
        single, double = pawn_steps(position, men, targets, pin_diagonals, pin_straights)
        left, right = pawn_captures(position, others, targets, pin_diagonals, pin_straights)
        total += count_ones(single) + count_ones(double) + count_ones(left) + count_ones(right)
        promotions = count_ones(single & RANK_8) + count_ones(left & RANK_8) + count_ones(right & RANK_8)
        total += promotions * (PROMOTION_TO_QUEEN - PROMOTION)
        if position.marks & RANK_6 != NOTHING:
            total += count_ones(en_passant_pawns(position, king, men))
        total += _count_pieces(position, men, targets & ~position.own, pin_diagonals, pin_straights)
    reached = king_attacks(king) & ~position.own
    castlers = position.marks & position.own & RANK_1
    if reached | castlers != NOTHING:
        attacked = attacked_squares(position, men & ~bit(king))
        total += count_ones(reached & ~attacked)
        if castlers != NOTHING:
            total += count_ones(castling_rooks(position, king, men, attacked, pin_straights))
    return total
