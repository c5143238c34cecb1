"""A long batch on two workers of a private Ray, one of them killed each minute: memory stays flat, every row is right.

Run it as ``python tests/benchmarks/bench_soak.py [--minutes 55] [--kill-every 60] [--nodes 300000] [--json]``; its
positions come from random play, all different, more than there is time for: Ctrl-C ends the batch, which then writes
what runs. Rows are `--deterministic`, so that those of a sample, searched once more without Ray, must have equal bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import chess

from tt_store.owner import owner_named

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))

from processes import Process, alive, descendants, wait_until  # noqa: E402

WORKERS, POSITIONS, TABLE_MB = 2, 25_000, 4
SAMPLE_S = 10.0
WARM_S = 20.0
"""After so long a worker's kernel and table are in its memory."""
DRAIN_S = 120.0
ROLES = {"ray::NodeAgent": "agent", "ray::Worker": "worker"}
SHARES = (0.1, 0.5, 1.0)


@dataclass
class Life:
    """What a process of the run has taken, from its first sample to its last."""

    role: str
    since_s: float
    rss_mb: list[tuple[float, float]] = field(default_factory=list)
    """Pairs of a time since the run's begin and the resident memory then."""


@dataclass
class Soak:
    """What has come of a run."""

    minutes: float = 0.0
    kills: int = 0
    exit_code: int = 0
    """130 for Ctrl-C; 0 if all positions were searched before the time was up."""
    rows: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    """Of all rows: not searched, or a best move or a line that is not legal."""
    sampled: int = 0
    different: int = 0
    """Of the sample: other bytes than those of a search without Ray."""
    memory_mb: dict[str, list[float]] = field(default_factory=dict)
    """Of each role at a tenth, half and all of the run; of workers the mean of those that were warm."""
    worker_growth_mb: list[float] = field(default_factory=list)
    """Median and worst, from a worker's first warm sample to its last."""
    processes_left: int = 0
    segments_left: int = 0


def random_positions(count: int, seed: int) -> Iterator[str]:
    """Yield so many different positions of chess that random play has come to and that have legal moves."""
    chance, seen = random.Random(seed), set[str]()
    while len(seen) < count:
        board = chess.Board()
        for _ in range(chance.randrange(6, 60)):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(chance.choice(moves))
        if not board.is_game_over() and (fen := board.fen()) not in seen:
            seen.add(fen)
            yield fen


def rss_mb(pid: int) -> float | None:
    """Return the resident memory of a process; None if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    sizes = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")]
    return sizes[0] / 1024 if sizes else None


def role_of(process: Process) -> str | None:
    return next((role for title, role in ROLES.items() if process.command.startswith(title)), None)


class Watcher:
    """Samples the processes of a run."""

    def __init__(self, driver: int) -> None:
        self.driver, self.begun_s = driver, time.monotonic()
        self.seen: set[Process] = set()
        self.lives: dict[tuple[int, int], Life] = {(driver, 0): Life("driver", 0.0)}

    @property
    def now_s(self) -> float:
        return time.monotonic() - self.begun_s

    def sample(self) -> None:
        found = descendants(self.driver)
        self.seen |= found
        ids = {(self.driver, 0)}
        for process in found:
            if (role := role_of(process)) is not None:
                key = (process.pid, process.start_ticks)
                self.lives.setdefault(key, Life(role, self.now_s))
                ids.add(key)
        for key in ids:
            if (size := rss_mb(key[0])) is not None:
                self.lives[key].rss_mb.append((self.now_s, size))

    def workers(self) -> list[int]:
        """Return the processes of workers that search."""
        return [
            process.pid for process in descendants(self.driver) if process.command.startswith("ray::Worker.analyse")
        ]

    def memory_mb(self, role: str, at_s: float) -> float:
        """Return the mean of a role's processes that were warm, from their samples nearest to a time."""
        sizes = []
        for life in self.lives.values():
            warm = [pair for pair in life.rss_mb if pair[0] >= life.since_s + WARM_S]
            if life.role == role and warm:
                when_s, size = min(warm, key=lambda pair: abs(pair[0] - at_s))
                if abs(when_s - at_s) < 3 * SAMPLE_S:
                    sizes.append(size)
        return statistics.mean(sizes) if sizes else float("nan")

    def worker_growth_mb(self) -> list[float]:
        """Return how much each worker has grown since it was warm."""
        warm = [
            [size for when_s, size in life.rss_mb if when_s >= life.since_s + WARM_S]
            for life in self.lives.values()
            if life.role == "worker"
        ]
        return [sizes[-1] - sizes[0] for sizes in warm if len(sizes) > 1]


def batch_command(positions: Path, output: Path, nodes: int, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "cluster.cli", "analyse", "chess", str(positions), "-o", str(output),
        "--nodes", str(nodes), "--table", str(TABLE_MB), "--deterministic", *more,
    ]  # fmt: skip


