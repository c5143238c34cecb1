"""Checkpoints: what a long search has found, in a file from which it goes on after a crash.

The file is ``magic | checksum | msgpack``. It holds the finished iterations, from which the next one's window follows,
and the deepest table entries, by which it is quick. It does not hold what the unfinished iteration has found beyond
those entries: the upper tree's bounds are results of tasks, whose roots are the deepest entries of all; nor killers and
history, which a worker learns again in a second.
"""

from __future__ import annotations

import hashlib
import math
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from cluster.fingerprint import Fingerprint
from search.limits import MAX_DEPTH
from search.results import Iteration, RootLine
from search.scores import INFINITY
from search.statistics import Statistics
from tt_store import exchange
from tt_store.errors import RootsplitError, TableError
from tt_store.files import written_aside
from tt_store.layout import MOVE_MASK

MAGIC = b"ROOTSCP1"
VERSION = 1
CHECKSUM_BYTES = 32
MOST_ENTRIES = 1 << 16
"""Of all tables together: 1 MB."""
_MOST_BYTES = 64 << 20
_MOST_TEXT = 1 << 16
_MOST_ITEMS = 1 << 12


class CheckpointError(RootsplitError):
    """A checkpoint that cannot be written, read or trusted, or belongs to another search."""


class Identity(NamedTuple):
    """Which search a checkpoint belongs to: whatever its answer depends on."""

    game: str
    position: tuple[int, ...]
    history: tuple[int, ...]
    contempt: int
    flags: tuple[int, ...]
    """Of the kernel."""
    multipv: int
    root_moves: tuple[int, ...]
    """First moves that are searched; empty for all."""
    sources: Fingerprint


class Checkpoint(NamedTuple):
    """What is saved."""

    identity: Identity
    iterations: tuple[Iteration, ...]
    """Finished, from depth 1 on."""
    entries: tuple[bytes, ...]
    """Messages of `tt_store.exchange`."""


def save(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint, whole or not at all.

    Raises
    ------
    CheckpointError
        If the file cannot be written; what was there before is then still there.
    """
    iterations = [_row(item) for item in checkpoint.iterations]
    body: bytes = msgpack.packb([VERSION, checkpoint.identity, iterations, checkpoint.entries])
    try:
        with written_aside(path) as file:
            file.write(MAGIC + _checksum(body) + body)
    except OSError as error:
        raise CheckpointError(f"cannot write the checkpoint {path}: {error.strerror}") from error


def load(path: Path, identity: Identity) -> Checkpoint:
    """Read a checkpoint of a search.

    Raises
    ------
    CheckpointError
        If there is none, it is damaged, or it belongs to another search.
    """
    row = _unpacked(_read(path), path)
    if row[0] != VERSION:
        raise CheckpointError(f"the checkpoint {path} has version {row[0]!r}, but this program knows {VERSION}")
    _check_identity(_tuples(row[1]), identity, path)
    try:
        iterations = tuple(_iteration(item) for item in row[2])
        is_whole = [item.depth for item in iterations] == [*range(1, len(iterations) + 1)]
        for message in row[3]:
            exchange.unpack(message)
    except (TypeError, ValueError, TableError):
        is_whole = False
    if not is_whole:
        raise CheckpointError(f"the checkpoint {path} is damaged: its iterations or entries make no sense")
    return Checkpoint(identity, iterations, tuple(row[3]))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                raise CheckpointError(f"{path} is no checkpoint of rootsplit: no regular file of at most 64 MB")
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error.strerror}") from error


def _unpacked(content: bytes, path: Path) -> Sequence[Any]:
    if content[: len(MAGIC)] != MAGIC:
        raise CheckpointError(f"{path} is no checkpoint of rootsplit; name another file, or remove it")
    body = content[len(MAGIC) + CHECKSUM_BYTES :]
    if content[len(MAGIC) : len(MAGIC) + CHECKSUM_BYTES] != _checksum(body):
        raise CheckpointError(f"the checkpoint {path} is damaged: its checksum is wrong")
    try:
        row = msgpack.unpackb(
            body,
            max_array_len=_MOST_ITEMS,
            max_str_len=_MOST_TEXT,
            max_bin_len=_MOST_TEXT,
            max_map_len=0,
            max_ext_len=0,
        )
    except (ValueError, msgpack.UnpackException, struct.error) as error:
        raise CheckpointError(f"the checkpoint {path} is damaged: {error}") from None
    if not isinstance(row, list) or len(row) != 4 or not all(isinstance(part, list) for part in row[1:]):
        raise CheckpointError(f"the checkpoint {path} is damaged: it does not hold what it should")
    return row


def _check_identity(found: Any, wanted: Identity, path: Path) -> None:
    """Refuse a checkpoint of another search, and say in what they differ."""
    if len(found) != len(Identity._fields):
        raise CheckpointError(f"the checkpoint {path} is damaged: it does not tell its search")
    words = {
        "history": "history of moves",
        "flags": "kind of search",
        "multipv": "number of lines",
        "root_moves": "choice of first moves",
        "sources": "version of rootsplit or of the game",
    }
    for name, theirs, ours in zip(Identity._fields, found, wanted, strict=True):
        if theirs != ours:
            raise CheckpointError(
                f"the checkpoint {path} belongs to another {words.get(name, name)}: name another file, or remove it"
            )


def _row(item: Iteration) -> list[Any]:
    lines = [[line.score, line.moves, line.is_solved, line.values] for line in item.lines]
    return [item.depth, lines, item.statistics, item.time_s, item.researches]


def _iteration(row: Any) -> Iteration:
    """Return an iteration whose every field is within its range; ValueError or TypeError if one is not."""
    depth, rows, counts, time_s, researches = row
    lines = tuple(_line(*each) for each in rows)
    _check_integers((depth,), 1, MAX_DEPTH)
    _check_integers((researches,), 0, 1 << 20)
    _check_integers(counts, 0, 1 << 62)
    if not lines or len(counts) != len(Statistics._fields):
        raise ValueError("not all lines or counts are there")
    if not isinstance(time_s, float) or not 0 <= time_s < math.inf:
        raise ValueError(f"{time_s!r} is no time")
    return Iteration(depth, lines, Statistics(*counts), time_s, researches)


def _line(score: Any, moves: Any, is_solved: Any, values: Any) -> RootLine:
    _check_integers((score, *values), -INFINITY, INFINITY)
    _check_integers(moves, 1, MOVE_MASK)
    if not moves or type(is_solved) is not bool:
        raise ValueError("a line has moves, and is solved or not")
    return RootLine(score, tuple(moves), is_solved, tuple(values))


def _check_integers(values: Any, least: int, greatest: int) -> None:
    for value in values:
        if type(value) is not int or not least <= value <= greatest:
            raise ValueError(f"{value!r} is no integer from {least} to {greatest}")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()
