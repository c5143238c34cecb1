"""Whether an answer is what the input expects, and since when it was."""

from __future__ import annotations

import re
from typing import NamedTuple

from cluster.batch.jobs import Answer, Status
from cluster.batch.rows import Expectation
from cluster.report import mate_in

NOTHING_EXPECTED = Expectation()
_WHOLE = re.compile(r"[+-]?\d+")


class Verdict(NamedTuple):
    """How an answer stands to what was expected."""

    is_solved: bool
    time_s: float | None = None
    """From the start of the position's search to the first iteration from which on all were right."""
    nodes: int | None = None


def verdict_of(expected: Expectation, answer: Answer) -> Verdict | None:
    """Return how an answer stands to what was expected; None where nothing was, or nothing could be searched."""
    if expected == NOTHING_EXPECTED or answer.status == Status.ERROR:
        return None
    if answer.bound in ("lower", "upper"):
        # Proved is who wins, and no more.
        return Verdict(_is_right_side(expected, answer), answer.time_s, answer.nodes)
    if not _is_right(expected, answer.best_move, answer.score, answer.score_text):
        return Verdict(False)
    time_s, nodes = 0.0, 0
    for step in reversed(answer.steps):
        if not _is_right(expected, step.move, step.score, step.score_text):
            break
        time_s, nodes = step.time_s, step.nodes
    return Verdict(True, time_s, nodes)


def _is_right_side(expected: Expectation, answer: Answer) -> bool:
    """Tell whether a bound says that the side wins which is expected to, by a move that is expected."""
    score = expected.score if expected.mate_in is None else expected.mate_in
    is_other = score is not None and answer.score is not None and (score > 0) != (answer.score > 0)
    return (
        not is_other and score != 0 and _is_right(expected._replace(score=None, mate_in=None), answer.best_move, 0, "0")
    )


def _is_right(expected: Expectation, move: str | None, score: int | None, score_text: str | None) -> bool:
    """Tell whether move and score are all that is expected of them."""
    if expected.best_moves and move not in expected.best_moves:
        return False
    if expected.avoid_moves and (move is None or move in expected.avoid_moves):
        return False
    if expected.score is not None and _users_score(score, score_text) != expected.score:
        return False
    return expected.mate_in is None or (score is not None and mate_in(score) == expected.mate_in)


def _users_score(score: int | None, score_text: str | None) -> int | None:
    """Return a score in its users' units: as they write it, if that is a whole number, else in the game's.

    One that is marked as an estimate is nobody's score.
    """
    if score_text is None or score_text.startswith("~"):
        return None
    return int(score_text) if _WHOLE.fullmatch(score_text) else score
