"""The shared-memory segment: our own mapping of a file, with a header, control words and the table.

Not ``multiprocessing.shared_memory``: its resource tracker unlinks a segment as soon as *any* process that attached to
it ends. `tt_store.owner` says how a file is called. The mapping, in a file and in a private one alike::

    0        +----------------------------------------------------------------------------------------+
             | header, one page                                                                       |
             |   0 magic, 8 bytes    8 version      16 buckets            24 control words            |
             |  32 owner's pid      40 start time   48 pid namespace      56 heartbeat (double)       |
             |  64 generation       72 unused                                                         |
    4096     +----------------------------------------------------------------------------------------+
             | control words, 8 bytes each, rounded up to whole pages (none: no page)                 |
    n * 4096 +----------------------------------------------------------------------------------------+
             | buckets, 64 bytes each (`tt_store.layout`): page-aligned, so each is one cache line    |
             +----------------------------------------------------------------------------------------+
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import math
import mmap
import os
import stat
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tt_store.errors import TableError
from tt_store.layout import (
    BUCKET_BYTES,
    BUCKET_ENTRIES,
    BYTES_PER_MB,
    GENERATION_MASK,
    GENERATION_SHIFT,
    WORD_BYTES,
    buckets_in,
)
from tt_store.memory import available_bytes, default_directory, free_bytes, why_not_created
from tt_store.owner import Owner, file_name, is_alive, this_process

MAGIC = b"ROOTSPLT"
LAYOUT_VERSION = 1
PAGE_BYTES = 4096
HEADER_BYTES = PAGE_BYTES
NAMESPACE_OFFSET, HEARTBEAT_OFFSET, GENERATION_OFFSET = 48, 56, 64
HUGE_PAGES_FROM_BYTES = 16 * BYTES_PER_MB

_FIELDS = struct.Struct("=8s6QdQ")
_HEARTBEAT = struct.Struct("@d")  # Native, so that it is written in one piece.


class Header(NamedTuple):
    """What the header page says, apart from the generation."""

    buckets: int
    control_words: int
    owner: Owner
    heartbeat_s: float


class Segment:
    """A mapped table with its control words; made by `create`, `attach` or `private`, never directly.

    Addresses are valid until `close`; afterwards they must not be used, and asking for one, or for the heartbeat,
    raises ``ValueError``.
    """

    def __init__(self, mapping: mmap.mmap, header: Header, path: Path | None, *, is_owner: bool) -> None:
        self._mapping = mapping
        self._header = header
        self._path = path
        # A forked child inherits this object; it must not remove its parent's file.
        self._unlinking_pid = os.getpid() if is_owner and path is not None else None
        # The exported pointer dies within this line: `mmap.close` fails while one exists.
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        self._huge_pages = _advise_huge_pages(mapping, self.size_bytes)

    @classmethod
    def create(
        cls, size_mb: float, *, control_words: int = 0, label: str = "", directory: Path | None = None
    ) -> Segment:
        """Create a zeroed segment that other processes of this user can attach to.

        Parameters
        ----------
        size_mb
            Size of the table in MB (2^20 bytes), more than 0; rounded down to whole buckets, at least one.
        control_words
            Number of 64-bit words beside the table, 0 or more.
        label
            Part of the file's name, to tell tables apart; anything but letters, digits and ``_`` becomes ``_``.
        directory
            Where the file goes; ``/dev/shm`` by default, the temporary directory where that is missing.

        Raises
        ------
        TableError
            If the size makes no sense, or does not fit into memory or the directory; then no file is left.
        """
        header = _new_header(size_mb, control_words)
        directory = default_directory() if directory is None else directory
        path = directory / file_name(header.owner, label)
        temporary = path.with_name(path.name + ".tmp")
        free = free_bytes(directory)
        with contextlib.ExitStack() as on_failure:
            try:
                flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
                descriptor = os.open(temporary, flags, 0o600)
                on_failure.callback(temporary.unlink, missing_ok=True)
                mapping = _fill_file(descriptor, header)
                on_failure.callback(mapping.close)
                on_failure.callback(path.unlink, missing_ok=True)
                temporary.rename(path)
            except OSError as error:
                raise TableError(why_not_created(error, size_mb, directory, free)) from error
            segment = cls(mapping, header, path, is_owner=True)
            on_failure.pop_all()
        return segment

    @classmethod
    def attach(cls, path: Path) -> Segment:
        """Map the segment that another process created.

        Raises
        ------
        TableError
            If the file cannot be opened, is not a whole segment of this version, or could be another user's work.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
            raise TableError(f"cannot open the table {path}: {reason}") from error
        try:
            status = os.fstat(descriptor)
            _check_trust(status, path)
            header = read_header(descriptor, path)
            if status.st_blocks * 512 < status.st_size:
                # A file with holes would kill us with SIGBUS at a touch where the file system is full.
                os.posix_fallocate(descriptor, 0, status.st_size)
            mapping = mmap.mmap(descriptor, status.st_size)
        except OSError as error:
            raise TableError(f"cannot map the table {path}: {error.strerror}") from error
        except ValueError as error:  # From mmap, which looks at the size once more.
            raise TableError(f"the table {path} became shorter while it was opened") from error
        finally:
            os.close(descriptor)
        return cls(mapping, header, path, is_owner=False)

    @classmethod
    def private(cls, size_mb: float, *, control_words: int = 0) -> Segment:
        """Map a zeroed segment for the threads of this process: nothing is left of it whatever happens.

        Parameters
        ----------
        size_mb, control_words
            As for `create`.

        Raises
        ------
        TableError
            If the size makes no sense or does not fit into memory.
        """
        header = _new_header(size_mb, control_words)
        try:
            mapping = mmap.mmap(-1, _mapping_bytes(header), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise TableError(f"cannot map a table of {size_mb:.10g} MB: {error.strerror}") from error
        mapping[: _FIELDS.size] = _header_bytes(header)
        return cls(mapping, header, None, is_owner=True)

    @property
    def path(self) -> Path | None:
        """Where the file is; None for a private segment."""
        return self._path

    @property
    def buckets(self) -> int:
        """Number of buckets of the table, at least 1."""
        return self._header.buckets

    @property
    def size_bytes(self) -> int:
        """Size of the table alone, a multiple of 64."""
        return self._header.buckets * BUCKET_BYTES

    @property
    def control_words(self) -> int:
        """Number of control words, 0 or more."""
        return self._header.control_words

    @property
    def huge_pages(self) -> bool:
        """Whether the kernel took the advice to use huge pages; it may still not have any."""
        return self._huge_pages

    @property
    def table_address(self) -> int:
        """Address of the first bucket, a multiple of 4096."""
        return self._address_at(_table_offset(self._header.control_words))

    @property
    def control_address(self) -> int:
        """Address of the first control word, a multiple of 4096; that of the table if there is none."""
        return self._address_at(HEADER_BYTES)

    @property
    def generation_address(self) -> int:
        """Address of the word that holds the table's search generation, 0..63; use ``native.atomic_*``."""
        return self._address_at(GENERATION_OFFSET)

    @property
    def generation(self) -> int:
        """Number of the search that the table is used for, 0..63."""
        return ctypes.c_int64.from_address(self.generation_address).value

    def advance_generation(self) -> int:
        """Begin a new search on the table: entries of earlier ones lose worth; return its generation, 0..63."""
        # Only the coordinator of a search calls this, so that nobody else reads and adds at the same time.
        generation = (self.generation + 1) & GENERATION_MASK
        ctypes.c_int64.from_address(self.generation_address).value = generation
        return generation

    def clear(self) -> None:
        """Empty the table; whoever searches meanwhile meets misses."""
        ctypes.memset(self.table_address, 0, self.size_bytes)

    def hashfull(self, generation: int | None = None, sample_buckets: int = 250) -> float:
        """Return the share of entries in use, 0..1: of a sample, as a counter would be shared by all writers.

        Parameters
        ----------
        generation
            If given, only entries that this search wrote or renewed count as used.
        sample_buckets
            How many buckets to look at, at least 1, spread evenly over the table; all of them where it has fewer.
        """
        sample = min(sample_buckets, self.buckets)
        used = 0
        for index in range(sample):
            address = self.table_address + index * self.buckets // sample * BUCKET_BYTES
            # Race: others store meanwhile, so this is a glance; a word is read in one piece.
            words = (ctypes.c_uint64 * (BUCKET_BYTES // WORD_BYTES)).from_address(address)
            for data in words[1::2]:
                is_counted = generation is None or data >> GENERATION_SHIFT & GENERATION_MASK == generation
                used += data != 0 and is_counted
        return used / (sample * BUCKET_ENTRIES)

    def heartbeat(self, now_s: float) -> None:
        """Write that the owner lives.

        Parameters
        ----------
        now_s
            Seconds since the epoch (``time.time()``): the one clock that all namespaces and boots share.
        """
        _HEARTBEAT.pack_into(self._open_mapping(), HEARTBEAT_OFFSET, now_s)

    def heartbeat_age_s(self, now_s: float) -> float:
        """Return the seconds since the last heartbeat; `create` counts as one."""
        written_s: float = _HEARTBEAT.unpack_from(self._open_mapping(), HEARTBEAT_OFFSET)[0]
        return now_s - written_s

    def owner_is_alive(self) -> bool:
        """Tell whether the owner's process runs; in another pid namespace: whether its heart beat in the last 60 s."""
        return is_alive(self._header.owner, self.heartbeat_age_s(time.time()))

    def close(self) -> None:
        """Unmap the segment, and as its owner remove the file; closing again does nothing."""
        if self._unlinking_pid == os.getpid() and self._path is not None:
            self._path.unlink(missing_ok=True)
        self._unlinking_pid = None
        self._mapping.close()

    def __enter__(self) -> Segment:
        """Return the segment itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the segment."""
        self.close()

    def _open_mapping(self) -> mmap.mmap:
        if self._mapping.closed:
            raise ValueError("the segment is closed, so it has neither addresses nor a heartbeat")
        return self._mapping

    def _address_at(self, offset: int) -> int:
        self._open_mapping()
        return self._address + offset


def _table_offset(control_words: int) -> int:
    return HEADER_BYTES + -(-control_words * WORD_BYTES // PAGE_BYTES) * PAGE_BYTES


def _mapping_bytes(header: Header) -> int:
    return _table_offset(header.control_words) + header.buckets * BUCKET_BYTES


def _new_header(size_mb: float, control_words: int) -> Header:
    if control_words < 0:
        raise ValueError(f"a segment cannot have {control_words} control words")
    available_mb = available_bytes() // BYTES_PER_MB
    if not 0 < size_mb < math.inf:
        raise TableError(
            f"the size of a table must be a positive number of MB: {size_mb:g} was asked, {available_mb} are available"
        )
    if size_mb > available_mb:
        raise TableError(
            f"a table of {size_mb:.10g} MB does not fit into memory: {available_mb} MB are available; "
            "ask for a smaller one with --table"
        )
    return Header(buckets_in(size_mb), control_words, this_process(), time.time())


def _header_bytes(header: Header) -> bytes:
    geometry = (header.buckets, header.control_words)
    return _FIELDS.pack(MAGIC, LAYOUT_VERSION, *geometry, *header.owner, header.heartbeat_s, 0)


def _fill_file(descriptor: int, header: Header) -> mmap.mmap:
    """Give a new file its space and its header, map it, and close the descriptor."""
    try:
        os.fchmod(descriptor, 0o600)  # Whatever the umask took away.
        # Not ftruncate: on a full tmpfs that succeeds, and the first touch is SIGBUS.
        os.posix_fallocate(descriptor, 0, _mapping_bytes(header))
        os.pwrite(descriptor, _header_bytes(header), 0)
        return mmap.mmap(descriptor, _mapping_bytes(header))
    finally:
        os.close(descriptor)


def _advise_huge_pages(mapping: mmap.mmap, size_bytes: int) -> bool:
    if size_bytes < HUGE_PAGES_FROM_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return False
    try:
        mapping.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        return False  # A kernel without them: slower, not wrong.
    return True


def _check_trust(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise TableError(f"{path} is not a regular file, so it cannot be a table")
    if status.st_uid != os.getuid():
        raise TableError(f"the table {path} belongs to user {status.st_uid}, not to user {os.getuid()}")
    if stat.S_IMODE(status.st_mode) != 0o600:
        raise TableError(f"the table {path} has mode {stat.S_IMODE(status.st_mode):04o} instead of 0600")


def read_header(descriptor: int, path: Path) -> Header:
    """Return the header of an open file.

    Parameters
    ----------
    descriptor, path
        The file; its path is for the message alone.

    Raises
    ------
    TableError
        If it is not a whole segment of this version.
    """
    size_bytes = os.fstat(descriptor).st_size
    raw = os.pread(descriptor, _FIELDS.size, 0)
    if size_bytes < HEADER_BYTES or len(raw) < _FIELDS.size:
        raise TableError(f"{path} is too short to be a table: it has {size_bytes} bytes")
    magic, version, buckets, control_words, pid, start_ticks, namespace, heartbeat_s, _ = _FIELDS.unpack(raw)
    if magic != MAGIC:
        raise TableError(f"{path} is not a table of rootsplit")
    if version != LAYOUT_VERSION:
        raise TableError(f"the table {path} has layout version {version}, but this program knows {LAYOUT_VERSION}")
    header = Header(buckets, control_words, Owner(pid, start_ticks, namespace), heartbeat_s)
    if buckets < 1 or _mapping_bytes(header) != size_bytes:
        raise TableError(
            f"the table {path} is damaged: it has {size_bytes} bytes, "
            f"but {buckets} buckets and {control_words} control words need {_mapping_bytes(header)}"
        )
    return header
