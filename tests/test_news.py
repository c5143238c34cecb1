"""The ring of news: what is stored and wanted is noted, once, whoever notes at the same time."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
from conftest import run_without_jit
from noting import contents, machine, news_of, note, note_all, random_entries

from search.algorithms import flags_for
from search.controls import CONTROL_WORDS, Controls
from search.game_files import load_game
from search.searcher import Job
from search.searchers import open_searcher
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, Entry, pack, unpack
from tt_store.native import JIT_DISABLED
from tt_store.news import RING, News
from tt_store.segment import Segment


def taken(news: News) -> list[tuple[int, int]]:
    return [(int(key), int(data)) for key, data in news.take()]


def test_nobody_wants_news_of_zeroed_memory() -> None:
    with machine(1) as segment:
        news = news_of(segment)
        assert news.least_depth == 0
        assert note(segment, random_entries(100, random.Random(1))) == 100
        assert taken(news) == []
        news.least_depth = 1
        assert note(segment, random_entries(3, random.Random(2))) == 3
        news.least_depth = 0
        assert note(segment, random_entries(5, random.Random(3))) == 5
        assert len(taken(news)) == 3


def test_what_is_deep_enough_is_noted_in_order_and_taken_once() -> None:
    with machine(1) as segment:
        news = news_of(segment)
        news.least_depth = 9
        entries = random_entries(1_000, random.Random(4), least=0, most=20)
        note(segment, entries)
        assert taken(news) == [(key, data) for key, data in entries.items() if unpack(data).depth >= 9]
        assert taken(news) == []


def test_a_reader_begins_with_what_is_noted_after_it_was_made() -> None:
    with machine(1) as segment:
        news = news_of(segment)
        news.least_depth = 5
        note(segment, random_entries(10, random.Random(5)))
        assert len(taken(news_of(segment))) == 0
        assert len(taken(news)) == 10


def test_what_could_not_be_stored_is_no_news() -> None:
    key = 0x1234_5678_9ABC_DEF0
    deep, bound = pack(Entry(5, 1, 20, BOUND_EXACT, 0)), pack(Entry(7, 2, 10, BOUND_LOWER, 0))
    with machine(1) as segment:
        news = news_of(segment)
        news.least_depth = 5
        assert note(segment, {key: deep}) == 1
        assert note(segment, {key: bound}) == 0
        assert taken(news) == [(key, deep)]


def test_an_overrun_ring_loses_only_the_oldest() -> None:
    with machine(4) as segment:
        news = news_of(segment)
        news.least_depth = 5
        entries = random_entries(2 * RING + 77, random.Random(6))
        assert note(segment, entries) == len(entries)
        assert taken(news) == [*entries.items()][-RING:]
        more = random_entries(3, random.Random(7))
        note(segment, more)
        assert taken(news) == [*more.items()]


def test_a_head_that_was_overwritten_ends_nothing() -> None:
    """Another process may write anywhere; the worst that comes of it are entries that nobody asks for."""
    with machine(1) as segment:
        news = news_of(segment)
        news.least_depth = 5
        for noise in (-5, 2**63 - 1, -(2**63), 0):
            news._head.value = noise
            assert len(news.take()) <= RING
        entries = random_entries(3, random.Random(8))
        note(segment, entries)
        assert taken(news) == [*entries.items()]


def test_two_threads_note_at_once() -> None:
    """Each entry that a reader in step with both gets was stored so; torn ones are few, and are of no key of theirs."""
    rng = random.Random(9)
    halves = [random_entries(RING // 2, rng) for _ in range(2)]
    arrays = [np.array([*half.items()], dtype=np.uint64) for half in halves]
    everything = halves[0] | halves[1]
    with machine(4) as segment:
        news = news_of(segment)
        news.least_depth = 5
        place = (segment.table_address, segment.buckets, 0, segment.control_address)
        note_all(*place, arrays[0].ctypes.data, 0)  # Compiles.
        for _ in range(1 if JIT_DISABLED else 20):
            segment.clear()
            start = threading.Barrier(2)

            def work(words: np.ndarray, start: threading.Barrier = start) -> None:
                start.wait()
                note_all(*place, words.ctypes.data, len(words))

            threads = [threading.Thread(target=work, args=(words,)) for words in arrays]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                for key, data in taken(news):
                    assert everything.get(key, data) == data
            for thread in threads:
                thread.join()
            news.take()
            # Nobody is at work: what the ring holds is whole, each entry once.
            ring = {int(check ^ data): int(data) for check, data in news._ring}
            assert ring == everything


@pytest.mark.parametrize(("name", "text", "depth"), [("connect_four", "4453", 9), ("tricolour", "", 6)])
def test_a_search_whose_news_are_wanted_is_the_same(name: str, text: str, depth: int) -> None:
    game = load_game(name)
    flags, depth = flags_for(game), 5 if JIT_DISABLED else depth
    found, seen = [], []
    for least_depth in (0, 3):
        with Segment.private(4, control_words=CONTROL_WORDS) as segment:
            controls = Controls(segment.control_address)
            searcher = open_searcher(game, segment, controls, flags=flags, notice=lambda _line: None)
            news = News(controls.news_address)
            news.least_depth = least_depth
            found.append(searcher.run(Job(game.parse(text), depth)))
            seen.append(taken(news))
            deep = {key: entry for key, entry in contents(segment).items() if entry.depth >= 3}
    assert found[0] == found[1]
    assert seen[0] == []
    assert 0 < len(deep) <= len(seen[1]) < RING
    latest = {key: unpack(data) for key, data in seen[1]}
    assert deep.items() <= latest.items()


@pytest.mark.skipif(JIT_DISABLED, reason="this is the run with the JIT off")
def test_all_of_this_with_the_jit_off() -> None:
    run = run_without_jit(__file__, "ignore::RuntimeWarning")
    assert run.returncode == 0, run.stdout
    assert "1 skipped" in run.stdout
