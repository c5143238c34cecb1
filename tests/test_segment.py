"""The shared-memory segment: sizes, layout, trust, and who may remove what."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import re
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from segments import (
    REPOSITORY,
    is_one_sentence,
    own_namespace,
    own_start_ticks,
    patch,
    segment_path,
)

from tt_store import memory
from tt_store import segment as segment_module
from tt_store.errors import TableError
from tt_store.layout import BUCKET_BYTES, BYTES_PER_MB
from tt_store.reclaim import leftovers
from tt_store.segment import (
    GENERATION_OFFSET,
    HEADER_BYTES,
    HEARTBEAT_OFFSET,
    NAMESPACE_OFFSET,
    PAGE_BYTES,
    Segment,
)


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
    with pytest.raises(
        TableError, match=r"--table auto, or enlarge it \(docker run --shm-size; .* emptyDir .*--table-dir$"
    ):
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


def test_named_offsets_match_the_header(tmp_path: Path) -> None:
    with Segment.create(0.01, directory=tmp_path) as owner:
        ctypes.c_uint64.from_address(owner.generation_address).value = 63
        raw = segment_path(owner).read_bytes()
    assert struct.unpack_from("=Q", raw, GENERATION_OFFSET) == (63,)
    assert struct.unpack_from("=Q", raw, NAMESPACE_OFFSET) == (own_namespace(),)
    assert abs(struct.unpack_from("=d", raw, HEARTBEAT_OFFSET)[0] - time.time()) < 60
