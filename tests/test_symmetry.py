"""Symmetric positions share an entry of the table: their moves are turned, and nothing else is mixed up."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import silent
from numba import njit

from cluster.executor import ThreadExecutor
from cluster.request import SearchRequest
from cluster.session import Session
from search.game_files import game_of
from search.limits import Limits
from search.referee import Referee
from search.rules import Game, RulesError
from search.scores import ONGOING

OPENING = "4453"


def mirrored(columns: str, width: int = 7) -> str:
    return "".join(str(width + 1 - int(column)) for column in columns)


def random_columns(game: Game, referee: Referee, stones: int, rng: random.Random) -> str:
    position, columns = game.parse(""), ""
    while len(columns) < stones and referee.facts(position).outcome == ONGOING:
        move = rng.choice(referee.legal_moves(position))
        position, columns = referee.play(position, move), columns + str(move)
    return columns


def test_mirror_images_share_a_key_early_in_the_game_and_no_others_do(connect_four: Game) -> None:
    referee, rng = Referee(connect_four, silent), random.Random(1)
    images: dict[int, set[Any]] = {}
    for _ in range(4000):
        columns = random_columns(connect_four, referee, rng.randrange(26), rng)
        position, image = connect_four.parse(columns), connect_four.parse(mirrored(columns))
        facts, image_facts = referee.facts(position), referee.facts(image)
        is_shared = len(columns) < connect_four.module.SHARED_STONES or position == image
        assert (facts.entry_key == image_facts.entry_key) == is_shared
        assert (facts.table_key == image_facts.table_key) == (position == image)
        images.setdefault(facts.entry_key, set()).update([position, image] if is_shared else [position])
    assert all(len(found) <= 2 for found in images.values())


def test_a_move_goes_in_and_comes_out_as_each_image_has_it(connect_four: Game) -> None:
    referee, rng = Referee(connect_four, silent), random.Random(2)
    for _ in range(300):
        columns = random_columns(connect_four, referee, rng.randrange(1, 12), rng)
        position, image = connect_four.parse(columns), connect_four.parse(mirrored(columns))
        for move in range(1, 8):
            stored = referee.turned_move(position, move)
            assert referee.turned_move(position, stored) == move
            assert referee.turned_move(image, stored) == (move if position == image else 8 - move)
    assert referee.turned_move(connect_four.parse("1"), 0) == 0


def test_what_one_image_has_searched_the_other_finds(connect_four: Game) -> None:
    with Session(connect_four, ThreadExecutor(connect_four, 1, 8, notice=silent), 8) as session:
        cold = session.search(SearchRequest(OPENING, limits=Limits(depth=14))).result
        warm = session.search(SearchRequest(mirrored(OPENING), limits=Limits(depth=14))).result
        assert warm.score == cold.score
        assert warm.statistics.nodes < cold.statistics.nodes / 10
        assert [8 - move for move in warm.line] == list(cold.line)


@pytest.mark.parametrize("workers", [1, 2])
def test_first_moves_that_are_left_out_are_no_others_of_the_image(connect_four: Game, workers: int) -> None:
    def scores(session: Session, columns: str) -> dict[str, int]:
        request = SearchRequest(columns, limits=Limits(depth=9), multipv=7)
        return {line.move: line.score for line in session.search(request).lines}

    with Session(connect_four, ThreadExecutor(connect_four, workers, 8, notice=silent), 8) as session:
        first, image = scores(session, OPENING), scores(session, mirrored(OPENING))
    assert len(first) == 7
    assert {mirrored(move): score for move, score in first.items()} == image


def test_half_a_symmetry_is_refused(connect_four: Game) -> None:
    names = {name: getattr(connect_four.module, name) for name in dir(connect_four.module) if name[:2] != "__"}
    for missing in ("shared_key", "shared_move"):
        rest = SimpleNamespace(__name__="half", **{name: value for name, value in names.items() if name != missing})
        with pytest.raises(RulesError, match="but not all of shared_key, shared_move"):
            game_of(rest, "half", "")  # type: ignore[arg-type]
    dice = SimpleNamespace(__name__="dice", is_chance=njit(lambda _position: 0), **names)
    with pytest.raises(RulesError, match="two players without chance"):
        game_of(dice, "dice", "")  # type: ignore[arg-type]
