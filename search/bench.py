"""The bench: a fixed set of searches on one worker with a cold table; its total of nodes identifies the search.

A commit that changes what is searched states the new total; one that does not must leave it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from search.algorithms import flags_to_depth
from search.driver import search
from search.game_files import load_game
from search.limits import Limits

TABLE_MB = 16.0

_POSITIONS = (
    ("chess", "", 13),
    ("chess", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 11),
    ("chess", "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 14),
    ("connect_four", "", 16),
    ("connect_four", "4453", 16),
    ("connect_four", "32164625", 18),
    ("einstein", "ABC../DE.../F...f/...ed/..cba r 3", 6),
    ("hex", "", 5),
    ("kalah", "", 12),
    ("othello", "", 10),
    ("othello", "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X", 28),
    ("random_tree", "1:8-16:30:80", 8),
    ("random_tree", "2:30-40:30:80", 5),
    ("tic_tac_toe", "", 9),
    ("tricolour", "", 6),
)


@dataclass(frozen=True)
class BenchRow:
    """One search of the bench."""

    game: str
    position: str
    depth: int
    score: int
    nodes: int
    time_s: float

    @property
    def nodes_per_s(self) -> float:
        """Nodes per second."""
        return self.nodes / self.time_s


def bench() -> Iterator[BenchRow]:
    """Yield the row of each search as it ends."""
    for name, text, depth in _POSITIONS:
        game = load_game(name)
        result = search(game, game.parse(text), Limits(depth=depth), flags=flags_to_depth(game), table_mb=TABLE_MB)
        yield BenchRow(name, text, depth, result.score, result.statistics.nodes, max(result.time_s, 1e-9))
