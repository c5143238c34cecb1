"""Deep entries between the tables of different machines: out and in as short checked messages.

A message is ``magic | number of entries | checksum | entries``; an entry is its key and its data, 8 bytes each,
little-endian. Entries that have travelled, here or there, carry a mark in their spare bits and do not travel again: not
back to where they came from, and not twice. A kernel that renews an entry takes the mark away.
"""

from __future__ import annotations

import hashlib

import numpy as np

from tt_store.bulk import CHECK, DATA, Words, bucket_indices, merge, table_words
from tt_store.errors import TableError
from tt_store.layout import (
    BOUND_MASK,
    BOUND_SHIFT,
    DEPTH_MASK,
    DEPTH_SHIFT,
    ENTRY_BYTES,
    GENERATION_MASK,
    GENERATION_SHIFT,
    SPARE_SHIFT,
)
from tt_store.segment import Segment

MAGIC = b"ROOTSXC1"
CHECKSUM_BYTES = 16
HEADER_BYTES = len(MAGIC) + 4 + CHECKSUM_BYTES
MOST_ENTRIES = 2000
"""In one message: 32 kB."""
LEAST_DEPTH = 5
"""Shallower entries are searched again sooner than they travel."""
SLICE_BUCKETS = 1 << 15
"""Looked at in one step: 2 MB, about a millisecond."""

_TRAVELLED = np.uint64(1 << SPARE_SHIFT)


class Outbox:
    """Collects what other machines should know, a slice of the table at a time.

    Parameters
    ----------
    segment
        This machine's table.
    """

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._cursor = 0
        self.least_depth = LEAST_DEPTH
        """Follows the traffic: rises while slices hold more than a message, falls while they hold little."""

    def collect(self) -> bytes:
        """Return the message of the next slice: entries of this search, the deepest first; empty if there are none."""
        table = table_words(self._segment)
        first = self._cursor
        last = min(first + SLICE_BUCKETS, len(table))
        self._cursor = last % len(table)
        # Race: others write meanwhile; what is judged is this copy, and torn entries have keys of other buckets.
        slots = table[first:last].copy()
        data = slots[..., DATA]
        wanted = (data != 0) & (data & _TRAVELLED == 0) & (_depths(data) >= self.least_depth)
        wanted &= _field(data, GENERATION_SHIFT, GENERATION_MASK) == self._segment.generation
        bucket, slot = np.nonzero(wanted)
        keys = slots[bucket, slot, CHECK] ^ slots[bucket, slot, DATA]
        whole = bucket_indices(keys, len(table)) == (bucket + first).astype(np.uint64)
        bucket, slot, keys = bucket[whole], slot[whole], keys[whole]
        chosen = np.argsort(-_depths(slots[bucket, slot, DATA]), kind="stable")[:MOST_ENTRIES]
        self._adapt(len(keys))
        if not len(chosen):
            return b""
        bucket, slot, keys = bucket[chosen], slot[chosen], keys[chosen]
        entries = np.stack((keys, slots[bucket, slot, DATA]), axis=1)
        # Race: an entry that was renewed meanwhile loses its renewal to the mark of its predecessor: a lost store.
        marked = entries[:, DATA] | _TRAVELLED
        table[first + bucket, slot, CHECK] = keys ^ marked
        table[first + bucket, slot, DATA] = marked
        return pack(entries)

    def _adapt(self, found: int) -> None:
        if found > MOST_ENTRIES:
            self.least_depth = min(DEPTH_MASK, self.least_depth + 1)
        elif found < MOST_ENTRIES // 8:
            self.least_depth = max(LEAST_DEPTH, self.least_depth - 1)


def deliver(segment: Segment, message: bytes) -> int:
    """Put the entries of a message into a table and return how many it held.

    Raises
    ------
    TableError
        If the message is damaged or no message of ours; the table is then untouched.
    """
    entries = unpack(message)
    if len(entries):
        entries[:, DATA] |= _TRAVELLED
        shift = np.uint64(GENERATION_SHIFT)
        mask = np.uint64(GENERATION_MASK) << shift
        entries[:, DATA] = entries[:, DATA] & ~mask | np.uint64(segment.generation) << shift
        merge(table_words(segment), entries)
    return len(entries)


def pack(entries: Words) -> bytes:
    """Return the message of ``[N, 2]`` keys and data, N at most `MOST_ENTRIES`."""
    body = entries.astype("<u8").tobytes()
    return MAGIC + len(entries).to_bytes(4, "little") + _checksum(body) + body


def unpack(message: bytes) -> Words:
    """Return the ``[N, 2]`` keys and data of a message; an empty message has none.

    Raises
    ------
    TableError
        If anything about it is wrong.
    """
    if not message:
        return np.zeros((0, 2), np.uint64)
    count = int.from_bytes(message[len(MAGIC) : len(MAGIC) + 4], "little")
    body = message[HEADER_BYTES:]
    is_whole = message[: len(MAGIC)] == MAGIC and 0 < count <= MOST_ENTRIES and len(body) == count * ENTRY_BYTES
    if not is_whole or message[HEADER_BYTES - CHECKSUM_BYTES : HEADER_BYTES] != _checksum(body):
        raise TableError("a batch of table entries from another machine is damaged")
    entries: Words = np.frombuffer(body, dtype="<u8").reshape(-1, 2).astype(np.uint64)
    if not np.all(_field(entries[:, DATA], BOUND_SHIFT, BOUND_MASK)):
        raise TableError("a batch of table entries from another machine holds entries without a bound")
    return entries


def entries_in(message: bytes) -> int:
    """Return how many entries a message of ours holds, by its length."""
    return max(0, len(message) - HEADER_BYTES) // ENTRY_BYTES


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def _field(data: Words, shift: int, mask: int) -> Words:
    return data >> np.uint64(shift) & np.uint64(mask)


def _depths(data: Words) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return _field(data, DEPTH_SHIFT, DEPTH_MASK).astype(np.int64)
