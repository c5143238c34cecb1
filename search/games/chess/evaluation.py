"""The estimate of a position: material and squares, tapered from the middle game to the end game, and the tempo."""

from __future__ import annotations

from search.games.chess.board import BISHOP, KNIGHT, QUEEN, ROOK, Position
from search.games.chess.weights import FULL_PHASE, PHASE_WEIGHTS, TEMPO, end_half, middle_half
from search.jit import helper
from tt_store.native import count_ones


@helper
def phase(position: Position) -> int:
    """Return how much of the middle game is left, 0..`FULL_PHASE`, by the pieces on the board."""
    queens = count_ones(position.diagonals & position.straights)
    minors = PHASE_WEIGHTS[KNIGHT] * count_ones(position.knights)
    minors += PHASE_WEIGHTS[BISHOP] * (count_ones(position.diagonals) - queens)
    majors = PHASE_WEIGHTS[ROOK] * (count_ones(position.straights) - queens) + PHASE_WEIGHTS[QUEEN] * queens
    return min(minors + majors, FULL_PHASE)


@helper
def evaluate(position: Position) -> int:
    """Estimate a position in centipawns for the side to move."""
    middle_share = phase(position)
    middle = middle_half(int(position.score)) + TEMPO
    weighted = middle * middle_share + end_half(int(position.score)) * (FULL_PHASE - middle_share)
    # Rounded toward zero: what is left of the division favours neither side.
    return weighted // FULL_PHASE if weighted >= 0 else -(-weighted // FULL_PHASE)
