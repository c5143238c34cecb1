"""A game of several players as one of two sides: the player whose search it is, and all others against it.

Instantiated for a game of several players, as a game's module of its own: `search.paranoid` makes a game of it. A
position is that of the game and whose search it is, its last field. Side 0 is that player, side 1 the others; several
of them may move in a row. What a leaf is worth to that player, the others want to be as little as possible, whatever
it is worth to themselves (Sturtevant and Korf 2000).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from search import jit
from search.player_rules import player_rules
from search.rules import mix
from search.scores import ONGOING
from tt_store.native import Word, as_word

_game, _flags = jit.binding(__name__)
_players = player_rules(_game)
_outcome, _key = _game.outcome, _game.key
_moves, _play, _order, _move_slot, _count_moves = (
    _game.moves, _game.play, _game.order, _game.move_slot, _game.count_moves,
)  # fmt: skip
_player, _payoff, _estimate = _players.player, _players.payoff, _players.estimate

Inner: Any = _game.position_type
_fields = (*zip(Inner._fields, _game.field_types, strict=True), ("searcher", np.int64))
Position: Any = cast(Any, NamedTuple)("Position", _fields)

PLAYERS = _players.players
ALGORITHM = "paranoid"
MAX_MOVES = _game.max_moves
START = _game.start_text
SUMMARY = _game.summary
ENDED_LINES = _game.ended_lines


@jit.inlined
def inner_of(position: Any) -> Any:
    """Return the game's own position."""
    return Inner(*position[:-1])


@jit.inlined
def seen_from(inner: Any, searcher: int) -> Any:
    """Return a position of the game as one of a player's search."""
    return Position(*inner[:], searcher)


@jit.helper
def for_mover(value: int, position: Any) -> int:
    """Return what a value of the searching player is worth to the side to move."""
    return value if _player(inner_of(position)) == position.searcher else -value


@jit.helper
def moves(position: Any, end: int) -> int:
    """Push the game's moves."""
    return _moves(inner_of(position), end)


@jit.inlined
def play(position: Any, move: int) -> Any:
    """Play a move of the game."""
    return seen_from(_play(inner_of(position), move), position.searcher)


@jit.helper
def outcome(position: Any) -> int:
    """Return what the searching player gets at the end, for the side to move."""
    inner = inner_of(position)
    if _outcome(inner) == ONGOING:
        return ONGOING
    return for_mover(_payoff(inner, position.searcher), position)


@jit.helper
def key(position: Any) -> Word:
    """Hash the game's position and whose search it is: no two players' values are met in one table."""
    return _key(inner_of(position)) ^ mix(as_word(position.searcher + 1))


@jit.helper
def evaluate(position: Any) -> int:
    """Return what the searching player may get, for the side to move."""
    return for_mover(_estimate(inner_of(position), position.searcher), position)


@jit.helper
def side_to_move(position: Any) -> int:
    """Return 0 if the searching player is to move, else 1."""
    return 0 if _player(inner_of(position)) == position.searcher else 1


if _game.has_order:

    @jit.helper
    def order(position: Any, move: int) -> int:
        """Return the rank that the game gives a move, for whoever makes it."""
        return _order(inner_of(position), move)


if _game.history_size:
    HISTORY_SIZE = _game.history_size

    @jit.helper
    def move_slot(position: Any, move: int) -> int:
        """Return the slot that the game gives a move."""
        return _move_slot(inner_of(position), move)


if _game.has("count_moves"):

    @jit.helper
    def count_moves(position: Any) -> int:
        """Count the game's moves."""
        return _count_moves(inner_of(position))


@jit.cached
def mover_of(position: Any) -> int:
    """Return the player to move."""
    return _player(inner_of(position))


def root_position(position: Any) -> Any:
    """Return a position as the search of the player who is to move."""
    return position._replace(searcher=np.int64(mover_of(position)))


def parse(text: str) -> Any:
    """Return the position of a text; whose search it is, `root_position` says."""
    return Position(*_game.parse(text), np.int64(0))


def _of_the_game(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain rule of the game, for positions of this module."""
    return lambda position, *arguments: rule(Inner(*position[:-1]), *arguments)


text = _of_the_game(_game.text)
move_text = _of_the_game(_game.move_text)
parse_move = _of_the_game(_game.parse_move)
for _name in ("plies_left", "next_depth", "score_text"):
    if _game.has(_name):
        globals()[_name] = _of_the_game(getattr(_game.module, _name))
