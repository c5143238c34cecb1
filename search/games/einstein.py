"""EinStein würfelt nicht! (Althöfer 2004): stones with the numbers of a die run for the opposite corner.

The usual board has 5 rows and 5 columns and 6 stones a side; ``einstein:3x3`` has 3, and can be solved. Red begins in
the upper left corner, Blue in the lower right one, in triangles::

    5  A B C . .        columns a..e from the left, rows 1..5 from below
    4  D E . . .        A..F are Red's stones 1..6, a..f Blue's
    3  F . . . f
    2  . . . e d
    1  . . c b a
       a b c d e

The side to move rolls the die and moves the stone of that number, or, where it is gone, the one of the next lower or
the next higher number that is left. Stones move one cell towards the opponent's corner: along the row, the column or
the diagonal. A stone of either side that stands there is captured. Who reaches the opposite corner wins, and so does
who captures all stones of the opponent.

A position's text is the board from the top, rows parted by ``/``, the side to move ``r`` or ``b``, and what was rolled,
``-`` if nothing yet. A roll is played as a move too: its number. A move is its two cells, such as ``a5b4``.

Each side counts the cells in its own frame, from its corner, so that both move upwards in numbers and a position does
not depend on colours::

     0  1  2  3  4       a stone's steps: +1, +5, +6; the goal is 24
     5  6  7  8  9       the opponent's cell c is 24 - c here
    ..............
    20 21 22 23 24
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined
from search.rules import RulesError, mix, parameters, push_move
from search.scores import ONGOING
from tt_store.native import Integer, Word, as_int, as_word

SUMMARY = (
    "EinStein würfelt nicht!, one die; a position is rows/side/roll, such as the start's; a move is a5b4, a roll 3"
)
PARAMETERS = "3x3 to 6x6"
_TEXT = parameters(__name__) or "5x5"
_FOUND = re.fullmatch(r"([3-6])x\1", _TEXT)
if _FOUND is None:
    raise RulesError(f"a board of EinStein is 3x3, 4x4, 5x5 or 6x6, not {_TEXT!r}")
SIZE = int(_FOUND[1])
CELLS = SIZE * SIZE
GOAL = CELLS - 1
TRIANGLE = (SIZE + 1) // 2
"""Cells along an edge of the corner where a side begins."""
STONES = TRIANGLE * (TRIANGLE + 1) // 2
"""Of a side; the die has as many faces."""

WEIGHT_SUM = STONES
VALUE_BOUND = 23_328
"""A win. It is 3 * 6^5: five rolls in a row lose nothing by rounding."""
MAX_MOVES = 6

_CELL_BITS = 6
_CELL_MASK = (1 << _CELL_BITS) - 1
GONE = _CELL_MASK
"""The cell of a captured stone."""
_DIE_SHIFT = 40
_STONE_SHIFT = 2
"""A move is the stone's number and, below, its step: along the row, along the column, both."""
_WIN_RANK, _CAPTURE_RANK = 1 << 12, 24
_FARTHEST = 6
"""The promise of a stone doubles with each cell that it comes nearer."""
_PROMISE_WEIGHT = 600 // STONES

ONE = np.uint64(1)
NOTHING = np.uint64(0)
CELL = np.uint64(_CELL_MASK)


class Position(NamedTuple):
    """The stones of the side to move and of the other, each in its own frame."""

    own: np.uint64
    """The cells of stones 1, 2, ..., six bits each, from the lowest."""
    own_mask: np.uint64
    """The same as a bitboard."""
    other: np.uint64
    other_mask: np.uint64
    side: np.int64
    """0 if Red is to move."""
    die: np.int64
    """What was rolled, 0 before."""


@inlined
def _cell_of(stones: Word, stone: Integer) -> Integer:
    """Return the cell of a stone, by its number from 1; `GONE` if it is captured."""
    return as_int(stones >> as_word(_CELL_BITS * (stone - 1)) & CELL)


