"""The upper tree: nodes with fail-soft bounds, shared between equal positions; pure.

The top of the game tree, as far as it was split, lives here; every leaf is, was or may become a task. A node's bounds
hold at its depth in the running iteration, from its own side to move::

    lo <= value <= hi          parent.lo = max(low of its children)     low  = -child.hi  (child.lo for the same side)
                               parent.hi = max(high of its children)    high = -child.lo  (child.hi for the same side)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

from search.scores import INFINITY


class Role(IntEnum):
    """What a node is expected to be (Knuth and Moore 1975): where its value lies in its window."""

    PV = 0
    CUT = 1
    """At least beta."""
    ALL = 2
    """At most alpha."""


class Child(NamedTuple):
    """A position below another, as the rules give it."""

    move: int
    position: tuple[int, ...]
    side: int
    """0 if the side to move there is the one that the search is for, else 1."""
    key: int
    """Hash of the position; equal positions have equal ones."""
    score: int | None = None
    """Exact score for the side to move there if the game is over, else None."""
    best_reply: int = 0
    """What a table holds for best there; 0 if nothing is known."""
    history: tuple[int, ...] = ()
    """Hashes of the positions before it that can come back, the latest last."""


Expand = Callable[[tuple[int, ...], int, int, tuple[int, ...]], list[Child]]
"""(position, ply, side, history) -> its children."""


class Node:
    """One position of the upper tree."""

    __slots__ = (
        "alpha",
        "best_move",
        "beta",
        "children",
        "depth",
        "estimate",
        "flips",
        "force",
        "hi",
        "history",
        "is_dirty",
        "is_final",
        "key",
        "line",
        "lo",
        "machine",
        "move",
        "parent",
        "ply",
        "position",
        "probability",
        "role",
        "side",
        "spent",
        "task_id",
        "version",
        "window",
    )

    def __init__(self, child: Child, depth: int, ply: int, parent: Node | None) -> None:
        self.position, self.key, self.move, self.side = child.position, child.key, child.move, child.side
        self.depth, self.ply, self.parent, self.history = depth, ply, parent, child.history
        self.flips = parent is None or parent.side != child.side
        self.children: list[Node] | None = None
        self.is_final = child.score is not None
        self.lo = -INFINITY if child.score is None else child.score
        self.hi = INFINITY if child.score is None else child.score
        # Demand: the window that is wanted, how probably it is needed (0: not at all), and what is expected.
        self.alpha, self.beta, self.probability, self.role = 0, 0, 0.0, Role.PV
        self.task_id: int | None = None
        self.window: tuple[int, int] | None = None
        self.version = 0
        self.estimate, self.spent = 0.0, 0
        self.best_move = child.best_reply
        self.line: tuple[int, ...] = ()
        self.machine: str | None = parent.machine if parent is not None else None
        self.force = self.is_dirty = False

    def low(self) -> int:
        """Return the lower bound of the move that leads here, for its mover."""
        return -self.hi if self.flips else self.lo

    def high(self) -> int:
        """Return the upper bound of the move that leads here, for its mover."""
        return -self.lo if self.flips else self.hi

    def turned(self, alpha: int, beta: int) -> tuple[int, int]:
        """Return a window of the parent as this node sees it."""
        return (-beta, -alpha) if self.flips else (alpha, beta)

    def is_exact(self) -> bool:
        """Tell whether the value is known."""
        return self.lo >= self.hi

    def reset(self, depth: int) -> None:
        """Forget bounds and demand, for a search to another depth."""
        self.depth = depth
        if not self.is_final:
            self.lo, self.hi = -INFINITY, INFINITY
            self.line = ()
        self.force = False
        self.clear_demand()

    def clear_demand(self) -> None:
        """Forget who wants what, as if nothing ran."""
        self.probability = 0.0
        self.task_id = self.window = None
        self.version += 1
        self.is_dirty = False


class UpperTree:
    """Nodes, their bounds, and the registry of equal positions.

    Parameters
    ----------
    root
        The root's position.
    expand
        The rules.
    """

    def __init__(self, root: Child, expand: Expand) -> None:
        self.root = Node(root, depth=0, ply=0, parent=None)
        self._expand = expand
        self._registry: dict[tuple[int, int], list[Node]] = {}
        self.contradictions = 0
        """How often two searches of one node disagreed: none in exact-depth mode."""

    def twins(self, node: Node) -> list[Node]:
        """Return the attached nodes of the same position and depth, the node itself among them."""
        return self._registry.get((node.key, node.depth), [node])

    def attached(self) -> Iterator[Node]:
        """Yield all nodes, parents first."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children or ())

    def expand(self, node: Node) -> None:
        """Give a leaf its children, the best move known first; finished games and twins bring their bounds along."""
        children = [
            Node(child, node.depth - 1, node.ply + 1, node)
            for child in self._expand(node.position, node.ply, node.side, node.history)
        ]
        children.sort(key=lambda child: child.move != node.best_move)
        node.children = children
        for child in children:
            known = self._registry.get((child.key, child.depth))
            if known:
                child.lo, child.hi, child.line = known[0].lo, known[0].hi, known[0].line
            self._register(child)

    def set_bounds(self, node: Node, lo: int, hi: int) -> list[Node]:
        """Tighten a node's bounds, its twins', and those of all ancestors; returns the highest nodes that changed."""
        tops: list[Node] = []
        waiting = deque((twin, lo, hi) for twin in self.twins(node))
        while waiting:
            current, new_lo, new_hi = waiting.popleft()
            top: Node | None = None
            above: Node | None = current
            while above is not None and self._tighten(above, new_lo, new_hi):
                top = above
                if above is not current:
                    waiting.extend((twin, above.lo, above.hi) for twin in self.twins(above) if twin is not above)
                above = above.parent
                if above is not None:
                    new_lo, new_hi = self.bounds_by_children(above)
            if top is not None:
                tops.append(top)
        return tops

    @staticmethod
    def bounds_by_children(node: Node) -> tuple[int, int]:
        """Return what the children say of a node's bounds."""
        lo = hi = -INFINITY
        for child in node.children or ():
            lo = max(lo, child.low())
            hi = max(hi, child.high())
        return lo, hi

    def start_iteration(self, depth: int, growth: float, least_estimate: float) -> None:
        """Reset the tree for another depth: bounds forgotten, children in the order that the last iteration found.

        Parameters
        ----------
        depth
            Of the root.
        growth
            How many times more nodes the new iteration is expected to take.
        least_estimate
            Inner nodes that are expected to take fewer nodes become leaves again.
        """
        self._registry = {}
        waiting = [self.root]
        inner: list[Node] = []
        while waiting:
            node = waiting.pop()
            if node.children:
                best = max(node.children, key=Node.low)
                node.best_move = best.move
                node.children.sort(key=lambda child: (child is not best, -child.spent))
            if node.spent:
                node.estimate = node.spent * growth
            node.spent = 0
            node.reset(depth - node.ply)
            if node.children and node.estimate < least_estimate:
                node.children = None
            self._register(node)
            # The children's bounds have given the order by now; theirs are reset after their parent's.
            if node.children:
                inner.append(node)
                waiting.extend(node.children)
        # Games that are over keep their scores: what follows from those, from the bottom up.
        for node in reversed(inner):
            node.lo, node.hi = self.bounds_by_children(node)

    def principal_variation(self) -> tuple[int, ...]:
        """Return the best line from the root through nodes of known value, then the last leaf's own line."""
        line: list[int] = []
        node: Node | None = self.root
        while node is not None:
            following = None
            for twin in (node, *self.twins(node)):
                following = next((child for child in twin.children or () if _leads(child, node)), None)
                if following is None and twin.line:
                    return (*line, *twin.line)
                if following is not None:
                    line.append(following.move)
                    break
            node = following
        return tuple(line)

    def _register(self, node: Node) -> None:
        self._registry.setdefault((node.key, node.depth), []).append(node)

    def _tighten(self, node: Node, lo: int, hi: int) -> bool:
        """Tighten a node's bounds, never loosen them; returns whether they changed."""
        lo, hi = max(lo, node.lo), min(hi, node.hi)
        if lo > hi:
            # Unequal depths in the table: two searches disagree. The newer bound is believed.
            self.contradictions += 1
            lo = hi = lo if lo > node.lo else hi
        if (lo, hi) == (node.lo, node.hi):
            return False
        node.lo, node.hi, node.is_dirty = lo, hi, True
        return True


def _leads(child: Node, parent: Node) -> bool:
    return child.is_exact() and child.low() == parent.lo
