"""News of a table: a ring into which kernels write the deep entries that they store, for whoever tells other machines.

The ring lies in memory that a machine's processes share, and is known by its address::

    word 0          head: how many entries were ever noted; advanced by one atomic addition an entry
    word 8          least depth: entries of so many plies or more are noted; 0, that of zeroed memory: nobody wants news
    words 16..      the last `RING` entries, two words each: ``check = key ^ data`` and ``data``, as in the table

Head and least depth are in cache lines of their own: the one is written all the time, the other is read all the time.
Nobody waits for anybody: a reader that is late loses the oldest news, and that costs other machines time only.
"""

from __future__ import annotations

import ctypes

import numpy as np

from tt_store.bulk import CHECK, DATA, Words
from tt_store.layout import ENTRY_BYTES, WORD_BYTES
from tt_store.native import as_word, atomic_add_int, atomic_read_int, atomic_write_word, helper
from tt_store.table import entry_depth, store

RING = 8192
"""A power of two: four messages of `tt_store.exchange`."""
_FIRST_ENTRY = 16
NEWS_WORDS = _FIRST_ENTRY + RING * ENTRY_BYTES // WORD_BYTES
"""Words that the ring takes, zeroed at first."""

_HEAD = 0 * WORD_BYTES
_LEAST_DEPTH = 8 * WORD_BYTES
_ENTRIES = _FIRST_ENTRY * WORD_BYTES


@helper
def store_and_note(table: int, buckets: int, key: int, data: int, generation: int, news: int) -> int:
    """Put a data word under a key, as `store` does, and note it if it is wanted; returns what `store` returns.

    Parameters
    ----------
    table, buckets, key, data, generation
        As for `store`.
    news
        Address of the ring. Where nobody wants news it costs one read and one comparison.
    """
    was_stored = store(table, buckets, key, data, generation)
    if was_stored == 0:
        return 0
    least = atomic_read_int(news + _LEAST_DEPTH)
    if least != 0 and entry_depth(data) >= least:
        slot = news + _ENTRIES + (atomic_add_int(news + _HEAD, 1) & (RING - 1)) * ENTRY_BYTES
        word = as_word(data)
        # Race: a reader may see the new head and the old entry, or one new word and one old; so may two writers mix
        # theirs that are a whole ring apart. What is read then is old news, or an entry of a key that nobody has.
        atomic_write_word(slot, key ^ word)
        atomic_write_word(slot + WORD_BYTES, word)
    return was_stored


class News:
    """Reads a ring, from what is noted next on; one object at a time should.

    Parameters
    ----------
    address
        Of `NEWS_WORDS` words that were zeroed once and outlive this object's use.
    """

    def __init__(self, address: int) -> None:
        self._head = ctypes.c_int64.from_address(address + _HEAD)
        self._least_depth = ctypes.c_int64.from_address(address + _LEAST_DEPTH)
        ring = (ctypes.c_uint64 * (NEWS_WORDS - _FIRST_ENTRY)).from_address(address + _ENTRIES)
        self._ring: Words = np.ctypeslib.as_array(ring).reshape(RING, 2)
        self._taken = self._head.value

    @property
    def least_depth(self) -> int:
        """Entries of so many plies or more are noted; 0 if none are."""
        return self._least_depth.value

    @least_depth.setter
    def least_depth(self, depth: int) -> None:
        # Race: kernels read this word while we write it; `ctypes` writes it in one piece.
        self._least_depth.value = depth

    def take(self) -> Words:
        """Return ``[N, 2]`` keys and data noted since the last call, the oldest first: the last `RING` at most.

        A word of data may be 0: of an entry whose writer has not come to it yet.
        """
        # Race: others note meanwhile: the oldest of what is copied here may be news that the next call brings again.
        head = self._head.value
        first = max(self._taken, head - RING)
        self._taken = head
        entries: Words = self._ring[(first % RING + np.arange(max(0, head - first))) % RING]
        entries[:, CHECK] ^= entries[:, DATA]
        return entries
