"""Multi-ProbCut: a shallow search foretells where a deep one will fall, and cuts it if that is surely off the window.

The two scores lie on a line, with an error whose size the game tells for each stage and pair of depths (`ProbCut` of
`search.rules`). A null-window search of the shallow depth asks whether the deep score lies beyond the window by more
than so many deviations (Buro 1995: ProbCut; 1999: several pairs and stages). Instantiated together with the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from search import jit
from search import workspace as at
from search.rules import SLOPE_SHIFT
from search.scores import MATE_BOUND
from tt_store.layout import WORD_BYTES
from tt_store.native import constant_table, read_int, write_int

_game, _flags = jit.binding(__name__)

in_check, prob_cut_stage = _game.in_check, _game.prob_cut_stage

PROB_CUTS = _flags.prob_cut and _flags.may_select and _game.has_prob_cuts
_WHOLE_PERCENT = 100
MOST_NESTED = 1
"""So many shallow searches may lie in each other: errors would add up."""
_LEAST_DEPTH = min((row.deep for row in _game.prob_cuts), default=0)
_MOST_DEPTH = max((row.deep for row in _game.prob_cuts), default=0)
_STAGES = max((row.stage for row in _game.prob_cuts), default=0) + 1

# A row of the table.
_SHALLOW = 0 * WORD_BYTES
_SLOPE = 1 * WORD_BYTES
_OFFSET = 2 * WORD_BYTES
_MARGIN = 3 * WORD_BYTES
_ROW_WORDS = 4
ROW_BYTES = _ROW_WORDS * WORD_BYTES


def _row_table() -> np.ndarray:
    """Return the game's rows, `[stage, depth, number, word]`; a shallow depth of 0 says that there are no more."""
    groups: dict[tuple[int, int], list[list[int]]] = {}
    for row in _game.prob_cuts:
        margin = row.deviation * _game.prob_cut_percent // _WHOLE_PERCENT
        groups.setdefault((row.stage, row.deep), []).append([row.shallow, row.slope, row.offset, margin])
    most = max(map(len, groups.values()), default=0)
    rows = np.zeros((_STAGES, _MOST_DEPTH + 1, most + 1, _ROW_WORDS), np.int64)
    for (stage, deep), group in groups.items():
        rows[stage, deep, : len(group)] = sorted(group)
    return rows


_table = _row_table()
_GROUP_BYTES = int(_table.shape[2]) * ROW_BYTES
_rows = constant_table("prob_cuts", _table)


@jit.helper
def first_row(position: Any, depth: int, memory: int) -> int:
    """Return the address of the first row that is good for a node, 0 if there is none."""
    if depth < _LEAST_DEPTH or depth > _MOST_DEPTH or read_int(memory + at.PROBE_NESTING) >= MOST_NESTED:
        return 0
    stage = prob_cut_stage(position, depth)
    if stage < 0 or stage >= _STAGES or in_check(position) == 1:
        return 0
    return _rows() + (stage * (_MOST_DEPTH + 1) + depth) * _GROUP_BYTES


@jit.helper
def shallow_depth(row: int) -> int:
    """Return the depth of a row's shallow search, 0 behind the last row."""
    return read_int(row + _SHALLOW)


@jit.helper
def least_above(row: int, beta: int) -> int:
    """Return the least shallow score that surely foretells one of beta or more."""
    foretold = beta + read_int(row + _MARGIN) - read_int(row + _OFFSET)
    return -((-foretold << SLOPE_SHIFT) // read_int(row + _SLOPE))


@jit.helper
def most_below(row: int, alpha: int) -> int:
    """Return the greatest shallow score that surely foretells one of alpha or less."""
    foretold = alpha - read_int(row + _MARGIN) - read_int(row + _OFFSET)
    return (foretold << SLOPE_SHIFT) // read_int(row + _SLOPE)


@jit.helper
def is_askable(score: int) -> int:
    """Return 1 if an estimate can reach a score, else 0: mates are never foretold."""
    return 1 if abs(score) < MATE_BOUND else 0


@jit.helper
def nest(memory: int, step: int) -> int:
    """Enter a shallow search (step 1) or leave it (step -1); returns 0."""
    return write_int(memory + at.PROBE_NESTING, read_int(memory + at.PROBE_NESTING) + step)
