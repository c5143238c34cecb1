"""Random trees of several players, planted in the test game `games/player_tree.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from oracle_players import PlayerNode, PlayerTree

from search.game_files import load_game
from search.rules import Game

TREE_GAME = Path(__file__).parent / "games" / "player_tree.py"
KINDS = ("3-general", "3-bounded", "4-general", "4-bounded")
DEPTH = 5


@cache
def tree_game(kind: str) -> Game:
    """Return the game of trees of so many players, whose payoffs are of a kind."""
    return load_game(f"{TREE_GAME}:{kind}")


def recipe(kind: str) -> PlayerTree:
    players = int(kind[0])
    if kind.endswith("bounded"):
        return PlayerTree(players, DEPTH, branching=4, reach=6, payoff_sum=60)
    return PlayerTree(players, DEPTH, branching=4)


def planted(kind: str, tree: PlayerNode) -> str:
    """Return the text of a tree that the game now knows."""
    rows: list[tuple[int, ...]] = []
    waiting = [tree]
    first = 1
    for node in waiting:
        rows.append((first, len(node.children), node.mover, *node.values))
        waiting.extend(node.children)
        first += len(node.children)
    return f"{tree_game(kind).module.plant(rows)}:0"


def grown(kind: str, seed: int, count: int) -> Iterator[tuple[PlayerNode, str, random.Random]]:
    """Yield random trees, their texts, and numbers to go on with."""
    rng = random.Random(seed)
    for _ in range(count):
        tree = recipe(kind).grow(rng)
        yield tree, planted(kind, tree), rng


def node_count(tree: PlayerNode) -> int:
    """Return how many nodes a tree has."""
    return 1 + sum(node_count(child) for child in tree.children)
