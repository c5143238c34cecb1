"""A synthetic game tree, drawn from a hash: as wide, as deep and as well ordered as one asks.

An incremental tree (Fuller, Gaschnig and Gillogly 1973; Newborn 1977): each move changes a running value by a random
amount, and a leaf is worth the sum along its path, so that the static value of a node predicts its minimax value. As
in a good evaluation of a real game, the best move of a node about keeps the value and the others lose by it: one
move, drawn from the node's hash, changes it by ``-SWING..+SWING``, each other one by ``-EDGE..BEST_OF_OTHERS``, both
evenly, from the mover's view. The subtrees then differ enough that this move is not always the best.

A position's text is ``seed:branching:depth[:order[:value]]``:

- `seed`, 0..2^64 - 1; every node is the root of its own subtree, whose seed is the node's hash;
- `branching`, 1..512, or a range such as ``8-16`` from which each node draws;
- `depth`, 0..200 plies to the end, where the exact final score is the running value;
- `order`, 0..100, says how well the order of the moves follows the static values: 100 exactly, 0 not at all (the
  moves are generated in no order); see `order`. `DEFAULT_ORDER` if absent;
- `value`, the running value for the side to move, 0 if absent.

A move is the child's number, from 1. Measured, 6 plies deep: the share of roots whose first move by `order` is a best
one, and how many times fewer nodes fail-soft alpha-beta visits thanks to the order (8 moves)::

    order                0    50    60    70    80    85    90   100
    best, 8 moves      .13   .53   .65   .78   .91   .95   .96   .97
    best, 8-16 moves   .11   .51   .58   .77   .91   .92   .91   .91
    best, 30-40 moves              .38   .48   .78   .83   .93   .93
    fewer nodes        1.1   4.8   5.9   7.3   8.0   8.2   8.4   8.4
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined
from search.rules import RulesError, mix, push_move
from search.scores import ONGOING
from tt_store.native import Integer, Word, as_int, as_word, multiply_high

SUMMARY = "A random tree; a position is seed:branching:depth[:order], such as 1:8:6 or 7:8-16:12:90"
MAX_MOVES = 512
MAX_DEPTH = 200
MAX_VALUE = 20_000
"""No score leaves ``-MAX_VALUE..MAX_VALUE``."""
DEFAULT_ORDER = 100
START = "1:8:6"

EDGE = 100
"""The most that a move can lose: ``MAX_DEPTH * EDGE <= MAX_VALUE``."""
SWING = 6
BEST_OF_OTHERS = -12

# Each use of a node's hash gets its own stream: unrelated numbers.
_CHILD = np.uint64(0x9E3779B97F4A7C15)
_WIDTH_STREAM = np.uint64(0x2545F4914F6CDD1D)
_BEST_STREAM = np.uint64(0xD1342543DE82EF95)
_NOISE_STREAM = np.uint64(0xA0761D6478BD642F)

# The key's second word holds the parameters, a field each.
_HIGH_SHIFT, _DEPTH_SHIFT, _ORDER_SHIFT, _VALUE_SHIFT = 10, 20, 28, 36

_FORM = re.compile(
    r"(?P<seed>\d{1,20}):(?P<low>\d{1,4})(?:-(?P<high>\d{1,4}))?:(?P<depth>\d{1,4})"
    r"(?::(?P<order>\d{1,4})(?::(?P<value>-?\d{1,6}))?)?",
    re.ASCII,
)


class Position(NamedTuple):
    """A node: its hash, the tree's parameters, and the running value."""

    state: np.uint64
    low: np.int64
    """Least branching."""
    high: np.int64
    """Greatest branching."""
    left: np.int64
    """Plies to the leaves."""
    accuracy: np.int64
    """The text's `order`."""
    value: np.int64
    """Running value for the side to move."""


@inlined
def _draw(word: Word, low: Integer, high: Integer) -> Integer:
    """Return a number from low to high, evenly, by a mixed word."""
    return low + as_int(multiply_high(word, as_word(high - low + 1)))


@inlined
def _branching(position: Position) -> Integer:
    """Return the number of moves."""
    if position.low == position.high:
        return position.low
    return _draw(mix(position.state ^ _WIDTH_STREAM), position.low, position.high)


