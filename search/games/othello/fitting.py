"""The tuner: plays games for data, and fits the weights of the estimate to them.

::

    python -m search.games.othello.fitting play games.txt --games 5000 --seed 1
    python -m search.games.othello.fitting fit games.txt more.txt --write

`play` appends to its file. `fit` prints how far off the estimate is, in discs, on positions that it did not fit; with
``--write`` it puts the table in the place of `search.games.othello.weights`. The fit is one of least squares with a
pull toward zero (ridge regression: Hoerl and Kennard 1970), for each stage of the game by itself; neighbouring stages
share positions, so that the weights change gently. Equal seeds and data give equal weights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search.games.othello import weights as table
from search.games.othello.board import DISC
from search.games.othello.evaluation import STAGE_DISCS, STAGES, WEIGHT_SHIFT
from search.games.othello.features import FEATURES, NAMES, features
from search.games.othello.selfplay import Plan, play_games, read_sample, sample_line
from tt_store.layout import WORD_BYTES
from tt_store.native import entry, read_word, write_int

HELD_BACK = 0.1
"""The part of the positions, the last games', that shows what the fit is worth."""
PULL = 200.0
FEWEST = 100
"""A stage with fewer positions takes the weights of the next one."""
OVERLAP_DISCS = 3


class Data(NamedTuple):
    """What the fit is made from."""

    counts: NDArray[np.int64]
    """`[N, FEATURES]`."""
    discs: NDArray[np.int64]
    """`[N]`: on the board."""
    scores: NDArray[np.int64]
    """`[N]`, in units of scores."""


@entry
def _write_counts(boards: int, number: int, results: int) -> None:
    """Write the features of boards, two words each; all arguments but `number` are addresses."""
    for index in range(number):
        board = boards + 2 * index * WORD_BYTES
        counts = features(read_word(board), read_word(board + WORD_BYTES))
        for column in range(FEATURES):
            write_int(results + (index * FEATURES + column) * WORD_BYTES, counts[column])


def load(lines: Sequence[str]) -> Data:
    """Return the features, the number of discs and the score of each sample."""
    samples = [read_sample(line) for line in lines]
    boards = np.array([(int(each.position.own), int(each.position.other)) for each in samples], np.uint64)
    counts = np.zeros((len(samples), FEATURES), np.int64)
    _write_counts(boards.ctypes.data, len(samples), counts.ctypes.data)
    discs = np.array([int(own | other).bit_count() for own, other in boards], np.int64)
    return Data(counts, discs, np.array([DISC * each.score for each in samples], np.int64))


def fit(data: Data, pull: float = PULL) -> NDArray[np.float64]:
    """Return the weights of each stage and feature, in units of score.

    Parameters
    ----------
    data
        The samples.
    pull
        What the square of a weight costs, in the square of a unit of score.
    """
    weights = np.zeros((STAGES, FEATURES))
    fitted = [stage for stage in range(STAGES) if len(_stage_rows(data, stage)) >= FEWEST]
    for stage in fitted:
        rows = _stage_rows(data, stage)
        counts = data.counts[rows].astype(np.float64)
        square = counts.T @ counts + pull * np.eye(FEATURES)
        weights[stage] = np.linalg.solve(square, counts.T @ data.scores[rows].astype(np.float64))
    for stage in range(STAGES):
        if stage not in fitted and fitted:
            weights[stage] = weights[min(fitted, key=lambda known: abs(known - stage))]
    return weights


def _stage_rows(data: Data, stage: int) -> NDArray[np.int64]:
    first, last = stage * STAGE_DISCS - OVERLAP_DISCS, (stage + 1) * STAGE_DISCS + OVERLAP_DISCS
    return np.flatnonzero((data.discs >= first) & (data.discs < last))


def errors(data: Data, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the root of the mean squared error of the estimate at each stage, in discs; NaN where there is none."""
    stages = np.minimum(data.discs // STAGE_DISCS, STAGES - 1)
    off = (np.einsum("nf,nf->n", data.counts, weights[stages]) - data.scores) / DISC
    groups = (off[stages == stage] for stage in range(STAGES))
    return np.array([np.sqrt(np.mean(group**2)) if len(group) else np.nan for group in groups])


def as_integers(weights: NDArray[np.float64]) -> list[tuple[int, ...]]:
    """Return weights in the units of the table."""
    return [tuple(round(float(weight) * (1 << WEIGHT_SHIFT)) for weight in row) for row in weights]


def module_text(weights: Sequence[Sequence[int]]) -> str:
    """Return the source of the module `search.games.othello.weights`."""
    rows = (f"    ({', '.join(map(str, row))})," for row in weights)
    return "\n".join(
        [
            '"""What the features of the estimate are worth at each stage of the game.',
            "",
            "Written by `search.games.othello.fitting`, not by hand: a row a stage, in the order of",
            "`search.games.othello.features.NAMES`, in units that `search.games.othello.evaluation` tells.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "# fmt: off",
            "WEIGHTS: tuple[tuple[int, ...], ...] = (",
            *rows,
            ")",
            "# fmt: on",
            "",
        ]
    )


def _play(arguments: argparse.Namespace) -> None:
    plan = Plan(depth=arguments.depth)
    with arguments.file.open("a") as file:
        for count, samples in enumerate(play_games(arguments.games, arguments.seed, plan), 1):
            file.writelines(sample_line(sample) + "\n" for sample in samples)
            if count % 100 == 0 or count == arguments.games:
                print(f"{count} games", flush=True)


def _fit(arguments: argparse.Namespace) -> None:
    lines = [line for path in arguments.files for line in path.read_text().splitlines()]
    kept = round(len(lines) * (1 - HELD_BACK))
    before, after = np.array(table.WEIGHTS) / (1 << WEIGHT_SHIFT), fit(load(lines[:kept]))
    held_back = load(lines[kept:])
    print(f"{len(lines)} positions, {len(NAMES)} features; error in discs by stage, before and after:")
    for stage, (old, new) in enumerate(zip(errors(held_back, before), errors(held_back, after), strict=True)):
        print(f"from {stage * STAGE_DISCS:2} discs: {old:6.2f} {new:6.2f}")
    text = module_text(as_integers(after))
    if arguments.write and table.__file__ is not None:
        Path(table.__file__).write_text(text)
    else:
        print(text)


def main(words: Sequence[str]) -> None:
    """Run the command that some words ask for."""
    parser = argparse.ArgumentParser(prog="python -m search.games.othello.fitting", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    play = commands.add_parser("play", help="play games and append their positions to a file")
    play.add_argument("file", type=Path)
    play.add_argument("--games", type=int, default=1_000)
    play.add_argument("--depth", type=int, default=Plan.depth, help="plies a move looks ahead")
    play.add_argument("--seed", type=int, default=1)
    play.set_defaults(run=_play)
    fitting = commands.add_parser("fit", help="fit the weights to files of positions")
    fitting.add_argument("files", type=Path, nargs="+")
    fitting.add_argument("--write", action="store_true", help="put the table in its place")
    fitting.set_defaults(run=_fit)
    arguments = parser.parse_args(words)
    arguments.run(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
