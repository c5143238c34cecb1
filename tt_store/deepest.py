"""The deepest entries of a table: what of a search is dear to find again."""

from __future__ import annotations

import numpy as np

from tt_store.bulk import CHECK, DATA, Words, bucket_indices, table_words
from tt_store.exchange import LEAST_DEPTH, MOST_ENTRIES, pack
from tt_store.layout import DEPTH_MASK, DEPTH_SHIFT
from tt_store.segment import Segment

_STEP_BUCKETS = 1 << 18
"""Looked at in one step: 16 MB."""


def deepest(segment: Segment, most: int) -> list[bytes]:
    """Return the deepest entries of a table as messages that `tt_store.exchange.deliver` takes.

    The table may be in use: entries that are torn at that moment are left out.

    Parameters
    ----------
    segment
        The table.
    most
        How many entries at most.
    """
    table = table_words(segment)
    found: Words = np.zeros((0, 2), np.uint64)
    least = LEAST_DEPTH
    for first in range(0, len(table), _STEP_BUCKETS):
        found = np.concatenate((found, _entries(table, first, least)))
        if len(found) > 2 * most:
            found = _first(found, most)
            least = max(least, int(_depths(found).min()))
    found = _first(found, most)
    return [pack(found[first : first + MOST_ENTRIES]) for first in range(0, len(found), MOST_ENTRIES)]


def _entries(table: Words, first: int, least_depth: int) -> Words:
    """Return the whole entries of some buckets that are deep enough, as keys and data."""
    # Race: others write meanwhile; what is judged is this copy, and torn entries have keys of other buckets.
    slots = table[first : first + _STEP_BUCKETS].copy()
    data = slots[..., DATA]
    bucket, slot = np.nonzero((data != 0) & (data >> np.uint64(DEPTH_SHIFT) & np.uint64(DEPTH_MASK) >= least_depth))
    keys = slots[bucket, slot, CHECK] ^ slots[bucket, slot, DATA]
    entries: Words = np.stack((keys, slots[bucket, slot, DATA]), axis=1)
    whole: Words = entries[bucket_indices(keys, len(table)) == (bucket + first).astype(np.uint64)]
    return whole


def _first(entries: Words, most: int) -> Words:
    """Return the deepest entries, the deepest first."""
    order = np.argsort(-_depths(entries), kind="stable")[:most]
    chosen: Words = entries[order]
    return chosen


def _depths(entries: Words) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return (entries[:, DATA] >> np.uint64(DEPTH_SHIFT) & np.uint64(DEPTH_MASK)).astype(np.int64)
