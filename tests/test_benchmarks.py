"""The benchmarks run, and do the work that they say; how fast is nobody's business here."""

from __future__ import annotations

import pytest
from benchmarks.bench_chess_suites import best_moves, mates, speeds
from benchmarks.bench_cluster import Domain, simulate
from benchmarks.bench_mcts import PlainBoard, PlainSearch, wilson
from benchmarks.bench_splitter import measure as measure_splitter
from benchmarks.bench_table import measure as measure_table
from benchmarks.bench_yardstick import perft_speed, search_speed
from benchmarks.compare import Pair, report

from cluster.simulated_executor import ClusterModel
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee


def test_the_splitter_takes_results_in() -> None:
    for workers in (1, 40):
        speed = measure_splitter(workers, 300)
        assert speed.events == 300
        assert speed.events_per_s > 0


def test_the_yardsticks_twin_counts_right() -> None:
    assert perft_speed(6)[0] == 117_649
    nodes, rate = search_speed(1, 8)
    assert nodes > 1_000
    assert rate > 0


def test_the_table_is_measured() -> None:
    speed = measure_table(1, 1)
    assert speed.stores_per_s > 0
    assert speed.probes_per_s > 0


def test_two_checkouts_are_compared_pair_by_pair() -> None:
    before, after = {"chess": 1e6, "nim": 2e6}, {"chess": 2e6, "nim": 1e6}
    pairs = [Pair({"chess": 100, "nim": 7}, {"chess": 100, "nim": 9}, before, after)] * 3
    chess, nim, total = report(pairs)
    assert "2.000 [2.000, 2.000]" in chess
    assert "0.500 [0.500, 0.500]" in nim
    assert "7 nodes became 9" in nim
    assert "became" not in chess
    assert "1.000" in total


def test_clusters_are_simulated() -> None:
    report = simulate(Domain("connect_four", "33", 8), 4, "dynamic", ClusterModel(node_rate=1e5))
    assert report.workers == 4
    assert report.result.depth == 8


def test_suites_are_solved() -> None:
    won = '3k4/8/8/8/8/8/3q4/3QK3 w - - bm Qxd2+ Kxd2; id "free queen";'
    tally = best_moves([won, won.replace("bm", "am")], Limits(nodes=2_000))
    assert (tally.solved, tally.failed) == (1, ["free queen"])
    assert mates(["6k1/5ppp/8/8/8/8/8/R5K1 w - - bm #1;"], 3).solved == 2
    assert all("depth" in line for line in speeds(0.05))


def test_the_plain_tree_search_finds_the_winning_cell() -> None:
    """The yardstick of playouts is a search too; and an interval is Wilson's."""
    game = load_game("hex:3")
    plain = PlainSearch(Referee(game), 1)
    for _ in range(3_000):
        plain.play_out(PlainBoard(game.module, (0, 0), 0))
    assert plain.root.visits == 3_000
    assert max(plain.root.children, key=lambda child: child.visits).move == 5
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(100, 100) == pytest.approx((0.9630, 1.0), abs=1e-4)
