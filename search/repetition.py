"""Draws that the path decides: a position that came before, and the clock that runs out.

Instantiated together with the kernel. The table knows positions, not paths. A repetition is therefore seen before the
table is asked; and where the clock is high, it is part of the table's key, so that no entry hides a draw that is near.
"""

from __future__ import annotations

from typing import Any

from search import jit
from search import workspace as at
from search.rules import mix
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_word, read_word

_game, _flags = jit.binding(__name__)

clock = _game.clock
HAS_CLOCK = _game.has("clock")
REPEATS = HAS_CLOCK and _flags.sees_repetition

NEAR_DRAW = 70
"""From this clock on it is part of the key: a draw at 100 is then out of reach of the lines that matter before."""
SOONEST = 4
"""No position comes back sooner: both sides move away and back."""


@jit.helper
def table_key(position: Any, key: Word) -> Word:
    """Return the key under which the table holds a position, before it is salted.

    Parameters
    ----------
    position
        The position.
    key
        Its hash.
    """
    if HAS_CLOCK and clock(position) >= NEAR_DRAW:
        return key ^ mix(as_word(clock(position)))
    return key


@jit.helper
def repeats(position: Any, key: Word, ply: int, memory: int) -> int:
    """Return 1 if the path makes a position a draw, else 0.

    One that came before within the search does: who can force it once can force it again. The root, and what came
    before it, does at its third occurrence, as the rules of chess say: whoever has strayed from a won position may
    come back to it, and win.
    """
    path = memory + at.PATH_KEYS
    was_seen = 0
    for before in range(ply - SOONEST, ply - min(clock(position), ply + at.HISTORY_KEYS) - 1, -2):
        if read_word(path + before * WORD_BYTES) == key:
            if before > 0 or was_seen == 1:
                return 1
            was_seen = 1
    return 0
