"""Connect Four as Pons's test sets write it, and Othello's ``.obf``: a position a line, with its score or without.

``2252576253462244111563365343671351441 -1`` is the columns played and the score for the side to move.
``<64 cells> X; A4:+10; B2:+0;`` is a board, the side to move, and what moves are worth to it.
"""

from __future__ import annotations

import re

from cluster.batch.notation import Notation
from cluster.batch.rows import Draft, Expectation, InputError, shortened

GREATEST_SCORE = 21
"""Of Connect Four: each side has so many discs."""
_SCORE = re.compile(r"[+-]?\d{1,2}")
_WORTH = re.compile(r"(\w+)\s*:\s*([+-]?\d{1,3})", re.ASCII)
_PASS, _OVER, _PLAIN = "pass", "over", "plain"


def read_move_list(text: str, notation: Notation) -> Draft:
    """Return the position and the score of a line ``moves [score]``.

    Raises
    ------
    RootsplitError
        If the moves are no position, or something else follows them.
    """
    moves, *rest = text.split()
    draft = notation.read(moves)
    if not rest:
        return draft
    if len(rest) > 1 or not _SCORE.fullmatch(rest[0]) or abs(int(rest[0])) > GREATEST_SCORE:
        what = shortened(" ".join(rest))
        raise InputError(f"{what!r} after the moves is no score: a number from -{GREATEST_SCORE} to {GREATEST_SCORE}")
    return draft._replace(expectation=Expectation(score=int(rest[0])))


def read_obf(text: str, notation: Notation) -> Draft:
    """Return the position of a line of an ``.obf`` with its exact score and the moves that reach it.

    Raises
    ------
    RootsplitError
        If the board is no position.
    """
    board, *segments = (segment.strip() for segment in text.split(";"))
    draft = notation.read(board)
    worths: dict[str, int] = {}
    warnings = []
    for segment in filter(None, segments):
        found = _WORTH.fullmatch(segment)
        if found:
            worths[found[1].lower()] = int(found[2])
        elif segment.lower() != _PASS:
            warnings.append(f"{shortened(segment)!r} is not understood: a move and its worth are written as A4:+10")
    # The plain difference of the discs is another convention than the score's.
    worths.pop(_PLAIN, None)
    if not worths:
        return draft._replace(warnings=tuple(warnings))
    score = max(worths.values())
    best = [move for move, worth in worths.items() if worth == score and move != _OVER]
    legal, refused = notation.judge(draft, best) if best else ([], [])
    if refused:
        warnings.append(f"there is no legal move {', '.join(refused)}")
    return draft._replace(expectation=Expectation(tuple(legal), score=score), warnings=tuple(warnings))
