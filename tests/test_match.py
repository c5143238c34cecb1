"""Matches: their arithmetic by worked examples, their games with small engines that can misbehave."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import chess
import chess.pgn
import pytest

from cluster.match.contestants import Contestant, MatchError, TimeControl
from cluster.match.elo import elo_of, expected_score, rating, sequential_test
from cluster.match.openings import read_openings, usual_openings
from cluster.match.tournament import MatchPlan, Standing, play_match

ENGINE = """
import sys, time
import chess
way, board = sys.argv[1], chess.Board()
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]:
        print("option name Level type spin default 1 min 1 max 9\\nuciok", flush=True)
    elif words[:1] == ["isready"]:
        print("readyok", flush=True)
    elif words[:1] == ["position"]:
        cut = words.index("moves") if "moves" in words else len(words)
        board = chess.Board() if words[1] == "startpos" else chess.Board(" ".join(words[2:cut]))
        for move in words[cut + 1:]:
            board.push_uci(move)
    elif words[:1] == ["go"]:
        if way == "crash" and board.fullmove_number > 6:
            sys.exit(1)
        if way == "slow":
            time.sleep(0.4)
        moves = sorted(board.legal_moves, key=lambda move: (not board.gives_check(move), move.uci()))
        if way == "mate":
            moves.sort(key=lambda move: (board.push(move), not board.is_checkmate(), board.pop())[1])
        best = "a1a1" if way == "illegal" else moves[0].uci()
        print(f"info depth 1 score cp {'-950' if way == 'hopeless' else '3'}\\nbestmove {best}", flush=True)
    elif words[:1] == ["quit"]:
        break
