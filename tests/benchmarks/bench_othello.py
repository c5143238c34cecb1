"""Othello on one core: perft beside rust-reversi, exact endgames of the FFO suite, solving times by empty squares.

::

    python tests/benchmarks/bench_othello.py perft [--depth 11] [--rust-python PYTHON]
    python tests/benchmarks/bench_othello.py ffo FILE.obf... [--only 40 41 42 43 44] [--every-move]
    python tests/benchmarks/bench_othello.py squares [--squares 12 14 16] [--positions 20]

Times are CPU times. ``--rust-python`` names a Python where rust-reversi (PyPI) is installed; it counts from Python, as
its users do, with the last ply in bulk, in turn with us. `ffo` reads lines of a board, the side to move and the exact
score of each move, ``... X; G8:+18; H1:+12;``, and fails where a score is another one; lines are numbered by the file's
name, such as ``ffo_40-59.obf``. Each position gets a cold table.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from search.driver import search
from search.game_files import load_game
from search.games.othello.board import DISC
from search.limits import Limits
from search.perft import LeafCounter
from search.referee import Referee
from search.results import SearchResult

PERFT = (4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288, 24571284, 212258800)
TABLE_MB, SMALL_TABLE_MB = 256.0, 8.0
LARGEST_SMALL = 16

_RUST_PERFT = """
import sys, time
from rust_reversi import Board

def count(board, depth):
    if depth == 1:
        return max(bin(board.get_legal_moves()).count("1"), 1)
    if board.is_game_over():
        return 1
    children = board.get_child_boards()
    if children is None or not children:
        board.do_pass()
        return count(board, depth - 1)
    return sum(count(child, depth - 1) for child in children)

for line in sys.stdin:
    started = time.process_time()
    leaves = count(Board(), int(line))
    print(leaves, time.process_time() - started, flush=True)
