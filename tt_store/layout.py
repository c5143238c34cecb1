"""The entry and the bucket of the table: where each field lies.

An entry is two 64-bit words, ``check = key ^ data`` and ``data`` (lockless hashing, Hyatt and Mann 2002)::

    data   63             48 47        42 41  40 39       32 31          16 15           0
          +-----------------+------------+------+-----------+--------------+--------------+
          | spare (static   | generation | bound| depth     | best move    | score        |
          | evaluation), 16 | 6          | 2    | 8         | 16           | 16, signed   |
          +-----------------+------------+------+-----------+--------------+--------------+

    bucket  +--------+--------+--------+--------+--------+--------+--------+--------+
    64 byte | check0 | data0  | check1 | data1  | check2 | data2  | check3 | data3  |   one cache line
            +--------+--------+--------+--------+--------+--------+--------+--------+

A `data` word of zero is an empty slot: a stored entry always has a bound, so its word is never zero.
"""

from __future__ import annotations

from typing import NamedTuple

WORD_BYTES = 8
SHORT_BYTES = 2
ENTRY_BYTES = 16
BUCKET_ENTRIES = 4
BUCKET_BYTES = ENTRY_BYTES * BUCKET_ENTRIES
BYTES_PER_MB = 1 << 20

SCORE_SHIFT, SCORE_MASK = 0, 0xFFFF
MOVE_SHIFT, MOVE_MASK = 16, 0xFFFF
DEPTH_SHIFT, DEPTH_MASK = 32, 0xFF
BOUND_SHIFT, BOUND_MASK = 40, 0x3
GENERATION_SHIFT, GENERATION_MASK = 42, 0x3F
SPARE_SHIFT, SPARE_MASK = 48, 0xFFFF

NO_MOVE = 0
"""The best-move field of an entry that knows none; no game uses it as a move."""

BOUND_NONE, BOUND_LOWER, BOUND_UPPER, BOUND_EXACT = 0, 1, 2, 3
"""What a score says of the true value: at least, at most, equal. ``EXACT == LOWER | UPPER``."""


class Entry(NamedTuple):
    """The fields of a data word, for Python code; compiled code shifts and masks."""

    score: int
    """Score relative to the node, -32768..32767."""
    move: int
    """Best move, 0..65535; `NO_MOVE` when unknown."""
    depth: int
    """Depth searched below the node, 0..255 plies."""
    bound: int
    """`BOUND_LOWER`, `BOUND_UPPER` or `BOUND_EXACT`."""
    generation: int
    """Number of the search that wrote it, modulo 64."""


def pack(entry: Entry) -> int:
    """Return the data word of an entry."""
    return (
        (entry.score & SCORE_MASK) << SCORE_SHIFT
        | (entry.move & MOVE_MASK) << MOVE_SHIFT
        | (entry.depth & DEPTH_MASK) << DEPTH_SHIFT
        | (entry.bound & BOUND_MASK) << BOUND_SHIFT
        | (entry.generation & GENERATION_MASK) << GENERATION_SHIFT
    )


def unpack(data: int) -> Entry:
    """Return the fields of a data word."""
    score = data >> SCORE_SHIFT & SCORE_MASK
    return Entry(
        score=score - 0x10000 if score > 0x7FFF else score,
        move=data >> MOVE_SHIFT & MOVE_MASK,
        depth=data >> DEPTH_SHIFT & DEPTH_MASK,
        bound=data >> BOUND_SHIFT & BOUND_MASK,
        generation=data >> GENERATION_SHIFT & GENERATION_MASK,
    )


def buckets_in(size_mb: float) -> int:
    """Return how many buckets fit into a size in MB (2^20 bytes), at least one."""
    return max(1, int(size_mb * BYTES_PER_MB) // BUCKET_BYTES)
