"""A machine whose head is out of reach, whose shared memory is small, whose disk is full: namespaces of our own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from conftest import REPOSITORY

ROOTSPLIT = f"{sys.executable} -m cluster.cli"


def run_inside(script: str) -> list[str]:
    """Run a script of the shell as root of a new network and of new mounts, and return its lines, errors among them."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("there is no unshare or no ip here")
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    if subprocess.run([*unshare, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces, or mounts in them, are not permitted here")
    done = subprocess.run(
        [*unshare, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        cwd=REPOSITORY, env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, timeout=100,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if not line.startswith("rootsplit: compiling ")]


def test_there_is_no_route_to_the_head() -> None:
    pytest.importorskip("ray")
    connecting = """
import sys, time
from cluster.ray_connection import connect
from cluster.ray_errors import ClusterError
for address in sys.argv[1:]:
    begun = time.monotonic()
    try:
        connect(address, None)
    except ClusterError as error:
        print(time.monotonic() - begun < 10, error)
"""
    network = "ip link set lo up; ip route add unreachable 192.0.2.0/24; ip route add 198.51.100.0/24 dev lo"
    addresses = ("203.0.113.1:6379", "192.0.2.1:6379", "198.51.100.1:6379")
    told = run_inside(f"{network}; {sys.executable} -c '{connecting}' {' '.join(addresses)}")
    reasons = ("Network is unreachable", "No route to host", "timed out")
    assert told == [
        f"True no Ray cluster answers at {address}: {reason}"
        for address, reason in zip(addresses, reasons, strict=True)
    ]


def test_shared_memory_of_64_mb() -> None:
    pytest.importorskip("ray")
    search = f"{ROOTSPLIT} search tic_tac_toe --depth 2 --address local --table 65"
    told = run_inside(f"mount -t tmpfs -o size=64m tmpfs /dev/shm && {search}; echo exit code $?")
    assert len(told) == 2
    assert told[0].startswith("rootsplit: a table of 65 MB does not fit into /dev/shm: 64 MB are free; ")
    for hint in ("--table auto", "--shm-size", "emptyDir", "--table-dir"):
        assert hint in told[0]
    assert told[1] == "exit code 2"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_full_disk_ends_a_batch_in_a_sentence_and_the_next_run_goes_on(kind: str, tmp_path: Path) -> None:
    columns = ["".join(line) for plies in (1, 2, 3) for line in product("1234567", repeat=plies)]
    positions, disk, kept = tmp_path / "in.moves", tmp_path / "disk", tmp_path / "rows.jsonl"
    positions.write_text("\n".join(columns) + "\n")
    disk.mkdir()
    analyse = f"{ROOTSPLIT} analyse connect_four {positions} -o {disk}/rows.{kind} --depth 2 --table 1 --workers 2"
    told = run_inside(
        f"mount -t tmpfs -o size=32k tmpfs {disk}; {analyse}; echo exit code $?; ls {disk}"
        f"; mount -o remount,size=16m {disk}; {analyse} >/dev/null; echo exit code $?; cp -r {disk}/rows.{kind} {kept}"
    )
    full = "No space left on device; what is there is kept, and the same command goes on from it"
    # The journal comes first, and may be just short enough.
    assert told[0] in [f"rootsplit: cannot write {disk}/rows.{kind}{suffix}: {full}" for suffix in (".journal", "")]
    assert told[1:] == ["exit code 1", f"rows.{kind}", f"rows.{kind}.journal", "exit code 0"]
    if kind == "jsonl":
        rows = [json.loads(line) for line in kept.read_text().splitlines()]
        assert [row["index"] for row in rows] == list(range(len(columns)))
        assert [row["position"] for row in rows] == columns
