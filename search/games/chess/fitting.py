"""The fit of the network to positions of games: the logistic loss, by gradients.

A position's estimate ``e``, in units of the last layer, predicts the mover's share as ``1 / (1 + exp(-e))``. The aim is
a mean of the share that it got and of what the search's score predicts: results alone are noisy. The steps are those of
Adam (Kingma and Ba 2014), their length falls as a cosine; half of the positions, anew in each epoch, are seen in a
mirror, files a and h exchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search.games.chess.board import TURN_SQUARE
from search.games.chess.layers import INPUTS, LAST_UNIT, MOST_MEN, UNIT, Layers
from search.games.chess.samples import NO_MAN, Samples
from tt_store.native import Integer, entry, helper

Floats = NDArray[np.float32]
Real = Any
"""A ``numpy.float32`` to the compiler."""

STEEPEST = float(np.log(10) / 400)
_FIRST_MOMENT, _SECOND_MOMENT, _TINY = 0.9, 0.999, 1e-8
_WARM_STEPS, _LAST_STEP = 200, 0.01
_MIRROR, _SIDE = 7, INPUTS // 2
_MOST_WEIGHT = 127 / LAST_UNIT
"""No weight may be larger: those of the last layer must fit into a byte."""


@dataclass(frozen=True)
class Settings:
    """How a network is fitted."""

    hidden: int = 128
    """Units of a view, a multiple of 16."""
    buckets: int = 8
    """Last layers, each for another number of men."""
    epochs: int = 20
    batch: int = 16_384
    step: float = 1e-3
    result_share: float = 0.3
    """The result's part of the aim, 0..1; the rest is what the search's score predicts."""
    seed: int = 1


class Network(NamedTuple):
    """The weights as real numbers, in the shapes of `search.games.chess.layers.Layers`."""

    rows: Floats
    bias: Floats
    last: Floats
    offsets: Floats


def random_network(settings: Settings) -> Network:
    """Return a network that knows nothing."""
    rng = np.random.default_rng(settings.seed)
    rows = 0.05 * rng.standard_normal((INPUTS, settings.hidden), np.float32)
    last = 0.3 * rng.standard_normal((1, 1, settings.hidden), np.float32) * np.array([[[1.0], [-1.0]]], np.float32)
    return Network(
        rows.astype(np.float32),
        np.full(settings.hidden, 0.1, np.float32),
        np.repeat(last, settings.buckets, 0).astype(np.float32),
        np.zeros(settings.buckets, np.float32),
    )


def real(layers: Layers) -> Network:
    """Return the real numbers that whole ones stand for."""
    single = np.float32
    return Network(
        layers.rows.astype(single) / single(UNIT),
        layers.bias.astype(single) / single(UNIT),
        layers.last.astype(single) / single(LAST_UNIT),
        layers.offsets.astype(single) / single(UNIT * LAST_UNIT),
    )


def rounded(network: Network) -> Layers:
    """Return the network as whole numbers."""
    return Layers(
        np.rint(network.rows * UNIT).astype(np.int16),
        np.rint(network.bias * UNIT).astype(np.int16),
        np.rint(network.last * LAST_UNIT).astype(np.int16),
        np.rint(network.offsets * UNIT * LAST_UNIT).astype(np.int64),
    )


@helper
def _inputs(man: Integer, flip: Integer) -> tuple[Integer, Integer]:
    """Return a man's inputs in the mover's view and in the other side's, who sees it upside down and as the other's."""
    own = np.int64(man) ^ flip
    return own, (own ^ TURN_SQUARE) + (_SIDE if own < _SIDE else -_SIDE)


@helper
def _lit(unit: Real) -> Real:
    """Return what a unit of a view tells the last layer, before it is squared."""
    return min(max(unit, np.float32(0)), np.float32(1))


@helper
def _look(men: NDArray[np.int16], flip: Integer, network: Network, views: Floats) -> int:
    """Put both views of a position into an array `[2, H]`; returns how many men there are."""
    views[0] = network.bias
    views[1] = network.bias
    number = 0
    while number < MOST_MEN and men[number] != NO_MAN:
        own, other = _inputs(men[number], flip)
        for unit in range(network.bias.size):
            views[0, unit] += network.rows[own, unit]
        for unit in range(network.bias.size):
            views[1, unit] += network.rows[other, unit]
        number += 1
    return number


@helper
def _judge(views: Floats, last: Floats, offset: Real) -> Real:
    """Return the estimate that a last layer makes of both views."""
    estimate = offset
    for side in range(2):
        for unit in range(views.shape[1]):
            lit = _lit(views[side, unit])
            estimate += lit * lit * last[side, unit]
    return estimate


@helper
def _blame(error: Real, views: Floats, last: Floats, gradient_of_last: Floats, slopes: Floats) -> None:
    """Add the loss's slope by the last layer to its gradient, and put that by the views into an array `[2, H]`."""
    for side in range(2):
        for unit in range(views.shape[1]):
            lit = _lit(views[side, unit])
            gradient_of_last[side, unit] += error * lit * lit
            is_between = lit == views[side, unit]
            slopes[side, unit] = 2 * error * lit * last[side, unit] if is_between else np.float32(0)


