"""Probe and store against plain oracles, one process at a time; compiled, and again with the JIT off."""

from __future__ import annotations

import ctypes
import random
from itertools import product

import numpy as np
import pytest
from conftest import run_without_jit
from hypothesis import given, settings
from hypothesis import strategies as st

from tt_store.layout import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_SHIFT,
    BOUND_UPPER,
    BUCKET_BYTES,
    BUCKET_ENTRIES,
    BYTES_PER_MB,
    GENERATION_MASK,
    SPARE_SHIFT,
    Entry,
    pack,
    unpack,
)
from tt_store.native import (
    JIT_DISABLED,
    as_int,
    as_word,
    atomic_read_int,
    atomic_read_word,
    atomic_write_int,
    atomic_write_word,
    count_ones,
    entry,
    multiply_high,
    read_int,
    read_short,
    read_word,
    trailing_zeros,
    write_int,
    write_short,
)
from tt_store.segment import Segment
from tt_store.table import (
    MISS,
    bucket_address,
    entry_bound,
    entry_depth,
    entry_move,
    entry_score,
    is_renewed,
    pack_entry,
    prefetch_bucket,
    probe,
    store,
    worth,
)

EXAMPLES = 30 if JIT_DISABLED else 200
LIGHT = settings(max_examples=EXAMPLES, deadline=None)
BOUNDS = (BOUND_LOWER, BOUND_UPPER, BOUND_EXACT)

keys = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]))
entries = st.builds(
    Entry,
    score=st.integers(-(2**15), 2**15 - 1),
    move=st.integers(0, 2**16 - 1),
    depth=st.integers(0, 255),
    bound=st.sampled_from(BOUNDS),
    generation=st.integers(0, GENERATION_MASK),
)


def signed(word: int) -> int:
    """Return the bits of a word as the signed integer that Python hands to compiled code."""
    return word - 2**64 if word >> 63 else word


@entry
def put(table: int, buckets: int, key: int, data: int, generation: int) -> int:
    return store(table, buckets, as_word(key), data, generation)


@entry
def look_up(table: int, buckets: int, key: int) -> int:
    prefetch_bucket(table, buckets, as_word(key))
    return probe(table, buckets, as_word(key))


@entry
def compiled_pack(score: int, move: int, depth: int, bound: int, generation: int) -> int:
    return pack_entry(score, move, depth, bound, generation)


@entry
def fields_of(data: int) -> tuple[int, int, int, int]:
    return entry_score(data), entry_move(data), entry_depth(data), entry_bound(data)


@entry
def renews(old: int, new: int) -> bool:
    return is_renewed(old, new)


@entry
def worth_of(data: int, generation: int) -> int:
    return worth(data, generation)


@entry
def index_of(buckets: int, key: int) -> int:
    return bucket_address(0, buckets, as_word(key)) // BUCKET_BYTES


@entry
def bits_of(word: int, other: int) -> tuple[int, int, int, int]:
    word_, other_ = as_word(word), as_word(other)
    return count_ones(word_), trailing_zeros(word_), as_int(multiply_high(word_, other_)), as_int(word_)


@entry
def move_words(address: int, value: int) -> tuple[int, int, int, int]:
    """Write three words, each in its own way, and read them back."""
    write_int(address, value)
    atomic_write_int(address + 8, value)
    atomic_write_word(address + 16, as_word(value))
    words = as_int(read_word(address + 8)), as_int(atomic_read_word(address + 16))
    return read_int(address), atomic_read_int(address + 8), *words


@entry
def move_shorts(address: int, value: int) -> tuple[int, int]:
    """Write a short between two others, and read it and all of them."""
    write_int(address, 0)
    write_short(address + 2, value)
    return read_short(address + 2), read_int(address)


class Table:
    """A private table, called with plain Python integers."""

    def __init__(self, buckets: int) -> None:
        self.segment = Segment.private(buckets * BUCKET_BYTES / BYTES_PER_MB)
        assert self.segment.buckets == buckets
        self._place = self.segment.table_address, buckets

    def store(self, key: int, item: Entry, generation: int) -> bool:
        """Tell whether it was written."""
        return bool(put(*self._place, signed(key), pack(item), generation))

    def probe(self, key: int) -> Entry | None:
        data = look_up(*self._place, signed(key))
        return None if data == MISS else unpack(data)


def plain_worth(item: Entry, generation: int) -> int:
    age = (generation - item.generation) % 64
    return item.depth - 8 * age + 2 * (item.bound == BOUND_EXACT)


@LIGHT
@given(entries)
def test_pack_agrees_with_layout(item: Entry) -> None:
    data = compiled_pack(*item)
    assert data == pack(item)
    assert unpack(data) == item
    assert fields_of(data) == item[:4]
    for spare in (0x7FFF, 0x8000, 0xFFFF):  # In the sign bit, too: it reaches no other field.
        with_spare = signed(data | spare << SPARE_SHIFT)
        assert fields_of(with_spare) == item[:4]
        assert worth_of(with_spare, 5) == worth_of(data, 5)


