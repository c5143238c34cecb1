"""Computes how large the table, ``/dev/shm`` and a container may be: ``python deploy/table_size.py --memory 16``.

Needs nothing but Python. The figures of `WORKER_MB` and `RAY_MB` are measured: resident, with chess's kernel loaded.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

ENTRIES_PER_MB = (1 << 20) // 16
OBJECT_STORE_MB = 128
"""Ray's own share of shared memory, as all files of this folder set it; our tasks are some hundred bytes each."""
SLACK_MB = 64
"""Header, control words, and what Ray keeps beside its store."""
WORKER_MB = 256
RAY_MB = 1024
"""Raylet, its helpers, and our agent."""
LARGEST_SHARE = 0.6
"""Ray's memory monitor counts shared memory as used and kills workers at 95 %: leave room."""


class Sizes(NamedTuple):
    """What to ask for on each machine, in MB (2^20 bytes)."""

    table_mb: int
    """For ``--table``."""
    shared_memory_mb: int
    """For ``--shm-size``, or the ``sizeLimit`` of the volume at ``/dev/shm``."""


def sizes(memory_mb: int, workers: int) -> Sizes:
    """Return the largest sizes for a machine, or for a container's memory limit.

    Raises
    ------
    ValueError
        If no table is left beside the workers.
    """
    beside = RAY_MB + OBJECT_STORE_MB + SLACK_MB + workers * WORKER_MB
    table_mb = min(int(LARGEST_SHARE * memory_mb), memory_mb - beside)
    if table_mb < 1:
        raise ValueError(f"{workers} workers and Ray need {beside} MB, so that {memory_mb} MB leave no table")
    return Sizes(table_mb, table_mb + OBJECT_STORE_MB + SLACK_MB)


def main() -> None:
    """Print the sizes for a machine."""
    parser = argparse.ArgumentParser(description="Sizes of table and shared memory for one machine.")
    parser.add_argument("--memory", type=float, required=True, metavar="GB", help="of the machine or its container")
    parser.add_argument("--workers", type=int, required=True, help="one for each core of the machine")
    parser.add_argument("--rate", type=float, metavar="K", help="thousand entries a second of one worker, see README")
    options = parser.parse_args()
    try:
        table_mb, shared_memory_mb = sizes(int(options.memory * 1024), options.workers)
    except ValueError as error:
        parser.error(str(error))
    print(f"table          --table {table_mb}   ({table_mb * ENTRIES_PER_MB / 1e6:.0f} million entries)")
    print(f"shared memory  --shm-size {shared_memory_mb}m   or sizeLimit: {shared_memory_mb}Mi")
    if options.rate:
        minutes = table_mb * ENTRIES_PER_MB / (options.rate * 1e3 * options.workers) / 60
        print(f"full after     {minutes:.0f} minutes of search; a longer search replaces shallow entries")


if __name__ == "__main__":
    main()
