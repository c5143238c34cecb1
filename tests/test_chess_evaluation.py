"""The evaluation of chess: the network beside slow twins, symmetry, bounds, and what is known of end games."""

from __future__ import annotations

import os
import random
import subprocess
import sys
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
from search.games.chess import mirror, parse, text
from search.games.chess.layers import INPUTS, LAST_UNIT, UNIT, Layers, pack, unpack
from search.games.chess.network import BUCKETS, MEMORY_WORDS, network_value, plain_network_value
from search.games.chess.network_weights import HIDDEN, OFFSETS, PACKED, SCALE
from search.games.chess.selfplay import Plan, Player
from search.referee import Referee
from search.scores import MATE, MATE_BOUND
from tt_store.layout import WORD_BYTES

chess = pytest.importorskip("chess", reason="python-chess is the board of the slow twin")

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
def kept_up_to_date(position: Any, memory: int) -> int:
    return network_value(position, memory)


@njit
def from_nothing(position: Any) -> int:
    return plain_network_value(position)


def on_a_board(board: chess.Board) -> float:
    """Return the network's estimate of a board by real numbers, from the weights and python-chess alone."""
    layers = unpack(PACKED, HIDDEN, OFFSETS)
    bucket = (len(board.piece_map()) - 1) * BUCKETS // 32
    kinds = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.KING, chess.QUEEN)
    total = layers.offsets[bucket] / (UNIT * LAST_UNIT)
    for weights, side in zip(layers.last[bucket], (board.turn, not board.turn), strict=True):
        view = layers.bias.astype(float)
        for square, man in board.piece_map().items():
            seen = square if side == chess.WHITE else chess.square_mirror(square)
            view += layers.rows[(man.color != side) * INPUTS // 2 + kinds.index(man.piece_type) * 64 + seen]
        total += (np.clip(view / UNIT, 0, 1) ** 2) @ (weights / LAST_UNIT)
    return float(total * SCALE)


def test_the_network_is_the_same_however_its_views_were_made() -> None:
    """By games, whose positions differ by a move, and by jumps between them; and as its definition says."""
    memory = np.zeros(MEMORY_WORDS, np.int64)
    positions = list(random_positions(2, 1_500))
    shuffled = random.Random(3).sample(positions, 500)
    for position in (*positions, *shuffled):
        game_position = referee().game.position(position)
        value_here = from_nothing(game_position)
        assert kept_up_to_date(game_position, memory.ctypes.data) == value_here, text(position)
    for position in shuffled[:200]:
        board = chess.Board(text(position))
        assert abs(from_nothing(referee().game.position(position)) - on_a_board(board)) <= 2, board.fen()


def test_packed_layers_are_found_again() -> None:
    rng = np.random.default_rng(4)
    layers = Layers(
        rng.integers(-500, 500, (INPUTS, 32)).astype(np.int16),
        rng.integers(-500, 500, 32).astype(np.int16),
        rng.integers(-127, 128, (3, 2, 32)).astype(np.int16),
        np.array([-1, 0, 99_999]),
    )
    again = unpack(pack(layers), 32, (-1, 0, 99_999))
    for before, after in zip(layers, again, strict=True):
        assert np.array_equal(before, after)


def test_no_view_runs_over() -> None:
    """A view is a sum of 16 bits: the thirty-two largest weights of each unit must fit, and a last weight a byte."""
    layers = unpack(PACKED, HIDDEN, OFFSETS)
    sizes = np.sort(np.abs(layers.rows.astype(int)), axis=0)[-32:].sum(axis=0) + np.abs(layers.bias)
    assert sizes.max() < 1 << 15
    assert np.abs(layers.last).max() <= 127


def test_more_men_are_worth_more() -> None:
    ranks = ("RNBQKBNR", "RNBQKBNR".replace("B", "1", 1), "1NBQKBNR", "RNB1KBNR")
    whole, bishop, rook, queen = (value_of(f"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/{rank} w kq - 0 1") for rank in ranks)
    assert whole > bishop + 150
    assert bishop > rook + 50
    assert rook > queen + 100


def test_twins_are_worth_the_same() -> None:
    values = set()
    for position in random_positions(1, 4_000):
        values.add(value(position))
        assert value(mirror(position)) == value(position), text(position)
    assert len(values) > 500


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
    """Also of positions that differ in their clocks alone, where another one has taken the cell, and by the network."""
    game = referee().game
    memory = np.zeros(at.workspace_words(game.max_moves, game.memory_words, game.history_words), np.int64)
    positions = [*random_positions(5, 300)]
    positions += [parse(f"6k1/5ppp/8/8/8/8/4RPPP/6K1 w - - {clock} 80") for clock in range(0, 100, 7)]
    for position in positions * 2:
        assert estimate_of(game.position(position), memory.ctypes.data) == value(position)
    cells = memory[at.KNOWN_ESTIMATES // WORD_BYTES : at.MOVES // WORD_BYTES]
    assert 200 < np.count_nonzero(cells) <= 315
    begin = at.memory_offset(game.max_moves) // WORD_BYTES
    assert np.count_nonzero(memory[begin : begin + game.memory_words]) > game.memory_words // 2
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
