"""Results as Parquet: a folder of numbered parts, each written aside and renamed when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from cluster.batch.journal import JournalError
from cluster.batch.results import ResultRow
from cluster.batch.writers import FormatError
from tt_store.errors import writing

PART_ROWS = 20_000
_TEXTS = pyarrow.list_(pyarrow.string())
_VALUES = pyarrow.list_(pyarrow.int32())
_LINE = pyarrow.struct(
    [
        ("move", pyarrow.string()),
        ("score", pyarrow.int32()),
        ("score_text", pyarrow.string()),
        ("bound", pyarrow.string()),
        ("pv", _TEXTS),
        ("values", _VALUES),
    ]
)
_PLAYED_MOVE = pyarrow.struct(
    [
        ("move", pyarrow.string()),
        ("visits", pyarrow.int64()),
        ("win_rate", pyarrow.float64()),
        ("proved", pyarrow.string()),
    ]
)

_TYPES: dict[str, Any] = {
    "index": pyarrow.int64(), "source": pyarrow.string(), "line": pyarrow.int64(), "id": pyarrow.string(),
    "position": pyarrow.string(), "moves": _TEXTS, "status": pyarrow.string(), "reason": pyarrow.string(),
    "best_move": pyarrow.string(), "score": pyarrow.int32(), "score_text": pyarrow.string(), "bound": pyarrow.string(),
    "mate_in": pyarrow.int32(), "depth": pyarrow.int32(), "nodes": pyarrow.int64(), "time_s": pyarrow.float64(),
    "pv": _TEXTS, "lines": pyarrow.list_(_LINE), "values": _VALUES, "expected_value": pyarrow.float64(),
    "playouts": pyarrow.int64(), "win_rate": pyarrow.float64(), "proved": pyarrow.string(),
    "root_moves": pyarrow.list_(_PLAYED_MOVE), "solved": pyarrow.bool_(), "solved_time_s": pyarrow.float64(),
    "solved_nodes": pyarrow.int64(), "duplicate_of": pyarrow.int64(), "attempts": pyarrow.int32(),
    "worker": pyarrow.int32(), "settings": pyarrow.string(), "warnings": _TEXTS,
}  # fmt: skip
SCHEMA = pyarrow.schema([(name, _TYPES[name]) for name in ResultRow._fields])


class ParquetWriter:
    """A folder of parts of `PART_ROWS` rows; what is no whole part yet is in the journal.

    Parameters
    ----------
    path
        Of the folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []
        self._parts = 0
        self.settled = 0

    @property
    def is_due(self) -> bool:
        """Whether a part is full."""
        return len(self._rows) >= PART_ROWS

    def recover(self) -> Iterator[int]:
        """Open the folder, or make it; remove what was not renamed."""
        try:
            self._path.mkdir(exist_ok=True)
        except OSError as error:
            raise FormatError(f"the output {self._path} cannot be made: {error.strerror}") from None
        for entry in sorted(self._path.iterdir()):
            if entry.name == self._part_name(self._parts) + ".tmp":
                entry.unlink()
                continue
            if entry.name != self._part_name(self._parts):
                raise JournalError(f"{entry} is not what this run wrote: choose another output, or give --restart")
            self._parts += 1
            try:
                column = pyarrow.parquet.read_table(entry, columns=["index"], partitioning=None)["index"]
            except (pyarrow.ArrowInvalid, KeyError) as error:
                raise JournalError(f"{entry} is no whole part of results: {str(error).splitlines()[0]}") from None
            self.settled += len(column)
            yield from column.to_pylist()

    def add(self, row: ResultRow) -> None:
        """Take the next row."""
        self._rows.append(row.as_json())

    def flush(self, *, is_last: bool = False) -> None:
        """Write a part if one is full, or if no row follows."""
        if not self._rows or not (self.is_due or is_last):
            return
        path = self._path / self._part_name(self._parts)
        aside = path.with_name(path.name + ".tmp")
        table = pyarrow.Table.from_pylist(self._rows, schema=SCHEMA)
        with writing(self._path):
            pyarrow.parquet.write_table(table, aside, compression="zstd")
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.rename(path)
        self._parts += 1
        self.settled += len(self._rows)
        self._rows.clear()

    def close(self) -> None:
        """Forget what waits: it is in the journal."""
        self._rows.clear()

    @staticmethod
    def _part_name(number: int) -> str:
        return f"part-{number:06}.parquet"
