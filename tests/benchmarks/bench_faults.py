"""Searches on a cluster of several Ray nodes, each with a fault in its middle: the value must be the sequential one.

Run it as ``python tests/benchmarks/bench_faults.py [--searches 100] [--faults sigkill node ...] [--seed 1] [--json]``.
It starts a cluster of its own on this machine. A fault's recovery is the time until all workers are there again.
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
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from cluster.cluster_options import ClusterOptions
from cluster.ray_executor import RayExecutor
from cluster.ray_machines import Machine, Member
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.split_settings import SplitSettings
from search.driver import search
from search.flags import Flags
from search.limits import Limits
from search.referee import Referee
from search.rules import Game, load_game
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
SETTINGS = SplitSettings(grain_s=0.02)
QUICK_HEALTH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}


@dataclass
class Tally:
    """What came of the searches with one kind of fault."""

    searches: int = 0
    landed: int = 0
    """In the middle of the search."""
    wrong: int = 0
    hangs: int = 0
    recovery_s: list[float] = field(default_factory=list)


class Stage:
    """A cluster with a session, and what a fault may hit."""

    def __init__(self, nodes: int, workers_a_node: int, chance: random.Random) -> None:
        self.chance, self.notices = chance, list[str]()
        self.workers_a_node = workers_a_node
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK_HEALTH}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes: dict[str, Any] = {}
        for _ in range(nodes):
            self.add_node()
        self.wanted = nodes * workers_a_node
        self.game = load_game(GAME)
        self.executor = RayExecutor(
            self.game, None, TABLE_MB, self.cluster.address, flags=EXACT, notice=self.notices.append,
            options=ClusterOptions(hang_s=HANG_S),
        )  # fmt: skip
        self.session = Session(self.game, self.executor, TABLE_MB, self.notices.append)

    def add_node(self) -> None:
        node = self.cluster.add_node(num_cpus=self.workers_a_node, include_dashboard=False)
        self.nodes[node.node_id] = node

    def make_whole(self) -> None:
        """Give the cluster its nodes back, and the fleet its budgets, as a new search on a good day would find them."""
        while len(self.nodes) * self.workers_a_node < self.wanted:
            self.add_node()
        for member in self.executor._fleet.members.values():
            member.respawns = 0
        self.executor._fleet._opened.clear()

    def member(self) -> Member:
        return self.chance.choice([*self.executor._fleet.members.values()])

    def machine(self) -> Machine:
        return self.chance.choice(self.executor._fleet.machines)

    def close(self) -> None:
        self.session.close()
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
    stage.make_whole()
    if not wait_for_workers(stage):
        tally.hangs += 1
        return
    request = request_of(stage.game, stage.chance, depth)
    happened_s = 0.0

    def strike() -> None:
        nonlocal happened_s
        happened_s = time.monotonic()
        FAULTS[kind](stage)

    # A watchdog of the campaign's own: a hang is an outcome, not the end.
    limit = threading.Timer(LONGEST_S, stage.session.stop)
    timer = threading.Timer(stage.chance.uniform(0.0, 0.2), strike)
    struck_at = stage.chance.randrange(depth - 6, depth - 1)
    limit.start()
    report = stage.session.search(request, lambda done: timer.start() if done.depth == struck_at else None)
    ended_s = time.monotonic()
    limit.cancel()
    if timer.ident is None:
        return  # Solved before its time.
    timer.join()
    tally.searches += 1
    tally.landed += happened_s < ended_s
    is_hang = report.result.depth < depth and not report.result.is_solved
    tally.hangs += is_hang
    if not is_hang:
        tally.wrong += report.result.score != sequential_score(stage.game, request)
    if kind == "node":
        stage.add_node()
    if wait_for_workers(stage):
        tally.recovery_s.append(time.monotonic() - happened_s)
    else:
        tally.hangs += 1


def wait_for_workers(stage: Stage) -> bool:
    """Wait until all workers are there, and alive for some time."""
    end_s, since_s = time.monotonic() + LONGEST_S, time.monotonic()
    while time.monotonic() < end_s:
        before = len(stage.notices)
        stage.executor.poll(0.05)
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
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
            end_s = time.monotonic() + LONGEST_S
            while not Path(folder, "search.rcp").exists() and time.monotonic() < end_s and driver.poll() is None:
                time.sleep(0.05)
            tally.landed += driver.poll() is None
            driver.kill()
        killed_s = time.monotonic()
        try:
            run = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_S, check=True)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            print(f"driver: {error} {error.stderr}", file=sys.stderr)
            tally.hangs += 1
            return
        finally:
            tally.searches += 1
    tally.recovery_s.append(time.monotonic() - killed_s)
    # By default deeper entries of the table may change an estimate, so only proved scores can be compared.
    report = json.loads(run.stdout)
    is_whole = report["depth"] == depth or report["solved"]
    true = sequential_score(stage.game, request) if report["solved"] else report["score"]
    tally.wrong += not is_whole or report["score"] != true


def campaign(searches: int, kinds: list[str], seed: int, depth: int) -> dict[str, Tally]:
    """Run the searches in rounds, each on a cluster of another shape."""
    chance = random.Random(seed)
    tallies = {kind: Tally() for kind in kinds}
    waiting = [kinds[number % len(kinds)] for number in range(searches)]
    chance.shuffle(waiting)
    while waiting:
        nodes = chance.choice([2, 3]) if {"node", "batch"} & {*waiting} else chance.choice([1, 2, 3])
        round_, waiting = waiting[:25], waiting[25:]
        stage = Stage(nodes, 2 if nodes == 1 else 1, chance)
        try:
            for kind in (kind for kind in round_ if kind != DRIVER):
                search_with(stage, kind, depth, tallies[kind])
                print(f"{kind}: {tallies[kind]}", file=sys.stderr, flush=True)
            stage.session.close()
            for _ in range(round_.count(DRIVER)):
                search_and_kill_driver(stage, depth, tallies[DRIVER])
                print(f"{DRIVER}: {tallies[DRIVER]}", file=sys.stderr, flush=True)
        finally:
            stage.close()
    return tallies


def main() -> None:
    """Print a table of counts and recovery times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--faults", nargs="+", choices=[*FAULTS, DRIVER], default=[*FAULTS, DRIVER])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    tallies = campaign(options.searches, options.faults, options.seed, options.depth)
    left = [str(table.path) for table in leftovers() if not table.alive]
    if options.json:
        print(json.dumps({"faults": {kind: asdict(tally) for kind, tally in tallies.items()}, "leftovers": left}))
        return
    print(f"{'fault':10} {'searches':>8} {'landed':>6} {'wrong':>5} {'hangs':>5} {'median s':>8} {'worst s':>8}")
    for kind, tally in tallies.items():
        times = tally.recovery_s or [float("nan")]
        print(
            f"{kind:10} {tally.searches:8} {tally.landed:6} {tally.wrong:5} {tally.hangs:5}"
            f" {statistics.median(times):8.1f} {max(times):8.1f}"
        )
    print(f"leftovers: {len(left)} {' '.join(left)}")


if __name__ == "__main__":
    main()
