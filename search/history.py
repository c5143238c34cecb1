"""What the search learns about quiet moves: which ones refuted, in general and as answers to the move before.

Instantiated together with the kernel, for games that tell quiet moves from others. Three tables, found by a move's
slot: the counter-move (Uiterwijk 1992), history (Schaeffer 1983), and history by the move before (the same idea, one
ply longer). A good move earns a bonus, those tried in vain before it the same as a malus; what an entry holds pulls it
back, so that it never passes 2 to the power of `LIMIT_BITS`. Entries of histories have 16 bits: the last table is
large, and misses of the processor's cache are most of what it costs.
"""

from __future__ import annotations

from typing import Any

from search import jit
from search import workspace as at
from tt_store.layout import MOVE_MASK, SHORT_BYTES, WORD_BYTES
from tt_store.native import read_int, read_short, write_int, write_short

_game, _flags = jit.binding(__name__)

move_slot, is_quiet = _game.move_slot, _game.is_quiet
SLOTS = _game.history_size

LIMIT_BITS = 14
COUNTERS = at.history_offset(_game.max_moves, _game.memory_words)
HISTORY = COUNTERS + SLOTS * WORD_BYTES
ANSWERS = HISTORY + SLOTS * SHORT_BYTES
"""A row for each slot of the move before."""


@jit.helper
def note_move(position: Any, move: int, ply: int, memory: int) -> int:
    """Note which move is being searched at a ply; returns 0."""
    return write_int(memory + at.PLAYED + ply * WORD_BYTES, move_slot(position, move) + 1 if SLOTS else 1)


@jit.helper
def move_before(ply: int, memory: int) -> int:
    """Return the slot of the move that leads to a ply, negative after a null move and where it is unknown."""
    return read_int(memory + at.PLAYED + (ply - 1) * WORD_BYTES) - 1


@jit.helper
def promise(slot: int, before: int, memory: int) -> int:
    """Return what both histories say of a move, within twice their limit."""
    value = read_short(memory + HISTORY + slot * SHORT_BYTES)
    if before >= 0:
        value += read_short(memory + ANSWERS + (before * SLOTS + slot) * SHORT_BYTES)
    return value


@jit.helper
def counter_move(before: int, memory: int) -> int:
    """Return the move that last refuted the move before, 0 if there is none."""
    return read_int(memory + COUNTERS + before * WORD_BYTES) if before >= 0 else 0


@jit.helper
def learn(address: int, bonus: int) -> int:
    """Move an entry of a history toward the bonus, which may be negative; returns 0."""
    value = read_short(address)
    return write_short(address, value + bonus - (value * abs(bonus) >> LIMIT_BITS))


@jit.helper
def learn_move(slot: int, before: int, bonus: int, memory: int) -> int:
    """Teach both histories; returns 0."""
    learn(memory + HISTORY + slot * SHORT_BYTES, bonus)
    if before >= 0:
        learn(memory + ANSWERS + (before * SLOTS + slot) * SHORT_BYTES, bonus)
    return 0


@jit.helper
def credit_quiet(position: Any, move: int, depth: int, ply: int, memory: int, begin: int, cursor: int) -> int:
    """Teach that a quiet move refuted a node after the moves between two addresses had not; returns 0."""
    bonus = min(160 * depth - 60, 1800)
    before = move_before(ply, memory)
    learn_move(move_slot(position, move), before, bonus, memory)
    if before >= 0:
        write_int(memory + COUNTERS + before * WORD_BYTES, move)
    for address in range(begin, cursor, WORD_BYTES):
        other = read_int(address) & MOVE_MASK
        if is_quiet(position, other) == 1:
            learn_move(move_slot(position, other), before, -bonus, memory)
    return 0
