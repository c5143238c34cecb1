"""King and pawn against king: the table against play by the rules, and the estimates that it gives."""

from __future__ import annotations

import random
from functools import cache

import chess
import numpy as np
import pytest
from conftest import silent

from search.game_files import load_game
from search.games.chess import mirror, parse
from search.games.chess.pawn_ending import WON, winning_squares
from search.referee import Referee

WINS = 111_282
"""Positions with the pawn on one of 24 squares that its side wins, whoever is to move: a number that others found."""


@cache
def referee() -> Referee:
    return Referee(load_game("chess"), notice=silent)


def value_of(fen: str) -> int:
    return referee().facts(referee().game.position(parse(fen))).evaluation


def wins(board: chess.Board) -> bool:
    """Tell by the evaluation whether White, who has the pawn, wins."""
    return value_of(board.fen()) * (1 if board.turn else -1) >= WON


def test_as_many_positions_are_won_as_others_found() -> None:
    assert np.unpackbits(winning_squares().view(np.uint8)).sum() == WINS


def random_boards(number: int) -> list[chess.Board]:
    rng, boards = random.Random(1), []
    while len(boards) < number:
        board = chess.Board(None)
        for kind, colour, squares in ((6, True, 64), (6, False, 64), (1, True, 64)):
            board.set_piece_at(rng.randrange(squares), chess.Piece(kind, colour))
        board.turn = rng.random() < 0.5
        if board.is_valid() and len(board.piece_map()) == 3:
            boards.append(board)
    return boards


def test_each_position_is_as_good_as_what_it_leads_to() -> None:
    """White wins where one of its moves does; Black loses where all of its moves do."""
    compared = 0
    for board in random_boards(1500):
        results = []
        for move in board.legal_moves:
            board.push(move)
            if board.is_stalemate() or board.is_insufficient_material():
                results.append(False)
            elif board.pawns:
                results.append(wins(board))
            else:
                # A new queen or rook wins unless it is lost at once; the lesser men never do.
                is_lost = any(board.is_capture(reply) for reply in board.legal_moves)
                is_great = move.promotion in (chess.QUEEN, chess.ROOK)
                results.append(is_great and not is_lost)
            board.pop()
        if not results:
            assert not wins(board)
            continue
        compared += 1
        assert wins(board) == (any(results) if board.turn else all(results)), board.fen()
        assert value_of(board.fen()) in (0, value_of(board.transform(chess.flip_horizontal).fen()))
    assert compared > 1400


@pytest.mark.parametrize(
    ("fen", "is_won"),
    [
        ("8/8/8/8/4k3/8/3PK3/8 w - - 0 1", False),
        ("4k3/8/8/4P3/4K3/8/8/8 w - - 0 1", False),
        ("4k3/8/4K3/4P3/8/8/8/8 w - - 0 1", True),
        ("4k3/8/4K3/4P3/8/8/8/8 b - - 0 1", True),
        ("k7/8/8/8/8/8/P7/K7 w - - 0 1", False),
        ("8/8/8/8/7p/8/5k2/7K b - - 0 1", False),
        ("8/8/8/8/5p2/8/5k2/7K b - - 0 1", True),
    ],
)
def test_textbook_positions(fen: str, is_won: bool) -> None:
    assert (abs(value_of(fen)) >= WON) == is_won
    assert value_of(fen) == referee().facts(mirror(referee().game.position(parse(fen)))).evaluation