@entry
def _learn(
    men: NDArray[np.int16],
    aims: Floats,
    flips: NDArray[np.int64],
    network: Network,
    gradient: Network,
    estimates: Floats,
) -> None:
    """Put the estimates of some positions into an array, and add the slopes of their losses to a gradient."""
    hidden, buckets = network.bias.size, network.offsets.size
    views = np.empty((2, hidden), np.float32)
    slopes = np.empty((2, hidden), np.float32)
    for index in range(len(aims)):
        number = _look(men[index], flips[index], network, views)
        bucket = (number - 1) * buckets // MOST_MEN
        estimate = _judge(views, network.last[bucket], network.offsets[bucket])
        estimates[index] = estimate
        error = np.float32(1 / (1 + np.exp(-estimate))) - aims[index]
        gradient.offsets[bucket] += error
        _blame(error, views, network.last[bucket], gradient.last[bucket], slopes)
        for unit in range(hidden):
            gradient.bias[unit] += slopes[0, unit] + slopes[1, unit]
        for place in range(number):
            own, other = _inputs(men[index, place], flips[index])
            for unit in range(hidden):
                gradient.rows[own, unit] += slopes[0, unit]
            for unit in range(hidden):
                gradient.rows[other, unit] += slopes[1, unit]


class _Adam:
    """Steps along one array of weights."""

    def __init__(self, like: Floats) -> None:
        self._mean, self._square, self._time = np.zeros_like(like), np.zeros_like(like), 0

    def step(self, weights: Floats, gradient: Floats, length: float) -> None:
        """Move the weights against their gradient."""
        self._time += 1
        self._mean += (1 - _FIRST_MOMENT) * (gradient - self._mean)
        self._square += (1 - _SECOND_MOMENT) * (gradient**2 - self._square)
        mean = self._mean / (1 - _FIRST_MOMENT**self._time)
        square = self._square / (1 - _SECOND_MOMENT**self._time)
        weights -= length * mean / (np.sqrt(square) + _TINY)
        np.clip(weights, -_MOST_WEIGHT, _MOST_WEIGHT, out=weights)


