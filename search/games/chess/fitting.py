"""The fit of the weights to the results of games: Texel's method (Österlund 2014), by gradients.

A position's evaluation ``e`` predicts White's share of the point as ``1 / (1 + 10^(-k e / 400))``; the weights are
moved so that the predictions become likely (logistic loss). The gradient is exact: but for the danger to the
kings, whose square counts, the evaluation is linear in its weights. The steps are those of Adam (Kingma and Ba 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search.games.chess import weights as table
from search.games.chess.features import COLUMNS, TERMS, Features
from search.games.chess.king_safety import END_SHIFT, MIDDLE_SHIFT, MOST_DANGER
from search.games.chess.terms import DANGER_START, MATERIAL, OFFSETS, SQUARE_TABLES

Floats = NDArray[np.float32]
_STEEPEST = float(np.log(10) / 400)
_FIRST_MOMENT, _SECOND_MOMENT, _TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Settings:
    """How weights are fitted."""

    epochs: int = 10
    batch: int = 4_096
    step: float = 1.0
    """The first step's length, in centipawns; it falls to a tenth."""
    pull: float = 5e-9
    """What a centipawn squared away from the start costs; keeps rare terms near it."""
    result_share: float = 0.4
    """The result's part of the aim; the rest is what the search's score predicts.

    The results of a few thousand games are so noisy that a fit to them alone predicts new games worse.
    """
    seed: int = 1


@dataclass
class Weights:
    """All weights as real numbers."""

    pairs: Floats
    """`[COLUMNS, 2]`: for the middle game and for the end game."""
    units: Floats
    """`[D]`: of danger."""

    def copy(self) -> Weights:
        """Return weights that change by themselves."""
        return Weights(self.pairs.copy(), self.units.copy())


def current_weights() -> Weights:
    """Return the table's weights."""
    pairs = np.zeros((COLUMNS, 2), np.float32)
    for name, place in _places().items():
        pairs[place : place + len(table.WEIGHTS[name])] = table.WEIGHTS[name]
    return Weights(pairs, np.array([unit for units in table.DANGER.values() for unit in units], np.float32))


def _places() -> dict[str, int]:
    """Return the first column of each term of packed weights."""
    places = {name: offset for name, offset in OFFSETS.items() if offset < DANGER_START}
    places |= {name: TERMS + 32 * kind for kind, name in enumerate(SQUARE_TABLES)}
    return places | {MATERIAL: COLUMNS - len(table.WEIGHTS[MATERIAL])}


def as_tables(weights: Weights) -> tuple[dict[str, list[tuple[int, int]]], dict[str, list[int]]]:
    """Return weights as whole numbers, in the shape of the table."""
    places = _places()
    pairs = {
        name: [
            (round(float(middle)), round(float(end))) for middle, end in weights.pairs[places[name] :][: len(values)]
        ]
        for name, values in table.WEIGHTS.items()
    }
    units, start = {}, 0
    for name, values in table.DANGER.items():
        units[name] = [round(float(unit)) for unit in weights.units[start : start + len(values)]]
        start += len(values)
    return pairs, units


def estimates(features: Features, weights: Weights) -> Floats:
    """Return the evaluations of the positions in centipawns, unrounded."""
    return _Forward(features, weights).values


class _Forward:
    """The evaluation of some positions, with what its gradient needs."""

    def __init__(self, features: Features, weights: Weights) -> None:
        halves = features.counts @ weights.pairs
        self.middle_part = features.scale * features.share
        self.end_part = features.scale * (1 - features.share)
        self.attack = np.clip(features.attack @ weights.units, 0, MOST_DANGER)
        self.defence = np.clip(features.defence @ weights.units, 0, MOST_DANGER)
        middle = halves[:, 0] + (self.attack**2 - self.defence**2) / 2**MIDDLE_SHIFT
        end = halves[:, 1] + (self.attack - self.defence) / 2**END_SHIFT
        self.values: Floats = self.middle_part * middle + self.end_part * end

    def slope(self, danger: Floats) -> Floats:
        """Return how much the evaluation changes with a unit of danger."""
        steep = self.middle_part * 2 * danger / 2**MIDDLE_SHIFT + self.end_part / 2**END_SHIFT
        slope: Floats = np.where((danger > 0) & (danger < MOST_DANGER), steep, 0)
        return slope


def predictions(values: Floats, steepness: float) -> Floats:
    """Return the expected share of the point of the side to move."""
    shares: Floats = 1 / (1 + np.exp(-steepness * _STEEPEST * values))
    return shares


def logistic_loss(values: Floats, aims: Floats, steepness: float) -> float:
    """Return the mean of the logistic loss."""
    shares = np.clip(predictions(values, steepness).astype(np.float64), 1e-9, 1 - 1e-9)
    return float(-(aims * np.log(shares) + (1 - aims) * np.log(1 - shares)).mean())


def best_steepness(values: Floats, aims: Floats) -> float:
    """Return the steepness with the least loss, by golden section."""
    low, high, ratio = 0.1, 4.0, (5**0.5 - 1) / 2
    while high - low > 1e-3:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if logistic_loss(values, aims, left) < logistic_loss(values, aims, right):
            high = right
        else:
            low = left
    return (low + high) / 2


def select(features: Features, rows: NDArray[np.int64] | slice) -> Features:
    """Return the features of some of the positions."""
    return Features(*(getattr(features, name)[rows] for name in Features.__dataclass_fields__))


def gradients(features: Features, aims: Floats, weights: Weights, steepness: float) -> tuple[Floats, Floats]:
    """Return how the mean loss changes with each weight: of pairs, and of units."""
    forward = _Forward(features, weights)
    error = (predictions(forward.values, steepness) - aims) * np.float32(steepness * _STEEPEST / len(aims))
    pull = np.stack((error * forward.middle_part, error * forward.end_part), axis=1)
    pairs = features.counts.T @ pull
    units = features.attack.T @ (error * forward.slope(forward.attack))
    units -= features.defence.T @ (error * forward.slope(forward.defence))
    return pairs, units


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


def fit(
    features: Features,
    aims: Floats,
    start: Weights,
    steepness: float,
    settings: Settings = Settings(),
    on_epoch: Callable[[int, Weights], None] = lambda _epoch, _weights: None,
) -> Weights:
    """Return the weights that predict the aims best, from a start and not far from it.

    Parameters
    ----------
    features, aims
        `N` positions, and the share of the point that their side to move got.
    start
        Where the fit begins, and what it is pulled to.
    steepness
        From `best_steepness` at the start: it fixes the unit of the weights.
    settings
        How it is done; equal seeds give equal weights.
    on_epoch
        Called after each epoch with its number and the weights so far.
    """
    weights, rng = start.copy(), np.random.default_rng(settings.seed)
    steps_of_pairs, steps_of_units = _Adam(weights.pairs), _Adam(weights.units)
    for epoch in range(settings.epochs):
        length = settings.step * 0.1 ** (epoch / settings.epochs)
        order = rng.permutation(len(aims))
        for first in range(0, len(order), settings.batch):
            rows = order[first : first + settings.batch]
            pairs, units = gradients(select(features, rows), aims[rows], weights, steepness)
            pairs += 2 * settings.pull * (weights.pairs - start.pairs)
            units += 2 * settings.pull * (weights.units - start.units)
            steps_of_pairs.step(weights.pairs, pairs, length)
            steps_of_units.step(weights.units, units, length)
        on_epoch(epoch + 1, weights)
    return weights
