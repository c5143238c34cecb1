"""The options that an engine offers, as data: what a GUI is told, and what it may say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from cluster.uci.commands import CommandError, SetOption
from search.controls import MAX_WORKERS
from search.limits import MAX_FIRST_MOVES

_MOST_HASH_MB = 1 << 20
SIDES = ("Engine", "White", "Black")


@dataclass(frozen=True)
class Options:
    """What may be set."""

    hash_mb: int = 64
    workers: int = 1
    multipv: int = 1
    contempt: int = 0
    """In the game's units."""
    contempt_side: str = "Engine"
    """Whom a draw costs: whoever is to move at the root, or always one side."""
    is_chess960: bool = False
    move_overhead_ms: int = 30
    may_ponder: bool = False
    """Only told by the GUI: ``go ponder`` says when."""


@dataclass(frozen=True)
class _Kind:
    field: str
    least: int = 0
    most: int = 0
    values: tuple[str, ...] = ()

    def parse(self, name: str, text: str, present: Any) -> Any:
        """Return a value of the right type and range."""
        if isinstance(present, bool):
            if text.lower() not in ("true", "false"):
                raise CommandError(f"{name} is true or false, not {text!r}")
            return text.lower() == "true"
        if self.values:
            found = [value for value in self.values if value.lower() == text.lower()]
            if not found:
                raise CommandError(f"{name} is one of {', '.join(self.values)}, not {text!r}")
            return found[0]
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if not self.least <= number <= self.most:
            raise CommandError(f"{name} is a whole number from {self.least} to {self.most}, not {text!r}")
        return number

    def declaration(self, name: str, default: Any) -> str:
        """Return what a GUI is told."""
        if isinstance(default, bool):
            return f"option name {name} type check default {str(default).lower()}"
        if self.values:
            choices = "".join(f" var {value}" for value in self.values)
            return f"option name {name} type combo default {default}{choices}"
        return f"option name {name} type spin default {default} min {self.least} max {self.most}"


_KINDS = {
    "Hash": _Kind("hash_mb", 1, _MOST_HASH_MB),
    "Threads": _Kind("workers", 1, MAX_WORKERS),
    "MultiPV": _Kind("multipv", 1, MAX_FIRST_MOVES),
    "Contempt": _Kind("contempt", -1000, 1000),
    "Contempt Side": _Kind("contempt_side", values=SIDES),
    "UCI_Chess960": _Kind("is_chess960"),
    "Move Overhead": _Kind("move_overhead_ms", 0, 5000),
    "Ponder": _Kind("may_ponder"),
}
CLEAR_HASH = "Clear Hash"


def declarations(options: Options) -> Iterator[str]:
    """Yield the line of each option, with the value that it has now as its default."""
    assert {kind.field for kind in _KINDS.values()} == {item.name for item in fields(Options)}
    for name, kind in _KINDS.items():
        yield kind.declaration(name, getattr(options, kind.field))
    yield f"option name {CLEAR_HASH} type button"


def changed(options: Options, command: SetOption) -> Options:
    """Return the options with one of them changed; names are told apart without regard to case.

    Raises
    ------
    CommandError
        If there is no such option, or its value is wrong.
    """
    for name, kind in _KINDS.items():
        if name.lower() == command.name.lower():
            return replace(options, **{kind.field: kind.parse(name, command.value, getattr(options, kind.field))})
    raise CommandError(f"there is no option {command.name}")
