"""The weights of the network as whole numbers, and the text that they are kept as."""

from __future__ import annotations

import base64
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SQUARES, MOST_MEN = 64, 32
INPUTS = 768
"""Men of a view: by side, kind and square."""
UNIT, LAST_UNIT = 255, 64
"""What stands for 1 in a view, and in the weights of the last layer."""
_LITTLE_SHORT = np.dtype("<i2")


class Layers(NamedTuple):
    """The weights of a network with `H` hidden units a view and `B` last layers."""

    rows: NDArray[np.int16]
    """`[INPUTS, H]`: what a man adds to a view, in `UNIT`."""
    bias: NDArray[np.int16]
    """`[H]`: of each view."""
    last: NDArray[np.int16]
    """`[B, 2, H]`: of the mover's view and of the other's, in `LAST_UNIT`, at most 127 either way."""
    offsets: NDArray[np.int64]
    """`[B]`: of the estimate, in `UNIT * LAST_UNIT`."""


def pack(layers: Layers) -> bytes:
    """Return the shorts of the layers as letters; the offsets are kept apart."""
    shorts = np.concatenate([layer.astype(_LITTLE_SHORT).ravel() for layer in layers[:3]])
    # High bytes apart from low ones: most are 0 or 255, which packs well.
    halves = shorts.view(np.uint8).reshape(-1, 2).T
    return base64.b85encode(zlib.compress(halves.tobytes(), 9))


def unpack(packed: bytes, hidden: int, offsets: tuple[int, ...]) -> Layers:
    """Return the layers that `pack` made letters of."""
    halves = np.frombuffer(zlib.decompress(base64.b85decode(packed)), np.uint8).reshape(2, -1)
    shorts = np.ascontiguousarray(halves.T).view(_LITTLE_SHORT).ravel().astype(np.int16)
    sizes = INPUTS * hidden, hidden, len(offsets) * 2 * hidden
    rows, bias, last = np.split(shorts, np.cumsum(sizes)[:-1])
    return Layers(
        rows.reshape(INPUTS, hidden), bias, last.reshape(len(offsets), 2, hidden), np.array(offsets, np.int64)
    )
