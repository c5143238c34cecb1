"""The journal of a run, beside its output: what was asked, and each answer as soon as it is there.

The output is written from it, in whatever order and format; whatever instant a run is killed at, the next one goes on
from here. A file of frames::

    "RSJ1"                           4 bytes
    frame:  length of the payload    4 bytes, little-endian
            CRC-32 of the payload    4 bytes
            kind                     1 byte
            payload
    ...

The first frame is the fingerprint, as JSON; the others are answers (an identity of 8 bytes, then msgpack), and
checkpoints (JSON); when all rows are written, the last of these alone is left, with an end behind it. A frame that is
torn or damaged ends the journal: it and what follows are cut off. The file is made aside and renamed when its
fingerprint is in it, and locked as long as a run writes.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tt_store.errors import RootsplitError, writing

SUFFIX = ".journal"
_MAGIC = b"RSJ1"
_FRAME = struct.Struct("<IIB")
_IDENTITY = struct.Struct("<Q")
_FINGERPRINT, _ANSWER, _CHECKPOINT, _END = range(4)
_MOST_BYTES = 64 << 20
_BUFFER_BYTES = 1 << 20


class JournalError(RootsplitError):
    """A journal, or an output, that this run cannot go on from."""


@dataclass(frozen=True)
class JournalledAnswer:
    """An answer that a journal holds."""

    identity: int
    place: int
    """Where `Journal.answer` finds it."""


@dataclass(frozen=True)
class Checkpoint:
    """What was known when the output had so many rows."""

    values: dict[str, Any]


class Journal:
    """An open journal; made by `create`, `temporary` or `open`.

    Parameters
    ----------
    descriptor
        Of the file, open for reading and writing, locked.
    end
        Where the next frame goes.
    path
        Of the file; None if it has no name.
    """

    def __init__(self, descriptor: int, end: int, path: Path | None = None) -> None:
        self._descriptor, self._path = descriptor, path
        self._written = end
        self._buffer = bytearray()
        self._is_stuck = False
        """Whether the last write failed."""
        self.is_finished = False
        """Whether its run wrote all rows; known after `recover`."""

    @classmethod
    def create(cls, path: Path, fingerprint: dict[str, Any]) -> Journal:
        """Create a journal, which must not exist.

        Raises
        ------
        JournalError
            If it does, or if its folder cannot be written.
        """
        aside = _aside(path)
        try:
            journal = cls._make(aside, path, fingerprint)
            try:
                # Unlike a rename this never replaces another run's.
                os.link(aside, path)
            except BaseException:
                journal.close()
                raise
            finally:
                aside.unlink()
        except OSError as error:
            raise JournalError(f"the journal {path} cannot be made: {error.strerror}") from None
        return journal

    @classmethod
    def _make(cls, aside: Path, path: Path, fingerprint: dict[str, Any]) -> Journal:
        """Make a locked journal aside that is to be renamed."""
        # A run of the same number that was killed here may have left its own.
        aside.unlink(missing_ok=True)
        journal = cls(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644), 0, path)
        try:
            fcntl.flock(journal._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            journal._begin(fingerprint)
            journal.sync()
        except BaseException:
            journal.close()
            aside.unlink()
            raise
        return journal

    @classmethod
    def temporary(cls) -> Journal:
        """Make a journal that goes when it is closed, whatever happens: for runs that keep nothing."""
        descriptor, name = tempfile.mkstemp(prefix="rootsplit-", suffix=SUFFIX)
        os.unlink(name)
        journal = cls(descriptor, 0)
        journal._begin({})
        return journal

    @classmethod
    def open(cls, path: Path) -> tuple[Journal, dict[str, Any]]:
        """Open a journal that exists; returns it with its fingerprint.

        Raises
        ------
        JournalError
            If it is no journal, or another run has it open.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise JournalError(f"the journal {path} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise JournalError(
                f"another run is writing the journal {path}: wait for its end, or choose another output"
            ) from None
        frame = _read_frame(descriptor, len(_MAGIC)) if os.pread(descriptor, len(_MAGIC), 0) == _MAGIC else None
        if frame is None or frame[0] != _FINGERPRINT:
            os.close(descriptor)
            raise JournalError(f"{path} is no journal of rootsplit: choose another output")
        return cls(descriptor, len(_MAGIC), path), json.loads(frame[1])

    def recover(self) -> Iterator[JournalledAnswer | Checkpoint]:
        """Yield what the journal holds; at the end, what is torn or damaged has been cut off."""
        place = len(_MAGIC)
        while (frame := _read_frame(self._descriptor, place)) is not None:
            kind, payload = frame
            if kind == _ANSWER:
                yield JournalledAnswer(_IDENTITY.unpack_from(payload)[0], place)
            elif kind == _CHECKPOINT:
                yield Checkpoint(json.loads(payload))
            elif kind == _END:
                self.is_finished = True
            place += _FRAME.size + len(payload)
        os.ftruncate(self._descriptor, place)
        self._written = place

    def add_answer(self, identity: int, message: bytes) -> int:
        """Append an answer; returns its place."""
        return self._append(_ANSWER, _IDENTITY.pack(identity) + message)

    def add_checkpoint(self, values: dict[str, Any]) -> None:
        """Append what is known when the output has so many rows."""
        self._append(_CHECKPOINT, json.dumps(values).encode())

    def answer(self, place: int) -> bytes:
        """Return the answer at a place.

        Raises
        ------
        JournalError
            If it is not there any more.
        """
        if place >= self._written:
            self.flush()
        frame = _read_frame(self._descriptor, place)
        if frame is None or frame[0] != _ANSWER:
            raise JournalError("the journal was damaged while it was in use: run the same command again")
        return frame[1][_IDENTITY.size :]

    def finish(self, path: Path, values: dict[str, Any]) -> None:
        """Replace the journal, which lies at a path, by its last checkpoint: nobody asks for its answers any more."""
        aside = _aside(path)
        frame = _read_frame(self._descriptor, len(_MAGIC))
        assert frame is not None
        with self._make(aside, path, json.loads(frame[1])) as short:
            try:
                short.add_checkpoint(values)
                short._append(_END, b"")
                short.sync()
                aside.rename(path)
            except BaseException:
                aside.unlink()
                raise

    def flush(self) -> None:
        """Hand what was appended to the system: from then on it survives the end of this process.

        Raises
        ------
        RunFailedError
            If it cannot be written: the disk is full.
        """
        self._is_stuck = bool(self._buffer)
        with writing(self._path):
            while self._buffer:
                written = os.pwrite(self._descriptor, self._buffer, self._written)
                self._written += written
                del self._buffer[:written]
        self._is_stuck = False

    def sync(self) -> None:
        """Have the system write it to the disk: from then on it survives the end of the machine.

        Raises
        ------
        RunFailedError
            If it cannot be written: the disk is full.
        """
        self.flush()
        with writing(self._path):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Flush, unless that has just failed, and close."""
        if self._descriptor >= 0:
            if not self._is_stuck:
                self.flush()
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        """Return the journal."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _begin(self, fingerprint: dict[str, Any]) -> None:
        self._buffer += _MAGIC
        self._append(_FINGERPRINT, json.dumps(fingerprint).encode())
        self.flush()

    def _append(self, kind: int, payload: bytes) -> int:
        place = self._written + len(self._buffer)
        self._buffer += _FRAME.pack(len(payload), _checksum(kind, payload), kind)
        self._buffer += payload
        if len(self._buffer) > _BUFFER_BYTES:
            self.flush()
        return place


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def _read_frame(descriptor: int, place: int) -> tuple[int, bytes] | None:
    """Return kind and payload of the frame at a place; None if there is no whole one."""
    header = os.pread(descriptor, _FRAME.size, place)
    if len(header) < _FRAME.size:
        return None
    length, checksum, kind = _FRAME.unpack(header)
    if length > _MOST_BYTES:
        return None
    payload = os.pread(descriptor, length, place + _FRAME.size)
    if len(payload) < length or _checksum(kind, payload) != checksum:
        return None
    return kind, payload


def _checksum(kind: int, payload: bytes) -> int:
    return zlib.crc32(payload, kind)
