"""The readers of a batch: each kind of dirt that inputs have, the right outcome, and the position sets' counts."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import chess
import pyarrow
import pytest

from cluster.batch.readers import read_rows
from cluster.batch.rows import Expectation, InputError, InputRow, Overrides, ReadOptions
from cluster.batch.sources import MAX_LINE
from search.game_files import game_names
from search.rules import Game

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
FIELDS = START.removesuffix(" 0 1")
BARE = "8/8/4k3/8/8/3K4/8/8 w - - 0 1"

Read = Callable[..., list[InputRow]]


@pytest.fixture(scope="module")
def chess_game(load: Callable[[str], Game]) -> Game:
    return load("chess")


@pytest.fixture
def read(tmp_path: Path, chess_game: Game) -> Read:
    """Return a function that writes a file and reads its rows."""

    def run(
        content: str | bytes, name: str = "input.epd", game: Game = chess_game, **options: object
    ) -> list[InputRow]:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(read_rows([str(path)], game, ReadOptions(**options)))  # type: ignore[arg-type]

    return run


def one(rows: list[InputRow]) -> InputRow:
    assert len(rows) == 1
    return rows[0]


# Bytes to lines


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("is_ended", [True, False])
def test_line_ends_and_encodings(read: Read, end: str, encoding: str, is_ended: bool) -> None:
    text = f'{FIELDS} id "Läufer 1";{end}{end}{FIELDS} id "2";' + end * is_ended
    rows = read(text.encode(encoding))
    assert [(row.index, row.line, row.row_id, row.error) for row in rows] == [
        (0, 1, "Läufer 1", None),
        (1, 3, "2", None),
    ]


def test_latin1_is_told_line_by_line(read: Read) -> None:
    rows = read(f'{FIELDS} id "Läufer";\n'.encode("latin-1") + f'{FIELDS} id "Läufer";\n'.encode())
    assert [row.row_id for row in rows] == ["Läufer", "Läufer"]
    assert read(FIELDS.encode() + b' id "\x90";\n')[0].row_id == "\x90"


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_packed_by_content(read: Read, packer: str, frames: int, tic_tac_toe: Game) -> None:
    plain = b"X...O....\n" * 5000
    packed = gzip.compress(plain) if packer == "gzip" else pyarrow.compress(plain, codec="zstd", asbytes=True)
    assert len(read(packed * frames, "input.fen", tic_tac_toe)) == 5000 * frames


@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_damaged_packing_gives_one_error_row(read: Read, packer: str, tic_tac_toe: Game) -> None:
    plain = random.Random(1).randbytes(400_000).hex("\n", 30).encode()
    packed = gzip.compress(plain) if packer == "gzip" else pyarrow.compress(plain, codec="zstd", asbytes=True)
    rows = read(packed[: len(packed) * 4 // 5], "input.fen", tic_tac_toe)
    assert len(rows) > 100
    assert ["damaged" in (row.error or "") for row in rows] == [False] * (len(rows) - 1) + [True]
    assert "damaged" in (one(read(packed[:20], "x.pgn")).error or "")


def test_zeros_and_long_lines(read: Read) -> None:
    rows = read(f'{START}\0\n\0\0garbage\0\n\0\0\n{START} c0 "{"x" * 100_000}";\n{"8" * (MAX_LINE + 5)}\n{BARE}\x1a')
    assert [(row.line, row.error is None) for row in rows] == [(1, True), (2, False), (4, True), (5, False), (6, True)]
    assert rows[0].position == START
    assert "longer than" in (rows[3].error or "")
    assert all(len(row.position) < 250 and len(row.error or "") < 250 for row in rows)


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"BZh91AY", "bzip2"), (b"PK\x03\x04", "zip"), (bytes(range(256)) * 20, "not text")],
)
def test_what_is_not_text_is_refused_once(read: Read, content: bytes, word: str) -> None:
    with pytest.raises(InputError, match=word):
        read(content)


def test_files_are_checked_before_the_first_row(tmp_path: Path, chess_game: Game) -> None:
    good = tmp_path / "good.fen"
    good.write_text(START)
    for bad, word in ((str(tmp_path / "absent.epd"), "absent.epd"), (str(tmp_path), "folder"), ("a\0b", "cannot")):
        with pytest.raises(InputError, match=word):
            read_rows([str(good), bad], chess_game)
    rows = list(read_rows([str(good), str(good)], chess_game))
    assert [(row.index, row.source, row.line) for row in rows] == [(0, str(good), 1), (1, str(good), 1)]


def test_standard_input(chess_game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"\n{START}\n".encode())))
    row = one(list(read_rows(["-"], chess_game)))
    assert (row.source, row.line, row.position) == ("-", 2, START)
    assert sys.stdin.buffer.closed is False


def test_a_pipe_is_read_as_it_comes() -> None:
    """The first row is there before the second line is written."""
    program = (
        "from cluster.batch.readers import read_rows\n"
        "from search.game_files import load_game\n"
        "for row in read_rows(['-'], load_game('tic_tac_toe')): print(row.position, flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(2):
            child.stdin.write(b"X...O....\n")
            child.stdin.flush()
            assert child.stdout.readline() == b"X...O....\n"
        child.stdin.close()


# EPD and FEN


@pytest.mark.parametrize(
    ("line", "position"),
    [
        ("8/8/8/8/8/6k1/6p1/6K1 w", "8/8/8/8/8/6k1/6p1/6K1 w"),
        ("8/8/8/8/8/6k1/6p1/6K1 w -", "8/8/8/8/8/6k1/6p1/6K1 w -"),
        ("4k3/8/8/8/8/8/8/3K4 b - - 12 13", "4k3/8/8/8/8/8/8/3K4 b - - 12 13"),
        (f"{FIELDS} 0", f"{FIELDS} 0"),
        ("\t4k3/8/8/8/8/8/8/3K4\tb  -   -\t", "4k3/8/8/8/8/8/8/3K4 b - -"),
        ("position fen 4k3/8/8/8/8/8/8/3K4 b - -", "4k3/8/8/8/8/8/8/3K4 b - -"),
        ("4k3/8/8/8/8/8/8/3K4 b - - hmvc 12; fmvn 13;", "4k3/8/8/8/8/8/8/3K4 b - - 12 13"),
        ("startpos", "startpos"),
        (f"{START};", START),
        ("bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1;",
         "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1"),
        (f"{FIELDS} D1 20; D2 400; D3 8902;", FIELDS),
        ("8/8/4k3/8/8/3K4/8/8 w - - 0 1; class draw; bare kings", BARE),
        ("8/8/4k3/8/8/3K4/8/8 w acd 5;", "8/8/4k3/8/8/3K4/8/8 w"),
        ("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"),
    ],
)  # fmt: skip
def test_fields(read: Read, line: str, position: str) -> None:
    row = one(read(line))
    assert (row.position, row.error, row.warnings) == (position, None, ())


@pytest.mark.parametrize(
    ("line", "position"),
    [
        ("8/5k2/8/8/8/8/5K2/8 w - -2 44", "8/5k2/8/8/8/8/5K2/8 w - - 2 44"),
        ("8/5k2/8/8/8/8/5K2/8 w - - -", "8/5k2/8/8/8/8/5K2/8 w - -"),
        ("4k3/8/8/8/8/8/8/R3K3 w KQkq - 0 14", "4k3/8/8/8/8/8/8/R3K3 w Q - 0 14"),
        (f"{FIELDS.removesuffix('-')}e3 0 1", START),
        (f"{START} 7 8", START),
        (f"{FIELDS} zero one", FIELDS),
        ("8/R6p/p5pk/1p3r2/8/8/3r4/4RK2 w - - c0 \"bm Rg5;", "8/R6p/p5pk/1p3r2/8/8/3r4/4RK2 w - -"),
    ],
)  # fmt: skip
def test_repairs_are_said(read: Read, line: str, position: str) -> None:
    row = one(read(line))
    assert (row.position, row.error, len(row.warnings)) == (position, None, 1)


@pytest.mark.parametrize(
    "line",
    [
        "4k3/8/8/8/8/8/8/8 w - - 0 1",
        "5k1r/2q3p1/p3p2p/1B3p1Q/n4P2/6P1/bbP2N1P/1K1RR3 b - - 0 1",
        "rnbqkbnr/pppppppp/pppp4/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "rnbqkbn1/ppppppppr/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR K KQkq - 0 1",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP",
        "8/5k2/8/8/8/8/5K2/8 w - - -5 1",
        "hello have a nice day w - -0 1",
        "; no position",
        f"{START} moves e2e4 e2e4",
        f"{FIELDS} hmvc many;",
    ],
)
def test_bad_positions_are_error_rows(read: Read, line: str) -> None:
    rows = read(f"{START}\n# {line}\n{line}\n{START}\n")
    assert [(row.line, row.error is None) for row in rows] == [(1, True), (3, False), (4, True)]
    assert rows[1].position == line


@pytest.mark.parametrize(
    ("line", "row_id", "best", "avoid", "mate_in"),
    [
        ('r1bqk1r1/1p1p1n2/p1n2pN1/2p1b2Q/2P1Pp2/1PN5/PB4PP/R4RK1 w q - bm Rxf4; id "ERET 001";',
         "ERET 001", ("f1f4",), (), None),
        (f"{FIELDS} bm b1c3;", None, ("b1c3",), (), None),
        (f'{START} bm Nf3, d2-d4 ; id "a; b";', "a; b", ("g1f3", "d2d4"), (), None),
        (f"{FIELDS}  ; bm 1. Ng1-f3 + ! ; am h4 ? ; id WAC 7 unquoted", "WAC 7 unquoted", ("g1f3",), ("h2h4",), None),
        ("1B1K4/8/8/5B2/8/8/4k3/8 w - - bm #15;", None, (), (), 15),
        ("6Qk/PP1PP1np/1N1BN2P/7R/4B3/2Q5/P3KP2/6R1 b - - bm #-1;", None, (), (), -1),
        ("6k1/5ppp/8/8/8/8/8/R5K1 w - - bm Ra8#; dm 1; - id \"x\"; ce 32767; acn 9; acs 0; c1 diff=7",
         "x", ("a1a8",), (), 1),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - bm 0-0; am e1c1", None, ("e1g1",), ("e1c1",), None),
        ("r3k2r/8/8/8/8/8/8/R3K2R w HAha - bm e1g1 O-O", None, ("e1h1",), (), None),
        ("8/5P1k/8/8/8/8/8/K7 w - - bm f8 = Q f8N+;", None, ("f7f8q", "f7f8n"), (), None),
        (f'{FIELDS} id "say \\"mate\\"";', 'say "mate"', (), (), None),
    ],
)  # fmt: skip
def test_operations(
    read: Read, line: str, row_id: str | None, best: tuple[str, ...], avoid: tuple[str, ...], mate_in: int | None
) -> None:
    row = one(read(line))
    assert row.error is None
    assert (row.row_id, row.expectation) == (row_id, Expectation(best, avoid, None, mate_in))


def test_illegal_moves_are_left_out_of_the_expectation(read: Read) -> None:
    rows = read(f"{FIELDS} bm Nf3 Nf6;\n{FIELDS} bm Qh5; am e5;\n{FIELDS} pv e4 e5 N;\n{FIELDS} acd 9999;")
    assert [row.expectation for row in rows] == [Expectation(("g1f3",)), *[Expectation()] * 3]
    assert [len(row.warnings) for row in rows] == [1, 2, 1, 1]
    assert "Nf6" in rows[0].warnings[0]
    assert "move 3" in rows[2].warnings[0]
    assert all(row.error is None for row in rows)


def test_moves_and_depths(read: Read) -> None:
    rows = read(f"8/8/8/8/4p3/8/R2P3k/K7 w - - 0 37 moves d2d4 h2h3 a2a3 bm\n{FIELDS} acd 5; acs 0; bm e4;")
    assert rows[0].error is not None
    assert rows[1].overrides == Overrides(depth=5)
    played = one(read("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 4 1 moves e1h1 e8a8; bm Kg2;"))
    assert (played.moves, played.expectation.best_moves) == (("e1g1", "e8c8"), ("g1g2",))


def test_en_passant_survives_four_fields(read: Read, chess_game: Game) -> None:
    row = one(read("rnbqkbnr/ppp2ppp/8/3Pp3/8/8/PPPP1PPP/RNBQKBNR w KQkq e6 bm dxe6;"))
    assert row.expectation.best_moves == ("d5e6",)
    without = chess_game.parse(row.position.removesuffix("e6") + "-")
    assert chess_game.parse(row.position).key != without.key


def test_moves_past_the_fifty_move_rule_can_be_played_again(read: Read, chess_game: Game) -> None:
    """The line begins anew where a rule ends the game: the referee refuses to play on from there."""
    shuffle = "a1b1 h8g8 b1a1 g8h8 a1b1"
    row = one(read(f"7k/p7/8/8/8/8/8/K2R4 w - - 97 90 moves {shuffle} a7a6"))
    assert (row.error, row.position.split()[4], row.moves) == (None, "0", ())
    row = one(read(f"7k/p7/8/8/8/8/8/K2R4 w - - 97 90 moves {shuffle} a7a6 b1b2 h8g8"))
    board = chess.Board(row.position)
    for move in row.moves:
        assert board.halfmove_clock < 100
        board.push_uci(move)
    assert board.fen() == "6k1/8/p7/8/8/8/1K6/3R4 w - - 2 94"
    assert chess_game.text(chess_game.parse(row.position)) == row.position


# PGN


def test_games_are_neither_merged_nor_lost(read: Read) -> None:
    text = """
        [Event "A"]
        [White "White vs 1...c5"]
        [Opening "St. George (Baker) defense"]

        [Event "A"]
        [White "B"]

        [White "C"]
        [Black "Joe "Jim" Doe"]
        1. e4 (1. d4 {a variation) [White "x"]} d5 (1... c5)) e5 $1 2.Nf3! Nc6?! ; 3. Bb5
        % 3. a3
        3. Bc4 Bc5 4. 0-0 1-0 1. d4 d5 1/2-1/2
        1. c4 *
        1. f4 e5
        1. g4 {not closed

        [Event "next"] [Result "*"]

        *
        Nf3 Nf6 *
        """
    lines = [line.strip() for line in text.splitlines()]
    rows = read("\r\n".join(lines), "games.PGN", only_last=True)
    assert [(row.line, row.moves) for row in rows] == [
        (2, ()),
        (6, ()),
        (9, ("e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5", "e1g1")),
        (13, ("d2d4", "d7d5")),
        (14, ("c2c4",)),
        (15, ("f2f4", "e7e5")),
        (16, ("g2g4",)),
        (18, ()),
        (21, ("g1f3", "g8f6")),
    ]
    assert all(row.error is None for row in rows)
    assert rows[0].row_id == "White vs 1...c5 - ? (game 1) ply 0"
    assert rows[2].row_id == 'C - Joe "Jim" Doe (game 3) ply 7'
    assert [len(row.warnings) for row in rows] == [1, 1, 0, 0, 0, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("options", "plies"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"every": 2}, [0, 2, 4]),
        ({"first_ply": 2, "last_ply": 4}, [2, 3, 4]),
        ({"first_ply": 1, "every": 3}, [1, 4]),
        ({"first_ply": 9}, []),
        ({"only_last": True}, [5]),
    ],
)
def test_chosen_plies(read: Read, options: dict[str, object], plies: list[int]) -> None:
    rows = read('[White "A"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 *', "game.pgn", **options)
    assert [len(row.moves) for row in rows] == plies
    assert {row.line for row in rows} <= {1}
    assert all(row.position == START for row in rows)


def test_null_moves_begin_a_new_line(read: Read) -> None:
    rows = read("1. e4 -- 2. d4 Z0 3. e5 d5 4. exd6 *\n1. e4 e5 2. Qh5 Nc6 3. Qxf7+ -- *\n1. d4 *", "game.pgn")
    last = rows[7]
    assert (last.position.split()[:2], last.moves) == (
        ["rnbqkbnr/pppppppp/8/8/3PP3/8/PPP2PPP/RNBQKBNR", "w"],
        ("e4e5", "d7d5", "e5d6"),
    )
    assert last.warnings
    errors = [row for row in rows if row.error]
    assert [row.line for row in errors] == [2]
    assert "check" in (errors[0].error or "")
    assert rows[-1].moves == ("d2d4",)


def test_a_bad_move_ends_its_game_with_one_error_row(read: Read) -> None:
    text = '[White "A"]\n\n1. e4 e5\n2. Nf6 Nc6 *\n\n1. d4 *'
    rows = read(text, "game.pgn")
    assert [(row.line, row.error is None) for row in rows] == [(1, True)] * 3 + [(4, False)] + [(6, True)] * 2
    assert "Nf6" in (rows[3].error or "")
    assert [row.error is None for row in read(text, "game.pgn", only_last=True)] == [False, True]


@pytest.mark.parametrize("tag", ['[FEN "{}"]', '[FEN "{}\r"]', '[SetUp "1"]\n[FEN "{}"]', '[FEN "{}"] [SetUp "0"]'])
def test_fen_tags(read: Read, tag: str) -> None:
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 15"
    rows = read(f'[White "A"]\r\n{tag.format(fen)}\r\n\r\n15. e4 *\r\n', "game.pgn")
    assert [(row.position, row.moves) for row in rows] == [(fen, ()), (fen, ("e2e4",))]


def test_chess960_and_other_variants(read: Read) -> None:
    fen = "nn1rkq1b/ppp1p1rP/8/2Np4/3P4/2P5/bP3PPP/2BRKQRB b KQq - 1 8"
    rows = read(f'[Variant "chess 960"]\n[FEN "{fen}"]\n\n8... O-O-O *\n', "game.pgn")
    assert rows[-1].moves == ("e8d8",)
    rows = read('[Variant "Atomic"]\n\n1. e4 *\n\n[Variant "Standard"]\n\n1. e4 *', "game.pgn", only_last=True)
    assert [row.error is None for row in rows] == [False, True]


def test_nested_comments(read: Read) -> None:
    rows = read("1. e4 {one {two} d5 --three d4 } e5 {an { open one} 2. Nf3 *", "game.pgn", only_last=True)
    assert one(rows).moves == ("e2e4", "e7e5", "g1f3")


# Tables


def test_jsonl(read: Read) -> None:
    records = [
        {"id": "a", "fen": START, "bm": ["Nf3", "e2e4"], "depth": 7, "other": [1]},
        {"id": 7, "Position": FIELDS, "moves": "e4 e7e5", "am": "Nf3, d4", "time_s": 0.5, "multipv": 3, "priority": -1},
        {"fen": f'{FIELDS} bm e4; id "inner"; acd 3;', "nodes": 1000, "bm": "#3", "mate": 2},
        {"fen": ""},
        {"fen": START, "depth": "deep"},
        {"fen": START, "time_s": -1},
        {"fen": START, "moves": ["e2e5"]},
        {"fen": [START]},
        [START],
    ]
    text = "\n".join(json.dumps(record) for record in records) + '\n{"fen": \n' + "[" * 100_000 + '\n{"fen": 1e999}\n'
    rows = read(text, "in.jsonl")
    assert [row.error is None for row in rows] == [True] * 3 + [False] * 9
    first, second, third = rows[:3]
    assert (first.row_id, first.expectation) == ("a", Expectation(("g1f3", "e2e4")))
    assert first.overrides == Overrides(depth=7)
    assert (second.row_id, second.moves) == ("7", ("e2e4", "e7e5"))
    assert second.expectation == Expectation(avoid_moves=("g1f3", "d2d4"))
    assert second.overrides == Overrides(time_s=0.5, multipv=3, priority=-1)
    assert third.row_id == "inner"
    assert third.expectation == Expectation((), mate_in=3)
    assert third.overrides == Overrides(depth=3, nodes=1000, mate=2)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv(read: Read, delimiter: str) -> None:
    rows = [["Id", "Nodes", "FEN", "bm"], ["", "5", START, "e4"], ['"a""b"', "", f'"{BARE}"', ""], ["x", "1"]]
    text = "\r\n".join(delimiter.join(row) for row in rows) + f'\r\n\r\n"{BARE}\r\n1{delimiter * 5}'
    first, second, *bad = read(text, "in.csv")
    assert (first.line, first.position, first.row_id) == (2, START, None)
    assert (first.overrides, first.expectation) == (Overrides(nodes=5), Expectation(("e2e4",)))
    assert (second.row_id, second.position) == ('a"b', BARE)
    assert [(row.line, row.error is None) for row in bad] == [(4, False), (6, False), (7, False)]


def test_position_column(read: Read) -> None:
    rows = read(f"board,fen\n{START},nonsense\n", "in.csv", position_column="Board")
    assert one(rows).position == START
    with pytest.raises(InputError, match=r"in\.csv has no column named position or fen"):
        read(f"board\n{START}\n", "in.csv")


# Other games


def test_move_lists(read: Read, connect_four: Game) -> None:
    text = "# Pons\n\n44 2\n4453\n455714637617614767242476316455122212535333 0\n1212121\n" + "\n".join(
        ("1111111", "128", "40", "4x", "12121212 3", "44 99", "44 5 6")
    )
    rows = read(text, "Test_L9_R9", connect_four)
    assert [(row.line, row.error is None) for row in rows] == [
        *((line, True) for line in (3, 4, 5, 6)),
        *((line, False) for line in range(7, 14)),
    ]
    assert [row.expectation.score for row in rows[:4]] == [2, None, 0, None]
    assert rows[1].position == "4453"


def test_tables_of_other_games(read: Read, connect_four: Game) -> None:
    text = (
        '{"moves": 226744515337, "score": 7, "bm": "4"}\n{"position": "44", "moves": "5 8"}\n{"moves": "44", "bm": 9}'
    )
    known, bad, illegal = read(text, "in.jsonl", connect_four)
    assert (known.position, known.expectation) == ("226744515337", Expectation(("4",), score=7))
    assert bad.error is not None
    assert (illegal.error, illegal.expectation, len(illegal.warnings)) == (None, Expectation(), 1)
    played = one(read("position;moves\n44;3,5\n", "in.csv", connect_four))
    assert (played.position, played.moves) == ("44", ("3", "5"))


def test_a_position_a_line_for_any_game(read: Read, kalah: Game, tic_tac_toe: Game) -> None:
    rows = read(f"# sowing\n{kalah.start_text}\nnonsense\n", "in.txt", kalah)
    assert [row.error is None for row in rows] == [True, False]
    assert one(read("X...O....", "in.fen", tic_tac_toe)).position == "X...O...."


def test_obf(read: Read, tic_tac_toe: Game) -> None:
    """Read of boards of another game: the reader asks the game what a board and a move are."""
    game = dataclasses.replace(tic_tac_toe, name="othello")
    text = "X...O....; 3:+10; 7:+10; 2:-4;\nX...O....; 1:+6; junk\nXOXXOXOXO;over:-2; plain:-1\nX...O.... ; pass;\nX;"
    rows = read(text, "in.obf", game)
    assert [row.expectation for row in rows] == [
        Expectation(("3", "7"), score=10), Expectation(score=6), Expectation(score=-2), Expectation(), Expectation(),
    ]  # fmt: skip
    assert [len(row.warnings) for row in rows] == [0, 2, 0, 0, 0]
    assert [row.error is None for row in rows] == [True] * 4 + [False]


# The choice of a format


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("x", START, 1),
        ("x", '[Event "A"]\n\n1. e4 *', 2),
        ("x", "\n1.e4 *", 2),
        ("x", '# a comment\n{"fen": "start"}', 2),
        ("x", f"id,fen\n1,{START}", 1),
        ("x.pgn.gz", "1. e4 e5 *", 3),
        ("x.epd.zst", START, 1),
    ],
)
def test_format_by_name_and_content(read: Read, name: str, content: str, rows: int) -> None:
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    if name.endswith(".zst"):
        packed = pyarrow.compress(packed, codec="zstd", asbytes=True)
    assert len(read(packed, name)) == rows


def test_formats_belong_to_games(read: Read, connect_four: Game) -> None:
    assert len(read("1. e4 *", "x.epd", format="pgn")) == 2
    with pytest.raises(InputError, match=r"x\.pgn is read as pgn, which is for chess"):
        read("1. e4 *", "x.pgn", connect_four)
    for options in ({"format": "xml"}, {"every": 0}, {"first_ply": -1}, {"first_ply": 3, "last_ply": 2}):
        with pytest.raises(InputError):
            ReadOptions(**options)  # type: ignore[arg-type]


def test_empty_inputs(read: Read, connect_four: Game) -> None:
    for name in ("x.epd", "x.pgn", "x.jsonl", "x.csv", "x"):
        assert read(b"", name) == []
        assert read(b"\n \n\0\n", name) == []
    assert read("# nothing\n", "x", connect_four) == []


def test_memory_does_not_grow(tmp_path: Path, tic_tac_toe: Game, chess_game: Game) -> None:
    import tracemalloc

    plain, pgn = tmp_path / "x.fen", tmp_path / "x.pgn"
    plain.write_text("X...O....\n" * 4_000)
    pgn.write_text("1. e4 *\n" * 400)
    for path, game, count in ((plain, tic_tac_toe, 4_000), (pgn, chess_game, 800)):
        rows = read_rows([str(path)], game)
        for _ in range(200):
            next(rows)
        tracemalloc.start()
        assert sum(1 for _ in rows) == count - 200
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 500_000


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "line",
    [
        f"{FIELDS} bm {' ' * 100_000}",
        f"{FIELDS} bm e4 {'=' * 100_000} {'9' * 100_000}",
        f"{FIELDS} c0 " + '"' + '\\"' * 100_000,
        f"{FIELDS} c0 " + "\\" * 100_001,
        f"{FIELDS} {'- ' * 100_000} bm e4;",
        "[A " + " " * 100_000 + "x",
        "[A " + '"' + '\\"' * 100_000,
        '[A "b"]' * 30_000,
        "1. e4 {" + "{" * 100_000,
        "1. e4 " + "e5 " * 100_000,
        "}" * 100_000,
        "(" * 100_000,
        "9" * 100_000,
        f"[FEN {FIELDS}{' ' * 100_000}",
    ],
)  # fmt: skip
def test_no_line_takes_for_ever(read: Read, line: str) -> None:
    for name in ("x.epd", "x.pgn", "x.jsonl"):
        assert all(row.error or len(row.position) < 250 for row in read(f"{line}\n{line}", name, only_last=True))


# The position sets


@pytest.mark.parametrize(
    ("name", "count", "errors"),
    [
        ("odd/benchmark_900_dirty.epd", 948, 0), ("odd/cr_only_mac.epd", 3, 0), ("odd/crlf.epd", 3, 0),
        ("odd/empty.epd", 0, 0), ("odd/gzipped.epd.gz", 3, 0), ("odd/latin1_id.epd", 2, 0),
        ("odd/no_final_newline.epd", 3, 0), ("odd/nul_bytes.epd", 3, 1), ("odd/only_comments.epd", 0, 0),
        ("odd/tabs_and_spaces.epd", 2, 0), ("odd/utf16le_bom.epd", 3, 0), ("odd/utf8_bom.epd", 3, 0),
        ("odd/very_long_line.epd", 2, 0), ("epd/eret111.epd", 111, 0), ("epd/lct2.epd", 35, 0),
        ("epd/wac300.epd", 300, 0), ("epd/wac_with_acd_ce_pv.epd", 299, 0), ("mate/mate1.fen", 8, 0),
        ("perft/perftsuite.epd", 126, 0), ("special/fortresses.epd", 169, 3), ("special/terminal_bench.epd", 148, 0),
        ("special/threefold.epd", 4, 0), ("special/zugzwang_ts.epd", 30, 0), ("special/known_truth.jsonl", 39, 0),
    ],
)  # fmt: skip
def test_counts_of_lines(
    data_file: Callable[[str], Path], chess_game: Game, name: str, count: int, errors: int
) -> None:
    rows = list(read_rows([str(data_file(f"chess/{name}"))], chess_game))
    assert (len(rows), sum(row.error is not None for row in rows)) == (count, errors)
    assert [row.index for row in rows] == list(range(count))
    if "dirty" in name:
        assert len({row.position for row in rows}) == 800
        assert all(len(row.expectation.best_moves) == 1 for row in rows)
    if "acd" in name:
        assert [row.line for row in rows if row.warnings] == [114, 183, 207]


@pytest.mark.parametrize(
    ("name", "games"),
    [
        ("pgn/fischer_pgnextract.pgn", 34), ("pgn/lichess_10k.pgn", 5), ("pgn/uzchesscup.pgn", 45),
        ("mate/MATE-POS.pgn", 67), ("pgn_odd/chess960_games.pgn", 5), ("pgn_odd/movetext_only_8games.pgn", 8),
        ("pgn_odd/pe_nested-comment.pgn", 1), ("pgn_odd/pe_test-allownullmoves.pgn", 2),
        ("pgn_odd/pe_test-fifty.pgn", 2), ("pgn_odd/pe_test-notags.pgn", 1),
        ("pgn_odd/pe_test-promotion-in.pgn", 8), ("pgn_odd/pe_test-repetition.pgn", 12),
        ("pgn_odd/pe_test-setup-in.pgn", 2), ("pgn_odd/uci-moves.pgn", 1), ("pgn_odd/utf8-bom.pgn", 2),
    ],
)  # fmt: skip
def test_counts_of_games(data_file: Callable[[str], Path], chess_game: Game, name: str, games: int) -> None:
    path = str(data_file(f"chess/{name}"))
    rows = list(read_rows([path], chess_game, ReadOptions(only_last=True)))
    assert len(rows) == games
    assert all(row.error is None for row in rows)
    for row in rows:
        board = chess.Board(row.position, chess960="960" in name)
        for move in row.moves:
            board.push_uci(move)


def test_verdicts(data_file: Callable[[str], Path], chess_game: Game) -> None:
    rows = list(read_rows([str(data_file("chess/odd/mixed_verdicts.epd"))], chess_game))
    lines = data_file("chess/odd/mixed_verdicts.expected.jsonl").read_text().splitlines()
    assert len(rows) == len(lines) == 49
    for row, expected in zip(rows, map(json.loads, lines), strict=True):
        is_bad = expected["verdict"] in ("illegal", "syntax")
        assert (row.line, row.error is not None) == (expected["line"], is_bad), expected


@pytest.mark.parametrize("name", ["Test_L3_R1", "Test_L1_R1"])
def test_connect_four_sets(data_file: Callable[[str], Path], connect_four: Game, name: str) -> None:
    rows = list(read_rows([str(data_file(f"connect4/{name}"))], connect_four))
    assert len(rows) == 1000
    assert all(row.error is None and row.expectation.score is not None for row in rows)


def test_othello_sets(data_file: Callable[[str], Path], load: Callable[[str], Game]) -> None:
    if "othello" not in game_names():
        pytest.skip("there is no game of Othello")
    rows = list(read_rows([str(data_file("othello/ffo_1-19.obf"))], load("othello")))
    assert [row.expectation.score for row in rows] == [
        18, 10, 2, 0, 32, 14, 8, 8, -8, 10, 30, -8, 14, 18, 4, 24, 8, -2, 8,
    ]  # fmt: skip
    assert not any(row.error or row.warnings for row in rows)
    rows = list(read_rows([str(data_file("othello/pass_and_over.obf"))], load("othello")))
    assert sum(row.expectation.best_moves == ("pass",) for row in rows) == 20
    assert not any(row.error for row in rows)