def run_with_kills(
    command: list[str], minutes: float, kill_every_s: float, chance: random.Random
) -> tuple[int, int, Watcher]:
    """Run a batch for some minutes, then have it end by Ctrl-C; returns kills, exit code, and the watcher."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as driver:
        watcher = Watcher(driver.pid)
        kills, next_kill_s, next_sample_s = 0, kill_every_s, 0.0
        try:
            while driver.poll() is None and watcher.now_s < minutes * 60:
                if watcher.now_s >= next_sample_s:
                    watcher.sample()
                    next_sample_s += SAMPLE_S
                if watcher.now_s >= next_kill_s and (victims := watcher.workers()):
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    kills += 1
                    next_kill_s += kill_every_s
                    print(f"{watcher.now_s:.0f} s: {kills} kills", file=sys.stderr, flush=True)
                time.sleep(0.2)
            watcher.sample()
            driver.send_signal(signal.SIGINT)
            _, errors = driver.communicate(timeout=DRAIN_S)
        finally:
            driver.kill()
    if driver.returncode not in (0, 130):
        print(errors, file=sys.stderr)
    return kills, driver.returncode, watcher


def is_right(row: dict[str, Any], fen: str) -> bool:
    """Tell whether a row is of its position, searched, with a best move and a line that are legal."""
    board = chess.Board(fen)
    if row["position"] != fen or row["status"] != "ok" or row["pv"][:1] != [row["best_move"]]:
        return False
    for text in row["pv"]:
        move = chess.Move.from_uci(text)
        if move not in board.legal_moves:
            return False
        board.push(move)
    return True


def differing(lines: list[str], fens: list[str], sample: list[int], nodes: int, folder: Path) -> int:
    """Search some rows once more, on a thread, and return how many have other bytes; their place aside."""
    positions, output = folder / "sample.fen", folder / "sample.jsonl"
    positions.write_text("".join(f"{fens[index]}\n" for index in sample))
    command = batch_command(positions, output, nodes, "--workers", "1")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    again = output.read_text().splitlines()
    assert len(again) == len(sample)
    return sum(without_place(lines[index]) != without_place(line) for index, line in zip(sample, again, strict=True))


def without_place(line: str) -> str:
    return line[line.index('"id":') :]


def soak(minutes: float, kill_every_s: float, nodes: int, sampled: int, seed: int) -> Soak:
    """Run the batch, and judge it."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fens = list(random_positions(POSITIONS, seed))
        positions, output = folder / "positions.fen", folder / "rows.jsonl"
        positions.write_text("".join(f"{fen}\n" for fen in fens))
        command = batch_command(positions, output, nodes, "--workers", str(WORKERS), "--address", "local")
        kills, exit_code, watcher = run_with_kills(command, minutes, kill_every_s, chance)
        result = Soak(watcher.now_s / 60, kills, exit_code)
        wait_until(lambda: not alive(watcher.seen), 30.0)
        result.processes_left = len(alive(watcher.seen))
        pids = {process.pid for process in watcher.seen} | {watcher.driver}
        owners = [owner_named(path.name) for path in Path("/dev/shm").iterdir()]
        result.segments_left = sum(owner is not None and owner.pid in pids for owner in owners)
        lines = output.read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        indices = [row["index"] for row in rows]
        result.rows = len(rows)
        result.doubled = len(rows) - len(set(indices))
        result.lost = len(set(range(len(rows))) - set(indices))
        result.wrong = sum(not is_right(row, fens[row["index"]]) for row in rows) + (indices != sorted(indices))
        sample = sorted(chance.sample(range(len(rows)), min(sampled, len(rows))))
        result.sampled, result.different = len(sample), differing(lines, fens, sample, nodes, folder)
    end_s = max(when_s for when_s, _size in watcher.lives[watcher.driver, 0].rss_mb)
    for role in ("driver", "agent", "worker"):
        result.memory_mb[role] = [round(watcher.memory_mb(role, share * end_s), 1) for share in SHARES]
    growth = watcher.worker_growth_mb() or [float("nan")]
    result.worker_growth_mb = [round(statistics.median(growth), 2), round(max(growth), 2)]
    return result


def main() -> None:
    """Print what has come of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=55.0)
    parser.add_argument("--kill-every", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--nodes", type=int, default=300_000, help="of each position")
    parser.add_argument("--sample", type=int, default=50, help="how many rows to search once more")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    result = soak(options.minutes, options.kill_every, options.nodes, options.sample, options.seed)
    if options.json:
        print(json.dumps(asdict(result)))
        return
    print(f"{result.minutes:.1f} min, {result.kills} workers killed, exit code {result.exit_code}")
    print(f"{result.rows} rows: {result.lost} lost, {result.doubled} doubled, {result.wrong} wrong")
    print(f"{result.different} of {result.sampled} rows searched once more without Ray have other bytes")
    for role, sizes in result.memory_mb.items():
        texts = ", ".join(f"{size:.1f} MB at {share:.0%}" for share, size in zip(SHARES, sizes, strict=True))
        print(f"{role:7} {texts}")
    median, worst = result.worker_growth_mb
    print(f"a worker grew by {median:.1f} MB since it was warm (median), {worst:.1f} MB (worst)")
    print(f"left: {result.processes_left} processes, {result.segments_left} segments")


if __name__ == "__main__":
    main()
