"""The positions of an experiment, from a file: one a line, perhaps with the depth that each is searched to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from search.rules import RulesError

_DEPTH = re.compile(r"\s*;\s*depth\s*=?\s*(\d+)\s*;?\s*$")


@dataclass(frozen=True)
class PositionLine:
    """One line of a file."""

    line: int
    """From 1."""
    position: str
    depth: int | None
    """As the line ends in ``; depth N``; None where it says nothing."""


def read_positions(path: Path) -> list[PositionLine]:
    """Return the positions of a file; empty lines and those that begin with ``#`` are skipped.

    Raises
    ------
    RulesError
        If the file cannot be read or holds no position.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RulesError(f"{path} cannot be read: {reason}") from None
    positions = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _DEPTH.search(line)
        text = line[: found.start()] if found else line
        positions.append(PositionLine(number, text.strip(), int(found[1]) if found else None))
    if not positions:
        raise RulesError(f"{path} holds no position: write one a line, such as '4453' or '4453; depth 20'")
    return positions
