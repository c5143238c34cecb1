"""What Multi-ProbCut is worth in Othello: nodes to the same depth, and games at equal nodes against the search without.

Run it as ``python tests/benchmarks/bench_prob_cut.py [--depth 10] [--positions 10] [--pairs 20] [--nodes 20000]``. One
core; each player and each search has keys of its own in the table. Each opening, eight random moves, is played with
both colours.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from search.controls import CONTROL_WORDS, Controls
from search.driver import OneCore, deepen
from search.flags import Flags
from search.game_files import load_game
from search.games.othello.board import DISC, SQUARES
from search.limits import Limits
from search.searcher import Job, Searcher
from tt_store.segment import Segment

OPENING_PLIES = 8
SALT = 1 << 33


@dataclass
class Tally:
    """What a match came to, for the search with ProbCut."""

    discs: list[int] = field(default_factory=list)
    """Of each game, its difference."""

    @property
    def counts(self) -> tuple[int, int, int]:
        """Wins, draws, losses."""
        wins, losses = (sum(sign * each > 0 for each in self.discs) for sign in (1, -1))
        return wins, len(self.discs) - wins - losses, losses

    @property
    def text(self) -> str:
        """One line."""
        wins, draws, losses = self.counts
        score = (wins + draws / 2) / len(self.discs)
        off = np.std(self.discs) / np.sqrt(len(self.discs))
        return (
            f"{len(self.discs)} games: +{wins} ={draws} -{losses}, score {score:.1%},"
            f" {np.mean(self.discs):+.2f} discs a game (standard error {off:.2f})"
        )


def _searchers(segment: Segment) -> list[Searcher]:
    """Return the search without the rule, and the one with it."""
    words = np.zeros(CONTROL_WORDS, np.int64)
    controls = Controls(words.ctypes.data)
    _kept.append(words)
    return [Searcher(load_game("othello"), segment, controls, flags=Flags(prob_cut=each)) for each in (False, True)]


_kept: list[np.ndarray] = []
"""Control words must outlive who reads them."""


def _random_opening(searcher: Searcher, rng: random.Random, plies: int) -> Any:
    position = searcher.game.parse("")
    for _ in range(plies):
        position = searcher.referee.play(position, rng.choice(searcher.referee.legal_moves(position)))
    return position


def play_match(pairs: int, nodes: int, seed: int, table_mb: float = 16.0) -> Tally:
    """Play openings with both colours; every move has so many nodes."""
    rng, tally = random.Random(seed), Tally()
    with Segment.private(table_mb) as segment:
        searchers = _searchers(segment)
        for pair in range(pairs):
            opening = _random_opening(searchers[0], rng, OPENING_PLIES)
            for first in (0, 1):
                salt = SALT * (2 * pair + first + 1)
                tally.discs.append(_play(searchers, opening, first, nodes, salt))
    return tally


def _play(searchers: list[Searcher], position: Any, mover: int, nodes: int, salt: int) -> int:
    """Play a game on; returns the difference in discs for the search with the rule."""
    referee, game, limits = searchers[0].referee, searchers[0].game, Limits(nodes=nodes)
    start, start_mover = position.side, mover
    while referee.legal_moves(position):
        searcher = searchers[mover]
        root_search = OneCore(searcher, Job(position, depth=1, salt=salt ^ mover), limits)
        is_selective = game.is_selective(searcher.flags)
        best = deepen(root_search, referee, position, limits, is_selective=is_selective).best_move
        position = referee.play(position, best)
        mover = start_mover ^ int(position.side != start)
    # The side to move in the end is the one that `mover` says.
    outcome = referee.facts(position).outcome // DISC
    return outcome if mover == 1 else -outcome


def measure(positions: int, depth: int, seed: int, table_mb: float = 16.0) -> tuple[list[int], list[float], list[int]]:
    """Return nodes and CPU seconds without and with the rule, and how much each score moved."""
    rng = random.Random(seed)
    nodes, seconds, moved = [0, 0], [0.0, 0.0], []
    with Segment.private(table_mb) as segment:
        searchers = _searchers(segment)
        for number in range(1, positions + 1):
            most = SQUARES - 4 - 13 - depth
            position = _random_opening(searchers[0], rng, rng.randrange(min(12, most), min(30, most) + 1))
            scores = []
            for which, searcher in enumerate(searchers):
                started = time.process_time()
                for each in range(1, depth + 1):
                    outcome = searcher.run(Job(position, each, salt=SALT * number))
                    nodes[which] += outcome.statistics.nodes
                seconds[which] += time.process_time() - started
                scores.append(outcome.score)
            moved.append(scores[1] - scores[0])
    return nodes, seconds, moved


def main() -> None:
    """Measure both and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--positions", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    nodes, seconds, moved = measure(arguments.positions, arguments.depth, arguments.seed)
    error = np.sqrt(np.mean(np.square(moved))) / DISC
    print(
        f"{arguments.positions} positions to depth {arguments.depth}: {nodes[0]} nodes became {nodes[1]}"
        f" ({nodes[0] / nodes[1]:.2f} times fewer), {seconds[0]:.2f} s became {seconds[1]:.2f} s;"
        f" scores moved by {error:.2f} discs (root of the mean square)"
    )
    print(play_match(arguments.pairs, arguments.nodes, arguments.seed).text)


if __name__ == "__main__":
    main()
