"""Which positions have an answer: identities of 64 bits and places in the journal, kept on disk.

A batch may have ten million positions, and its memory is to be the same as with ten thousand: so this is a temporary
table of SQLite (in its folder for temporary files: ``SQLITE_TMPDIR``, ``TMPDIR``, ``/var/tmp``), which is gone with
the process, whatever ends it. New identities go there by the thousand, in the order of their values.
"""

from __future__ import annotations

import sqlite3

from tt_store.errors import RunFailedError

_CACHE_KIB = 8192
_RECENT = 1 << 13
_TO_SIGNED = 1 << 63
"""SQLite's integers have a sign."""


class AnswerIndex:
    """Maps identities (1..2^64 - 1) to places (0 or more); used by one thread at a time.

    Raises
    ------
    RunFailedError
        By any method, if the folder for temporary files is full or cannot be written.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        """Those that are not in the table yet."""
        # The empty name makes a file without one. Nothing of it is to survive this process: no journal, no syncing.
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
            self._table.execute(f"PRAGMA {setting}")
        self._table.execute("CREATE TABLE places (identity INTEGER PRIMARY KEY, place INTEGER NOT NULL)")
        self._cursor = self._table.cursor()

    def get(self, identity: int) -> int | None:
        """Return the place of an identity, or None."""
        place = self._recent.get(identity)
        if place is not None:
            return place
        try:
            row = self._cursor.execute(
                "SELECT place FROM places WHERE identity = ?", (identity - _TO_SIGNED,)
            ).fetchone()
        except sqlite3.Error as error:
            raise _failed(error) from None
        return row[0] if row is not None else None

    def put(self, identity: int, place: int) -> None:
        """Remember the place of an identity."""
        self._recent[identity] = place
        if len(self._recent) >= _RECENT:
            rows = sorted((identity - _TO_SIGNED, place) for identity, place in self._recent.items())
            try:
                self._cursor.execute("BEGIN")
                self._cursor.executemany("INSERT OR REPLACE INTO places VALUES (?, ?)", rows)
                self._cursor.execute("COMMIT")
            except sqlite3.Error as error:
                raise _failed(error) from None
            self._recent.clear()

    def close(self) -> None:
        """Forget all."""
        self._table.close()


def _failed(error: sqlite3.Error) -> RunFailedError:
    return RunFailedError(f"the index of answers cannot be kept in the folder for temporary files: {error}")
