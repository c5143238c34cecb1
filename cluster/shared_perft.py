"""Perft on several threads: nothing is pruned, so there is nothing to split by, and the first moves are shared out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from search.perft import LeafCounter
from search.referee import print_notice
from search.rules import Game


def divide(
    game: Game, position: Any, depth: int, workers: int, notice: Callable[[str], None] = print_notice
) -> dict[int, int]:
    """Count the lines below each first move, on several threads of this process.

    Parameters
    ----------
    game, position
        From `search.game_files.load_game` and `Game.parse`.
    depth
        Plies, 1 or more.
    workers
        Threads, 1 or more.
    notice
        Gets a line if something must be compiled first.

    Returns
    -------
    dict
        Each legal move, in the game's order, with the lines of `depth` plies that begin with it.
    """
    counters = [LeafCounter(game, notice) for _ in range(workers)]
    free: SimpleQueue[LeafCounter] = SimpleQueue()
    for counter in counters:
        free.put(counter)

    def count(move: int) -> int:
        # A counter has memory of its own: one thread at a time. Numba lets the others run meanwhile.
        counter = free.get()
        try:
            return counter.count(counter.referee.play(position, move), depth - 1)
        finally:
            free.put(counter)

    moves = counters[0].referee.legal_moves(position)
    with ThreadPoolExecutor(workers, thread_name_prefix="rootsplit-perft") as pool:
        return dict(zip(moves, pool.map(count, moves), strict=True))
