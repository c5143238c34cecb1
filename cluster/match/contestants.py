"""Who plays and on what terms: engines and time controls as the command line writes them."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import dataclass, field

import chess.engine

from tt_store.errors import RootsplitError

OURS = "rootsplit"
_OWN_KEYS = ("name", "nodes", "depth", "movetime")


class MatchError(RootsplitError):
    """A match that cannot be played as it was asked for."""


@dataclass(frozen=True)
class TimeControl:
    """A clock of seconds for the game and seconds added with each move; or none."""

    base_s: float
    increment_s: float = 0.0

    @classmethod
    def parse(cls, text: str) -> TimeControl:
        """Return the control that ``10+0.1`` or ``60`` writes.

        Raises
        ------
        MatchError
            If it is none.
        """
        base, _, increment = text.partition("+")
        try:
            control = cls(float(base), float(increment or 0))
        except ValueError:
            raise MatchError(f"{text!r} is no time control: give seconds and increment, such as 10+0.1") from None
        if not (0 < control.base_s < math.inf and 0 <= control.increment_s < math.inf):
            raise MatchError(f"the time control {text!r} leaves no time")
        return control

    def __str__(self) -> str:
        """Return it as PGN writes it."""
        return f"{self.base_s:g}+{self.increment_s:g}"


@dataclass(frozen=True)
class Contestant:
    """An engine: how it is started, what is set, and limits of its own."""

    name: str
    command: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    limit: chess.engine.Limit = field(default_factory=chess.engine.Limit)
    """Nodes, depth or time of each of its moves; empty where the match's clock alone counts."""

    @classmethod
    def parse(cls, text: str) -> Contestant:
        """Return the engine that a text names.

        Parameters
        ----------
        text
            A command line, or ``rootsplit`` for ours, then, each after a semicolon, UCI options such as ``Hash=16``,
            and in small letters ``name=``, ``nodes=``, ``depth=`` and ``movetime=`` (seconds).

        Raises
        ------
        MatchError
            If a part of it makes no sense.
        """
        command_text, *parts = (part.strip() for part in text.split(";"))
        command = shlex.split(command_text)
        if not command:
            raise MatchError(f"{text!r} names no engine: give a command, such as stockfish, or {OURS}")
        if command[0] == OURS:
            command = [sys.executable, "-m", "cluster.cli", *(command[1:] or ["uci", "--workers", "1"])]
        own: dict[str, str] = {}
        options = []
        for part in filter(None, parts):
            key, separator, value = (word.strip() for word in part.partition("="))
            if not separator or not key:
                raise MatchError(f"{part!r} is no setting of an engine: give Option=value")
            if key in _OWN_KEYS:
                own[key] = value
            else:
                options.append((key, value))
        return cls(own.get("name", command_text), tuple(command), tuple(options), _limit(own))

    @property
    def has_limit(self) -> bool:
        """Whether its moves have a limit that is not the clock."""
        return (self.limit.nodes, self.limit.depth, self.limit.time) != (None, None, None)


def _limit(own: dict[str, str]) -> chess.engine.Limit:
    try:
        return chess.engine.Limit(
            nodes=int(own["nodes"]) if "nodes" in own else None,
            depth=int(own["depth"]) if "depth" in own else None,
            time=float(own["movetime"]) if "movetime" in own else None,
        )
    except ValueError:
        raise MatchError(f"nodes, depth and movetime of an engine are numbers, not {own}") from None
