"""Processes of a run, as ``/proc`` shows them: what must be gone when the run is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Process(NamedTuple):
    """A process, told apart from a later one with the same pid."""

    pid: int
    start_ticks: int
    command: str


def _status(pid: int) -> tuple[str, int, int] | None:
    """Return state, parent and start time of a process; None if it does not run."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state = fields[0].decode()
    return None if state in "ZX" else (state, int(fields[1]), int(fields[19]))


def _command(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> set[Process]:
    """Return the processes that a process has started, and those that these have started."""
    children: dict[int, list[int]] = {}
    starts: dict[int, int] = {}
    for entry in PROC.iterdir():
        status = _status(int(entry.name)) if entry.name.isdecimal() else None
        if status is not None:
            children.setdefault(status[1], []).append(int(entry.name))
            starts[int(entry.name)] = status[2]
    found: set[Process] = set()
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        found.add(Process(child, starts[child], _command(child)))
        waiting.extend(children.get(child, ()))
    return found


def alive(processes: Iterable[Process]) -> set[Process]:
    """Return those of the processes that still run."""
    return {
        process
        for process in processes
        if (status := _status(process.pid)) is not None and status[2] == process.start_ticks
    }


def wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is so; returns False where it has not become so."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
