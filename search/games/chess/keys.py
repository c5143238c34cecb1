"""The hash of a position: a random word for each man on its square, XORed (Zobrist 1970).

The words are addressed by the absolute square, as White sees it::

    word   kind << 7 | colour << 6 | square      a man; colour 0 is White
    word   MARKS + square                        a rook that may castle, or the square of an en-passant capture
    word   BLACK_WORD                            Black is to move

Seen from the side to move, a man's index is XORed with `TURN_INDEX` if Black is to move.
"""

from __future__ import annotations

import numpy as np

from search.games.chess.board import BLACK_TO_MOVE, KINDS, TURN_SQUARE, Position
from search.jit import helper, inlined
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, constant_table, read_word

_SEED = 1970
KIND_STRIDE = 128
OTHER_SIDE = 64
TURN_INDEX = OTHER_SIDE | TURN_SQUARE
MARKS = KINDS * KIND_STRIDE
BLACK_WORD = MARKS + 64

# A bit generator's raw stream is fixed for ever, unlike NumPy's distributions.
RANDOM_WORDS = np.random.PCG64(_SEED).random_raw(BLACK_WORD + 1)

_RANDOM_INTEGERS: list[int] = RANDOM_WORDS.tolist()
"""The same for Python, which reads a list ten times as fast."""

_random_words = constant_table("chess_keys", RANDOM_WORDS)
BLACK_KEY = np.uint64(RANDOM_WORDS[BLACK_WORD])


@helper
def key(position: Position) -> Word:
    """Return the hash of a position; equal exactly where men, marks and the side to move are."""
    return position.key


@inlined
def man_key(index: int) -> Word:
    """Return the word of a man: by its kind, its absolute colour and square."""
    return read_word(_random_words() + index * WORD_BYTES)


@helper
def mark_key(square: int) -> Word:
    """Return the word of a mark on an absolute square."""
    return read_word(_random_words() + (MARKS + square) * WORD_BYTES)


def full_key(men: list[tuple[int, int, bool]], marks: list[int], state: int) -> np.uint64:
    """Return a position's hash from scratch.

    Parameters
    ----------
    men
        Kind, square as the side to move sees it, and whether it belongs to that side.
    marks
        Squares of the marks, as the side to move sees them.
    state
        The position's state word.
    """
    is_black = bool(state & BLACK_TO_MOVE)
    turn, turn_mark = (TURN_INDEX, TURN_SQUARE) if is_black else (0, 0)
    word = int(BLACK_KEY) if is_black else 0
    for kind, square, is_own in men:
        word ^= _RANDOM_INTEGERS[(kind * KIND_STRIDE | (0 if is_own else OTHER_SIDE) | square) ^ turn]
    for square in marks:
        word ^= _RANDOM_INTEGERS[MARKS + (square ^ turn_mark)]
    return np.uint64(word)
