"""Mutated inputs through each reader: no exception but ours, no hang, a row for each line that says something."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import chess
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.batch.readers import read_rows
from cluster.batch.rows import InputError, InputRow, ReadOptions
from search.rules import Game

BLANKS = " \t\v\f\r\n\0\x1a\x1c\x1d\x1e\x1f\x85\xa0\ufeff"
FEN = "r3k2r/pppq1ppp/2n2n2/3pp3/3PP3/2N2N2/PPPQ1PPP/R3K2R w KQkq - 4 9"


MARKS = (
    b"\xff\xfe",
    b"\xfe\xff",
    b"\0\0\xfe\xff",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"BZh",
    b"PK",
    b"7z",
    b"PAR1",
    b"\xfd7zXZ",
)
"""Beginnings that make other things than UTF-8 of a file; hypothesis finds them."""


class Sample(NamedTuple):
    """A small input."""

    game: str
    content: bytes
    shortest: int
    """Where a header ends: mutations leave it alone."""
    has_comments: bool


SAMPLES = {
    "epd": Sample(
        "chess",
        f'# suite\n{FEN}\n{FEN[:-4]} bm O-O dxe5, Bb5+; id "a; b"; acd 5; c0 "x";\r\n\n{FEN} moves e1c1 e8g8; bm #-3;\n'
        "8/8/8/8/8/6k1/6p1/6K1 w -\nrnbqkbnr/ppp2ppp/8/3Pp3/8/8/PPPP1PPP/RNBQKBNR w KQkq e6 pv dxe6 fxe6 d4;".encode(),
        0,
        True,
    ),
    "pgn": Sample(
        "chess",
        f'[Event "A"]\n[FEN "{FEN}"]\n\n9. O-O-O $1 {{why {{not}} so}} O-O (9... 0-0-0 10. -- (10. d5) Kb8)\n'
        '10.dxe5 ; rest\n Nxe5 1-0\n\n[Event "B"]\n\n[Event "C"]\n[Variant "chess 960"]\n\n1. e4 Z0 *\n'
        "1. d4 d5\n1. c4 *"
        .encode(),
        0,
        False,
    ),
    "jsonl": Sample(
        "chess",
        "\n".join(
            json.dumps(record)
            for record in (
                {"id": "1", "fen": FEN, "bm": ["O-O"], "depth": 3},
                {"position": FEN, "moves": "e1g1 e8c8", "am": "Rfe1", "time_s": 0.5, "dm": -3, "priority": 1},
            )
        ).encode(),
        0,
        False,
    ),
    "csv": Sample(
        "chess", f'id,fen,bm,moves,nodes\n1,{FEN},"O-O, d5",,100\n"a ""b""",{FEN},,"e1g1",\n'.encode(), 22, False
    ),
    "moves": Sample("connect_four", b"# Pons\n2252576253462244 -1\n4453 2\n\n455714637617614767 0\n", 0, True),
    "fen": Sample("kalah", b"# rows\n4,4,4,4,4,4,0/4,4,4,4,4,4,0 s\n0,0,1,4,4,4,9/4,4,4,4,4,4,0 n\n", 0, True),
}  # fmt: skip

INTERESTING = st.sampled_from(
    [
        *(bytes([code]) for code in b'\0\t\n\r"#%()*,-/;=[\\]{}'),
        *(b"\r\n", b"--", b"0000", b"1-0", b"1. ", b"e1g1 ", b" bm ", b" moves ", b"[FEN ", b'[X "y"]'),
        *(
            b"\xff",
            b"\xe4",
            b"\xc3\xa4",
            b"\xef\xbb\xbf",
            b"\xed\xa0\x80",
            b"\\ud800",
            b"9" * 30,
            b"K" * 40,
            b"\x80" * 70,
        ),
    ]
)


@st.composite
def mutations(draw: st.DrawFn, sample: Sample) -> bytes:
    """Return the content of a sample after some cuts, copies and insertions."""
    content = bytearray(sample.content)
    for _ in range(draw(st.integers(1, 6))):
        first = draw(st.integers(sample.shortest, len(content)))
        last = draw(st.integers(first, min(len(content), first + 20)))
        content[first:last] = draw(
            st.one_of(INTERESTING, st.binary(max_size=4), st.just(bytes(content[first:last] * 2)))
        )
    return bytes(content)


def lines_that_say_something(content: bytes, has_comments: bool) -> list[int]:
    """Return the numbers of the lines that are neither blank nor comments."""
    numbers = []
    for number, line in enumerate(re.split(rb"\r\n|\r|\n", content), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("latin-1")
        text = text.strip(BLANKS)
        if text and not (has_comments and text[0] == "#"):
            numbers.append(number)
    return numbers


@cache
def scratch(folder: Path) -> Path:
    return folder / "input"


def check(row: InputRow, game: Game) -> None:
    """Check what every row promises: a position that the game accepts, and legal moves; or a short reason."""
    if row.error is not None:
        assert 0 < len(row.error) <= 200
        assert len(row.position) <= 200
        return
    position = game.parse(row.position)
    json.dumps(row).encode()
    (row.row_id or "").encode()
    if game.label != "chess":
        return
    board = chess.Board(game.text(position), chess960=True)
    for move in row.moves:
        board.push(board.parse_uci(move))
    for move in (*row.expectation.best_moves, *row.expectation.avoid_moves):
        assert board.parse_uci(move)


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_inputs(name: str, data: st.DataObject, load: Callable[[str], Game], tmp_path: Path) -> None:
    sample = SAMPLES[name]
    content = data.draw(mutations(sample))
    game = load(sample.game)
    path = scratch(tmp_path)
    path.write_bytes(content)
    try:
        rows = list(read_rows([str(path)], game, ReadOptions(format=name)))
    except InputError:
        # The line of names may have got something more at its end.
        assert name == "csv" or content.startswith(MARKS)
        return
    for index, row in enumerate(rows):
        assert row.index == index
        check(row, game)
    if name != "pgn" and not content.startswith(MARKS):
        expected = lines_that_say_something(content, sample.has_comments)
        assert [row.line for row in rows] == expected[1 if name == "csv" else 0 :]


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=200), name=st.sampled_from(["x", "x.pgn", "x.epd", "x.jsonl", "x.csv", "x.gz", "x.zst"])
)
def test_any_bytes(content: bytes, name: str, load: Callable[[str], Game], tmp_path: Path) -> None:
    path = tmp_path / name
    marks = {"x.gz": b"\x1f\x8b\x08\0", "x.zst": b"\x28\xb5\x2f\xfd"}
    path.write_bytes(marks.get(name, b"") + content)
    refusal, rows = name, []
    try:
        rows = list(read_rows([str(path)], load("chess")))
    except InputError as error:
        # A line of names without the position's, or the mark of another packer.
        refusal = str(error)
    assert name in refusal
    assert [row.index for row in rows] == list(range(len(rows)))
