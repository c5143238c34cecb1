"""Monte Carlo tree search: what more playouts gain in strength, their speed, and what two workers gain.

Run it as ``python tests/benchmarks/bench_mcts.py [--games 100] [--seconds 5]``. Three tables:

- games of Hex 7x7 from all openings of two random stones, each pair of games with both colours, between
  1,000 and 10,000 playouts a move, with the Wilson interval (1927) of the stronger side's share;
- playouts a second on one core, beside the same algorithm in plain Python (`PlainSearch`);
- two workers on one tree beside one, in rounds, as a share of the machine's limit: of what two independent searches
  at the same time make.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from search.controls import CONTROL_WORDS, Controls
from search.flags import Algorithm, Flags
from search.game_files import load_game
from search.mcts_searcher import MonteCarloSearcher
from search.mcts_settings import MonteCarloSettings, Part
from search.referee import Referee
from search.rules import Game
from search.searcher import Job
from tt_store.segment import Segment

BOARD = "hex:7"
TABLE_MB = 256.0
CONFIDENCE = 1.96
"""Standard deviations of a 95 % interval."""


class Table:
    """Searchers on one table, one a worker; each run grows a tree of its own."""

    def __init__(self, game: Game, workers: int) -> None:
        self.game, self._words = game, np.zeros(CONTROL_WORDS, np.int64)
        self._segment = Segment.private(TABLE_MB)
        controls = Controls(self._words.ctypes.data)
        flags = Flags(algorithm=Algorithm.MCTS)
        self.searchers = [
            MonteCarloSearcher(game, self._segment, controls, flags=flags, slot=n) for n in range(workers)
        ]
        self._tree = 0

    def best_move(self, position: Any, playouts: int, seed: int) -> int:
        """Return one worker's choice."""
        self._tree += 1
        settings = tuple(MonteCarloSettings(seed=seed).slice(self._tree, 0))
        return self.searchers[0].run(Job(position, 1, node_limit=playouts, settings=settings)).best_move

    def rate(self, position: Any, playouts: int, workers: int, *, together: bool) -> float:
        """Return the playouts a second of some workers at once, on one tree or on one each."""
        self._tree += workers
        made = [0] * workers

        def work(slot: int) -> None:
            tree, part = (self._tree, Part()) if together else (self._tree - slot, Part(slot, workers))
            settings = tuple(MonteCarloSettings(seed=slot).slice(tree, 0, part))
            job = Job(position, 1, node_limit=playouts, task_id=slot + 1, settings=settings)
            made[slot] = self.searchers[slot].run(job).statistics.nodes

        threads = [threading.Thread(target=work, args=(slot,)) for slot in range(workers)]
        started_s = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(made) / (time.perf_counter() - started_s)


