"""The README's game is complete and right, and its Python snippet runs."""

import functools
import operator
import re
from fractions import Fraction
from pathlib import Path

import pytest

from cluster.request import SearchRequest
from cluster.session import open_session
from search.algorithms import flags_for
from search.driver import search
from search.flags import Algorithm, Flags
from search.game_files import load_game
from search.limits import Limits
from search.rules import RulesError

README = (Path(__file__).parents[1] / "README.md").read_text()


def code_after(mark: str) -> str:
    found = re.search(re.escape(mark) + r"\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found is not None, f"README.md has no code after {mark}"
    return found.group(1)


@pytest.fixture(scope="module")
def nim(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("games") / "nim.py"
    path.write_text(code_after("<!-- a complete game -->"))
    return load_game(str(path))


@pytest.mark.parametrize("heaps", ["1", "3,4,5", "1,2,3", "2,2", "5,1,4", "1,1,1,1", "7,6,1", "2,3,1,1"])
def test_the_readmes_nim_is_won_when_the_nim_sum_is_not_zero(nim, heaps: str) -> None:
    result = search(nim, nim.parse(heaps), Limits())
    nim_sum = functools.reduce(operator.xor, map(int, heaps.split(",")))
    assert result.is_solved
    assert (result.score > 0) == (nim_sum != 0)
    if nim_sum:
        assert result.best_move is not None
        heap, taken = (result.best_move >> 4), result.best_move & 15
        left = [int(size) - (taken if number == heap else 0) for number, size in enumerate(heaps.split(","))]
        assert functools.reduce(operator.xor, left) == 0


def test_the_readmes_nim_refuses_bad_text(nim) -> None:
    for text in ("3,x", "16", "1,1,1,1,1,1,1,1,1", "-1"):
        with pytest.raises(RulesError):
            nim.parse(text)


@pytest.fixture(scope="module")
def spin_nim(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("games") / "spin_nim.py"
    path.write_text(code_after("<!-- a complete game of chance -->"))
    return load_game(str(path))


@functools.cache
def before_the_spin(heap: int) -> int:
    """Return what a heap is worth to the side that spins: 23,328 is a win."""
    if heap == 0:
        return -23_328
    return int(Fraction(sum((4 - spun) * after_the_spin(heap, spun) for spun in (1, 2, 3)), 6))


def after_the_spin(heap: int, spun: int) -> int:
    return max(-before_the_spin(heap - taken) for taken in range(1, min(spun, heap) + 1))


@pytest.mark.parametrize("heap", [1, 2, 3, 5, 8, 12, 20])
def test_the_readmes_game_of_chance_is_worth_what_its_mean_says(spin_nim, heap: int) -> None:
    result = search(spin_nim, spin_nim.parse(str(heap)), Limits())
    assert result.is_solved
    assert result.score == before_the_spin(heap)
    for spun in (1, 2, 3):
        result = search(spin_nim, spin_nim.parse(f"{heap},1,{spun}"), Limits())
        assert result.score == after_the_spin(heap, spun) == -before_the_spin(heap - (result.best_move or 0))


def test_the_readmes_game_of_chance_is_refused_to_alpha_beta(spin_nim) -> None:
    with pytest.raises(RulesError, match="alpha-beta is not sound for spin_nim, a game of chance: use expectiminimax"):
        search(spin_nim, spin_nim.parse("7"), Limits(depth=2), flags=Flags())
    for text in ("x", "100", "7,2,1", "7,1"):
        with pytest.raises(RulesError):
            spin_nim.parse(text)


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("games") / "coins.py"
    path.write_text(code_after("<!-- a game of three -->"))
    return load_game(str(path))


def best_shares(row: tuple[int, ...], turn: int = 0) -> tuple[int, ...]:
    """Return what each of three players takes from a row of coins; of equal moves the left one."""
    if not row:
        return (0, 0, 0)
    choices = []
    for coin, rest in ((row[0], row[1:]), (row[-1], row[:-1])):
        shares = list(best_shares(rest, (turn + 1) % 3))
        shares[turn] += coin
        choices.append(tuple(shares))
    return max(choices, key=lambda shares: shares[turn])


@pytest.mark.parametrize("row", ["3,9,1,2", "5", "1,1,1,1,1,1,1", "3,9,1,2,7,4,4,15,0,2", "2,7,7,2,0,7,2,9,1"])
def test_the_readmes_game_of_three_is_shared_out_as_by_hand(coins, row: str) -> None:
    result = search(coins, coins.parse(row), Limits(), flags=flags_for(coins))
    assert result.is_solved
    assert result.values == best_shares(tuple(int(coin) for coin in row.split(",")))


def test_the_readmes_game_of_three_writes_what_it_reads(coins) -> None:
    for text in ("3,9,1,2;0,0,0;0", "9,1;3,0,2;2", ";1,2,3;1"):
        assert coins.text(coins.parse(text)) == text
    for text in ("3,x", "16", "1;0,0;0", "1;0,0,0;3", "1;250,0,0;0", "-1"):
        with pytest.raises(RulesError):
            coins.parse(text)


def test_the_readmes_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code_after("From Python:\n"), "README.md", "exec"), {})
    assert capsys.readouterr().out.split()[0] in "1234567"


@pytest.fixture(scope="module")
def domineering(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("games") / "domineering.py"
    path.write_text(code_after("<!-- a game for playouts -->"))
    return path


def test_a_newcomers_game_is_searched_by_playouts(domineering) -> None:
    """What playouts prove of a board of three free rows, alpha-beta proves too."""
    game = load_game(str(domineering))
    for board in ("#" * 18 + "." * 18, "#" * 10 + "." * 4 + "##" * 3 + "." * 16):
        position = game.parse(board)
        exact = search(game, position, Limits())
        found = search(game, position, Limits(nodes=300_000), flags=Flags(algorithm=Algorithm.MCTS))
        assert exact.is_solved
        assert found.is_solved
        assert (found.score > 0) == (exact.score > 0)
    request = SearchRequest(limits=Limits(nodes=3_000), algorithm="mcts")
    with open_session(str(domineering), request, 2, 8.0) as session:
        report = session.search(request).as_json()
    assert report["playouts"] == 3_000
    assert report["best_move"] == report["root_moves"][0]["move"]
