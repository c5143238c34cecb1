"""What a run does with each position, and by which hash its rows say so."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.batch.rows import Overrides
from search.algorithms import HAS_DEPTH, PROVES_MATES, flags_to_answer
from search.flags import Algorithm, Flags
from search.limits import MAX_FIRST_MOVES, Limits
from search.rules import Game
from search.solving import Question, plies_to_solve
from tt_store.errors import RootsplitError

VERSION = 2
"""Grows with each change after which rows of an older run would not be repeated."""


class SettingsError(RootsplitError):
    """Settings of a run that make no sense together."""


@dataclass(frozen=True)
class RunSettings:
    """What is asked of every position.

    Raises
    ------
    SettingsError
        If the settings contradict each other.
    """

    limits: Limits
    """Those of each position, as far as its row gives none."""
    multipv: int = 1
    """How many different first moves."""
    table_mb: float = 64.0
    """Size of each machine's table; of each worker's, if it is fresh or holds a tree of playouts."""
    is_fresh: bool = False
    """Whether each worker has a table of its own, emptied before each position."""
    is_deterministic: bool = False
    """Whether the rows are equal, byte for byte, for any number of workers: no times, no names of workers."""
    split: int = 1
    """Workers on one position."""
    deadline_s: float | None = None
    """After so many seconds a position is given up, and a worker that does not let it go is replaced."""
    solve: Question | None = None
    """What is proved of each position; None for a search to its limits. Else a row's own depth and mate are void."""
    algorithm: str | None = None
    """A name of `search.algorithms`; None for the one that suits the game."""

    def __post_init__(self) -> None:
        limits = self.limits
        if self.solve is not None:
            if limits.depth is not None or limits.mate is not None or self.multipv != 1:
                raise SettingsError("a solution is one line to the end of the game: leave out depth, mate and multipv")
        elif limits.depth is None and limits.nodes is None and limits.time_s is None and limits.mate is None:
            raise SettingsError("each position needs a limit: give a depth, nodes, a time or a mate")
        if not 1 <= self.multipv <= MAX_FIRST_MOVES:
            raise SettingsError(f"the number of lines must be from 1 to {MAX_FIRST_MOVES}, not {self.multipv}")
        if self.split < 1:
            raise SettingsError(f"at least one worker must search a position, not {self.split}")
        if self.deadline_s is not None and not 0 < self.deadline_s < float("inf"):
            raise SettingsError(f"the deadline must be more than 0 seconds, not {self.deadline_s:g}")
        ends_by_itself = limits.depth is not None or limits.nodes is not None or self.solve is not None
        if self.is_deterministic and (limits.time_s is not None or not ends_by_itself):
            raise SettingsError("a deterministic run ends each search by a depth or by nodes, not by a time")
        if self.is_deterministic and self.split > 1:
            raise SettingsError("a deterministic run searches each position with one worker: leave out --split")

    @property
    def has_own_tables(self) -> bool:
        """Whether each worker has a table of its own."""
        return self.is_fresh or self.is_deterministic

    def own_table_mb(self, game: Game) -> float:
        """Return the size of each worker's own table, 0 where they share one: entries can be shared, a tree cannot."""
        return self.table_mb if self.has_own_tables or not self.flags(game).keeps_entries else 0.0

    def flags(self, game: Game) -> Flags:
        """Return the kernel's variant: what solves best, or of full width where a mate in so many moves is asked for.

        Raises
        ------
        RulesError
            If the algorithm is not sound for the game, or the game is to be solved and does not say how long it lasts.
        SettingsError
            If the algorithm proves nothing, and a mate or a solution is asked for.
        """
        if self.solve is not None:
            plies_to_solve(game, game.parse(game.start_text))
        flags = flags_to_answer(game, self.algorithm, mate=self.limits.mate, question=self.solve)
        if (self.limits.mate is not None or self.solve is not None) and flags.algorithm not in PROVES_MATES:
            raise SettingsError(
                f"{flags.algorithm.label} proves no mates and no solutions: give a depth, nodes or a time"
            )
        if self.limits.depth is not None and flags.algorithm not in HAS_DEPTH:
            raise SettingsError(f"{flags.algorithm.label} goes to no depth: give nodes, which are playouts, or a time")
        return flags

    def limits_of(self, overrides: Overrides) -> Limits:
        """Return the limits of a row: what it says goes before what the run says.

        Raises
        ------
        LimitsError
            If one of the row's is out of range.
        SettingsError
            If a row of a deterministic run asks for a time.
        """
        run = self.limits
        if self.is_deterministic and overrides.time_s is not None:
            raise SettingsError("the row asks for a time, which a deterministic run cannot keep")
        if self.solve is not None:
            overrides = overrides._replace(depth=None, mate=None)
        return Limits(
            run.depth if overrides.depth is None else overrides.depth,
            run.nodes if overrides.nodes is None else overrides.nodes,
            run.time_s if overrides.time_s is None else overrides.time_s,
            run.mate if overrides.mate is None else overrides.mate,
        )

    def as_json(self, game: Game) -> dict[str, Any]:
        """Return what decides the answers, apart from a row's own limits."""
        limits, algorithm = self.limits, self.flags(game).algorithm
        # Rows of before there was a choice stay what they are.
        named = {} if algorithm == Algorithm.ALPHA_BETA else {"algorithm": algorithm.label}
        return named | {
            "version": VERSION,
            "game": game.label if not game.name.endswith(".py") else f"{game.label}, SHA-256 {_file_digest(game.name)}",
            "depth": limits.depth,
            "nodes": limits.nodes,
            "time": limits.time_s,
            "mate": limits.mate,
            "multipv": self.multipv,
            "table": self.table_mb,
            "fresh": self.has_own_tables,
            "deterministic": self.is_deterministic,
            "split": self.split,
            "deadline": self.deadline_s,
            "solve": self.solve,
        }

    def digest(self, game: Game, limits: Limits, multipv: int) -> str:
        """Return the hash of all that decides a row's answer, 12 hexadecimal digits."""
        settings = self.as_json(game) | {
            "depth": limits.depth,
            "nodes": limits.nodes,
            "time": limits.time_s,
            "mate": limits.mate,
            "multipv": multipv,
        }
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def _file_digest(name: str) -> str:
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()[:12]