def wilson(wins: int, games: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share, square = wins / games, CONFIDENCE**2
    centre = (share + square / (2 * games)) / (1 + square / games)
    half = CONFIDENCE / (1 + square / games) * math.sqrt(share * (1 - share) / games + square / (4 * games**2))
    return centre - half, centre + half


def play_match(games: int, few: int, many: int) -> int:
    """Return how many games more playouts win against fewer ones; each opening is played with both colours."""
    table = Table(load_game(BOARD), 1)
    referee = table.searchers[0].referee
    wins = 0
    for number in range(games):
        opening = random.Random(number // 2)
        position = referee.game.parse("")
        for _ in range(2):
            position = referee.play(position, opening.choice(referee.legal_moves(position)))
        strong, turn, seed = number % 2, 0, number << 16
        while not referee.facts(position).is_over:
            move = table.best_move(position, many if turn == strong else few, seed)
            position, turn, seed = referee.play(position, move), 1 - turn, seed + 1
        wins += 1 - turn == strong
    return wins


@dataclass
class PlainNode:
    """A node of the plain search."""

    move: int = 0
    visits: int = 0
    value: int = 0
    children: list[PlainNode] = field(default_factory=list)


class PlainSearch:
    """The same algorithm as anybody writes it: objects, recursion by a list, Python's random numbers, no proofs."""

    def __init__(self, referee: Referee, seed: int) -> None:
        self._referee, self._random = referee, random.Random(seed)
        self._settings = MonteCarloSettings()
        self.root = PlainNode()

    def play_out(self, position: Any) -> None:
        """Make one playout; positions are Python's integers: no compiled rule is called."""
        path, node, board = [self.root], self.root, position
        while node.children:
            node = max(node.children, key=lambda child: self._bound(child, path[-1].visits))
            board = board.after(node.move)
            path.append(node)
        if node.visits >= self._settings.expand_after or node is self.root:
            node.children = [PlainNode(move) for move in board.free()]
            self._random.shuffle(node.children)
        result = 1 if board.is_won_at_random(self._random) else -1
        for above in reversed(path):
            # What is good for who moves at a node is bad for who chose it.
            result = -result
            above.visits += 1
            above.value += result

    def _bound(self, child: PlainNode, visits: int) -> float:
        if child.visits == 0:
            return self._settings.first_play_urgency / 1000
        exploration = self._settings.exploration / 1000
        return child.value / child.visits + exploration * math.sqrt(math.log(max(visits, 1)) / child.visits)


class PlainBoard:
    """Hex on Python's integers."""

    def __init__(self, module: Any, boards: tuple[int, int], turn: int) -> None:
        self._module, self._boards, self._turn = module, boards, turn

    def free(self) -> list[int]:
        """Return the moves."""
        stones = self._boards[0] | self._boards[1]
        return [cell + 1 for cell in range(self._module.CELLS) if not stones >> cell & 1]

    def after(self, move: int) -> PlainBoard:
        """Return the board after a move."""
        boards = list(self._boards)
        boards[self._turn] |= 1 << move - 1
        return PlainBoard(self._module, (boards[0], boards[1]), 1 - self._turn)

    def is_won_at_random(self, rng: random.Random) -> bool:
        """Fill the board at random; tell whether the side to move has won."""
        cells = self.free()
        rng.shuffle(cells)
        own = self._boards[self._turn]
        for move in cells[: (len(cells) + 1) // 2]:
            own |= 1 << move - 1
        return bool(self._module.stones_needed(own, 0, self._turn) == 0)


def plain_rate(seconds: float) -> float:
    """Return the playouts a second of the plain search on the empty board."""
    game = load_game(BOARD)
    plain = PlainSearch(Referee(game), 1)
    board = PlainBoard(game.module, (0, 0), 0)
    started_s = time.process_time()
    while time.process_time() - started_s < seconds:
        plain.play_out(board)
    return plain.root.visits / (time.process_time() - started_s)


def compiled_rate(seconds: float) -> float:
    """Return the playouts a second of one worker, in processor time."""
    table = Table(load_game(BOARD), 1)
    position = table.game.parse("")
    playouts = int(max(10_000, table.rate(position, 50_000, 1, together=True) * seconds))
    started_s = time.process_time()
    table.rate(position, playouts, 1, together=True)
    return playouts / (time.process_time() - started_s)


def shares(rounds: int, seconds: float) -> tuple[float, float, float]:
    """Return the playouts a second of one worker, of two on one tree, of two independent ones: medians of rounds."""
    table = Table(load_game(BOARD), 2)
    position = table.game.parse("")
    playouts = int(max(10_000, table.rate(position, 50_000, 1, together=True) * seconds))
    kinds: list[Callable[[], float]] = [
        lambda: table.rate(position, playouts, 1, together=True),
        lambda: table.rate(position, playouts, 2, together=True),
        lambda: table.rate(position, playouts, 2, together=False),
    ]
    rates: list[list[float]] = [[] for _ in kinds]
    for number in range(rounds):
        for kind in sorted(range(len(kinds)), key=lambda kind: (kind + number) % len(kinds)):
            rates[kind].append(kinds[kind]())
    one, two, limit = (statistics.median(found) for found in rates)
    return one, two, limit


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    wins = play_match(options.games, options.few, options.many)
    low, high = wilson(wins, options.games)
    print(f"{BOARD}: {options.many} playouts win {wins} of {options.games} games against {options.few}: "
          f"{wins / options.games:.0%}, 95 % interval {low:.0%} to {high:.0%}")  # fmt: skip
    plain, compiled = plain_rate(options.seconds), compiled_rate(options.seconds)
    print(
        f"one core: {compiled / 1e3:.0f} k playouts/s, plain Python {plain / 1e3:.1f} k/s: {compiled / plain:.0f} times"
    )
    one, two, limit = shares(options.rounds, options.seconds)
    print(f"one worker {one / 1e3:.0f} k/s, two on one tree {two / 1e3:.0f} k/s ({two / one:.2f} times), two alone "
          f"{limit / 1e3:.0f} k/s ({limit / one:.2f} times): {two / limit:.0%} of the machine's limit")  # fmt: skip


if __name__ == "__main__":
    main()
