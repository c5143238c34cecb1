"""Saves a running search from time to time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster import checkpoint
from cluster.checkpoint import Checkpoint, CheckpointError, Identity
from search.results import Iteration

DEFAULT_PERIOD_S = 60.0


@dataclass(frozen=True)
class CheckpointFile:
    """Where a search is saved, and how often.

    Raises
    ------
    CheckpointError
        If the period is out of range.
    """

    path: Path
    period_s: float = DEFAULT_PERIOD_S
    """Between two saves, in seconds, 0 or more."""

    def __post_init__(self) -> None:
        if not 0 <= self.period_s < math.inf:
            raise CheckpointError(f"the time between two checkpoints must be 0 seconds or more, not {self.period_s:g}")


class Checkpointer:
    """Keeps a search's checkpoint up to date; `tick` must be called often.

    Parameters
    ----------
    file, identity
        Where, and which search.
    entries
        Returns the deepest table entries.
    notice
        Gets a line if a save fails.
    """

    def __init__(
        self,
        file: CheckpointFile,
        identity: Identity,
        entries: Callable[[int], list[bytes]],
        notice: Callable[[str], None],
    ) -> None:
        self._file, self._identity, self._entries, self._notice = file, identity, entries, notice
        self._iterations: list[Iteration] = []
        self._next_s = time.monotonic() + file.period_s

    def resume(self) -> Checkpoint | None:
        """Return what an earlier run has saved, None if there is no file yet: then one is made.

        Raises
        ------
        CheckpointError
            If there is a file that is not a checkpoint of this search, or none can be written.
        """
        if not self._file.path.exists() and not self._file.path.is_symlink():
            checkpoint.save(Checkpoint(self._identity, (), ()), self._file.path)
            return None
        found = checkpoint.load(self._file.path, self._identity)
        self._iterations = [*found.iterations]
        return found

    def note(self, iteration: Iteration) -> None:
        """Take a finished iteration."""
        self._iterations.append(iteration)

    def tick(self) -> None:
        """Save if it is time."""
        if time.monotonic() >= self._next_s:
            self.save()

    def save(self) -> None:
        """Save now; a disk that is full meanwhile does not end a long search."""
        entries = tuple(self._entries(checkpoint.MOST_ENTRIES))
        try:
            checkpoint.save(Checkpoint(self._identity, tuple(self._iterations), entries), self._file.path)
        except CheckpointError as error:
            self._notice(f"{error}; the search goes on without")
        self._next_s = time.monotonic() + self._file.period_s
