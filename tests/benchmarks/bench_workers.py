"""Two real workers against the best sequential search, beside what the machine itself allows.

Run it as ``python tests/benchmarks/bench_workers.py [--games connect_four random_tree chess] [--executors threads ray]
[--first N] [--json FILE]``; each game takes ten to twenty minutes. Chess positions are the Bratko-Kopec test's, from
``ROOTSPLIT_DATA`` (by default ``../shared/data``), to the depth that the sequential search ends within `CHESS_S`. For
each position, one after the other in this process:

- `single`: the sequential search, with its table;
- the limit: two sequential searches at once, each with a table of its own. Were the machine two machines, both would
  end in the time of one; what they lose, no splitter can win;
- two workers by the dynamic strategy, on threads and on a private Ray, each with a cold table;
- the simulator's prediction: two virtual workers at the rate that each of the pair above had.

Quote the sequential time beside each speed-up, and the limit beside the mean.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from cluster.executor import ThreadExecutor
from cluster.report import Overheads
from cluster.session import SearchRequest, Session, open_session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.strategies import DYNAMIC, SINGLE
from search.limits import Limits
from search.rules import load_game

TABLE_MB = 256.0
WORKERS = 2
RESAMPLES = 10_000
CHESS_S = 12.0
DATA = Path(os.environ.get("ROOTSPLIT_DATA") or Path(__file__).parents[3] / "shared" / "data")
THREAD_LATENCY_S, THREAD_MASTER_S = 0.00005, 0.00005
"""A message between threads of one process."""

POSITIONS: tuple[tuple[str, str, int], ...] = (
    ("connect_four", "33", 22), ("connect_four", "1", 20), ("connect_four", "2267", 22), ("connect_four", "35", 21),
    ("connect_four", "444", 22), ("connect_four", "67", 21), ("connect_four", "25", 21), ("connect_four", "3", 20),
    *(("random_tree", f"{seed}:8-16:30:80", 13) for seed in range(1, 9)),
    *(("random_tree", f"{seed}:30-40:30:85", 9) for seed in range(1, 9)),
)  # fmt: skip


CHESS = "chess"
GAMES = (*sorted({game for game, _, _ in POSITIONS}), CHESS)


def chess_positions(first: int) -> list[tuple[str, str, int]]:
    """Return the Bratko-Kopec positions with the depths that the sequential search ends in time."""
    lines = (DATA / "chess" / "epd" / "bratko_kopec.epd").read_text().splitlines()
    positions = []
    for line in [line for line in lines if line.strip()][:first]:
        text = " ".join(line.split()[:4])
        game = load_game(CHESS)
        with Session(game, ThreadExecutor(game, 1, TABLE_MB, notice=_quiet), TABLE_MB, _quiet) as session:
            report = session.search(SearchRequest(text, limits=Limits(time_s=CHESS_S), strategy=SINGLE))
        positions.append((CHESS, text, report.result.depth))
    return positions


def chosen(games: Sequence[str], first: int) -> list[tuple[str, str, int]]:
    """Return the positions of some games, so many of each at most."""
    positions = []
    for game in games:
        own = [position for position in POSITIONS if position[0] == game]
        # The trees come in two widths: some of each.
        step = 8 if game == "random_tree" else len(own)
        positions += [position for number, position in enumerate(own) if number % step < first]
    return positions + (chess_positions(first) if CHESS in games else [])


def _quiet(_line: str) -> None:
    """Drop a notice: the kernels are compiled before anything is measured."""


@dataclass(frozen=True)
class Run:
    """One search with some workers."""

    time_s: float
    nodes: int
    score: int
    overheads: Overheads


@dataclass(frozen=True)
class Row:
    """One position."""

    game: str
    position: str
    depth: int
    single: Run
    pair_s: float
    """Time of the slower of two sequential searches at once."""
    parallel: dict[str, Run]
    """By executor."""
    predicted: float | None
    """Speed-up on threads, by the simulator."""

    @property
    def limit(self) -> float:
        """How many machines this one is, for two workers."""
        return 2 * self.single.time_s / self.pair_s

    def speedup(self, executor: str) -> float:
        """Return sequential over parallel time."""
        return self.single.time_s / self.parallel[executor].time_s


def _run(session: Session, position: str, depth: int, strategy: str) -> Run:
    report = session.search(SearchRequest(position, limits=Limits(depth=depth), strategy=strategy))
    result = report.result
    return Run(result.time_s, result.statistics.nodes, result.score, report.overheads)


def on_threads(game_name: str, position: str, depth: int, workers: int, strategy: str) -> Run:
    """Search on threads of this process."""
    game = load_game(game_name)
    with Session(game, ThreadExecutor(game, workers, TABLE_MB, notice=_quiet), TABLE_MB, _quiet) as session:
        return _run(session, position, depth, strategy)


def on_ray(game_name: str, position: str, depth: int, workers: int) -> Run:
    """Search on a private Ray."""
    request = SearchRequest(position)
    with open_session(game_name, request, workers, TABLE_MB, "local", notice=_quiet) as session:
        return _run(session, position, depth, DYNAMIC)


def pair_s(game_name: str, position: str, depth: int) -> float:
    """Return the time of the slower of two sequential searches at once."""
    times: list[float] = []
    threads = [
        threading.Thread(target=lambda: times.append(on_threads(game_name, position, depth, 1, SINGLE).time_s))
        for _ in range(WORKERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(times)


def predicted_speedup(game_name: str, position: str, depth: int, single: Run, slower_s: float) -> float:
    """Return the simulator's speed-up of two threads: each virtual worker is as fast as one of the pair."""
    game = load_game(game_name)
    model = ClusterModel(
        node_rate=single.nodes / slower_s, latency_s=THREAD_LATENCY_S, master_s=THREAD_MASTER_S, event_s=0.0
    )
    executor = SimulatedExecutor(game, WORKERS, TABLE_MB, model=model, notice=_quiet)
    with Session(game, executor, TABLE_MB, _quiet) as session:
        return single.time_s / _run(session, position, depth, DYNAMIC).time_s


