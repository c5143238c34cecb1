"""Othello: rules against plain ones, texts, passes and ends, stable discs, exact values of late positions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from conftest import silent
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from cluster.cli import main
from cluster.request import SearchRequest
from cluster.session import open_session
from search.controls import CONTROL_WORDS, Controls
from search.driver import search
from search.flags import Flags, Pruning
from search.game_files import load_game
from search.games.othello.board import DISC, PASS
from search.games.othello.endgame import SOLVED_SQUARES
from search.games.othello.lines import flips, plain_flips, plain_reachable, reachable
from search.games.othello.stability import stable
from search.limits import Limits
from search.perft import LeafCounter
from search.referee import Referee
from search.results import SearchResult
from search.rules import RulesError
from search.searcher import Job, Searcher
from search.solving import Question
from tt_store.segment import Segment

GAME = load_game("othello")
PERFT = (4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288)

# FFO endgame tests: board, side, exact score of each move.
FFO = {
    1: (
        "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X",
        {"g8": 18, "h1": 12, "h7": 6, "a2": 6, "a3": 4, "b1": -4, "a4": -22, "g2": -24},
    ),
    4: (
        "-XXXXXX-X-XXXOO-XOXXXOOXXXOXOOOX-OXOOXXX--OOOXXX--OOXX----XOXXO- X",
        {"h8": 0, "a5": 0, "b6": -4, "b7": -4, "a6": -8, "b2": -12, "h2": -26},
    ),
    8: (
        "---X-X--X-XXXX--XXXXOXXXXXXOOOOOXXOXXXO-XOXXXXO-XOOXXX--XOOXXO-- O",
        {"e1": 8, "h2": 4, "g2": 4, "b2": 4, "g7": 4, "b1": 2, "g1": -6, "c1": -8},
    ),
}
MUST_PASS = "--------------------------XXXXX---XXX-X---XXXXXX----X-X------OOO X"
MOVES_TO_IT = "e6 f6 c4 c5 c6 d6 g7 f4 g4 g6 e7 h8 h6 g5 g8 f8"

EXACT = Flags(Pruning.PVS, exact_depth=True)

_CONTROL_WORDS = np.zeros(CONTROL_WORDS, np.int64)


@cache
def referee() -> Referee:
    return Referee(GAME, silent)


@cache
def segment() -> Segment:
    return Segment.private(4)


@cache
def searcher(flags: Flags) -> Searcher:
    return Searcher(GAME, segment(), Controls(_CONTROL_WORDS.ctypes.data), flags=flags, notice=silent)


def solve(text: str, **options: Any) -> SearchResult:
    return search(GAME, GAME.parse(text), Limits(), table_mb=2, notice=silent, **options)


def discs_of(text: str, **options: Any) -> int:
    result = solve(text, **options)
    assert result.is_solved
    assert result.score % DISC == 0
    return result.score // DISC


def mover_value(board: oracle.Othello, draw: int = 0) -> int:
    """Return the value for the side to move, to whom a draw is worth `draw`."""
    return board.minimax(draw) if board.mover == "X" else -board.minimax(-draw)


def late_boards(count: int, squares: int, seed: int) -> Iterator[oracle.Othello]:
    """Yield positions of random games with so many empty squares where the game goes on."""
    rng = random.Random(seed)
    while count > 0:
        board = oracle.Othello()
        while board.cells.count("-") > squares and board.legal_moves():
            board.play(rng.choice(board.legal_moves()))
        if board.cells.count("-") == squares and board.legal_moves():
            count -= 1
            yield board


def masks(board: oracle.Othello) -> tuple[int, int]:
    return tuple(sum(1 << square for square in range(64) if board.cells[square] == disc) for disc in "XO")


@njit
def compiled_moves(own: int, other: int) -> int:
    return reachable(own, other)


@njit
def compiled_flips(own: int, other: int, square: int) -> int:
    return flips(own, other, square)


@njit
def compiled_stable(own: int, other: int) -> int:
    return stable(own, other)


def test_random_games_agree_with_the_plain_rules() -> None:
    rng, passes, ends = random.Random(1), 0, 0
    for _ in range(40):
        board, position = oracle.Othello(), GAME.parse("")
        while True:
            moves = board.legal_moves()
            assert sorted(referee().legal_moves(position)) == moves
            assert GAME.text(position) == board.text()
            facts = referee().facts(position)
            assert facts.is_over == (not moves)
            if not moves:
                ends += 1
                black = board.difference_for_black()
                assert facts.outcome == DISC * (black if board.mover == "X" else -black)
                break
            move = rng.choice(moves)
            passes += move == PASS
            board.play(move)
            position = referee().play(position, move)
    assert passes > 10
    assert ends == 40


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 63))
def test_lines_on_any_board_are_those_of_the_plain_twins(black: int, white: int, index: int) -> None:
    own, other = black & ~white, white & ~black
    square = 1 << index
    words = np.uint64(own), np.uint64(other)
    assert int(compiled_moves(*words)) == plain_reachable(own, other)
    if not square & (own | other):
        flipped = plain_flips(own, other, square)
        assert int(compiled_flips(*words, np.uint64(square))) == flipped
        assert bool(flipped) == bool(plain_reachable(own, other) & square)


def test_boards_that_play_does_not_reach_have_all_their_moves() -> None:
    rng, most = random.Random(12), 0
    for _ in range(300):
        share = rng.random()
        cells = "".join("-" if rng.random() < share else rng.choice("XO") for _ in range(64))
        board = oracle.Othello(cells, rng.choice("XO"))
        moves = sorted(referee().legal_moves(GAME.parse(board.text())))
        assert moves == board.legal_moves(), board.text()
        most = max(most, len(moves))
    assert most > 14
    assert referee().facts(GAME.parse("-" * 64 + " X")).outcome == 0


def test_perft() -> None:
    counter = LeafCounter(GAME, silent)
    start = GAME.parse("")
    assert tuple(counter.count(start, depth + 1) for depth in range(len(PERFT))) == PERFT
    for board in late_boards(6, squares=5, seed=2):
        for depth in (1, 2, 3, 7):
            assert counter.count(GAME.parse(board.text()), depth) == board.perft(depth), board.text()


def test_a_wipe_out_ends_the_game() -> None:
    # The shortest game: nine discs, and white has none left.
    position = GAME.parse("e6f4e3f6g5d6e7f5c5")
    assert referee().facts(position).outcome == -64 * DISC
    assert GAME.score_text(position, -64 * DISC, True) == "-64"


def test_the_side_that_has_no_move_passes() -> None:
    position = GAME.parse(MOVES_TO_IT)
    assert GAME.text(position) == MUST_PASS
    assert referee().legal_moves(position) == [PASS]
    assert GAME.move_text(position, PASS) == "pass"
    passed = GAME.parse(f"{MOVES_TO_IT} pass")
    assert {GAME.move_text(passed, move) for move in referee().legal_moves(passed)} == {"b4", "c3", "g3"}
    # A pass may be left out where moves are listed: it is forced.
    assert GAME.parse(f"{MOVES_TO_IT}b4") == GAME.parse(f"{MOVES_TO_IT}passb4")
    result = search(GAME, position, Limits(depth=3), table_mb=1, notice=silent)
    assert GAME.move_text(position, result.best_move or 0) == "pass"


def test_boards_are_read_in_the_usual_ways() -> None:
    board, side = MUST_PASS.split()
    position = GAME.parse(MUST_PASS)
    for black, white, empty in (("x", "o", "."), ("*", "O", "-"), ("b", "w", "."), ("B", "W", "_"), ("X", "0", "-")):
        letters = str.maketrans({"X": black, "O": white, "-": empty})
        assert GAME.parse(MUST_PASS.translate(letters)) == position
    assert GAME.parse(board + side) == position
    assert GAME.parse("F5 D6\tC3") == GAME.parse("f5d6c3")
    assert GAME.text(GAME.parse("start")) == f"{oracle.Othello.START} X"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MUST_PASS[:64], "64 characters"),
        (MUST_PASS[:63] + " X", "64 characters"),
        (MUST_PASS + "X", "66 characters"),
        (MUST_PASS[:64] + " -", "must end with who is to move"),
        (MUST_PASS[:63] + "? X", "square h8"),
        ("f5f5", "move 2, f5, is not legal"),
        ("e3", "move 1, e3, is not legal"),
        ("pass", "move 1, pass, is not legal"),
        ("f5d9", "move 2: 'd9' is no move"),
        ("f5d", "move 2: 'd' is no move"),
        ("hello", "has 5 characters: it needs 64 squares and the side"),
    ],
)
def test_bad_positions_are_refused(text: str, reason: str) -> None:
    with pytest.raises(RulesError, match=reason):
        GAME.parse(text)


def test_stable_discs_are_never_flipped() -> None:
    rng, marked = random.Random(3), 0
    for _ in range(60):
        board = oracle.Othello()
        kept = {"X": 0, "O": 0}
        while board.legal_moves():
            board.play(rng.choice(board.legal_moves()))
            black, white = masks(board)
            assert kept["X"] & ~black == 0
            assert kept["O"] & ~white == 0
            kept["X"] = int(compiled_stable(np.uint64(black), np.uint64(white)))
            kept["O"] = int(compiled_stable(np.uint64(white), np.uint64(black)))
            marked += (kept["X"] | kept["O"]).bit_count()
    assert marked > 60 * 60 * 2, "the bound would be worth nothing"


@pytest.mark.parametrize("number", FFO)
def test_every_move_of_an_endgame_is_worth_what_is_known(number: int) -> None:
    text, scores = FFO[number]
    position = GAME.parse(text)
    result = solve(text)
    assert result.is_solved
    assert result.score == DISC * max(scores.values())
    assert scores[GAME.move_text(position, result.line[0])] == max(scores.values())
    assert GAME.score_text(position, result.score, result.is_solved) == f"{max(scores.values()):+d}"
    found = {
        GAME.move_text(position, move): -discs_of(GAME.text(referee().play(position, move)))
        for move in referee().legal_moves(position)
    }
    assert found == scores


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("table_mb", [0.1, 8])
@pytest.mark.parametrize("question", [None, Question.SCORE])
def test_the_value_depends_on_no_number_of_workers_and_no_table(
    workers: int, table_mb: float, question: Question | None
) -> None:
    text, scores = FFO[8]
    request = SearchRequest(text, solve=question)
    with open_session("othello", request, workers, table_mb, notice=silent) as session:
        report = session.search(request)
    assert report.result.is_solved
    assert report.result.score == DISC * max(scores.values())
    assert report.best_move is not None
    assert scores[report.best_move] == max(scores.values())


def test_a_win_a_draw_and_a_loss_are_told_apart() -> None:
    for (text, scores), sign in zip(FFO.values(), (1, 0, 1), strict=True):
        request = SearchRequest(text, solve=Question.WDL)
        with open_session("othello", request, 1, 1.0, notice=silent) as session:
            report = session.search(request)
        assert (report.result.score > 0) - (report.result.score < 0) == sign
        if sign > 0:
            assert report.result.score <= DISC * max(scores.values())


def test_the_command_takes_boards_that_begin_like_an_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["search", "othello", FFO[1][0], "--depth", "2"], ["search", "othello", "--solve", FFO[1][0]]):
        monkeypatch.setattr("sys.argv", ["rootsplit", *words, "--workers", "1", "--table", "1", "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        answer = json.loads(capsys.readouterr().out)
        assert answer["position"] == FFO[1][0]
    assert (answer["score_text"], answer["best_move"], answer["solved"]) == ("+18", "g8", True)


def test_a_solved_line_is_played_to_its_end() -> None:
    for text, scores in FFO.values():
        result = solve(text)
        played, last = referee().legal_prefix(GAME.parse(text), result.line)
        assert len(played) == len(result.line)
        facts = referee().facts(last)
        assert facts.is_over
        sign = 1 if last.side == GAME.parse(text).side else -1
        assert sign * facts.outcome == DISC * max(scores.values())


def test_passes_and_ends_are_worth_what_is_known(data_file: Callable[[str], Path]) -> None:
    rows = [line for line in data_file("othello/pass_and_over.obf").read_text().splitlines() if line[:1] not in "#"]
    assert len(rows) >= 20
    for row in rows:
        board, *values = (part.strip() for part in row.split(";"))
        # The first value counts; of a finished game the file tells the plain difference too.
        move, _, score = values[0].partition(":")
        # A row without a score has too many empty squares to be solved here.
        limits = Limits() if score else Limits(depth=2)
        result = search(GAME, GAME.parse(board), limits, table_mb=2, notice=silent)
        if score:
            assert result.is_solved
            assert result.score == DISC * int(score), row
        best = "over" if result.best_move is None else GAME.move_text(GAME.parse(board), result.best_move)
        assert best == move.lower(), row


@pytest.mark.parametrize("squares", [1, 2, 3, 4, 5, 6, 7])
def test_late_positions_are_worth_what_minimax_says(squares: int) -> None:
    for board in late_boards(6 if squares == 7 else 25, squares, seed=squares):
        assert discs_of(board.text()) == mover_value(board), board.text()


def test_null_windows_of_late_positions_keep_the_contract() -> None:
    run = searcher(Flags())
    for board in late_boards(8, squares=7, seed=8):
        value = DISC * mover_value(board)
        # Windows between two numbers of discs, at a number of discs, and far away.
        for alpha in {value - 21, value - 1, value - DISC, value, value + 1, value + 19, -641, 640}:
            position = GAME.parse(board.text())
            result = run.run(Job(position, 14, alpha, alpha + 1, salt=alpha)).score
            assert value <= result <= alpha or value >= result > alpha, (board.text(), alpha, result, value)


def test_contempt_makes_draws_worth_less() -> None:
    drawn = 0
    for board in late_boards(80, squares=4, seed=9):
        for contempt in (-130, 45):
            # Scores are tenths of a disc here; a draw is the only one that is no multiple of two discs.
            value = scaled_value(board, -contempt)
            drawn += value == -contempt
            assert solve(board.text(), contempt=contempt).score == value, board.text()
    assert drawn > 3


def scaled_value(board: oracle.Othello, draw: int, sign: int = 1) -> int:
    """Return the value in units of scores for the side that the search is for, which moves where `sign` is 1."""
    moves = board.legal_moves()
    if not moves:
        black = DISC * board.difference_for_black()
        mine = black if (board.mover == "X") == (sign == 1) else -black
        return mine or draw
    values = []
    for move in moves:
        twin = board.copy()
        twin.play(move)
        values.append(scaled_value(twin, draw, -sign))
    return max(values) if sign == 1 else min(values)


def depth_value(board: oracle.Othello, depth: int) -> int:
    """Return what a search of so many plies says, by plain minimax over the compiled estimate."""
    moves = board.legal_moves()
    if not moves or (depth <= 0 and board.cells.count("-") > SOLVED_SQUARES):
        facts = referee().facts(GAME.parse(board.text()))
        return facts.outcome if facts.is_over else facts.evaluation
    if board.cells.count("-") <= SOLVED_SQUARES:
        return solve(board.text()).score
    values = []
    for move in moves:
        twin = board.copy()
        twin.play(move)
        values.append(-depth_value(twin, depth - 1))
    return max(values)


def test_late_positions_at_the_horizon_are_solved_whatever_the_window() -> None:
    for board in late_boards(4, squares=11, seed=10):
        position = GAME.parse(board.text())
        for depth in (1, 2, 3):
            value = depth_value(board, depth)
            for window in ((-640, 640), (value - 1, value), (value, value + 1), (value - 30, value + 30)):
                result = searcher(EXACT).run(Job(position, depth, *window, salt=hash((depth, window)) >> 1)).score
                assert min(max(result, window[0]), window[1]) == min(max(value, window[0]), window[1])


def twins(board: oracle.Othello) -> Iterator[oracle.Othello]:
    """Yield the eight symmetric boards, each in both colours."""
    exchanged = str.maketrans("XO", "OX")
    for turn in range(8):
        cells = ["-"] * 64
        for index, disc in enumerate(board.cells):
            column, row = index % 8, index // 8
            column, row = (row, column) if turn & 1 else (column, row)
            cells[(column ^ 7 if turn & 2 else column) + 8 * (row ^ 7 if turn & 4 else row)] = disc
        text = "".join(cells)
        yield oracle.Othello(text, board.mover)
        yield oracle.Othello(text.translate(exchanged), board.waiting)


def test_twins_are_worth_the_same() -> None:
    for board in late_boards(2, squares=10, seed=11):
        boards = list(twins(board))
        assert len({discs_of(twin.text()) for twin in boards}) == 1
        positions = [GAME.parse(twin.text()) for twin in boards]
        assert len({referee().facts(position).evaluation for position in positions}) == 1
        assert len({searcher(EXACT).run(Job(each, 3)).score for each in positions}) == 1
