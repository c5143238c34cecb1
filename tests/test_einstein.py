"""EinStein würfelt nicht! against plain rules; small boards solved exactly, on every way in."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import REPOSITORY, silent
from oracle_chance import EinStein

from cluster.batch.library import analyse
from cluster.executor import SerialExecutor, ThreadExecutor
from cluster.request import SearchRequest
from cluster.session import Session
from search.algorithms import flags_for
from search.driver import search
from search.game_files import load_game
from search.limits import Limits
from search.perft import LeafCounter
from search.referee import Referee
from search.rules import Game, RulesError

WIN = 23_328
SIZES = (3, 5)


@pytest.fixture(scope="module")
def small() -> Game:
    return load_game("einstein:3x3")


def random_positions(size: int, games: int, seed: int) -> Iterator[EinStein]:
    """Yield the positions of random games, the finished ones too."""
    rng = random.Random(seed)
    for _ in range(games):
        board = EinStein.start(size)
        yield board
        while not board.winner():
            board = rng.choice(board.after(rng.randint(1, len(board.red))))[1]
            yield board


@pytest.mark.parametrize("size", SIZES)
def test_random_play_agrees_with_the_plain_rules(size: int) -> None:
    referee = Referee(load_game(f"einstein:{size}x{size}"), silent)
    game, captured = referee.game, 0
    assert game.text(game.parse("")) == EinStein.start(size).text()
    for board in random_positions(size, games=60, seed=size):
        if board.winner():
            continue
        position = game.parse(board.text())
        assert game.text(position) == board.text()
        assert referee.facts(position).is_chance
        captured += None in board.red
        rolls = [game.move_text(position, move) for move in referee.legal_moves(position)]
        assert rolls == [str(face) for face in range(1, len(board.red) + 1)]
        for roll in referee.legal_moves(position):
            rolled = referee.play(position, roll)
            assert not referee.facts(rolled).is_chance
            expected = {
                name: (board.winner(), None if board.winner() else board.text()) for name, board in board.after(roll)
            }
            found = {}
            for move in referee.legal_moves(rolled):
                after = referee.play(rolled, move)
                facts = referee.facts(after)
                winner = 0 if not facts.is_over else -facts.outcome // WIN * (1 if board.is_red else -1)
                found[game.move_text(rolled, move)] = (winner, None if facts.is_over else game.text(after))
            assert found == expected
    assert captured > 20


@pytest.mark.parametrize("size", SIZES)
def test_perft_equals_the_plain_rules(size: int) -> None:
    counter = LeafCounter(load_game(f"einstein:{size}x{size}"), silent)
    for board in [EinStein.start(size), *random_positions(size, games=3, seed=9)][:12]:
        if not board.winner():
            position = counter.referee.game.parse(board.text())
            assert [counter.count(position, depth) for depth in range(5)] == [board.perft(depth) for depth in range(5)]


def test_perft_of_the_start() -> None:
    counter = LeafCounter(load_game("einstein"), silent)
    start = counter.referee.game.parse("")
    assert [counter.count(start, depth) for depth in range(7)] == [1, 6, 18, 108, 324, 1944, 6162]


def test_a_small_board_is_solved_exactly(small: Game) -> None:
    memory: dict[EinStein, int] = {}
    decisions = 0
    for board in (EinStein.start(3), *random_positions(3, games=12, seed=1)):
        if board.winner():
            continue
        colour = 1 if board.is_red else -1
        result = search(small, small.parse(board.text()), Limits(), table_mb=4.0, notice=silent)
        assert result.is_solved
        assert result.score == colour * board.value(WIN, memory)
        roll = random.Random(decisions).randint(1, 3)
        rolled = small.parse(f"{board.text()[:-1]}{roll}")
        result = search(small, rolled, Limits(), table_mb=4.0, notice=silent)
        assert result.is_solved
        assert result.score == colour * board.best(roll, WIN, memory)
        best = small.move_text(rolled, result.best_move or 0)
        assert dict(board.after(roll))[best].value(WIN, memory) == board.best(roll, WIN, memory)
        decisions += 1
    assert decisions > 20
    assert 0 < memory[EinStein.start(3)] < WIN, "who begins has the better chances"


def test_threads_solve_it_as_one_core_does(small: Game) -> None:
    memory: dict[EinStein, int] = {}
    flags = flags_for(small)
    for executor in (
        SerialExecutor(small, 2, 1.0, flags=flags, notice=silent),
        ThreadExecutor(small, 2, 1.0, flags=flags, notice=silent),
    ):
        with Session(small, executor, 1.0, silent) as session:
            report = session.search(SearchRequest(moves=("2",)))
            assert report.strategy == "root"
            assert report.result.score == EinStein.start(3).best(2, WIN, memory)
            report = session.search(SearchRequest())
            assert (report.strategy, report.best_move) == ("single", None)
            assert report.result.score == EinStein.start(3).value(WIN, memory)


def test_moves_are_read_with_and_without_a_dash() -> None:
    game = load_game("einstein")
    referee = Referee(game, silent)
    rolled = referee.play_texts(game.parse(""), ["3"])
    assert {game.parse_move(rolled, text) for text in ("c5d4", "C5-D4", "c5xd4")} == {14}
    after = referee.play_texts(rolled, ["c5-d4", "6", "e3xd4"])
    assert game.text(after) == "AB.../DE.f./F..../...ed/..cba r -"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("ABC../DE.../F...f/...ed/..cba r", "a roll from 1 to 6 or -"),
        ("ABC../DE.../F...f/...ed/..cba r 7", "a roll from 1 to 6 or -"),
        ("ABC../DE.../F...f/...ed r -", "5 rows of 5 cells"),
        ("ABC../DE.../F...f/...ed/..cbg r -", "'g'"),
        ("ABC../DE.../F...f/...ed/..cbA r -", "'A' stands on 2 cells"),
        ("ABC../DE.../F...f/...ed/..cbA b -", "'A' stands on 2 cells"),
        (".BC../DE.../F...f/...ed/..cbA r -", "the game was over before"),
        ("ABC../DE.../F..../...../..... r 1", "the game was over before"),
    ],
)
def test_a_bad_position_is_named(text: str, wrong: str) -> None:
    with pytest.raises(RulesError) as caught:
        load_game("einstein").parse(text)
    assert wrong in str(caught.value)


@pytest.mark.parametrize("size", ["2x2", "7x7", "3x4", "big"])
def test_a_board_of_another_size_is_refused(size: str) -> None:
    with pytest.raises(RulesError, match="a board of EinStein is 3x3"):
        load_game(f"einstein:{size}")


def rootsplit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cluster.cli", *words], capture_output=True, text=True, timeout=60, cwd=REPOSITORY,
        check=False,
    )  # fmt: skip


def test_the_command_line_tells_the_expected_value() -> None:
    run = rootsplit("search", "einstein:3x3", "--moves", "2", "--workers", "1", "--table", "4", "--json")
    answer = json.loads(run.stdout)
    assert (answer["algorithm"], answer["solved"], answer["best_move"]) == ("expectiminimax", True, answer["pv"][0])
    assert answer["expected_value"] == answer["score"] / WIN == EinStein.start(3).best(2, WIN, {}) / WIN


def test_a_batch_tells_values_before_and_after_the_roll(small: Game) -> None:
    """Equal on one core each, and by a team that splits the root."""
    start, memory = EinStein.start(3), {}
    texts = [f"{start.text()[:-1]}{roll}" for roll in "-123"]
    for split in (1, 2):
        rows = [*analyse("einstein:3x3", texts, Limits(depth=20), workers=2, split=split, table_mb=4.0, notice=silent)]
        assert [row.score for row in rows] == [
            start.value(WIN, memory),
            *(start.best(r, WIN, memory) for r in (1, 2, 3)),
        ]
        assert rows[0].best_move is None
        for roll, row in enumerate(rows[1:], 1):
            assert dict(start.after(roll))[row.best_move or ""].value(WIN, memory) == row.score


def test_alpha_beta_on_dice_is_refused_in_one_sentence() -> None:
    run = rootsplit("search", "einstein", "--depth", "2", "--algorithm", "alpha-beta")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "rootsplit: alpha-beta is not sound for einstein, a game of chance: use expectiminimax\n"
