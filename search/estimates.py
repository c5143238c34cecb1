"""Static estimates that a searching core remembers: an evaluation costs more than all else in a node.

Instantiated together with the kernel, for games with a quiescence search. A cell is one word, found by the lowest bits
of the position's hash, and holds the rest of them beside the estimate; the last position that asks for a cell has it::

    63 ................................. 16 15 .......... 0
     hash, all bits but the lowest 16        estimate, signed

An estimate may depend on the clock beyond `FRESH_CLOCK`; the clock is then part of the hash.
"""

from __future__ import annotations

from typing import Any

from search import jit
from search import workspace as at
from search.rules import FRESH_CLOCK, mix
from tt_store.layout import WORD_BYTES
from tt_store.native import as_int, as_word, prefetch, read_int, write_int

_game, _flags = jit.binding(__name__)

evaluate, evaluate_with, key_of, clock = _game.evaluate, _game.evaluate_with, _game.key, _game.clock
HAS_CLOCK = _game.has("clock")
CACHES = _game.has("captures")
REMEMBERS = _game.has("evaluate_with")
MEMORY = at.memory_offset(_game.max_moves)

_ESTIMATE_BITS = 16
_SIGN = 1 << (_ESTIMATE_BITS - 1)
_ESTIMATE_MASK = (1 << _ESTIMATE_BITS) - 1


@jit.helper
def _hash_of(position: Any) -> int:
    """Return the hash of all that an estimate depends on."""
    key = as_int(key_of(position))
    if HAS_CLOCK and clock(position) > FRESH_CLOCK:
        key ^= as_int(mix(as_word(clock(position))))
    return key


@jit.helper
def _cell(key: int, memory: int) -> int:
    return memory + at.KNOWN_ESTIMATES + (key & (at.KNOWN_ESTIMATES_WORDS - 1)) * WORD_BYTES


@jit.helper
def ask_estimate(position: Any, memory: int) -> int:
    """Ask for a position's cell before it is wanted; returns 0."""
    return prefetch(_cell(_hash_of(position), memory)) if CACHES else 0


@jit.helper
def fresh_estimate(position: Any, memory: int) -> int:
    """Return what the game says of a position, with its own memory if it has one."""
    return evaluate_with(position, memory + MEMORY) if REMEMBERS else evaluate(position)


@jit.helper
def estimate_of(position: Any, memory: int) -> int:
    """Return the game's static estimate of a position."""
    if not CACHES:
        return fresh_estimate(position, memory)
    key = _hash_of(position)
    cell = _cell(key, memory)
    known = read_int(cell)
    if (known ^ key) >> _ESTIMATE_BITS == 0:
        return ((known & _ESTIMATE_MASK) ^ _SIGN) - _SIGN
    estimate = fresh_estimate(position, memory)
    write_int(cell, key & ~_ESTIMATE_MASK | estimate & _ESTIMATE_MASK)
    return estimate
