"""Random numbers that are split by counting: each stream has a number, and needs nothing of the others.

A stream is one word of memory that grows by the golden ratio at each draw, and is mixed into the number drawn
(SplitMix: Steele, Lea and Flood 2014). Streams of other numbers begin at unrelated places of the same cycle.
"""

from __future__ import annotations

import numpy as np

from search.jit import helper
from search.rules import mix
from tt_store.native import Word, as_int, as_word, multiply_high, read_word, write_int

_GOLDEN = 0x9E3779B97F4A7C15
GOLDEN = np.uint64(_GOLDEN)
_WORD_MASK = (1 << 64) - 1


@helper
def begin_stream(address: int, origin: int, number: int) -> int:
    """Begin a stream in the word at an address; returns 0.

    Parameters
    ----------
    address
        Of a word of the caller's own.
    origin
        What `origin_of` made of a seed.
    number
        Of the stream, 0 or more.
    """
    return write_int(address, as_int(mix(as_word(origin) + GOLDEN * as_word(number))))


@helper
def _draw_word(address: int) -> Word:
    state = read_word(address) + GOLDEN
    write_int(address, as_int(state))
    return mix(state)


@helper
def draw(address: int, count: int) -> int:
    """Return the next number of the stream at an address, 0..count - 1 (count at most 2^32), as good as evenly."""
    return as_int(multiply_high(_draw_word(address), as_word(count)))


def origin_of(seed: int) -> int:
    """Return where the streams of a seed begin: a signed 64-bit integer, the same for seeds that are equal mod 2^64."""
    word = (seed ^ 0x5851F42D4C957F2D) * _GOLDEN & _WORD_MASK
    word ^= word >> 32
    word = word * 0xD6E8FEB86659FD93 & _WORD_MASK
    word ^= word >> 32
    return word - (1 << 64) if word >> 63 else word
