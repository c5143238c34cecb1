"""The speed of each part, by pytest-benchmark; off unless named: ``pytest tests/benchmarks/speed.py``.

``--benchmark-autosave`` keeps a run, ``--benchmark-compare`` shows the next one beside it. For two checkouts on a
machine that is not quiet take `compare` instead, which runs them in turn.
"""

from __future__ import annotations

import pytest
from benchmarks.bench_splitter import measure as drive_splitter
from benchmarks.bench_table import probe_many, store_many
from conftest import silent
from pytest_benchmark.fixture import BenchmarkFixture

from cluster.executor import ThreadExecutor
from cluster.request import SearchRequest
from cluster.session import Session
from search.driver import search
from search.game_files import load_game
from search.limits import Limits
from search.perft import LeafCounter
from tt_store.segment import Segment

ROUNDS = 5
TABLE_MB = 16.0
OPERATIONS = 1_000_000
SEARCHES = {"connect_four": ("33", 14), "random_tree": ("1:8-16:30:80", 8), "chess": ("", 9)}
PERFTS = {"connect_four": ("", 8), "chess": ("", 5)}


@pytest.mark.parametrize("name", SEARCHES)
def test_kernel(name: str, benchmark: BenchmarkFixture) -> None:
    game, (text, depth) = load_game(name), SEARCHES[name]
    position, limits = game.parse(text), Limits(depth=depth)
    result = benchmark.pedantic(
        lambda: search(game, position, limits, table_mb=TABLE_MB, notice=silent), rounds=ROUNDS, warmup_rounds=1
    )
    benchmark.extra_info["nodes"] = result.statistics.nodes
    assert result.depth == depth


@pytest.mark.parametrize("name", PERFTS)
def test_move_generation(name: str, benchmark: BenchmarkFixture) -> None:
    game, (text, depth) = load_game(name), PERFTS[name]
    counter, position = LeafCounter(game), game.parse(text)
    leaves = benchmark.pedantic(lambda: counter.count(position, depth), rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["leaves"] = leaves
    assert leaves > 100_000


@pytest.mark.parametrize("loop", [store_many, probe_many], ids=["store", "probe"])
def test_table(loop, benchmark: BenchmarkFixture) -> None:
    with Segment.private(TABLE_MB) as segment:
        place = segment.table_address, segment.buckets
        benchmark.pedantic(lambda: loop(*place, 88172645463325252, OPERATIONS), rounds=ROUNDS, warmup_rounds=1)


@pytest.mark.parametrize("workers", [2, 128])
def test_splitter(workers: int, benchmark: BenchmarkFixture) -> None:
    speed = benchmark.pedantic(lambda: drive_splitter(workers, 3_000), rounds=ROUNDS, warmup_rounds=1)
    assert speed.events == 3_000


def test_short_searches_of_a_session(benchmark: BenchmarkFixture) -> None:
    """What a search costs besides its nodes: a hundred of next to no nodes."""
    game = load_game("connect_four")
    request = SearchRequest("33", limits=Limits(depth=3))
    with Session(game, ThreadExecutor(game, 2, 1.0, notice=silent), 1.0, silent) as session:
        benchmark.pedantic(lambda: [session.search(request) for _ in range(100)], rounds=ROUNDS, warmup_rounds=1)
