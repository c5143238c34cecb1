"""The board of a FEN, in plain Python: read, checked and written, with the few questions that a check asks.

Squares are absolute here: a1 is 0, h8 is 63.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

from search.games.chess.attacks import DIAGONAL, KNIGHT_STEPS, STRAIGHT, Direction, ray
from search.games.chess.board import BISHOP, KINDS, KING, KNIGHT, LETTERS, PAWN, QUEEN, ROOK
from search.rules import RulesError

FILES, RANKS = "abcdefgh", "12345678"
WHITE, BLACK = True, False
SIDE_NAMES = {WHITE: "White", BLACK: "Black"}
MOST_MEN, MOST_PAWNS = 16, 8
AT_FIRST = {KNIGHT: 2, BISHOP: 2, ROOK: 2, QUEEN: 1}
"""Pieces of a side in the start position: any more were pawns."""
_LAST_RANKS = (*range(8), *range(56, 64))


class Man(NamedTuple):
    """A man on the board."""

    kind: int
    is_white: bool

    @property
    def letter(self) -> str:
        """Its letter in a FEN."""
        return LETTERS[self.kind].upper() if self.is_white else LETTERS[self.kind]


_MEN = {is_white: tuple(Man(kind, is_white) for kind in range(KINDS)) for is_white in (WHITE, BLACK)}
"""Each side's men by their kinds."""
_LETTERS = {WHITE: LETTERS.upper(), BLACK: LETTERS}

Board = dict[int, Man]
"""The men by their squares."""


def square_name(square: int) -> str:
    """Return a square's name, such as e4."""
    return FILES[square % 8] + RANKS[square // 8]


def read_board(field: str) -> Board:
    """Return the board of a FEN's first field.

    Raises
    ------
    RulesError
        If it is none, or no game could have led to such men.
    """
    ranks = field.split("/")
    if len(ranks) != len(RANKS):
        raise RulesError(f"the board {field!r} has {len(ranks)} ranks: a FEN has 8, parted by /")
    board: Board = {}
    for rank, row in zip(reversed(RANKS), ranks, strict=True):
        board |= _read_rank(rank, row)
    for is_white in (WHITE, BLACK):
        _check_men(board, [field.count(letter) for letter in _LETTERS[is_white]], is_white)
    return board


@lru_cache(maxsize=1 << 14)
def _read_rank(rank: str, row: str) -> Board:
    """Return the men of a rank; the positions of a set have most of theirs in common."""
    board: Board = {}
    file = 0
    for letter in row:
        if letter in RANKS:
            file += int(letter)
        elif letter.lower() in LETTERS:
            board[(int(rank) - 1) * 8 + file] = Man(LETTERS.index(letter.lower()), letter.isupper())
            file += 1
        else:
            raise RulesError(f"the board has {letter!r} on rank {rank}: men are the letters PNBRQK and pnbrqk")
    if file != len(FILES):
        raise RulesError(f"rank {rank} of the board, {row!r}, has {file} squares: it needs 8")
    return board


def _check_men(board: Board, counts: list[int], is_white: bool) -> None:
    """Refuse what no game can lead to, as far as the numbers of a side's men by kind and the ranks tell."""
    name = SIDE_NAMES[is_white]
    if counts[KING] != 1:
        raise RulesError(f"the board has {counts[KING]} kings of {name}: each side has one")
    if sum(counts) > MOST_MEN:
        raise RulesError(f"the board has {sum(counts)} men of {name}: a side has at most {MOST_MEN}")
    pawns = counts[PAWN]
    if pawns > MOST_PAWNS:
        raise RulesError(f"the board has {pawns} pawns of {name}: a side has at most {MOST_PAWNS}")
    for square in _LAST_RANKS:
        if board.get(square) == (PAWN, is_white):
            raise RulesError(f"the board has a pawn of {name} on {square_name(square)}: none stands on the last ranks")
    promoted = sum(max(0, counts[kind] - number) for kind, number in AT_FIRST.items())
    if promoted > MOST_PAWNS - pawns:
        raise RulesError(
            f"the board has {promoted} promoted men of {name} beside {pawns} pawns: together they are at most 8"
        )


def write_board(board: Board) -> str:
    """Return the first field of a FEN."""
    rows = []
    for rank in range(7, -1, -1):
        row, gap = "", 0
        for square in range(rank * 8, rank * 8 + 8):
            man = board.get(square)
            if man is None:
                gap += 1
                continue
            row += (str(gap) if gap else "") + man.letter
            gap = 0
        rows.append(row + (str(gap) if gap else ""))
    return "/".join(rows)


def king_of(board: Board, is_white: bool) -> int:
    """Return the square of a side's king."""
    king = _MEN[is_white][KING]
    return next(square for square, man in board.items() if man == king)


@cache
def _lines(square: int, directions: tuple[Direction, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the squares of each line from a square."""
    return tuple(ray(square, direction) for direction in directions)


@cache
def _neighbours(square: int, steps: tuple[Direction, ...]) -> tuple[int, ...]:
    """Return the squares one step away."""
    return tuple(other for line in _lines(square, steps) for other in line[:1])


def _sees(board: Board, square: int, directions: tuple[Direction, ...], men: tuple[Man, Man]) -> bool:
    """Tell whether one of two men is the first on a line from a square."""
    for line in _lines(square, directions):
        for other in line:
            if other in board:
                if board[other] in men:
                    return True
                break
    return False


def pawn_steps_to(square: int, is_white: bool) -> tuple[int, ...]:
    """Return the squares from which a side's pawns attack a square."""
    back = -1 if is_white else 1
    return _neighbours(square, ((back, -1), (back, 1)))


def is_attacked(board: Board, square: int, is_white: bool) -> bool:
    """Tell whether a side attacks a square."""
    men = _MEN[is_white]
    return (
        any(board.get(other) == men[PAWN] for other in pawn_steps_to(square, is_white))
        or any(board.get(other) == men[KNIGHT] for other in _neighbours(square, KNIGHT_STEPS))
        or any(board.get(other) == men[KING] for other in _neighbours(square, DIAGONAL + STRAIGHT))
        or _sees(board, square, DIAGONAL, (men[BISHOP], men[QUEEN]))
        or _sees(board, square, STRAIGHT, (men[ROOK], men[QUEEN]))
    )


def can_take_en_passant(board: Board, target: int, is_white: bool) -> bool:
    """Tell whether a side's pawn can legally take en passant on a square."""
    victim = target - 8 if is_white else target + 8
    for origin in pawn_steps_to(target, is_white):
        if board.get(origin) == (PAWN, is_white):
            after = {square: man for square, man in board.items() if square not in (origin, victim)}
            after[target] = Man(PAWN, is_white)
            if not is_attacked(after, king_of(board, is_white), not is_white):
                return True
    return False
