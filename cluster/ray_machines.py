"""A machine and a worker of a cluster, as their driver knows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError

from cluster.logs import LOGGER
from cluster.records import WorkerInfo
from tt_store.errors import TableError
from tt_store.segment import Segment

_CLOSE_S = 10.0


class Call(NamedTuple):
    """A call that a worker has not answered."""

    ids: tuple[int, ...]
    """Of its tasks or positions: what the event of its loss names."""
    events: Callable[[int, bytes], list[Any]]
    """Makes events of worker and answer."""


@dataclass
class Machine:
    """One Ray node with its agent."""

    node_id: str
    agent: Any
    path: str = ""
    table_mb: float = 0.0
    cores: int = 0
    """How many workers it may have."""
    segment: Segment | None = None
    """Its table, if it is on this host: control words then need no message."""
    taken: set[int] = field(default_factory=set)
    """Slots that have a worker, or had one that was given up."""
    ready: Any = None
    """The call that tells where its table is."""
    started_s: float = 0.0
    pulse: Any = None
    """The call that tells how its workers are."""
    asked: list[tuple[Member, int]] = field(default_factory=list)
    """About whom, with their processes then."""
    next_pulse_s: float = 0.0

    @property
    def name(self) -> str:
        """What users see of it."""
        return self.node_id[:8]

    def attach(self, path: str, table_mb: float) -> None:
        """Note where the table is and its size; map it if it lies on this host."""
        self.path, self.table_mb = path, table_mb
        try:
            self.segment = Segment.attach(Path(path))
        except TableError:
            self.segment = None

    def let_go(self) -> None:
        """Unmap the table."""
        if self.segment is not None:
            self.segment.close()
            self.segment = None

    def remove(self) -> None:
        """Have the agent remove its table and end; one that is gone already leaves it to `reclaim`."""
        self.let_go()
        try:
            ray.get(self.agent.close.remote(), timeout=_CLOSE_S)
        except RayError as error:
            LOGGER.info("agent on %s did not close: %s", self.node_id, error)
        ray.kill(self.agent)


@dataclass(eq=False)
class Member:
    """One worker, and the calls that it has not answered."""

    info: WorkerInfo
    machine: Machine
    slot: int
    actor: Any
    ready: Any = None
    """The call that tells its process."""
    started_s: float = 0.0
    pid: int = 0
    respawns: int = 0
    answered: int = 0
    """How many of its calls have been answered."""
    calls: dict[Any, Call] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What users see of it."""
        return f"worker {self.info.worker} on machine {self.info.machine}"
