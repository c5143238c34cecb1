"""When a search ends: the first limit reached."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from search.scores import MAX_PLY
from tt_store.errors import RootsplitError

MAX_DEPTH = MAX_PLY - 16
"""Deepest iteration, in plies: lines and table entries hold no more."""

MAX_FIRST_MOVES = 1024
"""No position has more moves, whatever the game (see `search.rules`)."""

NO_NODE_LIMIT = 1 << 60
WHOLE_DEPTH = 6
"""So many plies from its root, and so near to a mate, a selective search leaves nothing out."""


class LimitsError(RootsplitError):
    """A limit that no search can keep."""


@dataclass(frozen=True)
class Limits:
    """Limits of one search; None leaves one open.

    Raises
    ------
    LimitsError
        If one is out of range.
    """

    depth: int | None = None
    """Plies, 1..`MAX_DEPTH`."""
    nodes: int | None = None
    """Nodes summed over all workers, at least 1."""
    time_s: float | None = None
    """Seconds, more than 0."""
    mate: int | None = None
    """End as soon as a win in this many moves of the winner is proved, at least 1."""

    def __post_init__(self) -> None:
        if self.depth is not None and not 1 <= self.depth <= MAX_DEPTH:
            raise LimitsError(f"depth must be from 1 to {MAX_DEPTH} plies, not {self.depth}")
        if self.nodes is not None and not 1 <= self.nodes <= NO_NODE_LIMIT:
            raise LimitsError(f"nodes must be at least 1, not {self.nodes}")
        if self.time_s is not None and not (math.isfinite(self.time_s) and self.time_s > 0):
            raise LimitsError(f"the time must be more than 0 seconds, not {self.time_s:g}")
        if self.mate is not None and self.mate < 1:
            raise LimitsError(f"mate must be at least 1 move, not {self.mate}")

    @property
    def last_depth(self) -> int:
        """The deepest iteration that may run."""
        return MAX_DEPTH if self.depth is None else self.depth

    @property
    def node_limit(self) -> int:
        """The greatest number of nodes."""
        return NO_NODE_LIMIT if self.nodes is None else self.nodes


@contextlib.contextmanager
def stopped_after(time_s: float | None, stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on another thread once so many seconds have passed, unless the block ends before; None: never.

    When the block is left, `stop` has returned or will never be called: what it touches may then go.
    """
    if time_s is None:
        yield
        return
    timer = threading.Timer(min(time_s, threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
