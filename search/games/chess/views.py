"""What the terms of the evaluation see: one side's view, in which that side's pawns go upward; and sets of squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from search.games.chess.board import EVERYWHERE, FILE_A, FILE_H, Position, occupied
from search.jit import helper, inlined
from tt_store.native import Word, swap_bytes

_WITHOUT_A = EVERYWHERE ^ FILE_A
_WITHOUT_H = EVERYWHERE ^ FILE_H


class Activity(NamedTuple):
    """What one side's men attack, seen from that side, and what this is worth."""

    score: int
    """Packed sum of the terms of single pieces."""
    danger: int
    """Units of danger to the other king, by the pieces near it."""
    pawns: Word
    """Squares that the side's pawns attack; likewise the next ones."""
    knights: Word
    bishops: Word
    rooks: Word
    queens: Word
    all: Word
    twice: Word
    """Squares that at least two men attack."""


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
        -position.score,
    )


@inlined
def fill_up(board: Word) -> Word:
    """Return some squares and all above them on their files."""
    board |= board << np.uint64(8)
    board |= board << np.uint64(16)
    return board | board << np.uint64(32)


@inlined
def fill_down(board: Word) -> Word:
    """Return some squares and all below them on their files."""
    board |= board >> np.uint64(8)
    board |= board >> np.uint64(16)
    return board | board >> np.uint64(32)


@inlined
def beside(board: Word) -> Word:
    """Return the left and right neighbours of some squares."""
    return (board & _WITHOUT_A) >> np.uint64(1) | (board & _WITHOUT_H) << np.uint64(1)


@inlined
def distance(one: int, other: int) -> int:
    """Return how many steps a king needs between two squares."""
    return max(abs((one & 7) - (other & 7)), abs((one >> 3) - (other >> 3)))
