"""Which algorithm is right for which game: defaults, refusals in one sentence, on every way in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, silent

from cluster.batch.settings import RunSettings, SettingsError
from cluster.executor import SerialExecutor
from cluster.request import SearchRequest
from cluster.session import Session, open_session
from search.algorithms import SOUND, Kind, chosen, flags_for, kind_of
from search.flags import Algorithm, Flags, Pruning, Star
from search.game_files import load_game
from search.limits import Limits
from search.rules import Game, RulesError
from tt_store.errors import RootsplitError

OF_THREE = "from search.games.tic_tac_toe import *\nPLAYERS = 3\n"
WITHOUT_WEIGHTS = "from search.games.tic_tac_toe import *\nis_chance = outcome\n"
BOTH = OF_THREE + "is_chance = outcome\n"


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], Game]:
    """Return a function that makes a game of a file's text."""

    def make(text: str) -> Game:
        path = tmp_path / f"made_{abs(hash(text))}.py"
        path.write_text(text)
        return load_game(str(path))

    return make


def test_every_kind_has_a_default_and_every_algorithm_a_kind() -> None:
    assert {algorithm for fitting in SOUND.values() for algorithm in fitting} == set(Algorithm)
    assert [algorithm.label for algorithm in Algorithm] == ["alpha-beta", "expectiminimax", "max^n", "paranoid", "mcts"]


def test_what_a_game_defines_says_what_it_is(made: Callable[[str], Game], connect_four: Game) -> None:
    assert kind_of(connect_four) == Kind.TWO_PLAYERS
    assert chosen(connect_four) == Algorithm.ALPHA_BETA
    assert kind_of(made(OF_THREE)) == Kind.SEVERAL_PLAYERS
    assert chosen(made(OF_THREE)) == Algorithm.MAX_N
    assert chosen(made(OF_THREE), "paranoid") == Algorithm.PARANOID
    with pytest.raises(RulesError, match="both chance and several players"):
        kind_of(made(BOTH))


def test_a_game_may_name_the_algorithm_that_suits_it(made: Callable[[str], Game]) -> None:
    assert chosen(made("from search.games.tic_tac_toe import *\nALGORITHM = 'mcts'\n")) == Algorithm.MCTS
    with pytest.raises(RulesError, match="expectiminimax is not sound for"):
        chosen(made("from search.games.tic_tac_toe import *\nALGORITHM = 'expectiminimax'\n"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("expectiminimax", "not sound for connect_four, a game of two players without chance: use alpha-beta or mcts"),
        ("max^n", "not sound for connect_four"),
        ("minimax", "unknown algorithm 'minimax': there are alpha-beta, expectiminimax, max"),
    ],
)
def test_an_algorithm_that_does_not_fit_is_refused_on_every_way_in(name: str, sentence: str) -> None:
    game = load_game("connect_four")
    request = SearchRequest(limits=Limits(depth=3), algorithm=name)
    with pytest.raises(RulesError, match=sentence):
        open_session("connect_four", request, 1, 1.0, notice=silent)
    with pytest.raises(RulesError, match=sentence):
        RunSettings(Limits(depth=3), algorithm=name).flags(game)
    with pytest.raises(RulesError, match=sentence):
        flags_for(game, name)


def test_no_executor_runs_an_unsound_kernel(made: Callable[[str], Game]) -> None:
    with pytest.raises(RulesError, match=r"alpha-beta is not sound for made_.*, a game of several players: use max"):
        SerialExecutor(made(OF_THREE), notice=silent)


def test_a_session_runs_one_algorithm(tic_tac_toe: Game) -> None:
    request = SearchRequest(limits=Limits(depth=2))
    with Session(tic_tac_toe, SerialExecutor(tic_tac_toe, 1, 1.0, notice=silent), 1.0, silent) as session:
        report = session.search(request)
        assert report.algorithm == Algorithm.ALPHA_BETA
        assert report.as_json()["algorithm"] == "alpha-beta"
        assert report.as_json()["expected_value"] is None
        with pytest.raises(RulesError, match="this session runs alpha-beta: mcts needs one of its own"):
            session.search(SearchRequest(limits=Limits(depth=2), algorithm="mcts"))


def test_mates_are_for_those_who_prove_them(made: Callable[[str], Game]) -> None:
    with pytest.raises(SettingsError, match=r"max\^n proves no mates"):
        RunSettings(Limits(mate=3)).flags(made(OF_THREE))


def test_a_game_that_declares_only_a_part_of_its_chance_is_refused(made: Callable[[str], Game]) -> None:
    from search.chance_rules import chance_rules_of

    with pytest.raises(RulesError, match="does not define weight, WEIGHT_SUM, VALUE_BOUND, side_to_move"):
        chance_rules_of(made(WITHOUT_WEIGHTS))


def test_flags_travel_as_integers_and_come_back_as_themselves() -> None:
    flags = Flags(Pruning.FAIL_SOFT, table_depth=12, algorithm=Algorithm.EXPECTIMINIMAX, star=Star.STAR1, table=False)
    again = Flags.of_words([int(flag) for flag in flags])
    assert again == flags
    assert [type(flag) for flag in again] == [type(flag) for flag in flags]


@pytest.mark.parametrize("command", ["search", "analyse", "scale"])
def test_the_command_line_refuses_in_one_sentence(command: str, tmp_path: Path) -> None:
    game, positions = tmp_path / "three.py", tmp_path / "positions.jsonl"
    game.write_text(OF_THREE)
    positions.write_text('{"position": "........."}\n')
    words = [command, str(game), *([] if command == "search" else [str(positions), "-o", str(tmp_path / "out.jsonl")])]
    words += ["--depth", "2", "--algorithm", "alpha-beta"]
    run = subprocess.run(
        [sys.executable, "-m", "cluster.cli", *words], capture_output=True, text=True, timeout=60, cwd=REPOSITORY,
        check=False,
    )  # fmt: skip
    assert run.returncode == 2
    assert (
        run.stderr == "rootsplit: alpha-beta is not sound for three, a game of several players: use max^n or paranoid\n"
    )
    assert not run.stdout


def test_all_refusals_are_of_one_family() -> None:
    assert issubclass(RulesError, RootsplitError)
