"""What two plies decide, where a game tells sound moves from the others: no move that loses at once is searched.

Instantiated together with the kernel. A value is that of a search of full width to the same depth: moves are left out
only where the reply that wins lies within the horizon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search import jit
from search import workspace as at
from search.flags import Pruning
from search.scores import MATE
from tt_store.layout import NO_MOVE, WORD_BYTES
from tt_store.native import read_int, write_int

_game, _flags = jit.binding(__name__)

extreme_score: Callable[..., int] = jit.specialise("search.bookkeeping", _game, _flags).extreme_score
moves, play, outcome, sound_moves = _game.moves, _game.play, _game.outcome, _game.sound_moves
SOUND = (
    _flags.sound_moves
    and _game.has("sound_moves")
    and _flags.pruning not in (Pruning.NONE, Pruning.FAIL_HARD)
    and not _game.has_extra_turns
    and not _game.has("pass_turn")
)
"""Whether the search leaves out moves that lose at once. After a pass or a second turn the opponent may win at once,
which a sound move alone excludes."""
MOVE_ROW_BYTES = _game.max_moves * WORD_BYTES

SOONEST_WIN = 3
"""Plies: after a sound move nobody wins with the next one."""
SOONEST_LOSS = 4
"""Plies, where a sound move is left."""


@jit.helper
def winning_move(position: Any, ply: int, memory: int) -> int:
    """Return a move that wins at once, `NO_MOVE` if there is none."""
    begin = memory + at.MOVES + ply * MOVE_ROW_BYTES
    for cursor in range(begin, moves(position, begin), WORD_BYTES):
        if outcome(play(position, read_int(cursor))) == -MATE:
            return read_int(cursor)
    return NO_MOVE


@jit.helper
def win_at_once(position: Any, ply: int, memory: int) -> int:
    """Return the score of a win with the next move, whose line is noted, or 0 if there is none."""
    move = winning_move(position, ply, memory)
    if move == NO_MOVE:
        return 0
    write_int(memory + at.NODES, read_int(memory + at.NODES) + 1)
    write_int(memory + at.LINES + ply * at.LINE_BYTES, move)
    write_int(memory + at.LENGTHS + ply * WORD_BYTES, 1)
    return MATE - ply - 1


@jit.helper
def note_loss(position: Any, ply: int, memory: int) -> int:
    """Note the line of a node whose every move loses to the reply; returns 0."""
    begin = memory + at.MOVES + ply * MOVE_ROW_BYTES
    moves(position, begin)
    move = read_int(begin)
    row = memory + at.LINES + ply * at.LINE_BYTES
    write_int(row, move)
    write_int(row + WORD_BYTES, winning_move(play(position, move), ply + 1, memory))
    write_int(memory + at.LENGTHS + ply * WORD_BYTES, 2)
    return 0


@jit.helper
def score_of_two_plies(position: Any, alpha: int, beta: int, ply: int, memory: int, begin: int, last: int) -> int:
    """Return a score that decides the window because of what two plies bring, else `UNKNOWN`.

    Parameters
    ----------
    position, alpha, beta, ply, memory
        As in the kernel.
    begin, last
        Between these addresses lie the sound moves. Without one the opponent wins next, whatever is played; otherwise
        nobody wins with the next move.
    """
    if last == begin:
        if beta - alpha > 1:
            note_loss(position, ply, memory)
        return ply + 2 - MATE
    return extreme_score(alpha, beta, MATE - ply - SOONEST_WIN, ply + SOONEST_LOSS - MATE)
