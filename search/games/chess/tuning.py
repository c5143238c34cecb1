"""The tuner: plays games for data, and fits the weights of the evaluation to them.

::

    python -m search.games.chess.tuning play data.epd --games 5000 --nodes 2000 --seed 1
    python -m search.games.chess.tuning fit data.epd more.epd --write
    python -m search.games.chess.tuning formula --write

`play` appends to its file. `fit` prints the loss on positions that it did not fit, before and after, and the new
table; with ``--write`` it puts the table in the place of `search.games.chess.weights`. `formula` makes the table of
`search.games.chess.priors` anew, for a fit from scratch. Equal seeds and data give equal weights.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from search.games.chess import weights as table
from search.games.chess.board import BLACK_TO_MOVE
from search.games.chess.features import Features, extract
from search.games.chess.fen import parse
from search.games.chess.fitting import (
    Floats,
    Settings,
    Weights,
    as_tables,
    best_steepness,
    current_weights,
    estimates,
    fit,
    logistic_loss,
    predictions,
    select,
)
from search.games.chess.priors import starting_danger, starting_weights
from search.games.chess.selfplay import SHARES, Plan, Sample, play_games, read_sample, sample_line

HELD_BACK = 0.1
"""The part of the positions, the last games', that shows what the fit is worth."""
_LINE = 116


def load(paths: Sequence[Path]) -> tuple[Features, Floats, Floats]:
    """Return the features of all samples in some files, the mover's share of the point, and the search's score."""
    samples = [read_sample(line) for path in paths for line in path.read_text().splitlines()]
    positions = [parse(sample.fen) for sample in samples]
    features = extract(positions)
    shares = [_mover_share(sample, int(position.state)) for sample, position in zip(samples, positions, strict=True)]
    scores = np.array([sample.score for sample in samples], np.float32)
    usual = ~features.is_bare
    return select(features, np.flatnonzero(usual)), np.array(shares, np.float32)[usual], scores[usual]


def _mover_share(sample: Sample, state: int) -> float:
    share = SHARES[sample.result]
    return 1 - share if state & BLACK_TO_MOVE else share


def tune(features: Features, shares: Floats, scores: Floats, start: Weights, settings: Settings) -> Weights:
    """Fit the weights and print how well they predict before and after."""
    kept = round(len(shares) * (1 - HELD_BACK))
    fitted, held = slice(0, kept), slice(kept, len(shares))
    steepness = best_steepness(estimates(features, start), shares)
    sureness = best_steepness(scores, shares)
    aims = settings.result_share * shares + (1 - settings.result_share) * predictions(scores, sureness)
    print(f"{len(shares)} positions, steepness {steepness:.3f}; of the search's scores {sureness:.3f}")

    def report(epoch: int, weights: Weights) -> None:
        losses = [
            logistic_loss(estimates(select(features, part), weights), shares[part], steepness)
            for part in (fitted, held)
        ]
        print(f"epoch {epoch:3}: loss {losses[0]:.5f}, held back {losses[1]:.5f}", flush=True)

    report(0, start)
    return fit(select(features, fitted), aims[fitted], start, steepness, settings, report)


def module_text(
    pairs: Mapping[str, Sequence[tuple[int, int]]], danger: Mapping[str, Sequence[int]], origin: Sequence[str]
) -> str:
    """Return the source of the module `search.games.chess.weights`."""
    lines = [
        '"""What each term of the evaluation is worth, in centipawns for the middle game and for the end game.',
        "",
        "Written by `search.games.chess.tuning`, not by hand. What its places mean is told where a term is defined;",
        "units of danger are no centipawns: see `search.games.chess.king_safety`.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "# fmt: off",
        "# Where the weights come from.",
        "ORIGIN: tuple[str, ...] = (",
        *(line for text in origin for line in _text_lines(text)),
        ")",
        "",
        "WEIGHTS: dict[str, tuple[tuple[int, int], ...]] = {",
    ]
    for name, values in pairs.items():
        lines += _entry_lines(name, [f"({middle}, {end})" for middle, end in values])
    lines += ["}", "", "DANGER: dict[str, tuple[int, ...]] = {"]
    for name, units in danger.items():
        lines += _entry_lines(name, [str(unit) for unit in units])
    return "\n".join([*lines, "}", "# fmt: on", ""])


