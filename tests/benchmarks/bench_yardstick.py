"""Our kernel, perft and table beside the C++ yardstick, in turn in one run; quotes ratios of medians, ours / C++.

Run it as ``python tests/benchmarks/bench_yardstick.py [--repeats 5]``. It needs g++ and the yardstick's source:
``ROOTSPLIT_REFERENCE`` names its folder, ``../shared/reference`` by default. Both sides search the empty board with
iterative deepening, an evaluation of 0 and a cold table of the same size; the counts of nodes must be equal.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from bench_table import measure as measure_table

from search.aspiration import FULL_WINDOW
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags
from search.game_files import load_game
from search.perft import LeafCounter
from search.searcher import Job, Searcher
from tt_store.segment import Segment

DEPTH = 21
PERFT_DEPTH = 10
YARDSTICK = Flags(evaluation=False, ordering=False, sound_moves=False, enhanced_cutoff=False)
"""The yardstick's own search: moves as they are generated, the table asked at each node."""
TABLE_SIZES_MB = (1, 16, 64, 256)


@dataclass(frozen=True)
class Ratio:
    """One figure of ours and of the yardstick's, per second; medians of equally many runs, taken in turn."""

    name: str
    ours: float
    yardstick: float

    @property
    def ratio(self) -> float:
        """How many times the yardstick's speed."""
        return self.ours / self.yardstick


def reference_folder() -> Path:
    """Return the folder of the yardstick's source."""
    default = Path(__file__).parents[2] / "../shared/reference"
    return Path(os.environ.get("ROOTSPLIT_REFERENCE", default))


def build_yardstick(folder: Path, target: Path) -> Callable[..., dict[str, float]]:
    """Compile the yardstick and return a function that runs it with some words."""
    source = folder / "connect_four.cpp"
    subprocess.run(["g++", "-O3", "-march=native", "-o", str(target), str(source)], check=True)

    def run(*words: object) -> dict[str, float]:
        output = subprocess.run(
            [str(target), *map(str, words)], check=True, capture_output=True, text=True, timeout=600
        ).stdout
        return dict(json.loads(output))

    return run


def search_speed(table_mb: float, depth: int) -> tuple[int, float]:
    """Search the empty board with a cold table; returns nodes and nodes per second."""
    game = load_game("connect_four")
    words = np.zeros(CONTROL_WORDS, np.int64)
    with Segment.private(table_mb) as segment:
        # Touch the table's pages first, as the yardstick does.
        ctypes.memset(segment.table_address, 0, segment.size_bytes)
        searcher = Searcher(game, segment, Controls(words.ctypes.data), flags=YARDSTICK)
        position = game.parse("")
        nodes = 0
        started = time.perf_counter()
        for iteration in range(1, depth + 1):
            nodes += searcher.run(Job(position, iteration, *FULL_WINDOW)).statistics.nodes
        return nodes, nodes / (time.perf_counter() - started)


def perft_speed(depth: int) -> tuple[int, float]:
    """Count the empty board's lines; returns them and lines per second."""
    game = load_game("connect_four")
    counter = LeafCounter(game)
    started = time.perf_counter()
    leaves = counter.count(game.parse(""), depth)
    return leaves, leaves / (time.perf_counter() - started)


def compare(repeats: int, depth: int = DEPTH, perft_depth: int = PERFT_DEPTH) -> list[Ratio]:
    """Measure both sides in turn.

    Raises
    ------
    FileNotFoundError
        If the yardstick or its compiler is absent.
    AssertionError
        If the two sides did not do the same work.
    """
    if shutil.which("g++") is None or not (reference_folder() / "connect_four.cpp").exists():
        raise FileNotFoundError(f"the yardstick needs g++ and {reference_folder()}/connect_four.cpp")
    with tempfile.TemporaryDirectory() as folder:
        yardstick = build_yardstick(reference_folder(), Path(folder) / "yardstick")
        rows = []
        for size_mb in TABLE_SIZES_MB:
            ours, theirs = [], []
            for _ in range(repeats):
                nodes, speed = search_speed(size_mb, depth)
                other = yardstick("search", "", depth, size_mb)
                # Replacement differs in one rule (a deeper entry of this search is kept), so the trees do a little.
                assert abs(nodes - other["nodes"]) <= other["nodes"] // 100, (nodes, other["nodes"])
                ours.append(speed)
                theirs.append(other["nps"])
            rows.append(_ratio(f"search depth {depth}, {size_mb} MB, nodes", ours, theirs))
        ours, theirs = [], []
        for _ in range(repeats):
            leaves, speed = perft_speed(perft_depth)
            other = yardstick("perft", "", perft_depth)
            assert leaves == other["leaves"], (leaves, other["leaves"])
            ours.append(speed)
            theirs.append(other["per_s"])
        rows.append(_ratio(f"perft {perft_depth} (ours counts the last ply in bulk), leaves", ours, theirs))
        return rows + _table_ratios(yardstick, repeats)


def _table_ratios(yardstick: Callable[..., dict[str, float]], repeats: int) -> list[Ratio]:
    runs = [(measure_table(64, 1), yardstick("table", 64)) for _ in range(repeats)]
    stores = _ratio("table 64 MB, stores", [a.stores_per_s for a, _ in runs], [b["stores_per_s"] for _, b in runs])
    probes = _ratio("table 64 MB, probes", [a.probes_per_s for a, _ in runs], [b["probes_per_s"] for _, b in runs])
    return [stores, probes]


def _ratio(name: str, ours: list[float], theirs: list[float]) -> Ratio:
    return Ratio(name, statistics.median(ours), statistics.median(theirs))


def main() -> None:
    """Print the table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    search_speed(1, 2)
    perft_speed(2)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, medians of {repeats}")
    for row in compare(repeats):
        print(f"{row.name:60} {row.ours / 1e6:8.1f} M/s  C++ {row.yardstick / 1e6:8.1f} M/s  ratio {row.ratio:.2f}")


if __name__ == "__main__":
    main()
