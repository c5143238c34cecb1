"""Strength from results: Elo with an interval, and the sequential test; by pairs of games, whose results hang together.

A pair is one opening played with both colours. Its score takes five values, and the variance is that of the pairs: an
opening that one side wins with either colour says nothing, and does not count as two surprises (the pentanomial model).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_Z95 = 1.959964
_MOST_ELO = 1200.0


class Rating(NamedTuple):
    """The first engine's strength relative to the second's, in Elo."""

    elo: float
    low: float
    high: float
    """Ends of the 95 % interval."""


class Verdict(NamedTuple):
    """Where the sequential test stands."""

    log_likelihood_ratio: float
    lower: float
    upper: float
    """The test ends outside of them."""

    @property
    def text(self) -> str:
        """Return H1, H0, or that it goes on."""
        if self.log_likelihood_ratio >= self.upper:
            return "H1 accepted"
        return "H0 accepted" if self.log_likelihood_ratio <= self.lower else "undecided"


def expected_score(elo: float) -> float:
    """Return the score 0..1 that a difference of strength leads to (logistic model)."""
    return 1 / (1 + 10 ** (-elo / 400))


def elo_of(score: float) -> float:
    """Return the difference of strength that a score 0..1 stands for, at most 1200 either way."""
    if score <= 0:
        return -_MOST_ELO
    if score >= 1:
        return _MOST_ELO
    return max(-_MOST_ELO, min(-400 * math.log10(1 / score - 1), _MOST_ELO))


def mean_and_variance(pairs: Sequence[float]) -> tuple[float, float]:
    """Return the mean score of a game 0..1, and the variance of a pair's mean.

    Parameters
    ----------
    pairs
        Points of the first engine in each pair, 0..2.
    """
    scores = [points / 2 for points in pairs]
    mean = sum(scores) / len(scores)
    return mean, sum((score - mean) ** 2 for score in scores) / len(scores)


def rating(pairs: Sequence[float]) -> Rating:
    """Return the strength that pairs of games show; at least one pair."""
    mean, variance = mean_and_variance(pairs)
    margin = _Z95 * math.sqrt(variance / len(pairs))
    return Rating(elo_of(mean), elo_of(mean - margin), elo_of(mean + margin))


def sequential_test(
    pairs: Sequence[float], elo0: float, elo1: float, alpha: float = 0.05, beta: float = 0.05
) -> Verdict:
    """Return the state of the generalised sequential probability ratio test (Wald 1945; Van den Bergh 2015).

    Parameters
    ----------
    pairs
        As for `rating`.
    elo0, elo1
        The hypotheses: no better than, as good as.
    alpha, beta
        Risks of accepting H1 and H0 wrongly.
    """
    lower, upper = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    if not pairs:
        return Verdict(0.0, lower, upper)
    mean, variance = mean_and_variance(pairs)
    if variance == 0:
        return Verdict(0.0, lower, upper)
    score0, score1 = expected_score(elo0), expected_score(elo1)
    ratio = len(pairs) * (score1 - score0) * (2 * mean - score0 - score1) / (2 * variance)
    return Verdict(ratio, lower, upper)
