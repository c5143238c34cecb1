"""Speed-up on simulated clusters: the dynamic strategy beside the root splitter, on three domains.

Run it as ``python tests/benchmarks/bench_cluster.py [--workers 4 16 64] [--domains ...] [--strategies dynamic root]``.
All figures are simulated: virtual time, real searches (see `cluster.simulated_executor`). Each domain's node rate is
set so that the sequential search takes `SEQUENTIAL_S` virtual seconds, ten for each of 64 workers; `--long` makes it
longer, fourteen times without a number, for more workers. One position a domain: take differences below 15 % for ties.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.strategies import DYNAMIC, ROOT, SINGLE, TEAM
from search.driver import search
from search.game_files import load_game
from search.limits import Limits

TABLE_MB = 64.0
SEQUENTIAL_S = 740.0
LONG = 14.0
LONG_STEPS = 4.0
"""A long search's steps grow with it, but stay this many times finer."""


@dataclass(frozen=True)
class Domain:
    """One game tree."""

    game: str
    position: str
    depth: int


DOMAINS = {
    "c33": Domain("connect_four", "33", 20),
    "r12": Domain("random_tree", "1:8-16:30:80", 13),
    "r35": Domain("random_tree", "1:30-40:30:85", 9),
}
"""Connect Four; random trees of 8-16 and of 30-40 moves, whose first move is best in 85-90 % of the nodes."""


def sequential_nodes(domain: Domain) -> int:
    """Return how many nodes the sequential search takes."""
    game = load_game(domain.game)
    return search(game, game.parse(domain.position), Limits(depth=domain.depth), table_mb=TABLE_MB).statistics.nodes


def simulate(domain: Domain, workers: int, strategy: str, model: ClusterModel) -> SearchReport:
    """Search a domain's position on a simulated cluster."""
    game = load_game(domain.game)
    executor = SimulatedExecutor(game, workers, TABLE_MB, model=model)
    with Session(game, executor, TABLE_MB) as session:
        return session.search(
            SearchRequest(domain.position, limits=Limits(depth=domain.depth), strategy=strategy),
        )


def line_of(name: str, strategy: str, workers: int, report: SearchReport, nodes: int, sequential_s: float) -> str:
    """Return a line of the table."""
    result, cost = report.result, report.overheads
    return (
        f"simulated {name} {strategy:<7} {workers:5} workers: speed-up {sequential_s / result.time_s:6.1f} of"
        f" {sequential_s:.0f} s, nodes x{result.statistics.nodes / nodes:.2f}, idle {cost.idle:.2f}, messages"
        f" {cost.communication:.2f}, tasks {cost.tasks}, wasted {cost.wasted_nodes / result.statistics.nodes:.2f},"
        f" entries exchanged {cost.exchanged_entries}, score {result.score}"
    )


def main() -> None:
    """Print a line for each domain, strategy and number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--domains", nargs="+", choices=sorted(DOMAINS), default=sorted(DOMAINS))
    parser.add_argument("--strategies", nargs="+", choices=(DYNAMIC, TEAM, ROOT), default=[DYNAMIC, TEAM, ROOT])
    parser.add_argument("--long", type=float, nargs="?", const=LONG, default=1.0, metavar="TIMES")
    options = parser.parse_args()
    sequential_s = SEQUENTIAL_S * options.long
    for name in options.domains:
        domain = DOMAINS[name]
        nodes = sequential_nodes(domain)
        step_s = ClusterModel().step_s * max(1.0, options.long / LONG_STEPS)
        model = ClusterModel(node_rate=nodes / sequential_s, step_s=step_s)
        score = simulate(domain, 1, SINGLE, model).result.score
        for strategy in options.strategies:
            for workers in options.workers:
                started_s = time.monotonic()
                report = simulate(domain, workers, strategy, model)
                line = line_of(name, strategy, workers, report, nodes, sequential_s)
                is_same = "" if report.result.score == score else f" INSTEAD OF {score}"
                print(f"{line}{is_same} ({time.monotonic() - started_s:.0f} s real)", flush=True)


if __name__ == "__main__":
    main()
