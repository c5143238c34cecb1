"""The window policy, by properties: whatever the search answers, it ends soon and with the exact score."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from search.aspiration import FULL_WINDOW, Aspiration, Window
from search.scores import INFINITY, MATE, MATE_BOUND

estimates = st.integers(1 - MATE_BOUND, MATE_BOUND - 1)
mates = st.integers(MATE_BOUND, MATE) | st.integers(-MATE, -MATE_BOUND)
scores = st.integers(-60, 60) | estimates | mates
policies = st.builds(
    Aspiration,
    half_width=st.integers(1, 500),
    growth=st.integers(1, 10),
    max_tries=st.integers(1, 6),
    first_depth=st.integers(1, 6),
)


def is_valid(window: Window) -> bool:
    return -INFINITY <= window.alpha < window.beta <= INFINITY


def fail_soft_answer(value: int, window: Window, rng: random.Random) -> int:
    """Return some result that the kernel's contract allows for an exact value."""
    if value <= window.alpha:
        return rng.choice((value, window.alpha, rng.randint(value, window.alpha)))
    if value >= window.beta:
        return rng.choice((value, window.beta, rng.randint(window.beta, value)))
    return value


def search_until_exact(policy: Aspiration, depth: int, value: int, rng: random.Random) -> list[Window]:
    """Search one depth as the driver does; returns the windows, the last one with the exact score."""
    windows = [policy.begin(depth)]
    while True:
        assert is_valid(windows[-1])
        score = fail_soft_answer(value, windows[-1], rng)
        if windows[-1].holds(score):
            assert score == value
            policy.finish(score)
            return windows
        assert len(windows) <= policy.max_tries, windows
        windows.append(policy.after_failure(windows[-1], score))


@given(policies, st.lists(scores, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_each_depth_ends_with_the_exact_score(policy: Aspiration, values: list[int], rng: random.Random) -> None:
    for depth, value in enumerate(values, 1):
        windows = search_until_exact(policy, depth, value, rng)
        assert len(windows) <= policy.max_tries + 1
        assert windows[-1].holds(value)


@given(policies, st.lists(estimates, min_size=2, max_size=2), scores, st.randoms(use_true_random=False))
def test_a_failed_window_is_followed_by_one_that_reaches_further(
    policy: Aspiration, before: list[int], value: int, rng: random.Random
) -> None:
    for score in before:
        policy.finish(score)
    for failed, following in pairwise(search_until_exact(policy, policy.first_depth, value, rng)):
        if value <= failed.alpha:
            assert following.alpha < failed.alpha
        else:
            assert following.beta > failed.beta


@given(policies, estimates, st.integers(2, 100), scores)
def test_the_next_window_overlaps_the_failed_bound(policy: Aspiration, alpha: int, width: int, score: int) -> None:
    """A score that is just the bound is exact at the next try, and its line whole."""
    window = Window(alpha, alpha + width)
    assume(not window.holds(score))
    assert policy.after_failure(window, score).holds(score)


@given(policies, mates, st.lists(scores, max_size=3))
def test_an_expected_mate_opens_the_window(policy: Aspiration, mate: int, before: list[int]) -> None:
    for score in (*before, mate):
        policy.finish(score)
    assert policy.begin(policy.first_depth + 1) == FULL_WINDOW


@given(policies, mates, estimates)
def test_a_mate_outside_the_window_opens_it_at_once(policy: Aspiration, mate: int, expected: int) -> None:
    assume(abs(expected) + policy.half_width < MATE_BOUND)
    policy.finish(expected)
    policy.finish(expected)
    window = policy.begin(policy.first_depth)
    assert window != FULL_WINDOW
    assert policy.after_failure(window, mate) == FULL_WINDOW


@given(policies, st.integers(1, 6), scores)
def test_shallow_depths_and_unknown_scores_get_the_full_window(policy: Aspiration, depth: int, score: int) -> None:
    assert policy.begin(policy.first_depth + depth) == FULL_WINDOW
    policy.finish(score)
    assert policy.begin(policy.first_depth + depth) == FULL_WINDOW
    policy.finish(score)
    assert policy.begin(policy.first_depth - 1) == FULL_WINDOW


def test_the_window_expects_the_scores_of_odd_and_even_depths() -> None:
    policy = Aspiration(half_width=10, first_depth=3)
    policy.finish(900)
    policy.finish(5)
    policy.finish(40)
    assert policy.begin(4) == Window(-5, 50)


@given(policies, estimates, estimates)
def test_an_exact_score_is_no_failure(policy: Aspiration, one: int, other: int) -> None:
    low, high = min(one, other), max(one, other)
    assume(high - low > 1)
    window = Window(low, high)
    for score in (low + 1, high - 1):
        with pytest.raises(ValueError, match=f"score {score} is exact"):
            policy.after_failure(window, score)
    for score in (low, high):
        assert is_valid(policy.after_failure(window, score))