def test_pack_agrees_at_all_extremes() -> None:
    extremes = ((-(2**15), -1, 0, 1, 2**15 - 1), (0, 1, 0xFFFF), (0, 1, 255), BOUNDS, (0, 1, 63))
    for item in map(Entry._make, product(*extremes)):
        data = compiled_pack(*item)
        assert data == pack(item) != 0
        assert fields_of(data) == item[:4]
        assert unpack(data) == item


@LIGHT
@given(
    st.integers(1, 3),
    st.lists(keys, min_size=1, max_size=10, unique=True),
    st.lists(st.tuples(st.integers(0, 9), entries), max_size=40),
)
def test_probe_gives_what_was_stored_last_or_a_miss(
    buckets: int, pool: list[int], operations: list[tuple[int, Entry]]
) -> None:
    table, last = Table(buckets), dict[int, Entry]()
    for number, item in operations:
        key = pool[number % len(pool)]
        if table.store(key, item, item.generation):
            last[key] = item
            assert table.probe(key) == item
        else:  # Only the entry of the same key can refuse it.
            assert table.probe(key) == last[key]
        for other in pool:
            assert table.probe(other) in (None, last.get(other))
    table.segment.close()


@LIGHT
@given(st.lists(st.tuples(st.integers(0, 7), entries), max_size=60), st.booleans())
def test_one_bucket_behaves_as_the_plain_model(operations: list[tuple[int, Entry]], few_generations: bool) -> None:
    table, model = Table(1), list[tuple[int, Entry]]()
    for key, drawn in operations:
        item = drawn._replace(generation=drawn.generation % 3) if few_generations else drawn
        now = item.generation
        same = [slot for slot, (other, _) in enumerate(model) if other == key]
        if same:
            old = model[same[0]][1]
            slot, kept = same[0], old.generation == now and item.bound != BOUND_EXACT and old.depth > item.depth
        else:
            full = len(model) == BUCKET_ENTRIES
            slot = min(range(4), key=lambda slot: plain_worth(model[slot][1], now)) if full else len(model)
            kept = False
        assert table.store(key, item, now) is not kept
        if not kept:
            model[slot : slot + 1] = [(key, item)]
        found = {other: table.probe(other) for other in range(8)}
        assert {other: item for other, item in found.items() if item is not None} == dict(model)
    table.segment.close()


@pytest.mark.parametrize("new_bound", BOUNDS)
@pytest.mark.parametrize("old_bound", BOUNDS)
@pytest.mark.parametrize("same_generation", [True, False])
@pytest.mark.parametrize(("old_depth", "new_depth"), [(5, 4), (5, 5), (5, 6), (255, 0), (0, 255)])
def test_when_an_entry_of_the_same_key_is_renewed(
    new_bound: int, old_bound: int, same_generation: bool, old_depth: int, new_depth: int
) -> None:
    old = Entry(-7, 1, old_depth, old_bound, 63)
    new = Entry(8, 2, new_depth, new_bound, 63 if same_generation else 0)
    renewed = new_bound == BOUND_EXACT or not same_generation or new_depth >= old_depth
    assert bool(renews(pack(old), pack(new))) is renewed
    table = Table(1)
    assert table.store(9, old, 63)
    assert table.store(9, new, new.generation) is renewed
    assert table.probe(9) == (new if renewed else old)
    table.segment.close()


@pytest.mark.parametrize(
    ("depths_ages_bounds", "victim"),
    [
        ([(4, 0, 1), (3, 0, 1), (5, 0, 1), (6, 0, 1)], 1),  # The shallowest.
        ([(3, 0, 1), (3, 0, 2), (3, 0, 1), (3, 0, 1)], 0),  # The first of equals.
        ([(23, 3, 1), (0, 0, 1), (1, 0, 1), (2, 0, 1)], 0),  # Age beats depth: 8 plies a generation.
        ([(25, 3, 1), (0, 0, 1), (1, 0, 1), (2, 0, 1)], 1),
        ([(9, 0, 1), (4, 0, 1), (3, 0, 3), (9, 0, 1)], 1),  # An exact score: 2 plies more.
        ([(9, 0, 1), (4, 0, 1), (1, 0, 3), (9, 0, 1)], 2),
        ([(255, 63, 3), (0, 30, 1), (9, 31, 1), (0, 0, 1)], 0),  # One search ahead is 63 behind.
        ([(255, 0, 3), (255, 1, 3), (255, 2, 3), (255, 3, 3)], 3),
    ],
)
@pytest.mark.parametrize("now", [0, 2, 63])
def test_the_entry_of_least_worth_gives_way(
    depths_ages_bounds: list[tuple[int, int, int]], victim: int, now: int
) -> None:
    table = Table(1)
    old = [Entry(key, 7, depth, bound, (now - age) % 64) for key, (depth, age, bound) in enumerate(depths_ages_bounds)]
    for key, item in enumerate(old):
        assert worth_of(pack(item), now) == plain_worth(item, now)
        assert table.store(key, item, item.generation)
    assert table.store(2**64 - 1, Entry(99, 9, 0, BOUND_UPPER, now), now)
    assert [key for key in range(4) if table.probe(key) is None] == [victim]
    assert table.probe(2**64 - 1) == Entry(99, 9, 0, BOUND_UPPER, now)
    table.segment.close()


