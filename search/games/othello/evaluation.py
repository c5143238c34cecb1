"""placeholder."""
from __future__ import annotations
import numpy as np
from search.games.othello.board import NOTHING, Position
from search.games.othello.lines import reachable
from search.games.othello.stability import stable
from search.jit import helper
from tt_store.native import count_ones
CORNERS = np.uint64(0x8100_0000_0000_0081)
INNERC = np.uint64(0x0042_0000_0000_4200)

@helper
def evaluate(position: Position) -> int:
    own, other = position.own, position.other
    v = 9 * (count_ones(reachable(own, other)) - count_ones(reachable(other, own)))
    v += 60 * (count_ones(own & CORNERS) - count_ones(other & CORNERS))
    v += 15 * (count_ones(stable(own, other)) - count_ones(stable(other, own)))
    return max(-640, min(v, 640))
