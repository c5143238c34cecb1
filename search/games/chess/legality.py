"""Checks and pins: what restricts the moves of the side to move, as boards."""

from __future__ import annotations

from search.games.chess.attacks import (
    bishop_attacks,
    king_attacks,
    knight_attacks,
    knight_attacks_of,
    line,
    pawn_attacks_downward,
    pawn_attacks_upward,
    rook_attacks,
)
from search.games.chess.board import (
    CASTLING,
    EVERYWHERE,
    KING,
    KNIGHT,
    NOTHING,
    ONE,
    PAWN,
    Position,
    bit,
    kind_at,
    move_from,
    move_kind,
    move_to,
    occupied,
    own_king,
)
from search.jit import helper
from tt_store.native import Word, trailing_zeros


@helper
def attackers(position: Position, square: int, men: Word) -> Word:
    """Return the opponent's men that attack a square, with `men` on the board; one not among them does not count."""
    pawns = pawn_attacks_upward(bit(square)) & position.pawns
    knights = knight_attacks(square) & position.knights
    diagonals = bishop_attacks(square, men) & position.diagonals
    straights = rook_attacks(square, men) & position.straights
    kings = king_attacks(square) & position.kings
    return (pawns | knights | diagonals | straights | kings) & men & ~position.own


@helper
def in_check(position: Position) -> int:
    """Return 1 if the side to move is in check, else 0."""
    men = occupied(position)
    return 1 if attackers(position, own_king(position), men) != NOTHING else 0


@helper
def may_check(position: Position, move: int) -> int:
    """Return 0 if a legal move surely gives no check, else 1: also where it only leaves a line to the other king."""
    if move_kind(move) >= CASTLING:
        return 1
    origin, target = move_from(move), bit(move_to(move))
    men = occupied(position)
    king = trailing_zeros(position.kings & ~position.own)
    across, along = bishop_attacks(king, men), rook_attacks(king, men)
    if (across | along) & bit(origin) != NOTHING:
        return 1
    kind = kind_at(position, origin)
    if kind == PAWN:
        reached = pawn_attacks_downward(bit(king))
    elif kind == KNIGHT:
        reached = knight_attacks(king)
    elif kind == KING:
        reached = NOTHING
    else:
        reached = NOTHING
        if position.diagonals & bit(origin) != NOTHING:
            reached |= across
        if position.straights & bit(origin) != NOTHING:
            reached |= along
    return 1 if reached & target != NOTHING else 0


@helper
def attacked_squares(position: Position, men: Word) -> Word:
    """Return all squares that the opponent attacks with `men` on the board."""
    others = men & ~position.own
    attacked = pawn_attacks_downward(others & position.pawns) | knight_attacks_of(others & position.knights)
    attacked |= king_attacks(trailing_zeros(others & position.kings))
    sliders = others & position.diagonals
    while sliders != NOTHING:
        attacked |= bishop_attacks(trailing_zeros(sliders), men)
        sliders &= sliders - ONE
    sliders = others & position.straights
    while sliders != NOTHING:
        attacked |= rook_attacks(trailing_zeros(sliders), men)
        sliders &= sliders - ONE
    return attacked


@helper
def restrictions(position: Position, king: int, others: Word) -> tuple[Word, Word, Word]:
    """Return where a man other than the king may go, and the lines on which men are pinned.

    Parameters
    ----------
    position
        Its side to move is looked at.
    king
        The square of its king.
    others
        The opponent's men.

    Returns
    -------
    targets
        Everywhere; in check, the checker and the squares before it; in double check, nowhere.
    pin_diagonals, pin_straights
        Lines from the king to the pinning man, itself included. A pinned man that moves along a line of the same
        direction never reaches another pin's line, so all of them can be one board.
    """
    checkers = (pawn_attacks_upward(bit(king)) & position.pawns | knight_attacks(king) & position.knights) & others
    targets = checkers
    pin_diagonals = NOTHING
    pin_straights = NOTHING
    # What would give check if our own men were not there.
    snipers = bishop_attacks(king, others) & position.diagonals & others
    while snipers != NOTHING:
        path = line(king, trailing_zeros(snipers))
        blockers = path & position.own
        if blockers == NOTHING:
            checkers |= snipers & ~(snipers - ONE)
            targets |= path
        elif blockers & (blockers - ONE) == NOTHING:
            pin_diagonals |= path
        snipers &= snipers - ONE
    snipers = rook_attacks(king, others) & position.straights & others
    while snipers != NOTHING:
        path = line(king, trailing_zeros(snipers))
        blockers = path & position.own
        if blockers == NOTHING:
            checkers |= snipers & ~(snipers - ONE)
            targets |= path
        elif blockers & (blockers - ONE) == NOTHING:
            pin_straights |= path
        snipers &= snipers - ONE
    if checkers == NOTHING:
        targets = EVERYWHERE
    elif checkers & (checkers - ONE) != NOTHING:
        targets = NOTHING
    return targets, pin_diagonals, pin_straights
