"""Searches and batches on a cluster of several Ray nodes, each with a fault in its middle: nothing may be wrong.

Run it as ``python tests/benchmarks/bench_faults.py [--searches 100] [--batches 20] [--faults sigkill node ...]
[--seed 1] [--json]``. It starts a cluster of its own on this machine. A search's value must be the sequential one, the
rows of a batch those of one without faults, each once. A fault's recovery is the time until all workers are there
again; of a killed driver, until the next one has ended.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from cluster.batch.index import AnswerIndex
from cluster.batch.journal import Journal
from cluster.batch.planner import Planner
from cluster.batch.pool import Pool, thread_pool
from cluster.batch.ray_pool import RayPool
from cluster.batch.readers import read_rows
from cluster.batch.results import ResultRow
from cluster.batch.rows import ReadOptions
from cluster.batch.runner import Runner
from cluster.batch.settings import RunSettings
from cluster.cluster_options import ClusterOptions
from cluster.ray_executor import RayExecutor
from cluster.ray_machines import Machine, Member
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.split_settings import SplitSettings
from search.driver import Iteration, search
from search.flags import Flags
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.rules import Game
from tt_store.owner import owner_named
from tt_store.reclaim import leftovers

GAME = "connect_four"
EXACT = Flags(exact_depth=True)
TABLE_MB = 16.0
HANG_S = 4.0
SLOW_S = 2.0
"""How long a slow worker stands still: shorter than it takes to count as hung."""
LONGEST_S = 120.0
"""A search that takes longer, or a cluster that is not whole again after it, counts as a hang."""
ROUND = 25
"""Runs on one cluster."""
SETTINGS = SplitSettings(grain_s=0.02)
BATCH_DEPTH, BATCH_ROWS = 17, 40
BATCH = RunSettings(Limits(depth=BATCH_DEPTH), table_mb=TABLE_MB, is_deterministic=True)
QUICK_HEALTH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}


@dataclass
class Tally:
    """What came of the runs, searches or batches, with one kind of fault."""

    runs: int = 0
    landed: int = 0
    """In the middle of the run."""
    wrong: int = 0
    """Values of searches; rows of batches that differ, are lost or doubled."""
    hangs: int = 0
    recovery_s: list[float] = field(default_factory=list)


def patiently(start: Callable[[], Any]) -> Any:
    """Start a part of a cluster; on a busy machine Ray itself may give up the first times."""
    for is_last in (False, False, True):
        try:
            return start()
        except Exception as error:
            if is_last or "timed out during startup" not in str(error):
                raise
            print(error, file=sys.stderr)


class Stage:
    """A cluster with workers for searches or for batches, and what a fault may hit."""

    def __init__(self, nodes: int, workers_a_node: int, chance: random.Random, is_for_batches: bool) -> None:
        self.chance, self.notices = chance, list[str]()
        self.workers_a_node = workers_a_node
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK_HEALTH}
        self.cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.nodes: dict[str, Any] = {}
        for _ in range(nodes):
            self.add_node()
        self.wanted = nodes * workers_a_node
        self.game = load_game(GAME)
        options, notice = ClusterOptions(hang_s=HANG_S), self.notices.append
        self.pool: RayPool | None = None
        self.session: Session | None = None
        if is_for_batches:
            self.pool = RayPool(self.game, BATCH, None, self.cluster.address, notice, options)
            self.executor = self.pool._executor
        else:
            self.executor = RayExecutor(
                self.game, None, TABLE_MB, self.cluster.address, flags=EXACT, notice=notice, options=options
            )
            self.session = Session(self.game, self.executor, TABLE_MB, notice)

    def add_node(self) -> None:
        node = patiently(lambda: self.cluster.add_node(num_cpus=self.workers_a_node, include_dashboard=False))
        self.nodes[node.node_id] = node

    def add_missing_nodes(self) -> None:
        while len(self.nodes) * self.workers_a_node < self.wanted:
            self.add_node()

    def make_whole(self) -> None:
        """Give the cluster its nodes back, and the fleet its budgets, as a new search on a good day would find them."""
        self.add_missing_nodes()
        for member in self.executor._fleet.members.values():
            member.respawns = 0
        self.executor._fleet._opened.clear()

    def member(self) -> Member:
        return self.chance.choice([*self.executor._fleet.members.values()])

    def machine(self) -> Machine:
        return self.chance.choice(self.executor._fleet.machines)

    def poll(self) -> None:
        (self.pool or self.executor).poll(0.05)

    def leave(self) -> None:
        """Take this process off the cluster."""
        (self.pool or self.session).close()

    def close(self) -> None:
        self.leave()
        self.cluster.shutdown()


# The faults.


def kill_worker(stage: Stage) -> None:
    os.kill(stage.member().pid, signal.SIGKILL)


def stop_worker(stage: Stage) -> None:
    os.kill(stage.member().pid, signal.SIGSTOP)


def slow_worker(stage: Stage) -> None:
    pid = stage.member().pid
    os.kill(pid, signal.SIGSTOP)
    time.sleep(SLOW_S)
    os.kill(pid, signal.SIGCONT)


def kill_actor(stage: Stage) -> None:
    ray.kill(stage.member().actor)


def remove_node(stage: Stage) -> None:
    node_id = stage.chance.choice([*stage.nodes])
    stage.cluster.remove_node(stage.nodes.pop(node_id), allow_graceful=False)


def kill_agent(stage: Stage) -> None:
    owner = owner_named(Path(stage.machine().path).name)
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)


def overwrite_table(stage: Stage) -> None:
    """Write noise over a tenth of a table, as a broken or wicked process might."""
    segment = stage.machine().segment
    assert segment is not None
    for _ in range(100):
        place = stage.chance.randrange(0, segment.size_bytes - 16_384, 64)
        noise = stage.chance.randbytes(segment.size_bytes // 1000)[:16_384]
        ctypes.memmove(segment.table_address + place, noise, len(noise))


def damage_batch(stage: Stage) -> None:
    """Give a machine a batch of another one with some bits flipped, and one that is nonsense."""
    message = bytearray(ray.get(stage.machine().agent.collect.remote(), timeout=10) or b"ROOTSXC1" + bytes(64))
    for _ in range(3):
        message[stage.chance.randrange(len(message))] ^= 1 << stage.chance.randrange(8)
    agent = stage.machine().agent
    agent.deliver.remote(bytes(message))
    agent.deliver.remote(stage.chance.randbytes(1000))


FAULTS: dict[str, Callable[[Stage], None]] = {
    "sigkill": kill_worker,
    "sigstop": stop_worker,
    "slow": slow_worker,
    "ray.kill": kill_actor,
    "node": remove_node,
    "agent": kill_agent,
    "table": overwrite_table,
    "batch": damage_batch,
}
DRIVER = "driver"
NO_BATCH_FAULTS = {"table", "batch"}
"""They hit tables that machines share: rows that can be compared are of workers with tables of their own."""


class Strike:
    """A fault that happens some time after the word was given.

    Parameters
    ----------
    stage
        Its place.
    kind
        Which of `FAULTS`.
    """

    def __init__(self, stage: Stage, kind: str) -> None:
        self.happened_s = 0.0
        self._stage, self._kind = stage, kind
        self._timer: threading.Timer | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether the word was given."""
        return self._timer is not None

    def within(self, seconds: float) -> None:
        """Give the word."""
        self._timer = threading.Timer(self._stage.chance.uniform(0.0, seconds), self._happen)
        self._timer.start()

    def wait(self) -> None:
        """Wait until it has happened."""
        assert self._timer is not None
        self._timer.join()

    def _happen(self) -> None:
        self.happened_s = time.monotonic()
        FAULTS[self._kind](self._stage)


