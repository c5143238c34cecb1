"""The tree of Monte Carlo tree search: flat arrays in a machine's table memory, which all its workers share.

Each node is a word in each of three arrays; the children of a node follow each other. A header comes first::

    header   +------------+------------+-----------------------------------------------------------+
    64 byte  | allocation | root       | unused                                                    |
             +------------+------------+-----------------------------------------------------------+
             both: number of the tree << 40 | nodes in use, and the root's node

    visits   63                                                                16 15             0
             +-------------------------------------------------------------------+----------------+
             | finished visits                                                   | playouts below |
             +-------------------------------------------------------------------+----------------+
    values   +-------------------------------------------------------------------+----------------+
             | sum of results (signed) for who chose the move here               | the move       |
             +-------------------------------------------------------------------+----------------+
    links    63                                          13 12                 2 1               0
             +---------------------------------------------+--------------------+----------------+
             | first child                                 | number of children | verdict        |
             +---------------------------------------------+--------------------+----------------+

Nobody ever waits, and a worker may be killed at any instruction: a node's children are made in private and then made
known by one exchange of its `links`; what a killed worker leaves behind are a few nodes that nobody knows, and
playouts "below" that never end, which make their path a little less attractive. A new search on the same memory takes
the header over by its tree's number; nothing is emptied. When the memory is full, no node gets children any more.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from search.jit import helper, inlined
from tt_store.layout import WORD_BYTES
from tt_store.native import Integer, atomic_add_int, atomic_read_int, compare_exchange, write_int

HEADER_BYTES = 64
ROOT_OFFSET = 8
NUMBER_SHIFT, NODE_MASK = 40, (1 << 40) - 1
LAST_NUMBER = (1 << 23) - 1
"""Trees are numbered from 1 to this; the number of memory that was never used is 0."""

VISIT, VISITS_SHIFT, BELOW_MASK = 1 << 16, 16, 0xFFFF
VALUE_SHIFT, MOVE_MASK = 16, 0xFFFF
VERDICT_MASK, COUNT_SHIFT, COUNT_MASK, FIRST_SHIFT = 3, 2, 0x7FF, 13

UNKNOWN, LOST, DRAWN, WON = 0, 1, 2, 3
"""Verdicts, for who chose the move to a node: what is proved of it."""
FULL = -1
"""No node: the memory is full."""
_ARRAYS = 3


class Tree(NamedTuple):
    """Where a tree lies; addresses."""

    header: Integer
    visits: Integer
    values: Integer
    links: Integer
    capacity: Integer
    """Nodes that fit."""
    number: Integer


def nodes_in(size_bytes: int) -> int:
    """Return how many nodes fit into so much memory."""
    return max(0, size_bytes - HEADER_BYTES) // (_ARRAYS * WORD_BYTES)


def tree_number(epoch: int) -> int:
    """Return the number of the tree of a search, which no search shortly before has."""
    return 1 + epoch % LAST_NUMBER


@inlined
def tree_at(address: int, capacity: int, number: int) -> Tree:
    """Return the tree of a number in the memory at an address."""
    visits = address + HEADER_BYTES
    values, links = visits + capacity * WORD_BYTES, visits + 2 * capacity * WORD_BYTES
    return Tree(address, visits, values, links, capacity, number)


@inlined
def visits_address(tree: Tree, node: int) -> int:
    """Return the address of a node's visits."""
    return int(tree.visits + node * WORD_BYTES)


@inlined
def value_address(tree: Tree, node: int) -> int:
    """Return the address of a node's sum of results and move."""
    return int(tree.values + node * WORD_BYTES)


@inlined
def links_address(tree: Tree, node: int) -> int:
    """Return the address of a node's links."""
    return int(tree.links + node * WORD_BYTES)


@helper
def allocate(tree: Tree, count: int) -> int:
    """Return the first of so many nodes that are nobody else's, or `FULL`."""
    used = atomic_read_int(tree.header)
    if used >> NUMBER_SHIFT != tree.number or (used & NODE_MASK) + count > tree.capacity:
        return FULL
    # Race: others allocate at the same time; each gets nodes of his own, the last ones perhaps beyond the end.
    used = atomic_add_int(tree.header, count)
    first = used & NODE_MASK
    if used >> NUMBER_SHIFT != tree.number or first + count > tree.capacity:
        return FULL
    return first


@helper
def make_node(tree: Tree, node: int, move: int) -> int:
    """Write an unvisited node without children, which nobody else knows yet; returns 0."""
    write_int(visits_address(tree, node), 0)
    write_int(value_address(tree, node), move)
    return write_int(links_address(tree, node), 0)


@helper
def join(tree: Tree) -> int:
    """Return the root of a tree, which is begun if nobody has; `FULL` where another search has taken the memory.

    Takes the memory over from an older search, whose workers must have stopped.
    """
    before = atomic_read_int(tree.header)
    if before >> NUMBER_SHIFT != tree.number:
        # Race: whoever is first empties the memory, in this one step; the others find it done.
        compare_exchange(tree.header, before, tree.number << NUMBER_SHIFT)
    root = atomic_read_int(tree.header + ROOT_OFFSET)
    if root >> NUMBER_SHIFT != tree.number:
        node = allocate(tree, 1)
        if node == FULL:
            return FULL
        make_node(tree, node, 0)
        # Race: another worker may have made a root meanwhile: then that one stands, and ours is a lost node.
        compare_exchange(tree.header + ROOT_OFFSET, root, tree.number << NUMBER_SHIFT | node)
        root = atomic_read_int(tree.header + ROOT_OFFSET)
    return root & NODE_MASK if root >> NUMBER_SHIFT == tree.number else FULL


