"""The board: 64 bits for each side, and what a disc is worth as a score.

Bit 0 is a1, bit 7 h1, bit 63 h8, as one reads the board's text. A move is its square's bit plus one, 1..64, or `PASS`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from search.games.othello.lines import flips, reachable
from search.jit import helper, inlined
from search.rules import push_move
from search.scores import ONGOING
from tt_store.native import Word, as_word, count_ones, swap_bytes, trailing_zeros

SQUARES = 64
PASS = SQUARES + 1
MAX_MOVES = 34
"""No position that play can reach has more than 33 (Brand, 2012, gives 33 as the most known)."""
DISC = 10
"""A disc's worth in the units of scores: estimates are finer than discs. A final score is an even number of discs."""
ENDED_LINES = 1
"""Perft of Othello, as everybody counts it, counts a game that ends sooner as a line."""

NOTHING = np.uint64(0)
ONE = np.uint64(1)
_WHITE_TO_MOVE = np.uint64(0x9E37_79B9_7F4A_7C15)
_OWN_FACTOR = np.uint64(0xD6E8_FEB8_6659_FD93)
_OTHER_FACTOR = np.uint64(0xC2B2_AE3D_27D4_EB4F)
_HALF_BITS = np.uint64(32)


class Position(NamedTuple):
    """Discs of the side to move and of the other one, and who is to move."""

    own: np.uint64
    other: np.uint64
    side: np.int64
    """0 if black (X) is to move, 1 if white (O)."""


@inlined
def empties(position: Position) -> int:
    """Return the number of empty squares."""
    return count_ones(~(position.own | position.other))


@inlined
def lowest(squares: Word) -> Word:
    """Return the lowest bit of a set of squares."""
    return squares & (NOTHING - squares)


@helper
def moves(position: Position, end: int) -> int:
    """Push the squares where a disc flips others; a pass where only the other side has some."""
    squares = reachable(position.own, position.other)
    if squares == NOTHING:
        return push_move(end, PASS) if reachable(position.other, position.own) != NOTHING else end
    while squares != NOTHING:
        end = push_move(end, trailing_zeros(squares) + 1)
        squares ^= lowest(squares)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Put a disc and flip, or pass."""
    own, other = position.own, position.other
    if move != PASS:
        square = ONE << np.uint64(move - 1)
        flipped = flips(own, other, square)
        own, other = own | flipped | square, other ^ flipped
    return Position(other, own, 1 - position.side)


@helper
def outcome(position: Position) -> int:
    """Leave the end of the game to `stuck`."""
    return ONGOING


@inlined
def final_discs(own: Word, other: Word) -> int:
    """Return the difference of a finished game: the empty squares are the winner's."""
    own_count, other_count = count_ones(own), count_ones(other)
    if own_count > other_count:
        return SQUARES - 2 * other_count
    return 2 * own_count - SQUARES if own_count < other_count else 0


@helper
def stuck(position: Position) -> int:
    """Return the final score where neither side has a move."""
    return DISC * final_discs(position.own, position.other)


@helper
def count_moves(position: Position) -> int:
    """Return how many moves there are, a pass included."""
    count = count_ones(reachable(position.own, position.other))
    if count == 0 and reachable(position.other, position.own) != NOTHING:
        return 1
    return count


@helper
def key(position: Position) -> Word:
    """Hash both sides' discs and who is to move: contempt makes the sides differ.

    Products mix upward and swapped bytes downward, so that two of each are enough.
    """
    own = position.own + (_WHITE_TO_MOVE & (NOTHING - as_word(position.side)))
    word = swap_bytes(own * _OWN_FACTOR) ^ position.other * _OTHER_FACTOR
    word = swap_bytes(word * _OWN_FACTOR)
    word = (word ^ word >> _HALF_BITS) * _OTHER_FACTOR
    return word ^ word >> _HALF_BITS
