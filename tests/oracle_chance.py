"""Plain expectiminimax, obvious and slow; imports none of the compiled code.

All scores are in White's view, so that no negation can be wrong in the same way as the kernel's: White takes the
greatest, Black the least, chance the mean.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

WHITE, BLACK, CHANCE_FOR_WHITE, CHANCE_FOR_BLACK = range(4)
WEIGHT_SUM = 36


@dataclass(frozen=True)
class ChanceNode:
    """A node of an explicit tree; without children it is a finished game."""

    score: int
    """White's view: the payoff of a leaf, else an estimate."""
    mover: int = WHITE
    children: tuple[ChanceNode, ...] = ()
    weight: int = 0
    """How likely it is, out of `WEIGHT_SUM`, where its parent is one of chance."""

    @property
    def is_chance(self) -> bool:
        return self.mover >= CHANCE_FOR_WHITE


def expectiminimax(node: ChanceNode, depth: int) -> int:
    """Return White's score of a node, looking so many moves deep; chance costs none, and its mean is rounded."""
    if not node.children or depth == 0:
        return node.score
    if node.is_chance:
        return towards_zero(Fraction(sum(c.weight * expectiminimax(c, depth) for c in node.children), WEIGHT_SUM))
    values = [expectiminimax(child, depth - 1) for child in node.children]
    return max(values) if node.mover == WHITE else min(values)


def real_value(node: ChanceNode, depth: int) -> Fraction:
    """Return the same without any rounding."""
    if not node.children or depth == 0:
        return Fraction(node.score)
    if node.is_chance:
        return sum((c.weight * real_value(c, depth) for c in node.children), Fraction()) / WEIGHT_SUM
    values = [real_value(child, depth - 1) for child in node.children]
    return max(values) if node.mover == WHITE else min(values)


def towards_zero(value: Fraction) -> int:
    """Return the integer next to a number on the side of 0."""
    return int(value)


def chance_layers(node: ChanceNode, depth: int) -> int:
    """Return the most chance nodes on a line of a search to a depth."""
    if not node.children or depth == 0:
        return 0
    below = depth if node.is_chance else depth - 1
    return node.is_chance + max(chance_layers(child, below) for child in node.children)


def chance_node_count(node: ChanceNode, depth: int) -> int:
    """Return how many nodes a plain search to a depth visits, the root included."""
    if not node.children or depth == 0:
        return 1
    below = depth if node.is_chance else depth - 1
    return 1 + sum(chance_node_count(child, below) for child in node.children)


@dataclass(frozen=True)
class ChanceTree:
    """A recipe for explicit trees with chance nodes of unequal probabilities."""

    depth: int
    """Moves of the players on the longest line."""
    branching: int
    """A decision has from one move to so many."""
    outcomes: int
    """A chance node has from one outcome to so many."""
    reach: int
    """Scores lie in ``-reach..reach``; a small one makes many equal."""
    regular: float = 1.0
    """Probability that chance follows each move and the other side moves next, as with dice; else anything goes."""
    early_leaf: float = 0.1
    """Probability that a node other than the root is a finished game."""
    drift: int | None = None
    """Let a score differ from its parent's by so much at most, so that estimates foretell values; else none does."""

    def grow(self, rng: random.Random) -> ChanceNode:
        """Return a tree whose root is a decision or a chance node of either side."""
        return self._grow(rng, self.depth, rng.randrange(4), 0, 0, is_root=True)

    def _grow(
        self,
        rng: random.Random,
        depth: int,
        mover: int,
        weight: int,
        above: int,
        in_a_row: int = 0,
        is_root: bool = False,
    ) -> ChanceNode:
        score = rng.randint(-self.reach, self.reach)
        if self.drift is not None:
            score = max(-self.reach, min(above + rng.randint(-self.drift, self.drift), self.reach))
        if depth == 0 or (not is_root and rng.random() < self.early_leaf):
            return ChanceNode(score, mover, (), weight)
        is_chance = mover >= CHANCE_FOR_WHITE
        count = rng.randint(1, self.outcomes if is_chance else self.branching)
        weights = _shares(rng, count) if is_chance else [0] * count
        is_regular = rng.random() < self.regular
        children = []
        for share in weights:
            if is_regular:
                following = mover - CHANCE_FOR_WHITE if is_chance else CHANCE_FOR_WHITE + 1 - mover
            else:
                # Not many chance nodes in a row: they cost no depth.
                following = rng.randrange(4 if in_a_row < 2 else 2)
            below = depth if is_chance else depth - 1
            children.append(self._grow(rng, below, following, share, score, in_a_row + 1 if is_chance else 0))
        return ChanceNode(score, mover, tuple(children), weight)


