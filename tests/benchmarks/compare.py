"""Two checkouts beside each other: ``python tests/benchmarks/compare.py OLD NEW [--pairs 6]``.

Runs `rootsplit bench` of both in turn, each pair in the other order than the last, so that a machine that drifts or
works for others touches both alike, and prints for each game how many times as many nodes a second the new one
searches: geometric mean over the pairs with its 95 % interval. A total of nodes that differs is another search, whose
speed says little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cluster.scaling.statistics import bootstrap, geometric_mean_of_ratios


class Pair(NamedTuple):
    """One run of each checkout, by games."""

    old_nodes: dict[str, int]
    new_nodes: dict[str, int]
    old_rate: dict[str, float]
    """Nodes a second."""
    new_rate: dict[str, float]


def bench(checkout: Path) -> tuple[dict[str, int], dict[str, float]]:
    """Return nodes and nodes a second of each game."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, "-m", "cluster.cli", "bench", "--json"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    nodes: dict[str, int] = {}
    times_s: dict[str, float] = {}
    for row in json.loads(done.stdout)["rows"]:
        nodes[row["game"]] = nodes.get(row["game"], 0) + row["nodes"]
        times_s[row["game"]] = times_s.get(row["game"], 0.0) + row["time_s"]
    return nodes, {game: nodes[game] / times_s[game] for game in nodes}


def measure(old: Path, new: Path, pairs: int) -> list[Pair]:
    """Run both in turn, once more at first: kernels are compiled then."""
    bench(old), bench(new)
    found = []
    for number in range(pairs):
        order = (old, new) if number % 2 == 0 else (new, old)
        results = {checkout: bench(checkout) for checkout in order}
        found.append(Pair(results[old][0], results[new][0], results[old][1], results[new][1]))
    return found


def report(pairs: Sequence[Pair]) -> list[str]:
    """Return a line for each game that both have, and one for all."""
    lines = []
    games = [game for game in pairs[0].old_nodes if game in pairs[0].new_nodes]
    for game in games:
        ratio = bootstrap(
            geometric_mean_of_ratios, [pair.new_rate[game] for pair in pairs], [pair.old_rate[game] for pair in pairs]
        )
        before, after = pairs[0].old_nodes[game], pairs[0].new_nodes[game]
        change = "" if before == after else f"  another search: {before} nodes became {after}"
        lines.append(f"{game:14} {ratio.text(3)} times as many nodes a second{change}")
    every = bootstrap(
        geometric_mean_of_ratios,
        [pair.new_rate[game] for pair in pairs for game in games],
        [pair.old_rate[game] for pair in pairs for game in games],
    )
    return [*lines, f"{'all':14} {every.text(3)}"]


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=6)
    options = parser.parse_args()
    old, new = options.old.resolve(), options.new.resolve()
    if old == new or options.pairs < 1:
        parser.error("give two different checkouts, and at least one pair")
    for line in report(measure(old, new, options.pairs)):
        print(line)


if __name__ == "__main__":
    main()
