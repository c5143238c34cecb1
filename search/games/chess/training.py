"""The trainer of the network: plays games for data, and fits the network to them.

::

    python -m search.games.chess.training play data.epd --games 5000 --nodes 1200 --seed 1
    python -m search.games.chess.training fit data.epd more.epd --write

`play` appends to its file; two that run at once with other seeds and files use two cores. `fit` goes on from the
present network, or with ``--fresh`` from nothing, which wants tens of millions of positions. It prints the loss on
positions that it did not fit, and with ``--write`` puts the network in the place of
`search.games.chess.network_weights`.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from search.games.chess import network_weights as present
from search.games.chess.fitting import (
    STEEPEST,
    Network,
    Settings,
    Trainer,
    aims_of,
    best_steepness,
    fit,
    logistic_loss,
    random_network,
    real,
    rounded,
)
from search.games.chess.layers import Layers, pack, unpack
from search.games.chess.samples import Samples, read_samples
from search.games.chess.selfplay import Plan, play_games, sample_line

HELD_BACK = 0.03
"""The part of the positions, the last games', that shows what the fit is worth."""
_LINE = 110


def train(samples: Samples, start: Network, scale: int, settings: Settings) -> Layers:
    """Fit a network of a scale to positions, print how well it predicts them, and return it."""
    steepness = 1 / (STEEPEST * scale)
    aims = aims_of(samples, steepness, settings.result_share)
    kept = round(len(aims) * (1 - HELD_BACK))
    fitted, held = slice(0, kept), slice(kept, len(aims))
    best = best_steepness(samples.scores, samples.shares)
    print(f"{len(aims)} positions, steepness {steepness:.3f}; of their scores {best:.3f}")
    trainer = Trainer(start)

    def report(epoch: int, loss: float) -> None:
        unturned = np.zeros(len(aims) - kept, np.int64)
        held_back = logistic_loss(trainer.slopes(samples.part(held), aims[held], unturned)[0], aims[held])
        print(f"epoch {epoch:3}: loss {loss:.5f}, held back {held_back:.5f}", flush=True)

    try:
        fit(samples.part(fitted), aims[fitted], trainer, settings, report)
    finally:
        trainer.close()
    return rounded(trainer.network)


def module_text(layers: Layers, scale: int, origin: str) -> str:
    """Return the source of the module `search.games.chess.network_weights`."""
    letters = pack(layers).decode()
    lines = [
        '"""The weights of the network, written by `search.games.chess.training`, not by hand."""',
        "",
        "from __future__ import annotations",
        "",
        "ORIGIN = (",
        *(f'    "{row} "' for row in textwrap.wrap(origin, _LINE - 10)),
        ")",
        f"HIDDEN = {len(layers.bias)}",
        f"SCALE = {scale}",
        '"""Centipawns of a unit of the last layer."""',
        f"OFFSETS = ({', '.join(str(offset) for offset in layers.offsets)},)",
        '"""Of the last layers; the other weights are packed: see `search.games.chess.layers`."""',
        "PACKED = (",
        *(f'    b"{letters[first : first + _LINE]}"' for first in range(0, len(letters), _LINE)),
        ")",
        "",
    ]
    return "\n".join(lines)


def _play(arguments: argparse.Namespace) -> None:
    number = 0
    with arguments.file.open("a") as file:
        for count, samples in enumerate(play_games(arguments.games, arguments.seed, Plan(arguments.nodes)), 1):
            file.writelines(sample_line(sample) + "\n" for sample in samples)
            number += len(samples)
            if count % 100 == 0 or count == arguments.games:
                print(f"{count} games, {number} positions", flush=True)
                file.flush()


def _lines(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        with path.open() as file:
            yield from file


def _fit(arguments: argparse.Namespace) -> None:
    samples = read_samples(_lines(arguments.files))
    settings = Settings(
        arguments.hidden, arguments.buckets, arguments.epochs, result_share=arguments.result_share, seed=arguments.seed
    )
    origin, start = "", random_network(settings)
    if not arguments.fresh:
        origin, start = present.ORIGIN.strip() + "; ", real(unpack(present.PACKED, present.HIDDEN, present.OFFSETS))
    layers = train(samples, start, present.SCALE, settings)
    origin += f"{datetime.date.today()}: {len(samples.scores)} positions of our own games ({arguments.note})"
    text = module_text(layers, present.SCALE, origin)
    if arguments.write:
        Path(present.__file__).write_text(text)
    else:
        print(text)


def main(words: Sequence[str]) -> None:
    """Run the command that some words ask for."""
    parser = argparse.ArgumentParser(prog="python -m search.games.chess.training", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    play = commands.add_parser("play", help="play games and append their quiet positions to a file")
    play.add_argument("file", type=Path)
    play.add_argument("--games", type=int, default=1_000)
    play.add_argument("--nodes", type=int, default=Plan.nodes, help="nodes a move")
    play.add_argument("--seed", type=int, default=1)
    play.set_defaults(run=_play)
    fitting = commands.add_parser("fit", help="fit a network to files of positions")
    fitting.add_argument("files", type=Path, nargs="+")
    fitting.add_argument("--fresh", action="store_true", help="begin with a network that knows nothing")
    fitting.add_argument("--hidden", type=int, default=Settings.hidden, help="units of a fresh one, a multiple of 16")
    fitting.add_argument("--buckets", type=int, default=Settings.buckets, help="last layers of a fresh one")
    fitting.add_argument("--epochs", type=int, default=Settings.epochs)
    fitting.add_argument("--result-share", type=float, default=Settings.result_share, help="0 to 1; the rest is scores")
    fitting.add_argument("--seed", type=int, default=1)
    fitting.add_argument("--note", default="self-play", help="how the games were made, for the file")
    fitting.add_argument("--write", action="store_true", help="put the network in its place")
    fitting.set_defaults(run=_fit)
    arguments = parser.parse_args(words)
    arguments.run(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
