"""What travels: frozen records, as msgpack on the wire; never pickled, checked when they arrive."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgpack

from search import workspace as at
from search.boards import BOARDS
from search.limits import MAX_DEPTH, MAX_FIRST_MOVES, NO_NODE_LIMIT
from search.scores import INFINITY, MAX_PLY
from search.statistics import Statistics
from tt_store.errors import RootsplitError
from tt_store.layout import MOVE_MASK, NO_MOVE


class RecordError(RootsplitError):
    """A message that is no record of ours, or a damaged one."""


class WireLimits(NamedTuple):
    """How large a message may be before it is taken for damaged."""

    size_bytes: int
    records: int
    """Of the message, and items of any list in it."""
    text_length: int = 0


_LIMITS = WireLimits(8 << 20, 4096)
MAX_VALUES = 4096
"""Of a result."""
MAX_SETTINGS = 16
"""Of a task."""


class Task(NamedTuple):
    """One subtree to search: about 200 bytes on the wire."""

    task_id: int
    """Unique in a session, 1..2^47."""
    epoch: int
    """Number of the root search (iteration, aspiration try) that it belongs to."""
    position: tuple[int, ...]
    """The fields of the game's position."""
    depth: int
    alpha: int
    beta: int
    """Window from the position's side to move."""
    ply: int
    side: int
    """0 if the side to move is the one that the whole search is for, else 1."""
    node_limit: int
    contempt: int
    salt: int
    history: tuple[int, ...] = ()
    """Hashes of the positions before this one that can come back, the latest last."""
    left_out: tuple[int, ...] = ()
    """First moves of the whole search that are not searched; only of a task at ply 0."""
    settings: tuple[int, ...] = ()
    """What else the algorithm must know, at most `MAX_SETTINGS` integers; see `search.searcher.Job`."""
    share_depth: int = MAX_DEPTH
    """Nodes deeper than this are shared with other workers of the machine that search the same subtree."""
    board: int = 0
    """Where the worker tells its team what it searches, 1..`BOARDS` (see `cluster.task_runner`); 0 if it has none."""
    follows: bool = False
    """Whether to search what others tell on that board, until the epoch ends, and nothing of its own."""


class TaskResult(NamedTuple):
    """What came of a task."""

    task_id: int
    epoch: int
    score: int
    """Of a task of the root that was not finished but has a line: what that is worth; of others void."""
    alpha: int
    beta: int
    """The window that was searched in the end."""
    status: int
    """`search.workspace.RUNNING` if finished, else why not."""
    line: tuple[int, ...]
    statistics: Statistics
    elapsed_s: float
    """Seconds that the worker spent on it."""
    best_move: int = NO_MOVE
    """What looks best at its position, even if unfinished; `NO_MOVE` if nothing is known."""
    values: tuple[int, ...] = ()
    """What one score cannot say, as the algorithm defines it: at most `MAX_VALUES` integers."""

    @property
    def is_finished(self) -> bool:
        """Whether the score may be used."""
        return self.status == at.RUNNING


class WorkerInfo(NamedTuple):
    """A worker as the splitter sees it."""

    machine: str
    """Workers of one machine share a table."""
    worker: int
    """Unique in a session."""


def pack_tasks(tasks: Iterable[Task]) -> bytes:
    """Return the message of some tasks."""
    return bytes(msgpack.packb([list(task) for task in tasks]))


def unpack_tasks(message: bytes) -> list[Task]:
    """Return the tasks of a message.

    Raises
    ------
    RecordError
        If it is damaged, or a field is out of range.
    """
    return [_checked_task(row) for row in rows_of(message, len(Task._fields), _LIMITS)]


def pack_results(results: Iterable[TaskResult]) -> bytes:
    """Return the message of some results."""
    return bytes(msgpack.packb([list(result) for result in results]))


def unpack_results(message: bytes) -> list[TaskResult]:
    """Return the results of a message.

    Raises
    ------
    RecordError
        If it is damaged, or a field is out of range.
    """
    return [_checked_result(row) for row in rows_of(message, len(TaskResult._fields), _LIMITS)]


