"""Tic-tac-toe on 3 rows and 3 columns: three in a row wins.

A cell is a bit::

     0 1 2      cell 1 2 3
     3 4 5           4 5 6
     6 7 8           7 8 9

`own` holds the stones of the side to move, `mask` all stones. A move is its cell, 1..9. A position's text is the
board, row by row, with ``X`` for the first player, ``O`` for the second and ``.`` for an empty cell, such as
``X...O....``; how many stones there are tells who is to move. ``start`` is the empty board.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined
from search.rules import RulesError, mix, push_move
from search.scores import DRAW, MATE, ONGOING
from tt_store.native import Word

SUMMARY = "Tic-tac-toe, 3x3; a position is the board row by row, such as X...O....; a move is a cell, 1 to 9"
CELLS = 9
MAX_MOVES = CELLS
START = "." * CELLS

ONE = np.uint64(1)
NOTHING = np.uint64(0)
BOARD = np.uint64(0b111_111_111)
_LINE_MASKS = (
    0b000_000_111, 0b000_111_000, 0b111_000_000,
    0b001_001_001, 0b010_010_010, 0b100_100_100,
    0b100_010_001, 0b001_010_100,
)  # fmt: skip
LINES = tuple(np.uint64(line) for line in _LINE_MASKS)

_CENTRE_FIRST = 0x864297315
"""The cells in the order in which they are tried, a hexadecimal digit each, the last one first."""


class Position(NamedTuple):
    """Stones of the side to move, and all stones."""

    own: np.uint64
    mask: np.uint64


@helper
def _has_three(stones: Word) -> bool:
    found = False
    for line in LINES:
        found |= stones & line == line
    return found


@helper
def _open_lines(stones: Word) -> int:
    """Return how many lines these stones leave to the opponent."""
    count = 0
    for line in LINES:
        if stones & line == NOTHING:
            count += 1
    return count


@helper
def moves(position: Position, end: int) -> int:
    """Push the empty cells: the centre, the corners, the edges."""
    for index in range(CELLS):
        cell = _CENTRE_FIRST >> 4 * index & 15
        if (position.mask >> np.uint64(cell - 1)) & ONE == NOTHING:
            end = push_move(end, cell)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Put a stone on a cell; the opponent's stones become `own`."""
    return Position(position.own ^ position.mask, position.mask | ONE << np.uint64(move - 1))


@helper
def outcome(position: Position) -> int:
    """Tell whether the last stone made three, or the board is full."""
    if _has_three(position.own ^ position.mask):
        return -MATE
    if position.mask == BOARD:
        return DRAW
    return ONGOING


@helper
def key(position: Position) -> Word:
    """Hash both boards."""
    return mix(position.own | position.mask << np.uint64(CELLS) | ONE << np.uint64(2 * CELLS))


@helper
def evaluate(position: Position) -> int:
    """Estimate by the lines that are still open to one side more than to the other."""
    return _open_lines(position.own ^ position.mask) - _open_lines(position.own)


def parse(text: str) -> Position:
    """Return the position of a board; RulesError unless it can come up in a game."""
    if len(text) != CELLS:
        raise RulesError(f"the board {text!r} has {len(text)} characters: it must have {CELLS}, such as X...O....")
    stones = {"X": 0, "O": 0, ".": 0}
    for index, character in enumerate(text):
        if character not in stones:
            raise RulesError(f"cell {index + 1} of {text!r} is {character!r}: a cell is X, O or . for an empty one")
        stones[character] |= 1 << index
    first, second = stones["X"], stones["O"]
    lead = first.bit_count() - second.bit_count()
    if lead not in (0, 1):
        counts = f"{first.bit_count()} X and {second.bit_count()} O"
        raise RulesError(f"the board {text!r} has {counts}: X plays first, and they take turns")
    mover = first if lead == 0 else second
    if has_three(mover):
        raise RulesError(f"the board {text!r} cannot come up: the game was won before the last stone")
    return Position(np.uint64(mover), np.uint64(first | second))


def has_three(stones: int) -> bool:
    """Tell whether a bitboard holds three in a row: the plain twin of the compiled test."""
    return any(stones & line == line for line in _LINE_MASKS)


def text(position: Position) -> str:
    """Return the board."""
    own, mask = int(position.own), int(position.mask)
    is_first_to_move = mask.bit_count() % 2 == 0
    first = own if is_first_to_move else own ^ mask
    return "".join("." if not mask >> cell & 1 else "X" if first >> cell & 1 else "O" for cell in range(CELLS))


def move_text(position: Position, move: int) -> str:
    """Return the cell's digit."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the cell that a digit names."""
    if len(text) != 1 or not "1" <= text <= str(CELLS):
        raise RulesError(f"{text!r} is no move: a cell is a digit from 1 to {CELLS}")
    return int(text)


def plies_left(position: Position) -> int:
    """Return the number of empty cells."""
    return CELLS - int(position.mask).bit_count()


def mirror(position: Position) -> Position:
    """Return the position turned by a quarter: of equal value."""
    return Position(*(np.uint64(_turned(int(board))) for board in position))


def _turned(board: int) -> int:
    """Move the bit of row r and column c to row c and column 2 - r."""
    return sum((board >> 3 * row + column & 1) << 3 * column + 2 - row for row in range(3) for column in range(3))


def swap_sides(position: Position) -> Position:
    """Return the same board with the other side to move."""
    return Position(position.own ^ position.mask, position.mask)
