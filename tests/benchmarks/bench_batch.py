"""What `rootsplit analyse` is to show: nothing lost, nothing doubled, little overhead, flat memory.

Run it as ``python tests/benchmarks/bench_batch.py PART ...`` with some of these parts (all without any), of which each
takes one to ten minutes; position sets come from ``ROOTSPLIT_DATA`` (by default ``../shared/data``):

- ``overhead``: rows per second with workers that answer at once, on threads and on Ray, beside the time that parsing
  and judging a position alone takes: what is left is the runner's own;
- ``memory``: the peak memory of runs of 10^4, 10^5 and 10^6 rows, all different and all equal;
- ``kill``: `kill -9` of the driver, of workers and of all processes of a Ray node at random moments of one run over 300
  positions, on a cluster of two nodes;
- ``scaling``: two workers on 200 positions against what the machine allows, two runs of one worker at once;
- ``connect_four``: three sets of 1000 positions whose scores are known;
- ``suite``: WAC at a small number of nodes, with equal bytes on one worker and on two.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from cluster.batch.index import AnswerIndex
from cluster.batch.jobs import Answer, PositionJob, Status, pack_answers, unpack_jobs
from cluster.batch.journal import SUFFIX, Journal, JournalledAnswer
from cluster.batch.planner import Planner
from cluster.batch.pool import Pool, ThreadPool
from cluster.batch.rows import InputRow
from cluster.batch.runner import Runner
from cluster.batch.settings import RunSettings
from cluster.batch.writers import JsonLinesWriter
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee

DATA = Path(os.environ.get("ROOTSPLIT_DATA") or Path(__file__).parents[3] / "shared" / "data")
REPOSITORY = Path(__file__).parents[2]
WORKERS = 2
COMMAND = [sys.executable, "-m", "cluster.cli", "analyse"]
GAME = "random_tree"
"""Its positions are quickly read: what is measured is the runner."""


def instant_answer(job: PositionJob) -> Answer:
    """Return an answer for which nothing was searched."""
    return Answer(job.job_id, Status.OK, None, "1", 5, "+5", "exact", 1, 10, 1e-5, ("1",))


class InstantThread:
    """Answers at once, on a thread."""

    def run(self, jobs: Sequence[PositionJob]) -> list[Answer]:
        return [instant_answer(job) for job in jobs]

    def close(self) -> None:
        """Do nothing."""


def instant_threads() -> Pool:
    return ThreadPool(lambda _number: InstantThread(), WORKERS, lambda: None, lambda: None)


def instant_ray(game_name: str) -> Pool:
    """Return a pool on a private Ray whose workers do all but search."""
    import ray

    from cluster import ray_fleet
    from cluster.batch.ray_pool import RayPool

    class Instant:
        def __init__(self, *_: Any) -> None:
            """Take what a worker takes."""

        def ready(self) -> int:
            return os.getpid()

        def analyse(self, message: bytes) -> bytes:
            return pack_answers([instant_answer(job) for job in unpack_jobs(message)])

    ray_fleet._WORKER = ray.remote(num_cpus=1)(Instant)
    return RayPool(load_game(game_name), SETTINGS, WORKERS, "local")


SETTINGS = RunSettings(Limits(depth=1), table_mb=1.0)


class Speed(NamedTuple):
    """A run with workers that answer at once."""

    rows: int
    seconds: float
    cpu_s: float
    """Of this process."""
    peak_mb: float


def run_instantly(pool: Pool, game_name: str, texts: Iterator[str], output: Path) -> Speed:
    """Run rows through planner, pool, journal and writer."""
    game = load_game(game_name)
    planner = Planner(game, Referee(game), SETTINGS)
    writer = JsonLinesWriter(output)
    list(writer.recover())
    started, cpu = time.perf_counter(), time.process_time()
    with Journal.temporary() as journal:
        runner = Runner(planner, pool, SETTINGS, journal, AnswerIndex())
        for row in runner.run(InputRow(index, "bench", index + 1, None, text) for index, text in enumerate(texts)):
            if row is not None:
                writer.add(row)
                if writer.is_due:
                    writer.flush()
        writer.flush()
    writer.close()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Speed(runner.tally.rows, time.perf_counter() - started, time.process_time() - cpu, peak_mb)


def planning_s(game_name: str, rows: int = 3000) -> float:
    """Return the processor seconds that reading and judging a position takes, without anything of the runner."""
    game = load_game(game_name)
    referee = Referee(game)
    started = time.process_time()
    for number in range(rows):
        referee.facts(game.parse(text_of(game_name, number)))
    return (time.process_time() - started) / rows


def text_of(game_name: str, number: int) -> str:
    """Return one of many positions of a game."""
    return f"{number}:4:7" if game_name == GAME else fen(number)


def overhead(rows: int) -> None:
    """Print rows per second with workers that answer at once."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (GAME, "chess"):
            reading_s = planning_s(name)
            texts = [text_of(name, number) for number in range(rows)]
            for kind in ("threads", "ray"):
                pool = instant_threads() if kind == "threads" else instant_ray(name)
                try:
                    speed = run_instantly(pool, name, iter(texts), Path(folder, f"{name}-{kind}.jsonl"))
                finally:
                    pool.close()
                own_s = speed.cpu_s / speed.rows - reading_s
                print(
                    f"{name:12} {kind:8} {speed.rows / speed.seconds:8.0f} rows/s, {speed.rows / speed.cpu_s:8.0f} rows"
                    f" a second of processor; a row: position {reading_s * 1e6:.0f} us, runner {own_s * 1e6:.0f} us"
                    f" ({1 / own_s:.0f} rows/s)",
                    flush=True,
                )


