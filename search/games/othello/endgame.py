"""The last few moves: exact values by a null window, without table, killers or history.

Fewer squares are left than a table look-up is worth. Moves are tried by parity (an odd region first: who begins it
also ends it), with more squares left by the opponent's mobility (fastest first), and with the last two squares nothing
is generated any more. All results are discs for the side to move, by the fail-soft contract of `search.kernel`.
"""

from __future__ import annotations

import numpy as np

from search.games.othello.board import DISC, NOTHING, SQUARES, Position, empties, final_discs, lowest
from search.games.othello.lines import flips, reachable
from search.games.othello.stability import most_discs
from search.jit import helper, inlined, self_call
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_int, count_ones, read_int, read_word, write_int

SOLVED_SQUARES = 9
"""`solve_leaf` takes positions with so many empty squares or fewer."""
LATE_PLIES = 2 * SOLVED_SQUARES
"""No game from such a position lasts longer."""
SORTED_SQUARES = 6
"""With fewer, sorting the moves costs more than it saves."""
BOUNDED_SQUARES = 5
"""With fewer, no bound by stable discs is asked for."""
NO_DISCS: int = -2 * SQUARES

QUARTERS = tuple(np.uint64(quarter) for quarter in (0x0F0F_0F0F, 0xF0F0_F0F0, 0x0F0F_0F0F << 32, 0xF0F0_F0F0 << 32))
QUARTER_1, QUARTER_2, QUARTER_3, QUARTER_4 = QUARTERS
CORNERS = np.uint64(0x8100_0000_0000_0081)
_MOVE_WORDS = 3
MOVE_BYTES = _MOVE_WORDS * WORD_BYTES
"""A sorted move: its rank, its square, what it flips."""
ROW_BYTES = SOLVED_SQUARES * MOVE_BYTES
SHIFT_RANK = 8


@helper
def odd_quarters(empty: Word) -> Word:
    """Return the quarters of the board whose number of empty squares is odd."""
    odd = NOTHING
    if count_ones(empty & QUARTER_1) & 1 == 1:
        odd |= QUARTER_1
    if count_ones(empty & QUARTER_2) & 1 == 1:
        odd |= QUARTER_2
    if count_ones(empty & QUARTER_3) & 1 == 1:
        odd |= QUARTER_3
    if count_ones(empty & QUARTER_4) & 1 == 1:
        odd |= QUARTER_4
    return odd


@inlined
def last_square(own: Word, other: Word, square: Word) -> int:
    """Return the score with one square left; `own` moves first."""
    flipped = count_ones(flips(own, other, square))
    if flipped > 0:
        return 2 * (count_ones(own) + flipped + 1) - SQUARES
    flipped = count_ones(flips(other, own, square))
    if flipped > 0:
        return 2 * (count_ones(own) - flipped) - SQUARES
    return final_discs(own, other)


@helper
def last_two(own: Word, other: Word, first: Word, second: Word, alpha: int, nodes: int) -> int:
    """Return the score with two squares left, at most `alpha` or above it."""
    write_int(nodes, read_int(nodes) + 1)
    best = NO_DISCS
    flipped = flips(own, other, first)
    if flipped != NOTHING:
        best = -last_square(other ^ flipped, own | flipped | first, second)
        if best > alpha:
            return best
    flipped = flips(own, other, second)
    if flipped != NOTHING:
        best = max(best, -last_square(other ^ flipped, own | flipped | second, first))
    if best != NO_DISCS:
        return best
    # A pass: the other side moves, and wants to keep the score down.
    best = -NO_DISCS
    flipped = flips(other, own, first)
    if flipped != NOTHING:
        best = last_square(own ^ flipped, other | flipped | first, second)
        if best <= alpha:
            return best
    flipped = flips(other, own, second)
    if flipped != NOTHING:
        best = min(best, last_square(own ^ flipped, other | flipped | second, first))
    return best if best != -NO_DISCS else final_discs(own, other)


@self_call
def few_below(own: Word, other: Word, alpha: int, nodes: int) -> int:
    """Call `last_few` from itself."""
    return last_few(own, other, alpha, nodes)


