"""Kalah: six pits and a store a side; whoever has more seeds in the end wins, and the difference is the score.

Each side's pits and store are the bytes of one word; sowing goes round, past the opponent's store::

      other    5 4 3 2 1 0          north's pits  6 5 4 3 2 1
      store  6             6 store                              pits of south, below, run the other way:
      own      0 1 2 3 4 5          south's pits  1 2 3 4 5 6   pit 1 of south faces pit 6 of north

Rules, for any number of seeds up to `MAX_SEEDS` in all (usually four a pit):

- A move takes all seeds of one own pit and sows them singly into the following pits, the own store included, the
  opponent's left out; thirteen seeds or more come round to the pit that they started from.
- If the last seed falls into the own store, the same side moves again.
- If it falls into an own pit that was empty, and the pit that faces it then holds seeds, both pits' seeds go to the
  own store.
- If after a move the pits of one side (no matter which) are all empty, the game is over, and the seeds of the other
  side's pits count for the other side.

The final score is the difference of the seeds that the sides hold, so 0 is a draw, and no score is a mate. A move is
a pit, 1..6, counted by its owner. A position's text is south's pits and store, north's pits and store, and who is to
move: ``4,4,4,4,4,4,0/4,4,4,4,4,4,0 s``; ``start`` is this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined
from search.rules import RulesError, mix, push_move
from search.scores import ONGOING
from tt_store.native import Word, as_int, as_word

SUMMARY = "Kalah(6,4), extra turns; a position is south/north side, as 4,4,4,4,4,4,0/4,4,4,4,4,4,0 s; a move is a pit"
PITS = 6
STORE = PITS
MAX_MOVES = PITS
START = "4,4,4,4,4,4,0/4,4,4,4,4,4,0 s"
MAX_SEEDS = 255
"""In all: no byte can then overflow."""
HISTORY_SIZE = 2 * PITS
EXTRA_TURN_WORTH = 2
"""In seeds, for the ordering of moves."""

_BYTE_BITS = 8
_CELLS = 2 * PITS + 1
"""Cells of one round: all but the opponent's store."""

SEED = np.uint64(1)
NOTHING = np.uint64(0)
PIT = np.uint64(0xFF)
ALL_PITS = np.uint64((1 << _BYTE_BITS * PITS) - 1)
EACH_BYTE = np.uint64(0x0101_0101_0101_0101)
TOP_BYTE = np.uint64(56)
SIDE_MARK = np.uint64(0x9E3779B97F4A7C15)


class Position(NamedTuple):
    """Seeds of the side to move and of the other one, and who is to move."""

    own: np.uint64
    other: np.uint64
    side: np.int64
    """0 if south is to move, 1 if north."""


@inlined
def _seeds(word: Word, pit: int) -> int:
    """Return the seeds of a pit, 0..5, or of the store, 6."""
    return as_int(word >> np.uint64(_BYTE_BITS * pit) & PIT)


@inlined
def _pit(pit: int, seeds: int) -> Word:
    """Return the word of so many seeds in one pit."""
    return as_word(seeds) << np.uint64(_BYTE_BITS * pit)


@inlined
def _sum(word: Word) -> int:
    """Return the seeds of all bytes together, at most 255."""
    return as_int(word * EACH_BYTE >> TOP_BYTE)


@helper
def moves(position: Position, end: int) -> int:
    """Push the pits that hold seeds, the one next to the store first."""
    for pit in range(PITS - 1, -1, -1):
        if _seeds(position.own, pit) > 0:
            end = push_move(end, pit + 1)
    return end


@inlined
def play(position: Position, move: int) -> Position:
    """Sow a pit, capture, and change the side unless the last seed fell into the store."""
    cell = move - 1
    seeds = _seeds(position.own, cell)
    own = position.own & ~(PIT << np.uint64(_BYTE_BITS * cell))
    other = position.other
    for _ in range(seeds):
        cell = cell + 1 if cell < _CELLS - 1 else 0
        if cell <= STORE:
            own += SEED << np.uint64(_BYTE_BITS * cell)
        else:
            other += SEED << np.uint64(_BYTE_BITS * (cell - STORE - 1))
    if cell < STORE and _seeds(own, cell) == 1:
        facing = PITS - 1 - cell
        caught = _seeds(other, facing)
        if caught > 0:
            other -= _pit(facing, caught)
            own = own - _pit(cell, 1) + _pit(STORE, caught + 1)
    mover, waiting, side = other, own, 1 - position.side
    if cell == STORE:
        mover, waiting, side = own, other, position.side
    return Position(mover, waiting, side)