@helper
def publish_children(tree: Tree, node: int, first: int, count: int) -> int:
    """Give a node the children that were made for it, unless it has some by now; returns its links."""
    address = links_address(tree, node)
    while True:
        before = atomic_read_int(address)
        if before >> COUNT_SHIFT != 0:
            # Race: another worker was faster. Its children stand, and ours are lost nodes.
            return before
        after = before | first << FIRST_SHIFT | count << COUNT_SHIFT
        if compare_exchange(address, before, after) == 1:
            return after


@helper
def settle(tree: Tree, node: int, verdict: int) -> int:
    """Write what is proved of a node, once and for all; returns 0."""
    address = links_address(tree, node)
    while True:
        before = atomic_read_int(address)
        # Race: two workers may prove a node at once; both have proved the same.
        if before & VERDICT_MASK != UNKNOWN or compare_exchange(address, before, before | verdict) == 1:
            return 0


@helper
def best_verdict(tree: Tree, node: int) -> int:
    """Return what is proved of a node for its side to move, by its children's verdicts alone."""
    links = atomic_read_int(links_address(tree, node))
    first = links >> FIRST_SHIFT
    best = LOST
    is_open = 0
    for child in range(first, first + (links >> COUNT_SHIFT & COUNT_MASK)):
        # Race: a verdict may come in meanwhile; whoever writes it looks at all of them after that.
        verdict = atomic_read_int(links_address(tree, child)) & VERDICT_MASK
        if verdict == WON:
            return WON
        if verdict == UNKNOWN:
            is_open = 1
        best = max(best, verdict)
    return UNKNOWN if is_open == 1 else best


@helper
def enter(tree: Tree, node: int) -> int:
    """Begin a playout below a node: until it ends, it counts as a loss (virtual loss); returns the visits before."""
    return atomic_add_int(visits_address(tree, node), 1) >> VISITS_SHIFT


@helper
def leave(tree: Tree, node: int, result: int) -> int:
    """End a playout below a node with a result for who chose the move to it: 1, 0 or -1; returns 0."""
    # Race: a reader may see the visit without its result for a moment, which moves a mean by a hair. In this order it
    # sees no result without its visit, if it reads the results first.
    atomic_add_int(visits_address(tree, node), VISIT - 1)
    atomic_add_int(value_address(tree, node), result << VALUE_SHIFT)
    return 0


class NodeView(NamedTuple):
    """What Python code sees of a node."""

    node: int
    move: int
    visits: int
    below: int
    """Playouts that are on their way."""
    value: int
    """Sum of results for who chose the move."""
    verdict: int
    """For who chose the move."""


class TreeView:
    """Reads a tree from Python, while others grow it.

    Parameters
    ----------
    address, size_bytes
        Of the memory.
    number
        Of the tree.
    """

    def __init__(self, address: int, size_bytes: int, number: int) -> None:
        capacity = nodes_in(size_bytes)
        self._number = number
        base = address + HEADER_BYTES
        self.tree = Tree(
            np.int64(address), np.int64(base), np.int64(base + capacity * WORD_BYTES),
            np.int64(base + 2 * capacity * WORD_BYTES), np.int64(capacity), np.int64(number),
        )  # fmt: skip

    @property
    def capacity(self) -> int:
        """How many nodes fit."""
        return int(self.tree.capacity)

    @property
    def nodes(self) -> int:
        """Nodes in use, 0 if the memory holds another tree."""
        used = self._header(0)
        return min(used & NODE_MASK, self.capacity) if used >> NUMBER_SHIFT == self._number else 0

    @property
    def root(self) -> NodeView | None:
        """The root, None if the tree has not been begun."""
        root = self._header(ROOT_OFFSET)
        return self.view(root & NODE_MASK) if root >> NUMBER_SHIFT == self._number else None

    def view(self, node: int) -> NodeView:
        """Return what there is to see of a node."""
        # Race: the results first, see `leave`: no sum is greater than its number of visits.
        value = _word(self.tree.values, node)
        visits = _word(self.tree.visits, node)
        return NodeView(
            node, value & MOVE_MASK, visits >> VISITS_SHIFT, visits & BELOW_MASK, value >> VALUE_SHIFT,
            _word(self.tree.links, node) & VERDICT_MASK,
        )  # fmt: skip

    def children(self, node: int) -> list[NodeView]:
        """Return a node's children, in the order of their moves' numbers."""
        links = _word(self.tree.links, node)
        first = links >> FIRST_SHIFT
        found = [self.view(child) for child in range(first, first + (links >> COUNT_SHIFT & COUNT_MASK))]
        return sorted(found, key=lambda child: child.move)

    def _header(self, offset: int) -> int:
        return _word(self.tree.header + offset, 0)


def _word(array: Any, index: int) -> int:
    # Race: others write; Python's ctypes reads an aligned word in one piece.
    return ctypes.c_int64.from_address(int(array) + index * WORD_BYTES).value
