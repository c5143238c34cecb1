"""Chess as people write it: positions with fields left out or wrong; moves in SAN, UCI and in between."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import NamedTuple

import chess

from search.games.chess.board import CHESS960
from search.rules import Game, RulesError

START_WORDS = ("start", "startpos")
_NO_RIGHT = "-"
_UCI = re.compile(r"[a-h][1-8][a-h][1-8][nbrq]?", re.IGNORECASE)
_CASTLING = re.compile(r"[o0](-[o0]){1,2}", re.IGNORECASE)
_NUMBER = re.compile(r"\d+\.+(?=\D)")
_LONGEST_MOVE = 32
"""Characters, decorations and all."""
_MARKS = "+#!?=,"
"""What may follow a move: check, mate, praise and blame."""


class Accepted(NamedTuple):
    """A position that the game accepts."""

    text: str
    is_chess960: bool
    """Whether castling is written as in Chess960."""
    repairs: tuple[str, ...] = ()
    """A sentence for each thing that had to be repaired."""


class ChessLine:
    """A position of chess and moves played from it.

    Parameters
    ----------
    game
        Chess.
    start
        The position.
    """

    def __init__(self, game: Game, start: Accepted) -> None:
        self._game = game
        self._begin(start)

    def _begin(self, start: Accepted) -> None:
        self.position = start.text
        fen = chess.STARTING_FEN if start.text in START_WORDS else start.text
        self.board = chess.Board(fen, chess960=start.is_chess960)
        self._moves: list[str] = []

    @property
    def moves(self) -> tuple[str, ...]:
        """The moves from the position on, as UCI writes them."""
        return tuple(self._moves)

    def push(self, move: chess.Move) -> None:
        """Play a legal move.

        Where people have played on after a rule ended the game, the line begins anew after each move: the game's
        referee would not play on, and nothing that came before can count any more.
        """
        was_over = self.board.halfmove_clock >= 100 or self.board.is_insufficient_material()
        self._moves.append(self.board.uci(move))
        self.board.push(move)
        if was_over:
            self._begin(_checked(self._game, self._fen()))

    def pass_turn(self) -> None:
        """Let the other side move, and begin the line anew: no move of chess does that.

        Raises
        ------
        RulesError
            If the side to move is in check.
        """
        self.board.push(chess.Move.null())
        self._begin(_checked(self._game, self._fen()))

    def play(self, texts: Iterable[str]) -> None:
        """Play moves given as text.

        Raises
        ------
        RulesError
            If one of them is not legal where it is played.
        """
        for number, text in enumerate(texts, 1):
            move = find_move(self.board, text)
            if move is None:
                raise RulesError(f"move {number}, {text}, is not legal there")
            self.push(move)

    def judged(self, texts: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the legal ones among moves given as text, as UCI writes them and each once, and the other texts."""
        legal: dict[str, None] = {}
        refused = []
        for text in texts:
            move = find_move(self.board, text)
            if move is None:
                refused.append(text)
            else:
                legal[self.board.uci(move)] = None
        return list(legal), refused

    def _fen(self) -> str:
        return self.board.shredder_fen() if self.board.chess960 else self.board.fen()


def find_move(board: chess.Board, text: str) -> chess.Move | None:
    """Return the legal move that a text means, or None: in SAN, UCI or long notation, with or without decorations."""
    if len(text) > _LONGEST_MOVE:
        return None
    text = _NUMBER.sub("", text).removesuffix("e.p.").rstrip(_MARKS)
    if _UCI.fullmatch(text):
        try:
            return board.parse_uci(text.lower())
        except ValueError:
            # Long notation of a pawn's move looks alike, and leaves its promotion open.
            pass
    elif _CASTLING.fullmatch(text):
        text = "-".join("O" * ((len(text) + 1) // 2))
    try:
        return board.parse_san(text) or None
    except ValueError:
        return None


def accepted(game: Game, fields: list[str]) -> Accepted:
    """Return the position of a FEN, repaired if need be.

    Castling rights and an en passant square that do not fit the board are left out, as most programs do.

    Parameters
    ----------
    game
        Chess.
    fields
        The FEN's fields, two to six of them; or one word that stands for a position.

    Raises
    ------
    RulesError
        If there is no such position.
    """
    if not fields:
        raise RulesError("there is no position before the operations")
    try:
        return _checked(game, " ".join(fields))
    except RulesError as error:
        repaired, repairs = _repaired(fields)
        if repairs:
            with contextlib.suppress(RulesError):
                return _checked(game, repaired)._replace(repairs=tuple(repairs))
        # The first sentence stands: it names what the user wrote.
        raise error from None


def _checked(game: Game, text: str) -> Accepted:
    """Return the position of a text; RulesError if it is none."""
    return Accepted(text, bool(game.parse(text).state & CHESS960))


def _repaired(fields: list[str]) -> tuple[str, list[str]]:
    """Return a FEN without impossible castling rights and en passant square, and a sentence for each."""
    fields, repairs = list(fields), []
    try:
        board = chess.Board(" ".join([*fields[:3], _NO_RIGHT]), chess960=True)
    except ValueError:
        return "", []
    if len(fields) > 2 and board.castling_rights != board.clean_castling_rights():
        board.castling_rights = board.clean_castling_rights()
        repairs.append(f"the castling rights {fields[2]} do not fit the board: read as {board.castling_xfen()}")
        fields[2] = board.castling_xfen()
    if len(fields) > 3 and fields[3] != _NO_RIGHT and _is_impossible_target(board, fields[3]):
        repairs.append(f"no pawn can just have passed the en passant square {fields[3]}: read as -")
        fields[3] = _NO_RIGHT
    return " ".join(fields), repairs


def _is_impossible_target(board: chess.Board, field: str) -> bool:
    if field not in chess.SQUARE_NAMES:
        return False
    board.ep_square = chess.parse_square(field)
    return bool(board.status() & chess.STATUS_INVALID_EP_SQUARE)
