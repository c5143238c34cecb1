"""Snapshots of a table: what travels, what wins a place, and what is refused."""

from __future__ import annotations

import ctypes
import errno
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from tt_store import bulk, snapshot
from tt_store.errors import TableError
from tt_store.layout import BOUND_EXACT, BUCKET_BYTES, BUCKET_ENTRIES, BYTES_PER_MB, Entry, pack, unpack
from tt_store.segment import Segment

HEADER = snapshot.HEADER_AREA_BYTES


def words(segment: Segment) -> Any:
    return (ctypes.c_uint64 * (segment.size_bytes // 8)).from_address(segment.table_address)


def table_bytes(segment: Segment) -> bytes:
    return ctypes.string_at(segment.table_address, segment.size_bytes)


def set_generation(segment: Segment, generation: int) -> None:
    ctypes.c_int64.from_address(segment.generation_address).value = generation


def fill(segment: Segment, count: int, seed: int = 1, generation: int = 0) -> dict[int, int]:
    """Put random entries where there is room for them, and return data by key."""
    generator, table, stored = random.Random(seed), words(segment), {}
    for _ in range(count):
        key = generator.getrandbits(64)
        entry = Entry(generator.randrange(-999, 999), generator.randrange(99), generator.randrange(256), 3, generation)
        first = (key * segment.buckets >> 64) * BUCKET_ENTRIES
        for slot in range(first, first + BUCKET_ENTRIES):
            if table[2 * slot + 1] == 0:
                table[2 * slot], table[2 * slot + 1] = key ^ pack(entry), pack(entry)
                stored[key] = pack(entry)
                break
    return stored


def contents(segment: Segment) -> dict[int, int]:
    """Return data by key, and check that each entry lies in its own bucket."""
    table, found = words(segment), {}
    for slot in range(segment.buckets * BUCKET_ENTRIES):
        check, data = table[2 * slot], table[2 * slot + 1]
        if data:
            assert (check ^ data) * segment.buckets >> 64 == slot // BUCKET_ENTRIES
            assert check ^ data not in found
            found[check ^ data] = data
    return found


def buckets_mb(buckets: int) -> float:
    return buckets * BUCKET_BYTES / BYTES_PER_MB


def depths_by_bucket(entries: dict[int, int], buckets: int) -> dict[int, list[int]]:
    """Return the depths of the deepest four of each bucket: the plain oracle of `load`."""
    depths = defaultdict(list)
    for key, data in entries.items():
        depths[key * buckets >> 64].append(unpack(data).depth)
    return {bucket: sorted(found)[-BUCKET_ENTRIES:] for bucket, found in depths.items()}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small tables go through several blocks; 28 entries do not divide anything evenly."""
    monkeypatch.setattr(bulk, "BLOCK_ENTRIES", 28)
    monkeypatch.setattr(snapshot, "BLOCK_ENTRIES", 28)


@pytest.mark.parametrize("buckets", [1, 7, 64, 1000])
def test_round_trip_with_equal_geometry(buckets: int, tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    with Segment.private(buckets_mb(buckets)) as old, Segment.private(buckets_mb(buckets)) as new:
        assert old.buckets == buckets
        stored = fill(old, 3 * buckets)
        before = table_bytes(old)
        assert snapshot.save(old, path, game="chess") == len(stored)
        assert table_bytes(old) == before
        assert snapshot.load(new, path, game="chess") == len(stored)
        assert contents(new) == stored
        assert snapshot.load(new, path, game="chess") == len(stored)
        assert contents(new) == stored
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("buckets", [1, 2, 13, 333, 999, 1001, 5000])
def test_round_trip_with_another_geometry(buckets: int, tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    with Segment.private(buckets_mb(1000)) as old, Segment.private(buckets_mb(buckets)) as new:
        stored = fill(old, 3000)
        snapshot.save(old, path, game="chess")
        written = snapshot.load(new, path, game="chess")
        loaded = contents(new)
        assert loaded.items() <= stored.items()
        expected = depths_by_bucket(stored, buckets)
        assert {bucket: sorted(depths) for bucket, depths in depths_by_bucket(loaded, buckets).items()} == expected
        assert len(loaded) <= written <= len(stored)
        if buckets >= 5000:
            assert loaded == stored


@pytest.mark.parametrize("block_entries", [4, 28, 1000])
def test_deeper_entries_of_the_table_stay(block_entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BLOCK_ENTRIES", block_entries)
    monkeypatch.setattr(snapshot, "BLOCK_ENTRIES", block_entries)
    path = tmp_path / "a.snapshot"
    with Segment.private(buckets_mb(50)) as old, Segment.private(buckets_mb(50)) as new:
        ours, theirs = fill(old, 300, seed=1), fill(new, 300, seed=2)
        snapshot.save(old, path, game="chess")
        written = snapshot.load(new, path, game="chess")
        loaded = contents(new)
        assert depths_by_bucket(loaded, 50) == depths_by_bucket(ours | theirs, 50)
        assert loaded.items() <= (ours | theirs).items()
        kept = len(loaded.keys() & ours.keys())
        assert kept <= written <= len(ours)
        assert written == kept or block_entries < 1000


def test_of_one_key_the_deeper_entry_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    with Segment.private(buckets_mb(1)) as old, Segment.private(buckets_mb(1)) as new:
        for old_depth, new_depth, expected_score in ((9, 5, 1), (5, 9, 2), (7, 7, 1)):
            for segment, depth, score in ((old, old_depth, 1), (new, new_depth, 2)):
                data = pack(Entry(score, 0, depth, BOUND_EXACT, 0))
                words(segment)[0], words(segment)[1] = 77 ^ data, data
            snapshot.save(old, path, game="chess")
            assert snapshot.load(new, path, game="chess") == int(expected_score == 1)
            assert {key: unpack(data).score for key, data in contents(new).items()} == {77: expected_score}


def test_a_key_that_a_race_stored_twice_is_merged(tmp_path: Path) -> None:
    with Segment.private(buckets_mb(1)) as table:
        for slot, depth in enumerate((4, 6)):
            data = pack(Entry(0, 0, depth, BOUND_EXACT, 0))
            words(table)[2 * slot], words(table)[2 * slot + 1] = 77 ^ data, data
        assert snapshot.save(table, tmp_path / "a.snapshot", game="chess") == 2
        assert snapshot.load(table, tmp_path / "a.snapshot", game="chess") == 1
        assert {key: unpack(data).depth for key, data in contents(table).items()} == {77: 6}


@pytest.mark.parametrize(("saved", "written", "loaded", "expected"), [(5, 3, 0, 62), (63, 63, 2, 2), (0, 63, 63, 62)])
def test_entries_keep_their_age(saved: int, written: int, loaded: int, expected: int, tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    with Segment.private(0.01) as old, Segment.private(0.01) as new:
        stored = fill(old, 50, generation=written)
        set_generation(old, saved)
        set_generation(new, loaded)
        snapshot.save(old, path, game="chess")
        snapshot.load(new, path, game="chess")
        wanted = {key: unpack(data)._replace(generation=expected) for key, data in stored.items()}
        assert {key: unpack(data) for key, data in contents(new).items()} == wanted


def test_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    with Segment.private(0.01) as old, Segment.private(0.01) as new:
        assert snapshot.save(old, path, game="chess") == 0
        assert path.stat().st_size == HEADER
        stored = fill(new, 20)
        assert snapshot.load(new, path, game="chess") == 0
        assert contents(new) == stored


def test_torn_entries_do_not_travel(tmp_path: Path) -> None:
    with Segment.private(buckets_mb(1000)) as old:
        stored = fill(old, 500)
        table = words(old)
        torn = next(slot for slot in range(4000) if table[2 * slot + 1])
        table[2 * torn] ^= 1 << 63  # As if two writers had met: the key is one of another bucket now.
        assert snapshot.save(old, tmp_path / "a.snapshot", game="chess") == len(stored) - 1


@pytest.mark.parametrize("buckets", [1, 3, 2**32 - 1, 2**32, 2**32 + 1, 2**40 + 12345, 2**64 - 1])
def test_bucket_indices_are_multiply_high(buckets: int) -> None:
    generator = random.Random(buckets)
    keys = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *(generator.getrandbits(64) for _ in range(500))]
    indices = bulk.bucket_indices(np.array(keys, dtype=np.uint64), buckets)
    assert indices.tolist() == [key * buckets >> 64 for key in keys]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the path of a good snapshot of a few entries."""
    path = tmp_path / "small.snapshot"
    with Segment.private(buckets_mb(40)) as old:
        assert len(fill(old, 40)) > 30
        snapshot.save(old, path, game="chess")
    return path


@pytest.fixture
def target() -> Iterator[Segment]:
    """Yield a table that holds something already."""
    with Segment.private(buckets_mb(20)) as segment:
        fill(segment, 10)
        yield segment


def assert_refused(target: Segment, path: Path, reason: str | None = None, game: str = "chess") -> None:
    """Check that a file is refused in one sentence and that the table is untouched."""
    before = table_bytes(target)
    with pytest.raises(TableError, match=reason) as caught:
        snapshot.load(target, path, game=game)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert table_bytes(target) == before


def test_every_flipped_byte_is_refused(small: Path, target: Segment) -> None:
    good = small.read_bytes()
    for position in range(len(good)):
        for flip in (0x01, 0x80, 0xFF) if position < 400 else (0x10,):
            damaged = bytearray(good)
            damaged[position] ^= flip
            small.write_bytes(damaged)
            assert_refused(target, small)


def test_every_truncation_is_refused(small: Path, target: Segment) -> None:
    good = small.read_bytes()
    for length in range(len(good)):
        small.write_bytes(good[:length])
        assert_refused(target, small, "damaged|not a snapshot")
    small.write_bytes(good + bytes(16))
    assert_refused(target, small, "damaged: it has")


def test_other_game_is_refused(small: Path, target: Segment) -> None:
    assert_refused(target, small, "game 'chess', not of 'othello'", game="othello")


def write_header(path: Path, **changes: Any) -> None:
    """Replace fields of a snapshot's header; None removes one."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[8:12], "little")
    values = msgpack.unpackb(raw[12 : 12 + length]) | changes
    packed = msgpack.packb({name: value for name, value in values.items() if value is not None})
    path.write_bytes((raw[:8] + len(packed).to_bytes(4, "little") + packed).ljust(HEADER, b"\0") + raw[HEADER:])


def test_unchanged_header_is_accepted(small: Path) -> None:
    write_header(small)
    with Segment.private(0.1) as new:
        assert snapshot.load(new, small, game="chess") > 30


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"count": 2**64 - 1}, "damaged: it has"),
        ({"count": 0}, "damaged: it has"),
        ({"count": -1}, "damaged"),
        ({"count": "30"}, "damaged"),
        ({"count": True}, "damaged"),
        ({"count": 3.0}, "damaged"),
        ({"count": None}, "damaged"),
        ({"buckets": 0}, "damaged"),
        ({"buckets": 41}, "checksum"),
        ({"generation": 64}, "damaged"),
        ({"entry_bytes": 8}, "damaged"),
        ({"version": 2}, "version 2, but this program knows 1"),
        ({"format": "something else"}, "damaged"),
        ({"game": 7}, "damaged"),
        ({"game": "x" * 300}, "damaged"),
        ({"game": ["chess"]}, "damaged"),
        ({"checksum": b""}, "checksum"),
        ({"checksum": bytes(32)}, "checksum"),
        ({"checksum": "text"}, "damaged"),
        ({"extra": 1}, "damaged"),
    ],
)
def test_bad_header_fields_are_refused(changes: dict[str, Any], reason: str, small: Path, target: Segment) -> None:
    write_header(small, **changes)
    assert_refused(target, small, reason)


@pytest.mark.parametrize(
    "packed", [b"\xc0", b"\x91" * 2000, b"\xdf\xff\xff\xff\xff", b"\x81\x90\x01", b"\xa1\xff", b""]
)
def test_hostile_headers_are_refused(packed: bytes, small: Path, target: Segment) -> None:
    raw = small.read_bytes()
    header = raw[:8] + len(packed).to_bytes(4, "little") + packed
    small.write_bytes(header.ljust(HEADER, b"\0") + raw[HEADER:])
    assert_refused(target, small, "damaged")


def test_what_is_no_snapshot_is_refused(tmp_path: Path, target: Segment) -> None:
    for name, content in (("empty", b""), ("text", b"e4 e5\n" * 2000), ("zeros", bytes(9000))):
        (tmp_path / name).write_bytes(content)
        assert_refused(target, tmp_path / name, "not a snapshot")
    os.mkfifo(tmp_path / "pipe")
    assert_refused(target, tmp_path / "pipe", "not a regular file")
    assert_refused(target, tmp_path / "missing", "No such file")
    assert_refused(target, tmp_path, "cannot read the snapshot|not a regular file")


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        with Segment.private(0.01) as table:
            snapshot.save(table, tmp_path / "a", game="chess")
    finally:
        os.umask(previous)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_failed_save_keeps_the_old_file(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = small.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with Segment.private(0.01) as table, pytest.raises(TableError, match=r"cannot write .*: No space left"):
        snapshot.save(table, small, game="chess")
    assert small.read_bytes() == before
    assert list(small.parent.iterdir()) == [small]


def test_unwritable_places_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with Segment.private(0.01) as table:
        for path in (tmp_path / "missing/a", tmp_path / "file/a", tmp_path / "folder", Path(".")):
            with pytest.raises(TableError, match="cannot write the snapshot"):
                snapshot.save(table, path, game="chess")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_long_game_name_is_refused(tmp_path: Path) -> None:
    with Segment.private(0.01) as table:
        with pytest.raises(ValueError, match="at most 256 bytes"):
            snapshot.save(table, tmp_path / "a", game="é" * 129)
        snapshot.save(table, tmp_path / "a", game="é" * 128)
        assert snapshot.load(table, tmp_path / "a", game="é" * 128) == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_segment_closes_after_a_refusal(small: Path) -> None:
    """The traceback keeps the frames alive: no array in them may hold on to the mapping."""
    segment = Segment.private(0.01)
    small.write_bytes(small.read_bytes()[:-1])
    with pytest.raises(TableError) as caught:
        snapshot.load(segment, small, game="chess")
    segment.close()
    assert caught.value
