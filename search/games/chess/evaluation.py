"""The estimate of a position: the network's, but for end games that are known better."""

from __future__ import annotations

from search.games.chess.board import NOTHING, Position, clock, occupied
from search.games.chess.endings import NORMAL, mating_value, scale
from search.games.chess.network import network_value, plain_network_value
from search.games.chess.pawn_ending import is_pawn_ending, pawn_ending_value
from search.games.chess.views import opposite
from search.jit import helper, inlined
from search.rules import FRESH_CLOCK

CLOCK_STEP_SHIFT, CLOCK_SPAN = 3, 16
"""Beyond `FRESH_CLOCK` plies without progress a position is worth less by 1/16 for each 8 of them."""
MOST = 20_000
"""No estimate is larger."""
UNKNOWN = MOST + 1


@helper
def _known_value(position: Position) -> int:
    """Return the value of an end game that is known, else `UNKNOWN`."""
    if is_pawn_ending(position):
        return pawn_ending_value(position)
    value = 0
    if occupied(position) & ~(position.own | position.kings) == NOTHING:
        value = mating_value(position)
    elif position.own & ~position.kings == NOTHING:
        value = -mating_value(opposite(position))
    return value if value != 0 else UNKNOWN


@inlined
def _scaled(position: Position, value: int) -> int:
    """Return an estimate by how much of it can be won."""
    if value > 0:
        return value * scale(position) // NORMAL
    return -(-value * scale(opposite(position)) // NORMAL)


@inlined
def _bounded(position: Position, value: int) -> int:
    """Return the estimate: worth less the longer nothing happens, and never like a mate."""
    if clock(position) > FRESH_CLOCK:
        stale = min(clock(position), 100) - FRESH_CLOCK >> CLOCK_STEP_SHIFT
        value -= value * stale // CLOCK_SPAN
    return max(-MOST, min(value, MOST))


@helper
def evaluate_with(position: Position, memory: int) -> int:
    """Estimate a position as `evaluate` does, with memory of the searching core for the network's views."""
    value = _known_value(position)
    if value == UNKNOWN:
        value = _scaled(position, network_value(position, memory))
    return _bounded(position, value)


@helper
def evaluate(position: Position) -> int:
    """Estimate a position in centipawns for the side to move."""
    value = _known_value(position)
    if value == UNKNOWN:
        value = _scaled(position, plain_network_value(position))
    return _bounded(position, value)
