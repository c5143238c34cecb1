"""The known experiment: what each variant of the search visits of the same random trees.

Twenty trees of eight moves, six plies deep: plain negamax visits all 299,593 nodes of each; no alpha-beta can visit
fewer than ``8^3 + 8^3 - 1 = 1,023`` leaves (Knuth and Moore 1975).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags, Pruning
from search.game_files import load_game
from search.searcher import Job, Searcher
from tt_store.segment import Segment

TREES, BRANCHING, DEPTH = 20, 8, 6
ORDER = 55
"""How well the static estimates order the moves, in percent: as in the known experiment, a fivefold gain."""

ALL_NODES = (BRANCHING ** (DEPTH + 1) - 1) // (BRANCHING - 1)
LEAST_LEAVES = 2 * BRANCHING ** (DEPTH // 2) - 1
LEAST_NODES = sum(BRANCHING ** ((ply + 1) // 2) + BRANCHING ** (ply // 2) - 1 for ply in range(DEPTH + 1))
"""Nodes of the minimal tree."""

TABLE_MB = 16

VARIANTS = {
    "negamax": Flags(Pruning.NONE, ordering=False, table=False),
    "fail-hard": Flags(Pruning.FAIL_HARD, ordering=False, table=False),
    "fail-soft": Flags(Pruning.FAIL_SOFT, ordering=False, table=False),
    "fail-soft, ordered": Flags(Pruning.FAIL_SOFT, ordering=True, table=False),
    "PVS": Flags(Pruning.PVS, ordering=False, table=False),
    "PVS, ordered": Flags(Pruning.PVS, ordering=True, table=False),
    "fail-soft, table": Flags(Pruning.FAIL_SOFT, ordering=False, table=True, exact_depth=True),
    "PVS, table": Flags(Pruning.PVS, ordering=False, table=True, exact_depth=True),
    "PVS, ordered, table": Flags(Pruning.PVS, ordering=True, table=True, exact_depth=True),
}
"""The row's columns."""


@dataclass(frozen=True)
class Column:
    """What one variant came to."""

    variant: str
    nodes: tuple[int, ...]
    """Of each tree."""
    leaves: tuple[int, ...] | None
    """Of each tree; only searches with a table count their inner nodes (a probe each)."""
    scores: tuple[int, ...]

    @property
    def mean_nodes(self) -> float:
        """Nodes of a tree."""
        return sum(self.nodes) / len(self.nodes)


def run_experiment(order: int = ORDER, trees: int = TREES) -> list[Column]:
    """Search the trees with every variant."""
    game = load_game("random_tree")
    control_words = np.zeros(CONTROL_WORDS, np.int64)
    columns = []
    with Segment.private(TABLE_MB) as segment:
        for variant, flags in VARIANTS.items():
            searcher = Searcher(game, segment, Controls(control_words.ctypes.data), flags=flags)
            outcomes = []
            for seed in range(trees):
                searcher.forget()
                root = game.parse(f"{seed}:{BRANCHING}:{DEPTH}:{order}")
                # By its salt, each search starts with a table that knows nothing of its tree.
                outcomes.append(searcher.run(Job(root, DEPTH, salt=seed + 1)))
            counts = [outcome.statistics for outcome in outcomes]
            leaves = tuple(count.nodes - count.probes for count in counts) if flags.table else None
            nodes = tuple(count.nodes for count in counts)
            columns.append(Column(variant, nodes, leaves, tuple(outcome.score for outcome in outcomes)))
    return columns


def table_of(columns: list[Column]) -> str:
    """Return the row as lines: nodes of a tree, and how many times fewer than plain fail-soft."""
    plain = next(column for column in columns if column.variant == "fail-soft")
    lines = [f"{'variant':<20} {'nodes a tree':>13} {'fewer':>6}"]
    for column in columns:
        lines.append(f"{column.variant:<20} {column.mean_nodes:>13,.0f} {plain.mean_nodes / column.mean_nodes:>5.2f}x")
    return "\n".join(lines)


if __name__ == "__main__":
    for percent in (ORDER, 100) if len(sys.argv) == 1 else map(int, sys.argv[1:]):
        print(f"{TREES} trees of {BRANCHING} moves, {DEPTH} plies, order {percent} %")
        print(table_of(run_experiment(percent)))
