"""How a game's positions and moves are read: the same few questions, answered for chess and for any other game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from cluster.batch.rows import Draft
from search.referee import Referee
from search.rules import Game, RulesError

if TYPE_CHECKING:
    from cluster.batch.chess_text import ChessLine

CHESS = "chess"


class Notation(Protocol):
    """Reads positions and moves of one game."""

    def read(self, text: str) -> Draft:
        """Return the position of a text, and whatever else the text says.

        Raises
        ------
        RulesError
            If it is none.
        """

    def play(self, draft: Draft, texts: Sequence[str]) -> Draft:
        """Return a draft with more moves played.

        Raises
        ------
        RulesError
            If one of them is not legal where it is played.
        """

    def judge(self, draft: Draft, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the legal ones among moves after the draft's, in the game's canonical text, and the other texts."""


class PlainNotation:
    """A position and moves as the game itself writes them.

    Parameters
    ----------
    game
        Any game.
    """

    def __init__(self, game: Game) -> None:
        self._game = game
        self._known_referee: Referee | None = None

    @property
    def _referee(self) -> Referee:
        # Only what asks for moves pays for the compiled rules.
        if self._known_referee is None:
            self._known_referee = Referee(self._game)
        return self._known_referee

    def read(self, text: str) -> Draft:
        """Return the position of a text."""
        self._game.parse(text)
        return Draft(text)

    def play(self, draft: Draft, texts: Sequence[str]) -> Draft:
        """Return a draft with more moves played."""
        game, referee = self._game, self._referee
        position = referee.play_texts(game.parse(draft.position), draft.moves)
        played = referee.line_texts(position, referee.line_of(position, texts))
        return draft._replace(moves=(*draft.moves, *played))

    def judge(self, draft: Draft, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the legal ones among moves, and the other texts."""
        game, referee = self._game, self._referee
        position = referee.play_texts(game.parse(draft.position), draft.moves)
        moves = referee.legal_moves(position)
        legal: dict[str, None] = {}
        refused = []
        for text in texts:
            try:
                move = game.parse_move(position, text)
            except RulesError:
                move = None
            if move in moves:
                legal[game.move_text(position, move)] = None
            else:
                refused.append(text)
        return list(legal), refused


class ChessNotation:
    """Positions as an EPD's lines, moves in SAN, UCI or in between.

    Parameters
    ----------
    game
        Chess.
    """

    def __init__(self, game: Game) -> None:
        # Imported where they are needed: python-chess is of no use to other games.
        from cluster.batch import chess_text, epd

        self._game, self._text, self._read_epd = game, chess_text, epd.read_epd

    def read(self, text: str) -> Draft:
        """Return what a line of an EPD says."""
        return self._read_epd(text, self._game)

    def play(self, draft: Draft, texts: Sequence[str]) -> Draft:
        """Return a draft with more moves played."""
        line = self._line(draft)
        line.play(texts)
        return draft._replace(position=line.position, moves=line.moves)

    def judge(self, draft: Draft, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the legal ones among moves, and the other texts."""
        return self._line(draft).judged(texts)

    def _line(self, draft: Draft) -> ChessLine:
        line = self._text.ChessLine(self._game, self._text.accepted(self._game, draft.position.split()))
        line.play(draft.moves)
        return line


def notation_of(game: Game) -> Notation:
    """Return how a game's texts are read."""
    return ChessNotation(game) if game.label == CHESS else PlainNotation(game)