# The campaign.


def request_of(game: Game, chance: random.Random, depth: int) -> SearchRequest:
    """Return a search of a position some random moves into the game."""
    referee = Referee(game, lambda _line: None)
    while True:
        columns, position = "", game.parse("")
        for _ in range(chance.randrange(1, 6)):
            move = chance.choice(referee.legal_moves(position))
            columns += game.move_text(position, move)
            position = referee.play(position, move)
        if not referee.facts(position).is_over:
            return SearchRequest(columns, limits=Limits(depth=depth), settings=SETTINGS)


def sequential_score(game: Game, request: SearchRequest) -> int:
    position = game.parse(request.position)
    return search(game, position, request.limits, flags=EXACT, notice=lambda _line: None).score


def search_with(stage: Stage, kind: str, depth: int, tally: Tally) -> None:
    """Search with a fault, and wait until the cluster is whole again."""
    assert stage.session is not None
    stage.make_whole()
    if not wait_for_workers(stage):
        tally.hangs += 1
        return
    strike = Strike(stage, kind)
    # A watchdog of the campaign's own: a hang is an outcome, not the end.
    limit = threading.Timer(LONGEST_S, stage.session.stop)
    limit.start()
    # One that is solved before its time is followed by another.
    while not strike.is_wanted:
        request = request_of(stage.game, stage.chance, depth)
        struck_at = stage.chance.randrange(depth - 8, depth - 2)
        begun_s = time.monotonic()

        def on_iteration(done: Iteration, struck_at: int = struck_at, begun_s: float = begun_s) -> None:
            if done.depth == struck_at:
                # What is still to come takes longer than all before.
                strike.within(time.monotonic() - begun_s)

        report = stage.session.search(request, on_iteration)
    ended_s = time.monotonic()
    limit.cancel()
    is_hang = report.result.depth < depth and not report.result.is_solved
    note(stage, strike, tally, ended_s, is_hang)
    if not is_hang:
        tally.wrong += report.result.score != sequential_score(stage.game, request)


