"""A game whose estimate is the value, at every depth: what a shallow search foretells is always right.

Each position has a value; one of its moves keeps it, the others are worse for the mover by known amounts. The game
never ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined
from search.rules import SLOPE_SHIFT, ProbCut, RulesError, mix, push_move
from search.scores import ONGOING
from tt_store.native import Word, as_int, as_word

SUMMARY = "A tree whose estimates are right; a position is node:value"
MAX_MOVES = 5
START = "1:0"
PROB_CUTS = tuple(ProbCut(0, deep, deep // 2, 1 << SLOPE_SHIFT, 0, 0) for deep in range(2, 9))
_MASK = np.uint64(0xFF)


class Position(NamedTuple):
    """A node of the tree, and its value for the side to move."""

    node: np.uint64
    value: np.int64


@helper
def moves(position: Position, end: int) -> int:
    """Push all moves."""
    for move in range(1, MAX_MOVES + 1):
        end = push_move(end, move)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Keep the value by one move, lose up to 255 by each other one."""
    node = mix(position.node * np.uint64(MAX_MOVES + 1) + as_word(move))
    best = 1 + as_int(position.node & _MASK) % MAX_MOVES
    loss = 0 if move == best else as_int(node & _MASK)
    return Position(node, loss - position.value)


@helper
def outcome(position: Position) -> int:
    """Go on for ever."""
    return ONGOING


@helper
def key(position: Position) -> Word:
    """Hash the node and the value."""
    return mix(position.node ^ mix(as_word(position.value)))


@helper
def evaluate(position: Position) -> int:
    """Tell the value."""
    return position.value


@helper
def prob_cut_stage(position: Position, depth: int) -> int:
    """Return the only stage."""
    return 0


def parse(text: str) -> Position:
    """Return the position of a text."""
    node, _, value = text.partition(":")
    try:
        return Position(np.uint64(int(node)), np.int64(int(value)))
    except ValueError:
        raise RulesError(f"{text!r} is not node:value") from None


def text(position: Position) -> str:
    """Return the text of a position."""
    return f"{position.node}:{position.value}"


def move_text(position: Position, move: int) -> str:
    """Return a move's number."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the move of a number."""
    return int(text)