@helper
def outcome(position: Position) -> int:
    """Return the difference of the seeds once one side's pits are empty."""
    if position.own & ALL_PITS == NOTHING or position.other & ALL_PITS == NOTHING:
        return _sum(position.own) - _sum(position.other)
    return ONGOING


@helper
def key(position: Position) -> Word:
    """Hash both sides' seeds and who is to move: contempt makes the sides differ."""
    return mix(position.own + mix(position.other + SIDE_MARK * as_word(position.side + 1)))


@helper
def evaluate(position: Position) -> int:
    """Estimate by the difference of the stores."""
    return _seeds(position.own, STORE) - _seeds(position.other, STORE)


@helper
def order(position: Position, move: int) -> int:
    """Estimate a move by the seeds that it brings home, and by an extra turn."""
    child = play(position, move)
    before = _seeds(position.own, STORE)
    if child.side == position.side:
        return _seeds(child.own, STORE) - before + EXTRA_TURN_WORTH
    return _seeds(child.other, STORE) - before


@helper
def move_slot(position: Position, move: int) -> int:
    """Return the pit's place in the history, for each side its own."""
    return int(position.side) * PITS + move - 1


@helper
def side_to_move(position: Position) -> int:
    """Return who is to move: the last seed in the store earns another turn."""
    return int(position.side)


def parse(text: str) -> Position:
    """Return the position of a text; RulesError with one sentence where it is none."""
    board, _, mover = text.partition(" ")
    if mover not in ("s", "n"):
        raise RulesError(f"the position {text!r} must end with who is to move, s or n, such as {START}")
    sides = board.split("/")
    if len(sides) != 2:
        raise RulesError(f"the board {board!r} has {len(sides)} sides: it needs south's and north's, such as {START}")
    south, north = (_parse_side(name, side) for name, side in zip(("south", "north"), sides, strict=True))
    total = sum(south) + sum(north)
    if total > MAX_SEEDS:
        raise RulesError(f"the board {board!r} has {total} seeds: there may be at most {MAX_SEEDS} in all")
    own, other = (south, north) if mover == "s" else (north, south)
    return Position(_packed(own), _packed(other), np.int64(mover == "n"))


def _parse_side(name: str, side: str) -> list[int]:
    counts = side.split(",")
    if len(counts) != PITS + 1:
        raise RulesError(f"{name}'s side {side!r} has {len(counts)} numbers: it needs {PITS} pits and the store")
    for index, count in enumerate(counts):
        place = f"pit {index + 1}" if index < PITS else "store"
        if not (count.isascii() and count.isdecimal() and len(count) <= 3 and int(count) <= MAX_SEEDS):
            raise RulesError(f"{name}'s {place} is {count!r}: it must be a number from 0 to {MAX_SEEDS}")
    return [int(count) for count in counts]


def _packed(counts: list[int]) -> np.uint64:
    return np.uint64(sum(count << _BYTE_BITS * place for place, count in enumerate(counts)))


def _unpacked(word: np.uint64) -> list[int]:
    return [int(word) >> _BYTE_BITS * place & 0xFF for place in range(PITS + 1)]


def text(position: Position) -> str:
    """Return south's side, north's side, and who is to move."""
    own, other = (",".join(map(str, _unpacked(word))) for word in (position.own, position.other))
    return f"{own}/{other} s" if position.side == 0 else f"{other}/{own} n"


def move_text(position: Position, move: int) -> str:
    """Return the pit's digit."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the pit that a digit names."""
    if len(text) != 1 or not "1" <= text <= str(PITS):
        raise RulesError(f"{text!r} is no move: a pit is a digit from 1 to {PITS}")
    return int(text)


def plies_left(position: Position) -> int:
    """Return an upper bound: a move either brings a seed home, or pushes seeds on within their row, of five steps."""
    left = sum(sum(_unpacked(word)[:PITS]) for word in (position.own, position.other))
    # With n seeds in the pits, at most (PITS - 1) * n moves push on before one of them comes home.
    return sum((PITS - 1) * seeds + 1 for seeds in range(1, left + 1))


def mirror(position: Position) -> Position:
    """Return the board turned round, with the other side to move: of equal value for the side to move."""
    return position._replace(side=np.int64(1 - position.side))


def swap_sides(position: Position) -> Position:
    """Return the same board with the other side to move."""
    return Position(position.other, position.own, np.int64(1 - position.side))
