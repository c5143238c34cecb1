"""Connect Four on 7 columns and 6 rows, or on another board such as ``connect_four:6x5``: four in a row wins.

Bitboards (Tromp): a column takes a bit for each of its cells and a guard; on the usual board::

     6 13 20 27 34 41 48   guards
     5 12 19 26 33 40 47   row 6
     4 11 18 25 32 39 46
     3 10 17 24 31 38 45
     2  9 16 23 30 37 44
     1  8 15 22 29 36 43
     0  7 14 21 28 35 42   row 1
     column 1 .. 7

`own` holds the stones of the side to move, `mask` all stones. A move is its column, from 1; a position's text is the
columns played so far, such as ``4453``, with ``start`` for the empty board.

The search tries no move that lets the opponent win at once, and first those that make most threats (Pons 2015). The
last plies it leaves to `solve_leaf`, which needs no table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from search.jit import helper, inlined, self_call
from search.rules import RulesError, mix, parameters, push_move
from search.scores import DRAW, MATE, ONGOING, mate_distance
from tt_store.native import Word, count_ones, read_int, write_int

SUMMARY = "Connect Four, 7x6; a position is the columns played, such as 4453; scores as Pascal Pons's"
PARAMETERS = "the columns and rows of another board, such as 6x5"
_WORD_BITS = 63
"""A board takes no more, so that a guard above the last column is left."""


def _size(text: str) -> tuple[int, int]:
    """Return the columns and rows that a text such as ``6x5`` means; RulesError where there is no such board."""
    columns, _, rows = text.partition("x")
    if not (columns.isdecimal() and rows.isdecimal()):
        raise RulesError(f"a board of Connect Four is its columns and rows, such as 6x5, not {text!r}")
    width, height = int(columns), int(rows)
    if not 1 <= width <= 9 or height < 1 or width * (height + 1) > _WORD_BITS:
        raise RulesError(f"a board of {text} does not fit: at most 9 columns, and columns x (rows + 1) <= {_WORD_BITS}")
    return width, height


WIDTH, HEIGHT = _size(parameters(__name__) or "7x6")
MAX_MOVES = WIDTH
START = ""
LATE_PLIES = 12
"""Measured: `solve_leaf` visits more positions than the kernel with its table, but each costs a third as much."""
SOLVE_TABLE_DEPTH = LATE_PLIES + 1
BOUNDED_CELLS = 5
"""With fewer, `solve_leaf` does not ask whether anybody can still make four."""
SHARED_STONES = 20
"""Positions of fewer stones share the table's entries with their mirror images; later hardly both are met."""
_COLUMN_BITS = HEIGHT + 1
_COLUMN = (1 << HEIGHT) - 1
_BOTTOM_ROW = sum(1 << _COLUMN_BITS * column for column in range(WIDTH))

BOTTOM = np.uint64(_BOTTOM_ROW)
BOARD = np.uint64(_BOTTOM_ROW * _COLUMN)
COLUMN = np.uint64(_COLUMN)
ODD_ROWS = np.uint64(_BOTTOM_ROW * sum(1 << row for row in range(0, HEIGHT, 2)))
EVEN_ROWS = np.uint64(_BOTTOM_ROW * sum(1 << row for row in range(1, HEIGHT, 2)))
WHOLE_COLUMN = np.uint64((1 << _COLUMN_BITS) - 1)
"""With its guard."""
ONE = np.uint64(1)
NOTHING = np.uint64(0)

_BY_CENTRALITY = sorted(range(WIDTH), key=lambda column: abs(2 * column + 1 - WIDTH))


def _columns(*columns: int) -> int:
    return sum(_COLUMN << column * _COLUMN_BITS for column in columns)


CENTRE = np.uint64(_columns(*_BY_CENTRALITY[: 2 - WIDTH % 2]))
INNER = np.uint64(_columns(*_BY_CENTRALITY[2 - WIDTH % 2 : 4 - WIDTH % 2]))

# Weights of the estimate, in its own units; checked against exact values in tests/test_connect_four.py.
THREAT, GOOD_THREAT, CENTRE_STONE, INNER_STONE = 12, 16, 4, 2

# Distances of neighbours along a line: vertical, the two diagonals, horizontal.
UP, DOWN_RIGHT, RIGHT, UP_RIGHT = 1, _COLUMN_BITS - 1, _COLUMN_BITS, _COLUMN_BITS + 1

