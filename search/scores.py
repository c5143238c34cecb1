"""Scores: integers from the side to move's point of view, and what they mean.

::

    -INFINITY  -MATE ......... -MATE_BOUND ........ 0 ........ MATE_BOUND ......... MATE   INFINITY
     no score   lost, -MATE + ply    a game's own units          won, MATE - ply     no score

All fit the 16 bits of a table entry.
"""

from __future__ import annotations

from search.jit import helper

INFINITY = 32000
"""Beyond every score; the bound of an open window."""

MATE = 30000
"""A loss that is on the board at `ply` scores ``-MATE + ply``."""

MAX_PLY = 256
"""No line is longer than this, in plies from the root."""

MAX_PLAYERS = 8
"""No game has more players."""

MATE_BOUND = MATE - MAX_PLY
"""A score beyond this, either way, is a decided game with its distance."""

DRAW = 0

ONGOING = 1 << 20
"""What a game's `outcome` returns while the game goes on."""


@helper
def to_table(score: int, ply: int) -> int:
    """Make a score that counts from the root count from the node at `ply`, as the table stores it."""
    if score >= MATE_BOUND:
        return score + ply
    if score <= -MATE_BOUND:
        return score - ply
    return score


@helper
def from_table(score: int, ply: int) -> int:
    """Make a stored score count from the root of the search that reads it, at `ply`."""
    if score >= MATE_BOUND:
        return score - ply
    if score <= -MATE_BOUND:
        return score + ply
    return score


def final_score(outcome: int, ply: int, draw_score: int) -> int:
    """Return the score of a finished game, counted from the root, for the side to move: the kernel's plain twin.

    Parameters
    ----------
    outcome
        What the game's rule says.
    ply
        Plies from the root.
    draw_score
        What a draw is worth to the side to move.
    """
    if outcome == -MATE:
        return ply - MATE
    if outcome == MATE:
        return MATE - ply
    return draw_score if outcome == DRAW else outcome


def mate_distance(score: int) -> int | None:
    """Return the plies to the end of a decided game, negative if the side to move loses; None if undecided."""
    if score >= MATE_BOUND:
        return MATE - score
    if score <= -MATE_BOUND:
        return -(MATE + score)
    return None
