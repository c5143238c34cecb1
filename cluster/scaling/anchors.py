"""What others have published, to set one's own curve beside: data.

The figures are those that the notes of this project collected before its splitter was built. Each was measured on its
own machine with its own engine and positions, so they say what is usual, not what is comparable.
"""

from __future__ import annotations

from typing import NamedTuple


class Anchor(NamedTuple):
    """One published speed-up."""

    name: str
    workers: int
    low: float
    high: float
    """Equal to `low` where one figure was given."""
    source: str
    label_offset: tuple[int, int]
    """Where its name stands in the plot, in points from its mark: names must not cover each other."""


ANCHORS = (
    Anchor("root splitting", 8, 1.42, 1.42, "splitting at the root alone; source not recorded", (6, 7)),
    Anchor("cluster Stockfish", 4, 2.5, 3.0, "from match results; see Stockfish's pull request 1931 (2019)", (2, 9)),
    Anchor("DTS", 16, 11.1, 11.1, "Hyatt, The dynamic tree-splitting parallel search algorithm (1997)", (-6, 5)),
    Anchor("simplified ABDADA", 32, 13.2, 16.8, "Kerrigan, Simplified ABDADA", (6, -5)),
    Anchor("Zugzwang", 256, 142.0, 142.0, "Feldmann (1993)", (6, -6)),
    Anchor("Zugzwang", 1024, 344.0, 344.0, "Feldmann (1993)", (-6, -8)),
)
