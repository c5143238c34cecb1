"""Plain truths to hold the compiled code against: obvious and slow; imports none of it.

Minimax is written as two functions, White's and Black's, over explicit trees whose scores are in White's view: no
negation that could be wrong in the same way as the kernel's. The games' rules are written a second time, on lists.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

MATE = 30_000
"""The score of a decided leaf, before its distance from the root is taken off."""


@dataclass(frozen=True)
class Node:
    """A node of an explicit tree; without children it is a finished game."""

    score: int
    """White's view: the final score of a leaf (``MATE`` if White has won, ``-MATE`` if Black), else an estimate."""
    children: tuple[Node, ...] = ()


def minimax_white(node: Node, depth: int, ply: int = 0, draw: int = 0) -> int:
    """Return White's score of a node with White to move, looking so many plies deep; a draw is worth `draw`."""
    if not node.children:
        return final_score(node.score, ply, draw)
    if depth == 0:
        return node.score
    return max(minimax_black(child, depth - 1, ply + 1, draw) for child in node.children)


def minimax_black(node: Node, depth: int, ply: int = 0, draw: int = 0) -> int:
    """Return White's score of a node with Black to move."""
    if not node.children:
        return final_score(node.score, ply, draw)
    if depth == 0:
        return node.score
    return min(minimax_white(child, depth - 1, ply + 1, draw) for child in node.children)


def final_score(score: int, ply: int, draw: int = 0) -> int:
    """Return White's score of a finished game at a ply."""
    if score == MATE:
        return MATE - ply
    if score == -MATE:
        return -MATE + ply
    return draw if score == 0 else score


def node_count(node: Node, depth: int) -> int:
    """Return how many nodes a plain search to a depth visits, the root included."""
    if depth == 0:
        return 1
    return 1 + sum(node_count(child, depth - 1) for child in node.children)


@dataclass(frozen=True)
class RandomTree:
    """A recipe for explicit trees."""

    depth: int
    """No leaf lies deeper."""
    branching: int
    """An inner node has from one child to so many."""
    reach: int
    """Scores lie in ``-reach..reach``; a small one makes many equal."""
    early_leaf: float = 0.1
    """Probability that a node above `depth`, other than the root, is a finished game."""
    mate: float = 0.0
    """Probability that a finished game is decided."""

    def grow(self, rng: random.Random) -> Node:
        """Return a tree."""
        return self._grow(rng, self.depth, is_root=True)

    def _grow(self, rng: random.Random, depth: int, *, is_root: bool) -> Node:
        if depth == 0 or (not is_root and rng.random() < self.early_leaf):
            if rng.random() < self.mate:
                return Node(rng.choice((MATE, -MATE)))
            return Node(rng.randint(-self.reach, self.reach))
        count = rng.randint(1, self.branching)
        children = tuple(self._grow(rng, depth - 1, is_root=False) for _ in range(count))
        return Node(rng.randint(-self.reach, self.reach), children)


class TicTacToe:
    """Tic-tac-toe on a list of 9; moves are cells 1..9."""

    LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def __init__(self) -> None:
        self.cells = ["."] * 9
        self.mover, self.waiting = "X", "O"

    def legal_moves(self) -> list[int]:
        return [cell + 1 for cell in range(9) if self.cells[cell] == "."]

    def play(self, move: int) -> None:
        self.cells[move - 1] = self.mover
        self.mover, self.waiting = self.waiting, self.mover

    def result(self) -> int | None:
        """Return the final score for the side to move, None while the game goes on."""
        if any(all(self.cells[cell] == self.waiting for cell in line) for line in self.LINES):
            return -MATE
        return None if "." in self.cells else 0

    def text(self) -> str:
        return "".join(self.cells)


class ConnectFour:
    """Connect Four on columns of rows; moves are columns 1..7."""

    WIDTH, HEIGHT = 7, 6
    STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))

    def __init__(self) -> None:
        self.columns: list[list[str]] = [[] for _ in range(self.WIDTH)]
        self.mover, self.waiting = "X", "O"

    @classmethod
    def lines(cls) -> list[list[tuple[int, int]]]:
        """Return the 69 lines of four cells, a cell as column and row."""
        found = []
        for column in range(cls.WIDTH):
            for row in range(cls.HEIGHT):
                for right, up in cls.STEPS:
                    line = [(column + right * step, row + up * step) for step in range(4)]
                    if all(0 <= c < cls.WIDTH and 0 <= r < cls.HEIGHT for c, r in line):
                        found.append(line)
        return found

    def legal_moves(self) -> list[int]:
        return [column + 1 for column in range(self.WIDTH) if len(self.columns[column]) < self.HEIGHT]

    def play(self, move: int) -> None:
        self.columns[move - 1].append(self.mover)
        self.mover, self.waiting = self.waiting, self.mover

    def result(self) -> int | None:
        """Return the final score for the side to move, None while the game goes on."""
        if any(all(self._at(cell) == self.waiting for cell in line) for line in CONNECT_FOUR_LINES):
            return -MATE
        return None if self.legal_moves() else 0

    def _at(self, cell: tuple[int, int]) -> str:
        column, row = cell
        return self.columns[column][row] if row < len(self.columns[column]) else "."


CONNECT_FOUR_LINES = ConnectFour.lines()


