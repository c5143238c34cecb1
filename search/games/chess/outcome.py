"""How a game of chess ends."""

from __future__ import annotations

from search.games.chess.board import DARK_SQUARES, NOTHING, Position, clock, occupied
from search.games.chess.legality import in_check
from search.games.chess.moves import count_moves
from search.jit import helper
from search.scores import DRAW, MATE, ONGOING
from tt_store.native import count_ones

DRAWN_CLOCK = 100
"""Plies without a capture or pawn move after which the game is drawn."""


@helper
def has_insufficient_material(position: Position) -> int:
    """Return 1 if neither side could ever mate, else 0: a lone knight, or bishops on squares of one colour."""
    if position.pawns | position.straights != NOTHING:
        return 0
    if position.knights != NOTHING:
        return 1 if count_ones(occupied(position)) == 3 else 0
    dark = position.diagonals & DARK_SQUARES
    return 1 if dark == NOTHING or dark == position.diagonals else 0


@helper
def outcome(position: Position) -> int:
    """Tell a draw by fifty moves or by material; mate and stalemate are for whoever generates the moves."""
    # A mate on the hundredth ply counts.
    if clock(position) >= DRAWN_CLOCK and (in_check(position) == 0 or count_moves(position) > 0):
        return DRAW
    return DRAW if has_insufficient_material(position) == 1 else ONGOING


@helper
def stuck(position: Position) -> int:
    """Return the final score of a position without moves: mated, or stalemate."""
    return -MATE if in_check(position) == 1 else DRAW
