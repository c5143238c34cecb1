"""What a run is about: its inputs and settings, told apart from any others'."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cluster.batch.rows import InputError, ReadOptions
from cluster.batch.settings import RunSettings
from search.rules import Game

STANDARD_INPUT = "-"
_BLOCK = 1 << 20
_NOT_A_LINE_A_ROW = (b"PK", gzip.compress(b"")[:2], b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True)
class InputFile:
    """A file as it is now."""

    name: str
    size_bytes: int | None
    """None for standard input, which is known by its rows alone."""
    digest: str
    lines: int | None
    """Its lines, where they may be taken for rows; for estimates."""

    def as_json(self) -> dict[str, Any]:
        """Return what is compared."""
        return {"name": self.name, "bytes": self.size_bytes, "sha256": self.digest}


def look_at(name: str) -> InputFile:
    """Return what a file is now.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    if name == STANDARD_INPUT:
        return InputFile(name, None, "", None)
    digest, size_bytes, lines, first = hashlib.sha256(), 0, 0, b""
    try:
        with Path(name).open("rb") as file:
            while block := file.read(_BLOCK):
                first = first or block
                digest.update(block)
                size_bytes += len(block)
                lines += block.count(b"\n")
    except OSError as error:
        raise InputError(f"the input {name} cannot be read: {error.strerror}") from None
    is_a_line_a_row = (
        not first.startswith(_NOT_A_LINE_A_ROW) and b"[Event " not in first and Path(name).suffix != ".pgn"
    )
    return InputFile(name, size_bytes, digest.hexdigest(), lines if is_a_line_a_row else None)


def fingerprint(
    files: Sequence[InputFile], reading: ReadOptions, settings: RunSettings, game: Game, kind: str, is_ordered: bool
) -> dict[str, Any]:
    """Return what decides the output of a run, as JSON knows it."""
    return {
        "inputs": [file.as_json() for file in files],
        "settings": settings.as_json(game) | asdict(reading) | {"output format": kind, "input order": is_ordered},
    }


def first_difference(begun: dict[str, Any], asked: dict[str, Any]) -> str | None:
    """Return what a run was begun with and what is asked for now, as a part of a sentence; None if nothing differs."""
    old_files, new_files = begun.get("inputs", []), asked["inputs"]
    old_names, new_names = ([file["name"] for file in files] for files in (old_files, new_files))
    if old_names != new_names:
        return f"the input {' '.join(old_names)}, and now the input is {' '.join(new_names)}"
    for old, new in zip(old_files, new_files, strict=True):
        if old != new:
            return f"the input {old['name']} {_content(old)}, and now it {_content(new).replace('of', 'has', 1)}"
    old_settings = begun.get("settings", {})
    for name, value in asked["settings"].items():
        if old_settings.get(name) != value:
            return f"{name.replace('_', ' ')} {_value(old_settings.get(name))}, and now it is {_value(value)}"
    return None


def _content(file: dict[str, Any]) -> str:
    return f"of {file['bytes']} bytes (SHA-256 {file['sha256'][:12]})"


def _value(value: Any) -> str:
    return (
        {None: "none", True: "on", False: "off"}.get(value, str(value))
        if not isinstance(value, int | float) or isinstance(value, bool)
        else str(value)
    )
