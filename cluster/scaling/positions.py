"""The positions of an experiment, from a file of any format that a batch reads, each perhaps with its own depth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster.batch.readers import read_rows
from search.rules import Game, RulesError


@dataclass(frozen=True)
class PositionLine:
    """One position of a file."""

    line: int
    """From 1."""
    position: str
    depth: int | None = None
    """The depth that its line asks for; None where it says nothing."""
    moves: tuple[str, ...] = ()
    """Played from the position."""
    nodes: int | None = None
    """The nodes that its line asks for, of Monte Carlo tree search playouts."""


def read_positions(path: Path, game: Game) -> tuple[PositionLine, ...]:
    """Return the positions of a file; see `cluster.batch.readers` for its formats.

    An experiment is no batch: one wrong line ends it, before anything runs.

    Raises
    ------
    RootsplitError
        If the file cannot be read, holds no position or a wrong one.
    """
    positions = []
    for row in read_rows([str(path)], game):
        if row.error is not None:
            raise RulesError(f"{row.source}, line {row.line}: {row.error}")
        positions.append(PositionLine(row.line, row.position, row.overrides.depth, row.moves, row.overrides.nodes))
    if not positions:
        raise RulesError(f"{path} holds no position")
    return tuple(positions)
