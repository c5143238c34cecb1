from __future__ import annotations

from search.rules import ProbCut

PROB_CUTS: tuple[ProbCut, ...] = (ProbCut(2, 3, 1, 256, 0, 50),)