@helper
def last_few(own: Word, other: Word, alpha: int, nodes: int) -> int:
    """Return the score with a few squares left, 3 or more, trying moves by parity alone."""
    empty = ~(own | other)
    write_int(nodes, read_int(nodes) + 1)
    moves = reachable(own, other)
    if moves == NOTHING:
        if reachable(other, own) == NOTHING:
            return final_discs(own, other)
        return -few_below(other, own, -alpha - 1, nodes)
    left = count_ones(empty)
    if left >= BOUNDED_SQUARES and SQUARES - 2 * count_ones(other) <= alpha:
        bound = most_discs(own, other)
        if bound <= alpha:
            return bound
    best = NO_DISCS
    odd = odd_quarters(empty)
    urgent = moves & odd
    moves ^= urgent
    while urgent != NOTHING or moves != NOTHING:
        if urgent == NOTHING:
            urgent, moves = moves, NOTHING
        square = lowest(urgent)
        urgent ^= square
        flipped = flips(own, other, square)
        if left == 3:
            rest = empty ^ square
            first = lowest(rest)
            score = -last_two(other ^ flipped, own | flipped | square, first, rest ^ first, -alpha - 1, nodes)
        else:
            score = -few_below(other ^ flipped, own | flipped | square, -alpha - 1, nodes)
        if score > best:
            best = score
            if score > alpha:
                return best
    return best


@self_call
def sorted_below(own: Word, other: Word, alpha: int, nodes: int, room: int) -> int:
    """Call `last_sorted` from itself."""
    return last_sorted(own, other, alpha, nodes, room)


@helper
def last_sorted(own: Word, other: Word, alpha: int, nodes: int, room: int) -> int:
    """Return the score with more squares left, trying moves by the opponent's mobility; needs room for moves."""
    empty = ~(own | other)
    left = count_ones(empty)
    if left < SORTED_SQUARES:
        if left > 2:
            return last_few(own, other, alpha, nodes)
        if left == 2:
            first = lowest(empty)
            return last_two(own, other, first, empty ^ first, alpha, nodes)
        write_int(nodes, read_int(nodes) + 1)
        return last_square(own, other, empty) if left == 1 else final_discs(own, other)
    write_int(nodes, read_int(nodes) + 1)
    moves = reachable(own, other)
    if moves == NOTHING:
        if reachable(other, own) == NOTHING:
            return final_discs(own, other)
        return -sorted_below(other, own, -alpha - 1, nodes, room)
    if SQUARES - 2 * count_ones(other) <= alpha:
        bound = most_discs(own, other)
        if bound <= alpha:
            return bound
    last = rank_last_moves(own, other, moves, odd_quarters(empty), room)
    best = NO_DISCS
    for cursor in range(room, last, MOVE_BYTES):
        bring_least(cursor, last)
        square, flipped = read_word(cursor + WORD_BYTES), read_word(cursor + 2 * WORD_BYTES)
        score = -sorted_below(other ^ flipped, own | flipped | square, -alpha - 1, nodes, room + ROW_BYTES)
        if score > best:
            best = score
            if score > alpha:
                return best
    return best


@helper
def rank_last_moves(own: Word, other: Word, moves: Word, odd: Word, room: int) -> int:
    """Write each move with its rank, the least to be tried first; returns the end."""
    end = room
    while moves != NOTHING:
        square = lowest(moves)
        moves ^= square
        flipped = flips(own, other, square)
        answers = reachable(other ^ flipped, own | flipped | square)
        rank = 8 * (count_ones(answers) + count_ones(answers & CORNERS))
        if square & odd == NOTHING:
            rank += 4
        if square & CORNERS != NOTHING:
            rank -= 12
        write_int(end, rank)
        write_int(end + WORD_BYTES, as_int(square))
        write_int(end + 2 * WORD_BYTES, as_int(flipped))
        end += MOVE_BYTES
    return end


@helper
def bring_least(cursor: int, last: int) -> int:
    """Exchange the move at the cursor with the one of the least rank from there on; returns 0."""
    least = cursor
    for other in range(cursor + MOVE_BYTES, last, MOVE_BYTES):
        if read_int(other) < read_int(least):
            least = other
    if least != cursor:
        for offset in range(0, MOVE_BYTES, WORD_BYTES):
            word = read_int(cursor + offset)
            write_int(cursor + offset, read_int(least + offset))
            write_int(least + offset, word)
    return 0


@helper
def is_late(position: Position, depth: int) -> int:
    """Return 1 where so few squares are left that `solve_leaf` is quicker than the kernel, else 0."""
    return 1 if empties(position) <= SOLVED_SQUARES else 0


@helper
def solve_leaf(position: Position, alpha: int, nodes: int, room: int) -> int:
    """Tell whether the score of a position with few squares left lies above alpha, by a bound on that side of it."""
    # Floor division: final scores are whole discs.
    return DISC * last_sorted(position.own, position.other, alpha // DISC, nodes, room)
