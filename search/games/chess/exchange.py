"""Static exchange evaluation: what a move gains or loses when both sides go on capturing on its target square.

Each side captures with its least valuable man, or stops; a man behind another joins in when the line opens. Pins are
not looked at, nor promotions by a recapture. To ask only for a bound allows an early exit (Reul 2010).
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
    BISHOP,
    CASTLING,
    EN_PASSANT,
    KING,
    KNIGHT,
    NOTHING,
    ONE,
    PAWN,
    PROMOTION,
    QUEEN,
    ROOK,
    Position,
    bit,
    kind_at,
    move_from,
    move_kind,
    move_to,
    occupied,
    promoted_kind,
)
from search.games.chess.moves import STEP
from search.jit import helper, inlined, self_call
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, constant_table, read_int

EXCHANGE_VALUES = (100, 320, 330, 500, 5000, 950)
"""By kind: pawn, knight, bishop, rook, king, queen."""

_values = constant_table("chess_exchange_values", np.array(EXCHANGE_VALUES, np.int64))


@inlined
def exchange_value(kind: int) -> int:
    """Return what a man counts in an exchange."""
    return read_int(_values() + kind * WORD_BYTES)


@helper
def _all_attackers(position: Position, square: int, men: Word) -> Word:
    """Return the men of both sides that attack a square."""
    target = bit(square)
    upward = pawn_attacks_downward(target) & position.own
    downward = pawn_attacks_upward(target) & ~position.own
    found = (upward | downward) & position.pawns | knight_attacks(square) & position.knights
    found |= king_attacks(square) & position.kings
    found |= bishop_attacks(square, men) & position.diagonals | rook_attacks(square, men) & position.straights
    return found & men


@helper
def _least_valuable(position: Position, men: Word) -> tuple[Word, int]:
    """Return one of the least valuable of some men, as a board, and its kind; there is at least one."""
    if men & position.pawns != NOTHING:
        found, kind = men & position.pawns, PAWN
    elif men & position.knights != NOTHING:
        found, kind = men & position.knights, KNIGHT
    elif men & position.diagonals & ~position.straights != NOTHING:
        found, kind = men & position.diagonals & ~position.straights, BISHOP
    elif men & position.straights & ~position.diagonals != NOTHING:
        found, kind = men & position.straights & ~position.diagonals, ROOK
    elif men & position.straights != NOTHING:
        found, kind = men & position.straights, QUEEN
    else:
        found, kind = men, KING
    return found & ~(found - ONE), kind


@self_call
def _answer(position: Position, square: int, men: Word, side: Word, prize: int) -> int:
    """Call `_best_recapture` from itself."""
    return _best_recapture(position, square, men, side, prize)


@helper
def _best_recapture(position: Position, square: int, men: Word, side: Word, prize: int) -> int:
    """Return what a side gains at most by capturing a man worth `prize`, or 0 by leaving it.

    Parameters
    ----------
    position, square
        Where; the board of the position is not looked at for who still stands.
    men
        Who still stands.
    side
        The squares of the side whose turn it is; others may be among them.
    prize
        What the man on the square is worth.
    """
    found = _all_attackers(position, square, men)
    if found & side == NOTHING:
        return 0
    capturer, kind = _least_valuable(position, found & side)
    if kind == KING and found & ~side != NOTHING:
        return 0
    answer = _answer(position, square, men ^ capturer, ~side, exchange_value(kind))
    return max(0, prize - answer)


@helper
def _first_capture(position: Position, move: int) -> tuple[int, int, Word]:
    """Return what a move wins at once, what it puts at risk, and who then stands besides the man that moved."""
    origin, target, kind = move_from(move), move_to(move), move_kind(move)
    men = occupied(position)
    risk = exchange_value(kind_at(position, origin))
    prize = 0
    if kind == EN_PASSANT:
        prize = exchange_value(PAWN)
        men ^= bit(target - STEP)
    elif men & bit(target) != NOTHING:
        prize = exchange_value(kind_at(position, target))
    if kind >= PROMOTION:
        risk = exchange_value(promoted_kind(kind))
        prize += risk - exchange_value(PAWN)
    return prize, risk, men & ~bit(origin)


@helper
def exchange(position: Position, move: int) -> int:
    """Return what a legal move wins, in centipawns, with the best captures of both sides on its target square."""
    if move_kind(move) == CASTLING:
        return 0
    prize, risk, men = _first_capture(position, move)
    return prize - _best_recapture(position, move_to(move), men, ~position.own, risk)


@helper
def exchange_at_least(position: Position, move: int, threshold: int) -> int:
    """Return 1 if `exchange` of the move is at least `threshold`, else 0; it looks no further than it must."""
    if move_kind(move) == CASTLING:
        return 1 if threshold <= 0 else 0
    prize, risk, men = _first_capture(position, move)
    # What the side that captured last has above its aim if its man is then lost.
    balance = prize - threshold
    if balance < 0:
        return 0
    balance -= risk
    side = ~position.own
    while balance < 0:
        found = _all_attackers(position, move_to(move), men)
        if found & side == NOTHING:
            break
        capturer, kind = _least_valuable(position, found & side)
        if kind == KING and found & ~side != NOTHING:
            break
        men ^= capturer
        side = ~side
        balance = -balance - 1 - exchange_value(kind)
    # Whoever is to capture cannot, or does in vain.
    return 1 if side == ~position.own else 0
