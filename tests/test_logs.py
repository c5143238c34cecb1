"""Logs: asked for, on stderr, with the run's id; and quiet otherwise."""

from __future__ import annotations

import re
import subprocess
import sys

COMMAND = [sys.executable, "-m", "cluster.cli", "search", "tic_tac_toe", "--depth", "3", "--workers", "2"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=100, check=False)


def test_nothing_is_logged_unless_asked() -> None:
    assert run().stderr == ""


def test_iterations_are_logged_with_the_runs_id() -> None:
    lines = run("--log-level", "info").stderr.splitlines()
    assert len(lines) == 3
    found = [
        re.fullmatch(r"\S+ \S+ INFO run=([0-9a-f]{8}) depth=(\d) score=-?\d+ nodes=\d+ time_s=\S+", line)
        for line in lines
    ]
    assert [each and each[2] for each in found] == ["1", "2", "3"]
    assert len({each[1] for each in found if each}) == 1


def test_an_unknown_level_is_refused() -> None:
    refused = run("--log-level", "loud")
    assert refused.returncode == 2
    assert refused.stderr == "rootsplit: the level of logs is one of debug, info, warning, not 'loud'\n"
