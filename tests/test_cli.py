"""The command line as a user meets it: output, exit codes, and one sentence for each mistake."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import REPOSITORY, silent

from search.game_files import game_names, load_game
from search.perft import LeafCounter
from search.referee import Referee
from tt_store.memory import default_directory

AT_ONCE_S = 8.0
"""For a refusal, on a busy machine: the interpreter and the imports take the most of it."""


class Run(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    time_s: float


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "cluster.cli", *words]


def rootsplit(*words: str) -> Run:
    started = time.monotonic()
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=120, cwd=REPOSITORY, check=False)
    return Run(done.returncode, done.stdout, done.stderr, time.monotonic() - started)


RUN_ALL = """
import json, os, sys, tempfile, time
import cluster.cli, cluster.progress, cluster.session, search.perft

runs = []
for words in json.load(sys.stdin):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["rootsplit", *words]
            cluster.cli.main()
            os.abort()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        time_s = time.monotonic() - started
        out.seek(0)
        err.seek(0)
        runs.append((code, out.read().decode(), err.read().decode(), time_s))
json.dump(runs, sys.stdout)
"""
"""Runs many commands, each in a process of its own, and imports our modules once for all: a second a command less."""


def rootsplit_each(commands: list[list[str]]) -> list[Run]:
    """Run commands one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps(commands), capture_output=True, text=True, timeout=120, cwd=REPOSITORY, check=True,
    )  # fmt: skip
    return [Run(*row) for row in json.loads(done.stdout)]


def segments() -> set[Path]:
    return set(default_directory().glob(f"rootsplit-{os.getuid()}-*"))


