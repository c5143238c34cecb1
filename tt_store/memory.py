"""How much memory there is for a table, and where its file goes."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tt_store.errors import TableError
from tt_store.layout import BYTES_PER_MB

ADDRESS_SPACE_BYTES = 1 << 47
"""What a process can map on x86-64: the limit where the machine does not tell its memory."""

SHARED_MEMORY = Path("/dev/shm")
"""A file system in memory."""

MEMORY_SHARE, DIRECTORY_SHARE = 0.6, 0.9
"""What `fitting_mb` takes of the memory that is available, and of a directory's room. Files in shared memory count as
memory of their control group, and toward Ray's memory monitor."""


def default_directory() -> Path:
    """Return where segments go: ``/dev/shm`` if it can be written to, else the temporary directory."""
    if SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


def available_bytes(root: Path = Path("/")) -> int:
    """Return how much memory this process may still take, in bytes.

    That is the least of the machine's available memory and what each control group (version 1 or 2) above this
    process leaves; files that the kernel may drop from its cache count as free.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are mounted.
    """
    limits = [ADDRESS_SPACE_BYTES]
    memory = _read_text(root / "proc/meminfo")
    if found := re.search(r"^MemAvailable:\s+(\d+) kB", memory, re.MULTILINE):
        limits.append(int(found[1]) * 1024)
    for line in _read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            names = ("memory.max", "memory.current", "inactive_file")
            limits += _group_limits(root / "sys/fs/cgroup", group, names)
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            limits += _group_limits(root / "sys/fs/cgroup/memory", group, names)
    return max(0, min(limits))


def free_bytes(directory: Path) -> int:
    """Return how much room the file system of a directory has, in bytes.

    Raises
    ------
    TableError
        If there is no such directory.
    """
    try:
        status = os.statvfs(directory)
    except OSError as error:
        raise TableError(f"cannot make a table in {directory}: {error.strerror}") from error
    return status.f_bavail * status.f_frsize


def fitting_mb(directory: Path | None = None) -> float:
    """Return the size in MB of the largest table that leaves the machine room to work.

    Parameters
    ----------
    directory
        Where its file goes; None for a table in this process's own memory.

    Raises
    ------
    TableError
        If not even a table of 1 MB fits, or there is no such directory.
    """
    limits = [MEMORY_SHARE * available_bytes()]
    if directory is not None:
        limits.append(DIRECTORY_SHARE * free_bytes(directory))
    size_mb = int(min(limits)) // BYTES_PER_MB
    if size_mb < 1:
        raise TableError(f"no table fits: {int(min(limits)) // 1024} kB may be used{hint(directory)}")
    return float(size_mb)


def hint(directory: Path | None) -> str:
    """Return the end of a sentence: what to do where a table's directory is too small."""
    if directory != SHARED_MEMORY:
        return ""
    return (
        ", or enlarge it (docker run --shm-size; in Kubernetes an emptyDir of medium Memory there), or give another"
        " place with --table-dir"
    )


def why_not_created(error: OSError, size_mb: float, directory: Path, free: int) -> str:
    """Return the sentence for the user whose table's file could not be made.

    Parameters
    ----------
    error
        What the system said.
    size_mb
        What was asked.
    directory, free
        Where the file was to go, and how many bytes were free there before.
    """
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"cannot make a table of {size_mb:.10g} MB in {directory}: {error.strerror}"
    return (
        f"a table of {size_mb:.10g} MB does not fit into {directory}: {free // BYTES_PER_MB} MB are free; "
        f"ask for a smaller one with --table, or for what fits with --table auto{hint(directory)}"
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # Not on this kind of machine, or not for us: then it sets no limit.


def _group_limits(mount: Path, group: str, names: tuple[str, str, str]) -> Iterator[int]:
    """Yield what a control group and each one above it leave, in bytes."""
    limit_name, usage_name, cache_name = names
    # In a container the path may be the host's, and missing under our mount; the mount itself is then our group.
    inside = mount / group.lstrip("/")
    for folder in (inside, *inside.parents):
        limit, usage = _read_text(folder / limit_name).strip(), _read_text(folder / usage_name).strip()
        if limit.isdigit() and usage.isdigit():
            cache = re.search(rf"^{cache_name} (\d+)$", _read_text(folder / "memory.stat"), re.MULTILINE)
            yield int(limit) - int(usage) + (int(cache[1]) if cache else 0)
        if folder == mount:
            break
