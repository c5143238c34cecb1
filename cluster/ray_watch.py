"""Who has stopped without a word: judged by signs that must change while somebody works; pure.

Ray tells of a worker that dies, never of one that hangs or was stopped (SIGSTOP).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

_LONGEST_STEP_S = 2.0
"""What one observation may add: a machine that slept, or a driver that was busy, is nobody's fault."""


@dataclass
class _Seen:
    sign: object
    quiet_s: float
    last_s: float


class Watch:
    """Adds up for how long each of those who should be at work has shown the same sign."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, _Seen] = {}

    def quiet_s(self, name: Hashable, sign: object, now_s: float) -> float:
        """Note the sign of somebody who should be at work.

        Parameters
        ----------
        name
            Who.
        sign
            Whatever changes with its work.
        now_s
            When, on any clock that never goes back.

        Returns
        -------
        float
            For how many observed seconds the sign has been the same.
        """
        seen = self._seen.get(name)
        if seen is None or seen.sign != sign:
            self._seen[name] = _Seen(sign, 0.0, now_s)
            return 0.0
        seen.quiet_s += min(now_s - seen.last_s, _LONGEST_STEP_S)
        seen.last_s = now_s
        return seen.quiet_s

    def forget(self, name: Hashable) -> None:
        """Begin anew with somebody who has nothing to do, or who is gone."""
        self._seen.pop(name, None)
