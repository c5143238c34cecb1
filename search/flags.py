"""The variants of the one search function; each flag is a constant that the compiler sees."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Pruning(IntEnum):
    """What the search leaves out, from nothing to what PVS does."""

    NONE = 0
    """Plain negamax: every node."""
    FAIL_HARD = 1
    """Alpha-beta whose result never leaves the window (Knuth and Moore 1975)."""
    FAIL_SOFT = 2
    """Alpha-beta whose result is a bound that may lie outside the window (Fishburn 1983)."""
    PVS = 3
    """Fail-soft; null windows after the first move (Marsland and Campbell 1982, Reinefeld 1983)."""


class Flags(NamedTuple):
    """A variant of the kernel. The default is the one that searches best; tests and experiments ask for others."""

    pruning: Pruning = Pruning.PVS
    ordering: bool = True
    """Rank moves by the game's `order`, killers and history; without, they come as the game generates them."""
    table: bool = True
    """Probe and store the transposition table."""
    exact_depth: bool = False
    """A table hit needs equal depth: fixed-depth values are then equal for any number of workers and any table."""
    evaluation: bool = True
    """Score the horizon by the game's `evaluate`; without, by 0."""
    stepped: bool = False
    """Give the turn back at each poll: for simulated workers (see `search.turns`)."""