def _text_lines(text: str) -> list[str]:
    """Return the lines of one string of the origin."""
    rows = textwrap.wrap(text, 100)
    return [*(f'    "{row} "' for row in rows[:-1]), f'    "{rows[-1]}",']


def _entry_lines(name: str, values: Sequence[str]) -> list[str]:
    """Return the lines of one term: on one, or four values a line."""
    whole = f'    "{name}": ({", ".join(values)}{"," if len(values) == 1 else ""}),'
    if len(whole) <= _LINE:
        return [whole]
    rows = [", ".join(values[first : first + 4]) for first in range(0, len(values), 4)]
    return [f'    "{name}": (', *(f"        {row}," for row in rows), "    ),"]


def _put(text: str, is_written: bool) -> None:
    if is_written and table.__file__ is not None:
        Path(table.__file__).write_text(text)
    else:
        print(text)


def _play(arguments: argparse.Namespace) -> None:
    number = 0
    with arguments.file.open("a") as file:
        for count, samples in enumerate(play_games(arguments.games, arguments.seed, Plan(arguments.nodes)), 1):
            file.writelines(sample_line(sample) + "\n" for sample in samples)
            number += len(samples)
            if count % 100 == 0 or count == arguments.games:
                print(f"{count} games, {number} positions", flush=True)
                file.flush()


def _fit(arguments: argparse.Namespace) -> None:
    features, shares, scores = load(arguments.files)
    settings = Settings(arguments.epochs, pull=arguments.pull, result_share=arguments.result_share, seed=arguments.seed)
    weights = tune(features, shares, scores, current_weights(), settings)
    today = datetime.date.today().isoformat()
    fitted = f"{today}: fitted to {len(shares)} positions of our own games ({arguments.note or 'self-play'})."
    _put(module_text(*as_tables(weights), (*table.ORIGIN, fitted)), arguments.write)


def _formula(arguments: argparse.Namespace) -> None:
    origin = ("Made by the formulas of `search.games.chess.priors`.",)
    _put(module_text(starting_weights(), starting_danger(), origin), arguments.write)


def main(words: Sequence[str]) -> None:
    """Run the command that some words ask for."""
    parser = argparse.ArgumentParser(prog="python -m search.games.chess.tuning", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    play = commands.add_parser("play", help="play games and append their quiet positions to a file")
    play.add_argument("file", type=Path)
    play.add_argument("--games", type=int, default=1_000)
    play.add_argument("--nodes", type=int, default=Plan.nodes, help="nodes a move")
    play.add_argument("--seed", type=int, default=1)
    play.set_defaults(run=_play)
    fitting = commands.add_parser("fit", help="fit the weights to files of positions")
    fitting.add_argument("files", type=Path, nargs="+")
    fitting.add_argument("--epochs", type=int, default=Settings.epochs)
    fitting.add_argument("--pull", type=float, default=Settings.pull, help="toward the present weights")
    fitting.add_argument("--result-share", type=float, default=Settings.result_share, help="0 to 1; the rest is scores")
    fitting.add_argument("--seed", type=int, default=1)
    fitting.add_argument("--note", default="", help="how the games were made, for the table")
    fitting.set_defaults(run=_fit)
    formula = commands.add_parser("formula", help="make the table by formula")
    formula.set_defaults(run=_formula)
    for command in (fitting, formula):
        command.add_argument("--write", action="store_true", help="put the table in its place")
    arguments = parser.parse_args(words)
    arguments.run(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
