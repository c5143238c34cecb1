"""The move generator of chess counted against well-known numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from benchmarks.bench_chess_perft import measure, together
from conftest import silent

from cluster.shared_perft import divide
from search.game_files import load_game
from search.perft import LeafCounter

SUITE_NODES = 1_000_000
"""Lines of the suites with more nodes are left out."""

KNOWN = {
    "startpos": (20, 400, 8_902, 197_281, 4_865_609),
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -": (48, 2_039, 97_862, 4_085_603),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -": (14, 191, 2_812, 43_238, 674_624, 11_030_083),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq -": (6, 264, 9_467, 422_333, 15_833_292),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ -": (44, 1_486, 62_379, 2_103_487),
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - -": (46, 2_079, 89_890, 3_894_594),
    # Chess960, in both ways of naming the rooks.
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9": (21, 528, 12_189, 326_672, 8_146_062),
    "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9": (21, 807, 18_002, 667_366),
    "b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9": (20, 479, 10_471, 273_318),
    "8/8/8/4B2b/6nN/8/5P2/2R1K2k w Q -": (34, 318, 9_002, 118_388),
    "2r5/8/8/8/8/8/6PP/k2KR3 w K -": (17, 242, 3_931, 57_700, 985_298),
    "4r3/3k4/8/8/8/8/6PP/qR1K1R2 w KQ -": (19, 628, 12_858, 405_636),
}


@cache
def counter() -> LeafCounter:
    return LeafCounter(load_game("chess"), notice=silent)


def counts(fen: str, depths: range) -> tuple[int, ...]:
    position = counter().referee.game.parse(fen)
    return tuple(counter().count(position, depth) for depth in depths)


@pytest.mark.parametrize("fen", KNOWN)
def test_known_positions(fen: str) -> None:
    assert counts(fen, range(1, len(KNOWN[fen]) + 1)) == KNOWN[fen]


@pytest.mark.parametrize("fen", KNOWN)
def test_two_threads_count_the_same(fen: str) -> None:
    game = load_game("chess")
    depth = len(KNOWN[fen]) - 1
    assert sum(divide(game, game.parse(fen), depth, 2, silent).values()) == KNOWN[fen][depth - 1]


def test_each_first_move_has_its_share() -> None:
    game = load_game("chess")
    start = game.parse("")
    shares = {game.move_text(start, move): count for move, count in divide(game, start, 4, 1, silent).items()}
    assert sum(shares.values()) == KNOWN["startpos"][3]
    assert (shares["e2e4"], shares["a2a3"], shares["g1h3"]) == (13_160, 8_457, 8_881)


def suite_lines(path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield position, depth and count of an EPD suite: ``position D1 20; D2 400;``."""
    for line in path.read_text().splitlines():
        position, *entries = line.replace(";", " D").split(" D")
        for entry in entries:
            if entry.strip():
                depth, count = entry.split()
                yield position.strip(), int(depth), int(count)


def perft_file_lines(path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield position, depth and count of a file in the format of python-chess: ``epd`` and ``perft`` lines."""
    position = ""
    for line in path.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "epd":
            position = rest
        elif word == "perft":
            depth, count = rest.split()
            yield position, int(depth), int(count)


@pytest.mark.parametrize(
    ("name", "lines", "least"),
    [("perftsuite.epd", suite_lines, 400), ("tricky.perft", perft_file_lines, 60)],
    ids=["perftsuite", "tricky"],
)
def test_the_suites(
    name: str,
    lines: Callable[[Path], Iterator[tuple[str, int, int]]],
    least: int,
    data_file: Callable[[str], Path],
) -> None:
    compared = 0
    for fen, depth, count in lines(data_file(f"chess/perft/{name}")):
        if count <= SUITE_NODES:
            assert counts(fen, range(depth, depth + 1)) == (count,), (fen, depth)
            compared += 1
    assert compared >= least


def test_perft_goes_on_after_a_draw_by_the_rules() -> None:
    """Everybody counts so: neither fifty moves nor lone kings end a line."""
    assert counts("4k3/8/8/8/8/8/8/4K3 w - - 120 90", range(1, 4)) == counts("4k3/8/8/8/8/8/8/4K3 w - -", range(1, 4))


def test_the_benchmark_counts_right() -> None:
    speeds = measure(repeats=1, is_small=True)
    assert [speed.leaves for speed in speeds] == [197_281, 97_862, 674_624, 9_467, 89_890]
    assert together(speeds).ours > 0
