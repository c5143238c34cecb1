"""Carries news of a machine's table to the agents of the others, from agent to agent, without waiting for any."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from cluster.logs import LOGGER
from tt_store.exchange import Outbox, entries_in, period_s
from tt_store.news import News
from tt_store.segment import Segment

_ANSWER_S = 60.0
"""For the transfer of an answer that is ready."""
_MOST_WAITING = 2
"""Messages on the way to one peer: more are not sent, so that nothing piles up where a peer is slow or gone."""


class Courier:
    """Sends what is new in a table to the peers that it has met, from a thread of its own.

    Parameters
    ----------
    segment
        The table.
    news_address
        Of the ring of those who search on it.
    count
        Gets the number of entries of each message that is sent.
    """

    def __init__(self, segment: Segment, news_address: int, count: Callable[[int], None]) -> None:
        self.entries = 0
        """How many have been sent so far, each counted once for each receiver."""
        self._segment, self._news_address, self._count = segment, news_address, count
        self._outbox: Outbox | None = None
        self._waiting: dict[Any, list[Any]] = {}
        """The deliveries to each peer that it has not taken yet."""
        # Race: the actor's thread and ours; whoever holds it may use the segment, or close it.
        self._turn = threading.Condition()
        self._is_closed = False
        threading.Thread(target=self._run, name="rootsplit-courier", daemon=True).start()

    def meet(self, peers: Sequence[Any]) -> None:
        """Send to these agents from now on, and to no others; kernels note news only while there is any."""
        with self._turn:
            self._waiting = {peer: self._waiting.get(peer, []) for peer in peers}
            if peers and self._outbox is None:
                self._outbox = Outbox(self._segment, News(self._news_address))
            elif not peers:
                self._dismiss()
            self._turn.notify()

    def forget(self) -> None:
        """Leave out what has been noted so far."""
        with self._turn:
            if self._outbox is not None:
                self._outbox.forget()

    def close(self) -> None:
        """End the thread; the segment may be closed then."""
        with self._turn:
            self._is_closed = True
            self._dismiss()
            self._turn.notify()

    def _dismiss(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None

    def _run(self) -> None:
        with self._turn:
            while not self._is_closed:
                if self._outbox is not None:
                    self._send(self._outbox.collect())
                self._turn.wait(period_s(len(self._waiting) + 1) if self._waiting else None)

    def _send(self, message: bytes) -> None:
        """Send a message to each peer that keeps up with those before."""
        self._strike_off()
        if not message:
            return
        for peer, calls in self._waiting.items():
            if len(calls) < _MOST_WAITING:
                calls.append(peer.deliver.remote(message))
                self.entries += entries_in(message)
                self._count(entries_in(message))

    def _strike_off(self) -> None:
        """Forget the deliveries that have been taken, or have failed."""
        calls = [call for waiting in self._waiting.values() for call in waiting]
        if not calls:
            return
        ready = set(ray.wait(calls, num_returns=len(calls), timeout=0)[0])
        for call in ready:
            try:
                ray.get(call, timeout=_ANSWER_S)
            except RayError as error:
                # The driver watches the machines, and tells us of those that are left; here only entries are lost.
                LOGGER.info("a machine did not take entries: %s", error)
        self._waiting = {
            peer: [call for call in waiting if call not in ready] for peer, waiting in self._waiting.items()
        }
