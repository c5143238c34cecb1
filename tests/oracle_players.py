"""Plain searches of games of several players, to hold the compiled ones against; imports none of them.

Trees are explicit; a rule of Reversi for three is written a second time, on lists.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class PlayerNode:
    """A node of a tree of several players; without children it is a finished game."""

    mover: int
    values: tuple[int, ...]
    """The payoffs of a leaf, else estimates."""
    children: tuple[PlayerNode, ...] = ()


def max_n(node: PlayerNode, depth: int) -> tuple[tuple[int, ...], int | None]:
    """Return what a node is worth to each player, and the number of its best child: the first of the best."""
    if not node.children or depth == 0:
        return node.values, None
    best: tuple[int, ...] | None = None
    best_child = None
    for number, child in enumerate(node.children, 1):
        values, _ = max_n(child, depth - 1)
        if best is None or values[node.mover] > best[node.mover]:
            best, best_child = values, number
    assert best is not None
    return best, best_child


def paranoid(node: PlayerNode, depth: int, searcher: int) -> int:
    """Return what a player gets if all others play against it."""
    if not node.children or depth == 0:
        return node.values[searcher]
    values = [paranoid(child, depth - 1, searcher) for child in node.children]
    return max(values) if node.mover == searcher else min(values)


def best_line(node: PlayerNode, depth: int) -> list[int]:
    """Return the children that everyone's best play goes through."""
    _, number = max_n(node, depth)
    return [] if number is None else [number, *best_line(node.children[number - 1], depth - 1)]


@dataclass(frozen=True)
class PlayerTree:
    """A recipe for random trees of several players."""

    players: int
    depth: int
    branching: int
    reach: int = 4
    """General payoffs lie in ``-reach..reach``: many are equal."""
    payoff_sum: int = 0
    """If not 0: payoffs are at least 0, and none has a greater sum."""
    early_leaf: float = 0.1
    in_turn: float = 0.7
    """Probability that a move leads to the next player in turn, else to any, the same one included."""

    def grow(self, rng: random.Random) -> PlayerNode:
        """Return a tree."""
        return self._grow(rng, self.depth, 0)

    def _grow(self, rng: random.Random, depth: int, mover: int) -> PlayerNode:
        values = self._values(rng)
        if depth == 0 or (depth < self.depth and rng.random() < self.early_leaf):
            return PlayerNode(mover, values)
        children = []
        for _ in range(rng.randint(1, self.branching)):
            is_next = rng.random() < self.in_turn
            following = (mover + 1) % self.players if is_next else rng.randrange(self.players)
            children.append(self._grow(rng, depth - 1, following))
        return PlayerNode(mover, values, tuple(children))

    def _values(self, rng: random.Random) -> tuple[int, ...]:
        if not self.payoff_sum:
            return tuple(rng.randint(-self.reach, self.reach) for _ in range(self.players))
        # Cut a stick: the pieces are the payoffs, the last one is nobody's now and then.
        pieces = self.players if rng.random() < 0.7 else self.players + 1
        cuts = sorted(rng.randrange(self.reach + 1) for _ in range(pieces - 1))
        lengths = [right - left for left, right in zip([0, *cuts], [*cuts, self.reach], strict=True)]
        return tuple(length * self.payoff_sum // self.reach for length in lengths[: self.players])


class Tricolour:
    """Reversi for three on a list of rows; a move is a square counted from 1, row by row."""

    DIRECTIONS = tuple((right, down) for right in (-1, 0, 1) for down in (-1, 0, 1) if (right, down) != (0, 0))

    def __init__(self, width: int, height: int, cells: str = "") -> None:
        self.width, self.height = width, height
        self.cells = list(cells or "." * width * height)

    @property
    def mover(self) -> int:
        return sum(cell != "." for cell in self.cells) % 3

    def after(self, move: int) -> Tricolour:
        twin = Tricolour(self.width, self.height, "".join(self.cells))
        colour = "RGB"[self.mover]
        for cell in [*self.captured(move), move - 1]:
            twin.cells[cell] = colour
        return twin

    def _line(self, cell: int, right: int, down: int) -> list[int]:
        """Return the squares from one on in a direction, without it."""
        column, row = cell % self.width + right, cell // self.width + down
        found = []
        while 0 <= column < self.width and 0 <= row < self.height:
            found.append(row * self.width + column)
            column, row = column + right, row + down
        return found

    def captured(self, move: int) -> list[int]:
        colour = "RGB"[self.mover]
        found: list[int] = []
        for right, down in self.DIRECTIONS:
            line = self._line(move - 1, right, down)
            colours = [self.cells[cell] for cell in line]
            if colour in colours:
                between = colours.index(colour)
                if "." not in colours[:between]:
                    found += line[:between]
        return found

    def legal_moves(self) -> list[int]:
        empty = [cell + 1 for cell, colour in enumerate(self.cells) if colour == "."]
        if len(empty) == len(self.cells):
            return empty
        capturing = [move for move in empty if self.captured(move)]
        beside = [move for move in empty if self._is_beside_a_stone(move)]
        return capturing or beside

    def _is_beside_a_stone(self, move: int) -> bool:
        lines = (self._line(move - 1, right, down)[:1] for right, down in self.DIRECTIONS)
        return any(self.cells[cell] != "." for line in lines for cell in line)

    def counts(self) -> tuple[int, ...]:
        return tuple(self.cells.count(colour) for colour in "RGB")

    def text(self) -> str:
        rows = (self.cells[row * self.width : (row + 1) * self.width] for row in range(self.height))
        return "/".join("".join(row) for row in rows)


@cache
def tricolour_max_n(width: int, height: int, cells: str = "") -> tuple[int, ...]:
    """Return the stones of each with everyone's best play to the end; of equal moves the first."""
    board = Tricolour(width, height, cells)
    moves = board.legal_moves()
    if not moves:
        return board.counts()
    results = [tricolour_max_n(width, height, "".join(board.after(move).cells)) for move in moves]
    return max(results, key=lambda values: values[board.mover])


@cache
def tricolour_paranoid(width: int, height: int, searcher: int, cells: str = "") -> int:
    """Return the stones of a player if both others play against it to the end."""
    board = Tricolour(width, height, cells)
    moves = board.legal_moves()
    if not moves:
        return board.counts()[searcher]
    results = [tricolour_paranoid(width, height, searcher, "".join(board.after(move).cells)) for move in moves]
    return max(results) if board.mover == searcher else min(results)