_CENTRE_FIRST = sum(column + 1 << 4 * index for index, column in enumerate(_BY_CENTRALITY))
"""The columns in the order in which they are tried, a hexadecimal digit each, the last one first."""


class Position(NamedTuple):
    """Stones of the side to move, and all stones."""

    own: np.uint64
    mask: np.uint64


@inlined
def _has_four(stones: Word) -> bool:
    pairs = stones & (stones >> np.uint64(RIGHT))
    four = pairs & (pairs >> np.uint64(2 * RIGHT))
    pairs = stones & (stones >> np.uint64(DOWN_RIGHT))
    four |= pairs & (pairs >> np.uint64(2 * DOWN_RIGHT))
    pairs = stones & (stones >> np.uint64(UP_RIGHT))
    four |= pairs & (pairs >> np.uint64(2 * UP_RIGHT))
    pairs = stones & (stones >> np.uint64(UP))
    four |= pairs & (pairs >> np.uint64(2 * UP))
    return bool(four != NOTHING)


@helper
def moves(position: Position, end: int) -> int:
    """Push the columns that are not full, the centre first."""
    for index in range(WIDTH):
        column = _CENTRE_FIRST >> 4 * index & 15
        if (position.mask >> np.uint64(_COLUMN_BITS * (column - 1) + HEIGHT - 1)) & ONE == NOTHING:
            end = push_move(end, column)
    return end


@inlined
def _sound_cells(danger: Word, mask: Word) -> Word:
    """Return the cells where a stone does not let the opponent win at once, who would complete a four at `danger`.

    A stone must go where the opponent would win, and never below such a cell.
    """
    possible = (mask + BOTTOM) & BOARD
    forced = possible & danger
    if forced != NOTHING:
        possible = forced if forced & (forced - ONE) == NOTHING else NOTHING
    return possible & ~(danger >> ONE)


@helper
def sound_moves(position: Position, end: int) -> int:
    """Push the columns after which the opponent cannot win at once, the centre first; we cannot win at once either."""
    possible = _sound_cells(threats(position.own ^ position.mask, position.mask), position.mask)
    for index in range(WIDTH):
        column = _CENTRE_FIRST >> 4 * index & 15
        if possible & (COLUMN << np.uint64(_COLUMN_BITS * (column - 1))) != NOTHING:
            end = push_move(end, column)
    return end


@helper
def order(position: Position, move: int) -> int:
    """Return how many cells would complete a four of ours after a move."""
    column = COLUMN << np.uint64(_COLUMN_BITS * (move - 1))
    stone = (position.mask + BOTTOM) & column
    return count_ones(threats(position.own | stone, position.mask))


@inlined
def play(position: Position, move: int) -> Position:
    """Drop a stone: adding one at the foot of a column carries into its lowest empty cell."""
    foot = ONE << np.uint64(_COLUMN_BITS * (move - 1))
    return Position(position.own ^ position.mask, position.mask | (position.mask + foot))


@helper
def outcome(position: Position) -> int:
    """Tell whether the last stone made four, or the board is full."""
    if _has_four(position.own ^ position.mask):
        return -MATE
    if position.mask == BOARD:
        return DRAW
    return ONGOING


@helper
def key(position: Position) -> Word:
    """Hash the position: own stones plus a marker atop each column are unique (Tromp)."""
    return mix(position.own + position.mask + BOTTOM)


@helper
def shared_key(position: Position) -> Word:
    """Hash a position like its mirror image, as long as so few stones have been played that both may come about."""
    word = position.own + position.mask + BOTTOM
    if count_ones(position.mask) < SHARED_STONES:
        mirrored = mirrored_word(word)
        word = min(word, mirrored)
    return mix(word)


@helper
def shared_move(position: Position, move: int) -> int:
    """Return the column of the mirror image where that one stands for both in the table."""
    word = position.own + position.mask + BOTTOM
    if count_ones(position.mask) < SHARED_STONES and mirrored_word(word) < word:
        return WIDTH + 1 - move
    return move


@inlined
def mirrored_word(word: Word) -> Word:
    """Return a word with its columns in reverse order."""
    mirrored = NOTHING
    for column in range(WIDTH):
        bits = (word >> np.uint64(_COLUMN_BITS * column)) & WHOLE_COLUMN
        mirrored |= bits << np.uint64(_COLUMN_BITS * (WIDTH - 1 - column))
    return mirrored


