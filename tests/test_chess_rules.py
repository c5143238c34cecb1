"""The rules of chess beside python-chess, on positions of random play."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import silent
from numba import njit

from search.game_files import load_game
from search.games.chess import (
    HISTORY_SIZE,
    captures,
    clock,
    count_moves,
    exchange,
    exchange_at_least,
    has_pieces,
    in_check,
    is_quiet,
    may_check,
    mirror,
    move_slot,
    order,
    outcome,
    parse,
    pass_turn,
    stuck,
    text,
)
from search.games.chess.exchange import EXCHANGE_VALUES
from search.referee import Referee
from search.rules import RulesError
from search.scores import DRAW, MATE, ONGOING
from tt_store.layout import WORD_BYTES

chess = pytest.importorskip("chess", reason="python-chess is the oracle of the rules of chess")

POSITIONS = 20_000
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
STARTS = (
    KIWIPETE,
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "4k3/8/2n5/8/8/1B6/8/4K3 w - - 90 80",
    "8/8/1b2k3/8/8/2N1K3/8/4R3 w - - 95 80",
    "6k1/5p2/8/2QQ4/3R4/8/8/K6R w - - 0 1",
    "3k4/2p5/8/8/8/2q1r3/5q2/K7 w - - 0 1",
    "7k/8/5K2/8/8/8/8/6Q1 w - - 0 1",
)
"""Beside the usual starts: promotions, en passant, few men, the end of fifty moves, mates and stalemates."""


@njit
def facts_of(position: Any) -> tuple[int, int, int, int, int, int, int]:
    return (
        count_moves(position),
        in_check(position),
        stuck(position) if count_moves(position) == 0 else outcome(position),
        outcome(position),
        stuck(position),
        clock(position),
        has_pieces(position),
    )


@njit
def list_captures(position: Any, end: int) -> int:
    return captures(position, end)


@njit
def passed(position: Any) -> Any:
    return pass_turn(position)


@njit
def hints_of(position: Any, move: int) -> tuple[int, int, int]:
    return is_quiet(position, move), order(position, move), move_slot(position, move)


@njit
def foresees(position: Any, move: int) -> int:
    return may_check(position, move)


@njit
def exchanged(position: Any, move: int) -> int:
    return exchange(position, move)


@njit
def reaches(position: Any, move: int, threshold: int) -> int:
    return exchange_at_least(position, move, threshold)


@cache
def referee() -> Referee:
    return Referee(load_game("chess"), notice=silent)


_buffer = np.zeros(512, np.int64)


def pushed(generate: Callable[[Any, int], int], position: Any) -> list[int]:
    begin = _buffer.ctypes.data
    return [int(move) for move in _buffer[: (generate(position, begin) - begin) // WORD_BYTES]]


def legal(position: Any) -> list[int]:
    """Return all moves, also where the game is drawn."""
    return pushed(referee().rulebook.list_moves, position)


def fen_of(board: Any) -> str:
    return str(board.shredder_fen(en_passant="legal") if board.chess960 else board.fen(en_passant="legal"))


def is_sharp_move(board: Any, move: Any) -> bool:
    return bool(board.is_capture(move) or board.gives_check(move))


def random_boards(rng: random.Random, number: int) -> Iterator[tuple[Any, Any]]:
    """Yield positions of random games, ours by `play` and python-chess's; some games favour captures and checks."""
    while number > 0:
        board = chess.Board(rng.choice(STARTS)) if rng.random() < 0.3 else chess.Board()
        if rng.random() < 0.4:
            board = chess.Board.from_chess960_pos(rng.randrange(960))
        position, is_sharp = parse(fen_of(board)), rng.random() < 0.5
        for _ in range(rng.randrange(20, 200)):
            yield position, board
            number -= 1
            ours = {referee().game.move_text(position, move): move for move in legal(position)}
            # By python-chess's own order: a fault of ours must not change the game.
            choices = sorted(board.uci(move) for move in board.legal_moves)
            if number <= 0 or not choices:
                break
            if is_sharp and rng.random() < 0.5:
                sharp = [name for name in choices if is_sharp_move(board, board.parse_uci(name))]
                choices = sharp or choices
            name = rng.choice(choices)
            board.push(board.parse_uci(name))
            position = referee().play(position, ours[name])