def note(stage: Stage, strike: Strike, tally: Tally, ended_s: float, is_hang: bool) -> None:
    """Count a run with a fault, and how long the cluster took to be whole again."""
    strike.wait()
    tally.runs += 1
    tally.landed += strike.happened_s < ended_s
    tally.hangs += is_hang
    stage.add_missing_nodes()
    if wait_for_workers(stage):
        tally.recovery_s.append(time.monotonic() - strike.happened_s)
    else:
        tally.hangs += 1


def rows_of_batch(
    stage_game: Game, pool: Pool, positions: Path, on_row: Callable[[Runner, int], None]
) -> list[ResultRow]:
    """Run a batch, and return its rows; `on_row` learns how many there are."""
    planner = Planner(stage_game, Referee(stage_game, lambda _line: None), BATCH)
    rows: list[ResultRow] = []
    with Journal.temporary() as journal:
        runner = Runner(planner, pool, BATCH, journal, AnswerIndex())
        on_row(runner, 0)
        for row in runner.run(read_rows([str(positions)], stage_game, ReadOptions())):
            if row is not None:
                rows.append(row)
                on_row(runner, len(rows))
    return rows


def differences(rows: Sequence[ResultRow], true: Sequence[ResultRow]) -> int:
    """Return how many rows differ, are lost, doubled or out of place."""
    return sum(mine != its for mine, its in zip(rows, true, strict=False)) + abs(len(true) - len(rows))


