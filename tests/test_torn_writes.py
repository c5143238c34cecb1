"""Four processes on one table that is far too small for them: whatever a probe accepts was stored under that key.

Each worker is this file, run as a program. What is stored under a key is a function of the key and of a counter that
the entry itself holds, so that every accepted probe can be judged from the key and the data alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tt_store.layout import BOUND_LOWER, BOUND_SHIFT, BUCKET_BYTES, BYTES_PER_MB, GENERATION_MASK, SCORE_MASK
from tt_store.native import JIT_DISABLED, as_int, as_word, atomic_read_word, atomic_write_word, entry, helper
from tt_store.segment import Segment
from tt_store.table import MISS, bucket_address, probe, store

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="only compiled code is fast enough to race")

WORKERS = 4
BUCKETS = (1, 3, 16)
KEYS_PER_BUCKET = 8
"""Twice as many as fit, so that about every other probe hits."""

ROUNDS = 20_000
"""Operations between two looks at the clock."""

SAFE, NAIVE = 0, 1
"""The table's own probe and store; or a table without the exclusive or, to prove that this test can fail."""

_FACTOR_A, _FACTOR_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF, _ROUND_BITS = np.uint64(32), (np.uint64(13), np.uint64(7), np.uint64(17))
_COUNTER_MASK = np.uint64(SCORE_MASK)
_A_BOUND = np.uint64(BOUND_LOWER << BOUND_SHIFT)
_GENERATION_MASK, _ONE = np.uint64(GENERATION_MASK), np.uint64(1)


@helper
def mixed(word: Any) -> Any:
    """Return a hash of a word; 0 of 0."""
    word = (word ^ word >> _HALF) * _FACTOR_A
    word = (word ^ word >> _HALF) * _FACTOR_B
    return word ^ word >> _HALF


@helper
def data_for(key: Any, counter: Any) -> Any:
    """Return what the tests store: the counter as the score, all other fields a hash of it and the key."""
    return mixed(key ^ counter * _FACTOR_A) & ~_COUNTER_MASK | counter & _COUNTER_MASK | _A_BOUND


@helper
def naive_store(table: int, buckets: int, key: int, data: int) -> int:
    slot = bucket_address(table, buckets, key)
    atomic_write_word(slot, key)
    atomic_write_word(slot + 8, as_word(data))
    return 1


@helper
def naive_probe(table: int, buckets: int, key: int) -> int:
    slot = bucket_address(table, buckets, key)
    return as_int(atomic_read_word(slot + 8)) if atomic_read_word(slot) == key else MISS


@entry
def race(mode: int, table: int, buckets: int, seed: int, rounds: int) -> tuple[int, int, int, int]:
    """Store and probe at random; returns the hits, the stores, the violations, and the next seed."""
    state, key_count = as_word(seed), as_word(buckets * KEYS_PER_BUCKET)
    hits = stores = violations = 0
    for _ in range(rounds):
        state ^= state << _ROUND_BITS[0]
        state ^= state >> _ROUND_BITS[1]
        state ^= state << _ROUND_BITS[2]
        key = mixed((state >> _HALF) % key_count)
        if state & _ONE:
            counter = state >> _ONE & _COUNTER_MASK
            data = as_int(data_for(key, counter))
            if mode == SAFE:
                stores += store(table, buckets, key, data, as_int(counter & _GENERATION_MASK))
            else:
                stores += naive_store(table, buckets, key, data)
        else:
            found = probe(table, buckets, key) if mode == SAFE else naive_probe(table, buckets, key)
            if found != MISS:
                hits += 1
                word = as_word(found)
                violations += data_for(key, word & _COUNTER_MASK) != word
    return hits, stores, violations, as_int(state)


def work(path: Path, number: int) -> None:
    """Race whenever standard input says so: one line in, one line out."""
    seed = 88172645463325252 + number
    with Segment.attach(path) as segment:
        for mode in (SAFE, NAIVE):
            race(mode, segment.table_address, 1, seed, 0)  # Compiles.
        print("ready", flush=True)
        for line in sys.stdin:
            mode, buckets, seconds = json.loads(line)
            totals, end = [0, 0, 0], time.monotonic() + seconds
            while time.monotonic() < end:
                *counts, seed = race(mode, segment.table_address, buckets, seed, ROUNDS)
                totals = [total + count for total, count in zip(totals, counts, strict=True)]
            print(json.dumps(totals), flush=True)


class Workers:
    """The processes, each waiting for orders."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, __file__, str(path)]
        options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        options["env"] = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        self.processes = [subprocess.Popen([*command, str(number)], **options) for number in range(WORKERS)]
        assert self._answers() == ["ready\n"] * WORKERS

    def race(self, mode: int, buckets: int, seconds: float) -> list[tuple[int, int, int]]:
        """Return hits, stores and violations of each process."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps([mode, buckets, seconds]) + "\n")
            process.stdin.flush()
        return [tuple(json.loads(answer)) for answer in self._answers()]

    def stop(self) -> list[int]:
        for process in self.processes:
            process.communicate(timeout=20)
        return [process.returncode for process in self.processes]

    def _answers(self) -> list[str]:
        return [process.stdout.readline() for process in self.processes if process.stdout is not None]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    size_mb = max(BUCKETS) * BUCKET_BYTES / BYTES_PER_MB
    with Segment.create(size_mb, label="torn", directory=tmp_path_factory.mktemp("torn")) as segment:
        assert segment.path is not None
        started = Workers(segment.path)
        yield started
        assert started.stop() == [0] * WORKERS


@pytest.mark.parametrize("buckets", BUCKETS)
def test_whatever_a_probe_accepts_was_stored_under_its_key(buckets: int, workers: Workers) -> None:
    counts = workers.race(SAFE, buckets, seconds=1.0)
    for hits, stores, violations in counts:
        assert violations == 0
        assert hits > 2_000
        assert stores > 2_000


def test_without_the_exclusive_or_it_would_fail(workers: Workers) -> None:
    violations, tries = 0, 0
    while violations == 0 and tries < 10:
        violations = sum(count for _, _, count in workers.race(NAIVE, 1, seconds=0.5))
        tries += 1
    assert violations > 0


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]))
