"""Checkpoints: a search goes on where it was, to the same answer; what is not its checkpoint is refused."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest
from conftest import MakeExecutor, silent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import wait_until

from cluster import checkpoint
from cluster.checkpoint import Checkpoint, CheckpointError, Identity
from cluster.checkpointer import CheckpointFile
from cluster.executor import SerialExecutor
from cluster.fingerprint import Fingerprint
from cluster.request import SearchRequest
from cluster.session import Session
from search.flags import Flags
from search.limits import Limits
from search.results import Iteration, RootLine
from search.rules import Game
from search.statistics import Statistics
from tt_store.deepest import deepest
from tt_store.exchange import deliver, unpack
from tt_store.segment import Segment

EXACT = Flags(exact_depth=True)
SOLVED = "226744515337"
IDENTITY = Identity("nim", (7, 1 << 63), (-5, 6), 0, (1, 0), 1, (), Fingerprint("aa", "bb"))
ITERATIONS = tuple(
    Iteration(
        depth, (RootLine(10 * depth, (3, 4), False),), Statistics(*range(len(Statistics._fields))), 0.5 * depth, 0
    )
    for depth in (1, 2, 3)
)


def session(game: Game, table_mb: float = 1.0) -> Session:
    return Session(game, SerialExecutor(game, 2, table_mb, flags=EXACT, notice=silent), table_mb, silent)


def ask(text: str = "4453", depth: int = 10, **fields: Any) -> SearchRequest:
    return SearchRequest(text, limits=Limits(depth=depth), **fields)


# The file.


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "search.rcp"
    saved = Checkpoint(IDENTITY, ITERATIONS, ())
    checkpoint.save(saved, path)
    assert checkpoint.load(path, IDENTITY) == saved
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("game", "chess", "another game"),
        ("position", (7, 2), "another position"),
        ("history", (), "another history of moves"),
        ("contempt", 3, "another contempt"),
        ("flags", (0, 0), "another kind of search"),
        ("multipv", 2, "another number of lines"),
        ("root_moves", (3,), "another choice of first moves"),
        ("sources", Fingerprint("aa", "cc"), "another version of rootsplit or of the game"),
    ],
)
def test_the_checkpoint_of_another_search_is_refused(field: str, value: Any, named: str, tmp_path: Path) -> None:
    path = tmp_path / "search.rcp"
    checkpoint.save(Checkpoint(IDENTITY._replace(**{field: value}), ITERATIONS, ()), path)
    with pytest.raises(CheckpointError, match=f"belongs to {named}: name another file, or remove it$"):
        checkpoint.load(path, IDENTITY)


@pytest.mark.parametrize("where", [0, 9, 60, -1])
def test_a_flipped_bit_is_noticed(where: int, tmp_path: Path) -> None:
    path = tmp_path / "search.rcp"
    checkpoint.save(Checkpoint(IDENTITY, ITERATIONS, ()), path)
    content = bytearray(path.read_bytes())
    content[where] ^= 4
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"is damaged: its checksum is wrong|is no checkpoint of rootsplit"):
        checkpoint.load(path, IDENTITY)


@pytest.mark.parametrize("length", [0, 7, 39, 41])
def test_a_short_file_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "search.rcp"
    checkpoint.save(Checkpoint(IDENTITY, ITERATIONS, ()), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError):
        checkpoint.load(path, IDENTITY)


def write_signed(path: Path, value: Any) -> None:
    """Write any value with the right checksum: what a clumsy or wicked program might."""
    body = msgpack.packb(value)
    path.write_bytes(checkpoint.MAGIC + checkpoint._checksum(body) + body)


def good() -> list[Any]:
    return [1, IDENTITY, [checkpoint._row(item) for item in ITERATIONS], []]


def changed(place: tuple[int, ...], value: Any) -> list[Any]:
    row = json.loads(json.dumps(good()))
    inner = row
    for index in place[:-1]:
        inner = inner[index]
    inner[place[-1]] = value
    return row  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2, 3, 4],
        good()[:3],
        changed((0,), 2),
        changed((1,), []),
        changed((2, 1, 0), 9),  # A depth is missing.
        changed((2, 0, 1), []),  # No line.
        changed((2, 0, 1, 0, 0), 1 << 40),
        changed((2, 0, 1, 0, 0), 0.5),
        changed((2, 0, 1, 0, 1), [70_000]),
        changed((2, 0, 1, 0, 1), []),
        changed((2, 0, 1, 0, 1), "line"),
        changed((2, 0, 1, 0, 2), 1),
        changed((2, 0, 2), [1]),
        changed((2, 0, 3), -1.0),
        changed((3,), ["no entries"]),
        changed((3,), [7]),
    ],
)
def test_what_makes_no_sense_is_refused_though_its_checksum_is_right(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.rcp"
    write_signed(path, value)
    with pytest.raises(CheckpointError):
        checkpoint.load(path, IDENTITY)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=JUNK | st.lists(JUNK, min_size=4, max_size=4))
def test_junk_is_refused_by_our_own_error(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.rcp"
    write_signed(path, value)
    with pytest.raises(CheckpointError):
        checkpoint.load(path, IDENTITY)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"^cannot read the checkpoint .*/none: No such file"):
        checkpoint.load(tmp_path / "none", IDENTITY)
    with pytest.raises(CheckpointError, match=r"^cannot write the checkpoint .*/no/where: No such file"):
        checkpoint.save(Checkpoint(IDENTITY, (), ()), tmp_path / "no" / "where")
    with pytest.raises(CheckpointError, match="Is a directory"):
        checkpoint.load(tmp_path, IDENTITY)
    os.mkfifo(tmp_path / "pipe")


def test_a_disk_that_fills_does_not_end_the_search(
    connect_four: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = CheckpointFile(tmp_path / "search.rcp", period_s=0.0)
    notices: list[str] = []
    executor = SerialExecutor(connect_four, 1, 1.0, flags=EXACT, notice=silent)
    with Session(connect_four, executor, 1.0, notices.append) as asked:

        def fill(_done: Iteration) -> None:
            monkeypatch.setattr(checkpoint, "written_aside", full_disk)

        assert asked.search(ask(depth=6), fill, file).result.depth == 6
    assert (
        notices[-1] == f"cannot write the checkpoint {file.path}: No space left on device; the search goes on without"
    )
    assert len(checkpoint.load(file.path, identity_of(file.path)).iterations) == 0


def full_disk(_path: Path) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def identity_of(path: Path) -> Identity:
    *fields, sources = checkpoint._tuples(msgpack.unpackb(path.read_bytes()[40:])[1])
    return Identity(*fields, Fingerprint(*sources))


@pytest.mark.parametrize("period_s", [-1.0, float("nan"), float("inf")])
def test_a_period_that_is_none_is_refused(period_s: float, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="must be 0 seconds or more"):
        CheckpointFile(tmp_path, period_s)


# The deepest entries.


def test_the_deepest_entries_come_first_and_travel(connect_four: Game) -> None:
    with session(connect_four) as asked:
        asked.search(ask())
        messages = asked.executor.deepest(5_000)
        some = asked.executor.deepest(100)
    depths = [int(data) >> 16 & 0x7F for message in messages for data in unpack(message)[:, 1]]
    assert 100 < len(depths) <= 5_000
    (one,) = some
    assert unpack(one).tolist() == unpack(messages[0])[:100].tolist()
    with Segment.private(1.0) as other:
        assert sum(deliver(other, message) for message in messages) == len(depths)
        again = deepest(other, 5_000)
    keys = {int(key) for message in messages for key in unpack(message)[:, 0]}
    assert {int(key) for message in again for key in unpack(message)[:, 0]} <= keys


# The search.


def values(report: Any) -> list[tuple[int, int]]:
    return [(item.depth, item.score) for item in report.result.iterations]


def test_a_search_goes_on_behind_what_was_finished(connect_four: Game, executor: MakeExecutor, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "search.rcp", period_s=0.0)
    with session(connect_four) as first:
        first.search(ask(depth=7), checkpoint=file)
    with session(connect_four) as plain:
        expected = plain.search(ask(depth=10))
    asked = Session(connect_four, executor(connect_four, flags=EXACT), 1.0, silent)
    seen: list[int] = []
    report = asked.search(ask(depth=10), lambda done: seen.append(done.depth), file)
    assert seen == [8, 9, 10]
    assert values(report) == values(expected)
    # Now all of it is there, and a shallower question is answered from it too.
    for depth in (10, 6):
        seen.clear()
        again = asked.search(ask(depth=depth), lambda done: seen.append(done.depth), file)
        assert (seen, values(again)) == ([], values(expected)[:depth])


def test_several_lines_go_on_together(connect_four: Game, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "search.rcp")
    # One of its lines is solved before the others.
    text = "44444222"
    with session(connect_four) as first:
        first.search(ask(text, 5, multipv=3), checkpoint=file)
    with session(connect_four) as plain:
        expected = plain.search(ask(text, 9, multipv=3))
    with session(connect_four) as second:
        report = second.search(ask(text, 9, multipv=3), checkpoint=file)
        assert [line.score for line in report.result.lines] == [line.score for line in expected.result.lines]
        with pytest.raises(CheckpointError, match="another number of lines"):
            second.search(ask(text, 9, multipv=2), checkpoint=file)


def test_a_solved_search_stays_solved(connect_four: Game, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "search.rcp")
    reports = []
    for _ in range(2):
        with session(connect_four) as asked:
            reports.append(asked.search(SearchRequest(SOLVED), checkpoint=file))
    assert [report.result.is_solved for report in reports] == [True, True]
    assert reports[0].result.iterations == reports[1].result.iterations
    assert reports[1].result.time_s >= reports[0].result.iterations[-1].time_s


def test_the_deep_entries_spare_work(connect_four: Game, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "search.rcp")
    with session(connect_four) as first:
        first.search(ask("", 12), checkpoint=file)
    saved = file.path.read_bytes()
    nodes = []
    for has_entries in (True, False):
        row = msgpack.unpackb(saved[40:])
        write_signed(file.path, row if has_entries else [*row[:3], []])
        with session(connect_four) as second:
            nodes.append(second.search(ask("", 13), checkpoint=file).result.iterations[-1].statistics.nodes)
    assert nodes[0] < nodes[1]


def test_a_forged_line_is_not_played(connect_four: Game, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "search.rcp")
    with session(connect_four) as asked:
        asked.search(ask("444444", 3), checkpoint=file)
        row = msgpack.unpackb(file.path.read_bytes()[40:])
        (illegal,) = set(asked.referee.legal_moves(connect_four.parse(""))) - set(
            asked.referee.legal_moves(connect_four.parse("444444"))
        )
        row[2][0][1][0][1] = [illegal]
        write_signed(file.path, row)
        with pytest.raises(CheckpointError, match="line of depth 1 is not legal here"):
            asked.search(ask("444444", 3), checkpoint=file)


COMMAND = [sys.executable, "-m", "cluster.cli", "search", "connect_four", "--workers", "2", "--json", "--table", "16"]


def test_after_kill_9_the_command_goes_on_to_the_same_answer(tmp_path: Path) -> None:
    path = tmp_path / "search.rcp"
    words = [*COMMAND, "--depth", "15", "--checkpoint", str(path), "--checkpoint-every", "0.05"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        assert wait_until(lambda: depth_saved(path) >= 6 or driver.poll() is not None, 60)
        driver.send_signal(signal.SIGKILL)
    reached = depth_saved(path)
    assert 6 <= reached <= 15
    run = subprocess.run(words, capture_output=True, text=True, timeout=100, check=True)
    report = json.loads(run.stdout)
    assert (report["depth"], depth_saved(path)) == (15, 15)
    assert [item["depth"] for item in report["iterations"]] == [*range(1, 16)]
    refused = subprocess.run(
        [*COMMAND, "4", "--depth", "3", "--checkpoint", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"rootsplit: the checkpoint {path} belongs to another position")


def depth_saved(path: Path) -> int:
    return len(msgpack.unpackb(path.read_bytes()[40:])[2]) if path.exists() else 0