def batch_with(stage: Stage, kind: str, positions: Path, true: Sequence[ResultRow], tally: Tally) -> None:
    """Run a batch with a fault, and wait until the cluster is whole again."""
    assert stage.pool is not None
    stage.make_whole()
    if not wait_for_workers(stage):
        tally.hangs += 1
        return
    strike, timers = Strike(stage, kind), list[threading.Timer]()
    struck_at = stage.chance.randrange(1, len(true) // 2)

    def on_row(runner: Runner, count: int) -> None:
        if count == 0:
            timers.append(threading.Timer(LONGEST_S, runner.stop))
            timers[0].start()
        elif count == struck_at:
            strike.within(1.0)

    rows = rows_of_batch(stage.game, stage.pool, positions, on_row)
    ended_s = time.monotonic()
    timers[0].cancel()
    is_hang = len(rows) < len(true)
    tally.wrong += differences(rows, true)
    note(stage, strike, tally, ended_s, is_hang)


def wait_for_workers(stage: Stage) -> bool:
    """Wait until all workers are there, and alive for some time."""
    end_s, since_s = time.monotonic() + LONGEST_S, time.monotonic()
    while time.monotonic() < end_s:
        before = len(stage.notices)
        stage.poll()
        if len(stage.executor.workers()) != stage.wanted or len(stage.notices) != before:
            since_s = time.monotonic()
        elif time.monotonic() - since_s > 2.5:
            return True
    return False


def search_and_kill_driver(stage: Stage, depth: int, tally: Tally) -> None:
    """Kill the command line's process in the middle of its search; the next one goes on with its checkpoint."""
    request = request_of(stage.game, stage.chance, depth)
    with tempfile.TemporaryDirectory() as folder:
        words = [
            sys.executable, "-m", "cluster.cli", "search", GAME, request.position, "--depth", str(depth), "--json",
            "--address", stage.cluster.address, "--table", str(TABLE_MB),
            "--checkpoint", f"{folder}/search.rcp", "--checkpoint-every", "0.2",
        ]  # fmt: skip
        output = run_and_kill(words, Path(folder, "search.rcp").exists, tally)
    if output is None:
        return
    # By default deeper entries of the table may change an estimate, so only proved scores can be compared.
    report = json.loads(output)
    is_whole = report["depth"] == depth or report["solved"]
    true = sequential_score(stage.game, request) if report["solved"] else report["score"]
    tally.wrong += not is_whole or report["score"] != true


def run_and_kill(words: list[str], is_time: Callable[[], bool], tally: Tally) -> str | None:
    """Run a command, kill it, run it to its end; returns what it prints then, None if it does not end well."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        end_s = time.monotonic() + LONGEST_S
        while not is_time() and time.monotonic() < end_s and driver.poll() is None:
            time.sleep(0.05)
        tally.landed += driver.poll() is None
        driver.kill()
    killed_s = time.monotonic()
    tally.runs += 1
    try:
        run = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_S, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(f"driver: {error} {error.stderr}", file=sys.stderr)
        tally.hangs += 1
        return None
    tally.recovery_s.append(time.monotonic() - killed_s)
    return run.stdout


def batch_and_kill_driver(stage: Stage, positions: Path, true: Sequence[ResultRow], tally: Tally) -> None:
    """Kill the command line's process in the middle of its batch; the same command goes on."""
    struck_at = stage.chance.randrange(1, len(true) // 2)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "rows.jsonl")
        words = [
            sys.executable, "-m", "cluster.cli", "analyse", GAME, str(positions), "-o", str(output),
            "--depth", str(BATCH_DEPTH), "--table", str(TABLE_MB), "--deterministic",
            "--address", stage.cluster.address,
        ]  # fmt: skip

        def lines() -> list[str]:
            return output.read_text().splitlines() if output.exists() else []

        if run_and_kill(words, lambda: len(lines()) >= struck_at, tally) is not None:
            rows, wanted = (
                [json.loads(line) for line in lines()],
                [json.loads(json.dumps(row.as_json())) for row in true],
            )
            tally.wrong += differences(rows, wanted)


def rounds_of(count: int, kinds: Sequence[str], chance: random.Random) -> Iterator[list[str]]:
    """Yield so many faults in random order, some at a time."""
    order = chance.sample(kinds, len(kinds))
    waiting = [order[number % len(kinds)] for number in range(count)]
    chance.shuffle(waiting)
    while waiting:
        round_, waiting = waiting[:ROUND], waiting[ROUND:]
        yield round_


def play(
    count: int,
    kinds: Sequence[str],
    chance: random.Random,
    is_for_batches: bool,
    run: Callable[[Stage, str, Tally], None],
    run_driver: Callable[[Stage, Tally], None],
) -> dict[str, Tally]:
    """Run so many searches or batches in rounds, each on a cluster of another shape."""
    tallies = {kind: Tally() for kind in kinds}
    for round_ in rounds_of(count, kinds, chance):
        nodes = chance.choice([2, 3]) if {"node", "batch"} & {*round_} else chance.choice([1, 2, 3])
        stage = Stage(nodes, 2 if nodes == 1 else 1, chance, is_for_batches)
        try:
            for kind in (kind for kind in round_ if kind != DRIVER):
                run(stage, kind, tallies[kind])
                print(f"{kind}: {tallies[kind]}", file=sys.stderr, flush=True)
            stage.leave()
            for _ in range(round_.count(DRIVER)):
                run_driver(stage, tallies[DRIVER])
                print(f"{DRIVER}: {tallies[DRIVER]}", file=sys.stderr, flush=True)
        finally:
            stage.close()
    return tallies


def campaign_of_batches(count: int, kinds: Sequence[str], chance: random.Random) -> dict[str, Tally]:
    """Run batches, all over the same positions."""
    game = load_game(GAME)
    with tempfile.TemporaryDirectory() as folder:
        positions = Path(folder, "positions.moves")
        positions.write_text("".join(f"{request_of(game, chance, 1).position}\n" for _ in range(BATCH_ROWS)))
        with closing(thread_pool(game, BATCH, 2)) as pool:
            true = rows_of_batch(game, pool, positions, lambda _runner, _count: None)
        return play(
            count, kinds, chance, True,
            lambda stage, kind, tally: batch_with(stage, kind, positions, true, tally),
            lambda stage, tally: batch_and_kill_driver(stage, positions, true, tally),
        )  # fmt: skip


def main() -> None:
    """Print a table of counts and recovery times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--batches", type=int, default=0)
    parser.add_argument("--faults", nargs="+", choices=[*FAULTS, DRIVER], default=[*FAULTS, DRIVER])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--depth", type=int, default=20, help="of the searches")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    chance = random.Random(options.seed)
    for_batches = [kind for kind in options.faults if kind not in NO_BATCH_FAULTS]
    tallies = {
        "search": play(
            options.searches, options.faults, chance, False,
            lambda stage, kind, tally: search_with(stage, kind, options.depth, tally),
            lambda stage, tally: search_and_kill_driver(stage, options.depth, tally),
        ),
        "batch": campaign_of_batches(options.batches, for_batches, chance) if options.batches else {},
    }  # fmt: skip
    left = [str(table.path) for table in leftovers() if not table.alive]
    if options.json:
        faults = {work: {kind: asdict(tally) for kind, tally in row.items()} for work, row in tallies.items()}
        print(json.dumps({"faults": faults, "leftovers": left}))
        return
    print(f"{'work':7} {'fault':10} {'runs':>5} {'landed':>6} {'wrong':>5} {'hangs':>5} {'median s':>8} {'worst s':>8}")
    for work, row in tallies.items():
        for kind, tally in row.items():
            times = tally.recovery_s or [float("nan")]
            print(
                f"{work:7} {kind:10} {tally.runs:5} {tally.landed:6} {tally.wrong:5} {tally.hangs:5}"
                f" {statistics.median(times):8.1f} {max(times):8.1f}"
            )
    print(f"leftovers: {len(left)} {' '.join(left)}")


if __name__ == "__main__":
    main()
