"""The estimate of a position by a small neural network, kept up to date from one position to the next (Nasu 2018).

Each side sees the board its own way: a man is one of 768 inputs, by side, kind and square, and a side's view is the sum
of its men's rows of weights, 16 bits a unit. An estimate is what the last layer makes of the mover's view and of the
other side's, each unit limited to 0..1 and squared; which last layer that is depends on how many men there are.

A search asks for one position after another that differ by a few men. Memory of the searching core holds the views of
the last one, without the bias, and the men that they are sums of::

    White's men | pawns | knights | bishops and queens | rooks and queens | kings | White's view | Black's view

so that only what differs is added and taken away. Sums are of whole numbers: they are the same however one got there.
"""

from __future__ import annotations

import numpy as np

from search.games.chess.board import (
    BLACK_TO_MOVE,
    NOTHING,
    ONE,
    TURN_SQUARE,
    Position,
    kind_at,
    occupied,
)
from search.games.chess.layers import INPUTS, LAST_UNIT, MOST_MEN, SQUARES, UNIT, unpack
from search.games.chess.network_weights import HIDDEN, OFFSETS, PACKED, SCALE
from search.games.chess.views import opposite
from search.jit import helper, inlined
from tt_store.lanes import row_primitives
from tt_store.layout import SHORT_BYTES, WORD_BYTES
from tt_store.native import (
    Word,
    as_int,
    as_word,
    constant_table,
    count_ones,
    read_int,
    read_short,
    read_word,
    trailing_zeros,
    write_int,
)

SIDE_INPUTS = INPUTS // 2
ROW_BYTES = HIDDEN * SHORT_BYTES
BUCKETS = len(OFFSETS)
"""Last layers, each for another number of men."""

BOARDS = 6
_WHITE_VIEW = BOARDS * WORD_BYTES
_BLACK_VIEW = _WHITE_VIEW + ROW_BYTES
MEMORY_WORDS = BOARDS + 2 * ROW_BYTES // WORD_BYTES
"""What a searching core needs, zero at first: the views of an empty board."""

_layers = unpack(PACKED, HIDDEN, OFFSETS)
_rows = constant_table("chess_network_rows", _layers.rows.view(np.int64))
_bias = constant_table("chess_network_bias", _layers.bias.view(np.int64))
_last = constant_table("chess_network_last", _layers.last.view(np.int64))
_offsets = constant_table("chess_network_offsets", _layers.offsets)
_add, _subtract, _squared_product = row_primitives(HIDDEN, UNIT)


@inlined
def _men_at(memory: int) -> Position:
    """Return the boards that the views in memory are sums of; nothing else of the position is known."""
    return Position(
        read_word(memory),
        read_word(memory + WORD_BYTES),
        read_word(memory + 2 * WORD_BYTES),
        read_word(memory + 3 * WORD_BYTES),
        read_word(memory + 4 * WORD_BYTES),
        read_word(memory + 5 * WORD_BYTES),
        NOTHING,
        np.int64(0),
        NOTHING,
    )


@inlined
def _note_men(view: Position, memory: int) -> int:
    """Put boards where `_men_at` finds them; returns 0."""
    write_int(memory, as_int(view.own))
    write_int(memory + WORD_BYTES, as_int(view.pawns))
    write_int(memory + 2 * WORD_BYTES, as_int(view.knights))
    write_int(memory + 3 * WORD_BYTES, as_int(view.diagonals))
    write_int(memory + 4 * WORD_BYTES, as_int(view.straights))
    return write_int(memory + 5 * WORD_BYTES, as_int(view.kings))


@inlined
def _rows_of(view: Position, square: int) -> tuple[int, int]:
    """Return the addresses of a man's rows: of the side's view that is given, and of the other side's."""
    kind = kind_at(view, square)
    is_other = 1 - as_int(view.own >> as_word(square) & ONE)
    own = is_other * SIDE_INPUTS + kind * SQUARES + square
    other = (1 - is_other) * SIDE_INPUTS + kind * SQUARES + (square ^ TURN_SQUARE)
    return _rows() + own * ROW_BYTES, _rows() + other * ROW_BYTES


@helper
def _bring_up_to_date(view: Position, memory: int) -> int:
    """Change the views in memory into those of a position, which is given as White sees it; returns 0."""
    known = _men_at(memory)
    changed = known.own ^ view.own | known.pawns ^ view.pawns | known.knights ^ view.knights
    changed |= known.diagonals ^ view.diagonals | known.straights ^ view.straights | known.kings ^ view.kings
    gone, come = changed & occupied(known), changed & occupied(view)
    while gone != NOTHING:
        white, black = _rows_of(known, trailing_zeros(gone))
        _subtract(memory + _WHITE_VIEW, white)
        _subtract(memory + _BLACK_VIEW, black)
        gone &= gone - ONE
    while come != NOTHING:
        white, black = _rows_of(view, trailing_zeros(come))
        _add(memory + _WHITE_VIEW, white)
        _add(memory + _BLACK_VIEW, black)
        come &= come - ONE
    return _note_men(view, memory)


@inlined
def _bucket(men: Word) -> int:
    """Return which last layer is for so many men."""
    return (count_ones(men) - 1) * BUCKETS // MOST_MEN


@inlined
def _in_centipawns(product: int, bucket: int) -> int:
    """Return the estimate from the last layer's product in `UNIT * UNIT * LAST_UNIT`."""
    return (product // UNIT + read_int(_offsets() + bucket * WORD_BYTES)) * SCALE // (UNIT * LAST_UNIT)


@helper
def network_value(position: Position, memory: int) -> int:
    """Return the network's estimate in centipawns for the side to move, with `MEMORY_WORDS` of memory at an address."""
    men = occupied(position)
    is_black = int(position.state) & BLACK_TO_MOVE != 0
    _bring_up_to_date(opposite(position) if is_black else position, memory)
    bucket = _bucket(men)
    own = memory + (_BLACK_VIEW if is_black else _WHITE_VIEW)
    other = memory + (_WHITE_VIEW if is_black else _BLACK_VIEW)
    weights = _last() + bucket * 2 * ROW_BYTES
    product = _squared_product(own, _bias(), weights)
    product += _squared_product(other, _bias(), weights + ROW_BYTES)
    return _in_centipawns(product, bucket)


@helper
def plain_network_value(position: Position) -> int:
    """Return what `network_value` does, without memory: unit by unit, some thirty times as slow."""
    men = occupied(position)
    bucket = _bucket(men)
    product = 0
    for unit in range(HIDDEN):
        at = unit * SHORT_BYTES
        own = other = read_short(_bias() + at)
        rest = men
        while rest != NOTHING:
            own_row, other_row = _rows_of(position, trailing_zeros(rest))
            own += read_short(own_row + at)
            other += read_short(other_row + at)
            rest &= rest - ONE
        own, other = max(0, min(own, UNIT)), max(0, min(other, UNIT))
        weights = _last() + bucket * 2 * ROW_BYTES + at
        product += own * own * read_short(weights) + other * other * read_short(weights + ROW_BYTES)
    return _in_centipawns(product, bucket)
