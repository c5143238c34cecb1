"""Lines of text from whatever the input is: packed or not, in any of the usual encodings and line ends.

An input is read as a stream, in constant memory: a line that is longer than `MAX_LINE` characters is cut, and says so.
What is not UTF-8 in a line is read as Latin-1, for that line alone. gzip, zstd and UTF-16 are known by their first
bytes, never by a name.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, cast

from cluster.batch.rows import InputError

STANDARD_INPUT = "-"
MAX_LINE = 1 << 20
"""Characters."""
_SNIFFED = 4096
_JUDGED, _MOST_CONTROLS = 512, 0.05
"""So many bytes tell whether they are text: fewer of them are control characters than of random bytes, a tenth."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UNKNOWN_PACKERS = {
    b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"7z\xbc\xaf": "7z", b"PAR1": "Parquet",
}  # fmt: skip
_BYTE_ORDER_MARKS = {
    b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16",
}  # fmt: skip
"""The longer ones first."""
_UTF8_MARK = "\ufeff"
_CONTROLS = bytes(code for code in range(32) if chr(code) not in "\t\n\v\f\r\x1a\x1b")
_DAMAGE = (OSError, EOFError, zlib.error)
"""What reading a damaged or lost file raises; pyarrow's errors of streams are OSErrors."""


class Line(NamedTuple):
    """A line without its end."""

    number: int
    """From 1."""
    text: str
    fault: str | None = None
    """Why the text is not the whole line."""


def check_source(path: str) -> bool:
    """Refuse what cannot be opened, before anything else is done.

    Returns
    -------
    bool
        Whether it can be opened more than once: standard input, a pipe and the like cannot.

    Raises
    ------
    InputError
        With the file's name and the reason.
    """
    if path == STANDARD_INPUT:
        return False
    try:
        if os.path.isdir(path):
            raise InputError(f"{path} is a folder: name the files in it")
        os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}") from None
    return os.path.isfile(path)


def read_lines(path: str) -> Generator[Line, None, None]:
    """Yield the lines of a file or of standard input, and one with a fault where it cannot be read on.

    Parameters
    ----------
    path
        A file's name, or ``-``.

    Raises
    ------
    InputError
        If it cannot be opened, or is not text at all.
    """
    with _opened(path) as packed:
        try:
            stream = _unpacked(packed, path)
            head = stream.peek(_SNIFFED)[:_SNIFFED]
        except _DAMAGE as error:
            yield Line(1, "", f"the file is damaged and cannot be read: {_reason(error)}")
            return
        encoding = _encoding(head, path)
        errors = "surrogateescape" if encoding == "utf-8" else "replace"
        # Universal newlines: LF, CR LF, and CR alone.
        text = io.TextIOWrapper(cast(BinaryIO, stream), encoding=encoding, errors=errors, newline=None)
        try:
            yield from _lines_of(text)
        finally:
            # Standard input is not ours to close.
            text.detach()


def _lines_of(text: io.TextIOWrapper) -> Iterator[Line]:
    number = 0
    while True:
        number += 1
        try:
            line = text.readline(MAX_LINE)
            is_cut = len(line) == MAX_LINE and not line.endswith("\n")
            while is_cut and (more := text.readline(MAX_LINE)) and not more.endswith("\n"):
                pass
        except _DAMAGE as error:
            yield Line(number, "", f"the file is damaged and cannot be read on from here: {_reason(error)}")
            return
        if not line:
            return
        if not line.isascii():
            line = _readable(line)
        fault = f"the line is longer than {MAX_LINE} characters" if is_cut else None
        yield Line(number, line.removesuffix("\n"), fault)


def _readable(line: str) -> str:
    """Return a line with bytes that are not UTF-8 read as Latin-1, and without the mark that begins a file."""
    if _UTF8_MARK in line[:1]:
        line = line[1:]
    try:
        line.encode()
    except UnicodeEncodeError:
        line = line.encode("utf-8", "surrogateescape").decode("latin-1")
    return line


@contextmanager
def _opened(path: str) -> Iterator[io.BufferedReader]:
    if path == STANDARD_INPUT:
        stream = sys.stdin.buffer
        if isinstance(stream, io.BufferedReader):
            yield stream
            return
        # What stands in for standard input may be unable to peek; it is not ours to close.
        wrapper = io.BufferedReader(cast(io.RawIOBase, stream))
        yield cast(io.BufferedReader, wrapper)
        wrapper.detach()
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - an error of the body must not be taken for one of opening
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}") from None
    with file:
        yield file


def _unpacked(packed: io.BufferedReader, path: str) -> io.BufferedReader:
    """Return the stream of what a file packs."""
    head = packed.peek(_SNIFFED)[:_SNIFFED]
    if head.startswith(_GZIP):
        return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=packed)))
    if head.startswith(_ZSTD):
        return io.BufferedReader(_ZstdStream(packed))
    for mark, name in _UNKNOWN_PACKERS.items():
        if head.startswith(mark):
            raise InputError(f"{path} is not text but {name}: unpack it, or pack it with gzip or zstd")
    return packed


class _ZstdStream(io.RawIOBase):
    """The bytes that a zstd stream packs; several frames one after the other are one stream."""

    def __init__(self, packed: io.BufferedReader) -> None:
        # Imported where it is needed: it takes a quarter of a second.
        import pyarrow

        self._stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(packed, mode="r"), "zstd")

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer as far as possible, and return the number of bytes."""
        found = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


def _encoding(head: bytes, path: str) -> str:
    """Return the encoding of a text that begins so."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    if len(head) >= 8:
        even, odd = head[0::2], head[1::2]
        if not any(odd) and all(even):
            return "utf-16-le"
        if not any(even) and all(odd):
            return "utf-16-be"
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if len(head) >= _JUDGED and controls > len(head) * _MOST_CONTROLS:
        raise InputError(f"{path} is not text: {controls} of its first {len(head)} bytes are control characters")
    return "utf-8"


def _reason(error: BaseException) -> str:
    """Return why a file cannot be read, in a few words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).partition("\n")[0] or type(error).__name__
