"""What a user may say about a cluster beyond its address."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from cluster.logs import new_run
from tt_store.errors import RootsplitError


class OptionsError(RootsplitError):
    """An option that no cluster can keep."""


@dataclass(frozen=True)
class ClusterOptions:
    """Options of workers on Ray.

    Raises
    ------
    OptionsError
        If one is out of range.
    """

    table_directory: Path | None = None
    """Where each machine's table goes; None for its shared memory."""
    hang_s: float = 10.0
    """After how many seconds without progress a busy worker is replaced, at least 1."""
    run: str = field(default_factory=new_run)
    """The run's id, which logs, tables' files and metrics carry."""

    def __post_init__(self) -> None:
        if not 1 <= self.hang_s < math.inf:
            raise OptionsError(f"a worker may be given up after 1 second or more without progress, not {self.hang_s:g}")
