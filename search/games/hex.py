"""Hex on an 11x11 board, or on another one from 2 to 13 such as ``hex:7``: who joins two opposite edges wins.

The board is a rhombus of cells with six neighbours each, columns are letters and rows numbers (here 4x4)::

        a   b   c   d
      1   .   .   .   .            a cell's neighbours:      N  NE
        2   .   .   .   .                                  W  *  E
          3   .   .   .   .                                  SW  S
            4   .   .   .   .

The first player joins the top row to the bottom row, the second one column ``a`` to the last column. There is no swap.
A full board is won by exactly one of them (Nash), so no game is drawn. A move is its cell, row by row, from 1; a
position's text is the moves played, such as ``d4e3``.

A board takes up to three words, cell 0 being the lowest bit. Whether stones join two edges is found by growing the
ones at the first edge, all cells at once, in an integer that is as wide as the board.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from search.jit import helper, inlined
from search.random_stream import draw
from search.rules import RulesError, mix, parameters, push_move
from search.scores import MATE, ONGOING
from tt_store.lanes import join_words
from tt_store.layout import WORD_BYTES
from tt_store.native import Integer, Word, as_word, read_int, trailing_zeros, word_primitive, write_int

SUMMARY = "Hex, 11x11 without swap; a position is the moves played, such as f6e8"
PARAMETERS = "the size of another board, 2 to 13, such as 7 or 7x7"
START = ""
ALGORITHM = "mcts"
_SMALLEST, _LARGEST = 2, 13


def _size(text: str) -> int:
    """Return the side of the board that a text such as ``7`` or ``7x7`` means; RulesError where there is no such."""
    side, _, other = text.partition("x")
    if side.isascii() and side.isdecimal() and len(side) <= 2 and other in ("", side):
        size = int(side)
        if _SMALLEST <= size <= _LARGEST:
            return size
    raise RulesError(f"a board of Hex is a size from {_SMALLEST} to {_LARGEST}, such as 7 or 7x7, not {text!r}")


SIZE = _size(parameters(__name__) or "11")
CELLS = SIZE * SIZE
MAX_MOVES = CELLS
HISTORY_SIZE = CELLS
WORDS = -(-CELLS // 64)
"""Words of a board that are in use."""

NOTHING, ONE = np.uint64(0), np.uint64(1)
STONE_UNITS = 100
"""The estimate counts in hundredths of a stone."""
TEMPO = 50
"""What it is worth to be on the move."""

_BOARD = (1 << CELLS) - 1
_TOP = (1 << SIZE) - 1
_BOTTOM = _TOP << SIZE * (SIZE - 1)
_LEFT = sum(1 << SIZE * row for row in range(SIZE))
_RIGHT = _LEFT << SIZE - 1
_EDGES = ((_TOP, _BOTTOM), (_LEFT, _RIGHT))
"""Of each player, the first one's before: where the stones begin, and what they are to reach."""
_WORD_MASKS = tuple(np.uint64(_BOARD >> 64 * word & (1 << 64) - 1) for word in range(3))
_FAR = 2 * CELLS


class Position(NamedTuple):
    """The stones of both players, three words each, and who is to move."""

    first0: np.uint64
    first1: np.uint64
    first2: np.uint64
    second0: np.uint64
    second1: np.uint64
    second2: np.uint64
    turn: np.int64
    """0 for the first player, 1 for the second."""


def spread(cells: int) -> int:
    """Return cells and their neighbours, on Python's integers; some may lie beyond the board."""
    inner, outer = cells & ~_LEFT, cells & ~_RIGHT
    row = cells | inner >> 1 | outer << 1
    return row | cells << SIZE | cells >> SIZE | inner << SIZE - 1 | outer >> SIZE - 1


def stones_needed(stones: int, free: int, player: int) -> int:
    """Return how many more stones on free cells a player needs to join his edges, on Python's integers.

    Parameters
    ----------
    stones, free
        His stones, and the cells that are empty.
    player
        0 or 1.

    Returns
    -------
    int
        0 if they are joined, more than any board has cells if they cannot be.
    """
    start, goal = _EDGES[player]
    reached, needed = start & stones, 0
    while not reached & goal:
        grown = reached | spread(reached) & stones
        if grown == reached:
            needed += 1
            grown |= (spread(reached) | start) & free
            if grown == reached:
                return _FAR
        reached = grown
    return needed


