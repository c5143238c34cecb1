"""The search of chess: against plain minimax over the rules, and what the rules of draws and mates make of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest
from conftest import silent

from cluster.executor import SerialExecutor, ThreadExecutor
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.simulated_executor import SimulatedExecutor
from search.controls import CONTROL_WORDS, Controls
from search.driver import search
from search.flags import Flags
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.results import Iteration
from search.scores import INFINITY, MATE, mate_distance
from search.searcher import Job, Outcome, Searcher
from tt_store.layout import unpack
from tt_store.segment import Segment

GAME = load_game("chess")
REFEREE = Referee(GAME, silent)
WHOLE = Flags(check_extension=False, null_move=False, late_reduction=False, forward_pruning=False, repetition=False)
PLAIN = WHOLE._replace(quiescence=False)
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"

_WORDS = np.zeros(CONTROL_WORDS, np.int64)
_SEGMENT = Segment.private(4)
_SEARCHERS: dict[Flags, Searcher] = {}


def run(flags: Flags, job: Job) -> Outcome:
    if flags not in _SEARCHERS:
        _SEARCHERS[flags] = Searcher(GAME, _SEGMENT, Controls(_WORDS.ctypes.data), flags=flags, notice=silent)
    return _SEARCHERS[flags].run(job)


def random_positions(count: int, seed: int, most_plies: int = 150) -> Iterator[Any]:
    """Yield positions of random games that are not over."""
    rng = random.Random(seed)
    while count:
        position = GAME.parse("")
        for _ in range(rng.randint(0, most_plies)):
            if REFEREE.facts(position).is_over:
                break
            position = REFEREE.play(position, rng.choice(REFEREE.legal_moves(position)))
        if not REFEREE.facts(position).is_over:
            count -= 1
            yield position


def white_value(position: Any, depth: int, ply: int = 0) -> int:
    """Return White's score by plain minimax: no window, no sign that changes with the ply."""
    sign = -1 if position.state & 1 else 1
    facts = REFEREE.facts(position)
    if facts.is_over:
        mated = -MATE + ply if facts.outcome == -MATE else facts.outcome
        return sign * mated
    if depth == 0:
        return sign * facts.evaluation
    values = [white_value(REFEREE.play(position, move), depth - 1, ply + 1) for move in REFEREE.legal_moves(position)]
    return max(values) if sign == 1 else min(values)


def value(position: Any, depth: int) -> int:
    return white_value(position, depth) * (-1 if position.state & 1 else 1)


def keeps_contract(outcome: Outcome, truth: int) -> bool:
    if outcome.score <= outcome.alpha:
        return truth <= outcome.score
    if outcome.score >= outcome.beta:
        return truth >= outcome.score
    return outcome.score == truth


def test_without_selective_rules_the_kernel_is_minimax() -> None:
    variants = [PLAIN, PLAIN._replace(table=False, ordering=False), Flags(exact_depth=True, quiescence=False)]
    few_moves = [position for position in random_positions(40, seed=1) if len(REFEREE.legal_moves(position)) < 9]
    cases = [(position, 1 + number % 2) for number, position in enumerate(random_positions(40, seed=2))]
    cases += [(position, 3) for position in few_moves] + [(position, 4) for position in few_moves[:2]]
    near_draw = GAME.parse("8/8/8/3k4/8/8/1Q6/K7 w - - 98 120")
    for number, (position, depth) in enumerate([*cases, (near_draw, 3)]):
        truth = value(position, depth)
        for flags in variants:
            assert run(flags, Job(position, depth, salt=number)).score == truth, (GAME.text(position), depth, flags)
            window = Job(position, depth, truth - 3, truth - 2, salt=number)
            assert keeps_contract(run(flags, window), truth), (GAME.text(position), depth, flags)