def measure(game: str, position: str, depth: int, executors: Sequence[str], predicts: bool) -> Row:
    """Measure one position."""
    single = on_threads(game, position, depth, 1, SINGLE)
    slower_s = pair_s(game, position, depth)
    runs: dict[str, Callable[[], Run]] = {
        "threads": lambda: on_threads(game, position, depth, WORKERS, DYNAMIC),
        "ray": lambda: on_ray(game, position, depth, WORKERS),
    }
    parallel = {name: runs[name]() for name in executors}
    predicted = predicted_speedup(game, position, depth, single, slower_s) if predicts else None
    return Row(game, position, depth, single, slower_s, parallel, predicted)


def geometric_mean(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean and its 95 % interval by the bootstrap (Efron 1979), percentile method."""
    logs = np.log(np.asarray(ratios))
    draws = np.random.default_rng(1).choice(logs, (RESAMPLES, len(logs))).mean(axis=1)
    low, high = np.percentile(draws, (2.5, 97.5))
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))


def line_of(row: Row) -> str:
    """Return a position's line."""
    text = f"{row.game:<12} {row.position[:16]:<16} d{row.depth:<2} single {row.single.time_s:6.2f} s"
    text += f", limit {row.limit:.2f}"
    for name, run in row.parallel.items():
        cost = run.overheads
        text += (
            f" | {name} {row.speedup(name):.2f} (nodes x{run.nodes / row.single.nodes:.2f}, idle {cost.idle:.2f},"
            f" messages {cost.communication:.2f}, splitter {cost.splitter_s:.2f} s)"
        )
    return text if row.predicted is None else f"{text} | simulator {row.predicted:.2f}"


def summary(rows: Sequence[Row], name: str) -> str:
    """Return what all positions together say of one executor."""
    total = sum(row.single.time_s for row in rows) / sum(row.parallel[name].time_s for row in rows)
    mean, low, high = geometric_mean([row.speedup(name) for row in rows])
    limit, limit_low, limit_high = geometric_mean([row.limit for row in rows])
    share, share_low, share_high = geometric_mean([row.speedup(name) / row.limit for row in rows])
    text = (
        f"{name}: {len(rows)} positions, total-time ratio {total:.2f}, geometric mean {mean:.2f} [{low:.2f},"
        f" {high:.2f}]; the machine's limit {limit:.2f} [{limit_low:.2f}, {limit_high:.2f}]; share of it {share:.2f}"
        f" [{share_low:.2f}, {share_high:.2f}]"
    )
    guesses = [row.predicted / row.speedup(name) for row in rows if row.predicted is not None]
    if guesses and name == "threads":
        ratio, ratio_low, ratio_high = geometric_mean(guesses)
        text += f"; simulator over real {ratio:.2f} [{ratio_low:.2f}, {ratio_high:.2f}]"
    return text


def main() -> None:
    """Print a line for each position, then what they say together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executors", nargs="+", choices=("threads", "ray"), default=["threads", "ray"])
    parser.add_argument("--games", nargs="+", choices=GAMES, default=[game for game in GAMES if game != CHESS])
    parser.add_argument("--first", type=int, default=len(POSITIONS), help="only so many positions of each kind")
    parser.add_argument("--no-simulator", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, one run of each")
    for game in options.games:
        on_threads(game, "start" if game == CHESS else POSITIONS[-1 if game == "random_tree" else 0][1], 4, 1, SINGLE)
    rows = []
    for game, position, depth in chosen(options.games, options.first):
        rows.append(measure(game, position, depth, options.executors, not options.no_simulator))
        print(line_of(rows[-1]), flush=True)
    for name in options.executors:
        print(summary(rows, name))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
