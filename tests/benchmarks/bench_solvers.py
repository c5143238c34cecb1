"""Our solver of Connect Four beside bitbully (C++, PyPI), in turn in one run on the same random positions.

Run it as ``python tests/benchmarks/bench_solvers.py [--positions 30] [--repeats 3] [--stones 8 12 16]``. One core and a
cold table for each position; CPU time. Both sides find the exact score; ours is asked for the line too where
``--lines`` says so. Without bitbully (``pip install bitbully``) only ours is measured.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import platform
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from search import workspace as at
from search.aspiration import Window
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags
from search.game_files import load_game
from search.results import RootResult
from search.rules import RulesError
from search.searcher import Job, Searcher
from search.solving import Bracket, Question, solve, solving_flags
from tt_store.segment import Segment

SEED = 1
TABLE_MB = 64.0

Solver = Callable[[str], tuple[str, int]]
"""Solves the position after some columns: the score in Pons's convention, and the nodes."""


@dataclass(frozen=True)
class Row:
    """One solver on the positions of one number of stones."""

    stones: int
    solver: str
    mean_ms: float
    """Median over the repeats of the mean time for a position."""
    nodes: float
    """Mean for a position."""


def random_positions(stones: int, count: int) -> list[str]:
    """Return columns that are legal, and after which the game goes on."""
    game, rng = load_game("connect_four"), random.Random(SEED)
    found: list[str] = []
    while len(found) < count:
        columns = "".join(rng.choice("1234567") for _ in range(stones))
        try:
            game.parse(columns + "1")
        except RulesError as error:
            # The probe stone may find its column full; a game that is over may not.
            if f"disc {stones + 1} of" not in str(error) or "too late" in str(error):
                continue
        found.append(columns)
    return found


def our_solver(with_line: bool) -> tuple[Solver, Callable[[], None]]:
    """Return our solver, and what makes its table cold; it keeps one searcher."""
    game = load_game("connect_four")
    words = np.zeros(CONTROL_WORDS, np.int64)
    segment = Segment.private(TABLE_MB)
    flags = solving_flags(game, Flags())
    searcher = Searcher(game, segment, Controls(words.ctypes.data), flags=flags)

    def clear() -> None:
        # The searcher knows the control words by their address alone: this closure keeps them.
        words[:] = 0
        ctypes.memset(segment.table_address, 0, segment.size_bytes)
        searcher.forget()

    def run(columns: str) -> tuple[str, int]:
        position, nodes = game.parse(columns), 0

        def root_search(depth: int, window: Window, left_out: tuple[int, ...]) -> RootResult:
            nonlocal nodes
            outcome = searcher.run(Job(position, depth, *window, left_out=left_out))
            nodes += outcome.statistics.nodes
            return RootResult(outcome.score, outcome.line, outcome.statistics, outcome.status == at.RUNNING)

        if with_line:
            score = solve(root_search, searcher.referee, position).score
        else:
            depth, bracket = game.plies_left(position) or 0, Bracket(Question.SCORE)
            while not bracket.is_answered:
                window = bracket.next_window()
                bracket.learn(window, root_search(depth, window, ()).score)
            score = bracket.score
        return game.score_text(position, score, True), nodes

    return run, clear


def bitbully_solver() -> tuple[Solver, Callable[[], None]]:
    """Return bitbully's solver without an opening book, and what makes its table cold."""
    import bitbully  # type: ignore[import-not-found, unused-ignore]

    solver = bitbully.BitBully(opening_book=None)

    def clear() -> None:
        solver.reset_transposition_table()
        solver.reset_node_counter()

    def run(columns: str) -> tuple[str, int]:
        score = solver.mtdf(bitbully.Board([int(column) - 1 for column in columns]))
        return f"{score:+d}" if score else "0", solver.get_node_counter()

    return run, clear


def compare(stones: int, count: int, repeats: int, with_line: bool = False) -> list[Row]:
    """Measure all solvers that there are, in turn on each position.

    Raises
    ------
    AssertionError
        If two solvers disagree.
    """
    solvers = {"rootsplit": our_solver(with_line)}
    if importlib.util.find_spec("bitbully") is not None:
        solvers["bitbully"] = bitbully_solver()
    positions = random_positions(stones, count)
    times: dict[str, list[float]] = {name: [] for name in solvers}
    nodes = dict.fromkeys(solvers, 0)
    for _ in range(repeats):
        spent = dict.fromkeys(solvers, 0.0)
        for columns in positions:
            scores = {}
            for name, (run, clear) in solvers.items():
                clear()
                started = time.process_time()
                scores[name], more = run(columns)
                spent[name] += time.process_time() - started
                nodes[name] += more
            assert len(set(scores.values())) == 1, (columns, scores)
        for name, seconds in spent.items():
            times[name].append(seconds * 1e3 / count)
    return [Row(stones, name, statistics.median(times[name]), nodes[name] / count / repeats) for name in solvers]


def main() -> None:
    """Print a line for each number of stones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stones", type=int, nargs="+", default=[16, 12, 8])
    parser.add_argument("--lines", action="store_true")
    words = parser.parse_args()
    print(
        f"{platform.machine()}, Python {platform.python_version()}, {words.positions} positions, table {TABLE_MB:g} MB"
    )
    for stones in words.stones:
        rows = compare(stones, words.positions, words.repeats, words.lines)
        told = "   ".join(f"{row.solver} {row.mean_ms:8.2f} ms {row.nodes / 1e3:9.1f} k nodes" for row in rows)
        ratio = f"   speed ratio {rows[1].mean_ms / rows[0].mean_ms:.2f}" if len(rows) > 1 else ""
        print(f"{stones:2} stones: {told}{ratio}", flush=True)


if __name__ == "__main__":
    main()
