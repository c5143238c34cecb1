"""Counting leaves: the compiled part of `search.perft`, instantiated for a game."""

from __future__ import annotations

from typing import Any

from search import jit
from search.scores import ONGOING
from tt_store.layout import WORD_BYTES
from tt_store.native import read_int

_game, _flags = jit.binding(__name__)
moves, play, outcome, count_moves = _game.moves, _game.play, _game.outcome, _game.count_moves
COUNTS = _game.has("count_moves")
ENDED_LINES = _game.ended_lines


@jit.self_call
def count_further(position: Any, depth: int, end: int) -> int:
    """Call `count_below` from itself."""
    return count_below(position, depth, end)


@jit.helper
def count_below(position: Any, depth: int, end: int) -> int:
    """Count the lines of exactly `depth` plies, 1 or more; one that ends earlier counts as the game says, 0 or 1.

    The last ply is counted as moves, not played (bulk counting). A game with `count_moves` ends where there are none:
    perft of chess, as everybody counts it, goes on after a draw by the rules.
    """
    if COUNTS:
        if depth == 1:
            return max(count_moves(position), ENDED_LINES)
    elif outcome(position) != ONGOING:
        return 0
    last = moves(position, end)
    if depth == 1:
        return (last - end) // WORD_BYTES
    if last == end:
        return ENDED_LINES
    leaves = 0
    for cursor in range(end, last, WORD_BYTES):
        leaves += count_further(play(position, read_int(cursor)), depth - 1, last)
    return leaves


@jit.cached
def count_leaves(position: Any, depth: int, memory: int) -> int:
    """Count the lines of exactly `depth` plies from a position; `memory` has room for the moves of all plies."""
    return 1 if depth == 0 else count_below(position, depth, memory)
