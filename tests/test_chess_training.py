"""The trainer of the chess network: samples, gradients, a planted network found again, games and files."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from conftest import silent

from search.game_files import load_game
from search.games.chess import mirror, parse, text
from search.games.chess.fitting import (
    Floats,
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
    shares_of,
)
from search.games.chess.layers import INPUTS, LAST_UNIT, MOST_MEN, UNIT, unpack
from search.games.chess.samples import NO_MAN, Samples, inputs_of, read_samples
from search.games.chess.selfplay import (
    BLACK_WINS,
    DRAWN,
    WHITE_WINS,
    Plan,
    Sample,
    play_games,
    read_sample,
    sample_line,
)
from search.games.chess.training import main, module_text, train
from search.referee import Referee

SMALL = Settings(hidden=16, buckets=2, epochs=3, batch=256)


def random_samples(number: int, seed: int = 1) -> Samples:
    """Return positions of men anywhere, who got what their scores promise."""
    rng = np.random.default_rng(seed)
    men = np.full((number, MOST_MEN), NO_MAN, np.int16)
    for row in men:
        count = int(rng.integers(2, MOST_MEN + 1))
        row[:count] = rng.choice(INPUTS, count, replace=False)
    scores = rng.normal(0, 200, number).astype(np.float32)
    return Samples(men, (rng.random(number) < shares_of(scores / 174)).astype(np.float32), scores)


def plain_estimates(samples: Samples, network: Network) -> Floats:
    """Return what the network makes of positions, straight from its definition."""
    found = []
    for men in samples.men:
        seen = men[men != NO_MAN].astype(int)
        last = network.last[(len(seen) - 1) * len(network.offsets) // MOST_MEN]
        other = np.where(seen < INPUTS // 2, seen + INPUTS // 2, seen - INPUTS // 2) ^ 56
        views = [np.clip(network.bias + network.rows[inputs].sum(axis=0), 0, 1) for inputs in (seen, other)]
        offset = network.offsets[(len(seen) - 1) * len(network.offsets) // MOST_MEN]
        found.append(offset + sum((view**2 * weights).sum() for view, weights in zip(views, last, strict=True)))
    return np.array(found, np.float32)


@pytest.fixture
def trainer() -> Trainer:
    return Trainer(random_network(SMALL))


def test_estimates_are_what_the_definition_says(trainer: Trainer) -> None:
    samples = random_samples(60)
    aims = samples.shares
    estimates, _ = trainer.slopes(samples, aims, np.zeros(60, np.int64))
    assert estimates == pytest.approx(plain_estimates(samples, trainer.network), abs=1e-4)
    flipped = samples._replace(men=np.where(samples.men == NO_MAN, NO_MAN, samples.men ^ 7).astype(np.int16))
    estimates, _ = trainer.slopes(samples, aims, np.full(60, 7))
    assert estimates == pytest.approx(plain_estimates(flipped, trainer.network), abs=1e-4)


def test_gradients_are_differences_of_the_loss(trainer: Trainer) -> None:
    samples = random_samples(40)
    aims = aims_of(samples, 1.0, 0.5)
    _, gradient = trainer.slopes(samples, aims, np.zeros(40, np.int64))
    rng, step = np.random.default_rng(3), 2e-3
    used = samples.men[samples.men != NO_MAN]
    for layer, slopes in zip(trainer.network, gradient, strict=True):
        for _ in range(12):
            place = tuple(int(rng.integers(size)) for size in layer.shape)
            if layer is trainer.network.rows:
                place = (int(rng.choice(used)), place[1])
            before, losses = layer[place], []
            for change in (step, -step):
                layer[place] = before + change
                losses.append(logistic_loss(plain_estimates(samples, trainer.network), aims))
            layer[place] = before
            assert slopes[place] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=3e-4)


def test_a_planted_network_is_found_again() -> None:
    samples = random_samples(2_000)
    planted = random_network(Settings(hidden=16, buckets=2, seed=9))
    aims = shares_of(plain_estimates(samples, planted))
    settings = Settings(hidden=16, buckets=2, epochs=25, batch=128, step=1e-2)
    trainer, losses = Trainer(random_network(settings)), []
    fit(samples, aims, trainer, settings, lambda _epoch, loss: losses.append(loss))
    least = logistic_loss(plain_estimates(samples, planted), aims)
    # The loss can fall no lower than where the aims are met.
    assert losses[0] - least > 4 * (losses[-1] - least)
    trainer.close()


def test_equal_seeds_give_equal_networks() -> None:
    samples = random_samples(600)
    networks = []
    for _ in range(2):
        trainer = Trainer(random_network(SMALL))
        fit(samples, samples.shares, trainer, SMALL)
        networks.append(trainer.network)
        trainer.close()
    for one, other in zip(*networks, strict=True):
        assert np.array_equal(one, other)


def test_real_numbers_are_what_whole_ones_stand_for(trainer: Trainer) -> None:
    layers = rounded(trainer.network)
    for one, other in zip(rounded(real(layers)), layers, strict=True):
        assert np.array_equal(one, other)


def test_whole_numbers_are_near_the_real_ones(trainer: Trainer) -> None:
    layers = rounded(trainer.network)
    assert np.abs(layers.rows / UNIT - trainer.network.rows).max() <= 0.5 / UNIT + 1e-6
    assert np.abs(layers.last / LAST_UNIT - trainer.network.last).max() <= 0.5 / LAST_UNIT + 1e-6


def test_steepness_is_found_again() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(0, 300, 60_000).astype(np.float32)
    for steepness in (0.6, 1.3):
        chances = shares_of(scores * np.float32(steepness * np.log(10) / 400))
        assert best_steepness(scores, (rng.random(60_000) < chances).astype(np.float32)) == pytest.approx(
            steepness, rel=0.06
        )


def test_inputs_are_the_movers_view() -> None:
    fen = "4k3/8/8/3q4/8/2N5/P7/4K3 w - - 0 1"
    assert sorted(inputs_of(fen)) == sorted(
        [64 * 4 + 4, 64 * 1 + 18, 8, INPUTS // 2 + 64 * 4 + 60, INPUTS // 2 + 64 * 5 + 35]
    )
    assert sorted(inputs_of(text(mirror(parse(fen))))) == sorted(inputs_of(fen))


def test_samples_are_seen_by_their_movers() -> None:
    lines = [
        sample_line(Sample("4k3/8/8/3q4/8/2N5/P7/4K3 w - - 0 1", 31, BLACK_WINS)),
        sample_line(Sample("4k3/8/8/3q4/8/2N5/P7/4K3 b - - 0 1", -7, BLACK_WINS)),
        sample_line(Sample("4k3/8/8/3q4/8/2N5/P7/4K3 b - - 0 1", 0, DRAWN)),
    ]
    samples = read_samples(lines)
    assert samples.shares.tolist() == [0.0, 1.0, 0.5]
    assert samples.scores.tolist() == [31, -7, 0]
    assert [sorted(row[row != NO_MAN].tolist()) for row in samples.men[:1]] == [sorted(inputs_of(lines[0]))]


def test_games_are_kept_with_their_results(tmp_path: Path) -> None:
    game = load_game("chess")
    referee = Referee(game, notice=silent)
    kept = [samples for samples in play_games(6, 3, Plan(nodes=150, keep=1.0, table_mb=1.0)) if samples]
    assert kept
    for samples in kept:
        assert len({sample.result for sample in samples}) == 1
        assert samples[0].result in (WHITE_WINS, DRAWN, BLACK_WINS)
        for sample in samples:
            assert referee.legal_moves(game.parse(sample.fen))
            assert read_sample(sample_line(sample)) == sample
    again = [samples for samples in play_games(6, 3, Plan(nodes=150, keep=1.0, table_mb=1.0)) if samples]
    assert again == kept


def test_a_network_is_fitted_to_a_file_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "games.epd"
    main(["play", str(file), "--games", "2", "--nodes", "60", "--seed", "5"])
    assert file.read_text().count("\n") > 10
    main(["fit", str(file), "--fresh", "--hidden", "16", "--buckets", "1", "--epochs", "1", "--note", "two games"])
    printed = capsys.readouterr().out
    space: dict[str, object] = {}
    exec(printed[printed.index('"""The weights') :], space)
    assert space["HIDDEN"] == 16
    assert "two games" in str(space["ORIGIN"])
    layers, scale = train(random_samples(500), random_network(SMALL), 150, SMALL), 150
    rewritten: dict[str, object] = {}
    exec(module_text(layers, scale, "made here"), rewritten)
    assert rewritten["SCALE"] == scale
    again = unpack(cast(bytes, rewritten["PACKED"]), 16, cast("tuple[int, ...]", rewritten["OFFSETS"]))
    for one, other in zip(again, layers, strict=True):
        assert np.array_equal(one, other)
