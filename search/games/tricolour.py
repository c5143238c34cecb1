"""Reversi for three: each puts down stones of a colour of its own, and gets as many points as it has at the end.

Red, green and blue take turns on an empty board. The first stone goes anywhere, each other one beside a stone that is
there, also diagonally. A straight line of others' stones, of either colour, between the new stone and another one of
its colour is captured and changes to it, in all eight directions; where captures are possible, only they are allowed.
The game ends when the board is full: nobody ever passes. (The rules of Rolit, less its four stones to begin with.)

The squares are counted row by row, from a1 at the top left; a bit is a square. For 4x3::

         a  b  c  d
     1   0  1  2  3
     2   4  5  6  7
     3   8  9 10 11

A position's text is the board, row by row, with ``R``, ``G``, ``B`` and ``.`` for an empty square, such as
``RG../.B../....``; how many stones there are tells who is to move. A move is its square, such as ``b2``. The board's
size follows the game's name: ``tricolour:4x3`` has 4 columns and 3 rows; without, it is 6x6.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined
from search.rules import RulesError, mix, parameters, push_move
from search.scores import ONGOING
from tt_store.native import Word, count_ones, trailing_zeros

PLAYERS = 3
PARAMETERS = "columns x rows, from 2x2 to 8x8, such as 4x3"
COLOURS = "RGB"


def _size(text: str) -> tuple[int, int]:
    """Return columns and rows."""
    found = re.fullmatch(r"([2-8])x([2-8])", text or "6x6")
    if found is None:
        raise RulesError(f"the size of tricolour must be from 2x2 to 8x8, such as 4x3, not {text!r}")
    return int(found[1]), int(found[2])


WIDTH, HEIGHT = _size(parameters(__name__))
CELLS = WIDTH * HEIGHT
SUMMARY = "Reversi for three, perhaps with a size: tricolour:4x3; a position is the rows, such as RG../.B../...."
MAX_MOVES = CELLS
START = "/".join(["." * WIDTH] * HEIGHT)
LOWEST_PAYOFF, HIGHEST_PAYOFF, PAYOFF_SUM = 0, CELLS, CELLS

RED = np.int64(0)
ONE = np.uint64(1)
NOTHING = np.uint64(0)
BOARD = np.uint64((1 << CELLS) - 1)


def _cells_that_stay(right: int, down: int) -> Word:
    """Return the squares from which a step stays on the board."""
    columns, rows = range(WIDTH), range(HEIGHT)
    stays = (
        row * WIDTH + column for row in rows for column in columns if column + right in columns and row + down in rows
    )
    return np.uint64(sum(1 << cell for cell in stays))


_STEPS = ((1, 0), (-1, 1), (0, 1), (1, 1))
DIRECTIONS = len(_STEPS)
DISTANCES = tuple(np.uint64(right + down * WIDTH) for right, down in _STEPS)
AHEAD = tuple(_cells_that_stay(right, down) for right, down in _STEPS)
"""The squares from which a step in each direction stays on the board, and those of a step back."""
BACK = tuple(_cells_that_stay(-right, -down) for right, down in _STEPS)
LONGEST_LINE = max(WIDTH, HEIGHT) - 2
"""The most stones that one direction can capture."""
CORNERS = np.uint64(1 | 1 << WIDTH - 1 | 1 << CELLS - WIDTH | 1 << CELLS - 1)
CORNER_RANK = 8


class Position(NamedTuple):
    """The stones of whoever moves now, of the next two, and whose turn it is."""

    own: np.uint64
    following: np.uint64
    last: np.uint64
    turn: np.int64
    """0 for red, 1 for green, 2 for blue."""


@inlined
def _step(stones: Word, direction: int) -> Word:
    """Move squares by a step in one of the eight directions; those at the edge fall off."""
    if direction < DIRECTIONS:
        return (stones & AHEAD[direction]) << DISTANCES[direction]
    return (stones & BACK[direction - DIRECTIONS]) >> DISTANCES[direction - DIRECTIONS]


@helper
def _captured(stone: Word, own: Word, others: Word) -> Word:
    """Return the stones that a new stone captures."""
    captured = NOTHING
    for direction in range(2 * DIRECTIONS):
        line = NOTHING
        square = _step(stone, direction)
        while square & others != NOTHING:
            line |= square
            square = _step(square, direction)
        if square & own != NOTHING:
            captured |= line
    return captured


@helper
def _capturing(own: Word, others: Word, empty: Word) -> Word:
    """Return the squares of the stones that capture something."""
    found = NOTHING
    for direction in range(2 * DIRECTIONS):
        line = _step(own, direction) & others
        for _ in range(LONGEST_LINE - 1):
            line |= _step(line, direction) & others
        found |= _step(line, direction) & empty
    return found


@helper
def _beside(stones: Word) -> Word:
    """Return the squares beside stones, and perhaps some of theirs."""
    found = NOTHING
    for direction in range(2 * DIRECTIONS):
        found |= _step(stones, direction)
    return found


@helper
def moves(position: Position, end: int) -> int:
    """Push the squares that capture, if there are any; else those beside a stone; at first all."""
    others = position.following | position.last
    stones = position.own | others
    empty = BOARD & ~stones
    squares = _capturing(position.own, others, empty)
    if squares == NOTHING:
        squares = _beside(stones) & empty
    if stones == NOTHING:
        squares = BOARD
    while squares != NOTHING:
        end = push_move(end, trailing_zeros(squares) + 1)
        squares &= squares - ONE
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Put a stone down, and change the colour of what it captures."""
    stone = ONE << np.uint64(move - 1)
    taken = _captured(stone, position.own, position.following | position.last)
    turn = position.turn + 1 if position.turn < PLAYERS - 1 else RED
    return Position(position.following & ~taken, position.last & ~taken, position.own | stone | taken, turn)


