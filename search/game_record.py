"""A game's moves so far: replayed once, not again with each move that is added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from search.referee import Referee


class Place(NamedTuple):
    """Where a game stands."""

    position: Any
    history: tuple[int, ...]
    """Hashes of the positions before it that can come back, the latest last."""


class GameRecord:
    """Replays games given as text; a game that goes on from the last one is replayed from there.

    Parameters
    ----------
    referee
        The game.
    """

    def __init__(self, referee: Referee) -> None:
        self.referee = referee
        self._text = ""
        self._moves: tuple[str, ...] = ()
        self._place = Place(referee.game.parse(""), ())

    def place(self, text: str, moves: Sequence[str]) -> Place:
        """Return where a game stands after some moves.

        Parameters
        ----------
        text
            The game's own text of the position that it began with; empty for the usual one.
        moves
            Moves as text.

        Raises
        ------
        RulesError
            If the text is no position, or a move is none or not legal where it is played.
        """
        moves = tuple(moves)
        known = len(self._moves)
        if text == self._text and moves[:known] == self._moves:
            place = self._place
        else:
            known, place = 0, Place(self.referee.game.parse(text), ())
        line = self.referee.line_of(place.position, moves[known:], known + 1)
        self._place = Place(*self.referee.follow(*place, line))
        self._text, self._moves = text, moves
        return self._place._replace(position=self.referee.game.root_position(self._place.position))
