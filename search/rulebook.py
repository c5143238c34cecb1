"""The rules of one game for Python callers: compiled entry functions, called once a move, never in a search.

Instantiated like the kernel, so that they come from disk in milliseconds; `search.referee` wraps them.
"""

from __future__ import annotations

from typing import Any

from search import jit
from tt_store.native import as_int, as_word
from tt_store.table import probe

_game, _flags = jit.binding(__name__)
_moves, _play, _outcome, _key, _evaluate = _game.moves, _game.play, _game.outcome, _game.key, _game.evaluate
_side_to_move, _stuck, _clock = _game.side_to_move, _game.stuck, _game.clock
_table_key = jit.specialise("search.repetition", _game, _flags).table_key
_STUCK = _game.has("stuck")


@jit.cached
def list_moves(position: Any, end: int) -> int:
    """Write the legal moves from an address on; returns the end."""
    return _moves(position, end)


@jit.cached
def play_move(position: Any, move: int) -> Any:
    """Return the position after a legal move."""
    return _play(position, move)


@jit.cached
def facts_of(position: Any, room: int) -> tuple[int, int, int, int, int, int]:
    """Return the outcome, the estimate, the side to move (0 or 1), hash and table's key as signed integers, the clock.

    There is room for a position's moves at an address.
    """
    result = _outcome(position)
    if _STUCK and _moves(position, room) == room:
        result = _stuck(position)
    key = _key(position)
    table_key = as_int(_table_key(position, key))
    return result, _evaluate(position), _side_to_move(position), as_int(key), table_key, _clock(position)


@jit.cached
def probe_table(table: int, buckets: int, key: int) -> int:
    """Return the data word stored under a hash given as a signed integer, 0 for a miss."""
    return probe(table, buckets, as_word(key))