"""


@pytest.fixture
def engine(tmp_path: Path) -> str:
    path = tmp_path / "engine.py"
    path.write_text(ENGINE)
    return f"{sys.executable} {path}"


def contestant(engine: str, way: str) -> Contestant:
    return Contestant.parse(f"{engine} {way};name={way};nodes=1;Level=2")


def play(plan: MatchPlan, path: Path | None = None) -> Standing:
    return play_match(plan, path)


def test_elo_of_known_scores() -> None:
    assert elo_of(0.5) == 0
    assert elo_of(0.75) == pytest.approx(190.85, abs=0.01)
    assert elo_of(expected_score(37.0)) == pytest.approx(37.0)
    assert elo_of(0.0) == -elo_of(1.0) == -1200


def test_a_rating_by_hand() -> None:
    # 20 pairs of 1, 20 of 1.5 points: mean 0.625 a game, a pair's variance 0.125^2.
    found = rating([1.0] * 20 + [1.5] * 20)
    margin = 1.959964 * 0.125 / math.sqrt(40)
    assert found.elo == pytest.approx(elo_of(0.625))
    assert (found.low, found.high) == (pytest.approx(elo_of(0.625 - margin)), pytest.approx(elo_of(0.625 + margin)))


def test_the_sequential_test_by_hand() -> None:
    pairs = [1.0] * 30 + [1.5] * 20 + [0.5] * 10
    verdict = sequential_test(pairs, 0.0, 10.0)
    mean, variance = 0.5 + 0.25 * 10 / 60, (30 * 0.25**2) / 60 - (0.25 * 10 / 60) ** 2
    score1 = 1 / (1 + 10 ** (-1 / 40))
    by_hand = 60 * (score1 - 0.5) * (2 * mean - 0.5 - score1) / (2 * variance)
    assert verdict.log_likelihood_ratio == pytest.approx(by_hand)
    assert verdict.upper == -verdict.lower == pytest.approx(math.log(19))
    assert verdict.text == "undecided"
    assert sequential_test(pairs * 10, 0.0, 10.0).text == "H1 accepted"
    assert sequential_test([2 - points for points in pairs] * 10, 0.0, 10.0).text == "H0 accepted"


def test_openings_are_legal_and_different() -> None:
    boards = [opening.board() for opening in usual_openings()]
    assert len({board.fen() for board in boards}) == len(boards) >= 40
    assert not any(board.is_game_over() for board in boards)


def test_openings_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.pgn").write_text('[Result "*"]\n\n1. e4 e5 2. Nf3 Nc6 *\n\n[Result "*"]\n\n1. d4 *\n')
    (tmp_path / "a.epd").write_text('4k3/8/8/8/8/8/4P3/4K3 w - - id "a";\n\n4k3/8/8/8/8/8/4P3/4K3 w - - 3 9\n')
    assert [len(opening.moves) for opening in read_openings(tmp_path / "a.pgn", 3)] == [3, 1]
    assert [opening.fen.split()[4:] for opening in read_openings(tmp_path / "a.epd", 3)] == [["0", "1"], ["3", "9"]]
    (tmp_path / "bad.epd").write_text("4k3/8/8/8/8/8/4P3/4K3 w - -\nnothing\n")
    with pytest.raises(MatchError, match=r"bad\.epd, line 2"):
        read_openings(tmp_path / "bad.epd", 3)


@pytest.mark.parametrize(
    ("text", "word"), [("", "names no engine"), ("x;nonsense", "no setting"), ("x;nodes=many", "numbers")]
)
def test_contestants_that_make_no_sense(text: str, word: str) -> None:
    with pytest.raises(MatchError, match=word):
        Contestant.parse(text)
    with pytest.raises(MatchError, match="time control"):
        TimeControl.parse("x+1")


def test_a_plan_is_checked(engine: str) -> None:
    one = contestant(engine, "plain")
    for games, concurrency, word in ((3, 1, "even"), (2, 0, "at a time")):
        with pytest.raises(MatchError, match=word):
            MatchPlan(one, one, usual_openings(), games, None, concurrency=concurrency)
    with pytest.raises(MatchError, match="no clock"):
        MatchPlan(one, Contestant.parse(engine), usual_openings(), 2, None)


def test_games_are_recorded_whole_and_a_match_goes_on(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "match.pgn"
    plan = MatchPlan(
        contestant(engine, "plain"), contestant(engine, "mate"), usual_openings()[:2], 4, None, concurrency=2
    )
    whole = play(plan, path)
    text = path.read_text()
    assert whole.as_json()["games"] == 4
    with path.open() as file:
        games = [chess.pgn.read_game(file) for _ in range(4)]
    assert {game.headers["Round"] for game in games if game} == {"1.1", "1.2", "2.1", "2.2"}
    assert all(game is not None and not game.errors and game.end().board().outcome(claim_draw=True) for game in games)
    # Cut within the last game: that one alone is played again.
    path.write_bytes(text.encode()[:-40])
    kept = text.split("\n\n\n")[:3]
    again = play(plan, path)
    assert path.read_text().split("\n\n\n")[:3] == kept
    assert sorted(result.points for result in again.results) == sorted(result.points for result in whole.results)
    other = MatchPlan(contestant(engine, "plain"), contestant(engine, "slow"), usual_openings()[:2], 4, None)
    with pytest.raises(MatchError, match="another match"):
        play(other, path)


@pytest.mark.parametrize(
    ("way", "clock", "kind"),
    [("crash", None, "crashes"), ("illegal", None, "illegal_moves"), ("slow", TimeControl(1.0), "time_losses")],
)
def test_who_misbehaves_loses_and_is_counted(engine: str, way: str, clock: TimeControl | None, kind: str) -> None:
    bad = contestant(engine, way) if clock is None else Contestant.parse(f"{engine} {way};name={way}")
    good = contestant(engine, "plain")
    found = play(MatchPlan(bad, good, usual_openings()[:1], 2, clock)).as_json()
    assert (found["losses"], found[kind]) == (2, (2, 0))
    json.dumps(found)


def test_early_ends_are_off_unless_asked_for(engine: str) -> None:
    from cluster.match.game import Adjudication

    hopeless, plain = contestant(engine, "hopeless"), contestant(engine, "plain")
    resigned = play(MatchPlan(hopeless, plain, usual_openings()[:1], 2, None, Adjudication(resign_moves=3)))
    assert resigned.as_json()["losses"] == 2
    drawn = play(MatchPlan(plain, plain, usual_openings()[:1], 2, None, Adjudication(draw_moves=2, draw_score=5)))
    assert drawn.as_json()["draws"] == 2


def test_an_engine_that_is_not_there() -> None:
    missing = Contestant.parse("/no/such/engine;nodes=1")
    with pytest.raises(MatchError, match="does not start"):
        play(MatchPlan(missing, missing, usual_openings()[:1], 2, None))