def fen(number: int) -> str:
    """Return one of many positions of chess: kings, and white men that may give check, with Black to move."""
    squares = [(number >> 6 * place) % 64 for place in range(3)]
    board = [["1"] * 8 for _ in range(8)]
    for square, man in zip((0, 63, *squares), "kKRNB", strict=True):
        board[square // 8][square % 8] = man
    board[0][0], board[7][7] = "k", "K"
    return "/".join(re.sub("1+", lambda run: str(len(run[0])), "".join(row)) for row in board) + " b - - 0 1"


def memory() -> None:
    """Print the peak memory of runs of growing length, each in a process of its own."""
    for kind in ("different", "equal"):
        for rows in (10_000, 100_000, 1_000_000):
            command = [sys.executable, __file__, "one-memory-run", "--rows", str(rows), "--kind", kind]
            print(f"{kind:10} {rows:8} rows:", end=" ", flush=True)
            subprocess.run(command, check=True, cwd=REPOSITORY, env=environment())


def one_memory_run(rows: int, kind: str) -> None:
    """Run so many rows, and print the peak."""
    pool = instant_threads()
    with tempfile.TemporaryDirectory() as folder:
        texts = (f"{number if kind == 'different' else 7}:4:7" for number in range(rows))
        speed = run_instantly(pool, GAME, texts, Path(folder, "rows.jsonl"))
    pool.close()
    print(f"{speed.peak_mb:.0f} MB at most, {speed.rows / speed.seconds:.0f} rows/s", flush=True)


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests")])}


def rows_of(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text().splitlines()]


def finished(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), cwd=REPOSITORY)


class Killed(NamedTuple):
    """What a run that was killed again and again has come to."""

    kills: int
    rows: int
    searched: int
    """Answers in all journals: one a position, and what was in flight at a kill once more."""


def kill_campaign(
    words: Sequence[str], output: Path, kills: int, least_s: float, most_s: float, seed: int = 1
) -> Killed:
    """Run a command until it ends, killing it so many times, each time after a random while.

    Raises
    ------
    AssertionError
        If a row is missing, twice, or out of order.
    """
    chance = random.Random(seed)
    done = 0
    while True:
        with subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=environment(), cwd=REPOSITORY, start_new_session=True,
        ) as driver:  # fmt: skip
            try:
                driver.wait(timeout=chance.uniform(least_s, most_s) if done < kills else None)
            except subprocess.TimeoutExpired:
                driver.kill()
                done += 1
            errors = driver.stderr.read() if driver.stderr else ""
        if driver.returncode != -signal.SIGKILL:
            assert driver.returncode == 0, errors
            break
        print(
            f"  killed {done} times, {len(output.read_bytes().splitlines()) if output.exists() else 0} rows", flush=True
        )
    rows = rows_of(output)
    assert [row["index"] for row in rows] == list(range(len(rows)))
    return Killed(done, len(rows), sum(row["duplicate_of"] is None for row in rows))