def _shares(rng: random.Random, count: int) -> list[int]:
    """Return so many unequal weights of 1 or more that add up to `WEIGHT_SUM`, the greatest first."""
    cuts = sorted(rng.sample(range(1, WEIGHT_SUM), count - 1))
    return sorted((end - begin for begin, end in zip([0, *cuts], [*cuts, WEIGHT_SUM], strict=True)), reverse=True)


Cell = tuple[int, int]
"""Row from above and column from the left."""


@dataclass(frozen=True)
class EinStein:
    """EinStein on sets of cells, both sides on one board, scores in Red's view; slow and plain."""

    size: int
    red: tuple[Cell | None, ...]
    """Where stones 1, 2, ... stand; None if captured."""
    blue: tuple[Cell | None, ...]
    is_red: bool = True

    @classmethod
    def start(cls, size: int) -> EinStein:
        edge = (size + 1) // 2
        corner = tuple((row, column) for row in range(edge) for column in range(edge - row))
        return cls(size, corner, tuple((size - 1 - row, size - 1 - column) for row, column in corner))

    def winner(self) -> int:
        """Return 1 if Red has won, -1 if Blue has, else 0."""
        last = self.size - 1
        if (last, last) in self.red or not any(self.blue):
            return 1
        return -1 if (0, 0) in self.blue or not any(self.red) else 0

    def choices(self, roll: int) -> list[int]:
        """Return the numbers of the stones that a roll lets move."""
        left = [n for n, cell in enumerate(self.red if self.is_red else self.blue, 1) if cell is not None]
        if roll in left:
            return [roll]
        below, above = [n for n in left if n < roll], [n for n in left if n > roll]
        return below[-1:] + above[:1]

    def after(self, roll: int) -> list[tuple[str, EinStein]]:
        """Return what a roll lets play, as text and the position after it."""
        mine, others = (self.red, self.blue) if self.is_red else (self.blue, self.red)
        towards = 1 if self.is_red else -1
        found = []
        for number in self.choices(roll):
            row, column = mine[number - 1] or (0, 0)
            for down, right in ((0, 1), (1, 0), (1, 1)):
                target = (row + towards * down, column + towards * right)
                if not all(0 <= step < self.size for step in target):
                    continue
                moved = tuple(
                    target if n == number else None if cell == target else cell for n, cell in enumerate(mine, 1)
                )
                kept = tuple(None if cell == target else cell for cell in others)
                red, blue = (moved, kept) if self.is_red else (kept, moved)
                name = self.name((row, column)) + self.name(target)
                found.append((name, EinStein(self.size, red, blue, not self.is_red)))
        return found

    def name(self, cell: Cell) -> str:
        return f"{'abcdef'[cell[1]]}{self.size - cell[0]}"

    def text(self) -> str:
        """Return the position before the roll."""
        rows = [["."] * self.size for _ in range(self.size)]
        for letters, stones in (("ABCDEF", self.red), ("abcdef", self.blue)):
            for letter, cell in zip(letters, stones, strict=False):
                if cell is not None:
                    rows[cell[0]][cell[1]] = letter
        return f"{'/'.join(map(''.join, rows))} {'r' if self.is_red else 'b'} -"

    def perft(self, depth: int) -> int:
        """Count the lines of so many plies, rolls being plies."""
        if depth == 0:
            return 1
        if self.winner():
            return 0
        if depth == 1:
            return len(self.red)
        rolls = range(1, len(self.red) + 1)
        return sum(child.perft(depth - 2) for roll in rolls for _, child in self.after(roll))

    def value(self, win: int, memory: dict[EinStein, int]) -> int:
        """Return what a position is worth to Red before the roll, with a win worth so much, to the end of the game."""
        if self.winner():
            return win * self.winner()
        if self not in memory:
            faces = len(self.red)
            total = sum(self.best(roll, win, memory) for roll in range(1, faces + 1))
            memory[self] = towards_zero(Fraction(total, faces))
        return memory[self]

    def best(self, roll: int, win: int, memory: dict[EinStein, int]) -> int:
        """Return the same after a roll."""
        values = [child.value(win, memory) for _, child in self.after(roll)]
        return max(values) if self.is_red else min(values)
