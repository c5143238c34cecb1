"""What travels: records survive the wire, and nothing else does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import records
from cluster.records import (
    RecordError,
    Task,
    TaskResult,
    pack_results,
    pack_tasks,
    unpack_results,
    unpack_tasks,
)
from search import workspace as at
from search.limits import MAX_DEPTH, NO_NODE_LIMIT
from search.scores import INFINITY, MAX_PLY
from search.statistics import Statistics
from tt_store.layout import MOVE_MASK

MOST_RECORDS = 4096
Unpack = Callable[[bytes], Sequence[Task | TaskResult]]

task_ids = st.integers(1, 1 << 47)
epochs = st.integers(1, 1 << 62)
scores = st.integers(-INFINITY, INFINITY)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    alpha = draw(st.integers(-INFINITY, INFINITY - 1))
    return Task(
        task_id=draw(task_ids),
        epoch=draw(epochs),
        position=tuple(draw(st.lists(st.integers(-(1 << 63), (1 << 64) - 1), max_size=20))),
        depth=draw(st.integers(0, MAX_DEPTH)),
        alpha=alpha,
        beta=draw(st.integers(alpha + 1, INFINITY)),
        ply=draw(st.integers(0, MAX_PLY - 1)),
        side=draw(st.integers(0, 1)),
        node_limit=draw(st.integers(0, NO_NODE_LIMIT)),
        contempt=draw(scores),
        salt=draw(st.integers(-(1 << 63), (1 << 63) - 1)),
        history=tuple(draw(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=20))),
    )


results = st.builds(
    TaskResult,
    task_id=task_ids,
    epoch=epochs,
    score=scores,
    alpha=scores,
    beta=scores,
    status=st.integers(at.RUNNING, at.NARROWED),
    line=st.lists(st.integers(1, 0xFFFF), max_size=30).map(tuple),
    statistics=st.builds(Statistics, *(st.integers(0, 1 << 62) for _ in Statistics._fields)),
    elapsed_s=st.floats(0, 1e9),
    best_move=st.integers(0, MOVE_MASK),
    values=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=30).map(tuple),
)

TASK = Task(7, 3, (5, 1 << 63), 12, -40, 41, 1, 1, 1_000, 0, -5)
RESULT = TaskResult(7, 3, 12, -40, 41, at.RUNNING, (4, 4, 3), Statistics(100, 9, 80, 20, 5, 40, 30, 2), 0.25)
MESSAGES: list[tuple[bytes, Unpack]] = [
    (pack_tasks([TASK, TASK._replace(task_id=8)]), unpack_tasks),
    (pack_results([RESULT, RESULT._replace(status=at.STOPPED, line=())]), unpack_results),
]


@given(st.lists(tasks(), max_size=5))
def test_tasks_survive_the_wire(sent: list[Task]) -> None:
    arrived = unpack_tasks(pack_tasks(sent))
    assert arrived == sent
    assert all(type(task) is Task and type(task.position) is tuple for task in arrived)


@given(st.lists(results, max_size=5))
def test_results_survive_the_wire(sent: list[TaskResult]) -> None:
    arrived = unpack_results(pack_results(sent))
    assert arrived == sent
    assert all(type(result.statistics) is Statistics and type(result.line) is tuple for result in arrived)


def test_a_task_is_small() -> None:
    assert len(pack_tasks([TASK])) < 200


def test_only_a_running_status_is_finished() -> None:
    for status in range(at.RUNNING, at.NARROWED + 1):
        assert RESULT._replace(status=status).is_finished == (status == at.RUNNING)


@pytest.mark.parametrize(("message", "unpack"), MESSAGES)
def test_every_truncation_is_refused(message: bytes, unpack: Unpack) -> None:
    for length in range(len(message)):
        with pytest.raises(RecordError):
            unpack(message[:length])
    with pytest.raises(RecordError):
        unpack(message + b"\0")


@pytest.mark.parametrize(("message", "unpack"), MESSAGES)
def test_a_changed_byte_is_refused_or_gives_valid_records(message: bytes, unpack: Unpack) -> None:
    refused = 0
    for index in range(len(message)):
        for byte in range(256):
            damaged = message[:index] + bytes([byte]) + message[index + 1 :]
            refused += is_refused(damaged, unpack)
    assert refused > len(message) * 20


@given(st.binary(max_size=300))
def test_noise_is_refused(noise: bytes) -> None:
    # An empty list is a message of no records; no other short noise is one.
    for unpack in (unpack_tasks, unpack_results):
        assert is_refused(noise, unpack) or unpack(noise) == []


@pytest.mark.parametrize(("message", "unpack"), MESSAGES)
def test_many_changed_bytes_are_refused_or_give_valid_records(message: bytes, unpack: Unpack) -> None:
    rng = random.Random(1)
    for _ in range(3_000):
        damaged = bytearray(message)
        for _ in range(rng.randint(1, 6)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        is_refused(bytes(damaged), unpack)


def is_refused(message: bytes, unpack: Unpack) -> bool:
    """Tell whether a message is refused; what is taken must be valid: it packs to the same records again."""
    try:
        rows = unpack(message)
    except RecordError:
        return True
    pack: Callable[[Any], bytes] = pack_tasks if unpack is unpack_tasks else pack_results
    assert unpack(pack(rows)) == rows
    return False


def packed_with(record: Task | TaskResult, field: str, value: Any) -> bytes:
    row = list(record)
    row[record._fields.index(field)] = value
    return bytes(msgpack.packb([row]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", 0),
        ("task_id", (1 << 47) + 1),
        ("epoch", 0),
        ("epoch", (1 << 62) + 1),
        ("position", [1 << 63] * (MAX_PLY + 1)),
        ("position", 5),
        ("position", [1.0]),
        ("position", [[1]]),
        ("position", [None]),
        ("depth", -1),
        ("depth", MAX_DEPTH + 1),
        ("alpha", -INFINITY - 1),
        ("alpha", 41),
        ("beta", -40),
        ("beta", INFINITY + 1),
        ("ply", -1),
        ("ply", MAX_PLY),
        ("side", 2),
        ("side", -1),
        ("node_limit", -1),
        ("node_limit", NO_NODE_LIMIT + 1),
        ("contempt", INFINITY + 1),
        ("salt", 1 << 63),
    ],
)
def test_a_field_of_a_task_out_of_range_is_refused(field: str, value: Any) -> None:
    with pytest.raises(RecordError, match=r"alpha|beta" if field in ("alpha", "beta") else field):
        unpack_tasks(packed_with(TASK, field, value))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", 0),
        ("epoch", 0),
        ("score", INFINITY + 1),
        ("alpha", -INFINITY - 1),
        ("beta", INFINITY + 1),
        ("status", -1),
        ("status", at.NARROWED + 1),
        ("line", [0]),
        ("line", [1 << 16]),
        ("line", [1] * (MAX_PLY + 1)),
        ("line", 3),
        ("statistics", [1] * (len(Statistics._fields) - 1)),
        ("statistics", [-1] * len(Statistics._fields)),
        ("statistics", [1.5] * len(Statistics._fields)),
        ("statistics", 0),
        ("elapsed_s", -1.0),
        ("elapsed_s", float("nan")),
        ("elapsed_s", float("inf")),
        ("elapsed_s", 1),
        ("elapsed_s", [1.0]),
    ],
)
def test_a_field_of_a_result_out_of_range_is_refused(field: str, value: Any) -> None:
    with pytest.raises(RecordError, match=field):
        unpack_results(packed_with(RESULT, field, value))


@pytest.mark.parametrize("value", [1.0, "1", b"1", True, None, [1], [[[1]]], {}, {"1": 1}])
def test_a_field_of_a_wrong_type_is_refused(value: Any) -> None:
    for field in Task._fields:
        if field in ("position", "history", "settings") and value == [1]:
            continue
        with pytest.raises(RecordError):
            unpack_tasks(packed_with(TASK, field, value))
    for field in TaskResult._fields:
        if (field in ("line", "values") and value == [1]) or (field == "elapsed_s" and type(value) is float):
            continue
        with pytest.raises(RecordError):
            unpack_results(packed_with(RESULT, field, value))


@pytest.mark.parametrize(
    "value",
    [None, 5, {}, "tasks", [5], [[]], [[1] * 10], [[1] * 12], [list(TASK), 5], {1: list(TASK)}],
)
def test_a_message_that_is_no_list_of_records_is_refused(value: Any) -> None:
    for unpack in (unpack_tasks, unpack_results):
        with pytest.raises(RecordError):
            unpack(bytes(msgpack.packb(value)))


def test_the_records_of_the_other_kind_are_refused() -> None:
    with pytest.raises(RecordError):
        unpack_results(pack_tasks([TASK]))
    with pytest.raises(RecordError):
        unpack_tasks(pack_results([RESULT]))


def test_too_many_records_are_refused() -> None:
    assert len(unpack_tasks(pack_tasks([TASK] * MOST_RECORDS))) == MOST_RECORDS
    with pytest.raises(RecordError):
        unpack_tasks(pack_tasks([TASK] * (MOST_RECORDS + 1)))


def test_a_huge_message_is_refused_unread() -> None:
    with pytest.raises(RecordError, match="bytes, more than"):
        unpack_tasks(bytes(records._LIMITS.size_bytes + 1))


@pytest.mark.parametrize(
    "claim",
    [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc1", b""],
)
def test_a_message_that_claims_to_be_huge_is_refused(claim: bytes) -> None:
    for unpack in (unpack_tasks, unpack_results):
        with pytest.raises(RecordError):
            unpack(claim)


def test_deep_nesting_is_refused() -> None:
    for unpack in (unpack_tasks, unpack_results):
        with pytest.raises(RecordError):
            unpack(b"\x91" * 100_000)
