"""One entry of the table for positions that are symmetric to each other, where a game tells which.

Instantiated together with the kernel. The table holds them under one key, and moves as the position has them that this
key stands for: each move goes in and comes out through `shared_move`. Whatever else goes by a position's hash (the
path, the upper tree, the rows of a batch) tells them apart.
"""

from __future__ import annotations

from typing import Any

from search import jit
from search import workspace as at
from tt_store.layout import NO_MOVE
from tt_store.native import Word, read_word

_game, _flags = jit.binding(__name__)

table_key = jit.specialise("search.repetition", _game, _flags).table_key
shared_key, shared_move = _game.shared_key, _game.shared_move
SHARES = _game.has("shared_key")


@jit.helper
def entry_key(position: Any, key: Word) -> Word:
    """Return the key under which the table holds a position of some hash, before it is salted."""
    return table_key(position, shared_key(position) if SHARES else key)


@jit.helper
def salted_key(position: Any, key: Word, memory: int) -> Word:
    """Return the key under which a search holds a position of some hash in the table."""
    return entry_key(position, key) ^ read_word(memory + at.KEY_SALT)


@jit.helper
def turned_move(position: Any, move: int) -> int:
    """Return a move of a position as its entry has it, or one of the entry as the position has it."""
    return shared_move(position, move) if SHARES and move != NO_MOVE else move