@pytest.fixture(scope="module", autouse=True)
def compiled_rules() -> None:
    """Compile what the commands use, so that none of them has to announce it."""
    from search.driver import search
    from search.limits import Limits

    for name in ("connect_four", "tic_tac_toe"):
        game = load_game(name)
        Referee(game, silent)
        LeafCounter(game, silent)
        search(game, game.parse(""), Limits(depth=1), table_mb=1, notice=silent)


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    """Return a port of this machine that nobody listens at: it is bound, and kept so."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def test_games_lists_all_games() -> None:
    plain, as_json = rootsplit_each([["games"], ["games", "--json"]])
    assert (plain.code, plain.err) == (0, "")
    assert [line.split()[0] for line in plain.out.splitlines()] == game_names()
    rows = json.loads(as_json.out)
    assert [row["game"] for row in rows] == game_names()
    assert all(row["summary"] for row in rows)


def test_search_prints_iterations_and_the_answer() -> None:
    run = rootsplit("search", "connect_four", "226744515337", "--workers", "2", "--table", "16")
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[0].split() == ["depth", "score", "nodes", "seconds", "line"]
    assert [line.split()[0] for line in lines[1:18]] == [str(depth) for depth in range(1, 18)]
    assert lines[18] == "best move 4, score +7, solved"
    assert "2 workers on 1 machine(s), strategy team, table 16 MB" in lines[19]


def test_search_prints_one_json_object() -> None:
    run = rootsplit(
        "search", "connect_four", "22674451", "--moves", "5", "--moves", "3", "--moves", "3", "--moves", "7",
        "--workers", "1", "--table", "16", "--strategy", "single", "--json",
    )  # fmt: skip
    assert (run.code, run.err) == (0, "")
    row = json.loads(run.out)
    assert (row["best_move"], row["score_text"], row["solved"], row["mate_in"]) == ("4", "+7", True, 9)
    assert (row["moves"], row["workers"], row["strategy"], row["table_mb"]) == (["5", "3", "3", "7"], 1, "single", 16)
    assert row["pv"][0] == "4"


def test_search_keeps_its_limits() -> None:
    questions = [
        ["--depth", "5", "--contempt", "3"],
        ["--nodes", "5000", "--workers", "2"],
        ["--time", "0.3"],
        ["415161", "--mate", "1"],
    ]
    runs = rootsplit_each([["search", "connect_four", *words, "--json"] for words in questions])
    assert [(run.code, run.err) for run in runs] == [(0, "")] * len(questions)
    deep, short, timed, won = (json.loads(run.out) for run in runs)
    assert (deep["depth"], deep["position"]) == (5, "")
    # A team ends with its leader, whose half of the nodes may be spent before the follower's.
    assert 2_400 < short["nodes"] <= 5_000 + 2 * 7
    assert 0.2 < timed["time_s"] < 1
    assert (won["mate_in"], won["depth"]) == (1, 1)


@pytest.mark.parametrize(("position", "counts"), [([], [1, 7, 49, 343, 2401, 16807, 117649]), (["444444"], [1, 6, 36])])
def test_perft_counts_lines(position: list[str], counts: list[int]) -> None:
    runs = rootsplit_each([["perft", "connect_four", *position, str(depth)] for depth in range(len(counts))])
    for depth, (run, count) in enumerate(zip(runs, counts, strict=True)):
        assert (run.code, run.err) == (0, "")
        assert run.out.startswith(f"{count} lines of {depth} plies in ")


def test_perft_divides() -> None:
    words = ["perft", "connect_four", "444444", "3", "--divide"]
    plain, as_json = rootsplit_each([words, [*words, "--json"]])
    *rows, total = plain.out.splitlines()
    # Column 4 is full; the others take three more discs each.
    assert sorted(rows) == ["1: 36", "2: 36", "3: 36", "5: 36", "6: 36", "7: 36"]
    assert total.startswith("216 lines of 3 plies")
    row = json.loads(as_json.out)
    assert row["divide"] == dict.fromkeys("123567", 36)
    assert (row["leaves"], row["depth"], row["position"], row["game"]) == (216, 3, "444444", "connect_four")


def test_perft_of_ten_plies() -> None:
    row = json.loads(rootsplit("perft", "connect_four", "10", "--json").out)
    assert row["leaves"] == 268_031_646


def test_bench_prints_one_total() -> None:
    run = rootsplit("bench", "--json")
    assert run.code == 0
    row = json.loads(run.out)
    assert row["bench"] == sum(each["nodes"] for each in row["rows"]) > 1_000_000
    assert {each["game"] for each in row["rows"]} == set(game_names())
    assert all(each.keys() >= {"game", "position", "depth", "score", "nodes", "time_s"} for each in row["rows"])


def test_clean_says_what_it_found() -> None:
    dry, real = rootsplit_each([["clean", "--dry-run", "--json"], ["clean"]])
    assert (dry.code, dry.err) == (0, "")
    rows = json.loads(dry.out)
    assert rows["kernels"] == []
    assert all(not row["removed"] for row in rows["tables"])
    assert (real.code, real.err) == (0, "")
    assert real.out.rstrip().endswith("0 compiled kernels")


def test_help_is_no_error() -> None:
    for run in rootsplit_each([[], ["--help"], ["search", "--help"]]):
        assert (run.code, run.err) == (0, "")
        assert "Usage" in run.out


MISTAKES: dict[str, tuple[list[str], str]] = {
    "unknown game": (["search", "conect_four"], "unknown game 'conect_four': there are chess, connect_four"),
    "unknown game of perft": (["perft", "go", "3"], "unknown game 'go'"),
    "full column": (["search", "connect_four", "1111111"], "column 1 is full"),
    "no such column": (["search", "connect_four", "128"], "'8': a column is a digit from 1 to 7"),
    "not a digit": (["search", "connect_four", "4x"], "'x': a column is a digit from 1 to 7"),
    "move after a win": (["search", "connect_four", "12121213"], "the game was won"),
    "move that is none": (["search", "connect_four", "--moves", "44"], "'44' is no move"),
    "illegal move": (["search", "connect_four", "444444", "--moves", "4"], "move 1, 4, is not legal"),
    "nothing to prove": (["search", "connect_four", "--solve", "all"], "disc 1 of 'all' is 'a'"),
    "solve to a depth": (["search", "connect_four", "--solve", "--depth", "9"], "no depth, mate, contempt, multipv"),
    "no such board": (["search", "connect_four:99x9"], "does not fit"),
    "decided": (["search", "connect_four", "1212121"], "the game is over"),
    "perft of a bad position": (["perft", "connect_four", "128", "3"], "a column is a digit"),
    "depth 0": (["search", "connect_four", "--depth", "0"], "depth must be from 1"),
    "depth -3": (["search", "connect_four", "--depth", "-3"], "depth must be from 1"),
    "depth 9999": (["search", "connect_four", "--depth", "9999"], "depth must be from 1"),
    "depth of no number": (["search", "connect_four", "--depth", "deep"], "--depth"),
    "nodes 0": (["search", "connect_four", "--nodes", "0"], "nodes must be at least 1"),
    "time -1": (["search", "connect_four", "--time", "-1"], "time must be more than 0"),
    "time nan": (["search", "connect_four", "--time", "nan"], "time must be more than 0 seconds, not nan"),
    "time inf": (["search", "connect_four", "--time", "inf"], "not inf"),
    "mate 0": (["search", "connect_four", "--mate", "0"], "mate must be at least 1"),
    "table 0": (["search", "connect_four", "--table", "0"], "must be a positive number of MB"),
    "table -1": (["search", "connect_four", "--table", "-1"], "must be a positive number of MB"),
    "table nan": (["search", "connect_four", "--table", "nan"], "must be a positive number of MB"),
    "table beyond memory": (["search", "connect_four", "--table", "100000000"], "does not fit into memory"),
    "workers 0": (["search", "connect_four", "--workers", "0"], "workers must be from 1"),
    "workers -2": (["search", "connect_four", "--workers", "-2"], "workers must be from 1"),
    "unknown strategy": (["search", "connect_four", "--strategy", "magic"], "unknown strategy 'magic'"),
    "dead address": (["search", "connect_four", "--address", "127.0.0.1:{port}"], "no Ray cluster answers"),
    "client address": (["search", "connect_four", "--address", "ray://x:1"], "Ray Client address"),
    "malformed address": (["search", "connect_four", "--address", "nowhere"], "is no cluster address"),
    "port too large": (["search", "connect_four", "--address", "host:99999"], "is no cluster address"),
    "missing file": (["search", "{folder}/none.py"], "does not exist"),
    "file that raises": (["search", "{folder}/raises.py"], "fails when it is imported: ZeroDivisionError"),
    "file that is no Python": (["search", "{folder}/syntax.py"], "fails when it is imported: SyntaxError"),
    "file that lacks names": (["search", "{folder}/lacks.py"], "does not define"),
    "folder": (["search", "{folder}/folder.py"], "does not exist"),
    "unknown option": (["search", "connect_four", "--bogus"], "--bogus"),
    "missing argument": (["search"], "game"),
    "missing depth": (["perft", "connect_four"], ""),
    "too many arguments": (["search", "connect_four", "44", "55"], ""),
    "too many words": (["perft", "connect_four", "4", "4", "4"], "not 3 words"),
    "perft of a negative depth": (["perft", "connect_four", "44", "x"], "depth of perft"),
    "option without its value": (["search", "connect_four", "--depth"], "--depth"),
    "unknown command": (["serch", "connect_four"], "serch"),
}


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory: pytest.TempPathFactory, closed_port: int) -> dict[str, Run]:
    """Return how each mistake ends."""
    folder = tmp_path_factory.mktemp("games")
    (folder / "folder.py").mkdir()
    (folder / "raises.py").write_text("1 / 0\n")
    (folder / "syntax.py").write_text("def play(:\n")
    (folder / "lacks.py").write_text("MAX_MOVES = 3\n")
    commands = [[word.format(folder=folder, port=closed_port) for word in words] for words, _ in MISTAKES.values()]
    return dict(zip(MISTAKES, rootsplit_each(commands), strict=True))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_sentence_and_exit_code_2(mistakes: dict[str, Run], name: str) -> None:
    check_refusal(mistakes[name], MISTAKES[name][1])


@pytest.mark.parametrize("name", ["full column", "time nan", "unknown option"])
def test_a_mistake_is_refused_at_once_by_a_process_that_just_started(name: str) -> None:
    words, sentence = MISTAKES[name]
    check_refusal(rootsplit(*words), sentence)


def check_refusal(run: Run, words: str) -> None:
    assert run.code == 2, run.err
    assert run.out == ""
    assert run.err.startswith("rootsplit: ")
    assert run.err.count("\n") == 1
    assert run.err.endswith("\n")
    assert words in run.err
    assert run.time_s < AT_ONCE_S


def test_ctrl_c_ends_a_search_at_once() -> None:
    before = segments()
    process = subprocess.Popen(
        command("search", "connect_four", "--time", "60", "--workers", "2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    try:
        time.sleep(2.5)
        assert process.poll() is None
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        elapsed_s = time.monotonic() - started
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out, err) == (130, "", "rootsplit: interrupted\n")
    assert elapsed_s < 3
    assert segments() <= before


def test_a_reader_that_goes_away_causes_no_traceback() -> None:
    process = subprocess.Popen(
        command("search", "connect_four", "--depth", "12", "--workers", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 1
    assert err == b""
