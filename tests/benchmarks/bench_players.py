"""How many nodes max^n and paranoid visit, plain and pruned: random trees and Reversi for three; prints a table.

Every count is of values that were compared with those of the plain search.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from player_trees import DEPTH, KINDS, grown, tree_game

from search.controls import CONTROL_WORDS, Controls
from search.flags import Algorithm, Flags, Pruning
from search.game_files import load_game
from search.rules import Game
from search.searcher import Job
from search.searchers import AnySearcher, open_searcher
from tt_store.segment import Segment

TREES = 2_000
TABLE_MB = 64.0
BOARDS = (("tricolour:3x3", 9), ("tricolour:4x3", 12), ("tricolour:6x6", 8))
VARIANTS = {
    "plain": {"pruning": Pruning.NONE, "ordering": False, "table": False},
    "pruned": {"table": False},
    "pruned, table": {},
}


class Count(NamedTuple):
    """What the variants of an algorithm visit on some positions."""

    name: str
    algorithm: str
    nodes: tuple[int, ...]
    """Of each variant."""


def count(name: str, game: Game, jobs: list[tuple[str, int]], algorithm: Algorithm) -> Count:
    """Return what each variant visits on some positions, given as texts and depths.

    Raises
    ------
    ValueError
        If two variants find different values.
    """
    words = np.zeros(CONTROL_WORDS, np.int64)
    nodes, answers = [], []
    for changes in VARIANTS.values():
        flags = Flags(algorithm=algorithm, exact_depth=True)._replace(**changes)
        with Segment.private(TABLE_MB) as segment:
            searcher: AnySearcher = open_searcher(
                game, segment, Controls(words.ctypes.data), flags=flags, notice=lambda _line: None
            )
            outcomes = []
            for text, depth in jobs:
                position = searcher.game.root_position(searcher.game.parse(text))
                outcomes.append(searcher.run(Job(position, depth)))
        nodes.append(sum(outcome.statistics.nodes for outcome in outcomes))
        answers.append([outcome.values or outcome.score for outcome in outcomes])
    if any(found != answers[0] for found in answers):
        raise ValueError(f"{name}, {algorithm.label}: the variants find different values")
    return Count(name, algorithm.label, tuple(nodes))


def counts(trees: int = TREES, boards: tuple[tuple[str, int], ...] = BOARDS) -> Iterator[Count]:
    """Yield the rows of the table."""
    for algorithm in (Algorithm.MAX_N, Algorithm.PARANOID):
        for kind in KINDS:
            jobs = [(text, DEPTH) for _tree, text, _rng in grown(kind, 1, trees)]
            yield count(f"{trees} trees, {kind}", tree_game(kind), jobs, algorithm)
        for board, depth in boards:
            yield count(f"{board}, depth {depth}", load_game(board), [("", depth)], algorithm)


def main() -> None:
    """Print the table."""
    print("| what | algorithm |", " | ".join(VARIANTS), "|")
    print("|---" * (len(VARIANTS) + 2) + "|")
    for row in counts():
        cells = [f"{nodes:,}" for nodes in row.nodes]
        print(f"| {row.name} | {row.algorithm} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
