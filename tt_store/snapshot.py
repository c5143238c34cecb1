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

import contextlib
import ctypes
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import BinaryIO

import msgpack
import numpy as np
import numpy.typing as npt

from tt_store.errors import TableError
from tt_store.layout import (
    BUCKET_ENTRIES,
    DEPTH_MASK,
    DEPTH_SHIFT,
    ENTRY_BYTES,
    GENERATION_MASK,
    GENERATION_SHIFT,
    WORD_BYTES,
)
from tt_store.segment import Segment

MAGIC = b"ROOTSNAP"
FORMAT = "rootsplit table snapshot"
VERSION = 1
HEADER_AREA_BYTES = 4096
PREFIX_BYTES = 12
"""The magic and the header's length."""

BLOCK_ENTRIES = 1 << 16
"""Entries in one step: 1 MB of the file, about 12 MB with all that is computed from it."""

CHECKSUM_BYTES = 32
GAME_BYTES = 256

Words = npt.NDArray[np.uint64]
_CHECK, _DATA = 0, 1  # The words of an entry in a table.
_HALF_BITS = np.uint64(32)
_HALF_MASK = np.uint64(0xFFFF_FFFF)


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
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    try:
        with temporary.open("xb") as file, contextlib.ExitStack() as on_failure:
            on_failure.callback(temporary.unlink, missing_ok=True)
            count = _write(file, segment, game)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
            on_failure.pop_all()
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
            table, generation = _table_words(segment), _generation(segment)
            file.seek(HEADER_AREA_BYTES)
            written = 0
            for entries in _blocks(file, header.count, path):
                _move_generation(entries, generation - header.generation)
                written += _merge(table, entries)
            return written
    except OSError as error:
        raise TableError(f"cannot read the snapshot {path}: {error.strerror}") from error


def bucket_indices(keys: Words, buckets: int) -> Words:
    """Return the bucket of each key: the high word of ``key * buckets``, as the compiled `multiply_high` has it.

    Parameters
    ----------
    keys
        ``[N]`` hashes.
    buckets
        Number of buckets, at least 1.
    """
    few, many = np.uint64(buckets & 0xFFFF_FFFF), np.uint64(buckets >> 32)
    low, high = keys & _HALF_MASK, keys >> _HALF_BITS
    high_few, low_many = high * few, low * many
    carry = (low * few >> _HALF_BITS) + (high_few & _HALF_MASK) + (low_many & _HALF_MASK)
    indices: Words = high * many + (high_few >> _HALF_BITS) + (low_many >> _HALF_BITS) + (carry >> _HALF_BITS)
    return indices


def _table_words(segment: Segment) -> Words:
    """Return the table as ``[buckets, 4, 2]`` words: by address, as an exported pointer would block `close`."""
    memory = (ctypes.c_uint64 * (segment.size_bytes // WORD_BYTES)).from_address(segment.table_address)
    words: Words = np.ctypeslib.as_array(memory)
    return words.reshape(segment.buckets, BUCKET_ENTRIES, 2)


def _generation(segment: Segment) -> int:
    return ctypes.c_int64.from_address(segment.generation_address).value & GENERATION_MASK


def _pack_header(header: _Header, checksum: bytes) -> bytes:
    packed: bytes = msgpack.packb({**asdict(header), "checksum": checksum})
    return (MAGIC + len(packed).to_bytes(4, "little") + packed).ljust(HEADER_AREA_BYTES, b"\0")


def _write(file: BinaryIO, segment: Segment, game: str) -> int:
    file.write(bytes(HEADER_AREA_BYTES))
    digest = hashlib.blake2b(digest_size=CHECKSUM_BYTES)
    count = 0
    for entries in _gather(_table_words(segment)):
        block = entries.astype("<u8").tobytes()
        digest.update(block)
        file.write(block)
        count += len(entries)
    header = _Header(FORMAT, VERSION, game, segment.buckets, _generation(segment), ENTRY_BYTES, count)
    digest.update(_pack_header(header, b""))
    file.seek(0)
    file.write(_pack_header(header, digest.digest()))
    return count


def _gather(table: Words) -> Iterator[Words]:
    """Yield the entries of a table as blocks of ``[N, 2]`` keys and data."""
    step = BLOCK_ENTRIES // BUCKET_ENTRIES
    for first in range(0, len(table), step):
        # Race: others write meanwhile. What is judged below is this copy, and an entry that was torn in it has a
        # key that almost never belongs to its bucket.
        slots = table[first : first + step].copy()
        keys = slots[..., _CHECK] ^ slots[..., _DATA]
        own_index = np.arange(first, first + len(slots), dtype=np.uint64)[:, np.newaxis]
        whole = (slots[..., _DATA] != 0) & (bucket_indices(keys, len(table)) == own_index)
        yield np.stack((keys[whole], slots[..., _DATA][whole]), axis=1)


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
    data = entries[:, _DATA]
    moved = ((data >> position) + np.uint64(shift & GENERATION_MASK)) & mask
    entries[:, _DATA] = data & ~(mask << position) | moved << position


def _merge(table: Words, entries: Words) -> int:
    """Put ``[N, 2]`` keys and data into their buckets, the deepest four of each; return how many were written."""
    touched, new_owner = np.unique(bucket_indices(entries[:, 0], len(table)), return_inverse=True)
    present = table[touched]
    old_owner, old_slot = np.nonzero(present[..., _DATA])
    old = present[old_owner, old_slot]
    owner = np.concatenate((new_owner, old_owner))
    key = np.concatenate((entries[:, 0], old[:, _CHECK] ^ old[:, _DATA]))
    data = np.concatenate((entries[:, _DATA], old[:, _DATA]))
    shallowness = DEPTH_MASK - (data >> np.uint64(DEPTH_SHIFT) & np.uint64(DEPTH_MASK)).astype(np.int64)

    # Step 1. Of entries with one key keep the deepest; the sort is stable, so a new one wins a tie.
    order = np.lexsort((shallowness, key))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = key[order[1:]] != key[order[:-1]]
    order = order[is_first]

    # Step 2. Of the entries of a bucket keep the deepest four.
    order = order[np.lexsort((shallowness[order], owner[order]))]
    rank = np.arange(len(order)) - np.searchsorted(owner[order], owner[order])
    order, rank = order[rank < BUCKET_ENTRIES], rank[rank < BUCKET_ENTRIES]

    # Step 3. Write whole buckets. Race: a reader meets old and new words mixed; its check then fails.
    present[:] = 0
    present[owner[order], rank, _CHECK] = key[order] ^ data[order]
    present[owner[order], rank, _DATA] = data[order]
    table[touched] = present
    return int(np.count_nonzero(order < len(entries)))