class Trainer:
    """Holds a network and moves it, on all cores that this process may use.

    Parameters
    ----------
    network
        Where to begin; changed in place.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._adams = [_Adam(layer) for layer in network]
        self._gradients = [Network(*map(np.zeros_like, network)) for _ in os.sched_getaffinity(0)]
        self._pool = ThreadPoolExecutor(len(self._gradients))

    def slopes(self, samples: Samples, aims: Floats, flips: NDArray[np.int64]) -> tuple[Floats, Network]:
        """Return the estimates of some positions, in units of the last layer, and the gradient of their mean loss."""
        estimates = np.empty(len(aims), np.float32)
        borders = np.linspace(0, len(aims), len(self._gradients) + 1).astype(int)
        jobs = []
        for gradient, (first, last) in zip(self._gradients, pairwise(borders), strict=True):
            for layer in gradient:
                layer[...] = 0
            part = slice(first, last)
            job = (samples.men[part], aims[part], flips[part], self.network, gradient, estimates[part])
            jobs.append(self._pool.submit(_learn, *job))
        for waiting in jobs:
            waiting.result()
        means = [np.mean(layers, axis=0) for layers in zip(*self._gradients, strict=True)]
        share = np.float32(len(self._gradients) / len(aims))
        return estimates, Network(*((mean * share).astype(np.float32) for mean in means))

    def step(self, gradient: Network, length: float) -> None:
        """Move the network against a gradient."""
        for adam, layer, slope in zip(self._adams, self.network, gradient, strict=True):
            adam.step(layer, slope, length)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def shares_of(estimates: Floats) -> Floats:
    """Return the expected share of the point of the side to move."""
    return (1 / (1 + np.exp(-estimates))).astype(np.float32)


def logistic_loss(estimates: Floats, aims: Floats) -> float:
    """Return the mean of the logistic loss."""
    shares = np.clip(shares_of(estimates).astype(np.float64), 1e-9, 1 - 1e-9)
    return float(-(aims * np.log(shares) + (1 - aims) * np.log(1 - shares)).mean())


def best_steepness(scores: Floats, shares: Floats) -> float:
    """Return the steepness ``k`` with which ``1 / (1 + 10^(-k score / 400))`` predicts shares best (golden section)."""
    low, high, ratio = 0.1, 4.0, (5**0.5 - 1) / 2
    while high - low > 1e-3:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        losses = [logistic_loss(scores * np.float32(k * STEEPEST), shares) for k in (left, right)]
        low, high = (low, right) if losses[0] < losses[1] else (left, high)
    return (low + high) / 2


def aims_of(samples: Samples, steepness: float, result_share: float) -> Floats:
    """Return what the network is to predict: a mean of results and of what the scores predict."""
    expected = shares_of(samples.scores * np.float32(steepness * STEEPEST))
    aims: Floats = np.float32(result_share) * samples.shares + np.float32(1 - result_share) * expected
    return aims


def fit(
    samples: Samples,
    aims: Floats,
    trainer: Trainer,
    settings: Settings = Settings(),
    on_epoch: Callable[[int, float], None] = lambda _epoch, _loss: None,
) -> None:
    """Move a trainer's network until it predicts the aims of some positions well.

    Parameters
    ----------
    samples, aims
        `N` positions, and the share of the point to predict for each, 0..1.
    trainer
        Holds the network.
    settings
        How it is done; equal seeds give equal networks on machines of as many cores.
    on_epoch
        Called after each epoch with its number and its mean loss.
    """
    rng = np.random.default_rng(settings.seed)
    batches = -(-len(aims) // settings.batch)
    total, number = settings.epochs * batches, 0
    for epoch in range(settings.epochs):
        order, loss = rng.permutation(len(aims)), 0.0
        for first in range(0, len(order), settings.batch):
            rows = order[first : first + settings.batch]
            flips = rng.integers(0, 2, len(rows)) * _MIRROR
            estimates, gradient = trainer.slopes(samples.part(rows), aims[rows], flips)
            loss += logistic_loss(estimates, aims[rows]) * len(rows)
            number += 1
            fall = _LAST_STEP + (1 - _LAST_STEP) * (1 + np.cos(np.pi * number / total)) / 2
            trainer.step(gradient, settings.step * min(1.0, number / _WARM_STEPS) * fall)
        on_epoch(epoch + 1, loss / len(aims))