def unpacked(message: bytes, limits: WireLimits) -> Any:
    """Return what a message holds, unchecked but for its size.

    Raises
    ------
    RecordError
        If it is damaged, or larger than it may be.
    """
    if len(message) > limits.size_bytes:
        raise RecordError(f"a message between workers has {len(message)} bytes, more than {limits.size_bytes}")
    try:
        return msgpack.unpackb(
            message,
            max_array_len=limits.records,
            max_map_len=0,
            max_str_len=limits.text_length,
            max_bin_len=0,
            max_ext_len=0,
        )
    except (ValueError, msgpack.UnpackException, struct.error) as error:
        raise RecordError(f"a message between workers is damaged: {error}") from None


def rows_of(message: bytes, width: int, limits: WireLimits) -> list[list[Any]]:
    """Return the records of a message as lists of so many fields, whose values are unchecked.

    Raises
    ------
    RecordError
        As `unpacked` does, or if it holds anything else.
    """
    rows = unpacked(message, limits)
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == width for row in rows):
        raise RecordError(f"a message between workers does not hold records of {width} fields")
    return rows


def _checked_task(row: Sequence[Any]) -> Task:
    task = Task(*row)._replace(
        position=_integers(row[2], "position", -(1 << 63), (1 << 64) - 1),
        history=_integers(row[11], "history", -(1 << 63), (1 << 63) - 1),
        left_out=_integers(row[12], "left_out", 1, MOVE_MASK, MAX_FIRST_MOVES),
        settings=_integers(row[13], "settings", -(1 << 63), (1 << 63) - 1, MAX_SETTINGS),
    )
    numbers = task._replace(position=(), history=(), left_out=(), settings=())
    _within(numbers.task_id, "task_id", 1, 1 << 47)
    _within(numbers.epoch, "epoch", 1, 1 << 62)
    _within(numbers.depth, "depth", 0, MAX_DEPTH)
    _within(numbers.alpha, "alpha", -INFINITY, INFINITY)
    _within(numbers.beta, "beta", numbers.alpha + 1, INFINITY)
    _within(numbers.ply, "ply", 0, MAX_PLY - 1)
    _within(numbers.side, "side", 0, 1)
    _within(numbers.node_limit, "node_limit", 0, NO_NODE_LIMIT)
    _within(numbers.contempt, "contempt", -INFINITY, INFINITY)
    _within(numbers.salt, "salt", -(1 << 63), (1 << 63) - 1)
    _within(numbers.share_depth, "share_depth", 0, MAX_DEPTH)
    _within(numbers.board, "board", 0, BOARDS)
    if type(task.follows) is not bool or (task.follows and not task.board):
        raise RecordError("a task that follows others has no board")
    if task.left_out and (task.ply > 0 or task.depth == 0):
        raise RecordError("a task that is not the root of a search leaves moves out")
    return task


def _checked_result(row: Sequence[Any]) -> TaskResult:
    counts = _integers(row[7], "statistics", 0, 1 << 62)
    if len(counts) != len(Statistics._fields):
        raise RecordError("a result's statistics have a wrong number of fields")
    result = TaskResult(*row)._replace(
        line=_integers(row[6], "line", 1, MOVE_MASK),
        statistics=Statistics(*counts),
        values=_integers(row[10], "values", -(1 << 63), (1 << 63) - 1, MAX_VALUES),
    )
    _within(result.task_id, "task_id", 1, 1 << 47)
    _within(result.epoch, "epoch", 1, 1 << 62)
    _within(result.score, "score", -INFINITY, INFINITY)
    _within(result.alpha, "alpha", -INFINITY, INFINITY)
    _within(result.beta, "beta", -INFINITY, INFINITY)
    _within(result.status, "status", at.RUNNING, at.NARROWED)
    _within(result.best_move, "best_move", NO_MOVE, MOVE_MASK)
    if not isinstance(result.elapsed_s, float) or not 0 <= result.elapsed_s < math.inf:
        raise RecordError("a result's elapsed_s is not a time")
    return result


def _integers(values: Any, name: str, least: int, greatest: int, most: int = MAX_PLY) -> tuple[int, ...]:
    if not isinstance(values, list) or len(values) > most:
        raise RecordError(f"the field {name} of a message is not a short list")
    for value in values:
        _within(value, name, least, greatest)
    return tuple(values)


def _within(value: Any, name: str, least: int, greatest: int) -> None:
    if type(value) is not int or not least <= value <= greatest:
        raise RecordError(f"the field {name} of a message is {value!r}, not an integer from {least} to {greatest}")
