"""Any tree with chance nodes that a test has written down, as a game: the search can be held against a plain oracle.

A planted tree is memory that this module keeps alive, in 64-bit words::

    +-------------+---------------------------------------------+---
    | tree number | node 0: score | first | n | mover | weight  | node 1 ...
    +-------------+---------------------------------------------+---

`score` is in White's view; `first` is the index of a node's first child, `n` their number, 0 for a finished game.
`mover` is 0 where White decides, 1 where Black does; 2 and 3 are chance nodes, scored for White and for Black.
`weight` says how likely a node is where its parent is one of chance. A position's text is ``address:node``; a move is
the child's number, from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search.jit import helper, inlined
from search.rules import RulesError, mix, push_move
from search.scores import ONGOING
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_word, read_int

SUMMARY = "An explicit tree with chance nodes, planted by a test; a position is address:node"
MAX_MOVES = 16
WEIGHT_SUM = 36
VALUE_BOUND = 20_001
"""Scores of tests lie within 20,000: no estimate looks like a proof."""
POINT = 20_000
ROW_WORDS = 5
_ROWS = WORD_BYTES
"""Offset of the first node."""
_ROW_BYTES = ROW_WORDS * WORD_BYTES
_MOVER, _WEIGHT = 3 * WORD_BYTES, 4 * WORD_BYTES


class Position(NamedTuple):
    """A node of a planted tree."""

    address: np.int64
    node: np.int64


_planted: dict[int, NDArray[np.int64]] = {}


def plant(rows: Sequence[tuple[int, int, int, int, int]]) -> int:
    """Keep a tree for good, given as rows (score, first child, number, mover, weight); returns its address."""
    words = np.array([len(_planted), *(word for row in rows for word in row)], np.int64)
    _planted[words.ctypes.data] = words
    return int(words.ctypes.data)


@inlined
def _row(position: Position) -> int:
    return position.address + _ROWS + position.node * _ROW_BYTES


@helper
def moves(position: Position, end: int) -> int:
    """Push the numbers of the children."""
    for child in range(read_int(_row(position) + 2 * WORD_BYTES)):
        end = push_move(end, child + 1)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Go to a child."""
    return Position(position.address, read_int(_row(position) + WORD_BYTES) + move - 1)


@helper
def is_chance(position: Position) -> int:
    """Tell a chance node."""
    return read_int(_row(position) + _MOVER) >> 1


@helper
def side_to_move(position: Position) -> int:
    """Return whose scores the node's are."""
    return read_int(_row(position) + _MOVER) & 1


@helper
def weight(position: Position, move: int) -> int:
    """Return the child's weight."""
    return read_int(_row(play(position, move)) + _WEIGHT)


@helper
def evaluate(position: Position) -> int:
    """Return the score of a node, for its own side."""
    score = read_int(_row(position))
    return -score if side_to_move(position) == 1 else score


@helper
def outcome(position: Position) -> int:
    """Return the score of a leaf."""
    return ONGOING if read_int(_row(position) + 2 * WORD_BYTES) > 0 else evaluate(position)


@helper
def key(position: Position) -> Word:
    """Hash the node and its tree's number."""
    return mix(as_word(position.node | read_int(position.address) << 20))


@helper
def order(position: Position, move: int) -> int:
    """Return the child's score for the mover."""
    score = read_int(_row(play(position, move)))
    return -score if side_to_move(position) == 1 else score


def parse(text: str) -> Position:
    """Return the node of a text; RulesError where there is none."""
    address, _, node = text.partition(":")
    if not (address.isdecimal() and node.isdecimal() and int(address) in _planted):
        raise RulesError(f"{text!r} is no node of a planted tree: it must be address:node")
    return Position(np.int64(int(address)), np.int64(int(node)))


def text(position: Position) -> str:
    """Return address and node."""
    return f"{position.address}:{position.node}"


def move_text(position: Position, move: int) -> str:
    """Return the child's number."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the child that a number names."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 2) or not 1 <= int(text) <= MAX_MOVES:
        raise RulesError(f"{text!r} is no move: a child is a number from 1 to {MAX_MOVES}")
    return int(text)


START = f"{plant([(0, 1, 2, 0, 0), (2, 3, 2, 3, 0), (1, 0, 0, 1, 0), (5, 0, 0, 1, 35), (-5, 0, 0, 1, 1)])}:0"
"""A decision with two moves, of which the first leaves it to chance."""