def test_windows_keep_the_contract_with_quiescence() -> None:
    rng = random.Random(3)
    for number, position in enumerate(random_positions(80, seed=4)):
        depth = rng.randint(0, 3)
        truth = run(WHOLE._replace(table=False), Job(position, depth)).score
        for flags in (WHOLE, WHOLE._replace(table=False), Flags(exact_depth=True)):
            alpha = min(max(truth + rng.randint(-60, 60), -INFINITY), INFINITY - 1)
            beta = rng.choice((alpha + 1, min(alpha + rng.randint(1, 90), INFINITY)))
            outcome = run(flags, Job(position, depth, alpha, beta, salt=number))
            assert flags.exact_depth or keeps_contract(outcome, truth), (GAME.text(position), depth, outcome, truth)
            assert run(flags, Job(position, depth, salt=number)).score == truth, (GAME.text(position), depth, flags)


def test_twins_are_searched_alike() -> None:
    for position in (GAME.parse(KIWIPETE), *random_positions(5, seed=5)):
        twins = position, GAME.module.mirror(position)
        one, other = (search(GAME, twin, Limits(depth=7), table_mb=32) for twin in twins)
        assert [*map(_facts, one.iterations)] == [*map(_facts, other.iterations)]


def _facts(iteration: Iteration) -> tuple[int, int, tuple[int, ...], int]:
    return iteration.depth, iteration.score, iteration.line, iteration.statistics.nodes


@pytest.mark.parametrize("fallen", [False, True])
def test_quiescence_sees_mates_and_leaves_bad_captures(fallen: bool) -> None:
    scholars = GAME.parse("r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 0 1")
    mated = REFEREE.play_texts(scholars, ["f3f7"])
    assert REFEREE.facts(mated).outcome == -MATE
    assert run(WHOLE, Job(mated, 0, ply=3)).score == -MATE + 3
    defended = GAME.parse("4k3/2p5/3p4/8/8/8/3R4/4K3 w - - 0 1")
    free = GAME.parse("4k3/8/3p4/8/8/8/3R4/4K3 w - - 0 1")
    flags = WHOLE if fallen else WHOLE._replace(table=False)
    assert run(flags, Job(defended, 0)).score == REFEREE.facts(defended).evaluation
    assert run(flags, Job(free, 0)).score > REFEREE.facts(free).evaluation + 50


def request(position: str, moves: str = "", **limits: Any) -> SearchRequest:
    return SearchRequest(position, tuple(moves.split()), Limits(**limits))


EXECUTORS: dict[str, Callable[[], Any]] = {
    "single": lambda: SerialExecutor(GAME, 1, 4.0, notice=silent),
    "dynamic": lambda: SerialExecutor(GAME, 3, 4.0, notice=silent),
    "root": lambda: ThreadExecutor(GAME, 2, 4.0, notice=silent),
    "team": lambda: ThreadExecutor(GAME, 2, 4.0, notice=silent),
    "simulated": lambda: SimulatedExecutor(GAME, 4, 4.0, notice=silent),
}


@pytest.fixture(params=EXECUTORS)
def ask(request: pytest.FixtureRequest) -> Iterator[Callable[[SearchRequest], SearchReport]]:
    """Return a function that searches with one of the strategies; one table serves a test's searches."""
    strategy = request.param if request.param in ("single", "root", "team") else "dynamic"
    with Session(GAME, EXECUTORS[request.param](), 4.0, silent) as session:
        yield lambda wish: session.search(
            SearchRequest(wish.position, wish.moves, wish.limits, strategy, wish.contempt)
        )


Ask = Callable[[SearchRequest], SearchReport]

THIRD_TIME = "5kbq/3Q2n1/6p1/r3PpKn/2n5/8/8/q7 w - {} 7 4"
THIRD_MOVES = "d7c8 f8f7 c8d7 f7f8 d7d8 f8f7 d8d7"


@pytest.mark.parametrize("en_passant", ["f6", "-"])
def test_the_third_occurrence_is_a_draw_whatever_the_fen_says_of_en_passant(ask: Ask, en_passant: str) -> None:
    report = ask(request(THIRD_TIME.format(en_passant), THIRD_MOVES, depth=10))
    assert (report.result.score, report.line_texts[-1]) == (0, ("f7f8",))


def test_a_position_that_came_once_before_the_root_is_no_draw_yet(ask: Ask) -> None:
    # White is a queen up; the knights went out and home once: to go home again is no draw at once.
    fen = "4k1n1/8/8/8/8/8/8/QN2K3 w - - 0 1"
    result = ask(request(fen, "b1c3 g8f6 c3b1", depth=6)).result
    assert result.score < -500
    # The second time it is.
    result = ask(request(fen, "b1c3 g8f6 c3b1 f6g8 b1c3 g8f6 c3b1", depth=6)).result
    assert result.score == 0
    assert GAME.move_text(result.position, result.best_move or 0) == "f6g8"