@pytest.mark.parametrize("positions", [POSITIONS // 10, pytest.param(POSITIONS, marks=pytest.mark.slow)])
def test_random_positions_agree_with_python_chess(positions: int) -> None:
    """Moves, captures, checks, ends, texts and hashes; the hash and the score are equal to those from scratch."""
    keys: dict[int, str] = {}
    names: dict[str, int] = {}
    met: Counter[str] = Counter()
    for position, board in random_boards(random.Random(1), positions):
        fen = fen_of(board)
        assert text(position) == fen
        assert parse(fen) == position, fen
        expected = {board.uci(move): move for move in board.legal_moves}
        ours = {referee().game.move_text(position, move): move for move in legal(position)}
        assert ours.keys() == expected.keys(), fen
        if len(keys) % 10 == 0:
            assert all(referee().game.parse_move(position, name) == move for name, move in ours.items()), fen
        loud = {name for name, move in expected.items() if board.is_capture(move) or move.promotion}
        quiescent = {name for name in loud if expected[name].promotion in (None, chess.QUEEN)}
        assert {referee().game.move_text(position, move) for move in pushed(list_captures, position)} == quiescent, fen
        for name, move in ours.items():
            quiet, estimate, slot = hints_of(position, move)
            assert quiet == (name not in loud), (fen, name)
            assert not quiet or estimate == 0
            assert 0 <= slot < HISTORY_SIZE
            if len(keys) % 10:
                continue
            if foresees(position, move):
                met["foreseen check"] += board.gives_check(expected[name])
                met["needless fear"] += not board.gives_check(expected[name])
            else:
                assert not board.gives_check(expected[name]), (fen, name)
                met["foreseen peace"] += 1
        met.update(check_facts(position, board))
        met.update(kind_of(board, move) for move in expected.values())
        name = " ".join(fen.split()[:4])
        assert keys.setdefault(int(position.key), name) == name
        assert names.setdefault(name, int(position.key)) == int(position.key)
    assert len(keys) > positions // 2
    rare = ("check", "mate", "stalemate", "material", "clock", "en passant", "castling", "castling in Chess960")
    assert all(met[event] >= (3 if positions == POSITIONS else 0) for event in rare), met
    assert met["foreseen check"] > 0 < met["needless fear"] < met["foreseen peace"] // 4


def kind_of(board: Any, move: Any) -> str:
    if board.is_castling(move):
        return "castling in Chess960" if board.chess960 else "castling"
    return "en passant" if board.is_en_passant(move) else "move"


def check_facts(position: Any, board: Any) -> Iterator[str]:
    """Compare what needs no list of moves; yields what is remarkable about the position."""
    count, check, full, cheap, without_moves, plies, pieces = facts_of(position)
    assert (count, check, plies) == (board.legal_moves.count(), board.is_check(), board.halfmove_clock), board.fen()
    is_drawn = board.is_insufficient_material() or board.halfmove_clock >= 100
    final = -MATE if board.is_checkmate() else DRAW if board.is_stalemate() or is_drawn else ONGOING
    assert full == final, board.fen()
    if count > 0:
        assert cheap == final
    else:
        assert without_moves == (-MATE if check else DRAW)
        assert cheap == ONGOING or final == DRAW
    own = board.occupied_co[board.turn] & ~(board.pawns | board.kings)
    assert pieces == (own != 0)
    remarkable = {
        "check": check,
        "mate": board.is_checkmate(),
        "stalemate": board.is_stalemate(),
        "material": board.is_insufficient_material(),
        "clock": board.halfmove_clock >= 100,
    }
    yield from (event for event, happens in remarkable.items() if happens)


def test_a_null_move_and_the_mirror() -> None:
    for position, board in random_boards(random.Random(2), 2_000):
        twin = mirror(position)
        assert text(twin) == fen_of(board.mirror()).rsplit(" ", 1)[0] + " " + str(board.fullmove_number)
        assert facts_of(twin) == facts_of(position)
        assert mirror(twin) == position
        if not board.is_check():
            board.push(chess.Move.null())
            assert text(passed(position)) == fen_of(board)
            assert parse(fen_of(board)) == passed(position)
            board.pop()


@pytest.mark.parametrize(
    ("fen", "outcome"),
    [
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", DRAW),  # Stalemate.
        ("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", -MATE),
        ("7k/6Q1/6K1/8/8/8/8/8 b - - 100 99", -MATE),  # The mating move is the hundredth.
        ("7k/8/6K1/8/8/8/8/6Q1 b - - 99 99", ONGOING),
        ("7k/8/6K1/8/8/8/8/6Q1 b - - 100 99", DRAW),
        ("7k/8/6K1/8/8/8/8/6N1 b - - 0 1", DRAW),
        ("7k/8/6K1/8/8/8/8/5NN1 b - - 0 1", ONGOING),
        ("2b4k/8/6K1/8/8/8/8/5B2 b - - 0 1", DRAW),  # Both on light squares.
        ("1b5k/8/6K1/8/8/8/8/5B2 b - - 0 1", ONGOING),
        ("1b5k/8/6K1/8/8/8/8/5N2 b - - 0 1", ONGOING),
        ("7k/8/6K1/8/8/8/8/8 w - - 0 1", DRAW),
    ],
)
def test_ends_of_the_game(fen: str, outcome: int) -> None:
    assert facts_of(parse(fen))[2] == outcome


def slow_exchange(board: Any, move: Any) -> int:
    """Swap by the definition, on python-chess's board."""
    if board.is_castling(move):
        return 0
    kinds = {chess.PAWN: 0, chess.KNIGHT: 1, chess.BISHOP: 2, chess.ROOK: 3, chess.KING: 4, chess.QUEEN: 5}
    values = {kind: EXCHANGE_VALUES[index] for kind, index in kinds.items()}

    def recapture(standing: int, side: bool, prize: int) -> int:
        found = [
            (values[board.piece_type_at(square)], square)
            for square in board.attackers(side, move.to_square, chess.SquareSet(standing))
            if standing >> square & 1
        ]
        if not found:
            return 0
        value, square = min(found)
        left = standing & ~(1 << square)
        defenders = int(board.attackers(not side, move.to_square, chess.SquareSet(standing))) & standing
        if value == values[chess.KING] and defenders:
            return 0
        return max(0, prize - recapture(left, not side, value))

    standing = board.occupied & ~(1 << move.from_square)
    prize = values[board.piece_type_at(move.to_square)] if board.piece_type_at(move.to_square) else 0
    if board.is_en_passant(move):
        prize = values[chess.PAWN]
        standing &= ~(1 << (move.to_square + (-8 if board.turn else 8)))
    risk = values[board.piece_type_at(move.from_square)]
    if move.promotion:
        risk = values[move.promotion]
        prize += risk - values[chess.PAWN]
    return prize - recapture(standing, not board.turn, risk)


def test_the_static_exchange_is_what_swapping_gains() -> None:
    seen = set()
    for position, board in random_boards(random.Random(3), 1_500):
        for move in legal(position):
            name = referee().game.move_text(position, move)
            expected = slow_exchange(board, board.parse_uci(name))
            assert exchanged(position, move) == expected, (board.fen(), name)
            for threshold in (expected - 1, expected, expected + 1, 0, 100, -100):
                assert reaches(position, move, threshold) == (expected >= threshold), (board.fen(), name, threshold)
            estimate = hints_of(position, move)[1]
            if board.is_capture(board.parse_uci(name)) and len(name) == 4:
                assert (estimate < 0) == (expected < 0), (board.fen(), name)
            seen.add(expected)
    assert len(seen) > 50


@pytest.mark.parametrize(
    ("fen", "written", "read"),
    [
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", {"e1g1", "e1c1"}, {"e1h1": "e1g1", "e1a1": "e1c1"}),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", {"e8g8", "e8c8"}, {"e8h8": "e8g8", "e8a8": "e8c8"}),
        ("r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1", {"e1h1", "e1a1"}, {"e1g1": "e1h1", "e1c1": "e1a1"}),
        ("nn1rkq1b/ppp1p1rP/8/2Np4/3P4/2P5/bP3PPP/2BRKQRB b KQq - 1 8", {"e8d8"}, {"e8c8": "e8d8"}),
        ("4k3/8/8/8/8/8/8/5KR1 w G - 0 1", {"f1g1"}, {}),  # King and rook change places.
        ("4k3/8/8/8/8/8/8/R5KR w HA - 0 1", {"g1h1", "g1a1"}, {"g1c1": "g1a1"}),  # The king stays on g1.
    ],
)
def test_castling_is_read_in_both_ways_and_written_in_its_own(
    fen: str, written: set[str], read: dict[str, str]
) -> None:
    position, game = parse(fen), referee().game
    assert written <= {game.move_text(position, move) for move in legal(position)}
    for name in written:
        assert game.move_text(position, game.parse_move(position, name)) == name
    for name, own_name in read.items():
        assert game.move_text(position, game.parse_move(position, name)) == own_name


def test_a_rook_that_shields_its_king_does_not_castle() -> None:
    position = parse("4k3/8/8/8/8/8/8/rR1K4 w B - 0 1")
    assert "d1b1" not in {referee().game.move_text(position, move) for move in legal(position)}


@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("e2", "not legal"),
        ("hello", "no move"),
        ("e2e2", "no move"),
        ("e7e8k", "no move"),
        ("a7a8", "lacks"),
        ("e1e2q", "promotes no pawn"),
    ],
)
def test_what_is_no_move_is_refused(word: str, wrong: str) -> None:
    with pytest.raises(RulesError, match=wrong):
        referee().game.parse_move(parse("4k3/P7/8/8/8/8/8/4K3 w - - 0 1"), word)