def ray_workers(driver: int) -> list[int]:
    """Return the Ray workers that a driver has started and that search."""
    from processes import descendants

    return [process.pid for process in descendants(driver) if process.command.startswith("ray::Worker.analyse")]


class TwoNodes:
    """A Ray cluster of two machines with a core each, of which one may be killed."""

    def __init__(self) -> None:
        from benchmarks.bench_faults import QUICK_HEALTH, patiently
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK_HEALTH}
        self.cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.nodes = [self._add(), self._add()]

    def _add(self) -> Any:
        from benchmarks.bench_faults import patiently

        return patiently(lambda: self.cluster.add_node(num_cpus=1, include_dashboard=False))

    def kill_one(self, chance: random.Random) -> None:
        """Kill all processes of a node at once; a new one joins."""
        from processes import descendants

        node = self.nodes.pop(chance.randrange(len(self.nodes)))
        raylet = node.all_processes["raylet"][0].process.pid
        for pid in [raylet, *(process.pid for process in descendants(raylet))]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self._add())

    def close(self) -> None:
        self.cluster.shutdown()


def kill_anything(words: Sequence[str], output: Path, kinds: Sequence[str], nodes: TwoNodes, rows: int) -> None:
    """Run a command until it ends; on the way kill a driver, a worker or a node each time some more rows are there."""
    chance = random.Random(3)
    thresholds = sorted(chance.sample(range(1, rows * 4 // 5), len(kinds)))
    left = list(zip(kinds, thresholds, strict=True))
    journal = output.with_name(output.name + SUFFIX)
    driver = start_driver(words)
    try:
        while driver.poll() is None or driver.returncode == -signal.SIGKILL:
            if driver.returncode is not None:
                driver = start_driver(words)
            kept = output.with_name("all" + SUFFIX)
            if journal.exists() and not kept.exists():
                # The run's end replaces the journal by another file.
                os.link(journal, kept)
            done = output.read_bytes().count(b"\n") if output.exists() else 0
            victims = ray_workers(os.getpid())
            if not left or done < left[0][1] or not victims:
                time.sleep(0.1)
                continue
            kind, _ = left.pop(0)
            time.sleep(chance.uniform(0.0, 0.5))
            if kind == "driver":
                driver.kill()
                driver.wait()
            elif kind == "worker":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(victims), signal.SIGKILL)
            else:
                nodes.kill_one(chance)
            print(f"  {kind} killed at {done} rows", flush=True)
    finally:
        driver.kill()
        _, errors = driver.communicate()
    assert driver.returncode == 0, errors
    assert not left, left


def start_driver(words: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
        cwd=REPOSITORY, start_new_session=True,
    )  # fmt: skip


def kill(kills: int, nodes: int) -> None:
    """Print what kills do to a run over WAC: nothing."""
    suite = str(DATA / "chess" / "epd" / "wac300.epd")
    kinds = [("driver", "worker", "node")[number % 3] for number in range(kills)]
    random.Random(1).shuffle(kinds)
    asked = ["chess", suite, "--nodes", str(nodes), "--table", "4", "--fresh"]
    with tempfile.TemporaryDirectory() as folder:
        whole, output = Path(folder, "whole.jsonl"), Path(folder, "killed.jsonl")
        run_json(*asked, "-o", str(whole), "--workers", str(WORKERS))
        true = rows_of(whole)
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
        with closing(TwoNodes()) as machines:
            words = [*asked, "-o", str(output), "--address", machines.cluster.address]
            kill_anything(words, output, kinds, machines, len(true))
        rows = rows_of(output)
        same = sum(
            all(mine[key] == its[key] for key in ("index", "best_move", "score", "depth", "nodes", "pv"))
            for mine, its in zip(rows, true, strict=True)
        )
        journal, _ = Journal.open(output.with_name("all" + SUFFIX))
        with journal:
            answers = [item.identity for item in journal.recover() if isinstance(item, JournalledAnswer)]
        again = sum(row["attempts"] > 1 for row in rows)
        print(
            f"{len(kinds)} kills ({', '.join(f'{kinds.count(kind)} {kind}' for kind in sorted(set(kinds)))}):"
            f" {len(rows)} rows in order, {same} equal to those of a run without any kill; {len(answers)} answers came"
            f" in, {len(answers) - len(set(answers))} twice; {again} positions had a worker that died over them",
            flush=True,
        )


def run_json(*words: str) -> dict[str, Any]:
    done = finished([*COMMAND, *words, "--json"])
    assert done.returncode in (0, 1), done.stderr
    return dict(json.loads(done.stdout))


def scaling(positions: int, nodes: int) -> None:
    """Print two workers' speed beside that of two runs of one worker at once."""
    lines = (DATA / "chess" / "epd" / "wac300.epd").read_text().splitlines()[:positions]
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "all.epd")
        halves = [Path(folder, f"half{number}.epd") for number in range(2)]
        whole.write_text("\n".join(lines) + "\n")
        for number, half in enumerate(halves):
            half.write_text("\n".join(lines[number::2]) + "\n")
        asked = ["--nodes", str(nodes), "--fresh", "--table", "4"]
        for turn in range(3):
            two = run_json("chess", str(whole), "-o", str(Path(folder, f"two{turn}.jsonl")), "--workers", "2", *asked)
            pair = []
            for half in halves:
                output = str(Path(folder, f"{half.stem}-{turn}.jsonl"))
                words = [*COMMAND, "chess", str(half), "-o", output, "--workers", "1", *asked, "--json"]
                pair.append(
                    subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment(), cwd=REPOSITORY)
                )
            limit = sum(json.loads(run.communicate()[0])["nodes_per_s"] for run in pair)
            print(
                f"two workers {two['nodes_per_s'] / 1e6:.2f} M nodes/s, two runs at once {limit / 1e6:.2f} M nodes/s:"
                f" {two['nodes_per_s'] / limit:.3f} of the machine's limit",
                flush=True,
            )


