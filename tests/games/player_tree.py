"""Any tree of several players that a test has written down, as a game.

The parameters are the number of players and what is known of their payoffs: ``3-general``, ``4-bounded`` (none below
0, no sum above `PAYOFF_SUM`). A planted tree is memory that this module keeps alive, in 64-bit words::

    +-------------+-------------------------------------------+---
    | tree number | node 0: first | n | mover | value of each  | ...
    +-------------+-------------------------------------------+---

`first` is the index of a node's first child, `n` their number, 0 for a finished game. A position's text is
``address:node``; a move is the child's number, from 1.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search.jit import helper, inlined
from search.rules import RulesError, mix, parameters, push_move
from search.scores import ONGOING
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_word, read_int

SUMMARY = "An explicit tree of several players, planted by a test; a position is address:node"
PARAMETERS = "players and kind, such as 3-general or 4-bounded"
_players, _, _kind = (parameters(__name__) or "3-general").partition("-")
PLAYERS = int(_players)
if _kind == "bounded":
    LOWEST_PAYOFF, HIGHEST_PAYOFF, PAYOFF_SUM = 0, 60, 60
_KIND_HASH = np.uint64(zlib.crc32(_kind.encode()) << 32 ^ PLAYERS << 60)
MAX_MOVES = 16
_HEAD_WORDS = 3
ROW_WORDS = _HEAD_WORDS + PLAYERS
_TREE_SHIFT = 20


class Position(NamedTuple):
    """A node of a planted tree."""

    address: np.int64
    node: np.int64


_planted: dict[int, NDArray[np.int64]] = {}


def plant(rows: Sequence[Sequence[int]]) -> int:
    """Keep a tree for good, given as rows (first child, number of children, mover, values); returns its address."""
    words = np.array([len(_planted), *(word for row in rows for word in row)], np.int64)
    _planted[words.ctypes.data] = words
    return int(words.ctypes.data)


@inlined
def _row(position: Position) -> int:
    return position.address + WORD_BYTES + position.node * ROW_WORDS * WORD_BYTES


@helper
def moves(position: Position, end: int) -> int:
    """Push the numbers of the children, the last first: the order of generation must not matter."""
    children = read_int(_row(position) + WORD_BYTES)
    for child in range(children):
        end = push_move(end, children - child)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Go to a child."""
    return Position(position.address, read_int(_row(position)) + move - 1)


@helper
def player(position: Position) -> int:
    """Return who moves."""
    return read_int(_row(position) + 2 * WORD_BYTES)


@helper
def payoff(position: Position, player: int) -> int:
    """Return what is written down."""
    return read_int(_row(position) + (_HEAD_WORDS + player) * WORD_BYTES)


@helper
def estimate(position: Position, player: int) -> int:
    """Return what is written down."""
    return payoff(position, player)


@helper
def outcome(position: Position) -> int:
    """Return the mover's payoff at a leaf."""
    return ONGOING if read_int(_row(position) + WORD_BYTES) > 0 else payoff(position, player(position))


@helper
def key(position: Position) -> Word:
    """Hash the tree's number, the node and the kind of tree: several kinds may share a table."""
    return mix(as_word(position.node | (read_int(position.address) + 1) << _TREE_SHIFT) ^ _KIND_HASH)


@helper
def order(position: Position, move: int) -> int:
    """Return what the child is worth to the mover."""
    return payoff(play(position, move), player(position))


def parse(text: str) -> Position:
    """Return the position of a planted tree; nothing else is ever read."""
    try:
        address, node = (int(word) for word in text.split(":"))
    except ValueError:
        raise RulesError(f"{text!r} is not of the form address:node") from None
    words = _planted.get(address)
    if words is None:
        raise RulesError(f"no tree was planted at {address}")
    if not 0 <= node < len(words) // ROW_WORDS:
        raise RulesError(f"the tree at {address} has no node {node}")
    return Position(np.int64(address), np.int64(node))


def text(position: Position) -> str:
    """Return address and node."""
    return f"{position.address}:{position.node}"


def move_text(position: Position, move: int) -> str:
    """Return the child's number."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the child that a number names."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 2 and 1 <= int(text) <= MAX_MOVES):
        raise RulesError(f"{text!r} is no move: a child is a number from 1 to {MAX_MOVES}")
    return int(text)


_LEAF = (0, 0, 0, *(3 + each for each in range(PLAYERS)))
START = f"{plant([(1, 2, 0, *([0] * PLAYERS)), _LEAF, (3, 1, 1, *([1] * PLAYERS)), _LEAF])}:0"
"""A root with two children, of which the second has one."""
