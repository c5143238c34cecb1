"""Which positions have an answer: 64-bit identities and places in the journal, 24 to 48 bytes a position.

A dictionary of Python integers would take some 200 bytes a position. Open addressing with linear probing (Knuth 1973,
volume 3, section 6.4) in two arrays, which double when they are two thirds full.
"""

from __future__ import annotations

from array import array

_FIRST_SLOTS = 1 << 12
_FULL_NUMERATOR, _FULL_DENOMINATOR = 2, 3


class AnswerIndex:
    """Maps identities (1..2^64 - 1) to places (0 or more)."""

    def __init__(self) -> None:
        self._allocate(_FIRST_SLOTS)

    def __len__(self) -> int:
        """Return the number of identities."""
        return self._used

    def get(self, identity: int) -> int | None:
        """Return the place of an identity, or None."""
        identities, mask = self._identities, self._mask
        slot = identity & mask
        while (found := identities[slot]) != identity:
            if not found:
                return None
            slot = slot + 1 & mask
        return self._places[slot]

    def put(self, identity: int, place: int) -> None:
        """Remember the place of an identity."""
        identities, mask = self._identities, self._mask
        slot = identity & mask
        while (found := identities[slot]) and found != identity:
            slot = slot + 1 & mask
        self._places[slot] = place
        if not found:
            identities[slot] = identity
            self._used += 1
            if self._used * _FULL_DENOMINATOR > (mask + 1) * _FULL_NUMERATOR:
                self._grow()

    def _allocate(self, slots: int) -> None:
        self._mask = slots - 1
        self._used = 0
        self._identities, self._places = array("Q", bytes(8 * slots)), array("Q", bytes(8 * slots))

    def _grow(self) -> None:
        identities, places = self._identities, self._places
        self._allocate(2 * len(identities))
        for identity, place in zip(identities, places, strict=True):
            if identity:
                self.put(identity, place)
