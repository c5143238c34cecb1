"""The speed of the compiled table alone: random stores, then random probes, as the C++ yardstick has them."""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np

from tt_store.layout import BOUND_EXACT
from tt_store.native import as_int, as_word, entry
from tt_store.segment import Segment
from tt_store.table import MISS, pack_entry, probe, store

OPERATIONS = 20_000_000
SEED = 88172645463325252
SCORES, DEPTHS = 1024, 32
"""Scores and depths go round below these powers of two."""

MOVE, GENERATION = 3, 1
_SHIFTS = np.uint64(13), np.uint64(7), np.uint64(17)


@dataclass(frozen=True)
class TableSpeed:
    """Operations per second of one thread, each the median of the repeats."""

    stores_per_s: float
    probes_per_s: float


@entry
def store_many(table: int, buckets: int, seed: int, count: int) -> int:
    """Store under random keys; returns the generator's state."""
    state = as_word(seed)
    for number in range(count):
        state ^= state << _SHIFTS[0]
        state ^= state >> _SHIFTS[1]
        state ^= state << _SHIFTS[2]
        data = pack_entry(number & (SCORES - 1), MOVE, number & (DEPTHS - 1), BOUND_EXACT, GENERATION)
        store(table, buckets, state, data, GENERATION)
    return as_int(state)


@entry
def probe_many(table: int, buckets: int, seed: int, count: int) -> int:
    """Probe random keys; returns the number of hits."""
    state, hits = as_word(seed), 0
    for _ in range(count):
        state ^= state << _SHIFTS[0]
        state ^= state >> _SHIFTS[1]
        state ^= state << _SHIFTS[2]
        hits += probe(table, buckets, state) != MISS
    return hits


def measure(size_mb: float, repeats: int) -> TableSpeed:
    """Measure a private table, each time filled with zeros first, so that no page is touched for the first time.

    Parameters
    ----------
    size_mb
        Size of the table in MB (2^20 bytes).
    repeats
        How often to measure, at least 1; each takes about two seconds.
    """
    stores, probes = [], []
    with Segment.private(size_mb) as segment:
        place = segment.table_address, segment.buckets
        probe_many(*place, store_many(*place, SEED, 1), 1)  # Compiles.
        for _ in range(repeats):
            ctypes.memset(segment.table_address, 0, segment.size_bytes)
            begin = time.perf_counter()
            state = store_many(*place, SEED, OPERATIONS)
            middle = time.perf_counter()
            probe_many(*place, state, OPERATIONS)
            stores.append(OPERATIONS / (middle - begin))
            probes.append(OPERATIONS / (time.perf_counter() - middle))
    return TableSpeed(statistics.median(stores), statistics.median(probes))


if __name__ == "__main__":
    print(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 64.0, repeats=3))
