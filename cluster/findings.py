"""What some algorithms tell beside a score: one record, for the report of a search and for the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from search.chance_rules import chance_rules_of
from search.mcts_standing import VERDICT_NAMES
from search.results import SearchResult
from search.rules import Game


class PlayedMove(NamedTuple):
    """What playouts say of a first move."""

    move: str
    """In the game's canonical text."""
    visits: int
    win_rate: float
    """From 0 to 1, for the side to move."""
    proved: str | None
    """``win``, ``draw`` or ``loss`` for the side to move; None while nothing is proved."""


class Findings(NamedTuple):
    """What is told beside a score; None where the game or the algorithm knows no such thing."""

    values: tuple[int, ...] | None = None
    """What each of several players gets, in the order of their numbers (max^n)."""
    expected_value: float | None = None
    """The score in points of payoff (games of chance)."""
    playouts: int | None = None
    """How many were made; this and the rest are of Monte Carlo tree search."""
    win_rate: float | None = None
    """Of the best move, from 0 to 1."""
    proved: str | None = None
    """As of a `PlayedMove`, for the position."""
    root_moves: tuple[PlayedMove, ...] | None = None
    """The first moves, the best first."""

    def as_json(self) -> dict[str, Any]:
        """Return the findings as fields of a JSON object."""
        return as_objects(self._asdict())


LISTS_OF_RECORDS = ("lines", "root_moves")
"""Fields of rows and reports that JSON has as lists of objects."""


def as_objects(values: dict[str, Any]) -> dict[str, Any]:
    """Turn the named tuples in `LISTS_OF_RECORDS` into objects, in place; returns the same dictionary."""
    for name in LISTS_OF_RECORDS:
        if values.get(name):
            values[name] = [record._asdict() for record in values[name]]
    return values


def score_findings(game: Game, score: int, values: Sequence[int]) -> Findings:
    """Return what a score alone says, of a search or of a finished game.

    Parameters
    ----------
    game, score
        The game, and the score in its units.
    values
        What each of several players gets; empty where that is not known.
    """
    return Findings(tuple(values) or None, chance_rules_of(game).expected_value(score))


def findings_of(game: Game, result: SearchResult) -> Findings:
    """Return what a search has found beside its score."""
    found = score_findings(game, result.score, result.values)
    moves = result.root_moves
    if not moves:
        return found
    return found._replace(
        playouts=result.statistics.nodes,
        win_rate=moves[0].win_rate,
        proved=VERDICT_NAMES[moves[0].verdict] if result.is_solved else None,
        root_moves=tuple(
            PlayedMove(
                game.move_text(result.position, move.move), move.visits, move.win_rate, VERDICT_NAMES[move.verdict]
            )
            for move in moves
        ),
    )
