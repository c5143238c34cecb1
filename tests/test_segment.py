"""The shared-memory segment: sizes, layout, trust, and who may remove what."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from tt_store import memory
from tt_store import segment as segment_module
from tt_store.errors import TableError
from tt_store.layout import BUCKET_BYTES, BYTES_PER_MB
from tt_store.memory import available_bytes
from tt_store.reclaim import leftovers, reclaim
from tt_store.segment import (
    GENERATION_OFFSET,
    HEADER_BYTES,
    HEARTBEAT_OFFSET,
    NAMESPACE_OFFSET,
    PAGE_BYTES,
    Segment,
)

REPOSITORY = Path(__file__).parents[1]
NO_PID = 2**22 + 1
"""Above the largest pid that Linux gives out."""


def own_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def own_start_ticks() -> int:
    return int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])


def file_name(pid: int, start_ticks: int, namespace: int | None = None, suffix: str = "") -> str:
    namespace = own_namespace() if namespace is None else namespace
    return f"rootsplit-{os.getuid()}-{pid}-{start_ticks}-{namespace}-test-00ff{suffix}"


def patch(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def segment_path(segment: Segment) -> Path:
    assert segment.path is not None
    return segment.path


def is_one_sentence(error: BaseException) -> bool:
    return "\n" not in str(error) and len(str(error)) > 20


def create_in_child(directory: Path, then: str) -> subprocess.Popen[str]:
    """Start a process that creates a segment, prints its path, and goes on with some code."""
    code = (
        "import os, signal, sys, time\nfrom pathlib import Path\nfrom tt_store import segment\n"
        f"made = segment.Segment.create(0.01, directory=Path({str(directory)!r}), label='child')\n"
        f"print(made.path, flush=True)\n{then}\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("size_mb", [0, -1, math.nan, math.inf, -math.inf])
def test_senseless_size_is_refused(size_mb: float, tmp_path: Path) -> None:
    for make in (partial(Segment.create, size_mb, directory=tmp_path), partial(Segment.private, size_mb)):
        with pytest.raises(TableError, match=rf"positive.* {size_mb:g} was asked, \d+ are available") as caught:
            make()
        assert is_one_sentence(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size_mb", [10**9, 1e300, 200_000_000.5])
def test_size_beyond_memory_is_refused_with_asked_and_available(size_mb: float, tmp_path: Path) -> None:
    for make in (partial(Segment.create, size_mb, directory=tmp_path), partial(Segment.private, size_mb)):
        with pytest.raises(TableError) as caught:
            make()
        available = re.search(r"(\d+) MB are available", str(caught.value))
        assert f"{size_mb:.10g} MB" in str(caught.value)
        assert available
        assert 0 < int(available[1]) < 10**8
        assert is_one_sentence(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size_mb", [1e-9, 0.01, 1, 3, 64])
@pytest.mark.parametrize("control_words", [0, 1, 512, 513])
def test_geometry(size_mb: float, control_words: int, tmp_path: Path) -> None:
    with (
        Segment.create(size_mb, control_words=control_words, directory=tmp_path) as shared,
        Segment.private(size_mb, control_words=control_words) as private,
        Segment.attach(segment_path(shared)) as attached,
    ):
        for segment in (shared, private, attached):
            assert segment.buckets == max(1, int(size_mb * BYTES_PER_MB) // BUCKET_BYTES)
            assert segment.size_bytes == segment.buckets * BUCKET_BYTES
            assert segment.control_words == control_words
            control_bytes = segment.table_address - segment.control_address
            assert control_bytes % PAGE_BYTES == 0
            assert 8 * control_words <= control_bytes < 8 * control_words + PAGE_BYTES
            assert segment.table_address % PAGE_BYTES == 0
            assert segment.generation_address % 8 == 0
            everything = ctypes.string_at(segment.control_address, control_bytes + segment.size_bytes)
            assert everything.count(0) == len(everything)
        last_word = ctypes.c_uint64.from_address(shared.table_address + shared.size_bytes - 8)
        last_word.value = 7  # Within the mapping, or this would be SIGSEGV.
        assert segment_path(shared).stat().st_size == HEADER_BYTES + control_bytes + shared.size_bytes


def test_attached_sees_the_same_words(tmp_path: Path) -> None:
    with (
        Segment.create(0.5, control_words=3, directory=tmp_path) as owner,
        Segment.attach(segment_path(owner)) as other,
    ):
        offsets = {"table_address": owner.size_bytes - 8, "control_address": 16, "generation_address": 0}
        for value, (name, offset) in enumerate(offsets.items(), start=40):
            ctypes.c_uint64.from_address(getattr(owner, name) + offset).value = value
            assert ctypes.c_uint64.from_address(getattr(other, name) + offset).value == value
            ctypes.c_uint64.from_address(getattr(other, name) + offset).value = value + 9
            assert ctypes.c_uint64.from_address(getattr(owner, name) + offset).value == value + 9
        with Segment.attach(segment_path(owner)) as third:  # The generation word has damaged no other field.
            assert (third.buckets, third.control_words) == (owner.buckets, 3)


def test_attached_in_another_process(tmp_path: Path) -> None:
    with Segment.create(1, control_words=1, directory=tmp_path) as owner:
        code = (
            "import ctypes\nfrom pathlib import Path\nfrom tt_store.segment import Segment\n"
            f"with Segment.attach(Path({str(owner.path)!r})) as other:\n"
            "    ctypes.c_uint64.from_address(other.control_address).value = 77\n"
            "    assert other.owner_is_alive()\n"
        )
        subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True)
        assert ctypes.c_uint64.from_address(owner.control_address).value == 77
        assert segment_path(owner).exists()


def test_file_name_and_mode(tmp_path: Path) -> None:
    previous = os.umask(0o277)
    try:
        segment = Segment.create(0.01, label="node-7/é", directory=tmp_path)
    finally:
        os.umask(previous)
    with segment:
        path = segment_path(segment)
        start = f"rootsplit-{os.getuid()}-{os.getpid()}-{own_start_ticks()}-{own_namespace()}-node_7__-"
        assert path.name.startswith(start)
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
        assert path.stat().st_mode & 0o7777 == 0o600
        with Segment.create(0.01, label="node-7/é", directory=tmp_path) as second:
            assert second.path != path
    assert list(tmp_path.iterdir()) == []


def test_default_directory_is_shared_memory_and_cleaned_up() -> None:
    with Segment.create(0.01, label="default") as segment:
        path = segment_path(segment)
        assert path.parent == memory.default_directory()
        assert path in [leftover.path for leftover in leftovers()]
    assert not path.exists()


def test_default_directory_without_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARED_MEMORY", tmp_path / "missing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Segment.create(0.01) as segment:
        assert segment_path(segment).parent == tmp_path


def test_private_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARED_MEMORY", tmp_path)
    with Segment.private(1, control_words=2) as segment:
        assert segment.path is None
        assert segment.owner_is_alive()
        assert list(tmp_path.iterdir()) == []


def test_close_twice_and_no_address_afterwards(tmp_path: Path) -> None:
    owner = Segment.create(0.01, control_words=1, directory=tmp_path)
    path = segment_path(owner)
    for segment in (Segment.attach(path), Segment.private(0.01), owner):
        assert path.exists()
        segment.close()
        segment.close()
        for name in ("table_address", "control_address", "generation_address"):
            with pytest.raises(ValueError, match="closed"):
                getattr(segment, name)
        with pytest.raises(ValueError, match="closed"):
            segment.heartbeat(1.0)
    assert not path.exists()


def test_forked_child_does_not_remove_the_file(tmp_path: Path) -> None:
    with Segment.create(0.01, directory=tmp_path) as segment:
        child = os.fork()
        if child == 0:
            segment.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert segment_path(segment).exists()


def test_heartbeat(tmp_path: Path) -> None:
    with (
        Segment.create(0.01, directory=tmp_path) as owner,
        Segment.attach(segment_path(owner)) as other,
    ):
        assert 0 <= owner.heartbeat_age_s(time.time()) < 30
        owner.heartbeat(1000.25)
        assert other.heartbeat_age_s(1003.0) == 2.75
        assert ctypes.c_uint64.from_address(other.generation_address).value == 0


def test_huge_pages_are_advice_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise OSError(errno.EINVAL, "no huge pages")

    monkeypatch.setattr(segment_module, "HUGE_PAGES_FROM_BYTES", 0)

    class Mapping:
        madvise = refuse

    assert segment_module._advise_huge_pages(Mapping(), 64) is False  # type: ignore[arg-type]
    monkeypatch.undo()
    with Segment.private(1) as small:
        assert small.huge_pages is False


def test_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr(segment_module, "free_bytes", lambda _: 16 * BYTES_PER_MB)
    with pytest.raises(TableError, match=rf"^a table of 25 MB does not fit into {tmp_path}: 16 MB are free; ask for a"):
        Segment.create(25, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(memory, "SHARED_MEMORY", tmp_path)
    with pytest.raises(TableError, match=r"with --table, or enlarge it \(docker run --shm-size\)$"):
        Segment.create(25)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("function", ["posix_fallocate", "pwrite", "fchmod"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_failed_creation(
    function: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, function, fail)
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TableError if isinstance(error, OSError) else KeyboardInterrupt):
        Segment.create(0.01, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_missing_directory_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"cannot make a table in .*missing: No such file"):
        Segment.create(0.01, directory=tmp_path / "missing")
    assert leftovers(tmp_path / "missing") == []


def refused(path: Path, reason: str) -> None:
    with pytest.raises(TableError, match=reason) as caught:
        Segment.attach(path)
    assert str(path) in str(caught.value)
    assert is_one_sentence(caught.value)


def test_attach_refuses_damaged_headers(tmp_path: Path) -> None:
    with Segment.create(0.01, control_words=600, directory=tmp_path) as owner:
        path = segment_path(owner)
        good = path.read_bytes()[:HEADER_BYTES]
        for offset, reason in ((0, "not a table"), (8, "layout version"), (16, "damaged"), (24, "damaged")):
            for content in (b"\xff" * 8, bytes(8)):
                patch(path, offset, content)
                refused(path, reason)
                patch(path, 0, good)
        patch(path, 16, struct.pack("=Q", owner.buckets + 1))
        refused(path, "damaged: it has .* bytes, but")
        patch(path, 0, good)
        Segment.attach(path).close()


def test_attach_refuses_a_wrong_size(tmp_path: Path) -> None:
    with Segment.create(0.01, directory=tmp_path) as owner:
        path = segment_path(owner)
        good = path.read_bytes()
    for size_bytes in (0, 7, 72, HEADER_BYTES - 1, HEADER_BYTES, len(good) - 64, len(good) - 1):
        path.write_bytes(good[:size_bytes])
        path.chmod(0o600)
        refused(path, "too short|damaged")
    path.write_bytes(good + bytes(64))
    refused(path, "damaged")


def test_attach_refuses_what_is_not_our_file(tmp_path: Path) -> None:
    with Segment.create(0.01, directory=tmp_path) as owner:
        path = segment_path(owner)
        link, pipe = tmp_path / "link", tmp_path / "pipe"
        link.symlink_to(path)
        refused(link, "symbolic link")
        os.mkfifo(pipe, 0o600)
        refused(pipe, "not a regular file")
        refused(tmp_path, "[Ii]s a directory")
        refused(tmp_path / "missing", "No such file")
        for mode in (0o640, 0o602, 0o700, 0o4600):
            path.chmod(mode)
            refused(path, f"mode {mode:04o} instead of 0600")


def test_attach_refuses_another_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Segment.create(0.01, directory=tmp_path) as owner:
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
        refused(segment_path(owner), f"belongs to user {user}")


def test_attach_fills_holes(tmp_path: Path) -> None:
    """A sparse file on a full file system would be SIGBUS at the first touch."""
    with Segment.create(1, directory=tmp_path) as owner:
        header = segment_path(owner).read_bytes()[:HEADER_BYTES]
        size_bytes = segment_path(owner).stat().st_size
    path = tmp_path / "sparse"
    path.write_bytes(header)
    path.chmod(0o600)
    os.truncate(path, size_bytes)
    assert path.stat().st_blocks * 512 < size_bytes
    Segment.attach(path).close()
    assert path.stat().st_blocks * 512 >= size_bytes


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


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


GROUP_2 = "sys/fs/cgroup/pod/work"
GROUP_1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 1 << 47),
        ({"proc/meminfo": "MemFree: 9 kB\nMemAvailable:   500 kB\n"}, 500 * 1024),
        ({"proc/self/cgroup": "0::/pod/work\n", f"{GROUP_2}/memory.max": "max\n"}, 1 << 47),
        (
            {
                "proc/meminfo": "MemAvailable: 500 kB\n",
                "proc/self/cgroup": "0::/pod/work\n",
                f"{GROUP_2}/memory.max": "max\n",
                f"{GROUP_2}/memory.current": "9\n",
                "sys/fs/cgroup/pod/memory.max": "3000\n",
                "sys/fs/cgroup/pod/memory.current": "2500\n",
                "sys/fs/cgroup/pod/memory.stat": "anon 1\ninactive_file 400\n",
            },
            900,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/x\n4:memory:/docker/on-the-host\n",
                f"{GROUP_1}/memory.limit_in_bytes": "7000\n",
                f"{GROUP_1}/memory.usage_in_bytes": "8000\n",
                f"{GROUP_1}/memory.stat": "inactive_file 1\ntotal_inactive_file 1500\n",
            },
            500,
        ),
    ],
)
def test_available_memory(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    write_tree(tmp_path, files)
    assert available_bytes(tmp_path) == expected


def test_named_offsets_match_the_header(tmp_path: Path) -> None:
    with Segment.create(0.01, directory=tmp_path) as owner:
        ctypes.c_uint64.from_address(owner.generation_address).value = 63
        raw = segment_path(owner).read_bytes()
    assert struct.unpack_from("=Q", raw, GENERATION_OFFSET) == (63,)
    assert struct.unpack_from("=Q", raw, NAMESPACE_OFFSET) == (own_namespace(),)
    assert abs(struct.unpack_from("=d", raw, HEARTBEAT_OFFSET)[0] - time.time()) < 60