def connect_four() -> None:
    """Print the time of three sets of known scores."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("Test_L3_R1", "Test_L2_R1", "Test_L1_R1"):
            path = DATA / "connect4" / name
            output = str(Path(folder, f"{name}.jsonl"))
            found = run_json("connect_four", str(path), "-o", output, "--depth", "42", "--workers", str(WORKERS))
            print(
                f"{name}: {found['solved']} of {found['scored']} scores right in {found['time_s']:.1f} s,"
                f" {found['nodes_per_s'] / 1e6:.1f} M nodes/s",
                flush=True,
            )


def suite(nodes: int) -> None:
    """Print WAC's solved count, and whether one worker and two write the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = []
        for workers in (1, 2):
            outputs.append(Path(folder, f"wac{workers}.jsonl"))
            found = run_json(
                "chess", str(DATA / "chess" / "epd" / "wac300.epd"), "-o", str(outputs[-1]), "--nodes", str(nodes),
                "--deterministic", "--table", "4", "--workers", str(workers),
            )  # fmt: skip
            print(
                f"WAC, {nodes} nodes, {workers} workers: {found['solved']} of {found['scored']} solved,"
                f" {found['time_s']} s"
            )
        is_equal = outputs[0].read_bytes() == outputs[1].read_bytes()
        print(f"equal bytes on one worker and on two: {is_equal}", flush=True)


def main() -> None:
    """Run some parts, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--rows", type=int, default=100_000, help="of the overhead's runs")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=100_000, help="of each position, for kill, scaling and suite")
    parser.add_argument("--positions", type=int, default=200, help="for scaling")
    parser.add_argument("--kind", default="different", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parts == ["one-memory-run"]:
        one_memory_run(options.rows, options.kind)
        return
    parts: dict[str, Callable[[], None]] = {
        "overhead": lambda: overhead(options.rows),
        "memory": memory,
        "kill": lambda: kill(options.kills, options.nodes),
        "scaling": lambda: scaling(options.positions, options.nodes),
        "connect_four": connect_four,
        "suite": lambda: suite(options.nodes),
    }
    for part in options.parts or parts:
        if part not in parts:
            parser.error(f"there is no part {part}: there are {', '.join(parts)}")
        print(f"== {part}", flush=True)
        parts[part]()


if __name__ == "__main__":
    main()
