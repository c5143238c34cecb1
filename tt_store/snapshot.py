"""Snapshots: the entries of a table in a file, and back into a table of any size.

The file::

    0     +------------------------------------------------------------------------------+
          | magic, 8 bytes | length of the header, 4 bytes | header: a msgpack map | 0.. |
    4096  +------------------------------------------------------------------------------+
          | entries: key, data; 8 bytes each, little-endian; empty slots do not travel   |
          +------------------------------------------------------------------------------+

The header has a fixed place because it is written last: how many entries there are is known only at the end, while
other processes may still be searching. The checksum covers the entries and all other fields of the header.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import BinaryIO

import msgpack
import numpy as np

from tt_store.bulk import BLOCK_ENTRIES, DATA, Words, gather, merge, table_words
from tt_store.errors import TableError
from tt_store.files import written_aside
from tt_store.layout import (
    ENTRY_BYTES,
    GENERATION_MASK,
    GENERATION_SHIFT,
)
from tt_store.segment import Segment

MAGIC = b"ROOTSNAP"
FORMAT = "rootsplit table snapshot"
VERSION = 1
HEADER_AREA_BYTES = 4096
PREFIX_BYTES = 12
"""The magic and the header's length."""

CHECKSUM_BYTES = 32
GAME_BYTES = 256


@dataclass(frozen=True)
class _Header:
    """What the checksum covers besides the entries; fields in the order of the map."""

    format: str
    version: int
    game: str
    buckets: int
    generation: int
    """The table's search generation at the time, 0..63: entries keep their *age* on the way."""
    entry_bytes: int
    count: int


def save(segment: Segment, path: Path, *, game: str) -> int:
    """Write the entries of a table to a file, whole or not at all, and return how many there are.

    The table may be in use: entries that are torn at that moment are left out.

    Parameters
    ----------
    segment
        The table.
    path
        The file, replaced if it exists; its mode follows the umask.
    game
        Name of the game that the keys belong to; at most 256 bytes of UTF-8.

    Raises
    ------
    TableError
        If the file cannot be written; what was there before is then still there.
    ValueError
        If the game's name is too long.
    """
    if len(game.encode()) > GAME_BYTES:
        raise ValueError(f"the name of a game has at most {GAME_BYTES} bytes")
    try:
        with written_aside(path) as file:
            count = _write(file, segment, game)
    except OSError as error:
        raise TableError(f"cannot write the snapshot {path}: {error.strerror}") from error
    return count


def load(segment: Segment, path: Path, *, game: str) -> int:
    """Put the entries of a snapshot into a table, and return how many of them found a place.

    The sizes may differ. Where more than four entries want one bucket, counting what it holds already, the deepest
    four win, and of two with the same key the deeper. Ages are kept: an entry of the search before the snapshot
    becomes one of the search before the table's present one. Nothing is written before the whole file was checked.
    In the count is also an entry that found a place and then lost it to a deeper one from further on in the file.

    Parameters
    ----------
    segment
        The table.
    path
        A file that `save` wrote.
    game
        Name of the game that the table is for.

    Raises
    ------
    TableError
        If the file cannot be read, is damaged or no snapshot, or is one of another game.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # Does not hang on a named pipe.
        with open(descriptor, "rb") as file:
            header = _verify(file, path, game)
            table, generation = table_words(segment), _generation(segment)
            file.seek(HEADER_AREA_BYTES)
            written = 0
            for entries in _blocks(file, header.count, path):
                _move_generation(entries, generation - header.generation)
                written += merge(table, entries)
            return written
    except OSError as error:
        raise TableError(f"cannot read the snapshot {path}: {error.strerror}") from error


def _generation(segment: Segment) -> int:
    return ctypes.c_int64.from_address(segment.generation_address).value & GENERATION_MASK


def _pack_header(header: _Header, checksum: bytes) -> bytes:
    packed: bytes = msgpack.packb({**asdict(header), "checksum": checksum})
    return (MAGIC + len(packed).to_bytes(4, "little") + packed).ljust(HEADER_AREA_BYTES, b"\0")


def _write(file: BinaryIO, segment: Segment, game: str) -> int:
    file.write(bytes(HEADER_AREA_BYTES))
    digest = hashlib.blake2b(digest_size=CHECKSUM_BYTES)
    count = 0
    for entries in gather(table_words(segment)):
        block = entries.astype("<u8").tobytes()
        digest.update(block)
        file.write(block)
        count += len(entries)
    header = _Header(FORMAT, VERSION, game, segment.buckets, _generation(segment), ENTRY_BYTES, count)
    digest.update(_pack_header(header, b""))
    file.seek(0)
    file.write(_pack_header(header, digest.digest()))
    return count


def _verify(file: BinaryIO, path: Path, game: str) -> _Header:
    """Check everything about a file, its checksum last, and return its header."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise TableError(f"{path} is not a regular file, so it cannot be a snapshot")
    header, checksum = _parse_header(file.read(HEADER_AREA_BYTES), path)
    if header.game != game:
        raise TableError(f"the snapshot {path} is one of the game {header.game!r}, not of {game!r}")
    expected_bytes = HEADER_AREA_BYTES + header.count * ENTRY_BYTES
    if status.st_size != expected_bytes:
        raise TableError(
            f"the snapshot {path} is damaged: it has {status.st_size} bytes, "
            f"but {header.count} entries need {expected_bytes}"
        )
    digest = hashlib.blake2b(digest_size=CHECKSUM_BYTES)
    for entries in _blocks(file, header.count, path):
        digest.update(entries.astype("<u8").tobytes())
    digest.update(_pack_header(header, b""))
    if digest.digest() != checksum:
        raise TableError(f"the snapshot {path} is damaged: its checksum is wrong")
    return header