@inlined
def _child_state(position: Position, move: int) -> Word:
    return mix(position.state + _CHILD * as_word(move))


@inlined
def _gain(position: Position, move: int, child_state: Word) -> Integer:
    """Return what a move changes the running value by, from the mover's view."""
    best = _draw(mix(position.state ^ _BEST_STREAM), 1, _branching(position))
    if move == best:
        return _draw(child_state, -SWING, SWING)
    return _draw(child_state, -EDGE, BEST_OF_OTHERS)


@helper
def moves(position: Position, end: int) -> int:
    """Push the numbers of the children."""
    for child in range(_branching(position)):
        end = push_move(end, child + 1)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Go to a child."""
    state = _child_state(position, move)
    value = -position.value - _gain(position, move, state)
    return Position(state, position.low, position.high, position.left - 1, position.accuracy, value)


@helper
def outcome(position: Position) -> int:
    """Return the running value at the leaves."""
    return ONGOING if position.left > 0 else int(position.value)


@helper
def key(position: Position) -> Word:
    """Hash the node and the parameters: different trees can share a table."""
    parameters = (
        position.low
        | position.high << _HIGH_SHIFT
        | position.left << _DEPTH_SHIFT
        | position.accuracy << _ORDER_SHIFT
        | (position.value + MAX_VALUE) << _VALUE_SHIFT
    )
    return mix(position.state ^ mix(as_word(parameters)))


@helper
def evaluate(position: Position) -> int:
    """Return the running value."""
    return int(position.value)


@helper
def order(position: Position, move: int) -> int:
    """Return the child's static value for the mover, mixed with as much noise as the tree's `order` is below 100."""
    state = _child_state(position, move)
    noise = _draw(mix(state ^ _NOISE_STREAM), -EDGE, SWING)
    return int(_gain(position, move, state) * position.accuracy + noise * (100 - position.accuracy))


def parse(text: str) -> Position:
    """Return the root of a tree; RulesError where a parameter is missing or out of range."""
    found = _FORM.fullmatch(text)
    if found is None:
        form = "seed:branching:depth[:order[:value]]"
        raise RulesError(f"the tree {text!r} is not of the form {form}, such as 7:8-16:12:90")
    seed, low, depth = int(found["seed"]), int(found["low"]), int(found["depth"])
    high = int(found["high"] or low)
    accuracy, value = int(found["order"] or DEFAULT_ORDER), int(found["value"] or 0)
    if seed >= 1 << 64:
        raise RulesError(f"the seed of {text!r} must be less than 2^64")
    if not 1 <= low <= high <= MAX_MOVES:
        raise RulesError(f"the branching of {text!r} must be from 1 to {MAX_MOVES}, or a range such as 8-16")
    if depth > MAX_DEPTH:
        raise RulesError(f"the depth of {text!r} must be from 0 to {MAX_DEPTH} plies")
    if accuracy > 100:
        raise RulesError(f"the order of {text!r} must be from 0 to 100 percent")
    if abs(value) + depth * EDGE > MAX_VALUE:
        raise RulesError(f"the value of {text!r} could leave {-MAX_VALUE}..{MAX_VALUE} within its {depth} plies")
    numbers = (np.int64(number) for number in (low, high, depth, accuracy, value))
    return Position(np.uint64(seed), *numbers)


def text(position: Position) -> str:
    """Return the shortest text of a node."""
    branching = f"{position.low}" if position.low == position.high else f"{position.low}-{position.high}"
    shortest = f"{position.state}:{branching}:{position.left}"
    if position.value != 0:
        return f"{shortest}:{position.accuracy}:{position.value}"
    return shortest if position.accuracy == DEFAULT_ORDER else f"{shortest}:{position.accuracy}"


def move_text(position: Position, move: int) -> str:
    """Return the child's number."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the child that a number names."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 3 and 1 <= int(text) <= MAX_MOVES):
        raise RulesError(f"{text!r} is no move: a child is a number from 1 to {MAX_MOVES}")
    return int(text)


def plies_left(position: Position) -> int:
    """Return the plies to the leaves: all lie equally deep."""
    return int(position.left)