class Kalah:
    """Kalah on a list of 14: south's pits 0..5 and store 6, north's pits 7..12 and store 13; moves are pits 1..6."""

    SOUTH_STORE, NORTH_STORE = 6, 13

    def __init__(self, seeds_a_pit: int = 4) -> None:
        self.cells = ([seeds_a_pit] * 6 + [0]) * 2
        self.south_to_move = True

    def copy(self) -> Kalah:
        twin = Kalah()
        twin.cells, twin.south_to_move = self.cells[:], self.south_to_move
        return twin

    def legal_moves(self) -> list[int]:
        first = 0 if self.south_to_move else 7
        return [pit + 1 for pit in range(6) if self.cells[first + pit] > 0]

    def play(self, move: int) -> None:
        own_pits = range(0, 6) if self.south_to_move else range(7, 13)
        own_store, closed = self.SOUTH_STORE, self.NORTH_STORE
        if not self.south_to_move:
            own_store, closed = closed, own_store
        cell = own_pits[move - 1]
        in_hand = self.cells[cell]
        self.cells[cell] = 0
        while in_hand > 0:
            cell = (cell + 1) % 14
            if cell != closed:
                self.cells[cell] += 1
                in_hand -= 1
        facing = 12 - cell
        if cell in own_pits and self.cells[cell] == 1 and self.cells[facing] > 0:
            self.cells[own_store] += self.cells[facing] + 1
            self.cells[cell] = self.cells[facing] = 0
        if cell != own_store:
            self.south_to_move = not self.south_to_move

    def is_over(self) -> bool:
        return sum(self.cells[0:6]) == 0 or sum(self.cells[7:13]) == 0

    def result_for_south(self) -> int:
        """Return the final difference; seeds left in the pits are their owner's."""
        return sum(self.cells[0:7]) - sum(self.cells[7:14])

    def result(self) -> int | None:
        """Return the final score for the side to move, None while the game goes on."""
        if not self.is_over():
            return None
        return self.result_for_south() if self.south_to_move else -self.result_for_south()

    def text(self) -> str:
        south, north = (",".join(str(seeds) for seeds in self.cells[first : first + 7]) for first in (0, 7))
        return f"{south}/{north} {'s' if self.south_to_move else 'n'}"

    def minimax(self, depth: int, draw: int = 0) -> int:
        """Return south's score, looking so many moves deep; a draw is worth `draw` to south."""
        if self.is_over():
            return self.result_for_south() or draw
        if depth == 0:
            return self.cells[self.SOUTH_STORE] - self.cells[self.NORTH_STORE]
        scores = []
        for move in self.legal_moves():
            twin = self.copy()
            twin.play(move)
            scores.append(twin.minimax(depth - 1, draw))
        return max(scores) if self.south_to_move else min(scores)

    def perft(self, depth: int) -> int:
        """Return the number of lines of exactly so many moves."""
        if depth == 0:
            return 1
        if self.is_over():
            return 0
        total = 0
        for move in self.legal_moves():
            twin = self.copy()
            twin.play(move)
            total += twin.perft(depth - 1)
        return total


class Othello:
    """Othello on a list of 64, a1 to h1, then from a2 on; moves are squares 1..64, a pass is 65."""

    PASS = 65
    DIRECTIONS = tuple((right, up) for right in (-1, 0, 1) for up in (-1, 0, 1) if (right, up) != (0, 0))
    START = "-" * 27 + "OX" + "-" * 6 + "XO" + "-" * 27

    def __init__(self, board: str = START, mover: str = "X") -> None:
        self.cells = list(board)
        self.mover, self.waiting = mover, "O" if mover == "X" else "X"

    def copy(self) -> Othello:
        return Othello("".join(self.cells), self.mover)

    def _captured(self, square: int, mover: str, waiting: str) -> list[int]:
        """Return the squares of the discs that a disc would flip."""
        found: list[int] = []
        for right, up in self.DIRECTIONS:
            line: list[int] = []
            column, row = square % 8 + right, square // 8 + up
            while 0 <= column < 8 and 0 <= row < 8 and self.cells[column + 8 * row] == waiting:
                line.append(column + 8 * row)
                column, row = column + right, row + up
            if 0 <= column < 8 and 0 <= row < 8 and self.cells[column + 8 * row] == mover:
                found += line
        return found

    def _squares(self, mover: str, waiting: str) -> list[int]:
        empty = (square for square in range(64) if self.cells[square] == "-")
        return [square + 1 for square in empty if self._captured(square, mover, waiting)]

    def legal_moves(self) -> list[int]:
        squares = self._squares(self.mover, self.waiting)
        if not squares and self._squares(self.waiting, self.mover):
            return [self.PASS]
        return squares

    def play(self, move: int) -> None:
        if move != self.PASS:
            for square in [*self._captured(move - 1, self.mover, self.waiting), move - 1]:
                self.cells[square] = self.mover
        self.mover, self.waiting = self.waiting, self.mover

    def difference_for_black(self) -> int:
        """Return the final difference; squares left empty are the winner's."""
        black, white = self.cells.count("X"), self.cells.count("O")
        return 64 - 2 * white if black > white else 2 * black - 64 if black < white else 0

    def text(self) -> str:
        return f"{''.join(self.cells)} {self.mover}"

    def minimax(self, draw: int = 0) -> int:
        """Return black's final difference with best play; a draw is worth `draw` to black."""
        moves = self.legal_moves()
        if not moves:
            return self.difference_for_black() or draw
        scores = []
        for move in moves:
            twin = self.copy()
            twin.play(move)
            scores.append(twin.minimax(draw))
        return max(scores) if self.mover == "X" else min(scores)

    def perft(self, depth: int) -> int:
        """Return the number of lines of so many moves; one that ends sooner counts too."""
        moves = self.legal_moves()
        if depth == 0 or not moves:
            return 1
        total = 0
        for move in moves:
            twin = self.copy()
            twin.play(move)
            total += twin.perft(depth - 1)
        return total