def test_an_empty_slot_is_a_miss_for_key_0() -> None:
    table, item = Table(1), Entry(-1, 3, 2, BOUND_LOWER, 1)
    assert table.probe(0) is None
    assert table.store(1, item, 1)
    assert table.probe(0) is None
    assert table.store(0, item, 1)
    assert table.probe(0) == item
    table.segment.close()


@LIGHT
@given(st.one_of(st.sampled_from([1, 3, 7, 1_000_003]), st.integers(1, 2**41)), keys)
def test_every_index_is_multiply_high(buckets: int, key: int) -> None:
    index = index_of(buckets, signed(key))
    assert index == key * buckets >> 64
    assert 0 <= index < buckets


@pytest.mark.parametrize("buckets", [1, 3, 7, 1_000_003])
def test_buckets_are_evenly_used(buckets: int) -> None:
    generator, ranges = random.Random(buckets), min(buckets, 16)
    draws = 2_000 if JIT_DISABLED else 40_000
    counts = [0] * ranges
    for _ in range(draws):
        index = index_of(buckets, signed(generator.getrandbits(64)))
        assert 0 <= index < buckets
        counts[index * ranges // buckets] += 1
    share = 1 / ranges
    deviation = (draws * share * (1 - share)) ** 0.5
    assert all(abs(count - draws * share) <= 5 * deviation for count in counts)


def fill_slots(segment: Segment, bucket: int, generations: list[int]) -> None:
    for slot, generation in enumerate(generations):
        data = pack(Entry(0, 0, 1, BOUND_LOWER, generation))
        address = segment.table_address + bucket * BUCKET_BYTES + 16 * slot
        ctypes.c_uint64.from_address(address).value = 12345 ^ data
        ctypes.c_uint64.from_address(address + 8).value = data


@pytest.mark.parametrize("buckets", [1, 3, 7, 250, 251, 1000])
def test_hashfull(buckets: int) -> None:
    with Table(buckets).segment as segment:
        assert segment.hashfull() == segment.hashfull(0) == 0
        for bucket in range(buckets):
            fill_slots(segment, bucket, [5, 63])
        assert segment.hashfull() == 0.5
        assert [segment.hashfull(generation) for generation in (0, 5, 63)] == [0, 0.25, 0.25]
        for bucket in range(buckets):
            fill_slots(segment, bucket, [5, 63, 0, 0])
        assert segment.hashfull() == 1
        assert [segment.hashfull(generation) for generation in (0, 5, 63)] == [0.5, 0.25, 0.25]


def test_hashfull_looks_at_the_whole_table() -> None:
    with Table(1000).segment as segment:
        for bucket in range(500, 1000):
            fill_slots(segment, bucket, [1, 1, 1, 1])
        assert segment.hashfull() == segment.hashfull(sample_buckets=2) == segment.hashfull(1, 10**9) == 0.5
        assert segment.hashfull(sample_buckets=1) == 0


def test_generation_goes_round() -> None:
    with Segment.private(0.01) as segment:
        assert segment.generation == 0
        assert [segment.advance_generation() for _ in range(65)] == [*range(1, 64), 0, 1]
        assert segment.generation == 1


@LIGHT
@given(keys, keys)
def test_primitives_agree_with_python(word: int, other: int) -> None:
    zeros = 64 if word == 0 else (word ^ (word - 1)).bit_length() - 1
    high = signed(word * other >> 64)
    assert bits_of(signed(word), signed(other)) == (bin(word).count("1"), zeros, high, signed(word))
    with Segment.private(0.01) as segment:
        assert move_words(segment.table_address, signed(word)) == (signed(word),) * 4


def test_a_bound_makes_every_entry_visible() -> None:
    assert all(compiled_pack(0, 0, 0, bound, 0) >> BOUND_SHIFT for bound in BOUNDS)


def test_a_short_is_written_among_others() -> None:
    words = np.zeros(1, np.int64)
    for value in (0, 1, -1, 0x7FFF, -0x8000, 0x12345):
        short = ((value & 0xFFFF) ^ 0x8000) - 0x8000
        assert move_shorts(words.ctypes.data, value) == (short, (value & 0xFFFF) << 16)


@pytest.mark.skipif(JIT_DISABLED, reason="this is the run with the JIT off")
def test_all_of_this_with_the_jit_off() -> None:
    run = run_without_jit(__file__, "error")
    assert run.returncode == 0, run.stdout
    assert "1 skipped" in run.stdout
