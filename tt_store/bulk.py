"""Many entries at once, by NumPy: out of a table, and into one of any size."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tt_store.layout import BUCKET_ENTRIES, DEPTH_MASK, DEPTH_SHIFT, WORD_BYTES
from tt_store.segment import Segment

BLOCK_ENTRIES = 1 << 16
"""Entries in one step: 1 MB, about 12 MB with all that is computed from it."""

Words = npt.NDArray[np.uint64]
CHECK, DATA = 0, 1
"""The words of an entry in a table; of one that travels, its key and its data."""

_HALF_BITS = np.uint64(32)
_HALF_MASK = np.uint64(0xFFFF_FFFF)


def bucket_indices(keys: Words, buckets: int) -> Words:
    """Return the bucket of each key: the high word of ``key * buckets``, as the compiled `multiply_high` has it.

    Parameters
    ----------
    keys
        ``[N]`` hashes.
    buckets
        Number of buckets, at least 1.
    """
    few, many = np.uint64(buckets & 0xFFFF_FFFF), np.uint64(buckets >> 32)
    low, high = keys & _HALF_MASK, keys >> _HALF_BITS
    high_few, low_many = high * few, low * many
    carry = (low * few >> _HALF_BITS) + (high_few & _HALF_MASK) + (low_many & _HALF_MASK)
    indices: Words = high * many + (high_few >> _HALF_BITS) + (low_many >> _HALF_BITS) + (carry >> _HALF_BITS)
    return indices


def table_words(segment: Segment) -> Words:
    """Return the table as ``[buckets, 4, 2]`` words: by address, as an exported pointer would block `close`."""
    memory = (ctypes.c_uint64 * (segment.size_bytes // WORD_BYTES)).from_address(segment.table_address)
    words: Words = np.ctypeslib.as_array(memory)
    return words.reshape(segment.buckets, BUCKET_ENTRIES, 2)


def gather(table: Words) -> Iterator[Words]:
    """Yield the entries of a table as blocks of ``[N, 2]`` keys and data."""
    step = BLOCK_ENTRIES // BUCKET_ENTRIES
    for first in range(0, len(table), step):
        # Race: others write meanwhile. What is judged below is this copy, and an entry that was torn in it has a
        # key that almost never belongs to its bucket.
        slots = table[first : first + step].copy()
        keys = slots[..., CHECK] ^ slots[..., DATA]
        own_index = np.arange(first, first + len(slots), dtype=np.uint64)[:, np.newaxis]
        whole = (slots[..., DATA] != 0) & (bucket_indices(keys, len(table)) == own_index)
        yield np.stack((keys[whole], slots[..., DATA][whole]), axis=1)


def merge(table: Words, entries: Words) -> int:
    """Put ``[N, 2]`` keys and data into their buckets, the deepest four of each; return how many were written."""
    touched, new_owner = np.unique(bucket_indices(entries[:, 0], len(table)), return_inverse=True)
    present = table[touched]
    old_owner, old_slot = np.nonzero(present[..., DATA])
    old = present[old_owner, old_slot]
    owner = np.concatenate((new_owner, old_owner))
    key = np.concatenate((entries[:, 0], old[:, CHECK] ^ old[:, DATA]))
    data = np.concatenate((entries[:, DATA], old[:, DATA]))
    shallowness = DEPTH_MASK - (data >> np.uint64(DEPTH_SHIFT) & np.uint64(DEPTH_MASK)).astype(np.int64)

    # Step 1. Of entries with one key keep the deepest; the sort is stable, so a new one wins a tie.
    order = np.lexsort((shallowness, key))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = key[order[1:]] != key[order[:-1]]
    order = order[is_first]

    # Step 2. Of the entries of a bucket keep the deepest four.
    order = order[np.lexsort((shallowness[order], owner[order]))]
    rank = np.arange(len(order)) - np.searchsorted(owner[order], owner[order])
    order, rank = order[rank < BUCKET_ENTRIES], rank[rank < BUCKET_ENTRIES]

    # Step 3. Write whole buckets. Race: a reader meets old and new words mixed; its check then fails.
    present[:] = 0
    present[owner[order], rank, CHECK] = key[order] ^ data[order]
    present[owner[order], rank, DATA] = data[order]
    table[touched] = present
    return int(np.count_nonzero(order < len(entries)))
