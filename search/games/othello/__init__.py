"""Othello: whoever has more discs in the end wins; a position is a board or the moves so far, a move is a square."""

from search.games.othello.board import (
    ENDED_LINES,
    MAX_MOVES,
    Position,
    count_moves,
    key,
    moves,
    outcome,
    play,
    stuck,
)
from search.games.othello.endgame import LATE_PLIES, is_late, solve_leaf
from search.games.othello.evaluation import evaluate
from search.games.othello.notation import (
    START,
    mirror,
    move_text,
    next_depth,
    parse,
    parse_move,
    plies_left,
    score_text,
    swap_sides,
    text,
)
from search.games.othello.ordering import order
from search.games.othello.prob_cut import PROB_CUT_PERCENT, prob_cut_stage
from search.games.othello.prob_cuts import PROB_CUTS
from search.games.othello.stability import upper_bound

__all__ = [
    "ENDED_LINES",
    "LATE_PLIES",
    "MAX_MOVES",
    "PROB_CUTS",
    "PROB_CUT_PERCENT",
    "START",
    "Position",
    "count_moves",
    "evaluate",
    "is_late",
    "key",
    "mirror",
    "move_text",
    "moves",
    "next_depth",
    "order",
    "outcome",
    "parse",
    "parse_move",
    "play",
    "plies_left",
    "prob_cut_stage",
    "score_text",
    "solve_leaf",
    "stuck",
    "swap_sides",
    "text",
    "upper_bound",
]
