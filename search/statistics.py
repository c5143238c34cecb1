"""What a search counts: per worker and per iteration, never in shared counters."""

from __future__ import annotations

from typing import NamedTuple


class Statistics(NamedTuple):
    """Counts of one task, iteration or search; in the order of the workspace's first words."""

    nodes: int = 0
    selective_depth: int = 0
    """Deepest ply reached."""
    probes: int = 0
    hits: int = 0
    cutoffs: int = 0
    """Nodes that the table decided."""
    fail_highs: int = 0
    first_move_fail_highs: int = 0
    researches: int = 0

    def merged(self, other: Statistics) -> Statistics:
        """Return the sum of two counts, and the greater of their depths."""
        total = Statistics(*(mine + its for mine, its in zip(self, other, strict=True)))
        return total._replace(selective_depth=max(self.selective_depth, other.selective_depth))

    @property
    def first_move_fail_high_rate(self) -> float | None:
        """Share of fail highs that came with the first move, 0..1: the quality of the ordering; None without any."""
        return self.first_move_fail_highs / self.fail_highs if self.fail_highs else None
