"""One row of a result, whatever format it is written in."""

from __future__ import annotations

from typing import Any, NamedTuple

from cluster.batch.jobs import Answer, Line, Status
from cluster.batch.planner import Plan
from cluster.batch.verdict import verdict_of
from cluster.findings import PlayedMove, as_objects
from cluster.report import mate_in


class ResultRow(NamedTuple):
    """A row of the input with its answer; the order of the fields is that of the columns."""

    index: int  # type: ignore[assignment]  # A tuple's `index` finds a value: nobody wants that of a row.
    """From 0 on, over all files."""
    source: str
    line: int
    id: str | None
    position: str
    moves: tuple[str, ...]
    status: str
    """A `Status`."""
    reason: str | None
    """Why there is no answer, in one sentence."""
    best_move: str | None
    score: int | None
    """In the game's units, from the side to move."""
    score_text: str | None
    """In the convention of the game's users."""
    bound: str | None
    mate_in: int | None
    """Moves of the winner to the end, negative if the side to move loses."""
    depth: int | None
    nodes: int | None
    time_s: float | None
    pv: tuple[str, ...]
    lines: tuple[Line, ...]
    """The best lines, if more than one was asked for."""
    values: tuple[int, ...] | None
    """This and the next five are the answer's `cluster.findings.Findings`."""
    expected_value: float | None
    playouts: int | None
    win_rate: float | None
    proved: str | None
    root_moves: tuple[PlayedMove, ...] | None
    solved: bool | None
    """Whether the answer is what the input expects; None where it expects nothing."""
    solved_time_s: float | None
    solved_nodes: int | None
    """To the first iteration from which on all were right."""
    duplicate_of: int | None
    """Index of the row for which an equal position was searched."""
    attempts: int | None
    """How many workers were given the position: those before the last one died."""
    worker: int | None
    settings: str
    """Hash of all that decides the answer."""
    warnings: tuple[str, ...]

    @property
    def is_failure(self) -> bool:
        """Whether the row has no answer, or one that was cut off by the deadline."""
        return self.status in (Status.ERROR, Status.DEADLINE)

    def as_json(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        return as_objects(self._asdict())


FIELDS = ResultRow._fields


def result_row(
    plan: Plan, answer: Answer, duplicate_of: int | None = None, is_deterministic: bool = False
) -> ResultRow:
    """Return the row of a plan and its answer.

    Parameters
    ----------
    plan, answer
        The row's.
    duplicate_of
        Index of the row for which the position was searched, if it was another one.
    is_deterministic
        Whether to leave out what differs from run to run: times and workers.
    """
    row = plan.row
    verdict = verdict_of(row.expectation, answer)
    was_searched = plan.job is not None
    is_timed = was_searched and not is_deterministic
    return ResultRow(
        index=row.index,
        source=row.source,
        line=row.line,
        id=row.row_id,
        position=row.position,
        moves=row.moves,
        status=str(answer.status),
        reason=answer.reason,
        best_move=answer.best_move,
        score=answer.score,
        score_text=answer.score_text,
        bound=answer.bound,
        mate_in=mate_in(answer.score) if answer.score is not None and answer.bound == "exact" else None,
        depth=answer.depth if was_searched else None,
        nodes=answer.nodes if was_searched else None,
        time_s=answer.time_s if is_timed else None,
        pv=answer.pv,
        lines=answer.lines,
        **answer.findings._asdict(),
        solved=None if verdict is None else verdict.is_solved,
        solved_time_s=verdict.time_s if verdict is not None and is_timed else None,
        solved_nodes=verdict.nodes if verdict is not None and was_searched else None,
        duplicate_of=duplicate_of,
        attempts=answer.attempts if is_timed else None,
        worker=answer.worker if is_timed else None,
        settings=plan.settings_hash,
        warnings=row.warnings,
    )