def _parse_header(area: bytes, path: Path) -> tuple[_Header, bytes]:
    if area[: len(MAGIC)] != MAGIC:
        raise TableError(f"{path} is not a snapshot of a table of rootsplit")
    damaged = TableError(f"the snapshot {path} is damaged: its header cannot be read")
    length = int.from_bytes(area[len(MAGIC) : PREFIX_BYTES], "little")
    packed, padding = area[PREFIX_BYTES : PREFIX_BYTES + length], area[PREFIX_BYTES + length :]
    if len(area) != HEADER_AREA_BYTES or len(packed) != length or any(padding):
        raise damaged
    try:
        values = msgpack.unpackb(
            packed,
            max_map_len=len(fields(_Header)) + 1,
            max_str_len=GAME_BYTES,
            max_bin_len=CHECKSUM_BYTES,
            max_array_len=0,
            max_ext_len=0,
        )
    except (ValueError, msgpack.UnpackException) as error:
        raise damaged from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise damaged
    if values.get("version") != VERSION:
        raise TableError(f"the snapshot {path} has version {values.get('version')!r}, but this program knows {VERSION}")
    checksum = values.pop("checksum", None)
    # Annotations are strings here, so they are compared as such.
    kinds = {name: type(value).__name__ for name, value in values.items()}
    if kinds != {field.name: field.type for field in fields(_Header)} or not isinstance(checksum, bytes):
        raise damaged
    header = _Header(**values)
    in_range = header.buckets >= 1 and header.count >= 0 and 0 <= header.generation <= GENERATION_MASK
    if not in_range or header.entry_bytes != ENTRY_BYTES:
        raise damaged
    return header, checksum


def _blocks(file: BinaryIO, count: int, path: Path) -> Iterator[Words]:
    """Yield the entries of a file from where it stands, as blocks of ``[N, 2]`` keys and data."""
    while count > 0:
        block = file.read(min(count, BLOCK_ENTRIES) * ENTRY_BYTES)
        if not block or len(block) % ENTRY_BYTES:
            raise TableError(f"the snapshot {path} became shorter while it was read")
        count -= len(block) // ENTRY_BYTES
        yield np.frombuffer(block, dtype="<u8").reshape(-1, 2).astype(np.uint64)


def _move_generation(entries: Words, shift: int) -> None:
    mask, position = np.uint64(GENERATION_MASK), np.uint64(GENERATION_SHIFT)
    data = entries[:, DATA]
    moved = ((data >> position) + np.uint64(shift & GENERATION_MASK)) & mask
    entries[:, DATA] = data & ~(mask << position) | moved << position
