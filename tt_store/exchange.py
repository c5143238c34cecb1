"""Deep entries between the tables of different machines: out and in as short checked messages.

A message is ``magic | number of entries | checksum | entries``; an entry is its key and its data, 8 bytes each,
little-endian. What goes out are the news that kernels note as they store (`tt_store.news`). What comes in is merged
into the table without being noted, so that no entry comes back to where it was found.
"""

from __future__ import annotations

import hashlib

import numpy as np

from tt_store.bulk import CHECK, DATA, Words, merge, table_words
from tt_store.errors import TableError
from tt_store.layout import (
    BOUND_MASK,
    BOUND_SHIFT,
    DEPTH_MASK,
    DEPTH_SHIFT,
    ENTRY_BYTES,
    GENERATION_MASK,
    GENERATION_SHIFT,
)
from tt_store.news import News
from tt_store.segment import Segment

MAGIC = b"ROOTSXC1"
CHECKSUM_BYTES = 16
HEADER_BYTES = len(MAGIC) + 4 + CHECKSUM_BYTES
MOST_ENTRIES = 2000
"""In one message: 32 kB."""
LEAST_DEPTH = 5
"""Shallower entries are searched again sooner than they travel."""
_PERIOD_S = 0.02
_PERIOD_A_MACHINE_S = 0.005


def period_s(machines: int) -> float:
    """Return the seconds between two messages of a machine.

    The others of a cluster send a receiver at most ``(machines - 1) / period_s(machines)`` messages a second: fewer
    than 200 however many they are, 6.4 MB/s; and as many does each machine send.

    Parameters
    ----------
    machines
        How many exchange entries, at least 1.
    """
    return _PERIOD_S + _PERIOD_A_MACHINE_S * machines


class Outbox:
    """Collects what other machines should know; kernels note news from its making to its `close`.

    Parameters
    ----------
    segment
        This machine's table.
    news
        The ring of those who search on it.
    """

    def __init__(self, segment: Segment, news: News) -> None:
        self._segment, self._news = segment, news
        news.least_depth = LEAST_DEPTH

    @property
    def least_depth(self) -> int:
        """What is worth noting; follows the traffic: rises while there is more than a message, falls while little."""
        return self._news.least_depth

    def collect(self) -> bytes:
        """Return what is new of this search, the newest of each key, the deepest first; empty if there is nothing.

        What a message cannot hold is left out for good.
        """
        noted = self._news.take()[::-1]
        is_current = _field(noted[:, DATA], GENERATION_SHIFT, GENERATION_MASK) == self._segment.generation
        # Race: what is being noted at this moment may have no data yet, so no bound.
        noted = noted[is_current & (_field(noted[:, DATA], BOUND_SHIFT, BOUND_MASK) != 0)]
        entries = noted[np.unique(noted[:, CHECK], return_index=True)[1]]
        self._adapt(len(entries))
        if not len(entries):
            return b""
        return pack(entries[np.argsort(-_depths(entries[:, DATA]), kind="stable")[:MOST_ENTRIES]])

    def forget(self) -> None:
        """Leave out what has been noted so far, as if just made."""
        self._news.take()
        self._news.least_depth = LEAST_DEPTH

    def close(self) -> None:
        """Have kernels note nothing more."""
        self._news.least_depth = 0

    def _adapt(self, found: int) -> None:
        if found > MOST_ENTRIES:
            self._news.least_depth = min(DEPTH_MASK, self.least_depth + 1)
        elif found < MOST_ENTRIES // 8:
            self._news.least_depth = max(LEAST_DEPTH, self.least_depth - 1)


def deliver(segment: Segment, message: bytes) -> int:
    """Put the entries of a message into a table and return how many it held.

    Raises
    ------
    TableError
        If the message is damaged or no message of ours; the table is then untouched.
    """
    entries = unpack(message)
    if len(entries):
        shift = np.uint64(GENERATION_SHIFT)
        mask = np.uint64(GENERATION_MASK) << shift
        entries[:, DATA] = entries[:, DATA] & ~mask | np.uint64(segment.generation) << shift
        merge(table_words(segment), entries)
    return len(entries)


def pack(entries: Words) -> bytes:
    """Return the message of ``[N, 2]`` keys and data, N at most `MOST_ENTRIES`."""
    body = entries.astype("<u8").tobytes()
    return MAGIC + len(entries).to_bytes(4, "little") + _checksum(body) + body


def unpack(message: bytes) -> Words:
    """Return the ``[N, 2]`` keys and data of a message; an empty message has none.

    Raises
    ------
    TableError
        If anything about it is wrong.
    """
    if not message:
        return np.zeros((0, 2), np.uint64)
    count = int.from_bytes(message[len(MAGIC) : len(MAGIC) + 4], "little")
    body = message[HEADER_BYTES:]
    is_whole = message[: len(MAGIC)] == MAGIC and 0 < count <= MOST_ENTRIES and len(body) == count * ENTRY_BYTES
    if not is_whole or message[HEADER_BYTES - CHECKSUM_BYTES : HEADER_BYTES] != _checksum(body):
        raise TableError("a batch of table entries from another machine is damaged")
    entries: Words = np.frombuffer(body, dtype="<u8").reshape(-1, 2).astype(np.uint64)
    if not np.all(_field(entries[:, DATA], BOUND_SHIFT, BOUND_MASK)):
        raise TableError("a batch of table entries from another machine holds entries without a bound")
    return entries


def entries_in(message: bytes) -> int:
    """Return how many entries a message of ours holds, by its length."""
    return max(0, len(message) - HEADER_BYTES) // ENTRY_BYTES


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def _field(data: Words, shift: int, mask: int) -> Words:
    return data >> np.uint64(shift) & np.uint64(mask)


def _depths(data: Words) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return _field(data, DEPTH_SHIFT, DEPTH_MASK).astype(np.int64)