@helper
def player(position: Position) -> int:
    """Return whose turn it is."""
    return int(position.turn)


@helper
def payoff(position: Position, player: int) -> int:
    """Count a player's stones."""
    if player == position.turn:
        return count_ones(position.own)
    is_following = player == position.turn + 1 or player == position.turn + 1 - PLAYERS
    return count_ones(position.following if is_following else position.last)


@helper
def estimate(position: Position, player: int) -> int:
    """Count a player's stones."""
    return payoff(position, player)


@helper
def outcome(position: Position) -> int:
    """Tell whether the board is full."""
    return count_ones(position.own) if position.own | position.following | position.last == BOARD else ONGOING


@helper
def key(position: Position) -> Word:
    """Hash the stones of each; their number tells whose turn it is."""
    return mix(position.own ^ mix(position.following ^ mix(position.last ^ BOARD)))


@helper
def order(position: Position, move: int) -> int:
    """Try corners first, then what captures most."""
    stone = ONE << np.uint64(move - 1)
    captured = count_ones(_captured(stone, position.own, position.following | position.last))
    return captured + CORNER_RANK if stone & CORNERS != NOTHING else captured


def parse(text: str) -> Position:
    """Return the position of a board; RulesError unless it has the right size and numbers of stones."""
    rows = text.split("/")
    if len(rows) != HEIGHT or any(len(row) != WIDTH for row in rows):
        raise RulesError(f"the board {text!r} is not {WIDTH}x{HEIGHT}: its rows are such as {START}")
    cells = "".join(rows)
    unknown = set(cells) - set(COLOURS) - {"."}
    if unknown:
        raise RulesError(f"the board {text!r} has a {min(unknown)!r}: a square is R, G, B or . for an empty one")
    stones = [sum(1 << cell for cell, colour in enumerate(cells) if colour == each) for each in COLOURS]
    turn = (CELLS - cells.count(".")) % PLAYERS
    own, following, last = (np.uint64(stones[(turn + each) % PLAYERS]) for each in range(PLAYERS))
    return Position(own, following, last, np.int64(turn))


def text(position: Position) -> str:
    """Return the board."""
    boards = (int(position.own), int(position.following), int(position.last))
    colours = {boards[each]: COLOURS[(int(position.turn) + each) % PLAYERS] for each in range(PLAYERS)}
    cells = "".join(
        next((colour for board, colour in colours.items() if board >> cell & 1), ".") for cell in range(CELLS)
    )
    return "/".join(cells[row * WIDTH : (row + 1) * WIDTH] for row in range(HEIGHT))


def move_text(position: Position, move: int) -> str:
    """Return a square such as b2."""
    row, column = divmod(move - 1, WIDTH)
    return f"{chr(ord('a') + column)}{row + 1}"


def parse_move(position: Position, text: str) -> int:
    """Return the move of a square."""
    found = re.fullmatch(r"([a-h])([1-8])", text.lower())
    column, row = (ord(found[1]) - ord("a"), int(found[2]) - 1) if found else (WIDTH, HEIGHT)
    if column >= WIDTH or row >= HEIGHT:
        raise RulesError(f"{text!r} is no move: a square of the {WIDTH}x{HEIGHT} board is such as b2")
    return row * WIDTH + column + 1


def plies_left(position: Position) -> int:
    """Return the number of empty squares."""
    return CELLS - (int(position.own) | int(position.following) | int(position.last)).bit_count()


def score_text(position: Position, score: int, is_solved: bool) -> str:
    """Return a number of stones."""
    return f"{score}" if is_solved else f"~{score}"
