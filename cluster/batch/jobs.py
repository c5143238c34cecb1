"""What travels between the runner and its workers: a position to search, and its answer; msgpack on the wire."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgpack

from cluster.findings import Findings, PlayedMove
from cluster.records import RecordError, WireLimits, rows_of, unpacked
from search.limits import Limits
from search.mcts_standing import VERDICT_NAMES
from search.solving import Question

_LIMITS = WireLimits(64 << 20, 8192, 4096)


class Status(StrEnum):
    """What became of a position."""

    OK = "ok"
    OVER = "over"
    """The game has ended there: an exact score, and no move."""
    DEADLINE = "deadline"
    """Its search did not end in time; what it had found by then, if anything, is told."""
    ERROR = "error"
    """It could not be read or searched."""


class PositionJob(NamedTuple):
    """One position to search to its limits, by one worker."""

    job_id: int
    """Index of the first row with this position: unique in a run."""
    position: str
    """The position's text, for workers that search it through a session."""
    moves: tuple[str, ...]
    words: tuple[int, ...]
    """The fields of the game's position."""
    history: tuple[int, ...]
    """Hashes of the positions before it that can come back, the latest last."""
    depth: int | None
    nodes: int | None
    time_s: float | None
    mate: int | None
    multipv: int
    deadline_s: float | None
    """Seconds after which the supervisor gives the position up."""
    solve: str | None = None
    """A `search.solving.Question` that is to be answered; None for a search to its limits."""

    @property
    def limits(self) -> Limits:
        """The limits of its search; the deadline is the supervisor's."""
        return Limits(self.depth, self.nodes, self.time_s, self.mate)


class Step(NamedTuple):
    """One finished iteration."""

    depth: int
    move: str
    score: int
    score_text: str
    nodes: int
    """From the start of the position's search, as the time is."""
    time_s: float


class Line(NamedTuple):
    """One of several best lines, in the order of their worth."""

    move: str
    score: int
    score_text: str
    bound: str
    pv: tuple[str, ...]
    values: tuple[int, ...] | None = None
    """As of `Findings`."""


class Answer(NamedTuple):
    """What a worker says of a position."""

    job_id: int
    status: str
    """A `Status`."""
    reason: str | None = None
    """Why it is no answer, in one sentence; None where it is one."""
    best_move: str | None = None
    score: int | None = None
    score_text: str | None = None
    bound: str | None = None
    """``exact``, ``lower`` or ``upper``; None where the score is the estimate of a position that was not searched."""
    depth: int = 0
    """Of the last finished iteration; score and line are of it, or of an unfinished one that found a better move."""
    nodes: int = 0
    time_s: float = 0.0
    pv: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    lines: tuple[Line, ...] = ()
    """More than one line was asked for; else empty."""
    findings: Findings = Findings()
    attempts: int = 1
    """How many workers were given the position: those before the last one died."""
    worker: int | None = None


def pack_jobs(jobs: Iterable[PositionJob]) -> bytes:
    """Return the message of some jobs."""
    return bytes(msgpack.packb(list(jobs)))


def unpack_jobs(message: bytes) -> list[PositionJob]:
    """Return the jobs of a message.

    Raises
    ------
    RecordError
        If it is damaged, or a field has a wrong type.
    """
    return [_checked_job(row) for row in rows_of(message, len(PositionJob._fields), _LIMITS)]


def pack_answers(answers: Iterable[Answer]) -> bytes:
    """Return the message of some answers."""
    return bytes(msgpack.packb(list(answers)))


def unpack_answers(message: bytes) -> list[Answer]:
    """Return the answers of a message.

    Raises
    ------
    RecordError
        If it is damaged, or a field has a wrong type.
    """
    return [_checked_answer(row) for row in rows_of(message, len(Answer._fields), _LIMITS)]


def pack_answer(answer: Answer) -> bytes:
    """Return one answer as bytes."""
    return bytes(msgpack.packb(answer))


def unpack_answer(message: bytes) -> Answer:
    """Return the answer that `pack_answer` made bytes of.

    Raises
    ------
    RecordError
        As `unpack_answers`.
    """
    row = unpacked(message, _LIMITS)
    if not isinstance(row, list) or len(row) != len(Answer._fields):
        raise RecordError("a message between workers does not hold an answer")
    return _checked_answer(row)


def _checked_job(row: Sequence[Any]) -> PositionJob:
    if not _fits(row, _JOB_KINDS):
        raise RecordError("a field of a position's job has a wrong type")
    job_id, position, moves, words, history, *rest = row
    job = PositionJob(job_id, position, _texts(moves), _integers(words), _integers(history), *rest)
    if job.solve is not None and job.solve not in tuple(Question):
        raise RecordError("a position's job asks for what cannot be proved")
    _ = job.limits  # Checked as they are made.
    return job


