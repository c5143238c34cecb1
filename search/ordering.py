"""Move ordering: table move, killers (Akl and Newborn 1977), the game's own estimate, history (Schaeffer 1983).

Instantiated together with the kernel. A ranked move is one word, so that the greatest word is the move to try, and a
move and its rank are moved at once::

    63 ................. 26 25 ............ 16 15 ..... 0
     rank, signed            place, from last   move

The place is where the game generated it: among equals the first comes first. Where a game tells quiet moves from
others, the killers and what `search.history` knows rank the quiet ones alone::

    table move > what gains by `order` > killers > counter-move > other quiet moves > what loses by `order`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search import jit
from search import workspace as at
from tt_store.layout import MOVE_MASK, NO_MOVE, WORD_BYTES
from tt_store.native import read_int, write_int

_game, _flags = jit.binding(__name__)

order, move_slot = _game.order, _game.move_slot
HAS_ORDER = _game.has_order
HAS_HISTORY = _game.history_size > 0
RANKS = _flags.ordering and (HAS_ORDER or HAS_HISTORY)
HISTORY = at.history_offset(_game.max_moves, _game.memory_words)
LOOKS_AHEAD = not (_flags.quiescence and _game.has("captures"))
"""Whether the move after the next is known early, for its bucket of the table to be asked for."""
LEARNS = HAS_HISTORY and _game.has("is_quiet")
_history = jit.specialise("search.history", _game, _flags)
move_before, promise, counter_move = _history.move_before, _history.promise, _history.counter_move
credit_quiet: Callable[..., int] = _history.credit_quiet
is_quiet = _game.is_quiet

PLACE_SHIFT, RANK_SHIFT = 16, 26
PLACES = 1 << (RANK_SHIFT - PLACE_SHIFT)
TABLE_RANK = 1 << 36
KILLER_RANK = 1 << 35
ORDER_WEIGHT = 1 << 12
"""A game's estimate outweighs history by this factor; history decides among equals."""
HISTORY_LIMIT = ORDER_WEIGHT - 1

QUIET_BOUND = 1 << 20
"""Where quiet moves are told from others, their ranks stay within this, either way, and those of others beyond."""
QUIET_KILLER = QUIET_BOUND - 2
COUNTER_RANK = QUIET_BOUND - 3


@jit.helper
def killer_address(memory: int, ply: int) -> int:
    """Return the address of the two killers of a ply."""
    return memory + at.KILLERS + ply * at.KILLERS_A_PLY * WORD_BYTES


@jit.helper
def ranked(rank: int, place: int, move: int) -> int:
    """Return the word of a move with its rank and its place among the moves."""
    return rank << RANK_SHIFT | PLACES - 1 - place << PLACE_SHIFT | move


@jit.helper
def rank_moves(position: Any, table_move: int, ply: int, memory: int, begin: int, last: int) -> int:
    """Put a rank above each move between two addresses of the stack, the greatest first; returns 0."""
    greatest, first = read_int(begin), begin
    killers = killer_address(memory, ply)
    before = move_before(ply, memory) if LEARNS else 0
    counter = counter_move(before, memory) if LEARNS else 0
    for cursor in range(begin, last, WORD_BYTES):
        move = read_int(cursor)
        rank = 0
        if move == table_move:
            rank = TABLE_RANK
        elif LEARNS and is_quiet(position, move) == 1:
            rank = promise(move_slot(position, move), before, memory)
            if move == read_int(killers):
                rank = QUIET_KILLER + 1
            elif move == read_int(killers + WORD_BYTES):
                rank = QUIET_KILLER
            elif move == counter:
                rank = COUNTER_RANK
        elif LEARNS:
            rank = order(position, move) * ORDER_WEIGHT
        elif HAS_HISTORY and (move == read_int(killers) or move == read_int(killers + WORD_BYTES)):
            rank = KILLER_RANK + (1 if move == read_int(killers) else 0)
        else:
            if HAS_ORDER:
                rank = order(position, move) * ORDER_WEIGHT
            if HAS_HISTORY:
                rank += read_int(memory + HISTORY + move_slot(position, move) * WORD_BYTES)
        word = ranked(rank, (cursor - begin) // WORD_BYTES, move)
        write_int(cursor, word)
        if cursor == begin or word > greatest:
            greatest, first = word, cursor
    write_int(first, read_int(begin))
    return write_int(begin, greatest)


@jit.helper
def swap_to_front(move: int, begin: int, last: int) -> int:
    """Exchange a move with the first one between two addresses; returns 0."""
    for cursor in range(begin, last, WORD_BYTES):
        if read_int(cursor) == move:
            write_int(cursor, read_int(begin))
            write_int(begin, move)
            break
    return 0


@jit.helper
def pick_move(cursor: int, last: int) -> int:
    """Bring the move of the highest rank to the cursor and return it."""
    best = cursor
    word = read_int(cursor)
    for other in range(cursor + WORD_BYTES, last, WORD_BYTES):
        if read_int(other) > word:
            best = other
            word = read_int(other)
    write_int(best, read_int(cursor))
    write_int(cursor, word)
    return word & MOVE_MASK


@jit.helper
def arrange_moves(position: Any, table_move: int, ply: int, memory: int, begin: int, last: int) -> int:
    """Prepare the moves between two addresses for `bring_move`: the table's comes first; returns 0."""
    if RANKS and (LEARNS or last - begin > WORD_BYTES):
        return rank_moves(position, table_move, ply, memory, begin, last)
    if table_move != NO_MOVE:
        swap_to_front(table_move, begin, last)
    return 0


@jit.helper
def bring_move(cursor: int, begin: int, last: int) -> int:
    """Bring the next move to the cursor and return it, with `LOOKS_AHEAD` the one after it to its place too.

    The first one is there already.
    """
    if RANKS and cursor > begin and not LOOKS_AHEAD:
        pick_move(cursor, last)
    if RANKS and LOOKS_AHEAD and cursor + WORD_BYTES < last:
        pick_move(cursor + WORD_BYTES, last)
    return read_int(cursor) & MOVE_MASK


@jit.helper
def credit_fail_high(position: Any, move: int, depth: int, ply: int, memory: int, begin: int, cursor: int) -> int:
    """Count and remember a move that refuted a node, as a killer of its ply and in the history; returns 0.

    Parameters
    ----------
    position, move, depth, ply, memory
        As in the kernel.
    begin, cursor
        Between these addresses lie the moves that were tried before.
    """
    write_int(memory + at.FAIL_HIGHS, read_int(memory + at.FAIL_HIGHS) + 1)
    if cursor == begin:
        write_int(memory + at.FIRST_FAIL_HIGHS, read_int(memory + at.FIRST_FAIL_HIGHS) + 1)
    if LEARNS and is_quiet(position, move) == 0:
        return 0
    if RANKS and HAS_HISTORY:
        killers = killer_address(memory, ply)
        if read_int(killers) != move:
            write_int(killers + WORD_BYTES, read_int(killers))
            write_int(killers, move)
        if LEARNS:
            return credit_quiet(position, move, depth, ply, memory, begin, cursor)
        slot = memory + HISTORY + move_slot(position, move) * WORD_BYTES
        value = read_int(slot)
        # Grows fast while small, and never reaches the limit.
        write_int(slot, value + depth * depth * (HISTORY_LIMIT - value) // (HISTORY_LIMIT + depth * depth))
    return 0
