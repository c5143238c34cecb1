"""The limits of a search: what is refused, and with which words."""

from __future__ import annotations

import math
from typing import Any

import pytest

from search.limits import MAX_DEPTH, NO_NODE_LIMIT, Limits, LimitsError, stopped_after
from tt_store.errors import RootsplitError


@pytest.mark.parametrize(
    ("limit", "word"),
    [
        ({"depth": 0}, "depth"),
        ({"depth": -3}, "depth"),
        ({"depth": MAX_DEPTH + 1}, "depth"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": -1}, "nodes"),
        ({"nodes": NO_NODE_LIMIT + 1}, "nodes"),
        ({"time_s": 0.0}, "time"),
        ({"time_s": -1.0}, "time"),
        ({"time_s": math.nan}, "time"),
        ({"time_s": math.inf}, "time"),
        ({"mate": 0}, "mate"),
        ({"mate": -2}, "mate"),
    ],
)
def test_a_limit_out_of_range_is_refused_with_one_sentence(limit: dict[str, Any], word: str) -> None:
    with pytest.raises(LimitsError) as caught:
        Limits(**limit)
    sentence = str(caught.value)
    assert sentence.startswith((word, f"the {word}"))
    assert "\n" not in sentence
    assert format(next(iter(limit.values())), "g" if word == "time" else "") in sentence
    assert isinstance(caught.value, RootsplitError)
    assert caught.value.exit_code == 2


def test_limits_at_the_ends_of_their_ranges_are_kept() -> None:
    least = Limits(depth=1, nodes=1, time_s=1e-9, mate=1)
    assert (least.last_depth, least.node_limit) == (1, 1)
    greatest = Limits(depth=MAX_DEPTH, nodes=NO_NODE_LIMIT, time_s=1e300)
    assert (greatest.last_depth, greatest.node_limit) == (MAX_DEPTH, NO_NODE_LIMIT)


def test_no_limits_leave_everything_open() -> None:
    assert (Limits().last_depth, Limits().node_limit) == (MAX_DEPTH, NO_NODE_LIMIT)


def test_a_time_limit_calls_once_and_not_after_its_block() -> None:
    calls: list[str] = []
    with stopped_after(60.0, lambda: calls.append("too late")), stopped_after(None, lambda: calls.append("never")):
        pass
    # More seconds than the system's clocks can wait for.
    with stopped_after(1e300, lambda: calls.append("too late")):
        pass
    assert calls == []