@inlined
def _completing(stones: Word, step: int) -> Word:
    """Return the cells that would complete a four along a line, whose neighbours lie `step` bits apart."""
    one, two, three = np.uint64(step), np.uint64(2 * step), np.uint64(3 * step)
    pairs_below = (stones << one) & (stones << two)
    pairs_above = (stones >> one) & (stones >> two)
    # Three stones below or above the cell; two below and one above; one below and two above.
    cells = (pairs_below & (stones << three)) | (pairs_above & (stones >> three))
    return cells | (pairs_below & (stones >> one)) | (pairs_above & (stones << one))


@helper
def threats(stones: Word, mask: Word) -> Word:
    """Return the empty cells where one more of these stones makes four."""
    cells = _completing(stones, RIGHT) | _completing(stones, DOWN_RIGHT) | _completing(stones, UP_RIGHT)
    vertical = (stones << np.uint64(UP)) & (stones << np.uint64(2 * UP)) & (stones << np.uint64(3 * UP))
    return (cells | vertical) & (BOARD & ~mask)


@helper
def is_late(position: Position, depth: int) -> int:
    """Return 1 where the depth reaches the end and so few cells are left that `solve_leaf` is quicker, else 0."""
    empty = count_ones(BOARD & ~position.mask)
    return 1 if empty <= LATE_PLIES and empty <= depth else 0


@helper
def solve_leaf(position: Position, alpha: int, nodes: int, room: int) -> int:
    """Tell whether the value of a position with few cells left lies above alpha, by a bound on that side of it."""
    if threats(position.own, position.mask) & (position.mask + BOTTOM) != NOTHING:
        write_int(nodes, read_int(nodes) + 1)
        return MATE - 1
    # Inside, a win is worth the cells that it leaves empty and one, so that no ply is to be counted.
    soonest = MATE - 1 - count_ones(BOARD & ~position.mask)
    bar = max(alpha - soonest, DRAW) if alpha >= DRAW else min(alpha + soonest, DRAW - 1)
    value = last_plies(position.own, position.mask, bar, nodes)
    if value > DRAW:
        return value + soonest
    return value - soonest if value < DRAW else DRAW


@self_call
def last_plies_below(own: Word, mask: Word, alpha: int, nodes: int) -> int:
    """Call `last_plies` from itself."""
    return last_plies(own, mask, alpha, nodes)


@helper
def last_plies(own: Word, mask: Word, alpha: int, nodes: int) -> int:
    """Return the value of a position, fail-soft by a null window above alpha, where nobody wins with the next move.

    Parameters
    ----------
    own, mask
        The position.
    alpha
        Like the value: cells left empty by a win and one, the negative of that for a loss, 0 for a draw.
    nodes
        Address of the counter of positions.
    """
    write_int(nodes, read_int(nodes) + 1)
    other, empty = own ^ mask, BOARD & ~mask
    left = count_ones(empty)
    moves_left = _sound_cells(threats(other, mask), mask)
    if moves_left == NOTHING:
        return 1 - left
    if left <= 2:
        return DRAW
    # Neither side wins sooner than by its second stone, and not at all if all empty cells would not give it four.
    if alpha >= left - 2:
        return left - 2
    if alpha < 3 - left:
        return 3 - left
    if left >= BOUNDED_CELLS and not _has_four((own if alpha >= DRAW else other) | empty):
        return DRAW
    cell, most, waiting = NOTHING, -1, moves_left
    while waiting != NOTHING:
        rest = waiting & (waiting - ONE)
        stone = waiting ^ rest
        waiting = rest
        made = threats(own | stone, mask | stone)
        if _sound_cells(made, mask | stone) == NOTHING:
            return left - 2
        rank = 4 * count_ones(made)
        if stone & CENTRE != NOTHING:
            rank += 2
        elif stone & INNER != NOTHING:
            rank += 1
        if rank > most:
            cell, most = stone, rank
    if left == 3:
        return DRAW
    best = -left
    while True:
        score = -last_plies_below(other, mask | cell, -alpha - 1, nodes)
        best = max(best, score)
        moves_left ^= cell
        if score > alpha or moves_left == NOTHING:
            return best
        # Beside the best one only the centre is worth an order.
        choice = moves_left
        if choice & CENTRE != NOTHING:
            choice &= CENTRE
        elif choice & INNER != NOTHING:
            choice &= INNER
        cell = choice ^ (choice & (choice - ONE))


