"""Perft: the number of lines of a given length, the standard check of a move generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from search import jit
from search.flags import Flags
from search.limits import MAX_DEPTH
from search.referee import Referee, print_notice
from search.rules import Game


class LeafCounter:
    """Counts lines of one game.

    Parameters
    ----------
    game
        From `search.game_files.load_game`.
    notice
        Gets a line if something must be compiled first.
    """

    def __init__(self, game: Game, notice: Callable[[str], None] = print_notice) -> None:
        self.referee = Referee(game, notice)
        self._leaves = jit.specialise("search.leaves", game, Flags())
        self._memory = np.zeros(game.max_moves * (MAX_DEPTH + 1), np.int64)
        jit.warm_up(self._leaves, lambda: self.count(game.parse(""), 1), notice)

    def count(self, position: Any, depth: int) -> int:
        """Return the number of lines of exactly `depth` plies, 0..`MAX_DEPTH`; a game that ends earlier counts none."""
        return int(self._leaves.count_leaves(position, depth, self._memory.ctypes.data))


def perft(game: Game, position: Any, depth: int) -> int:
    """Return the number of lines of exactly `depth` plies from a position."""
    return LeafCounter(game).count(position, depth)
