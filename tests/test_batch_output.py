"""What a batch writes: formats, journal, and going on at any byte that a run was killed at."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import chess
import chess.pgn
import pyarrow.parquet
import pytest
from conftest import silent

from cluster.batch import parquet_writer
from cluster.batch.jobs import Answer, Status, pack_answer, unpack_answer, unpack_answers
from cluster.batch.journal import Checkpoint, Journal, JournalError, JournalledAnswer
from cluster.batch.results import FIELDS, ResultRow
from cluster.batch.rows import InputError, ReadOptions
from cluster.batch.run import Run, RunRequest, resume_command
from cluster.batch.settings import RunSettings
from cluster.batch.summary import Summary
from cluster.batch.writers import Format, FormatError, format_of, make_writer
from cluster.findings import Findings, PlayedMove
from cluster.records import RecordError
from cluster.request import SearchRequest
from cluster.session import open_session
from search.game_files import load_game
from search.limits import Limits
from tt_store.errors import RootsplitError

LINES = ["4", "44", "4x", "4", "123", "321", "1212121", "12", "21", "7", "77", "111", "4"]
SETTINGS = RunSettings(Limits(depth=4), table_mb=0.1, is_deterministic=True)
FENS = [
    '4k3/8/8/8/8/8/8/R3K2R w KQ - bm Ra8+; id "rooks";',
    "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - bm #1;",
    "not a position at all",
    "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
]


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., RunRequest]:
    """Return a function that makes a request for a small file of Connect Four."""
    source = tmp_path / "in.moves"
    source.write_text("\n".join(LINES) + "\n")

    def make(name: str = "out.jsonl", **options: Any) -> RunRequest:
        output = tmp_path / name
        defaults: dict[str, Any] = {"game": "connect_four", "settings": SETTINGS, "workers": 2}
        return RunRequest(
            inputs=options.pop("inputs", (str(source),)), output=output, format=format_of(output, None),
            **(defaults | options),
        )  # fmt: skip

    return make


def done(request: RunRequest) -> Summary:
    with Run(request, silent) as run:
        return run.execute()


# Formats.


def test_json_lines_and_csv_hold_the_same(request_for: Callable[..., RunRequest]) -> None:
    summary = done(request_for())
    assert summary.is_complete
    assert summary.tally.as_json() | {"nodes": 0, "search_s": 0.0} == {
        "rows": 13, "over": 1, "searched": 8, "duplicates": 3, "scored": 0, "solved": 0, "nodes": 0, "search_s": 0.0,
        "errors": {"unreadable": 1},
    }  # fmt: skip
    done(request_for("out.csv"))
    objects = [json.loads(line) for line in request_for().output.read_text().splitlines()]
    table = list(csv.DictReader(io.StringIO(request_for("out.csv").output.read_text())))
    assert [row["index"] for row in objects] == list(range(13))
    assert tuple(objects[0]) == tuple(table[0]) == FIELDS
    for mine, its in zip(objects, table, strict=True):
        for field in ("index", "line", "position", "status", "best_move", "score", "nodes", "duplicate_of", "reason"):
            assert ("" if mine[field] is None else str(mine[field])) == its[field]
        assert " ".join(mine["pv"]) == its["pv"]


def test_parquet_holds_the_same_in_whole_parts(
    request_for: Callable[..., RunRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_writer, "PART_ROWS", 5)
    done(request_for())
    done(request_for("out.parquet"))
    folder = request_for("out.parquet").output
    assert sorted(path.name for path in folder.iterdir()) == [f"part-{number:06}.parquet" for number in range(3)]
    objects = [json.loads(line) for line in request_for().output.read_text().splitlines()]
    assert pyarrow.parquet.read_table(folder).to_pylist() == objects
    # Whole: nothing is left to do. A foreign file among the parts is nobody's to go on with.
    assert done(request_for("out.parquet")).new_rows == 0
    (folder / "part-000001.parquet").rename(folder / "part-000007.parquet")
    with pytest.raises(JournalError, match="is not what this run wrote"):
        done(request_for("out.parquet"))


@pytest.mark.slow
def test_epd_and_pgn_are_read_back_by_python_chess(request_for: Callable[..., RunRequest], tmp_path: Path) -> None:
    source = tmp_path / "in.epd"
    source.write_text("\n".join(FENS) + "\n")
    for name in ("out.epd", "out.pgn"):
        options = {"inputs": (str(source),), "game": "chess", "settings": RunSettings(Limits(depth=3), table_mb=0.1)}
        summary = done(request_for(name, **options))
        assert (summary.tally.rows, summary.tally.failed, summary.tally.over) == (4, 1, 1)
    lines = request_for("out.epd").output.read_text().splitlines()
    board = chess.Board()
    operations = board.set_epd(lines[0])
    assert set(operations) >= {"acd", "acn", "bm", "pv", "id"}
    assert ("ce" in operations) != ("dm" in operations)
    assert operations["bm"] == operations["pv"][:1]
    assert operations["acd"] == 3
    assert board.set_epd(lines[1])["dm"] == 1
    assert lines[2].startswith("# ")
    assert "in.epd:3: " in lines[2]
    assert "the game is over" in board.set_epd(lines[3])["c0"]
    with request_for("out.pgn").output.open() as file:
        games = list(iter(lambda: chess.pgn.read_game(file), None))
    assert [len(game.errors) for game in games] == [0] * 4
    assert [game.headers["RootsplitRows"] for game in games] == ["0-0", "1-1", "2-2", "3-3"]
    mate = games[1]
    score = mate.eval()
    assert score is not None
    assert score.white() == chess.engine.Mate(1)
    assert mate.end().board().is_checkmate()
    assert "RootsplitError" in games[2].headers


@pytest.mark.slow
def test_the_positions_of_a_game_become_one_annotated_game(
    request_for: Callable[..., RunRequest], tmp_path: Path
) -> None:
    source = tmp_path / "in.pgn"
    source.write_text('[Event "one"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 *\n\n[Event "two"]\n\n1. d4 d5 *\n')
    options = {"inputs": (str(source),), "game": "chess", "settings": RunSettings(Limits(depth=2), table_mb=0.1)}
    summary = done(request_for("out.pgn", **options, reading=ReadOptions(every=2)))
    with request_for("out.pgn").output.open() as file:
        first, second = list(iter(lambda: chess.pgn.read_game(file), None))
    assert [move.uci() for move in first.mainline_moves()] == ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6"]
    assert summary.tally.rows == 4 + 2
    assert [node.eval() is not None for node in first.mainline()] == [False, True] * 3
    assert second.eval() is not None


@pytest.mark.parametrize(
    ("name", "kind", "game", "is_ordered", "match"),
    [
        ("out.epd", None, "connect_four", True, "EPD holds chess, not connect_four"),
        ("out.pgn", None, "chess", False, "leave out --unordered"),
        ("out.jsonl", "xml", "chess", True, "unknown format 'xml'"),
    ],
)
def test_formats_that_do_not_fit_are_refused(
    name: str, kind: str | None, game: str, is_ordered: bool, match: str
) -> None:
    with pytest.raises(FormatError, match=match):
        make_writer(Path(name), format_of(Path(name), kind), load_game(game), is_ordered)


def test_the_format_is_told_by_the_name() -> None:
    names = ["a.jsonl", "a.CSV", "a.parquet", "a.epd", "a.pgn", "a.txt", "a"]
    kinds = [format_of(Path(name), None) for name in names]
    assert kinds == [Format.JSONL, Format.CSV, Format.PARQUET, Format.EPD, Format.PGN, Format.JSONL, Format.JSONL]


def test_a_row_is_a_line_whatever_is_in_it(tmp_path: Path) -> None:
    row = blank_row(id='a "b"\nc\r,d', warnings=("x\ny", "ü"))
    for name in ("a.jsonl", "a.csv"):
        writer = make_writer(tmp_path / name, format_of(Path(name), None), load_game("connect_four"), True)
        assert list(writer.recover()) == []
        writer.add(row)
        writer.flush()
        writer.close()
        text = (tmp_path / name).read_text()
        assert text.count("\n") == 1 + (name == "a.csv")
    assert json.loads((tmp_path / "a.jsonl").read_text())["id"] == row.id
    (read,) = csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text()))
    assert read["id"] == 'a "b" c ,d'


def blank_row(**values: Any) -> ResultRow:
    defaults: dict[str, Any] = dict.fromkeys(FIELDS) | {
        "index": 0, "source": "s", "line": 1, "position": "4", "moves": (), "status": "ok", "pv": (), "lines": (),
        "settings": "", "warnings": (),
    }  # fmt: skip
    return ResultRow(**(defaults | values))


# What some algorithms tell beside a score.


class Asked(NamedTuple):
    """Two positions, of which the last one is finished, and how to search them."""

    game: str
    positions: tuple[str, str]
    limits: Limits
    algorithm: str | None
    told: frozenset[str]
    """The findings that the first row has."""


EXPECTED = frozenset({"expected_value"})
PLAYED = frozenset({"playouts", "win_rate", "root_moves"})
ASKED = {
    "max^n": Asked("tricolour:3x3", ("RG./.B./...", "RGB/RGB/RGR"), Limits(depth=6), None, frozenset({"values"})),
    "paranoid": Asked("tricolour:3x3", ("RG./.B./...", "RGB/RGB/RGR"), Limits(depth=6), "paranoid", frozenset()),
    "chance": Asked("einstein:3x3", ("AB./C.c/.ba r 1", ".c./a../..A b -"), Limits(depth=4), None, EXPECTED),
    "playouts": Asked("hex:3", ("c1", "c1a1b2b1b3"), Limits(nodes=40), None, PLAYED),
    "alpha-beta": Asked("connect_four", ("44", "1212121"), Limits(depth=4), None, frozenset()),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_rows_have_what_a_search_reports(asked: Asked, tmp_path: Path, torn_run: Callable[..., None]) -> None:
    """All formats hold it, under the names of `search --json`, and a run that was killed goes on with it."""
    (tmp_path / "in.csv").write_text("position\n" + "\n".join(asked.positions) + "\n")
    settings = RunSettings(asked.limits, 2, 1.0, is_deterministic=True, algorithm=asked.algorithm)
    whole, torn, table, parts = (
        RunRequest(
            asked.game, (str(tmp_path / "in.csv"),), tmp_path / name, settings, format_of(Path(name), None), workers=1
        )
        for name in ("whole.jsonl", "torn.jsonl", "out.csv", "out.parquet")
    )
    for request in (whole, table, parts):
        done(request)
    torn_run(torn, 1)
    torn.output.write_bytes(b"")
    done(torn)
    assert torn.output.read_bytes() == whole.output.read_bytes()
    rows = [json.loads(line) for line in whole.output.read_text().splitlines()]
    assert pyarrow.parquet.read_table(parts.output).to_pylist() == rows
    assert [row["status"] for row in rows] == ["ok", "over"]
    assert {name for name in Findings._fields if rows[0][name] is not None} == asked.told
    (first, second) = csv.DictReader(io.StringIO(table.output.read_text()))
    assert first["values"] == " ".join(str(value) for value in rows[0]["values"] or ())
    assert json.loads(first["root_moves"] or "null") == rows[0]["root_moves"]
    assert second["values"] == ("4 3 2" if "values" in asked.told else "")
    request = SearchRequest(asked.positions[0], (), asked.limits, multipv=2, algorithm=asked.algorithm)
    with open_session(asked.game, request, workers=1, table_mb=1.0, notice=silent) as session:
        report = json.loads(json.dumps(session.search(request).as_json()))
    names = [name for name in Findings._fields if name not in PLAYED]
    assert [rows[0][name] for name in names] == [report[name] for name in names]
    assert [line["values"] for line in rows[0]["lines"]] == [line["values"] for line in report["lines"]]
    if asked.told == PLAYED:
        moves = rows[0]["root_moves"]
        assert rows[0]["playouts"] == rows[0]["nodes"] == sum(move["visits"] for move in moves) == report["playouts"]
        assert (moves[0]["move"], moves[0]["win_rate"]) == (rows[0]["best_move"], rows[0]["win_rate"])
        assert {*moves[0]} == {*report["root_moves"][0]}


def test_findings_travel_and_forged_ones_are_refused() -> None:
    played = PlayedMove("c2", 7, 0.75, "win")
    whole = Findings((4, -3, 2), 0.5, 7, 0.75, "win", (played,))
    for findings in (Findings(), whole, Findings(values=(1,)), Findings(root_moves=())):
        assert unpack_answer(pack_answer(Answer(1, "ok", findings=findings))).findings == findings
    for forged in (
        whole._replace(values=(1.5,)), whole._replace(values="123"), whole._replace(expected_value=float("nan")),
        whole._replace(playouts=1.0), whole._replace(win_rate=1.5), whole._replace(proved="perhaps"),
        whole._replace(root_moves=(played._replace(visits="7"),)), whole._replace(root_moves=(("c2", 7, 0.75),)),
        whole._replace(root_moves=(played._replace(win_rate=float("nan")),)), whole[:-1],
    ):  # fmt: skip
        with pytest.raises(RecordError):
            unpack_answer(pack_answer(Answer(1, "ok", findings=forged)))


# The journal.


def test_a_journal_gives_back_what_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "j"
    answers = [Answer(number, "ok", best_move="4", score=number, pv=("4", "5")) for number in range(50)]
    with Journal.create(path, {"a": 1}) as journal:
        places = [journal.add_answer(1000 + answer.job_id, pack_answer(answer)) for answer in answers]
        journal.add_checkpoint({"rows": 7})
        assert unpack_answer(journal.answer(places[49])) == answers[49]
    reopened, fingerprint = Journal.open(path)
    with reopened as journal:
        assert fingerprint == {"a": 1}
        items = list(journal.recover())
        assert items == [JournalledAnswer(1000 + n, place) for n, place in enumerate(places)] + [
            Checkpoint({"rows": 7})
        ]
        assert [unpack_answer(journal.answer(place)) for place in places] == answers


def test_a_torn_journal_is_cut_at_any_byte(tmp_path: Path) -> None:
    path, torn = tmp_path / "j", tmp_path / "torn"
    with Journal.create(path, {}) as journal:
        places = [journal.add_answer(number + 1, b"x" * number) for number in range(8)]
    whole = path.read_bytes()
    for length in range(places[0], len(whole)):
        torn.write_bytes(whole[:length])
        journal, _ = Journal.open(torn)
        with journal:
            kept = [item.identity for item in journal.recover() if isinstance(item, JournalledAnswer)]
            # A frame has 17 bytes before its contents.
            assert kept == [n + 1 for n, place in enumerate(places) if place + 17 + n <= length]
            journal.add_answer(99, b"new")
        journal, _ = Journal.open(torn)
        with journal:
            assert len(list(journal.recover())) == len(kept) + 1


def test_a_damaged_frame_ends_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal.create(path, {}) as journal:
        places = [journal.add_answer(number + 1, b"some answer") for number in range(8)]
    content = bytearray(path.read_bytes())
    content[places[5] + 20] ^= 1
    path.write_bytes(content)
    journal, _ = Journal.open(path)
    with journal:
        assert len(list(journal.recover())) == 5


def test_journals_that_are_none_or_in_use_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal.create(path, {}):
        with pytest.raises(JournalError, match="another run is writing"):
            Journal.open(path)
        with pytest.raises(JournalError, match="cannot be made: File exists"):
            Journal.create(path, {})
    path.write_bytes(b"my diary")
    with pytest.raises(JournalError, match="no journal of rootsplit"):
        Journal.open(path)
    assert [each.name for each in tmp_path.iterdir()] == ["j"]


@pytest.mark.parametrize("message", [b"", b"\xc1", b"\x91\x01", pack_answer(Answer(1, "ok"))[:-1], b"\x93\x01\x02\x03"])
def test_damaged_answers_are_refused(message: bytes) -> None:
    with pytest.raises(RecordError):
        unpack_answer(message)
    with pytest.raises(RecordError):
        unpack_answers(message)


# Going on.


class KillError(Exception):
    """A kill."""


@pytest.fixture
def torn_run(request_for: Callable[..., RunRequest]) -> Callable[[RunRequest, int], None]:
    """Return a function that leaves a run as if it had been killed after so many rows were flushed."""

    def make(request: RunRequest, rows: int) -> None:
        with Run(request, silent) as run:
            writer, add = run._writer, run._writer.add
            count = 0

            def counted(row: ResultRow) -> None:
                nonlocal count
                add(row)
                count += 1
                if count == rows:
                    run._journal.flush()
                    writer.flush()
                    raise KillError

            writer.add = counted  # type: ignore[method-assign]
            run._flush = lambda *_args, **_options: None  # type: ignore[method-assign]
            with pytest.raises(KillError):
                run.execute()

    return make


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_a_run_goes_on_from_any_byte(name: str, request_for: Callable[..., RunRequest]) -> None:
    request = request_for(name)
    done(request)
    whole = request.output.read_bytes()
    journal = Path(f"{request.output}.journal")
    journal.unlink()
    request.output.unlink()
    with Run(request, silent) as run:
        run._finish = lambda _tally: None  # type: ignore[method-assign]
        run.execute()
    long_journal = journal.read_bytes()
    chance = random.Random(5)
    cuts = [0, 1, len(whole) - 1, len(whole), *(chance.randrange(len(whole)) for _ in range(12))]
    for cut in cuts:
        # The journal is always ahead of the output: only before the first row may it be torn anywhere.
        request.output.write_bytes(whole[:cut])
        journal.write_bytes(long_journal[: -chance.randrange(1, 200)] if cut < 2 else long_journal)
        summary = done(request)
        assert summary.is_complete
        assert request.output.read_bytes() == whole
        assert summary.tally.rows == len(LINES)
        assert summary.tally.as_json()["errors"] == {"unreadable": 1}
        assert (summary.tally.searched, summary.tally.duplicates, summary.tally.over) == (8, 3, 1)


def test_what_is_journalled_is_not_searched_again(
    request_for: Callable[..., RunRequest], torn_run: Callable[[RunRequest, int], None]
) -> None:
    done(request_for("whole.jsonl"))
    request = request_for()
    torn_run(request, 6)
    assert len(request.output.read_bytes().splitlines()) == 6
    journal, _ = Journal.open(Path(f"{request.output}.journal"))
    with journal:
        before = {item.identity for item in journal.recover() if isinstance(item, JournalledAnswer)}
    with Run(request, silent) as run:
        asked = []
        index, put = run._index, run._index.put
        index.put = lambda identity, place: (asked.append(identity), put(identity, place))  # type: ignore[method-assign]
        summary = run.execute()
    assert summary.kept_rows == 6
    assert not before & set(asked)
    assert len(before) + len(asked) == 8
    assert request.output.read_bytes() == request_for("whole.jsonl").output.read_bytes()


def test_without_order_a_run_goes_on_too(
    request_for: Callable[..., RunRequest], torn_run: Callable[[RunRequest, int], None]
) -> None:
    request = request_for(is_ordered=False)
    torn_run(request, 6)
    summary = done(request)
    rows = [json.loads(line)["index"] for line in request.output.read_text().splitlines()]
    assert sorted(rows) == list(range(len(LINES)))
    assert (summary.kept_rows, summary.tally.rows, summary.tally.failed) == (6, 13, 1)


def test_a_complete_run_has_nothing_left_to_do(request_for: Callable[..., RunRequest]) -> None:
    first = done(request_for())
    written = request_for().output.stat()
    again = done(request_for())
    assert (again.is_complete, again.new_rows, again.kept_rows) == (True, 0, 13)
    assert again.tally.as_json() == first.tally.as_json()
    assert request_for().output.stat() == written
    assert Path(f"{request_for().output}.journal").stat().st_size < 2000


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"settings": RunSettings(Limits(depth=5), table_mb=0.1, is_deterministic=True)}, "depth 4, and now it is 5"),
        ({"settings": RunSettings(Limits(depth=4), table_mb=0.1)}, "fresh on, and now it is off"),
        ({"reading": ReadOptions(every=3)}, "every 1, and now it is 3"),
        ({"is_ordered": False}, "input order on, and now it is off"),
    ],
)
def test_changed_settings_are_refused_by_name(
    change: dict[str, Any], match: str, request_for: Callable[..., RunRequest]
) -> None:
    done(request_for())
    before = request_for().output.read_bytes()
    with pytest.raises(JournalError, match=rf"was begun with {match}: give --restart"):
        done(request_for(**change))
    assert request_for().output.read_bytes() == before
    done(request_for(**change, restart=True))
    assert done(request_for(**change)).new_rows == 0


def test_a_changed_input_is_refused_and_named(request_for: Callable[..., RunRequest], tmp_path: Path) -> None:
    done(request_for())
    with (tmp_path / "in.moves").open("a") as file:
        file.write("5\n")
    with pytest.raises(JournalError, match=r"the input .*in\.moves of 43 bytes .*, and now it has 45 bytes"):
        done(request_for())
    (tmp_path / "other.moves").write_text("4\n")
    with pytest.raises(JournalError, match=r"in\.moves, and now the input is .*other\.moves"):
        done(request_for(inputs=(str(tmp_path / "other.moves"),)))
    assert done(request_for(restart=True)).tally.rows == 14


@pytest.mark.parametrize("restart", [False, True])
def test_a_foreign_file_is_never_overwritten(restart: bool, request_for: Callable[..., RunRequest]) -> None:
    output = request_for().output
    output.write_text("my thesis\n")
    with pytest.raises(JournalError, match="no run of ours has written it"):
        done(request_for(restart=restart))
    assert output.read_text() == "my thesis\n"
    assert not Path(f"{output}.journal").exists()


def test_an_output_that_was_exchanged_is_refused(request_for: Callable[..., RunRequest]) -> None:
    done(request_for())
    output = request_for().output
    lines = output.read_text().splitlines(keepends=True)
    for text, match in (("my thesis\n", "line 1, is not what"), ("".join(lines[1:]), "row 1 where row 0 belongs")):
        output.write_text(text)
        with pytest.raises(JournalError, match=match):
            done(request_for())
        assert output.read_text() == text


def test_an_input_that_is_not_there_is_refused(request_for: Callable[..., RunRequest], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.epd"):
        done(request_for(inputs=(str(tmp_path / "missing.epd"),)))
    with pytest.raises(RootsplitError, match="cannot be made: No such file"):
        done(request_for("no/such/folder.jsonl"))
    assert not list(tmp_path.glob("out*"))


def test_the_command_that_goes_on_is_the_one_that_began() -> None:
    words = ["analyse", "chess", "my file.epd", "-o", "out", "--restart", "--depth", "3"]
    assert resume_command(words) == "rootsplit analyse chess 'my file.epd' -o out --depth 3"


def test_status_texts_are_plain(request_for: Callable[..., RunRequest]) -> None:
    done(request_for())
    statuses = {json.loads(line)["status"] for line in request_for().output.read_text().splitlines()}
    assert statuses == {str(Status.OK), str(Status.ERROR), str(Status.OVER)}
