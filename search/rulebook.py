"""The rules of one game for Python callers: compiled entry functions, called once a move, never in a search.

Instantiated like the kernel, so that they come from disk in milliseconds; `search.referee` wraps them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search import jit
from search.chance_rules import chance_rules_of
from search.player_rules import player_rules
from tt_store.native import Word, as_int, as_word
from tt_store.table import probe

_game, _flags = jit.binding(__name__)
_moves, _play, _outcome, _key, _evaluate = _game.moves, _game.play, _game.outcome, _game.key, _game.evaluate
_side_to_move, _stuck, _clock = _game.side_to_move, _game.stuck, _game.clock
_is_chance = chance_rules_of(_game).is_chance
_table_key = jit.specialise("search.repetition", _game, _flags).table_key
_symmetry = jit.specialise("search.symmetry", _game, _flags)
_entry_key: Callable[..., Word] = _symmetry.entry_key
_turned_move: Callable[..., int] = _symmetry.turned_move
_STUCK = _game.has("stuck")
_order, _is_quiet, _in_check = _game.order, _game.is_quiet, _game.in_check
_TELLS_QUIET = _game.has("is_quiet")
_rules = jit.specialise("search.selectivity", _game, _flags)
_late_reduction, _REDUCES, _EXTENDS = _rules.late_reduction, _rules.REDUCES, _rules.EXTENDS
_ORDER_WEIGHT = jit.specialise("search.ordering", _game, _flags).ORDER_WEIGHT


@jit.cached
def list_moves(position: Any, end: int) -> int:
    """Write the legal moves from an address on; returns the end."""
    return _moves(position, end)


@jit.cached
def play_move(position: Any, move: int) -> Any:
    """Return the position after a legal move."""
    return _play(position, move)


@jit.cached
def facts_of(position: Any, room: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Return what `search.referee.Facts` holds, in its order; hashes are signed integers.

    There is room for a position's moves at an address.
    """
    result = _outcome(position)
    if _STUCK and _moves(position, room) == room:
        result = _stuck(position)
    key = _key(position)
    table_key = as_int(_table_key(position, key))
    side, is_chance = _side_to_move(position), _is_chance(position)
    entry_key = as_int(_entry_key(position, key))
    return result, _evaluate(position), side, as_int(key), table_key, entry_key, _clock(position), is_chance


@jit.cached
def turned_move(position: Any, move: int) -> int:
    """Return a move of a table's entry as the position has it."""
    return _turned_move(position, move)


@jit.cached
def rank_of(position: Any, move: int, child: Any) -> tuple[int, int]:
    """Return a move's rank as far as the game's rules give it, and 1 if it gives check."""
    is_quiet = _TELLS_QUIET and _is_quiet(position, move) == 1
    return 0 if is_quiet else _order(position, move) * _ORDER_WEIGHT, _in_check(child)


@jit.cached
def depth_change(rank: int, number: int, depth: int, gives_check: int) -> tuple[int, int]:
    """Return by how much a move is extended, and by how much reduced at first, in a node with a null window."""
    extension = gives_check if _EXTENDS else 0
    return extension, _late_reduction(rank, number, depth, 0, 0, gives_check) if _REDUCES else 0


if _game.has("payoff"):
    _payoff = player_rules(_game).payoff

    @jit.cached
    def payoff_of(position: Any, player: int) -> int:
        """Return what a finished game is worth to one of several players."""
        return _payoff(position, player)


@jit.cached
def probe_table(table: int, buckets: int, key: int) -> int:
    """Return the data word stored under a hash given as a signed integer, 0 for a miss."""
    return probe(table, buckets, as_word(key))
