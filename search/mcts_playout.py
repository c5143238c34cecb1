"""Random games from a leaf of the tree to the end. Instantiated for a game together with `search.mcts`."""

from __future__ import annotations

from typing import Any

from search import jit
from search import mcts_settings as words
from search import workspace as at
from search.random_stream import draw
from search.scores import DRAW, ONGOING
from tt_store.layout import WORD_BYTES
from tt_store.native import read_int

_game, _flags = jit.binding(__name__)

moves, play, outcome, stuck, side_to_move = _game.moves, _game.play, _game.outcome, _game.stuck, _game.side_to_move
STUCK, EXTRA_TURNS, HAS_PLAYOUT = _game.has("stuck"), _game.has_extra_turns, _game.has("playout")
ROOM = at.MOVES + _game.max_moves * WORD_BYTES
"""A row of moves behind the one of the tree."""


@jit.helper
def _no_playout(_position: Any, _random: int, _room: int) -> int:
    return 0


playout = _game.module.playout if HAS_PLAYOUT else _no_playout


@jit.helper
def sign_of(score: int) -> int:
    """Return 1 for a won final score, 0 for a draw, -1 for a lost one."""
    if score == DRAW:
        return 0
    return 1 if score > DRAW else -1


@jit.helper
def random_result(position: Any, memory: int) -> int:
    """Play at random from an ongoing position; returns 1, 0 or -1 for its side to move.

    A game's own `playout` goes before. One that does not end in `LONGEST_PLAYOUT` plies is a draw.
    """
    if HAS_PLAYOUT:
        return playout(position, memory + words.STREAM, memory + ROOM)
    current = position
    side, begin = side_to_move(position), memory + ROOM
    for ply in range(read_int(memory + words.LONGEST_PLAYOUT)):
        result = outcome(current)
        last = begin
        if result == ONGOING:
            last = moves(current, begin)
            if STUCK and last == begin:
                result = stuck(current)
        if result != ONGOING:
            is_other = side_to_move(current) != side if EXTRA_TURNS else ply & 1 == 1
            return -sign_of(result) if is_other else sign_of(result)
        count = (last - begin) // WORD_BYTES
        current = play(current, read_int(begin + draw(memory + words.STREAM, count) * WORD_BYTES))
    return 0
