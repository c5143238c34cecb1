"""Boards in a machine's control words: where one worker tells others what it is at, without a message.

A board holds one text at a time, with the number that it is known by::

    word 0   the number; 0 as long as nothing was written
    word 1   length of the text in bytes
    word 2   checksum of number and text
    words 3..  the text

Whoever reads while another writes gets nothing, by the checksum, and reads again.
"""

from __future__ import annotations

import ctypes
import hashlib

from tt_store.layout import WORD_BYTES

BOARDS = 64
"""A machine has so many of each kind: with teams of 16 as many as it may have workers."""
BOARD_WORDS = 512
_TEXT_OFFSET = 3 * WORD_BYTES
MOST_BYTES = BOARD_WORDS * WORD_BYTES - _TEXT_OFFSET
"""Of a text."""


class Board:
    """One board, at the address of `BOARD_WORDS` zeroed words that outlive this object's use."""

    def __init__(self, address: int) -> None:
        self._address = address

    @property
    def number(self) -> int:
        """Number of the text that was written last, 0 if none was."""
        # Race: others write; a word is read in one piece (see `search.controls.Controls`).
        return self._word(0).value

    def write(self, number: int, text: bytes) -> None:
        """Put a text in the place of the last one.

        Parameters
        ----------
        number
            1..2^62, another one than the last.
        text
            At most `MOST_BYTES`.

        Raises
        ------
        ValueError
            If it is longer.
        """
        if len(text) > MOST_BYTES:
            raise ValueError(f"a text of {len(text)} bytes does not fit on a board of {MOST_BYTES}")
        # Race: others read meanwhile, and may write; what is mixed up fails the checksum. The number comes last.
        ctypes.memmove(self._address + _TEXT_OFFSET, text, len(text))
        self._word(1).value = len(text)
        self._word(2).value = _checksum(number, text)
        self._word(0).value = number

    def read(self) -> tuple[int, bytes] | None:
        """Return the number and the text; None if there is none, or it is being written at this moment."""
        number, length, checksum = self.number, self._word(1).value, self._word(2).value
        if number == 0 or not 0 <= length <= MOST_BYTES:
            return None
        # Race: as above.
        text = ctypes.string_at(self._address + _TEXT_OFFSET, length)
        return (number, text) if _checksum(number, text) == checksum else None

    def _word(self, index: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._address + index * WORD_BYTES)


def _checksum(number: int, text: bytes) -> int:
    digest = hashlib.blake2b(number.to_bytes(WORD_BYTES, "little") + text, digest_size=WORD_BYTES).digest()
    return int.from_bytes(digest, "little", signed=True)