@inlined
def _step(move: int) -> Integer:
    """Return by how much a move's stone goes up in numbers."""
    kind = move & 3
    return 1 if kind == 0 else SIZE if kind == 1 else SIZE + 1


@helper
def _push_steps(cell: Integer, stone: Integer, end: int) -> int:
    """Push the moves of a stone."""
    has_column, has_row = cell % SIZE < SIZE - 1, cell < CELLS - SIZE
    if has_column and has_row:
        end = push_move(end, stone << _STONE_SHIFT | 2)
    if has_column:
        end = push_move(end, stone << _STONE_SHIFT)
    if has_row:
        end = push_move(end, stone << _STONE_SHIFT | 1)
    return end


@helper
def moves(position: Position, end: int) -> int:
    """Push the rolls, or the steps of the stone that was rolled or of its next neighbours."""
    if position.die == 0:
        for face in range(STONES):
            end = push_move(end, face + 1)
        return end
    cell = _cell_of(position.own, position.die)
    if cell != GONE:
        return _push_steps(cell, position.die, end)
    for direction in (-1, 1):
        stone = position.die + direction
        while 1 <= stone <= STONES and _cell_of(position.own, stone) == GONE:
            stone += direction
        if 1 <= stone <= STONES:
            end = _push_steps(_cell_of(position.own, stone), stone, end)
    return end


@helper
def _without(stones: Word, cell: int) -> Word:
    """Take the stone of a cell off."""
    for stone in range(1, STONES + 1):
        if _cell_of(stones, stone) == cell:
            return stones | CELL << as_word(_CELL_BITS * (stone - 1))
    return stones


@inlined
def play(position: Position, move: int) -> Position:
    """Roll, or move a stone and give the die to the other side."""
    own, own_mask, other, other_mask = position.own, position.own_mask, position.other, position.other_mask
    side, die = position.side, np.int64(move)
    if position.die != 0:
        stone = move >> _STONE_SHIFT
        shift = as_word(_CELL_BITS * (stone - 1))
        cell = _cell_of(own, stone)
        target = cell + _step(move)
        there, across = ONE << as_word(target), ONE << as_word(GOAL - target)
        if own_mask & there != NOTHING:
            own = _without(own, target)
        if other_mask & across != NOTHING:
            other = _without(other, GOAL - target)
        moved = own ^ as_word(cell ^ target) << shift
        moved_mask = (own_mask & ~(ONE << as_word(cell))) | there
        own, own_mask, other, other_mask = other, other_mask & ~across, moved, moved_mask
        side, die = 1 - side, np.int64(0)
    return Position(own, own_mask, other, other_mask, side, die)


@helper
def is_chance(position: Position) -> int:
    """Tell whether the die is to be rolled."""
    return 1 if position.die == 0 else 0


@helper
def weight(position: Position, move: int) -> int:
    """Return 1: the die is fair."""
    return 1


@helper
def side_to_move(position: Position) -> int:
    """Return who rolls, or has rolled."""
    return int(position.side)


@helper
def outcome(position: Position) -> int:
    """Tell whether the other side, which has just moved, is in its corner, or has captured all."""
    is_lost = position.other_mask >> np.uint64(GOAL) != NOTHING or position.own_mask == NOTHING
    return -VALUE_BOUND if is_lost else ONGOING


@helper
def key(position: Position) -> Word:
    """Hash stones, die and side."""
    roll = as_word(2 * position.die + position.side)
    return mix(position.own ^ mix(position.other | roll << np.uint64(_DIE_SHIFT)))