@pytest.mark.parametrize(
    ("score", "written"),
    [(34, "+0.34"), (-120, "-1.20"), (0, "+0.00"), (MATE - 9, "#5"), (MATE - 1, "#1"), (-MATE + 6, "#-3")],
)
def test_scores_are_pawns_or_moves_to_mate(score: int, written: str) -> None:
    assert referee().game.score_text(parse(KIWIPETE), score, False) == written


def test_the_same_rules_run_without_the_compiler() -> None:
    program = (
        "from search.perft import perft; from search.game_files import load_game; game = load_game('chess');"
        f"print(perft(game, game.parse({KIWIPETE!r}), 2), game.text(game.parse({KIWIPETE!r})))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split(" ", 1) == ["2039", KIWIPETE + "\n"], done.stderr


@pytest.mark.parametrize(
    ("fen", "san", "uci"),
    [
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "Nf3", "g1f3"),
        ("4k3/P7/8/8/8/8/8/4K2R w K - 0 1", "a8=Q+", "a7a8q"),
        ("4k3/P7/8/8/8/8/8/4K2R w K - 0 1", "O-O", "e1g1"),
        ("4k3/8/8/8/8/8/8/R3K2R w - - 0 1", "Rad1", "a1d1"),
    ],
)
def test_moves_may_be_written_as_books_do(fen: str, san: str, uci: str) -> None:
    position = parse(fen)
    assert referee().game.move_text(position, referee().game.parse_move(position, san)) == uci


@pytest.mark.parametrize(
    ("san", "words"), [("Nf6", "not legal"), ("Rd1", "more than one"), ("Xx9", "is no move"), ("--", "passes")]
)
def test_a_wrong_book_move_is_one_sentence(san: str, words: str) -> None:
    with pytest.raises(RulesError, match=words):
        referee().game.parse_move(parse("4k3/8/8/8/8/8/4K3/R6R w - - 0 1"), san)
