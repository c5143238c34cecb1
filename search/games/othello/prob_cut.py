"""Where a shallow search may foretell a deep one: while neither sees positions that are solved instead of estimated."""

from __future__ import annotations

from search.games.othello.board import SQUARES, Position, empties
from search.games.othello.endgame import SOLVED_SQUARES
from search.jit import helper

STAGE_DISCS = 12
"""The error is told for so many discs on the board each."""
PROB_CUT_PERCENT = 100
"""Of 100 and 150 the one that needs fewer nodes: scores move by half a disc, and games are won all the same."""
STAGES = SQUARES // STAGE_DISCS + 1


@helper
def prob_cut_stage(position: Position, depth: int) -> int:
    """Return the stage of the game, -1 where a search of a depth comes to positions that `solve_leaf` takes."""
    left = empties(position)
    return (SQUARES - left) // STAGE_DISCS if left - depth > SOLVED_SQUARES else -1
