"""Tells two installations apart: a driver and its machines must run the same program on the same game."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from search.jit import cache_folder, reachable_sources
from search.rules import Game

_PACKAGES = ("cluster", "search", "tt_store")


class Fingerprint(NamedTuple):
    """Hashes of sources, each a few letters that a person can compare."""

    program: str
    """Of rootsplit itself, its games included."""
    game: str
    """Of the game's file and what it imports besides."""


def fingerprint(game: Game) -> Fingerprint:
    """Return the fingerprint of this installation and of a game."""
    roots = [root for package in _PACKAGES for root in _folders(package)]
    program = {path for root in roots for path in root.rglob("*.py")}
    # What is instantiated lies in the cache: copies of our own.
    ours = [*roots, cache_folder().resolve()]
    own = {path for path in reachable_sources(game.module) if not any(root in path.parents for root in ours)}
    return Fingerprint(_digest(program), _digest(own))


def _folders(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [Path(folder).resolve() for folder in (spec.submodule_search_locations if spec else None) or ()]


def _digest(paths: Iterable[Path]) -> str:
    """Hash names and contents of files, wherever they are installed."""
    files = sorted((path.name, hashlib.blake2b(path.read_bytes()).hexdigest()) for path in paths)
    return hashlib.blake2b(repr(files).encode(), digest_size=5).hexdigest()