def test_perpetual_check_saves_a_lost_game(ask: Ask) -> None:
    # Black threatens to mate and to promote; White's queen gives check on e8 and h5 for ever.
    report = ask(request("6k1/5pp1/8/8/8/7q/1r3p2/4Q2K w - - 0 1", depth=10))
    assert report.result.score <= 0


def test_contempt_shifts_a_forced_draw() -> None:
    with Session(GAME, SerialExecutor(GAME, 1, 4.0, notice=silent), 4.0, silent) as session:
        for contempt in (0, 25, -10):
            wish = SearchRequest(THIRD_TIME.format("-"), tuple(THIRD_MOVES.split()), Limits(depth=6), None, contempt)
            assert session.search(wish).result.score == -contempt


def test_the_table_hides_no_draw_by_fifty_moves(ask: Ask) -> None:
    won, drawn = "8/8/8/3k4/8/8/8/KQ6 w - - 0 120", "8/8/8/3k4/8/8/8/KQ6 w - - 98 120"
    assert ask(request(won, depth=12)).result.score > 500
    assert ask(request(drawn, depth=12)).result.score == 0


def test_a_mate_on_the_hundredth_ply_counts(ask: Ask) -> None:
    report = ask(request("4Q3/8/1p4pk/1PbB1p1p/7P/p3P1PK/P3qP2/8 w - - 99 88", depth=8))
    assert (report.result.score, report.line_texts[-1]) == (MATE - 1, ("e8h8",))


@pytest.mark.parametrize(
    ("fen", "distance", "first"),
    [
        ("r1bqk1nr/ppp4p/2n5/3pp1p1/P2P4/B1P1P1P1/2P2P1P/R2QKBR1 w Qkq - 0 12", 5, "d1h5"),
        ("6Q1/1B6/8/8/4N3/2P1K2k/1P6/8 b - - 2 47", -4, "h3h4"),
        ("3Q4/1Q4Q1/4Q3/2Q4R/Q4Q2/3Q4/1Q4Rp/1K1BBNNk w - -", 1, None),
    ],
)
def test_mates_come_with_their_distance_and_a_whole_line(ask: Ask, fen: str, distance: int, first: str | None) -> None:
    for _ in range(2):
        report = ask(request(fen, depth=20))
        assert mate_distance(report.result.score) == distance
        board = chess.Board(fen if fen.endswith(("12", "47")) else fen + " 0 1")
        for move in report.line_texts[-1]:
            board.push_uci(move)
        assert board.is_checkmate()
        assert len(report.line_texts[-1]) == abs(distance)
        assert first in (None, report.line_texts[-1][0])


def test_the_third_occurrence_where_a_pinned_king_forbids_en_passant() -> None:
    moves = ["d2d4", "h2h3", "a2a3", "h3h2", "a3a2", "h2h1", "a2a3", "h1h2", "a3a2"]
    position, history = GAME.parse("8/8/8/8/4p3/8/R2P3k/K7 w - - 0 37"), tuple[int, ...]()
    for move in moves:
        following = REFEREE.play_texts(position, [move])
        history = REFEREE.history_after(history, REFEREE.facts(position), REFEREE.facts(following))
        position = following
    assert REFEREE.is_repetition(history, REFEREE.facts(position).key, 0)
    assert not REFEREE.is_repetition(history[:-4], REFEREE.facts(position).key, 0)


def test_the_root_may_come_back_once_and_no_other_position_of_the_search() -> None:
    path = (11, 12, 13, 14)
    assert not REFEREE.is_repetition(path, 11, 4)
    assert REFEREE.is_repetition((*path, 11, 12, 13, 14), 11, 8)
    assert REFEREE.is_repetition((*path, 11), 12, 5)
    assert not REFEREE.is_repetition(path, 12, 2)


