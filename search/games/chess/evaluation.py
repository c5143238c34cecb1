"""The estimate of a position: a sum of terms, tapered from the middle game to the end game, then scaled.

Each term is written for one side, whose pawns go upward, and called for both: the sum is antisymmetric by construction.
"""

from __future__ import annotations

from search.games.chess.activity import activity
from search.games.chess.board import BISHOP, KNIGHT, QUEEN, ROOK, Position, clock
from search.games.chess.endings import NORMAL, bare_king, scale
from search.games.chess.king_safety import danger, danger_value
from search.games.chess.pawn_ending import is_pawn_ending, pawn_ending_value
from search.games.chess.pawn_memory import NO_MEMORY, known_pawn_terms, pawn_terms
from search.games.chess.pawns import passed_score
from search.games.chess.terms import (
    FULL_PHASE,
    OFFSETS,
    PHASE_WEIGHTS,
    end_half,
    middle_half,
    term_weights,
    weight,
)
from search.games.chess.threats import threats
from search.games.chess.views import opposite
from search.jit import helper, inlined
from search.rules import FRESH_CLOCK
from tt_store.native import count_ones

TEMPO = OFFSETS["tempo"]

CLOCK_STEP_SHIFT, CLOCK_SPAN = 3, 16
"""Beyond `FRESH_CLOCK` plies without progress a position is worth less by 1/16 for each 8 of them."""
MOST = 20_000
"""No estimate is larger."""


@helper
def phase(position: Position) -> int:
    """Return how much of the middle game is left, 0..`FULL_PHASE`, by the pieces on the board."""
    queens = count_ones(position.diagonals & position.straights)
    minors = PHASE_WEIGHTS[KNIGHT] * count_ones(position.knights)
    minors += PHASE_WEIGHTS[BISHOP] * (count_ones(position.diagonals) - queens)
    majors = PHASE_WEIGHTS[ROOK] * (count_ones(position.straights) - queens) + PHASE_WEIGHTS[QUEEN] * queens
    return min(minors + majors, FULL_PHASE)


@inlined
def _piece_sums(position: Position, turned: Position, weights: int) -> tuple[int, int, int]:
    """Return what `term_sums` does without `pawn_terms`; `turned` is the other side's view."""
    own, other = activity(position, weights), activity(turned, weights)
    score = int(own.score) - int(other.score) + weight(weights, TEMPO)
    score += passed_score(position, own, other, 1, weights) - passed_score(turned, other, own, 0, weights)
    score += threats(position, own, other, weights) - threats(turned, other, own, weights)
    return score, danger(position, own, other, weights), danger(turned, other, own, weights)


@helper
def term_sums(position: Position, weights: int) -> tuple[int, int, int]:
    """Return the packed sum of the linear terms but for men on squares, and the danger that each side is in units.

    Parameters
    ----------
    position
        The first units are those of its side to move.
    weights
        Address of the weights: `term_weights`, or what the tuner has made.
    """
    turned = opposite(position)
    score, danger_to_other, danger_to_own = _piece_sums(position, turned, weights)
    return score + pawn_terms(position, turned, weights), danger_to_other, danger_to_own


@helper
def tapered(score: int, share: int) -> int:
    """Return the mean of a packed sum's halves; `share` of `FULL_PHASE` parts are the middle game's."""
    weighted = middle_half(score) * share + end_half(score) * (FULL_PHASE - share)
    return weighted // FULL_PHASE


@inlined
def _estimate(position: Position, pawns: int) -> int:
    """Return the tapered and scaled sum of all terms, given `pawn_terms`."""
    turned = opposite(position)
    score, danger_to_other, danger_to_own = _piece_sums(position, turned, term_weights())
    score += pawns + int(position.score) + danger_value(danger_to_other) - danger_value(danger_to_own)
    share = phase(position)
    value = tapered(score, share)
    if value > 0:
        return value * scale(position, share) // NORMAL + bare_king(position)
    return -(-value * scale(turned, share) // NORMAL) - bare_king(turned)


@inlined
def _bounded(position: Position, value: int) -> int:
    """Return the estimate from the sum of all terms: worth less the longer nothing happens."""
    if clock(position) > FRESH_CLOCK:
        stale = min(clock(position), 100) - FRESH_CLOCK >> CLOCK_STEP_SHIFT
        value -= value * stale // CLOCK_SPAN
    return max(-MOST, min(value, MOST))


@helper
def evaluate_with(position: Position, memory: int) -> int:
    """Estimate a position as `evaluate` does, with memory of the searching core for what pawns and kings decide."""
    if is_pawn_ending(position):
        return _bounded(position, pawn_ending_value(position))
    return _bounded(position, _estimate(position, known_pawn_terms(position, memory)))


@helper
def evaluate(position: Position) -> int:
    """Estimate a position in centipawns for the side to move."""
    return evaluate_with(position, NO_MEMORY)
