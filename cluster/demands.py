"""What is wanted of the children of an inner node, from its bounds, its demand and theirs; pure.

Young brothers wait (Feldmann 1993) at nodes expected to cut, all children at once at nodes expected not to; siblings
of an unfinished PV child are searched meanwhile with null windows at the score that the iteration is expected to have.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.split_settings import SplitSettings
from cluster.upper_tree import Node, Role
from search.aspiration import Window

Demand = tuple[int, int, float, Role]
"""Window from the node's own side to move, probability that it is needed, and what the node is expected to be."""

NOTHING: Demand = (0, 0, 0.0, Role.PV)


def demands(node: Node, settings: SplitSettings, guess: int) -> Iterator[Demand]:
    """Yield the demand of each child of a node that is wanted.

    Parameters
    ----------
    node
        An inner node.
    settings
        The strategy.
    guess
        The score that the iteration is expected to have, from the root's side to move.
    """
    window = Window(max(node.alpha, node.lo), min(node.beta, node.hi))
    children = node.children or []
    done = [child.high() <= window.alpha or child.is_exact() for child in children]
    if node.role == Role.PV:
        return _below_pv(node, children, done, window, settings, guess if node.side == 0 else -guess)
    if node.role == Role.ALL:
        return _below_all(node, children, done, window)
    return _below_cut(node, children, done, window, settings)


def _below_pv(
    node: Node, children: list[Node], done: list[bool], window: Window, settings: SplitSettings, guess: int
) -> Iterator[Demand]:
    """Give the child that has the node's value the window, the others null windows at half its probability."""
    alpha, beta = window
    null, share = (alpha, alpha + 1), node.probability
    star: Node | None = None
    if node.lo > node.alpha:
        star = next((child for child in children if child.low() == node.lo and not child.is_exact()), None)
    elif not any(done):
        star = children[0]
        if alpha < guess < beta - 1:
            null = (guess, guess + 1)
    if star is not None:
        share *= settings.pv_share
    for child, is_done in zip(children, done, strict=True):
        if is_done:
            yield NOTHING
        elif child is star:
            yield (*child.turned(alpha, beta), node.probability, Role.PV)
        else:
            yield (*child.turned(*null), share, _expecting_low(child))


def _below_all(node: Node, children: list[Node], done: list[bool], window: Window) -> Iterator[Demand]:
    """Want all children at once: none is expected to beat the window, and all must be searched."""
    for child, is_done in zip(children, done, strict=True):
        yield NOTHING if is_done else (*child.turned(*window), node.probability, _expecting_low(child))


def _below_cut(
    node: Node, children: list[Node], done: list[bool], window: Window, settings: SplitSettings
) -> Iterator[Demand]:
    """Expect the first child to cut, later ones less and less; once one has failed, want all the others at once."""
    has_failed = any(done)
    probability, later = node.probability, node.probability * settings.cut_share
    for child, is_done in zip(children, done, strict=True):
        if is_done or probability < settings.cut_least:
            yield NOTHING
            continue
        yield (*child.turned(*window), probability, _expecting_high(child))
        if not has_failed:
            probability, later = later, later * settings.cut_decay


def _expecting_low(child: Node) -> Role:
    """Return the role of a child whose move is expected not to beat its parent's window."""
    return Role.CUT if child.flips else Role.ALL


def _expecting_high(child: Node) -> Role:
    """Return the role of a child whose move is expected to beat its parent's window."""
    return Role.ALL if child.flips else Role.CUT
