"""`rootsplit analyse` as a user meets it: exit codes, kills, Ctrl-C, standard input; and the same from a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks.bench_batch import finished, kill_campaign, ray_workers, rows_of
from conftest import REPOSITORY, silent
from processes import alive, descendants, wait_until
from test_readme import code_after

import cluster
from cluster.batch.rows import InputRow, Overrides
from search.limits import Limits
from tt_store.errors import RootsplitError

pytestmark = pytest.mark.timeout(120)

COMMAND = [sys.executable, "-m", "cluster.cli", "analyse", "connect_four"]
COLUMNS = "1234567"
POSITIONS = [*(a + b for a in COLUMNS for b in COLUMNS), *(a + a + a for a in COLUMNS), "12"]
"""57, of which two are equal."""

LATE = "2252576253462244111563365343671351441"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("positions") / "in.moves"
    path.write_text("\n".join(POSITIONS) + "\n")
    return path


@pytest.fixture(scope="module", autouse=True)
def _compiled(source: Path) -> None:
    """Compile before the first test: a notice of it would be taken for a complaint."""
    assert finished(asked(source, source.with_suffix(".warm.jsonl"), "--nodes", "1")).returncode == 0


def asked(source: Path | str, output: Path, *words: str) -> list[str]:
    return [*COMMAND, str(source), "-o", str(output), "--workers", "2", "--table", "1", *words]


def start(command: list[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY, start_new_session=True,
        **options,
    )  # fmt: skip


def test_the_summary_and_the_exit_codes(tmp_path: Path) -> None:
    source, bad, empty = tmp_path / "good.moves", tmp_path / "bad.moves", tmp_path / "empty.moves"
    source.write_text(f"{LATE} -1\n23163416124767223154467471272416755633 1\n{LATE} -1\n")
    bad.write_text(f"{LATE} -1\n4x\n")
    empty.write_text("# nothing\n")
    limits = ["--depth", "42"]
    good = finished(asked(source, tmp_path / "good.jsonl", *limits, "--json"))
    assert (good.returncode, good.stderr) == (0, "")
    summary = json.loads(good.stdout)
    assert summary["complete"] is True
    assert (summary["rows"], summary["searched"], summary["duplicates"], summary["scored"]) == (3, 2, 1, 3)
    assert summary["solved"] == 2
    under = finished(asked(source, tmp_path / "good.jsonl", *limits, "--fail-under", "90"))
    assert under.returncode == 1
    assert "66.7% solved, under 90%" in under.stderr
    assert "solved 2 of 3" in under.stdout
    some = finished(asked(bad, tmp_path / "bad.jsonl", *limits))
    assert (some.returncode, some.stderr) == (1, "")
    assert "1 rows failed: 1 unreadable" in some.stdout
    none = finished(asked(empty, tmp_path / "empty.jsonl", *limits))
    assert none.returncode == 2
    assert len(none.stderr.splitlines()) == 1
    refused = finished(asked(source, tmp_path / "none.jsonl"))
    assert refused.returncode == 2
    assert "needs a limit" in refused.stderr
    assert not (tmp_path / "none.jsonl").exists()


def test_kill_9_of_the_driver_loses_and_doubles_nothing(source: Path, tmp_path: Path) -> None:
    words = ["connect_four", str(source), "--depth", "11", "--workers", "2", "--table", "1", "--deterministic"]
    whole, output = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert finished([*COMMAND[:-1], *words, "-o", str(whole)]).returncode == 0
    killed = kill_campaign([*words, "-o", str(output)], output, kills=2, least_s=1.2, most_s=2.2)
    assert killed.rows == len(POSITIONS)
    assert output.read_bytes() == whole.read_bytes()


DEPTH = 17
"""So deep that a run of all positions takes several times as long as it takes to interrupt it."""


def test_ctrl_c_drains_and_tells_how_to_go_on(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    command = asked(source, output, "--depth", str(DEPTH))
    with start(command) as driver:
        assert wait_until(lambda: output.exists() and output.stat().st_size > 0, 60)
        driver.send_signal(signal.SIGINT)
        text, errors = driver.communicate(timeout=30)
    assert driver.returncode == 130, errors
    assert "more to come" in text
    assert errors.splitlines()[-1].startswith("rootsplit: interrupted; go on with: rootsplit analyse connect_four ")
    rows = rows_of(output)
    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert 0 < len(rows) < len(POSITIONS)
    assert all(row["depth"] == DEPTH for row in rows)
    again = finished([*command, "--json"])
    assert again.returncode == 0
    assert json.loads(again.stdout)["kept_rows"] == len(rows)
    assert rows_of(output)[: len(rows)] == rows
    assert len(rows_of(output)) == len(POSITIONS)


def test_standard_input_is_written_while_it_is_open(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with start(asked("-", output, "--depth", "4"), stdin=subprocess.PIPE) as driver:
        assert driver.stdin is not None
        driver.stdin.write("4\n44\n")
        driver.stdin.flush()
        assert wait_until(lambda: output.exists() and len(output.read_bytes().splitlines()) == 2, 30)
        driver.stdin.write("4x\n")
        driver.stdin.close()
        assert driver.wait(timeout=30) == 1
    assert [row["status"] for row in rows_of(output)] == ["ok", "ok", "error"]


def test_several_workers_on_each_position(tmp_path: Path) -> None:
    source, output = tmp_path / "in.moves", tmp_path / "out.jsonl"
    source.write_text("226744515337 7\n226744515337\n1212121\n4x\n52753311433677442422121\n")
    run = finished(asked(source, output, "--depth", "42", "--split", "2", "--json"))
    assert run.returncode == 1
    rows = rows_of(output)
    assert [row["status"] for row in rows] == ["ok", "ok", "over", "error", "ok"]
    assert (rows[0]["score_text"], rows[0]["solved"], rows[1]["duplicate_of"]) == ("+7", True, 0)
    assert json.loads(run.stdout)["workers"] == 2


# As a library.


def test_a_program_gets_rows_as_they_come(source: Path) -> None:
    inputs = ["4", Path(source), "4x", InputRow(0, "mine", 5, "my own", "44", overrides=Overrides(depth=5))]
    rows = list(cluster.analyse("connect_four", inputs, Limits(depth=3), workers=2, table_mb=1, notice=silent))
    assert [row.index for row in rows] == list(range(len(POSITIONS) + 3))
    assert [rows[0].position, rows[-2].status, rows[-1].id, rows[-1].depth] == ["4", "error", "my own", 5]
    assert json.loads(json.dumps(rows[0].as_json()))["pv"] == list(rows[0].pv)


def test_several_lines_a_position() -> None:
    rows = list(cluster.analyse("connect_four", ["", "444444"], Limits(depth=6), multipv=3, table_mb=1, notice=silent))
    for row in rows:
        assert len({line.move for line in row.lines}) == 3
        scores = [line.score for line in row.lines]
        assert scores == sorted(scores, reverse=True)
        assert (row.lines[0].move, row.lines[0].score, row.lines[0].pv) == (row.best_move, row.score, row.pv)


def test_a_program_that_stops_listening_leaves_nothing() -> None:
    before = len(os.listdir("/proc/self/task"))
    rows = cluster.analyse("connect_four", POSITIONS, Limits(depth=30), workers=2, table_mb=1, notice=silent)
    begun = time.monotonic()
    for row in cluster.analyse("connect_four", ["4x", *POSITIONS], Limits(depth=30), table_mb=1, notice=silent):
        assert row.status == "error"
        break
    rows.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun < 10
    assert wait_until(lambda: len(os.listdir("/proc/self/task")) <= before, 5)


def test_the_readmes_batch_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code_after("<!-- a batch -->"), "README.md", "exec"), {})
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["0", "ok"], ["1", "ok"], ["2", "error"]]


def test_a_program_is_told_what_is_wrong() -> None:
    with pytest.raises(RootsplitError, match="needs a limit"):
        list(cluster.analyse("connect_four", ["4"], Limits()))
    with pytest.raises(RootsplitError, match="unknown game"):
        list(cluster.analyse("tiddlywinks", ["4"], Limits(depth=1)))
    with pytest.raises(RootsplitError, match="number of workers"):
        list(cluster.analyse("connect_four", ["4"], Limits(depth=1), workers=0))
    with pytest.raises(RootsplitError, match="3 workers on each position"):
        list(cluster.analyse("connect_four", ["4"], Limits(depth=1), workers=2, split=3, notice=silent))


# On Ray.


@pytest.mark.ray
@pytest.mark.slow
def test_a_killed_and_a_stopped_ray_worker_lose_and_double_nothing(source: Path, tmp_path: Path) -> None:
    """Without a deadline, too, a worker that hangs is noticed: it shows no progress."""
    limits = ["--depth", "15", "--fresh"]
    output = tmp_path / "out.jsonl"
    with start(asked(source, output, *limits, "--address", "local", "--hang-after", "2")) as driver:
        assert wait_until(lambda: output.exists() and len(output.read_bytes().splitlines()) > 5, 90)
        assert wait_until(lambda: len(ray_workers(driver.pid)) == 2, 30)
        killed, stopped = ray_workers(driver.pid)
        os.kill(killed, signal.SIGKILL)
        os.kill(stopped, signal.SIGSTOP)
        hung = {process for process in descendants(driver.pid) if process.pid == stopped}
        _, errors = driver.communicate(timeout=90)
    assert driver.returncode == 0, errors
    assert errors.count("died and is replaced") == 1
    assert errors.count("hung and is replaced: it has shown no progress for 2 s") >= 1
    assert len(hung) == 1
    assert not alive(hung)
    rows = rows_of(output)
    assert [row["index"] for row in rows] == list(range(len(POSITIONS)))
    assert sum(row["attempts"] == 2 for row in rows) >= 2
    threads = finished(asked(source, tmp_path / "threads.jsonl", *limits))
    assert threads.returncode == 0
    for mine, its in zip(rows, rows_of(tmp_path / "threads.jsonl"), strict=True):
        assert {key: mine[key] for key in SAME} == {key: its[key] for key in SAME}


SAME = ("index", "position", "status", "best_move", "score", "depth", "nodes", "pv", "duplicate_of", "settings")
