"""The position of chess: bitboards seen from the side to move, which always plays upward.

A board is a word with one bit a square; squares count from the mover's own left corner::

    56 57 58 59 60 61 62 63    rank 8: where the mover's pawns promote
     8  9 10 ..                rank 2: where they start
     0  1  2  3  4  5  6  7    rank 1: a1 .. h1 for White, a8 .. h8 for Black

After a move the boards are turned by reversing their bytes, so that one colour's code serves both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined
from tt_store.native import Word, as_int, trailing_zeros

ONE = np.uint64(1)
NOTHING = np.uint64(0)
EVERYWHERE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
FILE_A = np.uint64(0x0101_0101_0101_0101)
FILE_H = np.uint64(0x8080_8080_8080_8080)
RANK_1 = np.uint64(0xFF)
RANK_2 = np.uint64(0xFF << 8)
RANK_3 = np.uint64(0xFF << 16)
RANK_6 = np.uint64(0xFF << 40)
RANK_8 = np.uint64(0xFF << 56)
HOME_RANKS = RANK_1 | RANK_8
DARK_SQUARES = np.uint64(0xAA55_AA55_AA55_AA55)

PAWN, KNIGHT, BISHOP, ROOK, KING, QUEEN = range(6)
"""A queen is the sum of a bishop and a rook, so that a kind is read off the boards without a branch."""
KINDS = 6
LETTERS = "pnbrkq"
"""The kinds' letters, in their order."""

TURN_SQUARE = 56
"""A square XOR this is the same square seen from the other side."""

# The state word::
#
#     63 ........... 32 31 ........ 16 15 ... 2    1      0
#      full-move number  halfmove clock          960   Black to move
BLACK_TO_MOVE = 1
CHESS960 = 2
CLOCK_SHIFT = 16
CLOCK_MASK = 0xFFFF
NUMBER_SHIFT = 32
ONE_REVERSIBLE_PLY = 1 << CLOCK_SHIFT
WITHOUT_CLOCK = ~(CLOCK_MASK << CLOCK_SHIFT)


class Position(NamedTuple):
    """Where the men stand, and what else matters."""

    own: np.uint64
    """All men of the side to move."""
    pawns: np.uint64
    """Pawns of both sides; likewise the next four."""
    knights: np.uint64
    diagonals: np.uint64
    """Bishops and queens."""
    straights: np.uint64
    """Rooks and queens."""
    kings: np.uint64
    marks: np.uint64
    """Rooks that may still castle, on ranks 1 and 8, and on rank 6 the square where a pawn can be taken en passant."""
    state: np.int64
    """Who is to move, clocks, and how castling is written: see the drawing."""
    key: np.uint64
    """Zobrist hash of all but the clocks."""


@inlined
def bit(square: int) -> Word:
    """Return the board with one square."""
    return ONE << np.uint64(square)


@inlined
def occupied(position: Position) -> Word:
    """Return the squares of all men."""
    pieces = position.knights | position.diagonals | position.straights
    return position.pawns | pieces | position.kings


@inlined
def own_king(position: Position) -> int:
    """Return the square of the king of the side to move."""
    return trailing_zeros(position.kings & position.own)


@inlined
def holds(board: Word, square: int) -> int:
    """Return 1 if a board holds a square, else 0."""
    return as_int(board >> np.uint64(square) & ONE)


@inlined
def kind_at(position: Position, square: int) -> int:
    """Return the kind of the man on a square; `PAWN` too where there is none."""
    return (
        holds(position.knights, square)
        + BISHOP * holds(position.diagonals, square)
        + ROOK * holds(position.straights, square)
        + KING * holds(position.kings, square)
    )


@helper
def clock(position: Position) -> int:
    """Return how many plies ago the last capture or pawn move was."""
    return int(position.state) >> CLOCK_SHIFT & CLOCK_MASK


@helper
def has_pieces(position: Position) -> int:
    """Return 1 if the side to move has a man besides its king and pawns, else 0."""
    return 1 if position.own & ~(position.pawns | position.kings) != NOTHING else 0


# A move::
#
#     15 14 13 12   11 ... 6   5 ... 0
#        kind          to        from      castling: from the king to its rook
TO_SHIFT = 6
KIND_SHIFT = 12
SQUARE_MASK = 63
DOUBLE_STEP, CASTLING, EN_PASSANT = 1, 2, 3
PROMOTION = 4
"""A promotion to a knight, bishop, rook or queen is this plus 0..3; an ordinary move is of kind 0."""
PROMOTION_TO_QUEEN = PROMOTION + 3


@inlined
def move_from(move: int) -> int:
    """Return the square that a move leaves."""
    return move & SQUARE_MASK


@inlined
def move_to(move: int) -> int:
    """Return the square where a move ends; of castling, the rook's."""
    return move >> TO_SHIFT & SQUARE_MASK


@inlined
def move_kind(move: int) -> int:
    """Return which kind of move it is."""
    return move >> KIND_SHIFT


@inlined
def promoted_kind(kind: int) -> int:
    """Return the kind of man that a promotion makes."""
    return QUEEN if kind == PROMOTION_TO_QUEEN else kind - PROMOTION + KNIGHT


@inlined
def make_move(origin: int, target: int, kind: int) -> int:
    """Return the word of a move."""
    return origin | target << TO_SHIFT | kind << KIND_SHIFT
