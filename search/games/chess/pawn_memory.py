"""What pawns and kings alone decide, remembered: in a search the next position has mostly the same.

A cell is a row of words, found by a hash of the two first, which tell a position's pawns and kings without a doubt::

    White's pawns, its king's square on rank 1 | Black's pawns, its king's square on rank 1 | value for White | unused

No pawn stands on the first rank: a king's square has room there.
"""

from __future__ import annotations

import numpy as np

from search.games.chess.board import BLACK_TO_MOVE, Position, own_king
from search.games.chess.king_safety import shelter
from search.games.chess.pawns import pawn_structure
from search.games.chess.terms import term_weights
from search.games.chess.views import opposite
from search.jit import helper, inlined
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_int, as_word, read_int, read_word, write_int

_CELL_WORDS = 4
_CELLS_BITS = 12
MEMORY_WORDS = _CELL_WORDS << _CELLS_BITS
"""What a searching core needs, zero at first: no position has a cell of zeros."""

NO_MEMORY = 0
"""The address that stands for none."""

_VALUE = 2 * WORD_BYTES
_FACTORS = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xC2B2_AE3D_27D4_EB4F)
"""Odd numbers without a pattern, for the hash."""


@inlined
def pawn_terms(position: Position, turned: Position, weights: int) -> int:
    """Return the packed sum of all terms that depend on pawns and kings alone; `turned` is the other side's view."""
    score = pawn_structure(position, weights) - pawn_structure(turned, weights)
    return score + shelter(position, weights) - shelter(turned, weights)


@inlined
def _side_word(view: Position) -> Word:
    """Return a side's pawns and king in one word."""
    return view.pawns & view.own | as_word(own_king(view))


@helper
def known_pawn_terms(position: Position, memory: int) -> int:
    """Return `pawn_terms` by the weights of the game, with `MEMORY_WORDS` of memory at an address, if any."""
    turned = opposite(position)
    if memory == NO_MEMORY:
        return pawn_terms(position, turned, term_weights())
    own, others = _side_word(position), _side_word(turned)
    is_black = int(position.state) & BLACK_TO_MOVE != 0
    white, black = (others, own) if is_black else (own, others)
    index = white * _FACTORS[0] ^ black * _FACTORS[1]
    cell = memory + as_int(index >> np.uint64(64 - _CELLS_BITS)) * _CELL_WORDS * WORD_BYTES
    if read_word(cell) == white and read_word(cell + WORD_BYTES) == black:
        value = read_int(cell + _VALUE)
        return -value if is_black else value
    value = pawn_terms(position, turned, term_weights())
    write_int(cell, as_int(white))
    write_int(cell + WORD_BYTES, as_int(black))
    write_int(cell + _VALUE, -value if is_black else value)
    return value
