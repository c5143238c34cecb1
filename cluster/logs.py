"""Logs for whoever asks for them: one line an event on stderr, with the run's id; quiet by default."""

from __future__ import annotations

import logging
import sys
from uuid import uuid4

LOGGER = logging.getLogger("rootsplit")
LEVELS = ("debug", "info", "warning")


def new_run() -> str:
    """Return an id that tells runs apart."""
    return uuid4().hex[:8]


def configure(level: str, run: str) -> None:
    """Write log lines of a level and above on stderr, as ``time level run=... message``.

    Parameters
    ----------
    level
        One of `LEVELS`.
    run
        The run's id, which tables' files and metrics carry too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s run={run} %(message)s"))
    LOGGER.handlers[:] = [handler]
    LOGGER.propagate = False
    LOGGER.setLevel(level.upper())
