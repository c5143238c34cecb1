"""Chess positions as text: what is read, what is written, and what is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from search.games.chess import START, parse, text
from search.rules import RulesError

BOARD = START.split()[0]


@pytest.mark.parametrize(
    ("fen", "written"),
    [
        ("startpos", START),
        ("", START),
        (f"{BOARD} w", f"{BOARD} w - - 0 1"),
        (f"{BOARD} w KQkq", f"{BOARD} w KQkq - 0 1"),
        (f"{BOARD} b KQkq -", f"{BOARD} b KQkq - 0 1"),
        (f"{BOARD}  w  qkQK  -  7 ", f"{BOARD} w KQkq - 7 1"),
        (f"{BOARD} w KQkq - 3 0", f"{BOARD} w KQkq - 3 1"),
        ("4k3/8/8/8/8/8/8/3K4 b - - 12 13", "4k3/8/8/8/8/8/8/3K4 b - - 12 13"),
        ("8/8/8/8/8/6k1/6p1/6K1 w -", "8/8/8/8/8/6k1/6p1/6K1 w - - 0 1"),
        # An en passant square stays where the capture is legal.
        (
            "rnbqkbnr/ppp2ppp/8/3Pp3/8/8/PPPP1PPP/RNBQKBNR w KQkq e6",
            "rnbqkbnr/ppp2ppp/8/3Pp3/8/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 1",
        ),
        ("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
         "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"),
        ("5kbq/3Q2n1/6p1/r3PpKn/2n5/8/8/q7 w - f6 7 4", "5kbq/3Q2n1/6p1/r3PpKn/2n5/8/8/q7 w - - 7 4"),
        ("8/8/8/K2pP2r/8/8/8/4k3 w - d6 0 1", "8/8/8/K2pP2r/8/8/8/4k3 w - - 0 1"),  # Both pawns leave the rank.
        ("4k3/8/8/1b1Pp3/8/3K4/8/8 w - e6 0 1", "4k3/8/8/1b1Pp3/8/3K4/8/8 w - - 0 1"),  # Other check.
        # Chess960: X-FEN takes the outermost rook; the files are written.
        ("2r5/8/8/8/8/8/6PP/k2KR3 w K - 0 1", "2r5/8/8/8/8/8/6PP/k2KR3 w E - 0 1"),
        ("4k3/8/8/8/8/8/8/1R2K1RR w BG - 0 1", "4k3/8/8/8/8/8/8/1R2K1RR w GB - 0 1"),
        ("4k3/8/8/8/8/8/8/1R2K1RR w KQ - 0 1", "4k3/8/8/8/8/8/8/1R2K1RR w HB - 0 1"),
        (f"{BOARD} w HAha - 0 1", f"{BOARD} w HAha - 0 1"),
        # Odd, but a position: three men give check.
        ("2Nq4/2K5/1b6/8/7R/3k4/7P/8 w - - 0 1", "2Nq4/2K5/1b6/8/7R/3k4/7P/8 w - - 0 1"),
    ],
)  # fmt: skip
def test_what_is_read_is_written(fen: str, written: str) -> None:
    assert text(parse(fen)) == written
    assert parse(written) == parse(fen)


@pytest.mark.parametrize(
    ("fen", "wrong"),
    [
        ("8/8/8/8", "1 fields"),
        (f"{BOARD} w KQkq - 0 1 bm", "7 fields"),
        ("8/8/8/8 w - - 0 1", "4 ranks"),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPP/RNBQKBNR w KQkq -", "rank 2 of the board, 'PPPPPPP', has 7 squares"),
        ("rnbqkbnr/ppppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -", "has 9 squares"),
        ("rnbqkbnr/pppppppp/9/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -", "'9' on rank 6"),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPXPPP/RNBQKBNR w KQkq -", "'X' on rank 2"),
        (f"{BOARD} x KQkq - 0 1", "side to move is 'x'"),
        (f"{BOARD} w KQkx - 0 1", "castling rights have 'x'"),
        (f"{BOARD} w KK - 0 1", "twice"),
        (f"{BOARD} w KH - 0 1", "twice"),
        ("4k3/8/8/8/8/8/8/4K2R w Q - 0 1", "'Q' needs a rook of White"),
        ("4k3/8/8/8/8/8/8/4K2R w C - 0 1", "'C' needs a rook of White"),
        ("4k2r/8/8/8/8/8/4K3/7R w K - 0 1", "White's king on its first rank"),
        ("4k2R/8/8/8/8/8/8/4K3 b k - 0 1", "'k' needs a rook of Black"),
        (f"{BOARD} w KQkq e4 0 1", "en passant square e4 is impossible"),
        (f"{BOARD} w KQkq e6 0 1", "en passant square e6 is impossible"),
        ("rnbqkbnr/ppp2ppp/8/3Pp3/8/8/PPPP1PPP/RNBQKBNR b KQkq e6 0 1", "en passant square e6 is impossible"),
        ("4k3/4p3/8/3Pp3/8/8/8/4K3 w - e6 0 1", "en passant square e6 is impossible"),
        (f"{BOARD} w KQkq z9 0 1", "en passant square is 'z9'"),
        (f"{BOARD} w KQkq - -1 1", "halfmove clock is '-1'"),
        (f"{BOARD} w KQkq - 0 -1", "full-move number is '-1'"),
        (f"{BOARD} w KQkq - x 1", "halfmove clock is 'x'"),
        (f"{BOARD} w KQkq - 99999 1", "halfmove clock is '99999'"),
        (f"{BOARD} w KQkq - ² 1", "halfmove clock"),
        ("8/8/8/8/8/8/8/4K3 w - - 0 1", "0 kings of Black"),
        ("4k3/8/8/8/8/8/8/3KK3 w - - 0 1", "2 kings of White"),
        ("4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "pawn of White on h8"),
        ("4k3/8/8/8/8/8/8/p3K3 w - - 0 1", "pawn of Black on a1"),
        ("rnbqkbnr/pppppppp/pppp4/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "20 men of Black"),
        ("4k3/pppppppp/p7/8/8/8/8/4K3 w - - 0 1", "9 pawns of Black"),
        ("4k3/8/8/8/8/QQ6/PPPPPPPP/4K3 w - - 0 1", "1 promoted men of White beside 8 pawns"),
        ("knNnNnNn/nNnNnNnN/NnNnNnNn/nNnNnNnN/NnNnNnNn/nNnNnNnN/NnNnNnNn/KNnNnNnN w - - 0 0", "men of"),
        ("5k1r/2q3p1/p3p2p/1B3p1Q/n4P2/6P1/bbP2N1P/1K1RR3 b - - 0 1", "White is in check"),
        ("8/8/8/3kK3/8/8/8/8 w - - 0 1", "Black is in check"),
    ],
)
def test_what_is_no_position_is_refused_in_one_sentence(fen: str, wrong: str) -> None:
    with pytest.raises(RulesError) as caught:
        parse(fen)
    assert wrong in str(caught.value)
    assert "\n" not in str(caught.value)


def test_chess960_is_over_when_nobody_may_castle() -> None:
    """The text then is that of ordinary chess, and so is the position that it leads back to."""
    position = parse("4k3/8/8/8/8/8/8/1R2K3 w - - 0 1")
    assert position.state & 2 == 0
    assert parse("4k3/8/8/8/8/8/8/1R2K3 w B - 0 1").state & 2 != 0


def test_the_verdicts_on_positions_of_bug_reports(data_file: Callable[[str], Path]) -> None:
    """What is legal is read, what is not is refused; what else a line may hold is for the reader of EPD files."""
    lines = data_file("chess/odd/mixed_verdicts.expected.jsonl").read_text().splitlines()
    compared = 0
    for verdict in map(json.loads, lines):
        line = verdict["text"]
        if verdict["verdict"] in ("illegal", "syntax"):
            with pytest.raises(RulesError):
                parse(line)
        elif verdict["verdict"] in ("ok", "terminal") and len(line.split()) <= 6 and ";" not in line:
            assert parse(text(parse(line))) == parse(line)
        else:
            continue
        compared += 1
    assert compared > 25
