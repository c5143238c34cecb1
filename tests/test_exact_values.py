"""Connect Four solved: Pons's scores, on one and two workers, with small and large tables.

The public positions are read from ``ROOTSPLIT_DATA``; what is typed in here, and what a plain search of our own in
this file finds, is tested without them.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.request import SearchRequest
from cluster.session import Session, open_session
from search.rules import RulesError

DATA = Path(os.environ.get("ROOTSPLIT_DATA", Path(__file__).parents[2] / "shared" / "data")) / "connect4"
WITHOUT_LIMITS = SearchRequest()
SETTINGS = [(workers, table_mb) for workers in (1, 2) for table_mb in (1.0, 3.0, 64.0)]

FACTS = {
    # MarkusThill/Connect-Four, issue 3.
    "226744515337": 7,
    "475772722323": 4,
    # A win with the next disc.
    "112233": 18,
    # Boards that are full but for one cell.
    "41361372262123577254477723443556356415166": 0,
    "23576321365176526327451563657374712211444": 1,
}
"""Columns and their Pons scores."""


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda setting: f"{setting[0]}-workers-{setting[1]:g}-MB")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Return a session whose table is kept from one position to the next."""
    workers, table_mb = request.param
    with open_session("connect_four", WITHOUT_LIMITS, workers, table_mb) as opened:
        yield opened


def scores_of(session: Session, texts: Iterable[str]) -> dict[str, str]:
    scores = {}
    for text in texts:
        report = session.search(SearchRequest(text))
        assert report.result.is_solved
        scores[text] = report.score_text()
    return scores


def pons_text(score: int) -> str:
    return f"{score:+d}" if score else "0"


def lines_of(name: str) -> dict[str, str]:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{path} is not there: set ROOTSPLIT_DATA to the folder of position sets")
    rows = (line.split() for line in path.read_text().splitlines())
    return {columns: pons_text(int(score)) for columns, score in rows}


@pytest.mark.parametrize(("name", "count"), [("Test_L3_R1", 1000), ("Test_L2_R1", 200)])
def test_the_public_positions(name: str, count: int, session: Session) -> None:
    expected = dict(list(lines_of(name).items())[:count])
    assert len(expected) == count
    assert scores_of(session, expected) == expected


def test_typed_in_facts(session: Session) -> None:
    assert scores_of(session, FACTS) == {columns: pons_text(score) for columns, score in FACTS.items()}


# A search of our own: lists of columns, all lines, no bounds.

WIDTH, HEIGHT = 7, 6
Board = tuple[str, ...]
"""The discs of each column from below: x and o."""


def makes_four(board: Board, column: int) -> bool:
    """Tell whether the top disc of a column is part of four in a row."""
    row, disc = len(board[column]) - 1, board[column][-1]

    def run(right: int, up: int) -> int:
        length, x, y = 0, column + right, row + up
        while 0 <= x < WIDTH and 0 <= y < len(board[x]) and board[x][y] == disc:
            length, x, y = length + 1, x + right, y + up
        return length

    return any(run(right, up) + run(-right, -up) >= 3 for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)))


def drop(board: Board, column: int, disc: str) -> Board:
    return (*board[:column], board[column] + disc, *board[column + 1 :])


def plain_score(board: Board, to_move: str, known: dict[Board, int]) -> int:
    """Return the Pons score by trying everything."""
    if board in known:
        return known[board]
    discs = sum(map(len, board))
    best = -WIDTH * HEIGHT
    for column in (column for column in range(WIDTH) if len(board[column]) < HEIGHT):
        child = drop(board, column, to_move)
        if makes_four(child, column):
            # The (discs + 1)-th disc wins: the side that drops it has that many of its 21 left, this one included.
            score = (WIDTH * HEIGHT - discs + 1) // 2
        elif discs + 1 == WIDTH * HEIGHT:
            score = 0
        else:
            score = -plain_score(child, "o" if to_move == "x" else "x", known)
        best = max(best, score)
    known[board] = best
    return best


def random_late_position(source: random.Random, empty: int) -> tuple[str, Board]:
    """Return columns, and their board, that leave so many cells empty and are won by nobody."""
    while True:
        board: Board = ("",) * WIDTH
        columns = ""
        while len(columns) < WIDTH * HEIGHT - empty:
            column = source.choice([column for column in range(WIDTH) if len(board[column]) < HEIGHT])
            board = drop(board, column, "xo"[len(columns) % 2])
            columns += str(column + 1)
            if makes_four(board, column):
                break
        else:
            return columns, board


def test_late_positions_equal_a_plain_search(session: Session) -> None:
    source = random.Random(20)
    expected = {}
    for number in range(20):
        columns, board = random_late_position(source, empty=1 + number % 10)
        expected[columns] = pons_text(plain_score(board, "xo"[len(columns) % 2], {}))
    assert len(set(expected.values())) > 4
    assert scores_of(session, expected) == expected


# Odd cases: bad input, full boards, the last disc.


def odd_cases() -> list[dict[str, Any]]:
    path = DATA / "odd_cases.json"
    if not path.is_file():
        pytest.skip(f"{path} is not there: set ROOTSPLIT_DATA to the folder of position sets")
    return list(json.loads(path.read_text()))


BAD_REPLAYS = {"full": "full", "badchar": "a column is a digit from 1 to 7"}


def test_odd_cases_that_are_no_position_are_refused_in_a_sentence() -> None:
    cases = [case for case in odd_cases() if case["replay"] in BAD_REPLAYS]
    assert len(cases) >= 4
    for case in cases:
        with pytest.raises(RulesError, match=BAD_REPLAYS[case["replay"]]):
            open_session("connect_four", SearchRequest(case["moves"]), 1, 1.0)


def test_odd_cases_that_are_over_are_refused_with_their_score() -> None:
    cases = [case for case in odd_cases() if case["replay"] in ("draw", "win")]
    assert len(cases) >= 6
    for case in cases:
        with pytest.raises(RulesError, match=r"the game is over in this position \(score (0|-\d+) "):
            open_session("connect_four", SearchRequest(case["moves"]), 1, 1.0)


def test_odd_cases_that_can_be_played_have_the_right_score(session: Session) -> None:
    # All but the empty board and one disc, which no plain search solves in a moment.
    playable = [case["moves"] for case in odd_cases() if case["replay"] == "ok" and len(case["moves"]) > 10]
    scored = {case["moves"]: case["score"] for case in odd_cases() if "score" in case}
    assert len(playable) >= 15
    expected = {}
    for columns in playable:
        board: Board = ("",) * WIDTH
        for number, digit in enumerate(columns):
            board = drop(board, int(digit) - 1, "xo"[number % 2])
        score = scored[columns] if columns in scored else plain_score(board, "xo"[len(columns) % 2], {})
        expected[columns] = pons_text(score)
    assert scores_of(session, expected) == expected


def test_each_odd_case_is_tested_here() -> None:
    covered = {"full", "badchar", "draw", "win"}
    left = [case["moves"] for case in odd_cases() if case["replay"] not in covered and len(case["moves"]) <= 10]
    # Solved elsewhere, if at all: these two take minutes.
    assert sorted(left) == ["", "1"]
