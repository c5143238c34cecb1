"""The statistics of an experiment against examples that were worked by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.scaling.crew import Span
from cluster.scaling.records import DURATION_EDGES_S, duration_counts
from cluster.scaling.statistics import (
    Books,
    bootstrap,
    decompose,
    exponent,
    geometric_mean_of_ratios,
    ratio_of_totals,
)

SEQUENTIAL_S, PARALLEL_S = [100.0, 10.0, 40.0], [25.0, 10.0, 15.0]
"""Ratios 4, 1 and 8/3; totals 150 and 50."""


def test_the_ratio_of_totals_weighs_long_problems_more() -> None:
    assert ratio_of_totals(np.array(SEQUENTIAL_S), np.array(PARALLEL_S)) == pytest.approx(3.0)


def test_the_geometric_mean_weighs_problems_alike() -> None:
    # The cube root of 4 * 1 * 8/3.
    assert geometric_mean_of_ratios(np.array(SEQUENTIAL_S), np.array(PARALLEL_S)) == pytest.approx(2.2013, abs=1e-4)


def test_equal_ratios_leave_no_doubt() -> None:
    interval = bootstrap(ratio_of_totals, [2.0, 6.0, 9.0, 1.0], [1.0, 3.0, 4.5, 0.5])
    assert interval == pytest.approx((2.0, 2.0, 2.0))


def test_the_interval_is_that_of_all_draws() -> None:
    # Four problems have 256 equally likely draws: their 2.5 % and 97.5 % points are what the bootstrap samples.
    before, after = np.array([8.0, 6.0, 20.0, 5.0]), np.array([2.0, 3.0, 4.0, 5.0])
    draws = np.array(list(itertools.product(range(4), repeat=4)))
    every = geometric_mean_of_ratios(before[draws], after[draws])
    interval = bootstrap(geometric_mean_of_ratios, before.tolist(), after.tolist())
    assert interval.value == pytest.approx(40 ** (1 / 4))
    assert (interval.low, interval.high) == pytest.approx(tuple(np.percentile(every, (2.5, 97.5))), rel=0.03)


def test_the_same_seed_draws_the_same() -> None:
    first = bootstrap(ratio_of_totals, SEQUENTIAL_S, PARALLEL_S)
    assert first == bootstrap(ratio_of_totals, SEQUENTIAL_S, PARALLEL_S)
    assert first.low < first.value < first.high


def test_one_problem_says_nothing_of_others() -> None:
    interval = bootstrap(ratio_of_totals, [3.0], [2.0])
    assert interval.value == pytest.approx(1.5)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.text() == "1.50"


def test_the_exponent() -> None:
    assert exponent(8.0, 64) == pytest.approx(0.5)
    assert exponent(64.0, 64) == pytest.approx(1.0)
    assert exponent(1.0, 1) is None


def test_a_speed_up_is_taken_apart() -> None:
    # One worker: 1000 M nodes in 100 s, 10 M/s. Four: 40 s, of whose 160 s 16 are idle and 16 messages; in the 128 s
    # that are left they search 1152 M nodes, 9 M/s. 4 * 0.8 * 0.9 / 1.152 = 2.5.
    parts = decompose(4, Books(100.0, 1000e6, 99.0, 0.5, 0.5), Books(40.0, 1152e6, 128.0, 16.0, 16.0))
    assert parts.speedup == pytest.approx(2.5)
    assert (parts.load, parts.rate, parts.search_overhead) == pytest.approx((0.8, 0.9, 0.152))
    assert (parts.idle, parts.communication) == pytest.approx((0.1, 0.1))
    assert parts.identity == pytest.approx(1.0)
    assert parts.efficiency == pytest.approx(0.625)
    assert (parts.lost_to_rate, parts.lost_to_search) == pytest.approx((0.08, 0.095))


def test_books_that_miss_time_are_found_out() -> None:
    # The workers' own clocks know of 128 s, the coordinator's books of only 100 s.
    parts = decompose(4, Books(100.0, 1000e6, 99.0, 0.5, 0.5), Books(40.0, 1152e6, 128.0, 30.0, 30.0))
    assert parts.identity == pytest.approx(100 / 128)


@settings(max_examples=50)
@given(
    workers=st.integers(1, 1024),
    time_s=st.floats(0.01, 1e4),
    shares=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
    nodes=st.tuples(st.integers(10**6, 10**12), st.integers(10**6, 10**12)),
)
def test_the_parts_of_the_time_are_all_of_it(
    workers: int, time_s: float, shares: list[float], nodes: tuple[int, int]
) -> None:
    idle, communication, busy = (share / sum(shares) * workers * time_s for share in shares)
    parts = decompose(workers, Books(7.0, nodes[0], 7.0, 0.0, 0.0), Books(time_s, nodes[1], busy, idle, communication))
    assert parts.identity == pytest.approx(1.0)
    whole = parts.efficiency + parts.lost_to_search + parts.lost_to_rate + parts.idle + parts.communication
    assert whole == pytest.approx(1.0)


def test_durations_are_counted_in_their_classes() -> None:
    counts = duration_counts(Span(0, 1.0, 1.0 + length, True, 1) for length in (0.02, 0.021, 2.0, 1e9, 0.0))
    assert sum(counts) == 5
    assert len(counts) == len(DURATION_EDGES_S) - 1
    assert (counts[0], counts[-1]) == (1, 1)
    assert max(counts) == 2
