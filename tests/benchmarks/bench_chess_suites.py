"""The chess search on public test suites: how many positions it solves, and how fast and deep it searches.

Run it as ``python tests/benchmarks/bench_chess_suites.py [suite] [--seconds 1] [--nodes N] [--every K]``; position sets
are looked for in ``ROOTSPLIT_DATA``, ``../shared/data`` by default. A suite is the path of an EPD file there: one with
``bm`` or ``am`` is solved where the best move is among or not among them; of one with ``bm #N`` all positions with |N|
up to ``--mate`` are searched to depth 2N + 4, twice in a process, and solved where the distance is right and the line
is a mate of that length. ``speed`` searches two positions for 5 s. ``--small`` takes few positions and little time.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import chess

from cluster.executor import SerialExecutor
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.session import Session
from search.game_files import load_game
from search.limits import Limits
from search.scores import mate_distance

DATA = Path(os.environ.get("ROOTSPLIT_DATA") or Path(__file__).parents[3] / "shared" / "data")
SPEED_POSITIONS = (
    ("start", chess.STARTING_FEN),
    ("kiwipete", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"),
)
TABLE_MB = 64.0
SMALL_NODES = 20_000


@dataclass
class Tally:
    """What came of a suite."""

    positions: int = 0
    solved: int = 0
    depths: int = 0
    nodes: int = 0
    time_s: float = 0.0
    failed: list[str] = field(default_factory=list)

    def add(self, name: str, is_solved: bool, report: SearchReport) -> None:
        """Count a position."""
        self.positions += 1
        self.solved += is_solved
        self.depths += report.result.depth
        self.nodes += report.result.statistics.nodes
        self.time_s += report.result.time_s
        if not is_solved:
            self.failed.append(name)

    @property
    def text(self) -> str:
        """One line, and one with the names of what failed."""
        depth, rate = self.depths / max(1, self.positions), self.nodes / max(self.time_s, 1e-9)
        line = f"{self.solved} of {self.positions}, mean depth {depth:.1f}, {rate / 1e6:.2f} M nodes/s"
        return f"{line}\nfailed: {', '.join(self.failed) or 'none'}"


def open_chess() -> Session:
    """Return a session with one worker."""
    game = load_game("chess")
    return Session(game, SerialExecutor(game, 1, TABLE_MB), TABLE_MB)


def best_moves(lines: list[str], limits: Limits) -> Tally:
    """Search the positions of a suite that names good or bad moves."""
    tally = Tally()
    with open_chess() as session:
        for line in lines:
            board = chess.Board()
            operations = board.set_epd(line)
            report = session.search(SearchRequest(board.fen(), limits=limits))
            move = chess.Move.from_uci(session.game.move_text(report.result.position, report.result.best_move or 0))
            is_good = "bm" not in operations or move in operations["bm"]
            is_bad = "am" in operations and move in operations["am"]
            tally.add(str(operations.get("id", board.fen())), is_good and not is_bad, report)
    return tally


def mates(lines: list[str], longest: int) -> Tally:
    """Search mates of up to so many moves, all of them twice."""
    tally = Tally()
    rows = [(line.partition(" bm ")[0] + " 0 1", int(re.findall(r"bm #(-?\d+)", line)[0])) for line in lines]
    with open_chess() as session:
        for fen, moves in [row for row in rows if abs(row[1]) <= longest] * 2:
            report = session.search(SearchRequest(fen, limits=Limits(depth=2 * abs(moves) + 4)))
            plies = 2 * moves - 1 if moves > 0 else 2 * moves
            board = chess.Board(fen)
            for move in report.line_texts[-1]:
                board.push_uci(move)
            is_whole = board.is_checkmate() and len(report.line_texts[-1]) == abs(plies)
            tally.add(fen, mate_distance(report.result.score) == plies and is_whole, report)
    return tally


def speeds(seconds: float) -> Iterator[str]:
    """Yield a line for each position of a search by time."""
    with open_chess() as session:
        for name, fen in SPEED_POSITIONS:
            result = session.search(SearchRequest(fen, limits=Limits(time_s=seconds))).result
            rate = result.statistics.nodes / result.time_s
            yield f"{name:10} depth {result.depth:3} after {seconds:.1f} s, {rate / 1e6:.2f} M nodes/s"


def lines_of(suite: str, every: int) -> list[str]:
    """Return each so many-th line of a suite."""
    return [line.strip() for line in (DATA / suite).read_text().splitlines() if line.strip()][::every]


def main() -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", nargs="?", default="chess/epd/wac300.epd")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--nodes", type=int, default=None)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--mate", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    if options.suite == "speed":
        for line in speeds(0.1 if options.small else options.seconds or 5.0):
            print(line)
        return
    lines = lines_of(options.suite, 50 if options.small else options.every)
    if any("bm #" in line for line in lines):
        print(mates(lines, options.mate).text)
        return
    if options.small:
        limits = Limits(nodes=SMALL_NODES)
    elif options.nodes:
        limits = Limits(nodes=options.nodes)
    else:
        limits = Limits(time_s=options.seconds or 1.0)
    print(best_moves(lines, limits).text)


if __name__ == "__main__":
    main()
