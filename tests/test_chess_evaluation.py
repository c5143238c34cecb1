"""The evaluation of chess: symmetry, each term beside a slow twin, bounds, and what is known of end games."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import silent
from numba import njit

from search import jit
from search import workspace as at
from search.flags import Flags
from search.game_files import load_game
from search.games.chess import mirror, parse, pass_turn, text
from search.games.chess.evaluation import phase, term_sums
from search.games.chess.features import TERMS, extract
from search.games.chess.king_safety import MOST_DANGER, danger_value
from search.games.chess.selfplay import Plan, Player
from search.games.chess.terms import FULL_PHASE, OFFSETS, end_half, middle_half, packed_weights
from search.games.chess.weights import DANGER, WEIGHTS
from search.referee import Referee
from search.scores import MATE, MATE_BOUND
from tt_store.layout import WORD_BYTES

chess = pytest.importorskip("chess", reason="python-chess is the board of the slow twin")
chess_terms = pytest.importorskip("chess_terms")

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
STARTS = (
    KIWIPETE,
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "8/5ppp/8/1k2P3/6P1/2K5/P4P2/8 b - - 0 1",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    "3r2k1/p4p1p/1p4p1/8/8/1P3Q2/P4PPP/4R1K1 b - - 0 1",
)
"""Beside the usual start: many pieces, passed pawns, open kings."""


@cache
def referee() -> Referee:
    return Referee(load_game("chess"), notice=silent)


def random_positions(seed: int, number: int) -> Iterator[Any]:
    rng = random.Random(seed)
    while number > 0:
        position = referee().game.parse(rng.choice(STARTS) if rng.random() < 0.6 else "")
        for _ in range(rng.randrange(10, 150)):
            moves = referee().legal_moves(position)
            if not moves or number <= 0:
                break
            yield position
            number -= 1
            position = referee().play(position, rng.choice(moves))


def value(position: Any) -> int:
    return referee().facts(referee().game.position(position)).evaluation


def value_of(fen: str) -> int:
    return value(parse(fen))


@njit
def sums_of(position: Any, weights: int) -> tuple[int, int, int]:
    return term_sums(position, weights)


@njit
def sums_after_passing(position: Any, weights: int) -> tuple[int, int, int]:
    return term_sums(pass_turn(position), weights)


@njit
def phase_of(position: Any) -> int:
    return phase(position)


@njit
def halves_of(packed: int) -> tuple[int, int]:
    return middle_half(packed), end_half(packed)


@njit
def value_of_danger(units: int) -> int:
    return danger_value(units)


def test_twins_are_worth_the_same() -> None:
    values = set()
    for position in random_positions(1, 4_000):
        values.add(value(position))
        assert value(mirror(position)) == value(position), text(position)
    assert len(values) > 500


def test_the_sides_are_treated_alike() -> None:
    """Passing changes the signs, but for the tempo, and for races of pawns, where the tempo decides."""
    weights = packed_weights()
    weights[OFFSETS["tempo"]] = weights[OFFSETS["passed_unstoppable"]] = 0
    for position in random_positions(2, 2_000):
        score, to_other, to_own = sums_of(position, weights.ctypes.data)
        assert sums_after_passing(position, weights.ctypes.data) == (-score, to_own, to_other), text(position)


def test_each_term_is_what_its_slow_twin_counts() -> None:
    positions = list(random_positions(3, 260))
    features = extract(positions)
    places = {name: range(OFFSETS[name], OFFSETS[name] + len(WEIGHTS[name])) for name in OFFSETS if name in WEIGHTS}
    units = {name: range(OFFSETS[name] - TERMS, OFFSETS[name] - TERMS + len(DANGER[name])) for name in DANGER}
    met: Counter[str] = Counter()
    for position, counts, attack in zip(positions, features.counts, features.attack, strict=True):
        board = chess.Board(text(position))
        for columns, row, expected in (
            (places, counts, chess_terms.counts_of(board)),
            (units, attack, chess_terms.danger_of(board)),
        ):
            found = {(name, place): int(row[column]) for name, r in columns.items() for place, column in enumerate(r)}
            assert {term: number for term, number in found.items() if number} == expected, board.fen()
            met.update({name for name, _place in expected})
    rare = {name for name in (*places, *units) if met[name] < 3}
    assert rare <= {"passed_unstoppable"}, met


def test_the_sum_of_men_on_squares_is_incremental() -> None:
    for position in random_positions(4, 500):
        assert parse(text(position)).score == position.score


def test_packed_halves_keep_their_signs() -> None:
    for middle in (-3000, -1, 0, 1, 2999):
        for end in (-3000, -1, 0, 1, 2999):
            assert halves_of((middle << 32) + end) == (middle, end)


def test_danger_grows_with_its_square_and_has_a_limit() -> None:
    values = [halves_of(value_of_danger(units)) for units in range(-50, MOST_DANGER + 200)]
    assert values == sorted(values)
    assert values[0] == values[50] == (0, 0)
    assert values[-1] == halves_of(value_of_danger(MOST_DANGER))
    assert values[50 + 100][0] > 3 * values[50 + 50][0]


@pytest.mark.parametrize(
    "fen",
    [
        "QQQQQQQQ/Q7/8/8/8/8/4k3/K7 b - - 0 1",
        "QQQQQQQQ/Q7/RR1NNBB1/8/6k1/8/8/K7 b - - 0 1",
        "qqqqqqqq/q7/rr1nnbb1/8/8/6K1/8/k7 w - - 99 90",
        "4k3/8/8/8/8/8/8/4K3 w - - 9999 1",
    ],
)
def test_estimates_never_look_like_mates(fen: str) -> None:
    board = chess.Board(fen)
    for turn in (chess.WHITE, chess.BLACK):
        board.turn = turn
        if board.is_valid() or not board.was_into_check():
            assert -MATE_BOUND < value_of(board.fen()) < MATE_BOUND


def test_the_phase_falls_from_the_start_to_bare_kings() -> None:
    assert phase_of(parse("")) == FULL_PHASE
    assert phase_of(parse("QQQ1k3/8/8/8/8/8/8/RNBQKBNR b - - 0 1".replace("QQQ1k3", "4k3"))) == FULL_PHASE // 2
    assert phase_of(parse("4k3/pppp4/8/8/8/8/PPPP4/4K3 w - - 0 1")) == 0


@pytest.mark.parametrize(
    ("fen", "is_drawn"),
    [
        ("8/8/4k3/8/8/3NN3/4K3/8 w - - 0 1", True),  # Two knights do not mate.
        ("8/8/4k3/8/8/3B4/4K3/8 w - - 0 1", True),
        ("k7/8/K7/P7/8/4B3/8/8 w - - 0 1", True),  # The bishop does not command a8,
        ("k7/8/K7/P7/8/3B4/8/8 w - - 0 1", False),  # and this one does.
        ("7k/8/6KP/7P/8/3B4/8/8 w - - 0 1", True),
        ("7k/8/6KP/7P/8/4B3/8/8 w - - 0 1", False),
        ("8/8/3k4/8/8/3B4/4K2P/8 w - - 0 1", False),  # The king is far from the corner.
        ("8/8/4k3/8/3b4/8/4K3/R7 w - - 0 1", True),  # A rook hardly beats a bishop,
        ("8/8/4k3/8/3b4/8/4K3/Q7 w - - 0 1", False),  # a queen does.
    ],
)
def test_what_can_hardly_be_won_is_worth_little(fen: str, is_drawn: bool) -> None:
    assert (abs(value_of(fen)) < 60) == is_drawn, value_of(fen)
    assert value(mirror(parse(fen))) == value_of(fen)


def test_bishops_of_opposite_colours_are_worth_less() -> None:
    same, opposite = (value_of(f"{black}/5pk1/4p3/8/3P4/3B2PP/6K1/8 w - - 0 1") for black in ("4b3", "3b4"))
    assert min(same, opposite) > 0
    assert opposite < 0.7 * same


def test_a_bare_king_is_driven_to_the_edge_and_to_the_right_corner() -> None:
    for men in ("R", "Q"):
        centre, edge, corner = (
            value_of(f"{rows}/8/8/2{men}5/8 w - - 0 1") for rows in ("8/8/1K6/3k4", "3k4/8/1K6/8", "k7/8/1K6/8")
        )
        assert 400 < centre < edge < corner
    far, near = (value_of(f"3k4/8/{row}/8/8/8/R7/{last} w - - 0 1") for row, last in (("8", "K7"), ("3K4", "8")))
    assert far < near
    # The bishop of d3 is on a light square: mate is in the corners a8 and h1.
    right, wrong = (value_of(f"{row}/8/2K5/8/8/3BN3/8/8 w - - 0 1") for row in ("k7", "7k"))
    assert right > wrong + 60


@pytest.mark.parametrize(
    "fen",
    ["8/8/8/3k4/8/8/2R5/K7 w - - 0 1", "8/8/8/3k4/8/8/2Q5/K7 w - - 0 1"],
)
def test_a_bare_king_is_mated_with_little_search(fen: str) -> None:
    player = Player(Plan(nodes=2_000, table_mb=1.0))
    history: tuple[int, ...] = ()
    position = player.game.parse(fen)
    try:
        while not player.referee.facts(position).is_over:
            facts = player.referee.facts(position)
            following = player.referee.play(position, player.best(position, 1, history)[0])
            history = player.referee.history_after(history, facts, player.referee.facts(following))
            position = following
    finally:
        player.close()
    assert player.referee.facts(position).outcome == -MATE, text(position)


def test_a_position_without_progress_loses_its_worth() -> None:
    values = [value_of(f"6k1/5ppp/8/8/8/8/4RPPP/6K1 w - - {clock} 80") for clock in (0, 40, 60, 80, 99)]
    assert values[0] == values[1] > values[2] > values[3] > values[4] > values[0] // 3


_estimate_of = jit.specialise("search.estimates", load_game("chess"), Flags()).estimate_of


@njit
def estimate_of(position: Any, memory: int) -> int:
    return _estimate_of(position, memory)


def test_a_remembered_estimate_is_the_estimate() -> None:
    """Also of positions that differ in their clocks alone, where another one has taken the cell, and by the pawns."""
    game = referee().game
    memory = np.zeros(at.workspace_words(game.max_moves, game.memory_words, game.history_words), np.int64)
    positions = [*random_positions(5, 300)]
    positions += [parse(f"6k1/5ppp/8/8/8/8/4RPPP/6K1 w - - {clock} 80") for clock in range(0, 100, 7)]
    for position in positions * 2:
        assert estimate_of(game.position(position), memory.ctypes.data) == value(position)
    cells = memory[at.KNOWN_ESTIMATES // WORD_BYTES : at.MOVES // WORD_BYTES]
    assert 200 < np.count_nonzero(cells) <= 315
    begin = at.memory_offset(game.max_moves) // WORD_BYTES
    pawns = memory[begin : begin + game.memory_words]
    assert 200 < np.count_nonzero(pawns) <= 3 * 315
    assert not memory[begin + game.memory_words :].any()
    cells[:] ^= 1 << 16
    for position in positions:
        assert estimate_of(game.position(position), memory.ctypes.data) == value(position)


def test_the_same_estimates_without_the_compiler() -> None:
    fens = [text(position) for position in random_positions(5, 30)]
    program = (
        "import sys; from search.games.chess import evaluate, parse;"
        "print(*(int(evaluate(parse(fen))) for fen in sys.argv[1:]))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", program, *fens]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == [str(value_of(fen)) for fen in fens], done.stderr