@helper
def _standing(stones: Word, mask: Word, good_rows: Word) -> int:
    """Return what one side's stones are worth: threats, those on rows that zugzwang favours, central stones."""
    cells = threats(stones, mask)
    standing = THREAT * count_ones(cells) + GOOD_THREAT * count_ones(cells & good_rows)
    return standing + CENTRE_STONE * count_ones(stones & CENTRE) + INNER_STONE * count_ones(stones & INNER)


@helper
def evaluate(position: Position) -> int:
    """Estimate by threats: the first player profits from those on odd rows, the second from even ones (Allis 1988)."""
    other = position.own ^ position.mask
    if count_ones(position.mask) & 1 == 0:
        return _standing(position.own, position.mask, ODD_ROWS) - _standing(other, position.mask, EVEN_ROWS)
    return _standing(position.own, position.mask, EVEN_ROWS) - _standing(other, position.mask, ODD_ROWS)


def parse(text: str) -> Position:
    """Return the position after the columns of a text; RulesError where a column is no column, full, or too late."""
    position = Position(NOTHING, NOTHING)
    for index, digit in enumerate(text):
        where = f"disc {index + 1} of {text!r}"
        if not ("1" <= digit <= str(WIDTH)):
            raise RulesError(f"{where} is {digit!r}: a column is a digit from 1 to {WIDTH}")
        if has_four(int(position.own) ^ int(position.mask)):
            raise RulesError(f"{where} comes too late: the game was won by the disc before it")
        foot = 1 << _COLUMN_BITS * (int(digit) - 1)
        mask = int(position.mask)
        if mask & foot << HEIGHT - 1:
            raise RulesError(f"{where} does not fit: column {digit} is full")
        position = Position(np.uint64(int(position.own) ^ mask), np.uint64(mask | mask + foot))
    return position


def has_four(stones: int) -> bool:
    """Tell whether a bitboard holds four in a row: the plain twin of the compiled test."""
    for step in (UP, DOWN_RIGHT, RIGHT, UP_RIGHT):
        pairs = stones & stones >> step
        if pairs & pairs >> 2 * step:
            return True
    return False


def text(position: Position) -> str:
    """Return columns that lead to a position: some order of play that is legal, or ``?`` where there is none."""
    own, mask = int(position.own), int(position.mask)
    if not mask:
        return "start"
    return _order_of_play(own, mask) or "?"


def _order_of_play(own: int, mask: int) -> str | None:
    """Find columns that build a board, by taking discs off its top, the last mover's first; the centre first."""
    seen: set[int] = set()
    waiting = [(own ^ mask, mask, "")]
    while waiting:
        mover, left, played = waiting.pop()
        if not left:
            return played
        if left in seen or has_four(mover ^ left):
            continue
        seen.add(left)
        for column in range(1, WIDTH + 1):
            stones = left >> _COLUMN_BITS * (column - 1) & _COLUMN
            top = (stones + 1 >> 1) << _COLUMN_BITS * (column - 1)
            if stones and mover & top:
                waiting.append((mover ^ left, left ^ top, str(column) + played))
    return None


def move_text(position: Position, move: int) -> str:
    """Return the column's digit."""
    return str(move)


def parse_move(position: Position, text: str) -> int:
    """Return the column that a digit names."""
    if len(text) != 1 or not "1" <= text <= str(WIDTH):
        raise RulesError(f"{text!r} is no move: a column is a digit from 1 to {WIDTH}")
    return int(text)


def plies_left(position: Position) -> int:
    """Return the number of empty cells."""
    return WIDTH * HEIGHT - int(position.mask).bit_count()


def score_text(position: Position, score: int, is_solved: bool) -> str:
    """Return Pons's score: +k wins with the k-th disc from the end, -k loses so, 0 draws; ~ marks an estimate."""
    distance = mate_distance(score)
    if distance is None:
        return "0" if is_solved and score == DRAW else f"~{score:+d}"
    last_disc = int(position.mask).bit_count() + abs(distance)
    discs_from_end = (WIDTH * HEIGHT + 2 - last_disc) // 2
    return f"{discs_from_end if score > 0 else -discs_from_end:+d}"


def mirror(position: Position) -> Position:
    """Return the position with its columns reversed: of equal value."""
    return Position(*(np.uint64(_reversed_columns(int(board))) for board in position))


def _reversed_columns(board: int) -> int:
    columns = [board >> _COLUMN_BITS * column & (1 << _COLUMN_BITS) - 1 for column in range(WIDTH)]
    return sum(bits << _COLUMN_BITS * (WIDTH - 1 - column) for column, bits in enumerate(columns))
