"""Words of the table are overwritten while two threads search: nothing crashes, and no move is illegal.

Garbage that fails the check costs nothing but time: in exact-depth mode the value stays. Garbage that passes it, for
the keys of positions that the search meets, may spoil a score, but never the legality of a move.
"""

from __future__ import annotations

import ctypes
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cluster.executor import ThreadExecutor
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session, open_session
from search.driver import search
from search.flags import Flags
from search.game_files import load_game
from search.limits import Limits
from tt_store.layout import BUCKET_BYTES, BUCKET_ENTRIES, ENTRY_BYTES, WORD_BYTES, Entry, pack
from tt_store.native import JIT_DISABLED
from tt_store.segment import Segment

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(JIT_DISABLED, reason="only compiled code searches while another thread writes"),
]

EXACT = Flags(exact_depth=True)
TABLE_MB = 0.25
WORD = (1 << 64) - 1
BURST = 500
"""Writes between two looks at the clock."""

SEARCHES = [
    ("chess", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 6),
    ("connect_four", "", 14),
    ("connect_four", "4453", 12),
    ("kalah", "", 12),
    ("random_tree", "11:6:9:60", 9),
    ("random_tree", "12:2-9:9:30", 9),
]


def table_of(session: Session) -> Segment:
    assert isinstance(session.executor, ThreadExecutor)
    return session.executor._segment


@contextmanager
def overwritten(write_burst: Callable[[], None]) -> Iterator[list[int]]:
    """Write bursts of garbage on another thread while the block runs; yields a list that grows by one a burst."""
    bursts: list[int] = []
    ends = threading.Event()

    def work() -> None:
        while not ends.is_set():
            write_burst()
            bursts.append(BURST)

    thread = threading.Thread(target=work, name="vandal")
    thread.start()
    try:
        yield bursts
    finally:
        ends.set()
        thread.join()


def raw_garbage(segment: Segment, source: random.Random) -> Callable[[], None]:
    """Write random words to random places."""
    words = (ctypes.c_uint64 * (segment.size_bytes // WORD_BYTES)).from_address(segment.table_address)

    def write_burst() -> None:
        for _ in range(BURST):
            words[int(source.random() * len(words))] = source.getrandbits(64)

    return write_burst


def sound_looking_garbage(session: Session, text: str, source: random.Random) -> Callable[[], None]:
    """Write entries that pass the check, of positions near the root: any move, score, depth and bound."""
    segment, referee = table_of(session), session.referee
    keys = []
    root = session.game.parse(text)
    for number in range(1000):
        position = root
        # The root and its children often, the others now and then.
        for _ in range(number % 5):
            moves = referee.legal_moves(position)
            if not moves:
                break
            position = referee.play(position, source.choice(moves))
        keys.append(referee.facts(position).key & WORD)

    def write_burst() -> None:
        for _ in range(BURST):
            key = source.choice(keys)
            bucket = segment.table_address + (key * segment.buckets >> 64) * BUCKET_BYTES
            slot = bucket + source.randrange(BUCKET_ENTRIES) * ENTRY_BYTES
            entry = Entry(
                score=source.choice((0, 17, 29_990, -29_990, 31_999, -32_000, 32_767, -32_768, source.getrandbits(15))),
                move=source.choice((0, 1, 2, 7, 8, 500, 0xFFFF, source.getrandbits(16))),
                depth=source.choice((*range(16), 255, source.getrandbits(8))),
                bound=source.randrange(4),
                generation=segment.generation,
            )
            data = pack(entry)
            ctypes.c_uint64.from_address(slot).value = key ^ data
            ctypes.c_uint64.from_address(slot + WORD_BYTES).value = data

    return write_burst


def assert_legal(session: Session, report: SearchReport) -> None:
    result, referee = report.result, session.referee
    assert result.best_move in referee.legal_moves(result.position)
    for line in (result.line, *(iteration.line for iteration in result.iterations)):
        assert tuple(referee.legal_prefix(result.position, line)[0]) == line
    assert report.best_move == session.game.move_text(result.position, result.best_move)


def searched(session: Session, text: str, depth: int, strategy: str, **limits: Any) -> SearchReport:
    return session.search(SearchRequest(text, limits=Limits(depth=depth, **limits), strategy=strategy))


@pytest.mark.parametrize(("game_name", "text", "depth"), SEARCHES)
def test_raw_garbage_does_not_change_an_exact_value(game_name: str, text: str, depth: int) -> None:
    game = load_game(game_name)
    clean = search(game, game.parse(text), Limits(depth=depth), flags=EXACT, table_mb=TABLE_MB)
    with open_session(game_name, SearchRequest(text), 2, TABLE_MB, flags=EXACT) as session:
        with overwritten(raw_garbage(table_of(session), random.Random(depth))) as bursts:
            for strategy in ("root", "single"):
                report = searched(session, text, depth, strategy)
                assert report.result.score == clean.score
                assert report.result.depth == clean.depth
                assert_legal(session, report)
        assert bursts


@pytest.mark.parametrize("strategy", ["root", "single"])
@pytest.mark.parametrize(("game_name", "text", "depth"), SEARCHES)
def test_no_garbage_makes_a_move_illegal(game_name: str, text: str, depth: int, strategy: str) -> None:
    with open_session(game_name, SearchRequest(text), 2, TABLE_MB) as session:
        for number in range(3):
            burst = sound_looking_garbage(session, text, random.Random(number))
            burst()
            with overwritten(burst) as bursts:
                report = searched(session, text, depth, strategy, time_s=2.0)
            assert_legal(session, report)
            assert report.result.time_s < 4
            assert bursts