def _emit_spread(builder: Any, cells: Any) -> Any:
    wide = cells.type
    inner, outer = builder.and_(cells, wide(_BOARD & ~_LEFT)), builder.and_(cells, wide(_BOARD & ~_RIGHT))
    forth, back = (wide(SIZE), wide(1), wide(SIZE - 1)), (wide(SIZE), wide(1), wide(SIZE - 1))
    up = [builder.shl(each, step) for each, step in zip((cells, outer, inner), forth, strict=True)]
    down = [builder.lshr(each, step) for each, step in zip((cells, inner, outer), back, strict=True)]
    for part in (*up, *down):
        cells = builder.or_(cells, part)
    return cells


def _emit_joins(player: int) -> Any:
    """Return an emitter of whether stones join a player's edges: 1 or 0."""
    start, goal = _EDGES[player]

    def emit(builder: Any, *words: Any) -> Any:
        stones = join_words(builder, words[:WORDS])
        wide = stones.type
        before, grow, after = (builder.block, *(builder.append_basic_block(name) for name in ("grow", "joined")))
        seed = builder.and_(stones, wide(start))
        builder.branch(grow)
        builder.position_at_end(grow)
        reached = builder.phi(wide)
        # Two steps at a time: the test of the end costs as much as a step.
        once = builder.and_(_emit_spread(builder, reached), stones)
        twice = builder.and_(_emit_spread(builder, once), stones)
        is_joined = builder.icmp_unsigned("!=", builder.and_(twice, wide(goal)), wide(0))
        is_done = builder.or_(is_joined, builder.icmp_unsigned("==", twice, reached))
        reached.add_incoming(seed, before)
        reached.add_incoming(twice, grow)
        builder.cbranch(is_done, after, grow)
        builder.position_at_end(after)
        return builder.zext(is_joined, words[0].type)

    return emit


def _emit_needed(player: int) -> Any:
    """Return an emitter of `stones_needed` of a player."""
    start, goal = _EDGES[player]

    def emit(builder: Any, *words: Any) -> Any:
        stones, free = join_words(builder, words[:WORDS]), join_words(builder, words[3 : 3 + WORDS])
        wide, word = stones.type, words[0].type
        blocks = (builder.append_basic_block(name) for name in ("look", "grow", "step", "found"))
        before, (look, grow, step, found) = builder.block, blocks
        seed = builder.and_(stones, wide(start))
        builder.branch(look)

        builder.position_at_end(look)
        reached, needed = builder.phi(wide), builder.phi(word)
        is_joined = builder.icmp_unsigned("!=", builder.and_(reached, wide(goal)), wide(0))
        builder.cbranch(is_joined, found, grow)

        builder.position_at_end(grow)
        around = _emit_spread(builder, reached)
        grown = builder.or_(reached, builder.and_(around, stones))
        builder.cbranch(builder.icmp_unsigned("==", grown, reached), step, look)

        builder.position_at_end(step)
        entered = builder.and_(builder.or_(around, wide(start)), free)
        further = builder.or_(reached, entered)
        is_shut = builder.icmp_unsigned("==", further, reached)
        one_more = builder.add(needed, word(1))
        builder.cbranch(is_shut, found, look)

        for value, count, block in ((seed, word(0), before), (grown, needed, grow), (further, one_more, step)):
            reached.add_incoming(value, block)
            needed.add_incoming(count, block)
        builder.position_at_end(found)
        result = builder.phi(word)
        result.add_incoming(needed, look)
        result.add_incoming(word(_FAR), step)
        return result

    return emit


def _whole(words: tuple[Any, ...]) -> int:
    """Return the board of some words as one of Python's integers."""
    return sum(int(word) << 64 * index for index, word in enumerate(words))


@word_primitive(_emit_joins(0), 3)
def first_joins(low: Word, middle: Word, high: Word) -> Word:
    """Return 1 if stones join the top to the bottom, else 0."""
    return np.uint64(stones_needed(_whole((low, middle, high)), 0, 0) == 0)


