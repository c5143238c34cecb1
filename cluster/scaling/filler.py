"""Load on cores that would be idle, so that a processor's clock is as high for one worker as it is for many."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SPIN = """
import os, sys
os.nice(19)
parent = int(sys.argv[1])
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def filled(processes: int) -> Iterator[None]:
    """Keep so many processes spinning while the block runs, at the least priority; they end with this one too."""
    spinning = [
        subprocess.Popen([sys.executable, "-S", "-c", _SPIN, str(os.getpid())], stdin=subprocess.DEVNULL)
        for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
