"""The upper tree: nodes with fail-soft bounds, shared between equal positions; pure.

The top of the game tree, as far as it was split, lives here; every leaf is, was or may become a task. A node's bounds
hold at its depth in the running iteration, from its own side to move::

    lo <= value <= hi          parent.lo = max(low of its children)     low  = -child.hi  (child.lo for the same side)
                               parent.hi = max(high of its children)    high = -child.lo  (child.hi for the same side)
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

from search.scores import INFINITY
from tt_store.layout import NO_MOVE


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
    rank: int = 0
    """What the rules alone say of the move: higher is tried first."""
    gives_check: bool = False


Expand = Callable[[tuple[int, ...], int, int, tuple[int, ...]], list[Child]]
"""(position, ply, side, history) -> its children."""
DepthChange = Callable[[int, int, int, bool], tuple[int, int]]
"""(rank, number, depth of the node, gives check) -> plies that are added, and that are left out at first."""


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
        "gives_check",
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
        "path",
        "ply",
        "position",
        "probability",
        "rank",
        "reduction",
        "role",
        "side",
        "spent",
        "task_id",
        "version",
        "was_tried",
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
        self.path: tuple[int, ...] = ()
        self.rank, self.gives_check = child.rank, child.gives_check
        # How much shallower than its parent asks it is searched at first (late move reductions). As long as it is,
        # its value is a bound from one side only: a move that looks good is searched again, to the whole depth.
        self.reduction = 0
        self.machine: str | None = parent.machine if parent is not None else None
        self.force = self.is_dirty = self.was_tried = False

    def low(self) -> int:
        """Return the lower bound of the move that leads here, for its mover; none from a reduced search."""
        if self.reduction:
            return -INFINITY
        return -self.hi if self.flips else self.lo

    def high(self) -> int:
        """Return the upper bound of the move that leads here, for its mover."""
        return -self.lo if self.flips else self.hi

    def turned(self, alpha: int, beta: int) -> tuple[int, int]:
        """Return a window of the parent as this node sees it."""
        return (-beta, -alpha) if self.flips else (alpha, beta)

    def is_exact(self) -> bool:
        """Tell whether the value is known."""
        return self.lo >= self.hi and not self.reduction

    def reset(self, depth: int) -> None:
        """Forget bounds and demand, for a search to another depth."""
        self.depth = depth
        if not self.is_final:
            self.lo, self.hi = -INFINITY, INFINITY
            self.line = ()
        self.force = self.was_tried = False
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
    depth_change
        What a selective search makes of a move; None where all moves are searched to the same depth.
    """

    def __init__(self, root: Child, expand: Expand, depth_change: DepthChange | None = None) -> None:
        self.root = Node(root, depth=0, ply=0, parent=None)
        self._expand, self._depth_change = expand, depth_change
        self._depth = 0
        self._root_key = root.key
        self.left_out: tuple[int, ...] = ()
        """First moves that are no part of the tree for now."""
        self._set_aside: list[Node] = []
        """The nodes that they lead to, with what is known of them."""
        self._best_moves: dict[int, int] = {}
        """The root's best moves, by the number of moves that were left out."""
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
        left_out = self.left_out if node is self.root else ()
        children.sort(key=lambda child: (child.move in left_out, child.move != node.best_move))
        node.children = children
        self._place(node)
        for child in children:
            known = self._registry.get((child.key, child.depth))
            if known:
                child.lo, child.hi, child.line = known[0].lo, known[0].hi, known[0].line
            self._register(child)
        if left_out:
            self._set_aside = [child for child in children if child.move in left_out]
            node.children = [child for child in children if child.move not in left_out]

    def leave_out(self, moves: tuple[int, ...]) -> None:
        """Make a tree in which nothing runs one without some of the first moves: what is known of the others stays."""
        root = self.root
        self._registry[root.key, root.depth].remove(root)
        # Without some of its moves a position is another one: no twin of those with its hash.
        root.key = hash((self._root_key, moves)) if moves else self._root_key
        self._register(root)
        self._best_moves[len(self.left_out)] = root.best_move
        self.left_out, root.line, root.best_move = moves, (), self._best_moves.get(len(moves), NO_MOVE)
        root.lo, root.hi, root.force, root.was_tried = -INFINITY, INFINITY, False, False
        if root.children is not None:
            children = sorted((*root.children, *self._set_aside), key=lambda child: child.path)
            self._set_aside = [child for child in children if child.move in moves]
            root.children = [child for child in children if child.move not in moves]
            root.lo, root.hi = self.bounds_by_children(root)

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
        if self.left_out:
            self.leave_out(())
        self._registry, self._depth = {}, depth
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
            node.reset(depth if node is self.root else node.depth)
            if node.children and node.estimate < least_estimate:
                node.children = None
            self._register(node)
            # The children's bounds have given the order by now; theirs are reset after their parent's.
            if node.children:
                self._place(node)
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
        if not line:
            # A move that proves no more than the root's lower bound.
            moves = (child.move for child in self.root.children or () if child.low() == self.root.lo > -INFINITY)
            line.extend(itertools.islice(moves, 1))
        return tuple(line)

    def deepen(self, node: Node) -> None:
        """Make a reduced node a leaf of its whole depth: what a shallower search said of it is void."""
        self._registry[node.key, node.depth].remove(node)
        node.depth, node.reduction = node.depth + node.reduction, 0
        node.children, node.line = None, ()
        node.lo, node.hi = -INFINITY, INFINITY
        node.force = node.was_tried = False
        self._register(node)

    def _place(self, node: Node) -> None:
        """Give the children of a node their places, and the depths that go with them."""
        for number, child in enumerate(node.children or ()):
            child.path = (*node.path, number)
            child.depth, child.reduction = node.depth - 1, 0
            if self._depth_change is None or child.is_final:
                continue
            extension, reduction = self._depth_change(child.rank, number, node.depth, child.gives_check)
            if child.ply < 2 * self._depth:
                child.depth += extension
            if child.flips:
                child.reduction = max(0, min(reduction, child.depth - 1))
                child.depth -= child.reduction

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
