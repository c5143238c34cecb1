"""How a process that has used Ray ends."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn


def depart(code: int) -> NoReturn:
    """End this process with an exit code.

    A thread of Ray's that nothing joins goes on counting metrics while C++ takes down the static data that it reads:
    now and then a process would end in a segmentation fault with all its work done. So where Ray was used, Python's own
    handlers run, what was printed is flushed, and nothing else happens.
    """
    if "ray" not in sys.modules:
        sys.exit(code)
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)
