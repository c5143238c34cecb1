"""The tuner of the chess evaluation: its features, its gradients, planted weights found again, games and files."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import silent

from search.game_files import load_game
from search.games.chess import weights as table
from search.games.chess.features import COLUMNS, Features, extract
from search.games.chess.fitting import (
    Settings,
    Weights,
    as_tables,
    best_steepness,
    current_weights,
    estimates,
    fit,
    gradients,
    logistic_loss,
    predictions,
    select,
)
from search.games.chess.priors import starting_danger, starting_weights
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
from search.games.chess.tuning import main, module_text
from search.referee import Referee

OPEN_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2NBPN2/PP3PPP/R2Q1RK1 w - - 0 11"


@cache
def referee() -> Referee:
    return Referee(load_game("chess"), notice=silent)


@cache
def positions(number: int = 3_000) -> list[object]:
    """Return positions of random play: many kinds of material, few that are level."""
    rng, found = random.Random(1), []
    while len(found) < number:
        position = referee().game.parse(OPEN_GAME if rng.random() < 0.7 else "")
        for _ in range(rng.randrange(5, 70)):
            moves = referee().legal_moves(position)
            if not moves:
                break
            position = referee().play(position, rng.choice(moves))
            found.append(position)
    return found[:number]


@cache
def features() -> Features:
    return extract(positions())


def test_counts_times_weights_are_the_evaluation() -> None:
    """The compiled one rounds twice, and danger by shifts."""
    values = [referee().facts(position).evaluation for position in positions()]
    differences = np.abs(estimates(features(), current_weights()) - np.array(values))
    usual = ~features().is_bare & np.array([referee().game.text(p).split()[4] < "40" for p in positions()])
    assert differences[usual].max() < 4


def test_gradients_are_those_of_the_loss() -> None:
    weights, rng = current_weights(), np.random.default_rng(2)
    aims = rng.random(len(positions())).astype(np.float32)
    pairs, units = gradients(features(), aims, weights, 1.0)

    def loss_with(change: Weights, size: float) -> float:
        changed = Weights(weights.pairs + size * change.pairs, weights.units + size * change.units)
        return logistic_loss(estimates(features(), changed), aims, 1.0)

    for _ in range(5):
        change = Weights(
            rng.normal(size=pairs.shape).astype(np.float32), rng.normal(size=units.shape).astype(np.float32)
        )
        slope = float((pairs * change.pairs).sum() + (units * change.units).sum())
        assert loss_with(change, 0.05) - loss_with(change, -0.05) == pytest.approx(0.1 * slope, rel=0.05, abs=1e-6)


def test_planted_weights_are_found_again() -> None:
    """Whoever evaluates with other weights is imitated: results drawn by chance, by the planted evaluation."""
    start, planted = current_weights(), current_weights()
    frequent = np.flatnonzero(np.count_nonzero(features().counts, axis=0) > len(positions()) // 4)
    rng = np.random.default_rng(3)
    planted.pairs[frequent] += rng.choice([-15, 15], size=(len(frequent), 2)).astype(np.float32)
    aims = predictions(estimates(features(), planted), 1.0)
    fitted = fit(features(), aims, start, 1.0, Settings(epochs=60, batch=500, pull=0.0))
    before, after = (estimates(features(), weights) - estimates(features(), planted) for weights in (start, fitted))
    assert np.abs(after).mean() < 0.15 * np.abs(before).mean()
    assert logistic_loss(estimates(features(), fitted), aims, 1.0) < logistic_loss(
        estimates(features(), start), aims, 1.0
    )
    again = fit(features(), aims, start, 1.0, Settings(epochs=2, batch=500))
    assert (again.pairs == fit(features(), aims, start, 1.0, Settings(epochs=2, batch=500)).pairs).all()
    assert (start.pairs == current_weights().pairs).all(), "the start was changed"


def test_the_steepness_is_what_the_results_were_made_with() -> None:
    values = np.linspace(-600, 600, 2_000, dtype=np.float32)
    assert best_steepness(values, predictions(values, 1.3)) == pytest.approx(1.3, abs=0.01)


def test_some_positions_are_selected_in_all_their_features() -> None:
    part = select(features(), slice(3, 9))
    assert part.counts.shape == (6, COLUMNS)
    assert (estimates(part, current_weights()) == estimates(features(), current_weights())[3:9]).mean() > 0.5


def test_weights_become_a_module_and_are_read_again(tmp_path: Path) -> None:
    pairs, units = as_tables(current_weights())
    text = module_text(pairs, units, table.ORIGIN)
    assert text == Path(str(table.__file__)).read_text()
    names: dict[str, object] = {}
    exec(text.replace("from __future__ import annotations", ""), names)
    assert (names["WEIGHTS"], names["DANGER"]) == (table.WEIGHTS, table.DANGER)
    assert {name: len(values) for name, values in starting_weights().items()} == {
        name: len(values) for name, values in table.WEIGHTS.items()
    }
    assert starting_danger().keys() == table.DANGER.keys()


def test_lines_lead_back_to_their_samples() -> None:
    for result in (WHITE_WINS, BLACK_WINS, DRAWN):
        sample = Sample(OPEN_GAME, -31, result)
        assert read_sample(sample_line(sample) + "\n") == sample


def test_games_are_played_and_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan(nodes=60, table_mb=1.0)
    games = list(play_games(3, 5, plan))
    assert games == list(play_games(3, 5, plan)), "the same seed gave other games"
    assert all(len({sample.result for sample in samples}) <= 1 for samples in games)
    file = tmp_path / "data.epd"
    main(["play", str(file), "--games", "3", "--nodes", "60", "--seed", "5"])
    assert [read_sample(line) for line in file.read_text().splitlines()] == [s for samples in games for s in samples]
    main(["fit", str(file), "--epochs", "2", "--note", "a test"])
    said = capsys.readouterr().out
    assert "epoch   2: loss" in said
    assert "our own games (a test)" in said
    assert "WEIGHTS" in said
    main(["formula"])
    assert "ORIGIN" in capsys.readouterr().out
