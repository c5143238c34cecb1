"""The process that owns a segment: how it is told apart, named in a file's name, and found dead.

A file is called ``rootsplit-<uid>-<pid>-<start time>-<pid namespace>-<label>-<random>``, and has ``.tmp`` behind that
until it is complete: the name alone tells whose it is, so that what a killed process left can always be judged.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import NamedTuple

DEAD_AFTER_S = 60.0
"""An owner whose process we cannot see counts as dead when its heartbeat is older than this."""

START_UNKNOWN = 0
"""Start time of a process on a machine without ``/proc``."""

_NAME = re.compile(r"rootsplit-(\d+)-(\d+)-(\d+)-(\d+)-\w*-[0-9a-f]+(\.tmp)?", re.ASCII)


class Owner(NamedTuple):
    """The process that made a segment, told apart from a later one with the same pid."""

    pid: int
    start_ticks: int
    """When it started, in clock ticks since boot; `START_UNKNOWN` without ``/proc``."""
    namespace: int
    """Inode of its pid namespace: in another one the pid means nothing to us. 0 without ``/proc``."""


def file_name(owner: Owner, label: str) -> str:
    """Return a new name for a segment's file; whatever is no letter, digit or ``_`` in the label becomes ``_``."""
    safe_label = re.sub(r"\W", "_", label, flags=re.ASCII)[:64]
    pid, start_ticks, namespace = owner
    return f"rootsplit-{os.getuid()}-{pid}-{start_ticks}-{namespace}-{safe_label}-{secrets.token_hex(6)}"


def owner_named(name: str) -> Owner | None:
    """Return the owner that a file's name tells; None for what is not the name of a segment's file."""
    parts = _NAME.fullmatch(name)
    return Owner(int(parts[2]), int(parts[3]), int(parts[4])) if parts else None


def this_process() -> Owner:
    """Return this process as an owner."""
    start_ticks = _process_start_ticks(os.getpid())
    return Owner(os.getpid(), START_UNKNOWN if start_ticks is None else start_ticks, _pid_namespace())


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0  # No /proc: all processes then look as if in one namespace.


def _process_start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it does not run."""
    if not 0 < pid < 1 << 31:
        return None
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None if os.path.exists("/proc/self/stat") or not _pid_exists(pid) else START_UNKNOWN
    # The command may hold spaces and brackets, so count from the last bracket: field 3 is the state, 22 the start.
    fields = status.rpartition(b")")[2].split()
    is_zombie = fields[0] in (b"Z", b"X")
    return None if is_zombie else int(fields[19])


def _pid_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_alive(owner: Owner, age_s: float) -> bool:
    """Tell whether an owner's process runs.

    Parameters
    ----------
    owner
        The process.
    age_s
        Seconds since its last sign of life: what counts where it is in another pid namespace.
    """
    if owner.namespace != _pid_namespace():
        return age_s <= DEAD_AFTER_S
    start_ticks = _process_start_ticks(owner.pid)
    if start_ticks is None:
        return False
    return start_ticks == owner.start_ticks or START_UNKNOWN in (start_ticks, owner.start_ticks)
