"""Hints for the search: which moves to try first, and where the history of a move is kept."""

from __future__ import annotations

from search.games.chess.board import (
    BLACK_TO_MOVE,
    EN_PASSANT,
    KIND_SHIFT,
    KINDS,
    KING,
    NOTHING,
    PAWN,
    PROMOTION,
    PROMOTION_TO_QUEEN,
    QUEEN,
    Position,
    bit,
    kind_at,
    move_from,
    move_kind,
    move_to,
    occupied,
)
from search.games.chess.exchange import exchange_at_least, exchange_value
from search.jit import helper

_SQUARES = 64
HISTORY_SIZE = 2 * KINDS * _SQUARES

VICTIM_WEIGHT = 16
"""The victim's value outweighs the capturing man's."""
KING_RISK = 500
"""A king that captures counts like this; it is never lost."""
LOSING = 1 << 20
"""Subtracted where the exchange loses: such a move comes after the quiet ones."""


@helper
def is_quiet(position: Position, move: int) -> int:
    """Return 1 if a move is neither a capture nor a promotion, else 0."""
    kind = move_kind(move)
    if kind >= EN_PASSANT:
        return 0
    return 1 if occupied(position) & ~position.own & bit(move_to(move)) == NOTHING else 0


@helper
def order(position: Position, move: int) -> int:
    """Estimate a capture by its victim, then by the least capturing man (MVV-LVA), a promotion by the queen."""
    if is_quiet(position, move) == 1:
        return 0
    kind, target = move_kind(move), move_to(move)
    if PROMOTION <= kind < PROMOTION_TO_QUEEN:
        return kind - (PROMOTION_TO_QUEEN << KIND_SHIFT)
    prize = 0
    if kind == EN_PASSANT:
        prize = exchange_value(PAWN)
    elif occupied(position) & bit(target) != NOTHING:
        prize = exchange_value(kind_at(position, target))
    man = kind_at(position, move_from(move))
    risk = KING_RISK if man == KING else exchange_value(man)
    if kind == PROMOTION_TO_QUEEN:
        prize += exchange_value(QUEEN) - exchange_value(PAWN)
        risk = exchange_value(QUEEN)
    estimate = VICTIM_WEIGHT * prize - risk
    if man != KING and risk > prize and exchange_at_least(position, move, 0) == 0:
        return estimate - LOSING
    return estimate


@helper
def move_slot(position: Position, move: int) -> int:
    """Return a move's place in the history: by colour, man and target square."""
    colour = int(position.state) & BLACK_TO_MOVE
    return (colour * KINDS + kind_at(position, move_from(move))) * _SQUARES + move_to(move)
