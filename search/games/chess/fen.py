"""Positions as text: FEN (Edwards 1994), for Chess960 as X-FEN and Shredder-FEN; and the colour-mirrored twin.

A square of an en-passant capture is written, and kept, only where such a capture is legal. Castling is written with
KQkq where the king and its rook stand as in ordinary chess, and with the rooks' files (Shredder-FEN) in Chess960.
"""

from __future__ import annotations

import numpy as np

from search.games.chess.board import (
    BISHOP,
    BLACK_TO_MOVE,
    CHESS960,
    CLOCK_SHIFT,
    KINDS,
    KING,
    KNIGHT,
    NUMBER_SHIFT,
    PAWN,
    QUEEN,
    ROOK,
    TURN_SQUARE,
    Position,
)
from search.games.chess.keys import full_key
from search.games.chess.placement import (
    BLACK,
    FILES,
    RANKS,
    SIDE_NAMES,
    WHITE,
    Board,
    Man,
    can_take_en_passant,
    is_attacked,
    king_of,
    read_board,
    square_name,
    write_board,
)
from search.rules import RulesError

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
_DEFAULTS = ("-", "-", "0", "1")
"""What stands for fields three to six where a text leaves them out."""
_FEWEST_FIELDS, _MOST_FIELDS = 2, 6
MOST_CLOCK, MOST_NUMBER = 9_999, 999_999
_E_FILE, _ROOK_FILES = 4, (0, 7)


def parse(text: str) -> Position:
    """Return the position of a FEN of two to six fields; RulesError with one sentence where it is none."""
    fields = (START if text.strip() in ("", "start", "startpos") else text).split()
    if not _FEWEST_FIELDS <= len(fields) <= _MOST_FIELDS:
        raise RulesError(f"the position {text!r} has {len(fields)} fields: a FEN has 4 to 6, parted by blanks")
    board_field, mover, castling, target, plies, number = fields + list(_DEFAULTS[len(fields) - _FEWEST_FIELDS :])
    board = read_board(board_field)
    if mover not in ("w", "b"):
        raise RulesError(f"the side to move is {mover!r}: it must be w or b")
    is_white = mover == "w"
    if is_attacked(board, king_of(board, not is_white), is_white):
        raise RulesError(f"{SIDE_NAMES[not is_white]} is in check, and it is the other side's move")
    rooks, is_chess960 = _read_castling(board, castling)
    marks = rooks + _read_en_passant(board, target, is_white)
    state = _read_number("halfmove clock", plies, MOST_CLOCK) << CLOCK_SHIFT
    # Many a FEN counts from 0.
    state |= max(1, _read_number("full-move number", number, MOST_NUMBER)) << NUMBER_SHIFT
    return _assemble(board, marks, state | CHESS960 * is_chess960 | BLACK_TO_MOVE * (not is_white))


def _read_number(name: str, field: str, most: int) -> int:
    if not (field.isascii() and field.isdecimal() and len(field) <= len(str(most))):
        raise RulesError(f"the {name} is {field!r}: it must be a number from 0 to {most}")
    return int(field)


