"""Entries that travel between tables: checked, deepest first, never back and never twice."""

from __future__ import annotations

import random

import numpy as np
import pytest
from noting import contents, machine, news_of, note, random_entries

from tt_store import exchange
from tt_store.errors import TableError
from tt_store.exchange import LEAST_DEPTH, MOST_ENTRIES, Outbox, deliver, pack, period_s, unpack
from tt_store.layout import BOUND_EXACT, Entry
from tt_store.layout import pack as pack_data
from tt_store.layout import unpack as unpack_data
from tt_store.news import RING
from tt_store.segment import Segment


def outbox_of(segment: Segment) -> Outbox:
    return Outbox(segment, news_of(segment))


def depths(message: bytes) -> list[int]:
    return [unpack_data(int(data)).depth for _, data in unpack(message)]


def test_deep_entries_of_this_search_arrive_unchanged() -> None:
    rng = random.Random(1)
    with machine(8) as here, machine(3) as there:
        outbox = outbox_of(here)
        note(here, random_entries(50, rng))
        here.advance_generation()
        note(here, random_entries(50, rng, 1, least=0, most=LEAST_DEPTH - 1))
        deep = random_entries(MOST_ENTRIES, rng, 1)
        note(here, deep)
        message = outbox.collect()
        assert deliver(there, message) == MOST_ENTRIES
        assert {int(key): int(data) for key, data in unpack(message)} == deep
        arrived = contents(there)
        assert len(arrived) > 0.97 * MOST_ENTRIES
        for key, entry in arrived.items():
            assert entry == unpack_data(deep[key])._replace(generation=there.generation)


def test_nothing_travels_back_or_twice() -> None:
    rng = random.Random(2)
    with machine(4) as here, machine(4) as there:
        outbox, other = outbox_of(here), outbox_of(there)
        note(here, random_entries(500, rng))
        assert deliver(there, outbox.collect()) == 500
        assert other.collect() == b""
        assert outbox.collect() == b""
        note(there, random_entries(7, rng))
        assert deliver(here, other.collect()) == 7


def test_of_each_key_the_newest_travels() -> None:
    with machine(1) as segment:
        outbox = outbox_of(segment)
        data = [pack_data(Entry(score, 1, 7 + score, BOUND_EXACT, 0)) for score in range(5)]
        for each in data:
            note(segment, {5: each, 6: each} if each is data[0] else {5: each})
        sent = unpack(outbox.collect())
        assert [(int(key), int(word)) for key, word in sent] == [(5, data[-1]), (6, data[0])]


def test_news_are_wanted_as_long_as_there_is_an_outbox() -> None:
    rng = random.Random(3)
    with machine(1) as segment:
        note(segment, random_entries(10, rng))
        outbox = outbox_of(segment)
        assert outbox.collect() == b"", "what was stored before is no news"
        outbox.close()
        note(segment, random_entries(10, rng))
        assert outbox.collect() == b""


def test_what_is_forgotten_does_not_travel() -> None:
    with machine(1) as segment:
        outbox = outbox_of(segment)
        for seed in range(3):
            note(segment, random_entries(MOST_ENTRIES + 1, random.Random(seed), least=20))
            outbox.collect()
        note(segment, random_entries(10, random.Random(4), least=20))
        assert outbox.least_depth == LEAST_DEPTH + 3
        outbox.forget()
        assert outbox.collect() == b""
        assert outbox.least_depth == LEAST_DEPTH


def test_noise_in_the_ring_makes_no_message_that_would_be_refused() -> None:
    with machine(1) as here, machine(1) as there:
        outbox, news = outbox_of(here), news_of(here)
        note(here, random_entries(100, random.Random(5)))
        news._ring[:50] = np.random.default_rng(6).integers(0, 2**64, (50, 2), np.uint64)
        assert 50 <= deliver(there, outbox.collect()) < 100


def test_a_deeper_entry_is_not_overwritten() -> None:
    key = 0x1234_5678_9ABC_DEF0
    with machine(1) as segment:
        note(segment, {key: pack_data(Entry(5, 1, 20, BOUND_EXACT, 0))})
        message = pack(np.array([[key, pack_data(Entry(9, 2, 10, BOUND_EXACT, 0))]], dtype=np.uint64))
        assert deliver(segment, message) == 1
        assert contents(segment)[key].depth == 20


def test_messages_are_bounded_deepest_first_and_the_threshold_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_ENTRIES", 100)
    rng = random.Random(3)
    with machine(1) as segment:
        outbox = outbox_of(segment)
        entries = random_entries(2_000, rng)
        note(segment, entries)
        sent = depths(outbox.collect())
        assert sent == sorted((unpack_data(data).depth for data in entries.values()), reverse=True)[:100]
        assert outbox.least_depth == LEAST_DEPTH + 1
        note(segment, random_entries(200, rng, most=LEAST_DEPTH))
        assert outbox.collect() == b"", "such entries are not noted any more"
        assert outbox.least_depth == LEAST_DEPTH
        for count, change in ((101, 1), (100, 0), (12, 0), (11, -1), (0, 0)):
            before = outbox.least_depth
            note(segment, random_entries(count, rng, least=10))
            assert len(depths(outbox.collect())) == min(count, 100)
            assert outbox.least_depth == before + change, count


def test_of_an_overrun_ring_the_latest_travel() -> None:
    rng = random.Random(7)
    with machine(4) as segment:
        outbox = outbox_of(segment)
        note(segment, random_entries(1_000, rng, least=50, most=60))
        note(segment, random_entries(RING, rng, least=20, most=30))
        sent = depths(outbox.collect())
        assert len(sent) == MOST_ENTRIES
        assert max(sent) <= 30


def test_a_receiver_gets_no_more_than_its_bound() -> None:
    assert period_s(2) == pytest.approx(0.03)
    for machines in (2, 3, 8, 100, 10_000):
        assert 33 <= (machines - 1) / period_s(machines) < 200


def test_damaged_messages_are_refused_and_touch_nothing() -> None:
    rng = random.Random(4)
    message = pack(np.array([*random_entries(20, rng).items()], dtype=np.uint64))
    with machine(1) as segment:
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
