"""Feeds damaged and invented inputs to whatever reads from outside: only our own errors may come, and no memory go.

Run it as ``python tests/benchmarks/bench_fuzz.py [--inputs 1000000] [--seed 1] [--targets records checkpoint ...]``.
Inputs are valid ones with bits flipped, ends cut, pieces doubled, or a value within replaced and signed anew.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from cluster import checkpoint, records
from cluster.checkpoint import Checkpoint, Identity
from cluster.executor import SerialExecutor
from cluster.fingerprint import Fingerprint
from cluster.records import Task, TaskResult
from cluster.request import SearchRequest
from cluster.session import Session
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.results import Iteration, RootLine
from search.statistics import Statistics
from tt_store import exchange, snapshot
from tt_store.bulk import DATA, Words, table_words
from tt_store.errors import RootsplitError
from tt_store.layout import BOUND_SHIFT
from tt_store.segment import Segment

JUNK = (None, True, -1, 0, 1, 1 << 15, 1 << 31, -(1 << 63), (1 << 64) - 1, 0.5, float("nan"), float("inf"), "", "text",
        b"", b"bytes", [], [[]], {}, {"a": 1})  # fmt: skip
COUNTS = Statistics(*range(len(Statistics._fields)))
TASKS = [Task(number, 1, (1, 2), 5, -9, 9, 0, 0, 100, 0, 0, (4, 5)) for number in (1, 2)]
RESULTS = [TaskResult(number, 1, 3, -9, 9, 0, (7, 8), COUNTS, 0.5, 7) for number in (1, 2)]
IDENTITY = Identity("nim", (1, 2), (), 0, (1,), 1, (), Fingerprint("a", "b"))
ITERATIONS = tuple(Iteration(depth, (RootLine(4, (1, 2), False),), COUNTS, 0.1 * depth, 0) for depth in (1, 2, 3))


@dataclass
class Target:
    """Something that reads, with how to make inputs for it."""

    share: float
    """Of all inputs."""
    make: Callable[[random.Random], bytes]
    read: Callable[[bytes], object]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return a valid input with some damage."""
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(damaged) + 1)
        kind = chance.randrange(5)
        if kind == 0 and at < len(damaged):
            damaged[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(damaged):
            damaged[at] = chance.randrange(256)
        elif kind == 2:
            del damaged[at:]
        elif kind == 3:
            damaged[at:at] = damaged[at : at + chance.randrange(1, 40)]
        else:
            damaged[at:at] = chance.randbytes(chance.randrange(1, 9))
    return bytes(damaged)


def replaced(value: Any, chance: random.Random) -> Any:
    """Return nested lists with one value replaced by junk."""
    if isinstance(value, (list, tuple)) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], replaced(value[at], chance), *value[at + 1 :]]
    return chance.choice(JUNK)


def message_maker(rows: list[Any]) -> Callable[[random.Random], bytes]:
    plain = [list(row) for row in rows]
    packed = msgpack.packb(plain)

    def make(chance: random.Random) -> bytes:
        return mutated(packed, chance) if chance.random() < 0.5 else msgpack.packb(replaced(plain, chance))

    return make


def make_checkpoint(chance: random.Random) -> bytes:
    row = [checkpoint.VERSION, IDENTITY, [checkpoint._row(item) for item in ITERATIONS], [ENTRIES]]
    if chance.random() < 0.7:
        body = mutated(msgpack.packb(row), chance) if chance.random() < 0.3 else msgpack.packb(replaced(row, chance))
        return checkpoint.MAGIC + checkpoint._checksum(body) + body
    body = msgpack.packb(row)
    return mutated(checkpoint.MAGIC + checkpoint._checksum(body) + body, chance)


def make_batch(chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return mutated(ENTRIES, chance)
    return exchange.pack(entries(chance.randbytes(16 * chance.randrange(1, 20))))


def entries(content: bytes) -> Words:
    """Return keys and data that have a bound, whatever else they say."""
    words = np.frombuffer(content, np.uint64).reshape(-1, 2).copy()
    words[:, DATA] |= np.uint64(1 << BOUND_SHIFT)
    return words


ENTRIES = exchange.pack(entries(random.Random(2).randbytes(160)))


def targets(folder: Path) -> dict[str, Target]:
    """Return all readers."""
    file = folder / "input"
    segment = Segment.private(0.05)
    with Segment.private(0.01) as filled:
        exchange.deliver(filled, exchange.pack(entries(random.Random(3).randbytes(1600))))
        snapshot.save(filled, file, game="nim")
    saved = file.read_bytes()

    def read_checkpoint(content: bytes) -> None:
        file.write_bytes(content)
        checkpoint.load(file, IDENTITY)

    def read_snapshot(content: bytes) -> None:
        file.write_bytes(content)
        snapshot.load(segment, file, game="nim")

    checkpoint.save(Checkpoint(IDENTITY, ITERATIONS, (ENTRIES,)), file)
    assert checkpoint.load(file, IDENTITY).iterations == ITERATIONS
    return {
        "tasks": Target(0.35, message_maker(TASKS), records.unpack_tasks),
        "results": Target(0.35, message_maker(RESULTS), records.unpack_results),
        "batch": Target(0.2, make_batch, lambda content: exchange.deliver(segment, content)),
        "checkpoint": Target(0.08, make_checkpoint, read_checkpoint),
        "snapshot": Target(0.0195, lambda chance: mutated(saved, chance), read_snapshot),
        "table": Target(0.0005, lambda chance: chance.randbytes(8), TornTables().search),
    }


class TornTables:
    """Searches on a table full of words that nobody wrote: any value may come, but a legal line."""

    def __init__(self) -> None:
        self._game = load_game("tic_tac_toe")
        self._referee = Referee(self._game)

    def search(self, seed: bytes) -> None:
        """Search with noise in the table whose keys fit their buckets."""
        executor = SerialExecutor(self._game, 1, 0.05)
        with Session(self._game, executor, 0.05) as session:
            table = table_words(executor._segment)
            generator = np.random.default_rng(int.from_bytes(seed, "little"))
            table[:] = generator.integers(0, 1 << 64, table.shape, np.uint64)
            report = session.search(SearchRequest("", limits=Limits(depth=4)))
            position = report.result.position
            assert tuple(self._referee.legal_prefix(position, report.result.line)[0]) == report.result.line
            assert report.result.best_move in self._referee.legal_moves(position)


def fuzz(target: Target, inputs: int, chance: random.Random) -> tuple[int, int]:
    """Feed a target; returns how many inputs it took and how many it refused. Whatever else happens is raised."""
    refused = 0
    for _ in range(inputs):
        content = target.make(chance)
        try:
            target.read(content)
        except RootsplitError:
            refused += 1
        except BaseException:
            print(f"input: {content.hex()}", file=sys.stderr)
            raise
    return inputs - refused, refused


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print a line for each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for name, target in targets(Path(folder)).items():
            if options.targets and name not in options.targets:
                continue
            fuzz(target, 100, random.Random(0))
            before_mb, started_s = memory_mb(), time.monotonic()
            taken, refused = fuzz(target, max(1, int(options.inputs * target.share)), random.Random(options.seed))
            print(
                f"{name:10} {taken + refused:8} inputs, {refused:8} refused, {taken:7} taken,"
                f" {time.monotonic() - started_s:6.0f} s, memory grew by {memory_mb() - before_mb:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