def _checked_answer(row: Sequence[Any]) -> Answer:
    if not _fits(row, _ANSWER_KINDS):
        raise RecordError("a field of an answer has a wrong type")
    job_id, status, reason, move, score, score_text, bound, depth, nodes, time_s, pv, steps, lines, found, *who = row
    if not 0 <= time_s < math.inf:
        raise RecordError("the time of an answer is none")
    return Answer(
        job_id, status, reason, move, score, score_text, bound, depth, nodes, time_s, _texts(pv),
        tuple(map(_checked_step, steps)), tuple(map(_checked_line, lines)), _checked_findings(found), *who,
    )  # fmt: skip


def _checked_step(row: Any) -> Step:
    if not isinstance(row, list) or not _fits(row, _STEP_KINDS):
        raise RecordError("an iteration of an answer is none")
    return Step._make(row)


def _checked_line(row: Any) -> Line:
    if not isinstance(row, list) or not _fits(row, _LINE_KINDS):
        raise RecordError("a line of an answer is none")
    move, score, score_text, bound, pv, values = row
    return Line(move, score, score_text, bound, _texts(pv), None if values is None else _integers(values))


def _checked_findings(row: Sequence[Any]) -> Findings:
    if not _fits(row, _FINDINGS_KINDS):
        raise RecordError("a field of what an answer has found has a wrong type")
    values, expected_value, playouts, win_rate, proved, root_moves = row
    if not math.isfinite(expected_value or 0.0):
        raise RecordError("the expected value of an answer is none")
    _check_played(win_rate, proved)
    return Findings(
        None if values is None else _integers(values), expected_value, playouts, win_rate, proved,
        None if root_moves is None else tuple(map(_checked_move, root_moves)),
    )  # fmt: skip


def _checked_move(row: Any) -> PlayedMove:
    if not isinstance(row, list) or not _fits(row, _MOVE_KINDS):
        raise RecordError("a first move of an answer is none")
    move = PlayedMove._make(row)
    _check_played(move.win_rate, move.proved)
    return move


def _check_played(win_rate: float | None, proved: str | None) -> None:
    if win_rate is not None and not 0 <= win_rate <= 1:
        raise RecordError(f"a share of wins in an answer is {win_rate}, not from 0 to 1")
    if proved not in VERDICT_NAMES.values():
        raise RecordError("an answer has proved what cannot be proved")


_Kinds = tuple[frozenset[type], ...]
_NONE: type = type(None)


def _one_of(*kinds: type) -> frozenset[type]:
    return frozenset(kinds)


_INTEGER, _TEXT, _LIST, _TIME = _one_of(int), _one_of(str), _one_of(list), _one_of(float)
_MAYBE_INTEGER, _MAYBE_TEXT, _MAYBE_TIME = _one_of(int, _NONE), _one_of(str, _NONE), _one_of(int, float, _NONE)
_MAYBE_LIST, _MAYBE_REAL = _one_of(list, _NONE), _one_of(float, _NONE)
_JOB_KINDS: _Kinds = (
    _INTEGER, _TEXT, _LIST, _LIST, _LIST, _MAYBE_INTEGER, _MAYBE_INTEGER, _MAYBE_TIME, _MAYBE_INTEGER, _INTEGER,
    _MAYBE_TIME, _MAYBE_TEXT,
)  # fmt: skip
_ANSWER_KINDS: _Kinds = (
    _INTEGER, _TEXT, _MAYBE_TEXT, _MAYBE_TEXT, _MAYBE_INTEGER, _MAYBE_TEXT, _MAYBE_TEXT, _INTEGER, _INTEGER,
    _one_of(int, float), _LIST, _LIST, _LIST, _LIST, _INTEGER, _MAYBE_INTEGER,
)  # fmt: skip
_STEP_KINDS: _Kinds = (_INTEGER, _TEXT, _INTEGER, _TEXT, _INTEGER, _TIME)
_LINE_KINDS: _Kinds = (_TEXT, _INTEGER, _TEXT, _TEXT, _LIST, _MAYBE_LIST)
_FINDINGS_KINDS: _Kinds = (_MAYBE_LIST, _MAYBE_REAL, _MAYBE_INTEGER, _MAYBE_REAL, _MAYBE_TEXT, _MAYBE_LIST)
_MOVE_KINDS: _Kinds = (_TEXT, _INTEGER, _one_of(float), _MAYBE_TEXT)


@lru_cache(maxsize=1024)
def _are(kinds: tuple[type, ...], wanted: _Kinds) -> bool:
    return len(kinds) == len(wanted) and all(kind in each for kind, each in zip(kinds, wanted, strict=True))


def _fits(row: Sequence[Any], wanted: _Kinds) -> bool:
    """Tell whether each field has one of the types that it may have."""
    return _are(tuple(map(type, row)), wanted)


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    if not all(type(value) is str for value in values):
        raise RecordError("a list of texts in a message between workers is none")
    return tuple(values)


def _integers(values: Sequence[Any]) -> tuple[int, ...]:
    if not all(type(value) is int for value in values):
        raise RecordError("a list of integers in a message between workers is none")
    return tuple(values)