def test_one_legal_move_is_searched_and_scored(ask: Ask) -> None:
    report = ask(request("r1b1k2r/1pqp1ppp/p1n1pn2/8/4P3/2NBB3/PPP1NPPb/R2Q1RK1 w kq - 0 10", depth=8))
    assert report.line_texts[-1][0] == "g1h1"
    assert report.result.depth == 8
    assert -250 < report.result.score < 0


@pytest.mark.parametrize("limits", [{"nodes": 1}, {"nodes": 100}, {"nodes": 1000}, {"time_s": 0.05}])
def test_an_explosion_of_captures_obeys_the_limits(limits: dict[str, Any]) -> None:
    position = GAME.parse("1q2B2q/2q1B1q1/3qkq2/qrr1rRRQ/3QKQ2/2Q3Q1/1Q2n2Q/Q3n3 w - - 10")
    result = search(GAME, position, Limits(**limits), table_mb=1)
    assert result.best_move in REFEREE.legal_moves(position)
    assert result.statistics.nodes <= limits.get("nodes", INFINITY * 1000) + 4


def test_the_deepest_search_stays_within_its_memory() -> None:
    position = GAME.parse("8/6p1/KP3bRp/4p2P/4P3/5k2/8/8 b - - 0 70")
    result = search(GAME, position, Limits(depth=60, time_s=3), table_mb=4)
    assert result.depth > 10


def test_no_mate_that_is_none() -> None:
    position = GAME.parse("r5k1/5q2/1pP3P1/3Pp2P/1B2Pp2/5Q1K/8/8 b - - 0 87")
    result = search(GAME, position, Limits(nodes=1_000_000), table_mb=4)
    assert all(mate_distance(item.score) is None for item in result.iterations)


@pytest.mark.parametrize(
    ("fen", "best", "depth"),
    [
        # To take the queen or the rook is the only good move.
        ("4k3/8/8/3q4/8/8/8/3QK3 w - - 0 1", "d1d5", 8),
        ("r3k3/ppp2ppp/8/3r4/8/8/PPP2PPP/3RKB2 w - - 0 1", "d1d5", 8),
        # Many moves are as good as the best one.
        ("4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1", None, 7),
        ("r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1", None, 7),
    ],
)
def test_the_only_good_move_is_searched_a_ply_deeper(fen: str, best: str | None, depth: int) -> None:
    """Below it the table holds a depth no less than that of the node itself."""
    position = GAME.parse(fen)
    # The root of a whole search is not asked; the second search finds the first one's move in the table.
    outcome = [run(Flags(), Job(position, plies, ply=1, salt=4711)) for plies in (7, 8)][-1]
    assert best in (None, GAME.move_text(position, outcome.best_move))
    key = REFEREE.facts(REFEREE.play(position, outcome.best_move)).table_key ^ 4711
    word = REFEREE.rulebook.probe_table(_SEGMENT.table_address, _SEGMENT.buckets, key)
    assert unpack(word).depth == depth


def test_shallow_iterations_leave_the_nodes_to_deeper_ones() -> None:
    """With fifty thousand nodes each, whole iterations cost 144 thousand here, and 260 Elo."""
    assert search(GAME, GAME.parse(KIWIPETE), Limits(depth=6), notice=silent).statistics.nodes < 30_000


def test_short_mates_of_a_suite_twice(data_file: Callable[[str], Path]) -> None:
    rows = [line for line in data_file("chess/mate/mates2000.epd").read_text().splitlines() if " bm #" in line]
    truths = [(line.split(" bm ")[0], int(re.findall(r"bm #(-?\d+)", line)[0])) for line in rows]
    short = [(fen, moves) for fen, moves in truths if abs(moves) <= 3][::4]
    assert len(short) > 10
    with Session(GAME, SerialExecutor(GAME, 1, 16.0, notice=silent), 16.0, silent) as session:
        for fen, moves in short * 2:
            report = session.search(request(fen, depth=2 * abs(moves) + 6))
            plies = 2 * moves - 1 if moves > 0 else 2 * moves
            assert mate_distance(report.result.score) == plies, fen
            board = chess.Board(fen + " 0 1")
            for move in report.line_texts[-1]:
                board.push_uci(move)
            assert board.is_checkmate(), fen
            assert len(report.line_texts[-1]) == abs(plies), fen
