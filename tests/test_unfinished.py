"""What a search makes of an iteration that a limit has cut short: a better first move counts, nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from conftest import silent
from test_dynamic_search import EXACT, PIECES

from cluster.executor import Executor, SerialExecutor
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from search.aspiration import Window
from search.driver import deepen, search
from search.limits import Limits
from search.referee import Referee
from search.results import RootResult, RootSearch, SearchResult
from search.rules import Game
from search.statistics import Statistics


def scripted(*answers: tuple[int, tuple[int, ...], bool]) -> RootSearch:
    """Return a root search with these scores, lines, and whether they are finished, whatever it is asked."""
    left: Iterator[tuple[int, tuple[int, ...], bool]] = iter(answers)

    def answer(_depth: int, _window: Window, _left_out: tuple[int, ...]) -> RootResult:
        score, line, is_finished = next(left)
        return RootResult(score, line, Statistics(), is_finished)

    return answer


def told(game: Game, *answers: tuple[int, tuple[int, ...], bool], multipv: int = 1) -> SearchResult:
    return deepen(scripted(*answers), Referee(game, silent), game.parse(""), Limits(depth=9), multipv=multipv)


def test_a_better_first_move_of_the_last_iteration_is_played(connect_four: Game) -> None:
    result = told(connect_four, (3, (4, 4), True), (7, (2, 3), False))
    assert (result.best_move, result.score, result.line) == (2, 7, (2, 3))
    assert (result.depth, result.is_solved) == (1, False)
    assert result.iterations[-1].line == (4, 4)


def test_the_same_first_move_leaves_the_finished_iteration_alone(connect_four: Game) -> None:
    result = told(connect_four, (3, (4, 4), True), (7, (4, 3), False))
    assert (result.best_move, result.score, result.line) == (4, 3, (4, 4))


def test_nothing_found_leaves_the_finished_iteration_alone(connect_four: Game) -> None:
    result = told(connect_four, (3, (4, 4), True), (0, (), False))
    assert (result.best_move, result.score, result.line) == (4, 3, (4, 4))


def test_what_reached_beta_is_better_though_its_value_was_not_found(connect_four: Game) -> None:
    finished = [(0, (4, 4), True)] * 9
    reached = (5_000, (2, 3), True)
    result = told(connect_four, *finished[:8], reached, (0, (), False))
    assert (result.best_move, result.score, result.depth) == (2, 5_000, 8)


def test_one_of_several_lines_is_not_changed_alone(connect_four: Game) -> None:
    lines = [(3, (4, 4), True), (2, (3, 3), True)]
    result = told(connect_four, *lines, (7, (2, 3), False), multipv=2)
    assert [line.moves for line in result.lines] == [(4, 4), (3, 3)]
    assert result.best_move == 4


def test_the_first_iteration_may_be_the_one_that_is_cut_short(connect_four: Game) -> None:
    result = told(connect_four, (7, (2, 3), False))
    assert (result.best_move, result.score, result.depth) == (2, 7, 0)


@pytest.mark.parametrize(
    ("strategy", "workers"), [("single", 1), ("root", 3), ("dynamic", 1), ("dynamic", 3), ("team", 2)]
)
def test_the_move_is_better_at_the_deeper_depth(kalah: Game, strategy: str, workers: int) -> None:
    """Whatever the strategy, and wherever the nodes end: of the two moves the later one is worth no less there."""
    referee, changed, rng = Referee(kalah, silent), 0, random.Random(5)
    executor: Executor = SerialExecutor(kalah, workers, 4, flags=EXACT, notice=silent)
    # Members of a team share the nodes, so that its leader gets less far in an iteration.
    tries, nodes_times, settings = 150, 1, PIECES
    if strategy == "team":
        tries, nodes_times, settings = 300, 6, replace(PIECES, share_nodes=1.0)
        model = ClusterModel(node_rate=20_000, step_s=0.001)
        executor = SimulatedExecutor(kalah, workers, 4, model=model, flags=EXACT, notice=silent)
    with Session(kalah, executor, 4, silent) as session:
        for _ in range(tries):
            text = random_position(referee, rng)
            session.executor.forget()
            limits = Limits(nodes=rng.randrange(200, 2_000) * nodes_times)
            report = session.search(SearchRequest(text, limits=limits, strategy=strategy, settings=settings))
            result = report.result
            if not result.iterations or result.best_move == result.iterations[-1].line[0]:
                continue
            changed += 1
            new, old = (
                value_of_move(referee, result.position, move, result.depth + 1)
                for move in (result.line[0], result.iterations[-1].line[0])
            )
            assert new >= result.score >= old, text
            assert (result.best_move, report.best_move) == (result.line[0], report.principal_variation[0])
    assert changed >= 2


def random_position(referee: Referee, rng: random.Random) -> str:
    position = referee.game.parse("")
    for _ in range(rng.randrange(4, 14)):
        legal = referee.legal_moves(position)
        if len(legal) > 1:
            position = referee.play(position, rng.choice(legal))
    return referee.game.text(position)


def value_of_move(referee: Referee, position: Any, move: int, depth: int) -> int:
    child = referee.play(position, move)
    if referee.facts(child).is_over:
        return referee.facts(child).outcome * (-1 if referee.changes_side(position, child) else 1)
    score = search(referee.game, child, Limits(depth=depth - 1), flags=EXACT, table_mb=1, notice=silent).score
    return -score if referee.changes_side(position, child) else score
