"""Solving: null windows to the end of the game, sound moves, and boards of other sizes, against plain minimax."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import silent
from numba import njit

from cluster.executor import ThreadExecutor
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session
from search.flags import Flags
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.rules import Game, RulesError
from search.scores import DRAW, MATE, mate_distance
from search.solving import Bracket, Question, plies_to_solve, solving_flags
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, WORD_BYTES

SMALL = "connect_four:5x4"
BLOCK_OR_LOSE = "41424"
"""The first player has three in column 4: all else than 4 loses at once."""


@pytest.fixture(scope="module")
def small() -> Game:
    return load_game(SMALL)


@pytest.fixture(scope="module", params=[1, 2], ids=["one", "two"])
def session(request: pytest.FixtureRequest, connect_four: Game) -> Iterator[Session]:
    flags = solving_flags(connect_four, Flags())
    with Session(connect_four, ThreadExecutor(connect_four, request.param, 4, flags=flags, notice=silent), 4) as opened:
        yield opened


def solved(session: Session, columns: str, question: Question = Question.SCORE) -> SearchReport:
    return session.search(SearchRequest(columns, solve=question))


def pons(score: int) -> str:
    return f"{score:+d}" if score else "0"


# The order of windows


@pytest.mark.parametrize(
    "value", [DRAW, 1, -1, 64, -37, 29_000, *(sign * (MATE - ply) for sign in (1, -1) for ply in (1, 2, 40))]
)
@pytest.mark.parametrize("slack", [0, 3], ids=["tight", "loose"])
def test_windows_find_any_value(value: int, slack: int) -> None:
    """Answers are fail-soft: as near to the value as they can be, or hardly beyond the window."""
    for question in Question:
        bracket, windows = Bracket(question), 0
        while not bracket.is_answered:
            window = bracket.next_window()
            assert bracket.lower <= window.alpha < window.beta <= bracket.upper
            if value > window.alpha:
                bracket.learn(window, max(window.beta, value - slack))
            else:
                bracket.learn(window, min(window.alpha, value + slack))
            windows += 1
        assert windows <= (32 if question == Question.SCORE else 2)
        if question == Question.SCORE or value == DRAW:
            assert (bracket.score, bracket.bound) == (value, BOUND_EXACT)
        elif bracket.bound != BOUND_EXACT:
            assert bracket.bound == (BOUND_LOWER if value > DRAW else BOUND_UPPER)
            assert DRAW < bracket.score <= value or value <= bracket.score < DRAW


# The usual board


def test_first_lines_of_the_late_positions(session: Session, data_file: Callable[[str], Path]) -> None:
    lines = data_file("connect4/Test_L3_R1").read_text().splitlines()[:100]
    lines += data_file("connect4/Test_L2_R1").read_text().splitlines()[:30]
    for line in lines:
        columns, score = line.split()
        report = solved(session, columns)
        assert (report.score_text(), report.result.bound) == (pons(int(score)), BOUND_EXACT), columns
        assert report.result.is_solved
        position = session.position_of(SearchRequest(columns))
        played, _ = session.referee.legal_prefix(position, report.result.line)
        assert played
        assert len(played) == len(report.result.line)
        distance = mate_distance(report.result.score)
        assert distance is None or len(played) == abs(distance)
        after = solved(session, columns + str(played[0])) if distance != 1 and len(columns) < 41 else report
        assert after is report or after.result.score == -report.result.score - np.sign(report.result.score), columns


def test_win_draw_and_loss_are_a_cheaper_question(session: Session, data_file: Callable[[str], Path]) -> None:
    nodes = dict.fromkeys(Question, 0)
    for line in data_file("connect4/Test_L2_R1").read_text().splitlines()[:30]:
        columns, score = line.split()
        for question in Question:
            report = solved(session, columns, question)
            assert np.sign(report.result.score) == np.sign(int(score))
            nodes[question] += report.result.statistics.nodes
            if question == Question.WDL and report.result.bound != BOUND_EXACT:
                assert report.score_text().startswith("at least +" if int(score) > 0 else "at most -")
    assert nodes[Question.WDL] < nodes[Question.SCORE]


def test_positions_near_the_end(session: Session, data_file: Callable[[str], Path]) -> None:
    checked = 0
    for row in json.loads(data_file("connect4/odd_cases.json").read_text()):
        if row["replay"] == "ok" and "score" in row and len(row["moves"]) > 20:
            assert solved(session, row["moves"]).score_text() == pons(row["score"]), row["moves"]
            checked += 1
    assert checked >= 3


def test_a_win_at_once_and_a_forced_loss_have_their_lines(session: Session) -> None:
    won = solved(session, "414142")
    assert (won.score_text(), won.principal_variation) == ("+18", ("4",))
    # Three in a row with both ends open: whichever is stopped, the other wins.
    lost = solved(session, "33442")
    assert mate_distance(lost.result.score) == -2
    assert len(lost.principal_variation) == 2
    assert lost.principal_variation[1] in ("1", "5")


def test_a_solution_has_no_other_limits_than_nodes_and_time(session: Session) -> None:
    for limits, contempt, multipv in (
        (Limits(depth=9), 0, 1),
        (Limits(mate=3), 0, 1),
        (Limits(), 5, 1),
        (Limits(), 0, 2),
    ):
        with pytest.raises(RulesError, match="no depth, mate, contempt, multipv"):
            session.search(SearchRequest("44", (), limits, None, contempt, multipv=multipv, solve=Question.SCORE))
    stopped = session.search(SearchRequest("", limits=Limits(nodes=20_000), solve=Question.SCORE))
    assert not stopped.result.is_solved
    assert stopped.best_move in set("1234567")


# Sound moves


def random_columns(game: Game, referee: Referee, rng: random.Random, stones: int) -> str:
    """Return columns after which nobody has won and the board is not full."""
    while True:
        position, columns = game.parse(""), ""
        while len(columns) < stones and (legal := referee.legal_moves(position)):
            move = rng.choice(legal)
            position, columns = referee.play(position, move), columns + str(move)
        if len(columns) == stones and referee.legal_moves(position):
            return columns


def wins_at_once(referee: Referee, position: object) -> bool:
    children = (referee.play(position, move) for move in referee.legal_moves(position))
    return any(referee.facts(child).outcome == -MATE for child in children)


def test_sound_moves_are_those_that_do_not_lose_at_once(small: Game) -> None:
    referee, rng = Referee(small, silent), random.Random(3)
    room = np.zeros(small.max_moves + 1, np.int64)
    rule = small.sound_moves
    list_sound = njit(lambda position, end: rule(position, end))
    sizes = set()
    while len(sizes) < 5:
        position = small.parse(random_columns(small, referee, rng, rng.randrange(4, 17)))
        if wins_at_once(referee, position):
            continue
        end = list_sound(position, room.ctypes.data)
        listed = {int(move) for move in room[: (end - room.ctypes.data) // WORD_BYTES]}
        legal = referee.legal_moves(position)
        assert listed == {move for move in legal if not wins_at_once(referee, referee.play(position, move))}
        sizes.add(len(listed))


def test_all_first_moves_have_their_scores_where_most_lose_at_once(session: Session) -> None:
    report = session.search(SearchRequest(BLOCK_OR_LOSE, limits=Limits(depth=8), multipv=7))
    assert report.lines[0].move == "4"
    assert {line.score for line in report.lines[1:]} == {2 - MATE}
    assert all(line.principal_variation == (line.move, "4") for line in report.lines[1:])
    only = session.search(SearchRequest(BLOCK_OR_LOSE, limits=Limits(depth=8), root_moves=("1",)))
    assert only.result.score == 2 - MATE


# Boards of other sizes


def minimax(cells: tuple[int, ...], known: dict[tuple[int, ...], int], game: Game, referee: Referee) -> int:
    """Return the value of a position, a mate counted from it; `cells` are its fields."""
    if cells not in known:
        position = game.position(cells)
        outcome = referee.facts(position).outcome
        if referee.facts(position).is_over:
            known[cells] = outcome
        else:
            children = [tuple(map(int, referee.play(position, move))) for move in referee.legal_moves(position)]
            values = [-minimax(child, known, game, referee) for child in children]
            best = max(values)
            known[cells] = best if best == DRAW else best - 1 if best > 0 else best + 1
    return known[cells]


def test_a_small_board_agrees_with_minimax(small: Game) -> None:
    referee, rng = Referee(small, silent), random.Random(8)
    known: dict[tuple[int, ...], int] = {}
    with Session(small, ThreadExecutor(small, 2, 1, flags=solving_flags(small, Flags()), notice=silent), 1) as session:
        signs = set()
        for _ in range(60):
            columns = random_columns(small, referee, rng, rng.randrange(11, 18))
            value = minimax(tuple(map(int, small.parse(columns))), known, small, referee)
            assert solved(session, columns).result.score == value, columns
            signs.add(np.sign(value))
        assert signs == {-1, 0, 1}
        # Tromp's table of solved boards.
        assert solved(session, "").score_text() == "0"


def test_the_last_plies_are_solved_by_the_contract_of_a_null_window(small: Game) -> None:
    referee, rng = Referee(small, silent), random.Random(5)
    known: dict[tuple[int, ...], int] = {}
    is_late, solve = small.is_late, small.solve_leaf
    solve_last = njit(lambda position, alpha, nodes: solve(position, alpha, nodes, nodes))
    takes = njit(lambda position, depth: is_late(position, depth))
    nodes, values, total = np.zeros(1, np.int64), set(), 0
    for _ in range(40):
        columns = random_columns(small, referee, rng, rng.randrange(11, 20))
        position, left = small.parse(columns), 20 - len(columns)
        assert (takes(position, left), takes(position, left - 1)) == (1, 0)
        value = minimax(tuple(map(int, position)), known, small, referee)
        decided = [sign * (MATE - ply) + near for sign in (-1, 1) for ply in range(1, left + 3) for near in (-1, 0)]
        for alpha in (-1, DRAW, 1, 1000, -1000, *decided):
            nodes[0] = 0
            result = solve_last(position, alpha, nodes.ctypes.data)
            total += int(nodes[0])
            assert value <= result <= alpha if value <= alpha else alpha < result <= value, (columns, alpha)
        values.add(value)
    assert len(values) > 6
    assert total > 4_000
    earlier = small.parse(random_columns(small, referee, rng, 19 - small.late_plies))
    assert takes(earlier, 20) == 0


def test_parameters_make_a_game_of_their_own(connect_four: Game, small: Game) -> None:
    assert (small.label, small.max_moves, small.plies_left(small.parse(""))) == ("connect_four-5x4", 5, 20)
    assert (connect_four.label, connect_four.max_moves, connect_four.plies_left(connect_four.parse(""))) == (
        "connect_four",
        7,
        42,
    )
    assert load_game(SMALL).module is small.module
    with pytest.raises(RulesError, match="a column is a digit from 1 to 5"):
        small.parse("6")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("connect_four:6", "columns and rows, such as 6x5, not '6'"),
        ("connect_four:9x9", "does not fit"),
        ("connect_four:0x4", "does not fit"),
        ("connect_four:-5x4", "not '-5x4'"),
        ("kalah:6x5", "kalah takes no parameters"),
        ("nothing:6x5", "unknown game 'nothing'"),
    ],
)
def test_wrong_parameters_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(RulesError, match=complaint):
        load_game(name)


def test_a_game_without_a_last_ply_cannot_be_solved() -> None:
    chess = load_game("chess")
    with pytest.raises(RulesError, match="chess cannot be solved"):
        plies_to_solve(chess, chess.parse(""))