@word_primitive(_emit_joins(1), 3)
def second_joins(low: Word, middle: Word, high: Word) -> Word:
    """Return 1 if stones join the left to the right, else 0."""
    return np.uint64(stones_needed(_whole((low, middle, high)), 0, 1) == 0)


@word_primitive(_emit_needed(0), 6)
def _first_needs(stones0: Word, stones1: Word, stones2: Word, free0: Word, free1: Word, free2: Word) -> Word:
    return np.uint64(stones_needed(_whole((stones0, stones1, stones2)), _whole((free0, free1, free2)), 0))


@word_primitive(_emit_needed(1), 6)
def _second_needs(stones0: Word, stones1: Word, stones2: Word, free0: Word, free1: Word, free2: Word) -> Word:
    return np.uint64(stones_needed(_whole((stones0, stones1, stones2)), _whole((free0, free1, free2)), 1))


@helper
def _push_cells(cells: Word, offset: int, end: int) -> int:
    while cells != NOTHING:
        end = push_move(end, offset + trailing_zeros(cells) + 1)
        cells &= cells - ONE
    return end


@helper
def moves(position: Position, end: int) -> int:
    """Push the empty cells, row by row."""
    end = _push_cells(_WORD_MASKS[0] & ~(position.first0 | position.second0), 0, end)
    if WORDS > 1:
        end = _push_cells(_WORD_MASKS[1] & ~(position.first1 | position.second1), 64, end)
    if WORDS > 2:
        end = _push_cells(_WORD_MASKS[2] & ~(position.first2 | position.second2), 128, end)
    return end


@inlined
def _stone(cell: int, word: int) -> Word:
    """Return the bit of a cell in one of the words of a board."""
    return ONE << as_word(cell & 63) if cell >> 6 == word else NOTHING


@inlined
def play(position: Position, move: int) -> Position:
    """Put a stone on a cell."""
    cell = move - 1
    stone0, stone1, stone2 = _stone(cell, 0), _stone(cell, 1), _stone(cell, 2)
    first0, first1, first2, second0, second1, second2, turn = position
    if turn == 0:
        return Position(first0 | stone0, first1 | stone1, first2 | stone2, second0, second1, second2, 1 - turn)
    return Position(first0, first1, first2, second0 | stone0, second1 | stone1, second2 | stone2, 1 - turn)


@helper
def outcome(position: Position) -> int:
    """Tell whether the last stone has joined two edges."""
    if position.turn == 0:
        is_joined = second_joins(position.second0, position.second1, position.second2)
    else:
        is_joined = first_joins(position.first0, position.first1, position.first2)
    return -MATE if is_joined == ONE else ONGOING


@helper
def key(position: Position) -> Word:
    """Hash both players' stones, whose numbers say who is to move."""
    hashed = mix(position.first0 ^ mix(position.second0 + ONE))
    if WORDS > 1:
        hashed = mix(position.first1 ^ mix(position.second1 + hashed))
    if WORDS > 2:
        hashed = mix(position.first2 ^ mix(position.second2 + hashed))
    return hashed


@helper
def evaluate(position: Position) -> int:
    """Estimate by how many more stones each player needs, if the other one passes all the while."""
    first0, first1, first2, second0, second1, second2, turn = position
    free0 = _WORD_MASKS[0] & ~(first0 | second0)
    free1 = _WORD_MASKS[1] & ~(first1 | second1)
    free2 = _WORD_MASKS[2] & ~(first2 | second2)
    first = np.int64(_first_needs(first0, first1, first2, free0, free1, free2))
    second = np.int64(_second_needs(second0, second1, second2, free0, free1, free2))
    lead: Integer = second - first if turn == 0 else first - second
    return int(STONE_UNITS * lead + TEMPO)


@helper
def order(position: Position, move: int) -> int:
    """Return how near to the centre a cell is: 0 or less."""
    row, column = (move - 1) // SIZE, (move - 1) % SIZE
    down, right = 2 * row - (SIZE - 1), 2 * column - (SIZE - 1)
    return -max(abs(down), abs(right), abs(down + right))


@helper
def move_slot(position: Position, move: int) -> int:
    """Return the cell."""
    return move - 1


