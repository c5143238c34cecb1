"""Results as files: the protocol, and the formats of one line a row."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from cluster.batch.journal import JournalError
from cluster.batch.results import FIELDS, ResultRow
from search.rules import Game
from tt_store.errors import RootsplitError, writing

_DUE_BYTES = 1 << 20


class FormatError(RootsplitError):
    """A format of results that does not exist, or does not fit."""


class Format(StrEnum):
    """How results are written."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    EPD = "epd"
    PGN = "pgn"


class Writer(Protocol):
    """Writes rows, so that whatever instant it is killed at, the next one can go on after the last whole row."""

    settled: int
    """How many rows the output holds."""

    @property
    def is_due(self) -> bool:
        """Whether so much waits that it should be written now."""

    def recover(self) -> Iterator[int]:
        """Open the output, or make it; cut off what is torn, and yield the indices of the rows that it holds.

        Raises
        ------
        JournalError
            If it holds what no run of ours has written.
        """

    def add(self, row: ResultRow) -> None:
        """Take the next row."""

    def flush(self, *, is_last: bool = False) -> None:
        """Write what waits, as far as the format allows; all of it if no row follows.

        Raises
        ------
        RunFailedError
            If it cannot be written: the disk is full.
        """

    def close(self) -> None:
        """Close the output without writing more."""


class LineWriter(ABC):
    """One line a row; a line without its end is torn.

    Parameters
    ----------
    path
        Of the output.
    """

    HEADER = b""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._buffer = bytearray()
        self._waiting = 0
        self.settled = 0

    @abstractmethod
    def line(self, row: ResultRow) -> str:
        """Return a row's line, without line breaks."""

    def index_of(self, line: bytes, number: int) -> int | None:
        """Return the index of the row in a line, None if it is no line of ours; a number counts the lines from 0."""
        return number

    @property
    def is_due(self) -> bool:
        """Whether a megabyte waits."""
        return len(self._buffer) > _DUE_BYTES

    def recover(self) -> Iterator[int]:
        """Open the output, or make it; cut off its torn last line."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND
        try:
            self._descriptor = os.open(self._path, flags, 0o644)
        except OSError as error:
            raise FormatError(f"the output {self._path} cannot be written: {error.strerror}") from None
        whole = 0
        with open(self._descriptor, "rb", closefd=False) as lines:
            for number, line in enumerate(lines, -bool(self.HEADER)):
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                if number < 0:
                    if line != self.HEADER:
                        raise self._foreign(1)
                    continue
                index = self.index_of(line, number)
                if index is None:
                    raise self._foreign(number + 1 + bool(self.HEADER))
                self.settled += 1
                yield index
        os.ftruncate(self._descriptor, whole)
        if not whole:
            self._buffer += self.HEADER

    def add(self, row: ResultRow) -> None:
        """Take the next row."""
        self._buffer += self.line(row).encode()
        self._buffer += b"\n"
        self._waiting += 1

    def flush(self, *, is_last: bool = False) -> None:
        """Write all that waits."""
        with writing(self._path):
            while self._buffer:
                written = os.write(self._descriptor, self._buffer)
                del self._buffer[:written]
        self.settled += self._waiting
        self._waiting = 0

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _foreign(self, line: int) -> JournalError:
        return JournalError(
            f"{self._path}, line {line}, is not what this run wrote: choose another output, or give --restart"
        )


class JsonLinesWriter(LineWriter):
    """A JSON object a row."""

    _INDEX = re.compile(rb'\{"index": (\d+), ')
    _encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode

    def line(self, row: ResultRow) -> str:
        """Return an object; its index comes first."""
        return self._encode(row.as_json())

    def index_of(self, line: bytes, number: int) -> int | None:
        """Return the first field."""
        found = self._INDEX.match(line)
        return int(found[1]) if found else None


class CsvWriter(LineWriter):
    """Comma-separated values, quoted where needed (RFC 4180, but for line ends); lists are parted by blanks."""

    HEADER = (",".join(FIELDS) + "\n").encode()
    _INDEX = re.compile(rb"(\d+),")

    def line(self, row: ResultRow) -> str:
        """Return a line of values."""
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow([_cell(value) for value in row])
        return text.getvalue()

    def index_of(self, line: bytes, number: int) -> int | None:
        """Return the first field."""
        found = self._INDEX.match(line)
        return int(found[1]) if found else None


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        if value and isinstance(value[0], tuple):
            return json.dumps([record._asdict() for record in value], ensure_ascii=False)
        value = " ".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    # A row is a line.
    return " ".join(value.split("\n")).replace("\r", " ") if isinstance(value, str) else value


def format_of(path: Path, name: str | None) -> Format:
    """Return the format of an output: the one that is named, else the one that its name says, else JSON lines.

    Raises
    ------
    FormatError
        If there is no format of that name.
    """
    suffix = path.suffix.lower().removeprefix(".")
    wanted = name or (suffix if suffix in set(Format) else Format.JSONL)
    try:
        return Format(wanted)
    except ValueError:
        raise FormatError(f"unknown format {wanted!r}: there are {', '.join(Format)}") from None


def make_writer(path: Path, kind: Format, game: Game, is_ordered: bool) -> Writer:
    """Return a writer.

    Parameters
    ----------
    path, kind
        Of the output.
    game
        Whose positions they are.
    is_ordered
        Whether rows come in the order of the input.

    Raises
    ------
    FormatError
        If the format does not fit the game or the order.
    """
    if kind in (Format.EPD, Format.PGN):
        if game.name != "chess":
            raise FormatError(f"{kind.upper()} holds chess, not {game.label}: write JSON lines, CSV or Parquet")
        if not is_ordered:
            raise FormatError(
                f"{kind.upper()} has no index by which rows out of order can be told: leave out --unordered"
            )
    if kind == Format.EPD:
        from cluster.batch.epd_writer import EpdWriter

        return EpdWriter(path)
    if kind == Format.PGN:
        from cluster.batch.pgn_writer import PgnWriter

        return PgnWriter(path)
    if kind == Format.PARQUET:
        from cluster.batch.parquet_writer import ParquetWriter

        return ParquetWriter(path)
    return CsvWriter(path) if kind == Format.CSV else JsonLinesWriter(path)
