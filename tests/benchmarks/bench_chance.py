"""What Star1 and Star2 spare on EinStein würfelt nicht!: nodes and processor time of positions of random games.

Run: ``python tests/benchmarks/bench_chance.py [depth]``; six moves deep takes a minute, most of it the plain search.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from typing import Any

from search.algorithms import flags_for
from search.driver import search
from search.flags import Flags, Pruning, Star
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee

POSITIONS = 8
VARIANTS = {
    "plain": Flags(Pruning.NONE, table=False),
    "alpha-beta at decisions alone": Flags(star=Star.NONE, table=False),
    "Star1": Flags(star=Star.STAR1, table=False),
    "Star2": Flags(table=False),
    "Star1, table": Flags(star=Star.STAR1),
    "Star2, table": Flags(),
}


def positions(referee: Referee, seed: int) -> Iterator[Any]:
    """Yield positions of random games, the die rolled."""
    rng, found = random.Random(seed), 0
    while found < POSITIONS:
        position = referee.game.parse("")
        for _ in range(rng.choice((1, 5, 7, 9, 11, 13))):
            moves = referee.legal_moves(position)
            if not moves:
                break
            position = referee.play(position, rng.choice(moves))
        if referee.legal_moves(position):
            found += 1
            yield position


def main() -> None:
    """Print a row for each variant."""
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    game = load_game("einstein")
    sample = list(positions(Referee(game), seed=5))
    print(f"{POSITIONS} positions, {depth} moves deep, all iterations\n{'variant':30} {'nodes':>12} {'M/s':>6}")
    for label, flags in VARIANTS.items():
        fitting = flags_for(game, flags=flags)
        search(game, sample[0], Limits(depth=1), flags=fitting)
        started = time.process_time()
        results = [search(game, position, Limits(depth=depth), flags=fitting) for position in sample]
        time_s, nodes = time.process_time() - started, sum(result.statistics.nodes for result in results)
        print(f"{label:30} {nodes:12} {nodes / time_s / 1e6:6.1f}")


if __name__ == "__main__":
    main()
