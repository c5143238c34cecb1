"""Carries batches of deep table entries between the machines of a cluster, at a bounded rate, without waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayError

from cluster.logs import LOGGER
from tt_store.exchange import entries_in

_ANSWER_S = 60.0
"""For the transfer of an answer that is ready."""
_PERIOD_S = 0.1
"""Between two batches of entries from a machine: at most 0.3 MB/s to each of the others."""


class Exchange:
    """Passes what each machine's agent has collected on to all the others."""

    def __init__(self) -> None:
        self.entries = 0
        """How many have gone to other machines so far."""
        self._batches: dict[Any, str] = {}
        self._next_s = 0.0

    def step(self, agents: Mapping[str, Any], now_s: float) -> None:
        """Pass on what has come, and ask for more.

        Parameters
        ----------
        agents
            The agent of each machine.
        now_s
            The time.
        """
        if len(agents) < 2 or now_s < self._next_s:
            return
        self._next_s = now_s + _PERIOD_S
        for call in self._ready():
            sender = self._batches.pop(call)
            try:
                message = ray.get(call, timeout=_ANSWER_S)
            except RayError as error:
                # Whoever watches the machines will see that it is lost; here only entries are.
                LOGGER.info("no entries from %s: %s", sender, error)
                continue
            for machine, agent in agents.items() if message else ():
                if machine != sender:
                    agent.deliver.remote(message)
                    self.entries += entries_in(message)
        waiting = set(self._batches.values())
        for machine, agent in agents.items():
            if machine not in waiting:
                self._batches[agent.collect.remote()] = machine

    def _ready(self) -> list[Any]:
        if not self._batches:
            return []
        return list(ray.wait(list(self._batches), num_returns=len(self._batches), timeout=0)[0])
