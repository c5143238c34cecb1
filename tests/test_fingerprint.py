"""A driver and its machines must be the same: what tells them apart, and the sentences."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")
from cluster import worker
from cluster.fingerprint import Fingerprint, fingerprint
from cluster.ray_errors import ClusterError
from search.rules import Game

REPOSITORY = Path(__file__).parents[1]
SCRIPT = "from cluster.fingerprint import fingerprint; from search.game_files import load_game; import sys\n"
SCRIPT += "print(*fingerprint(load_game(sys.argv[1])))"


def fingerprint_of(installation: Path, game: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(installation)}
    command = [sys.executable, "-c", SCRIPT, game]
    run = subprocess.run(command, env=environment, cwd=installation, capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_a_copy_elsewhere_is_the_same_until_a_line_changes(tmp_path: Path, tic_tac_toe: Game) -> None:
    for package in ("cluster", "search", "tt_store"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    assert fingerprint_of(tmp_path, "tic_tac_toe") == [*fingerprint(tic_tac_toe)]
    with (tmp_path / "cluster" / "records.py").open("a") as file:
        file.write("# Another version.\n")
    assert fingerprint_of(tmp_path, "tic_tac_toe")[0] != fingerprint(tic_tac_toe).program


def test_the_file_of_a_users_game_counts(tmp_path: Path) -> None:
    found = []
    for number, end in enumerate(("", "# Changed.\n")):
        path = tmp_path / f"own_{number}" / "game.py"
        path.parent.mkdir()
        path.write_text((REPOSITORY / "search/games/tic_tac_toe.py").read_text() + end)
        found.append(fingerprint_of(REPOSITORY, str(path)))
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]


def test_each_difference_has_its_sentence(tic_tac_toe: Game) -> None:
    here = fingerprint(tic_tac_toe)
    worker._check_same(tic_tac_toe, here)
    with pytest.raises(
        ClusterError, match=rf"^machine \S+ has another rootsplit \({here.program}\) than this program \(x\)"
    ):
        worker._check_same(tic_tac_toe, Fingerprint("x", here.game))
    with pytest.raises(ClusterError, match=r"^machine \S+ has another file of the game tic_tac_toe \("):
        worker._check_same(tic_tac_toe, Fingerprint(here.program, "x"))


def test_processes_that_run_are_told_from_those_that_do_not() -> None:
    assert worker._is_running(os.getpid())
    assert not worker._is_running(2**22 + 1)
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        # A zombie.
        assert not worker._is_running(child.pid)
        assert worker._status(child.pid) == (b"Z", os.getpid())
