"""Says random words to ``rootsplit uci`` through pipes: no crash, no hang, and one best move for each ``go``.

Run it as ``python tests/benchmarks/fuzz_uci.py [--lines 10000] [--seed 1] [--workers 2] [--address local]``. Lines are
of one to seven words of the protocol, or of none, and some make sense; each twentieth is followed by ``stop``, as a
search that nothing ends is one of the things that can come of it.
"""

from __future__ import annotations

import argparse
import contextlib
import queue
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

LATEST_S = 120.0
"""For an answer, on a busy machine whose kernels may have to be compiled first."""
COMMANDS = ("uci", "isready", "ucinewgame", "setoption", "position", "go", "stop", "ponderhit")
VOCABULARY = (
    "uci isready stop ponderhit ucinewgame go infinite ponder depth 3 nodes 50 movetime 1 wtime btime winc movestogo"
    " 100 -5 0 x mate searchmoves e2e4 e7e8q position startpos fen moves e7e5 8/8 w - setoption name MultiPV value 1 3"
    " Contempt 10 Clear Hash UCI_Chess960 true false debug register joho quitx \u00e9 \x00"
)
SENSIBLE = (
    "go depth 4",
    "go movetime 5",
    "go infinite",
    "go ponder wtime 200 btime 200",
    "go nodes 500 searchmoves e2e4 d2d4",
    "position startpos moves e2e4 e7e5",
    "position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
    "position fen 4k3/8/8/8/8/8/4P3/4K3 w - - 99 80 moves e2e3",
    "setoption name MultiPV value 4",
)
REOPENING = ("setoption name Hash value 2", "setoption name Threads value 1", "go mate 1")
"""They have workers started anew, which takes seconds on Ray."""
SENSIBLE_SHARE = 0.3


class Engine:
    """A process that speaks UCI."""

    def __init__(self, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "cluster.cli", "uci", "--table", "8", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.heard: Counter[str] = Counter()
        """How often each first word of a line came."""
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear_until(self, word: str) -> None:
        """Take lines until one begins with a word."""
        for heard in self._take(LATEST_S):
            if heard == word:
                return
        raise SystemExit(f"no {word!r} within {LATEST_S:.0f} s, exit code {self.process.poll()}: {dict(self.heard)}")

    def hear_all(self) -> None:
        """Take the lines that are there."""
        for _heard in self._take(0.0):
            pass

    def _take(self, timeout_s: float) -> Iterator[str]:
        until_s = time.monotonic() + timeout_s
        with contextlib.suppress(queue.Empty):
            while (line := self._lines.get(timeout=max(0.0, until_s - time.monotonic()))) is not None:
                first = (line.split() or [""])[0]
                self.heard[first] += 1
                yield first


def is_go(line: str) -> bool:
    """Tell whether a line is a ``go``: words before the first one of the protocol are passed over."""
    return next((word for word in line.split() if word in COMMANDS), "") == "go"


def main() -> None:
    """Say the lines, and count what comes back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--address")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    address = [] if options.address is None else ["--address", options.address]
    engine = Engine(["--workers", str(options.workers), *address])
    started_s = time.monotonic()
    sensible = SENSIBLE if options.address else SENSIBLE + REOPENING
    vocabulary, goes = VOCABULARY.split(" "), 0
    for number in range(options.lines):
        line = " ".join(chance.choice(vocabulary) for _ in range(chance.randrange(1, 8)))
        if chance.random() < SENSIBLE_SHARE:
            line = chance.choice(sensible)
        goes += is_go(line)
        engine.say(line)
        if number % 20 == 0:
            engine.say("stop")
            engine.hear_all()
    # It is there in the end: the last answer comes after all others.
    for line in ("stop", "setoption name MultiPV value 1", "position startpos", "go depth 1"):
        engine.say(line)
    while engine.heard["bestmove"] < goes + 1:
        engine.hear_until("bestmove")
    engine.say("quit")
    exit_code = engine.process.wait(LATEST_S)
    engine.hear_all()
    print(
        f"{options.lines} lines, {goes + 1} go, {engine.heard['bestmove']} bestmove, exit code {exit_code},"
        f" {time.monotonic() - started_s:.0f} s"
    )
    if engine.heard["bestmove"] != goes + 1 or exit_code != 0:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
