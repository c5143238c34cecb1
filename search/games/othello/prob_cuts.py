"""How far a shallow search tells a deep one, at each stage of the game.

Written by `search.games.othello.prob_cut_fitting` from 612 positions, not by hand.
"""

from __future__ import annotations

from search.rules import ProbCut

# fmt: off
PROB_CUTS: tuple[ProbCut, ...] = (
    ProbCut(1, 3, 1, 248, -3, 25),
    ProbCut(1, 4, 2, 251, 5, 15),
    ProbCut(1, 5, 1, 249, -5, 27),
    ProbCut(1, 6, 2, 256, 7, 19),
    ProbCut(1, 7, 3, 256, -1, 17),
    ProbCut(1, 8, 4, 258, 3, 17),
    ProbCut(1, 9, 3, 259, -2, 20),
    ProbCut(1, 10, 4, 263, 5, 19),
    ProbCut(2, 3, 1, 257, -5, 37),
    ProbCut(2, 4, 2, 258, 6, 34),
    ProbCut(2, 5, 1, 262, -1, 46),
    ProbCut(2, 6, 2, 265, 10, 43),
    ProbCut(2, 7, 3, 274, 4, 30),
    ProbCut(2, 8, 4, 274, 5, 30),
    ProbCut(2, 9, 3, 288, 8, 37),
    ProbCut(2, 10, 4, 288, 5, 34),
    ProbCut(3, 3, 1, 267, -2, 42),
    ProbCut(3, 4, 2, 261, 8, 35),
    ProbCut(3, 5, 1, 276, 1, 61),
    ProbCut(3, 6, 2, 269, 10, 58),
    ProbCut(3, 7, 3, 279, 10, 48),
    ProbCut(3, 8, 4, 284, 2, 47),
    ProbCut(3, 9, 3, 294, 16, 62),
    ProbCut(3, 10, 4, 298, 6, 56),
    ProbCut(4, 3, 1, 270, -4, 49),
    ProbCut(4, 4, 2, 272, 0, 54),
)
# fmt: on
