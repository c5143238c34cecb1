"""Who may remove a table: dead owners, other namespaces, strangers."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from processes import wait_until
from segments import (
    NO_PID,
    create_in_child,
    file_name,
    own_namespace,
    own_start_ticks,
    patch,
    segment_path,
)

from tt_store.reclaim import leftovers, reclaim, remove_after
from tt_store.segment import (
    HEARTBEAT_OFFSET,
    NAMESPACE_OFFSET,
    Segment,
)


def test_killed_owner_is_reclaimed(tmp_path: Path) -> None:
    child = create_in_child(tmp_path, "time.sleep(60)")
    assert child.stdout is not None
    path = Path(child.stdout.readline().strip())
    attached = Segment.attach(path)
    assert attached.owner_is_alive()
    assert [(found.path, found.owner_pid, found.alive) for found in leftovers(tmp_path)] == [(path, child.pid, True)]
    assert reclaim(tmp_path) == []
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    # Nobody has reaped it: a zombie is dead, too.
    assert not attached.owner_is_alive()
    child.communicate()
    assert not attached.owner_is_alive()
    (found,) = leftovers(tmp_path)
    assert (found.alive, found.size_bytes) == (False, path.stat().st_size)
    assert reclaim(tmp_path) == [path]
    assert list(tmp_path.iterdir()) == []
    # Whoever is still attached goes on working.
    assert ctypes.c_uint64.from_address(attached.table_address).value == 0
    attached.close()


@pytest.mark.parametrize("function", ["posix_fallocate", "pwrite", "fchmod"])
def test_owner_killed_before_the_rename(function: str, tmp_path: Path) -> None:
    kill = f"segment.os.{function} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    child = create_in_child(tmp_path, f"{kill}\nsegment.Segment.create(0.01, directory=made.path.parent)")
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    paths = sorted(tmp_path.iterdir())
    assert [path.suffix for path in paths].count(".tmp") == 1
    assert sorted(reclaim(tmp_path)) == paths
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"ROOTSPLT", bytes(9000)])
def test_half_written_files_are_judged_by_name(content: bytes, tmp_path: Path) -> None:
    dead = tmp_path / file_name(NO_PID, 5, suffix=".tmp")
    reused_pid = tmp_path / file_name(os.getpid(), own_start_ticks() + 1, suffix=".tmp")
    living = tmp_path / file_name(os.getpid(), own_start_ticks(), suffix=".tmp")
    for path in (dead, reused_pid, living):
        path.write_bytes(content)
    assert sorted(reclaim(tmp_path)) == sorted([dead, reused_pid])
    assert list(tmp_path.iterdir()) == [living]


def test_live_owner_is_never_reclaimed(tmp_path: Path) -> None:
    with Segment.create(0.01, directory=tmp_path) as owner:
        owner.heartbeat(0.0)
        os.utime(segment_path(owner), (0, 0))
        assert reclaim(tmp_path) == []
        assert owner.owner_is_alive()


def test_reused_pid_is_reclaimed(tmp_path: Path) -> None:
    owner = Segment.create(0.01, directory=tmp_path)
    patch(segment_path(owner), 40, struct.pack("=Q", own_start_ticks() - 1))
    with Segment.attach(segment_path(owner)) as other:
        assert not other.owner_is_alive()
    assert reclaim(tmp_path) == [owner.path]
    owner.close()


@pytest.mark.parametrize(("age_s", "alive"), [(0, True), (50, True), (70, False), (1e9, False)])
def test_foreign_namespace_is_judged_by_heartbeat(age_s: float, alive: bool, tmp_path: Path) -> None:
    owner = Segment.create(0.01, directory=tmp_path)
    path = segment_path(owner)
    patch(path, NAMESPACE_OFFSET, struct.pack("=Q", own_namespace() + 1))
    patch(path, HEARTBEAT_OFFSET, struct.pack("=d", time.time() - age_s))
    with Segment.attach(path) as other:
        assert other.owner_is_alive() is alive
    assert reclaim(tmp_path) == ([] if alive else [path])
    owner.close()


@pytest.mark.parametrize(("age_s", "alive"), [(0, True), (70, False)])
def test_half_written_file_of_a_foreign_namespace_is_judged_by_mtime(age_s: float, alive: bool, tmp_path: Path) -> None:
    path = tmp_path / file_name(NO_PID, 5, own_namespace() + 1, ".tmp")
    path.write_bytes(b"")
    os.utime(path, (time.time() - age_s,) * 2)
    assert reclaim(tmp_path) == ([] if alive else [path])


def test_strangers_are_left_alone(tmp_path: Path) -> None:
    uid = os.getuid()
    target = tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / file_name(NO_PID, 5, suffix=".bak")).write_bytes(b"")
    (tmp_path / f"rootsplit-{uid}-notes.txt").write_bytes(b"")
    (tmp_path / file_name(NO_PID, 5).replace(f"-{uid}-", f"-{uid + 1}-", 1)).write_bytes(b"")
    (tmp_path / file_name(NO_PID, 6)).symlink_to(target)
    (tmp_path / file_name(NO_PID, 7)).mkdir()
    before = sorted(tmp_path.iterdir())
    assert leftovers(tmp_path) == []
    assert reclaim(tmp_path) == []
    assert sorted(tmp_path.iterdir()) == before


def test_files_that_vanish_meanwhile_are_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / file_name(NO_PID, 5)
    path.write_bytes(b"")
    found = leftovers(tmp_path)
    monkeypatch.setattr(Path, "glob", lambda *_: [path])
    path.unlink()
    assert leftovers(tmp_path) == []
    monkeypatch.setattr(import_module("tt_store.reclaim"), "leftovers", lambda _: found)
    assert reclaim(tmp_path) == []


def test_bracket_in_the_name_of_the_command(tmp_path: Path) -> None:
    rename = "Path('/proc/self/comm').write_text(') S 1 2 (')\nprint(flush=True)\ntime.sleep(60)"
    child = create_in_child(tmp_path, rename)
    assert child.stdout is not None
    path = Path(child.stdout.readline().strip())
    child.stdout.readline()
    assert ") S 1 2 (" in Path(f"/proc/{child.pid}/stat").read_text()
    assert reclaim(tmp_path) == []
    child.kill()
    child.communicate()
    assert reclaim(tmp_path) == [path]


def test_a_file_goes_with_the_process_that_it_waits_for(tmp_path: Path) -> None:
    path = tmp_path / "it's a file"
    path.touch()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as owner:
        remove_after(owner.pid, path)
        time.sleep(1.2)
        assert path.exists()
        owner.kill()
    assert wait_until(lambda: not path.exists(), 5)