@helper
def playout(position: Position, random: int, room: int) -> int:
    """Fill the board at random and see who has won: more stones change nothing once two edges are joined."""
    free = (moves(position, room) - room) // WORD_BYTES
    first0, first1, first2 = position.first0, position.first1, position.first2
    stones = (free + 1 - position.turn) // 2
    for index in range(stones):
        # The first player's share, drawn without putting back; the second one's are the cells that are left.
        drawn = room + (index + draw(random, free - index)) * WORD_BYTES
        cell = read_int(drawn) - 1
        write_int(drawn, read_int(room + index * WORD_BYTES))
        first0 |= _stone(cell, 0)
        if WORDS > 1:
            first1 |= _stone(cell, 1)
        if WORDS > 2:
            first2 |= _stone(cell, 2)
    has_first_won = 1 if first_joins(first0, first1, first2) == ONE else 0
    return 1 if has_first_won != position.turn else -1


_MOVE = re.compile(r"([a-z])([1-9][0-9]?)", re.ASCII)


def _cell(text: str) -> int | None:
    """Return the cell that a text names, None if there is no such."""
    found = _MOVE.fullmatch(text.lower())
    if found is None:
        return None
    column, row = ord(found[1]) - ord("a"), int(found[2]) - 1
    return SIZE * row + column if max(column, row) < SIZE else None


def parse(text: str) -> Position:
    """Return the position after some moves; RulesError where a move is none, taken, or too late."""
    boards = [0, 0]
    texts = re.findall(r"[a-zA-Z][0-9]*|[^a-zA-Z\s,]+", text)
    for number, word in enumerate(texts, 1):
        where = f"stone {number} of {text!r}"
        cell = _cell(word)
        if cell is None:
            raise RulesError(f"{where}, {word!r}, is no cell of this board: cells are a1 to {_text(CELLS - 1)}")
        if stones_needed(boards[number % 2], 0, number % 2) == 0:
            raise RulesError(f"{where} comes too late: the game was won by the stone before it")
        if (boards[0] | boards[1]) >> cell & 1:
            raise RulesError(f"{where}, {word}, lies on another stone")
        boards[1 - number % 2] |= 1 << cell
    return _position(boards, len(texts) % 2)


def _position(boards: Iterable[int], turn: int) -> Position:
    """Return the position of both players' stones, given as Python's integers."""
    words = (np.uint64(board >> 64 * word & (1 << 64) - 1) for board in boards for word in range(3))
    return Position._make((*words, np.int64(turn)))


def boards_of(position: Position) -> tuple[int, int]:
    """Return the stones of both players as Python's integers."""
    return _whole(position[:3]), _whole(position[3:6])


def text(position: Position) -> str:
    """Return moves that lead to a position, row by row, the one that has won it last; ``start`` for the empty board."""
    stones = [[cell for cell in range(CELLS) if board >> cell & 1] for board in boards_of(position)]
    last = 1 - int(position.turn)
    board = boards_of(position)[last]
    if stones_needed(board, 0, last) == 0:
        # Of a game that was won by its last stone, some stone has won it.
        stones[last].sort(key=lambda cell: stones_needed(board & ~(1 << cell), 0, last) != 0)
    turns = [stones[number % 2][number // 2] for number in range(sum(map(len, stones)))]
    return "".join(map(_text, turns)) or "start"


def _text(cell: int) -> str:
    return f"{chr(ord('a') + cell % SIZE)}{cell // SIZE + 1}"


def move_text(position: Position, move: int) -> str:
    """Return a cell's column and row."""
    return _text(move - 1)


def parse_move(position: Position, text: str) -> int:
    """Return the cell that a text names."""
    cell = _cell(text)
    if cell is None:
        raise RulesError(f"{text!r} is no move: cells are a1 to {_text(CELLS - 1)}")
    return cell + 1


def plies_left(position: Position) -> int:
    """Return the number of empty cells."""
    return CELLS - sum(board.bit_count() for board in boards_of(position))


def mirror(position: Position) -> Position:
    """Return the board turned by half: of equal value."""
    turned = (int(format(board, f"0{CELLS}b")[::-1], 2) for board in boards_of(position))
    return _position(turned, int(position.turn))
