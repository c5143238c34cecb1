"""Entries that travel between tables: checked, deepest first, never back and never twice."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tt_store import exchange
from tt_store.bulk import merge, table_words
from tt_store.errors import TableError
from tt_store.exchange import MOST_ENTRIES, Outbox, deliver, pack, unpack
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, Entry
from tt_store.layout import pack as pack_data
from tt_store.layout import unpack as unpack_data
from tt_store.segment import Segment


def random_entries(count: int, rng: random.Random, generation: int = 0, least: int = 5) -> dict[int, int]:
    return {
        rng.getrandbits(64): pack_data(
            Entry(
                rng.randint(-30_000, 30_000),
                rng.randint(1, 65_535),
                rng.randint(least, 40),
                rng.choice((BOUND_LOWER, BOUND_UPPER, BOUND_EXACT)),
                generation,
            )
        )
        for _ in range(count)
    }


def fill(segment: Segment, entries: dict[int, int]) -> None:
    if entries:
        merge(table_words(segment), np.array([*entries.items()], dtype=np.uint64))


def contents(segment: Segment) -> dict[int, Entry]:
    words = table_words(segment).reshape(-1, 2)
    return {int(check ^ data): unpack_data(int(data)) for check, data in words if data}


def drain(outbox: Outbox) -> dict[int, Entry]:
    """Collect until a whole round brings nothing."""
    found: dict[int, Entry] = {}
    empty = 0
    while empty < 40:
        message = outbox.collect()
        empty = 0 if message else empty + 1
        found |= {int(key): unpack_data(int(data)) for key, data in unpack(message)}
    return found


def test_deep_entries_of_this_search_arrive_unchanged() -> None:
    rng = random.Random(1)
    with Segment.private(8) as here, Segment.private(3) as there:
        here.advance_generation()
        old, shallow = random_entries(50, rng), random_entries(50, rng, 1, 0)
        shallow = {key: data for key, data in shallow.items() if unpack_data(data).depth < 5}
        deep = random_entries(3_000, rng, 1)
        for entries in (old, shallow, deep):
            fill(here, entries)
        sent: dict[int, Entry] = {}
        outbox = Outbox(here)
        for _ in range(200):
            message = outbox.collect()
            sent |= {int(key): unpack_data(int(data)) for key, data in unpack(message)}
            deliver(there, message)
        assert set(sent) == set(contents(here)) & set(deep)
        arrived = contents(there)
        assert len(arrived) > 2_900
        for key, entry in arrived.items():
            assert entry == unpack_data(deep[key])._replace(generation=there.generation)


def test_nothing_travels_back_or_twice() -> None:
    rng = random.Random(2)
    with Segment.private(4) as here, Segment.private(4) as there:
        fill(here, random_entries(500, rng))
        outbox, other = Outbox(here), Outbox(there)
        first = drain_into(outbox, there)
        assert first == 500
        assert drain_into(other, here) == 0
        assert drain_into(outbox, there) == 0
        fill(there, random_entries(7, rng))
        assert drain_into(other, here) == 7


def drain_into(outbox: Outbox, target: Segment) -> int:
    total, empty = 0, 0
    while empty < 10:
        count = deliver(target, outbox.collect())
        empty = 0 if count else empty + 1
        total += count
    return total


def test_a_deeper_entry_is_not_overwritten() -> None:
    key = 0x1234_5678_9ABC_DEF0
    with Segment.private(1) as segment:
        fill(segment, {key: pack_data(Entry(5, 1, 20, BOUND_EXACT, 0))})
        message = pack(np.array([[key, pack_data(Entry(9, 2, 10, BOUND_EXACT, 0))]], dtype=np.uint64))
        assert deliver(segment, message) == 1
        assert contents(segment)[key].depth == 20


def test_messages_are_bounded_deepest_first_and_the_threshold_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_ENTRIES", 100)
    rng = random.Random(3)
    with Segment.private(1) as segment:
        entries = random_entries(2_000, rng)
        fill(segment, entries)
        outbox = Outbox(segment)
        batch = unpack(outbox.collect())
        assert len(batch) == 100
        depths = [unpack_data(int(data)).depth for data in batch[:, 1]]
        assert depths == sorted(depths, reverse=True)
        assert min(depths) >= sorted((entry.depth for entry in contents(segment).values()), reverse=True)[99]
        assert outbox.least_depth == exchange.LEAST_DEPTH + 1
        drain(outbox)
        assert outbox.least_depth == exchange.LEAST_DEPTH


def test_damaged_messages_are_refused_and_touch_nothing() -> None:
    rng = random.Random(4)
    message = pack(np.array([*random_entries(20, rng).items()], dtype=np.uint64))
    with Segment.private(1) as segment:
        for position in range(len(message)):
            damaged = bytearray(message)
            damaged[position] ^= 1 << rng.randrange(8)
            with pytest.raises(TableError, match="damaged"):
                deliver(segment, bytes(damaged))
        for length in range(1, len(message)):
            with pytest.raises(TableError):
                deliver(segment, message[:length])
        with pytest.raises(TableError):
            deliver(segment, message + b"\0")
        with pytest.raises(TableError, match="without a bound"):
            deliver(segment, pack(np.array([[5, 7]], dtype=np.uint64)))
        too_many = np.ones((MOST_ENTRIES + 1, 2), np.uint64)
        with pytest.raises(TableError):
            deliver(segment, pack(too_many))
        assert contents(segment) == {}
        assert deliver(segment, b"") == 0