def _read_castling(board: Board, field: str) -> tuple[list[int], bool]:
    """Return the rooks that may castle, and whether they are those of Chess960."""
    if field == "-":
        return [], False
    rooks: list[int] = []
    is_chess960 = False
    for letter in field:
        is_white = letter.isupper()
        rook = _castling_rook(board, letter, is_white)
        king = king_of(board, is_white)
        if rook in rooks or any(other // 8 == king // 8 and (other < king) == (rook < king) for other in rooks):
            raise RulesError(f"the castling rights {field!r} name one side of {SIDE_NAMES[is_white]}'s king twice")
        rooks.append(rook)
        is_usual = king % 8 == _E_FILE and rook % 8 in _ROOK_FILES
        is_chess960 |= not is_usual or letter.lower() not in "kq"
    return rooks, is_chess960


def _castling_rook(board: Board, letter: str, is_white: bool) -> int:
    """Return the square of the rook that a letter means: the outermost one for K and Q, else the one on that file."""
    first_rank = 0 if is_white else 56
    king = king_of(board, is_white)
    wish = letter.lower()
    if wish not in FILES + "kq":
        raise RulesError(f"the castling rights have {letter!r}: they are letters of KQkq, or the rooks' files, or -")
    if king // 8 != first_rank // 8:
        raise RulesError(f"the castling right {letter!r} needs {SIDE_NAMES[is_white]}'s king on its first rank")
    if wish in FILES:
        candidates = [first_rank + FILES.index(wish)]
    else:
        candidates = [*range(first_rank + 7, king, -1)] if wish == "k" else [*range(first_rank, king)]
    for square in candidates:
        if board.get(square) == (ROOK, is_white):
            return square
    raise RulesError(f"the castling right {letter!r} needs a rook of {SIDE_NAMES[is_white]} in its place")


def _read_en_passant(board: Board, field: str, is_white: bool) -> list[int]:
    """Return the square of a legal en-passant capture, if there is one."""
    if field == "-":
        return []
    if len(field) != 2 or field[0] not in FILES or field[1] not in RANKS:
        raise RulesError(f"the en passant square is {field!r}: it must be a square, or -")
    target = RANKS.index(field[1]) * 8 + FILES.index(field[0])
    ahead = 8 if is_white else -8
    is_possible = (
        target // 8 == (5 if is_white else 2)
        and board.get(target - ahead) == (PAWN, not is_white)
        and target not in board
        and target + ahead not in board
    )
    if not is_possible:
        raise RulesError(f"the en passant square {field} is impossible: no pawn can just have passed it")
    return [target] if can_take_en_passant(board, target, is_white) else []


def _assemble(board: Board, marks: list[int], state: int) -> Position:
    """Return the position of a checked board."""
    turn = TURN_SQUARE if state & BLACK_TO_MOVE else 0
    is_white = turn == 0
    men = [(man.kind, square ^ turn, man.is_white == is_white) for square, man in board.items()]

    own, by_kind = 0, [0] * KINDS
    for kind, square, is_own in men:
        by_kind[kind] |= 1 << square
        if is_own:
            own |= 1 << square
    turned_marks = [square ^ turn for square in marks]
    return Position(
        own=np.uint64(own),
        pawns=np.uint64(by_kind[PAWN]),
        knights=np.uint64(by_kind[KNIGHT]),
        diagonals=np.uint64(by_kind[BISHOP] | by_kind[QUEEN]),
        straights=np.uint64(by_kind[ROOK] | by_kind[QUEEN]),
        kings=np.uint64(by_kind[KING]),
        marks=np.uint64(sum(1 << square for square in turned_marks)),
        state=np.int64(state),
        key=full_key(men, turned_marks, state),
    )


def man_at(position: Position, square: int) -> Man | None:
    """Return the man on an absolute square, if there is one."""
    is_white = not position.state & BLACK_TO_MOVE
    index = square if is_white else square ^ TURN_SQUARE
    own, *kinds = (int(field) >> index & 1 for field in position[:6])
    if not any(kinds):
        return None
    pawn, knight, diagonal, straight, king = kinds
    kind = PAWN * pawn + KNIGHT * knight + BISHOP * diagonal + ROOK * straight + KING * king
    return Man(kind, bool(own) == is_white)


def board_of(position: Position) -> Board:
    """Return the board of a position, by absolute squares."""
    men = {square: man_at(position, square) for square in range(64)}
    return {square: man for square, man in men.items() if man is not None}


def marks_of(position: Position) -> list[int]:
    """Return the absolute squares of a position's marks."""
    turn = TURN_SQUARE if position.state & BLACK_TO_MOVE else 0
    return [square for square in range(64) if int(position.marks) >> (square ^ turn) & 1]


def text(position: Position) -> str:
    """Return the FEN of a position, with all six fields."""
    state, board = int(position.state), board_of(position)
    rights = [square for square in marks_of(position) if square // 8 in (0, 7)]
    targets = [square_name(square) for square in marks_of(position) if square // 8 not in (0, 7)]
    castling = "".join(
        _right_letter(board, rook, is_white, bool(state & CHESS960))
        for is_white in (WHITE, BLACK)
        for rook in sorted(rights, reverse=True)
        if board[rook].is_white == is_white
    )
    mover = "b" if state & BLACK_TO_MOVE else "w"
    fields = (mover, castling or "-", "".join(targets) or "-", (state >> CLOCK_SHIFT) & 0xFFFF, state >> NUMBER_SHIFT)
    return " ".join(map(str, (write_board(board), *fields)))


def _right_letter(board: Board, rook: int, is_white: bool, is_chess960: bool) -> str:
    letter = FILES[rook % 8] if is_chess960 else "k" if rook > king_of(board, is_white) else "q"
    return letter.upper() if is_white else letter


def mirror(position: Position) -> Position:
    """Return the same game with the colours changed: of equal value for the side to move."""
    board = {square ^ TURN_SQUARE: Man(man.kind, not man.is_white) for square, man in board_of(position).items()}
    marks = [square ^ TURN_SQUARE for square in marks_of(position)]
    return _assemble(board, marks, int(position.state) ^ BLACK_TO_MOVE)
