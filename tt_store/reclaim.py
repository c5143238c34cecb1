"""What killed processes left behind: find it, and remove it."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tt_store.errors import TableError
from tt_store.memory import default_directory
from tt_store.owner import Owner, is_alive, owner_named
from tt_store.segment import read_header

_REMOVE_AFTER = '(while kill -0 "$1"; do sleep 1; done; rm -f -- "$2") &'


@dataclass(frozen=True)
class Leftover:
    """A segment's file that was found, whether its owner lives or not."""

    path: Path
    size_bytes: int
    """Size of the whole file."""
    owner_pid: int
    alive: bool
    """False when the owner is dead, so that `reclaim` would remove the file."""


def leftovers(directory: Path | None = None) -> list[Leftover]:
    """Return all segment files of this user, half-written ones too, in order of their names.

    Parameters
    ----------
    directory
        Where to look; as for `Segment.create` by default.
    """
    found = []
    for path in sorted((default_directory() if directory is None else directory).glob(f"rootsplit-{os.getuid()}-*")):
        named_owner = owner_named(path.name)
        with contextlib.suppress(FileNotFoundError):  # Its owner, or another clean-up, was faster.
            status = path.lstat()
            if named_owner and stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
                owner, last_sign_s = _owner_of_file(path, named_owner, status.st_mtime)
                alive = is_alive(owner, time.time() - last_sign_s)
                found.append(Leftover(path, status.st_size, owner.pid, alive))
    return found


def reclaim(directory: Path | None = None) -> list[Path]:
    """Remove the segment files of this user whose owner is dead, and return their paths.

    Parameters
    ----------
    directory
        Where to look; as for `Segment.create` by default.

    Raises
    ------
    TableError
        If a file of a dead owner cannot be removed.
    """
    removed = []
    for leftover in leftovers(directory):
        if leftover.alive:
            continue
        try:
            leftover.path.unlink()
            removed.append(leftover.path)
        except FileNotFoundError:
            continue  # Another process reclaims at the same time.
        except OSError as error:
            raise TableError(f"cannot remove the left-over table {leftover.path}: {error.strerror}") from error
    return removed


def remove_after(pid: int, path: Path) -> None:
    """Have a process of its own remove a file as soon as another process is gone, however that ended.

    For owners that somebody else kills: Ray ends the actors of a driver that has died by SIGKILL.

    Parameters
    ----------
    pid
        Whose end to wait for.
    path
        The file; its name is never used again.
    """
    # The shell that is started ends at once, so that the loop is nobody's child, in a session of its own: Ray kills the
    # children of an actor with it.
    command = ["/bin/sh", "-c", _REMOVE_AFTER, "rootsplit-remove-after", str(pid), str(path)]
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )


def _owner_of_file(path: Path, named_owner: Owner, modified_s: float) -> tuple[Owner, float]:
    """Return the owner and its last sign of life, seconds since the epoch: without a good header by name and mtime."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError:
        return named_owner, modified_s  # Made under a harsh umask, and not yet given its mode.
    try:
        header = read_header(descriptor, path)
    except TableError:
        return named_owner, modified_s  # Half-written or damaged: what `attach` refuses, a clean-up still judges.
    finally:
        os.close(descriptor)
    return header.owner, header.heartbeat_s
