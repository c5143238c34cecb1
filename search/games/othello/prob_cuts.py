"""How far a shallow search tells a deep one, at each stage of the game.

Written by `search.games.othello.prob_cut_fitting` from 837 positions, not by hand.
"""

from __future__ import annotations

from search.rules import ProbCut

# fmt: off
PROB_CUTS: tuple[ProbCut, ...] = (
    ProbCut(0, 3, 1, 211, 0, 11),
    ProbCut(0, 4, 2, 227, 1, 12),
    ProbCut(0, 5, 1, 181, 1, 13),
    ProbCut(0, 6, 2, 213, 2, 15),
    ProbCut(0, 7, 3, 214, 0, 13),
    ProbCut(0, 8, 4, 235, 3, 11),
    ProbCut(0, 9, 3, 237, -1, 16),
    ProbCut(0, 10, 4, 262, 5, 14),
    ProbCut(1, 3, 1, 247, -3, 24),
    ProbCut(1, 4, 2, 251, 6, 14),
    ProbCut(1, 5, 1, 248, -4, 27),
    ProbCut(1, 6, 2, 254, 7, 19),
    ProbCut(1, 7, 3, 255, -1, 17),
    ProbCut(1, 8, 4, 257, 4, 18),
    ProbCut(1, 9, 3, 258, -2, 20),
    ProbCut(1, 10, 4, 261, 6, 20),
    ProbCut(1, 11, 5, 252, -1, 20),
    ProbCut(1, 12, 6, 250, 9, 17),
    ProbCut(2, 3, 1, 257, -5, 35),
    ProbCut(2, 4, 2, 259, 6, 33),
    ProbCut(2, 5, 1, 261, -1, 43),
    ProbCut(2, 6, 2, 265, 10, 41),
    ProbCut(2, 7, 3, 273, 6, 29),
    ProbCut(2, 8, 4, 273, 5, 29),
    ProbCut(2, 9, 3, 287, 9, 36),
    ProbCut(2, 10, 4, 286, 6, 33),
    ProbCut(2, 11, 5, 277, 10, 25),
    ProbCut(2, 12, 6, 285, 3, 24),
    ProbCut(3, 3, 1, 270, -7, 42),
    ProbCut(3, 4, 2, 264, 6, 35),
    ProbCut(3, 5, 1, 281, -3, 61),
    ProbCut(3, 6, 2, 275, 8, 57),
    ProbCut(3, 7, 3, 281, 10, 49),
    ProbCut(3, 8, 4, 285, 3, 47),
    ProbCut(3, 9, 3, 295, 17, 62),
    ProbCut(3, 10, 4, 299, 4, 54),
    ProbCut(3, 11, 5, 310, 18, 45),
    ProbCut(3, 12, 6, 302, 3, 45),
    ProbCut(4, 3, 1, 269, -7, 48),
    ProbCut(4, 4, 2, 270, 0, 53),
    ProbCut(4, 5, 1, 294, -22, 75),
)
# fmt: on
