"""Any tree that a test has written down, as a game: the search can then be held against plain minimax.

A planted tree is memory that this module keeps alive, in 64-bit words::

    +-------------+--------------------------+--------------------------+---
    | tree number | node 0: score | first | n | node 1: score | first | n | ...
    +-------------+--------------------------+--------------------------+---

`score` is in White's view; `first` is the index of a node's first child, `n` their number, 0 for a finished game.
A position's text is ``address:node:side``, side 0 for White to move; a move is the child's number, from 1.
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

SUMMARY = "An explicit tree, planted by a test; a position is address:node:side"
MAX_MOVES = 16
ROW_WORDS = 3
_ROWS = WORD_BYTES
"""Offset of the first node."""
_ROW_BYTES = ROW_WORDS * WORD_BYTES
_SIDE_SHIFT, _TREE_SHIFT = 20, 21


class Position(NamedTuple):
    """A node of a planted tree, and who is to move."""

    address: np.int64
    node: np.int64
    side: np.int64
    """0 if White is to move."""


_planted: dict[int, NDArray[np.int64]] = {}


def plant(rows: Sequence[tuple[int, int, int]]) -> int:
    """Keep a tree for good, given as rows (score, first child, number of children); returns its address."""
    words = np.array([len(_planted), *(word for row in rows for word in row)], np.int64)
    _planted[words.ctypes.data] = words
    return int(words.ctypes.data)


@inlined
def _row(position: Position) -> int:
    return position.address + _ROWS + position.node * _ROW_BYTES


@inlined
def _mover_score(position: Position) -> int:
    score = read_int(_row(position))
    return -score if position.side else score


@helper
def moves(position: Position, end: int) -> int:
    """Push the numbers of the children."""
    for child in range(read_int(_row(position) + 2 * WORD_BYTES)):
        end = push_move(end, child + 1)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Go to a child."""
    return Position(position.address, read_int(_row(position) + WORD_BYTES) + move - 1, 1 - position.side)


@helper
def outcome(position: Position) -> int:
    """Return the score of a leaf."""
    return ONGOING if read_int(_row(position) + 2 * WORD_BYTES) > 0 else _mover_score(position)


@helper
def key(position: Position) -> Word:
    """Hash the tree's number, the node and the side."""
    return mix(as_word(position.node | position.side << _SIDE_SHIFT | (read_int(position.address) + 1) << _TREE_SHIFT))


@helper
def evaluate(position: Position) -> int:
    """Return the static score."""
    return _mover_score(position)


@helper
def order(position: Position, move: int) -> int:
    """Return the child's static score for the mover."""
    return -_mover_score(play(position, move))


def parse(text: str) -> Position:
    """Return the position of a planted tree; nothing else is ever read."""
    try:
        address, node, side = (int(word) for word in text.split(":"))
    except ValueError:
        raise RulesError(f"{text!r} is not of the form address:node:side") from None
    words = _planted.get(address)
    if words is None:
        raise RulesError(f"no tree was planted at {address}")
    if not 0 <= node < len(words) // ROW_WORDS or side not in (0, 1):
        raise RulesError(f"the tree at {address} has no node {node} with side {side}")
    return Position(np.int64(address), np.int64(node), np.int64(side))


def text(position: Position) -> str:
    """Return address, node and side."""
    return ":".join(str(word) for word in position)


def move_text(position: Position, move: int) -> str:
    """Return the child's number."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the child that a number names."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 2 and 1 <= int(text) <= MAX_MOVES):
        raise RulesError(f"{text!r} is no move: a child is a number from 1 to {MAX_MOVES}")
    return int(text)


START = f"{plant([(0, 1, 2), (3, 3, 1), (-3, 0, 0), (5, 0, 0)])}:0:0"
"""A root with two children, of which the first has one."""
