"""The board as the side sees it that is not to move."""

from __future__ import annotations

from search.games.chess.board import Position, occupied
from search.jit import helper, inlined
from tt_store.native import swap_bytes


@helper
def opposite(position: Position) -> Position:
    """Return the position as the other side sees it; who is to move is not looked at in a view."""
    return Position(
        swap_bytes(occupied(position) & ~position.own),
        swap_bytes(position.pawns),
        swap_bytes(position.knights),
        swap_bytes(position.diagonals),
        swap_bytes(position.straights),
        swap_bytes(position.kings),
        swap_bytes(position.marks),
        position.state,
        position.key,
    )


@inlined
def distance(one: int, other: int) -> int:
    """Return how many steps a king needs between two squares."""
    return max(abs((one & 7) - (other & 7)), abs((one >> 3) - (other >> 3)))
