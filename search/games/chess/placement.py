"""The board of a FEN, in plain Python: read, checked and written, with the few questions that a check asks.

Squares are absolute here: a1 is 0, h8 is 63.
"""

from __future__ import annotations

from typing import NamedTuple

from search.games.chess.attacks import DIAGONAL, KNIGHT_STEPS, STRAIGHT, Direction, ray
from search.games.chess.board import BISHOP, KING, KNIGHT, LETTERS, PAWN, QUEEN, ROOK
from search.rules import RulesError

FILES, RANKS = "abcdefgh", "12345678"
WHITE, BLACK = True, False
SIDE_NAMES = {WHITE: "White", BLACK: "Black"}
MOST_MEN, MOST_PAWNS = 16, 8
AT_FIRST = {KNIGHT: 2, BISHOP: 2, ROOK: 2, QUEEN: 1}
"""Pieces of a side in the start position: any more were pawns."""


class Man(NamedTuple):
    """A man on the board."""

    kind: int
    is_white: bool

    @property
    def letter(self) -> str:
        """Its letter in a FEN."""
        return LETTERS[self.kind].upper() if self.is_white else LETTERS[self.kind]


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
        _check_men(board, is_white)
    return board


def _read_rank(rank: str, row: str) -> Board:
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


def _check_men(board: Board, is_white: bool) -> None:
    """Refuse what no game can lead to, as far as the numbers and the ranks tell."""
    name = SIDE_NAMES[is_white]
    kinds = [man.kind for man in board.values() if man.is_white == is_white]
    if kinds.count(KING) != 1:
        raise RulesError(f"the board has {kinds.count(KING)} kings of {name}: each side has one")
    if len(kinds) > MOST_MEN:
        raise RulesError(f"the board has {len(kinds)} men of {name}: a side has at most {MOST_MEN}")
    pawns = kinds.count(PAWN)
    if pawns > MOST_PAWNS:
        raise RulesError(f"the board has {pawns} pawns of {name}: a side has at most {MOST_PAWNS}")
    for square, man in board.items():
        if man == (PAWN, is_white) and square // 8 in (0, 7):
            raise RulesError(f"the board has a pawn of {name} on {square_name(square)}: none stands on the last ranks")
    promoted = sum(max(0, kinds.count(kind) - number) for kind, number in AT_FIRST.items())
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
    return next(square for square, man in board.items() if man == (KING, is_white))


def _first_men(board: Board, square: int, directions: tuple[Direction, ...]) -> list[Man]:
    """Return the first man that each line from a square meets."""
    met = (next((board[other] for other in ray(square, way) if other in board), None) for way in directions)
    return [man for man in met if man is not None]


def _neighbours(board: Board, square: int, steps: tuple[Direction, ...]) -> list[Man]:
    """Return the men one step away."""
    return [board[other] for step in steps for other in ray(square, step)[:1] if other in board]


def pawn_steps_to(square: int, is_white: bool) -> list[int]:
    """Return the squares from which a side's pawns attack a square."""
    back = -1 if is_white else 1
    return [other for step in ((back, -1), (back, 1)) for other in ray(square, step)[:1]]


def is_attacked(board: Board, square: int, is_white: bool) -> bool:
    """Tell whether a side attacks a square."""
    pawns = (board.get(other) for other in pawn_steps_to(square, is_white))
    men = {
        *((PAWN, man.is_white) for man in pawns if man is not None and man.kind == PAWN),
        *(man for man in _neighbours(board, square, KNIGHT_STEPS) if man.kind == KNIGHT),
        *(man for man in _neighbours(board, square, DIAGONAL + STRAIGHT) if man.kind == KING),
        *(man for man in _first_men(board, square, DIAGONAL) if man.kind in (BISHOP, QUEEN)),
        *(man for man in _first_men(board, square, STRAIGHT) if man.kind in (ROOK, QUEEN)),
    }
    return any(man[1] == is_white for man in men)


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