@inlined
def _promise(cell: int) -> Integer:
    """Return what a stone is worth by its distance from the goal, 0 if it is gone; in it, as if one step before."""
    nearest = min(cell // SIZE, cell % SIZE, SIZE - 2)
    return 1 << (_FARTHEST - (SIZE - 1) + nearest) if cell != GONE else 0


@helper
def _standing(stones: Word) -> int:
    """Return the sum over the faces of the die of the best stone that each allows to move."""
    total, lower, gap = 0, 0, 0
    for stone in range(1, STONES + 1):
        promise = _promise(_cell_of(stones, stone))
        if promise == 0:
            gap += 1
        else:
            total += promise + gap * max(lower, promise)
            lower, gap = promise, 0
    return total + gap * lower


@helper
def evaluate(position: Position) -> int:
    """Estimate by how near the stones are that the die may move."""
    return (_standing(position.own) - _standing(position.other)) * _PROMISE_WEIGHT


@helper
def order(position: Position, move: int) -> int:
    """Rank winning moves first, then captures and those that come nearer."""
    cell = _cell_of(position.own, move >> _STONE_SHIFT)
    target = cell + _step(move)
    rank = _promise(target) - _promise(cell)
    if target == GOAL:
        rank += _WIN_RANK
    if position.other_mask >> as_word(GOAL - target) & ONE != NOTHING:
        rank += _CAPTURE_RANK + _promise(GOAL - target)
    if position.own_mask >> as_word(target) & ONE != NOTHING:
        rank -= _CAPTURE_RANK
    return int(rank)


def parse(text: str) -> Position:
    """Return the position of a text; RulesError where it is none, or the game would have ended before."""
    words = text.split()
    if len(words) != 3 or words[1] not in ("r", "b") or not re.fullmatch(rf"-|[1-{STONES}]", words[2]):
        raise RulesError(f"the position {text!r} must be a board, r or b, and a roll from 1 to {STONES} or -: {START}")
    rows = words[0].split("/")
    if [len(row) for row in rows] != [SIZE] * SIZE:
        raise RulesError(f"the board {words[0]!r} must have {SIZE} rows of {SIZE} cells, parted by /")
    cells = "".join(rows)
    red, blue = _STONE_LETTERS.upper(), _STONE_LETTERS
    for letter in cells:
        if letter not in f"{red}{blue}.":
            raise RulesError(f"a cell of {words[0]!r} is {letter!r}: it must be {red}, {blue} or . for an empty one")
        if letter != "." and cells.count(letter) > 1:
            raise RulesError(f"the stone {letter!r} stands on {cells.count(letter)} cells of {words[0]!r}")
    stones = [_packed(cells, red), _packed(cells[::-1], blue)]
    side = 0 if words[1] == "r" else 1
    (own, own_mask), (other, other_mask) = stones[side], stones[1 - side]
    if own_mask >> GOAL & 1 or not other_mask or (words[2] != "-" and (other_mask >> GOAL & 1 or not own_mask)):
        raise RulesError(f"the position {text!r} cannot come up: the game was over before")
    die = 0 if words[2] == "-" else int(words[2])
    mine, others = (np.uint64(own), np.uint64(own_mask)), (np.uint64(other), np.uint64(other_mask))
    return Position(*mine, *others, np.int64(side), np.int64(die))


def _packed(cells: str, letters: str) -> tuple[int, int]:
    """Return the stones of a side, whose frame the cells are in, and their bitboard."""
    places = [cells.find(letter) for letter in letters]
    stones = sum((GONE if place < 0 else place) << _CELL_BITS * index for index, place in enumerate(places))
    return stones, sum(1 << place for place in places if place >= 0)


def text(position: Position) -> str:
    """Return board, side and roll."""
    cells = ["."] * CELLS
    red, blue = (position.own, position.other) if position.side == 0 else (position.other, position.own)
    for index, letter in enumerate(_STONE_LETTERS):
        place, across = _place_of(red, index + 1), _place_of(blue, index + 1)
        if place != GONE:
            cells[place] = letter.upper()
        if across != GONE:
            cells[GOAL - across] = letter
    rows = ("".join(cells[begin : begin + SIZE]) for begin in range(0, CELLS, SIZE))
    return f"{'/'.join(rows)} {'rb'[int(position.side)]} {position.die or '-'}"


def _place_of(stones: np.uint64, stone: int) -> int:
    """Return the cell of a stone: the plain twin of `_cell_of`."""
    return int(stones) >> _CELL_BITS * (stone - 1) & _CELL_MASK


def _name(cell: int, side: int) -> str:
    """Return the name of a cell, which a side counts in its frame."""
    row, column = divmod(cell if side == 0 else GOAL - cell, SIZE)
    return f"{'abcdef'[column]}{SIZE - row}"


def move_text(position: Position, move: int) -> str:
    """Return a roll's number, or the two cells of a move."""
    if position.die == 0:
        return str(move)
    cell = _place_of(position.own, move >> _STONE_SHIFT)
    step = (1, SIZE, SIZE + 1)[move & 3]
    return _name(cell, int(position.side)) + _name(cell + step, int(position.side))


def parse_move(position: Position, text: str) -> int:
    """Return the roll of a number, or the move between two cells, which may be parted by ``-`` or ``x``."""
    if position.die == 0:
        if not re.fullmatch(rf"[1-{STONES}]", text):
            raise RulesError(f"{text!r} is no roll: the die is to be rolled, and shows 1 to {STONES}")
        return int(text)
    cells = re.sub(r"(?<=\d)[-x]", "", text.lower())
    for stone in range(1, STONES + 1):
        for step in range(3):
            move = stone << _STONE_SHIFT | step
            cell = _place_of(position.own, stone)
            if cell != GONE and move_text(position, move) == cells:
                return move
    raise RulesError(f"{text!r} is no move: a stone goes from one cell to the next, such as a{SIZE}b{SIZE - 1}")


def plies_left(position: Position) -> int:
    """Return how many steps all stones together have to their corners, a move of a player being one at least."""
    places = [_place_of(stones, n) for stones in (position.own, position.other) for n in range(1, STONES + 1)]
    return sum(2 * (SIZE - 1) - sum(divmod(place, SIZE)) for place in places if place != GONE)


def score_text(position: Position, score: int, is_solved: bool) -> str:
    """Return the expected value, +1 for a win and -1 for a loss; ~ marks an estimate."""
    if abs(score) == VALUE_BOUND:
        return "won" if score > 0 else "lost"
    return f"{'' if is_solved else '~'}{score / VALUE_BOUND:+.4f}"


def mirror(position: Position) -> Position:
    """Return the position with rows and columns exchanged: of equal value."""
    (own, own_mask), (other, other_mask) = _transposed(position.own), _transposed(position.other)
    return Position(own, own_mask, other, other_mask, position.side, position.die)


def _transposed(stones: np.uint64) -> tuple[np.uint64, np.uint64]:
    turned, mask = 0, 0
    for index in range(STONES):
        place = _place_of(stones, index + 1)
        if place != GONE:
            row, column = divmod(place, SIZE)
            place = column * SIZE + row
            mask |= 1 << place
        turned |= place << _CELL_BITS * index
    return np.uint64(turned), np.uint64(mask)


def swap_sides(position: Position) -> Position:
    """Return the same board and roll with the other side to move."""
    side = np.int64(1 - position.side)
    return Position(position.other, position.other_mask, position.own, position.own_mask, side, position.die)


def _start() -> str:
    """Return the text of the usual first position: numbers along the rows of each triangle."""
    cells, number = ["."] * CELLS, 0
    for row in range(TRIANGLE):
        for column in range(TRIANGLE - row):
            cell = row * SIZE + column
            cells[cell], cells[GOAL - cell] = _STONE_LETTERS[number].upper(), _STONE_LETTERS[number]
            number += 1
    return "/".join("".join(cells[begin : begin + SIZE]) for begin in range(0, CELLS, SIZE)) + " r -"


_STONE_LETTERS = "abcdef"[:STONES]
START = _start()
