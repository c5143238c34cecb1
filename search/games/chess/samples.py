"""Positions to learn from, as arrays: which inputs of the network their men are, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search.games.chess.board import TURN_SQUARE
from search.games.chess.layers import INPUTS, MOST_MEN, SQUARES
from search.games.chess.placement import read_board
from search.games.chess.selfplay import SHARES, read_sample

NO_MAN = INPUTS
_CHUNK = 100_000


class Samples(NamedTuple):
    """`N` positions, each seen by its side to move."""

    men: NDArray[np.int16]
    """`[N, MOST_MEN]`: inputs of the network, then `NO_MAN`."""
    shares: NDArray[np.float32]
    """`[N]`: what the mover got of the point, 0..1."""
    scores: NDArray[np.float32]
    """`[N]`: the search's, in centipawns."""

    def part(self, rows: slice | NDArray[np.int64]) -> Samples:
        """Return some of the positions."""
        return Samples(self.men[rows], self.shares[rows], self.scores[rows])


def inputs_of(fen: str) -> list[int]:
    """Return the inputs of the mover's view of a position."""
    board, side = fen.split()[:2]
    turn, is_white = (0, True) if side == "w" else (TURN_SQUARE, False)
    return [
        (man.is_white != is_white) * INPUTS // 2 + man.kind * SQUARES + (square ^ turn)
        for square, man in read_board(board).items()
    ]


def read_samples(lines: Iterable[str]) -> Samples:
    """Return the samples of lines that `search.games.chess.selfplay` wrote."""
    chunks = []
    waiting = iter(lines)
    while some := [read_sample(line) for line in islice(waiting, _CHUNK)]:
        men = np.full((len(some), MOST_MEN), NO_MAN, np.int16)
        for row, sample in zip(men, some, strict=True):
            inputs = inputs_of(sample.fen)
            row[: len(inputs)] = inputs
        shares = [SHARES[s.result] if s.fen.split()[1] == "w" else 1 - SHARES[s.result] for s in some]
        chunks.append((men, np.array(shares, np.float32), np.array([s.score for s in some], np.float32)))
    return Samples(*(np.concatenate(column) for column in zip(*chunks, strict=True)))