"""


class Endgame(NamedTuple):
    """A position of a suite."""

    number: int
    text: str
    scores: dict[str, int]
    """What each move is worth, in discs."""


class Solved(NamedTuple):
    """What it took to solve some positions."""

    cpu_s: float
    nodes: int

    @property
    def line(self) -> str:
        """Return the figures as text."""
        return f"{self.cpu_s:8.3f} s {self.nodes / 1e6:9.2f} M nodes {self.nodes / self.cpu_s / 1e6:6.1f} M/s"


def perft_speeds(depth: int, rust_python: str | None) -> Iterator[tuple[int, float, float | None]]:
    """Yield each depth with our leaves per second, and rust-reversi's up to a depth that takes it seconds.

    Raises
    ------
    AssertionError
        If either counts wrong.
    """
    counter = LeafCounter(load_game("othello"))
    start = counter.referee.game.parse("")
    rust = None
    if rust_python is not None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        rust = subprocess.Popen([rust_python, "-c", _RUST_PERFT], **pipes)
    for number in range(1, depth + 1):
        started = time.process_time()
        leaves = counter.count(start, number)
        ours_s = time.process_time() - started
        assert leaves == PERFT[number - 1], f"perft {number} counts {leaves}, not {PERFT[number - 1]}"
        theirs = None
        if rust is not None and rust.stdin is not None and rust.stdout is not None and number <= 10:
            rust.stdin.write(f"{number}\n")
            rust.stdin.flush()
            count, rust_s = rust.stdout.readline().split()
            assert int(count) == leaves, f"rust-reversi counts {count}"
            theirs = leaves / max(float(rust_s), 1e-9)
        yield number, leaves / max(ours_s, 1e-9), theirs
    if rust is not None:
        rust.communicate()


def read_endgames(path: Path) -> list[Endgame]:
    """Return the positions of a file; its name tells their first number."""
    first = re.search(r"\d+", path.stem)
    number, found = int(first.group()) if first else 1, []
    for line in path.read_text().splitlines():
        text, *values = (part.strip() for part in line.split(";"))
        scores = {move.lower(): int(score) for move, score in (value.split(":") for value in values if value)}
        if text and scores:
            found.append(Endgame(number + len(found), text, scores))
    return found


def solve(text: str, table_mb: float = TABLE_MB) -> tuple[SearchResult, Solved]:
    """Solve a position with a cold table."""
    game = load_game("othello")
    started = time.process_time()
    result = search(game, game.parse(text), Limits(), table_mb=table_mb)
    return result, Solved(time.process_time() - started, result.statistics.nodes)


def warm_up() -> None:
    """Compile what is not compiled yet, before anything is timed."""
    game = load_game("othello")
    search(game, game.parse(""), Limits(depth=1), table_mb=1)


def check_endgame(endgame: Endgame, every_move: bool) -> Solved:
    """Solve a position, or what follows each of its moves, and compare.

    Raises
    ------
    AssertionError
        If a score is wrong.
    """
    game = load_game("othello")
    referee, position = Referee(game), game.parse(endgame.text)
    best = max(endgame.scores.values())
    result, spent = solve(endgame.text)
    assert result.is_solved
    assert result.score == DISC * best, f"#{endgame.number}: {result.score / DISC}, not {best}"
    if every_move:
        for move in referee.legal_moves(position):
            name = game.move_text(position, move)
            value = -solve(game.text(referee.play(position, move)))[0].score
            assert value == DISC * endgame.scores[name], f"#{endgame.number} {name}: {value / DISC}"
    return spent


def random_positions(squares: int, number: int, seed: int = 1) -> list[str]:
    """Return positions with so many empty squares after random moves where the game goes on."""
    game = load_game("othello")
    referee, rng, found = Referee(game), random.Random(seed), list[str]()
    while len(found) < number:
        position = game.parse("")
        while (moves := referee.legal_moves(position)) and game.text(position).count("-") > squares:
            position = referee.play(position, rng.choice(moves))
        if moves:
            found.append(game.text(position))
    return found


def _perft(arguments: argparse.Namespace) -> None:
    for depth, ours, theirs in perft_speeds(arguments.depth, arguments.rust_python):
        beside = "" if theirs is None else f"   rust-reversi {theirs / 1e6:6.1f} M/s   ratio {ours / theirs:6.1f}"
        print(f"perft {depth:2}: {ours / 1e6:6.1f} M/s{beside}", flush=True)


def _ffo(arguments: argparse.Namespace) -> None:
    endgames = [endgame for path in arguments.files for endgame in read_endgames(path)]
    chosen = [endgame for endgame in endgames if not arguments.only or endgame.number in arguments.only]
    total = Solved(0.0, 0)
    warm_up()
    for endgame in chosen:
        spent = check_endgame(endgame, arguments.every_move)
        total = Solved(total.cpu_s + spent.cpu_s, total.nodes + spent.nodes)
        empty = endgame.text[:64].count("-")
        print(f"#{endgame.number:2} {empty:2} empty {max(endgame.scores.values()):+3} {spent.line}", flush=True)
    print(f"total{'':12} {total.line}")


def _squares(arguments: argparse.Namespace) -> None:
    warm_up()
    for squares in arguments.squares:
        # To clear a large table would take longer than to solve a small position.
        table_mb = TABLE_MB if squares > LARGEST_SMALL else SMALL_TABLE_MB
        spent = [solve(text, table_mb)[1] for text in random_positions(squares, arguments.positions)]
        mean = Solved(statistics.fmean(each.cpu_s for each in spent), round(statistics.fmean(e.nodes for e in spent)))
        median = statistics.median(each.cpu_s for each in spent)
        print(f"{squares} empty: median {median:.4f} s, mean {mean.line}", flush=True)


def main(words: Sequence[str]) -> None:
    """Run the benchmark that some words ask for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    perft = commands.add_parser("perft")
    perft.add_argument("--depth", type=int, default=len(PERFT), choices=range(1, len(PERFT) + 1), metavar="PLIES")
    perft.add_argument("--rust-python")
    perft.set_defaults(run=_perft)
    ffo = commands.add_parser("ffo")
    ffo.add_argument("files", type=Path, nargs="+")
    ffo.add_argument("--only", type=int, nargs="+")
    ffo.add_argument("--every-move", action="store_true")
    ffo.set_defaults(run=_ffo)
    squares = commands.add_parser("squares")
    squares.add_argument("--squares", type=int, nargs="+", default=[12, 14, 16, 18, 20])
    squares.add_argument("--positions", type=int, default=20)
    squares.set_defaults(run=_squares)
    arguments = parser.parse_args(words)
    arguments.run(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
