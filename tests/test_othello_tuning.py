"""The tuner of Othello's estimate: games for data, files, planted weights found again."""

from __future__ import annotations

import numpy as np
import pytest

from search.game_files import load_game
from search.games.othello import weights as table
from search.games.othello.board import DISC
from search.games.othello.evaluation import STAGES, WEIGHT_SHIFT
from search.games.othello.features import FEATURES
from search.games.othello.fitting import as_integers, errors, fit, load, main, module_text
from search.games.othello.selfplay import Plan, play_games, read_sample, sample_line
from search.referee import Referee
from search.rules import RulesError

GAME = load_game("othello")
QUICK = Plan(depth=1, solved_squares=8, table_mb=1)


@pytest.fixture(scope="module")
def samples():
    return [sample for samples in play_games(30, seed=1, plan=QUICK) for sample in samples]


def test_equal_seeds_give_equal_games(samples) -> None:
    again = [sample for game in play_games(3, seed=1, plan=QUICK) for sample in game]
    assert samples[: len(again)] == again
    other = next(play_games(1, seed=2, plan=QUICK))
    assert other != samples[: len(other)]


def test_samples_come_back_from_their_lines(samples) -> None:
    for sample in samples[:200]:
        assert read_sample(sample_line(sample)) == sample
    with pytest.raises(RulesError, match="must end with a score"):
        read_sample(GAME.text(GAME.parse("")))


def test_a_games_samples_tell_its_score(samples) -> None:
    first, second = samples[0], samples[1]
    assert first.score == -second.score
    assert all(abs(sample.score) <= 64 and sample.score % 2 == 0 for sample in samples)


def test_planted_weights_are_found_again(samples) -> None:
    data = load([sample_line(sample) for sample in samples])
    planted = np.random.default_rng(1).integers(-30, 30, FEATURES).astype(np.float64)
    data = data._replace(scores=(data.counts @ planted).astype(np.int64))
    found = fit(data, pull=1e-6)
    assert found.shape == (STAGES, FEATURES)
    assert np.nanmax(errors(data, found)) < 1e-3
    # A strong pull keeps weights small.
    assert np.abs(fit(data, pull=1e9)).max() < 1


def test_features_are_those_of_the_estimate(samples) -> None:
    data = load([sample_line(sample) for sample in samples[:300]])
    referee = Referee(GAME)
    for sample, counts, discs in zip(samples, data.counts, data.discs, strict=False):
        total = int(np.dot(counts, table.WEIGHTS[discs // 6]))
        expected = min(abs(total) >> WEIGHT_SHIFT, 64 * DISC) * (1 if total > 0 else -1)
        assert referee.facts(sample.position).evaluation == expected


def test_the_estimate_predicts_the_score_of_games(samples) -> None:
    data = load([sample_line(sample) for sample in samples])
    late = data.discs >= 48
    data = type(data)(*(column[late] for column in data))
    off = errors(data, np.array(table.WEIGHTS) / (1 << WEIGHT_SHIFT))
    assert np.nanmax(off) < 0.75 * np.std(data.scores) / DISC


def test_the_command_plays_and_fits(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    games = tmp_path / "games.txt"
    main(["play", str(games), "--games", "12", "--depth", "1"])
    main(["fit", str(games)])
    output = capsys.readouterr().out
    assert "12 games" in output
    module: dict[str, object] = {}
    exec(compile("from __future__" + output.split("from __future__", 1)[1], "weights", "exec"), module)
    assert np.array(module["WEIGHTS"]).shape == (STAGES, FEATURES)
    assert module_text(as_integers(np.zeros((STAGES, FEATURES)))).count("\n    (") == STAGES
