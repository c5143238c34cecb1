"""Probe and store: compiled, lockless, racy by design, never raising.

Any number of threads and processes read and write the same buckets without a lock. A torn or foreign entry fails
the check ``check ^ data == key`` and reads as a miss (lockless hashing, Hyatt and Mann 2002), so a process may die at
any instruction without harm to the others.
"""

from __future__ import annotations

from tt_store.layout import (
    BOUND_EXACT,
    BOUND_MASK,
    BOUND_SHIFT,
    BUCKET_BYTES,
    BUCKET_ENTRIES,
    DEPTH_MASK,
    DEPTH_SHIFT,
    ENTRY_BYTES,
    GENERATION_MASK,
    GENERATION_SHIFT,
    MOVE_MASK,
    MOVE_SHIFT,
    SCORE_MASK,
    WORD_BYTES,
)
from tt_store.native import (
    as_int,
    as_word,
    atomic_read_word,
    atomic_write_word,
    helper,
    inlined,
    multiply_high,
    prefetch,
)

MISS = 0
"""What `probe` returns when it knows nothing."""

AGE_WORTH = 8
"""An entry loses as much worth with each search that has passed as with eight plies of depth."""

EXACT_WORTH = 2
"""An exact score is worth two plies more than a bound."""

_SCORE_SIGN = 0x8000


@inlined
def entry_score(data: int) -> int:
    """Return the signed score of a data word, relative to the node."""
    return ((data & SCORE_MASK) ^ _SCORE_SIGN) - _SCORE_SIGN


@inlined
def entry_move(data: int) -> int:
    """Return the best move of a data word, `NO_MOVE` if it has none."""
    return data >> MOVE_SHIFT & MOVE_MASK


@inlined
def entry_depth(data: int) -> int:
    """Return the depth of a data word, 0..255 plies."""
    return data >> DEPTH_SHIFT & DEPTH_MASK


@inlined
def entry_bound(data: int) -> int:
    """Return the bound of a data word."""
    return data >> BOUND_SHIFT & BOUND_MASK


@inlined
def pack_entry(score: int, move: int, depth: int, bound: int, generation: int) -> int:
    """Return the data word of an entry; see `tt_store.layout` for the fields' ranges."""
    return (
        score & SCORE_MASK
        | move << MOVE_SHIFT
        | depth << DEPTH_SHIFT
        | bound << BOUND_SHIFT
        | generation << GENERATION_SHIFT
    )


@inlined
def bucket_address(table: int, buckets: int, key: int) -> int:
    """Return the address of the bucket of a key: multiply-high, so any number of buckets will do."""
    return table + as_int(multiply_high(key, as_word(buckets))) * BUCKET_BYTES


@inlined
def prefetch_bucket(table: int, buckets: int, key: int) -> int:
    """Ask for a key's bucket long before it is probed; returns 0."""
    return prefetch(bucket_address(table, buckets, key))


@inlined
def worth(data: int, generation: int) -> int:
    """Return what keeping an entry is worth, in plies: falls with age, rises with depth and an exact bound."""
    age = (generation - (data >> GENERATION_SHIFT)) & GENERATION_MASK
    exact = EXACT_WORTH if entry_bound(data) == BOUND_EXACT else 0
    return entry_depth(data) - AGE_WORTH * age + exact


@inlined
def is_renewed(old: int, new: int) -> bool:
    """Tell whether an entry of the same key gives way: not where a deeper one of this search met a shallower bound."""
    same_generation = ((old ^ new) >> GENERATION_SHIFT & GENERATION_MASK) == 0
    return not (same_generation and entry_bound(new) != BOUND_EXACT and entry_depth(old) > entry_depth(new))


@helper
def probe(table: int, buckets: int, key: int) -> int:
    """Return the data word stored under a key, or `MISS`.

    Parameters
    ----------
    table
        Address of the first bucket.
    buckets
        Number of buckets, at least 1.
    key
        Full 64-bit hash (``uint64``).
    """
    slot = bucket_address(table, buckets, key)
    for _ in range(BUCKET_ENTRIES):
        # Race: another process may write between these two reads; the check then fails, and the slot is a miss.
        check = atomic_read_word(slot)
        data = atomic_read_word(slot + WORD_BYTES)
        if check ^ data == key:
            # An empty slot passes for key 0 and gives 0, which is MISS.
            return as_int(data)
        slot += ENTRY_BYTES
    return MISS


@helper
def store(table: int, buckets: int, key: int, data: int, generation: int) -> int:
    """Put a data word under a key; returns 1 where something was written, else 0.

    The entry of the same key is renewed if `is_renewed` says so; otherwise the one of least `worth` gives way,
    an empty slot first.
    """
    slot = bucket_address(table, buckets, key)
    victim = slot
    least = 1 << 30
    for _ in range(BUCKET_ENTRIES):
        # Race: what is judged here may be replaced before it is overwritten; at worst a better entry is lost.
        old_word = atomic_read_word(slot + WORD_BYTES)
        old = as_int(old_word)
        if atomic_read_word(slot) ^ old_word == key and old != MISS:
            if not is_renewed(old, data):
                return 0
            victim = slot
            break
        if old == MISS:
            victim = slot
            break
        value = worth(old, generation)
        if value < least:
            least = value
            victim = slot
        slot += ENTRY_BYTES
    word = as_word(data)
    # Race: a reader may see the new check with the old data, or two writers may mix; the check then fails.
    atomic_write_word(victim, key ^ word)
    atomic_write_word(victim + WORD_BYTES, word)
    return 1
