"""Perft of chess beside Stockfish's `go perft`, in turn in one run; quotes ratios of medians, ours / Stockfish.

Run it as ``python tests/benchmarks/bench_chess_perft.py [--repeats 5]``; ``--small`` counts two plies less. Both count
the last ply in bulk, on one core, and must count the same. Stockfish keeps more state in a move than a count needs: it
shows the order of magnitude. Without a ``stockfish`` on the path or in /usr/games only our speed is shown.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass

from search.game_files import load_game
from search.perft import LeafCounter

POSITIONS = (
    ("start", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 6),
    ("kiwipete", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 5),
    ("pawn end game", "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 7),
    ("promotions", "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", 5),
    ("middle game", "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", 5),
)
"""Name, position and depth."""
STOCKFISH_PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/games"))


@dataclass(frozen=True)
class Speed:
    """Leaves of one position, and how fast both sides counted them: medians, in leaves per second."""

    name: str
    leaves: int
    ours: float
    stockfish: float | None


class Stockfish:
    """A running engine that counts."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._wait_for("uciok", "uci")

    def count(self, fen: str, depth: int) -> tuple[int, float]:
        """Return the leaves and the seconds that it took."""
        self._wait_for("readyok", f"position fen {fen}\nisready")
        started = time.perf_counter()
        answer = self._wait_for("Nodes searched", f"go perft {depth}")
        return int(answer.rpartition(" ")[2]), time.perf_counter() - started

    def close(self) -> None:
        """End the engine."""
        self._process.communicate("quit\n", timeout=10)

    def _wait_for(self, beginning: str, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(beginning):
                return line.strip()
        raise RuntimeError(f"Stockfish ended instead of saying {beginning}")


def measure(repeats: int, is_small: bool = False) -> list[Speed]:
    """Count all positions in turn, ours and Stockfish's.

    Parameters
    ----------
    repeats
        Runs of each, of which the median counts.
    is_small
        Whether to count two plies less: for tests.

    Raises
    ------
    AssertionError
        If the two sides count differently.
    """
    counter = LeafCounter(load_game("chess"))
    path = shutil.which("stockfish", path=STOCKFISH_PLACES)
    engine = Stockfish(path) if path is not None else None
    speeds = []
    for name, fen, full_depth in POSITIONS:
        depth = full_depth - 2 if is_small else full_depth
        position = counter.referee.game.parse(fen)
        leaves, ours, theirs = 0, [], []
        for _ in range(repeats):
            started = time.perf_counter()
            leaves = counter.count(position, depth)
            ours.append(time.perf_counter() - started)
            if engine is not None:
                counted, seconds = engine.count(fen, depth)
                assert counted == leaves, (name, leaves, counted)
                theirs.append(seconds)
        reference = leaves / statistics.median(theirs) if theirs else None
        speeds.append(Speed(name, leaves, leaves / statistics.median(ours), reference))
    if engine is not None:
        engine.close()
    return speeds


def together(speeds: list[Speed]) -> Speed:
    """Return the speed over all positions: all leaves by all time."""
    leaves = sum(speed.leaves for speed in speeds)
    references = [speed.leaves / speed.stockfish for speed in speeds if speed.stockfish is not None]
    reference = leaves / sum(references) if references else None
    return Speed("together", leaves, leaves / sum(speed.leaves / speed.ours for speed in speeds), reference)


def main() -> None:
    """Print the table of speeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"medians of {options.repeats} runs")
    speeds = measure(options.repeats, options.small)
    for speed in [*speeds, together(speeds)]:
        line = f"{speed.name:16} {speed.leaves:12} leaves {speed.ours / 1e6:8.1f} M/s"
        if speed.stockfish is not None:
            line += f"   Stockfish {speed.stockfish / 1e6:8.1f} M/s   ratio {speed.ours / speed.stockfish:.2f}"
        print(line)


if __name__ == "__main__":
    main()
