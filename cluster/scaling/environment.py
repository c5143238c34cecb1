"""What an experiment ran on: the machine, the versions, the commit and the command, so that anyone can run it again."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.request import cores
from tt_store.memory import available_bytes

_PACKAGES = ("rootsplit", "numba", "llvmlite", "numpy", "ray", "matplotlib")


@dataclass(frozen=True)
class Environment:
    """One start of an experiment."""

    begun: str
    """UTC, ISO 8601."""
    command: str
    folder: str
    processor: str
    cores: int
    """That this process may use."""
    memory_gb: float
    system: str
    load_average: float
    """Of the minute before."""
    versions: dict[str, str]
    commit: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the record as an object of JSON."""
        return asdict(self)


def describe(command: list[str] | None = None) -> Environment:
    """Return what this process runs on.

    Parameters
    ----------
    command
        Its words; by default this process's own.
    """
    words = ["rootsplit", *sys.argv[1:]] if command is None else command
    return Environment(
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(words),
        folder=str(Path.cwd()),
        processor=_processor(),
        cores=cores(),
        memory_gb=round(available_bytes() / 1e9, 1),
        system=platform.platform(),
        load_average=os.getloadavg()[0],
        versions={"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
        commit=commit(),
    )


def commit() -> str | None:
    """Return the commit of the checkout that this program runs from, ``+changes`` if files differ; None outside one."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
        return git("rev-parse", "--short=12", "HEAD").strip() + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
