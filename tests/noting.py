"""What tests of news share: random entries, and their way into a table by the kernels' own helper."""

from __future__ import annotations

import random

import numpy as np

from tt_store.bulk import table_words
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, ENTRY_BYTES, WORD_BYTES, Entry, pack, unpack
from tt_store.native import entry, read_int, read_word
from tt_store.news import NEWS_WORDS, News, store_and_note
from tt_store.segment import Segment


@entry
def note_all(table: int, buckets: int, generation: int, news: int, entries: int, count: int) -> int:
    """Store entries, given as keys and data at an address, and return how many found a place."""
    stored = 0
    for index in range(count):
        row = entries + index * ENTRY_BYTES
        stored += store_and_note(table, buckets, read_word(row), read_int(row + WORD_BYTES), generation, news)
    return stored


def machine(size_mb: float) -> Segment:
    return Segment.private(size_mb, control_words=NEWS_WORDS)


def news_of(segment: Segment) -> News:
    return News(segment.control_address)


def note(segment: Segment, entries: dict[int, int]) -> int:
    words = np.array([*entries.items()], dtype=np.uint64).reshape(-1, 2)
    place = (segment.table_address, segment.buckets, segment.generation, segment.control_address)
    return note_all(*place, words.ctypes.data, len(words))


def random_entries(count: int, rng: random.Random, generation: int = 0, least: int = 5, most: int = 40):
    return {
        rng.getrandbits(64): pack(
            Entry(
                rng.randint(-30_000, 30_000),
                rng.randint(1, 65_535),
                rng.randint(least, most),
                rng.choice((BOUND_LOWER, BOUND_UPPER, BOUND_EXACT)),
                generation,
            )
        )
        for _ in range(count)
    }


def contents(segment: Segment) -> dict[int, Entry]:
    words = table_words(segment).reshape(-1, 2)
    return {int(check ^ data): unpack(int(data)) for check, data in words if data}
