"""Moves as UCI writes them, those of books too (SAN, by python-chess), and scores in pawns and in moves to mate."""

from __future__ import annotations

from search.games.chess.board import (
    BLACK_TO_MOVE,
    CASTLING,
    CHESS960,
    DOUBLE_STEP,
    EN_PASSANT,
    KIND_SHIFT,
    KING,
    PAWN,
    PROMOTION,
    SQUARE_MASK,
    TO_SHIFT,
    TURN_SQUARE,
    Position,
)
from search.games.chess.fen import man_at, marks_of
from search.games.chess.fen import text as fen_text
from search.games.chess.moves import C1, G1
from search.games.chess.placement import FILES, RANKS, square_name
from search.rules import RulesError
from search.scores import mate_distance

_PROMOTED = "nbrq"
"""In the order of the kinds of promotions."""
_WANTED = "a move is two squares such as e2e4, for a promotion e7e8q, or as books write it, such as Nf3"


# Python may not call the compiled helpers of `search.games.chess.board`.
def _make_move(origin: int, target: int, kind: int) -> int:
    return origin | target << TO_SHIFT | kind << KIND_SHIFT


def _turn(position: Position) -> int:
    return TURN_SQUARE if position.state & BLACK_TO_MOVE else 0


def move_text(position: Position, move: int) -> str:
    """Return a move as UCI writes it; castling as e1g1, or from the king to its rook in Chess960."""
    origin, target, kind = move & SQUARE_MASK, move >> TO_SHIFT & SQUARE_MASK, move >> KIND_SHIFT
    if kind == CASTLING and not position.state & CHESS960:
        target = C1 if target < origin else G1
    promoted = _PROMOTED[kind - PROMOTION] if kind >= PROMOTION else ""
    turn = _turn(position)
    return square_name(origin ^ turn) + square_name(target ^ turn) + promoted


def parse_move(position: Position, text: str) -> int:
    """Return the move that a text means, in either way of writing castling, or in SAN; RulesError where it is none."""
    squares, promoted = text[:4], text[4:].lower()
    is_move = len(text) in (4, 5) and all(squares[index] in FILES and squares[index + 1] in RANKS for index in (0, 2))
    if not is_move:
        return _parse_san(position, text)
    if squares[:2] == squares[2:] or (promoted and promoted not in _PROMOTED):
        raise RulesError(f"{text!r} is no move: {_WANTED}")
    turn = _turn(position)
    origin, target = ((RANKS.index(name[1]) * 8 + FILES.index(name[0])) ^ turn for name in (text[:2], text[2:4]))
    man = man_at(position, origin ^ turn)
    is_promotion = man is not None and man.kind == PAWN and target // 8 == 7
    if is_promotion != bool(promoted):
        wanted = "lacks the man that the pawn becomes, such as e7e8q" if is_promotion else "promotes no pawn"
        raise RulesError(f"the move {text!r} {wanted}")
    if promoted:
        return _make_move(origin, target, PROMOTION + _PROMOTED.index(promoted))
    if man is not None and man.kind == PAWN:
        return _make_move(origin, target, _pawn_move_kind(position, origin, target))
    rook = _castling_rook(position, origin, target) if man is not None and man.kind == KING else None
    return _make_move(origin, target, 0) if rook is None else _make_move(origin, rook, CASTLING)


def _parse_san(position: Position, text: str) -> int:
    # Imported where it is needed: it takes longer to load than the rules themselves.
    import chess

    board = chess.Board(fen_text(position), chess960=bool(position.state & CHESS960))
    try:
        move = board.parse_san(text)
    except chess.AmbiguousMoveError:
        raise RulesError(f"the move {text!r} may mean more than one: name the square that it leaves") from None
    except chess.IllegalMoveError:
        raise RulesError(f"the move {text!r} is not legal there") from None
    except ValueError:
        raise RulesError(f"{text!r} is no move: {_WANTED}") from None
    if not move:
        raise RulesError(f"{text!r} passes, which is no move of chess")
    return parse_move(position, move.uci())


def _pawn_move_kind(position: Position, origin: int, target: int) -> int:
    if target - origin == 16:
        return DOUBLE_STEP
    marks = [square ^ _turn(position) for square in marks_of(position)]
    return EN_PASSANT if target in marks and target // 8 == 5 and (target - origin) % 8 != 0 else 0


def _castling_rook(position: Position, king: int, target: int) -> int | None:
    """Return the rook with which a king castles, if it does: by a move onto it, or by two squares or more."""
    rooks = [square ^ _turn(position) for square in marks_of(position) if (square ^ _turn(position)) // 8 == 0]
    if target in rooks:
        return target
    if target in (C1, G1) and abs(target - king) > 1:
        return next((rook for rook in rooks if (rook < king) == (target == C1)), None)
    return None


def score_text(position: Position, score: int, is_solved: bool) -> str:
    """Return a score for the side to move: in pawns, such as +0.34, or as moves to mate, such as #5 and #-3."""
    plies = mate_distance(score)
    if plies is None:
        return f"{score / 100:+.2f}"
    if plies == 0:
        return "#-0"
    return f"#{(plies + 1) // 2}" if plies > 0 else f"#-{(1 - plies) // 2}"
