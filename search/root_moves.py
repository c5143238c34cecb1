"""The first moves that a search leaves out: those of better lines, and those that nobody asks about.

Instantiated together with the kernel. The moves lie in the workspace, a task's root alone reads them, and the table
holds that root under a key of its own: a position without some of its moves is another position.
"""

from __future__ import annotations

from typing import Any

from search import jit
from search import workspace as at
from search.rules import mix
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_word, read_int, write_int

_game, _flags = jit.binding(__name__)
turned_move = jit.specialise("search.symmetry", _game, _flags).turned_move

LEFT_OUT = at.left_out_offset(_game.max_moves)


@jit.helper
def is_left_out(move: int, memory: int) -> int:
    """Return 1 if the root leaves a move out, else 0."""
    begin = memory + LEFT_OUT
    for cursor in range(begin, begin + read_int(memory + at.LEFT_OUT_MOVES) * WORD_BYTES, WORD_BYTES):
        if read_int(cursor) == move:
            return 1
    return 0


@jit.helper
def has_all_moves(memory: int) -> int:
    """Return 1 if a task leaves no first move out, else 0."""
    return 1 if read_int(memory + at.LEFT_OUT_MOVES) == 0 else 0


@jit.helper
def keep_others(begin: int, last: int, memory: int) -> int:
    """Take the moves that are left out off the list between two addresses; returns the list's new end."""
    if read_int(memory + at.LEFT_OUT_MOVES) == 0:
        return last
    end = begin
    for cursor in range(begin, last, WORD_BYTES):
        move = read_int(cursor)
        if is_left_out(move, memory) == 0:
            write_int(end, move)
            end += WORD_BYTES
    return end


@jit.helper
def key_of_others(position: Any, key: Word, memory: int) -> Word:
    """Return the key under which the table holds the root, the same for any order of the moves that it leaves out.

    Parameters
    ----------
    position, key
        The root, and its salted key with all moves.
    memory
        Address of the workspace.
    """
    begin = memory + LEFT_OUT
    for cursor in range(begin, begin + read_int(memory + at.LEFT_OUT_MOVES) * WORD_BYTES, WORD_BYTES):
        key = key ^ mix(as_word(turned_move(position, read_int(cursor))))
    return key
