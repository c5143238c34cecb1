"""What a selective search leaves out, and what it searches more or less deeply: each rule behind its flag.

Instantiated together with the kernel, for games that define `in_check` and, as a rule needs them, `is_quiet`,
`exchange_at_least`, `pass_turn` and `has_pieces`. Estimates are in hundredths of a pawn. No rule may make a mate that
is not there: moves are left out only after one was found that does not lose, and where the window lies among mate
scores nothing is left out at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from search import jit
from search import workspace as at
from search.flags import Pruning
from search.limits import WHOLE_DEPTH
from search.scores import MATE, MATE_BOUND, from_table
from tt_store.layout import BOUND_LOWER, BOUND_UPPER, MOVE_MASK, NO_MOVE, WORD_BYTES
from tt_store.native import Word, as_word, constant_table, read_int, write_int
from tt_store.table import MISS, entry_bound, entry_depth, entry_move, entry_score

_game, _flags = jit.binding(__name__)
_ordering = jit.specialise("search.ordering", _game, _flags)
_estimates = jit.specialise("search.estimates", _game, _flags)
SOONEST = jit.specialise("search.repetition", _game, _flags).SOONEST

in_check, may_check, has_pieces, clock = _game.in_check, _game.may_check, _game.has_pieces, _game.clock
estimate_of = _estimates.estimate_of
exchange_at_least = _game.exchange_at_least
QUIET_BOUND, COUNTER_RANK = _ordering.QUIET_BOUND, _ordering.COUNTER_RANK

_MAY = _flags.pruning == Pruning.PVS and not _flags.exact_depth and _game.has("in_check")
_RANKS_QUIET = _ordering.LEARNS and _ordering.RANKS
EXTENDS = _flags.check_extension and _MAY
PASSES = _flags.null_move and _MAY and _game.has("pass_turn", "has_pieces") and not _game.has_extra_turns
REDUCES = _flags.late_reduction and _MAY and _RANKS_QUIET
SKIPS = _flags.forward_pruning and _MAY and _RANKS_QUIET and _game.has("exchange_at_least")
SINGULAR = _flags.singular_extension and EXTENDS and _RANKS_QUIET and _flags.table
QUIESCES = _flags.quiescence and _game.has("captures")
FORESEES_CHECKS = _game.has("may_check")
SEES_CHECKS = EXTENDS or PASSES or REDUCES or SKIPS or (QUIESCES and _game.has("in_check"))
ESTIMATES = PASSES or REDUCES or SKIPS

WHOLE_NODES = 1_000
"""Iterations up to `WHOLE_DEPTH` leave nothing out for so many nodes: short mates are found once within reach.

Not for more: 50 thousand, of every window of six iterations, cost 260 Elo at 100 thousand nodes a move.
"""
LEAST_PASS_DEPTH = 3
VERIFIED_DEPTH = 10
"""From this depth on the verdict of a null move is verified: zugzwang is rare, and costs most here."""
LEAST_INTERNAL_DEPTH = 4
"""From this depth on a node without a table move is searched less deeply."""
LEAST_SINGULAR_DEPTH = 8
"""From this depth on the table's move is searched one ply deeper where no other comes near it (Anantharaman 1988)."""
EXCLUSION_FACTOR = 0x1E3779B97F4A7C15
SHALLOW_DEPTH = 7
"""Up to this depth moves are left out by the estimate."""
_MOST = 63


def _reduction_table() -> np.ndarray:
    """Return how much less deeply a late move is searched: by the logarithms of depth and of the move's number."""
    depths, numbers = np.log(np.maximum(np.indices((_MOST + 1, _MOST + 1)), 1))
    return np.asarray(0.77 + depths * numbers / 2.36, dtype=np.int64).ravel()


_reductions = constant_table("reductions", _reduction_table())


@jit.helper
def note_check(position: Any, ply: int, memory: int) -> int:
    """Note for the node at a ply whether its side to move is in check, and return it."""
    checked = in_check(position)
    write_int(memory + at.CHECKS + ply * WORD_BYTES, checked)
    return checked


@jit.helper
def note_estimate(position: Any, ply: int, memory: int) -> int:
    """Note a node's static estimate, and return it: `UNKNOWN` in check, where it would say little."""
    estimate = at.UNKNOWN
    if read_int(memory + at.CHECKS + ply * WORD_BYTES) == 0:
        estimate = estimate_of(position, memory)
    write_int(memory + at.ESTIMATES + ply * WORD_BYTES, estimate)
    return estimate


@jit.helper
def is_improving(estimate: int, ply: int, memory: int) -> int:
    """Return 1 if the side to move stands better than before its last move, else 0."""
    return 1 if estimate > read_int(memory + at.ESTIMATES + (ply - 2) * WORD_BYTES) else 0


@jit.helper
def is_far_above(estimate: int, depth: int, beta: int, improving: int) -> int:
    """Return 1 if the estimate is so far above beta that the opponent will not catch up, else 0 (reverse futility)."""
    return 1 if depth <= SHALLOW_DEPTH and estimate - 80 * depth + 60 * improving >= beta else 0


@jit.helper
def is_far_below(estimate: int, depth: int, alpha: int) -> int:
    """Return 1 if the estimate is so far below alpha that only captures help, else 0 (Birmingham and Kent 1977)."""
    return 1 if depth <= 3 and estimate + 150 + 180 * depth * depth <= alpha else 0


@jit.helper
def may_pass(position: Any, estimate: int, depth: int, beta: int, ply: int, memory: int) -> int:
    """Return 1 if a null move is worth a try (Donninger 1993), else 0: never twice in a row, nor without pieces."""
    if depth < LEAST_PASS_DEPTH or estimate < beta or ply < read_int(memory + at.NULL_PLY):
        return 0
    return has_pieces(position) if read_int(memory + at.PLAYED + (ply - 1) * WORD_BYTES) != 0 else 0


@jit.helper
def pass_reduction(estimate: int, depth: int, beta: int) -> int:
    """Return how much less deeply a null move is searched."""
    return 4 + depth // 4 + min((estimate - beta) // 200, 3)


@jit.helper
def is_whole(memory: int) -> int:
    """Return 1 while an iteration leaves nothing out, else 0."""
    is_shallow = read_int(memory + at.EXTENSION_END) <= 2 * WHOLE_DEPTH
    return 1 if is_shallow and read_int(memory + at.NODES) < WHOLE_NODES else 0


@jit.helper
def is_plain_move(position: Any, move: int, rank: int, alpha: int, memory: int) -> int:
    """Return 1 for a quiet move that surely neither gives check nor leads to a draw better than alpha, else 0."""
    if not FORESEES_CHECKS or not -QUIET_BOUND < rank < QUIET_BOUND:
        return 0
    if alpha < abs(read_int(memory + at.CONTEMPT)) and clock(position) >= SOONEST - 1:
        return 0
    return 1 - may_check(position, move)


@jit.helper
def is_hopeless(rank: int, number: int, depth: int, estimate: int, improving: int, alpha: int) -> int:
    """Return 1 for a quiet move that is left out unless it gives check, and with it all of lower rank, else 0."""
    if depth > SHALLOW_DEPTH or estimate == at.UNKNOWN or not -QUIET_BOUND < rank < COUNTER_RANK:
        return 0
    if number > (3 + depth * depth) >> (1 - improving):
        return 1
    if estimate + 120 + 90 * depth <= alpha:
        return 1
    return 1 if depth <= 3 and rank < -4000 * depth else 0


@jit.helper
def drop_hopeless(position: Any, begin: int, last: int, alpha: int, memory: int) -> int:
    """Take the quiet moves out of a list that surely give no check; returns its new end."""
    if not FORESEES_CHECKS or (alpha < abs(read_int(memory + at.CONTEMPT)) and clock(position) >= SOONEST - 1):
        return last
    kept = begin
    for cursor in range(begin, last, WORD_BYTES):
        word = read_int(cursor)
        rank = word >> _ordering.RANK_SHIFT
        if not -QUIET_BOUND < rank < COUNTER_RANK or may_check(position, word & MOVE_MASK) == 1:
            write_int(kept, word)
            kept += WORD_BYTES
    return kept


@jit.helper
def is_skipped(
    position: Any, move: int, rank: int, number: int, depth: int, estimate: int, improving: int, alpha: int
) -> int:
    """Return 1 for a move that is left out, else 0.

    Parameters
    ----------
    position, move
        A move that gives no check, in a node with a null window, after another that does not lose.
    rank, number
        Its rank by `search.ordering`, and how many moves were tried before.
    depth, estimate, improving, alpha
        Of the node; the estimate is `UNKNOWN` in check.
    """
    if depth > SHALLOW_DEPTH:
        return 0
    is_quiet = -QUIET_BOUND < rank < QUIET_BOUND
    if not is_quiet:
        # A capture that gains is never left out.
        return 0 if rank > 0 or exchange_at_least(position, move, -90 * depth) == 1 else 1
    if is_hopeless(rank, number, depth, estimate, improving, alpha) == 1:
        return 1
    return 0 if exchange_at_least(position, move, -50 * depth) == 1 else 1


@jit.helper
def correct_estimate(estimate: int, entry: int, ply: int) -> int:
    """Return the estimate, or the table's score where that is known to lie beyond it: any search sees more."""
    if entry == MISS or estimate == at.UNKNOWN:
        return estimate
    score = from_table(entry_score(entry), ply)
    side = BOUND_LOWER if score > estimate else BOUND_UPPER
    return score if abs(score) < MATE_BOUND and entry_bound(entry) & side != 0 else estimate


@jit.helper
def left_out(ply: int, memory: int) -> int:
    """Return the move that the node at a ply leaves out, `NO_MOVE` if none."""
    return read_int(memory + at.EXCLUDED_MOVE) if read_int(memory + at.EXCLUDED_PLY) == ply else NO_MOVE


@jit.helper
def leave_out(excluded_ply: int, move: int, memory: int) -> int:
    """Make the node at a ply leave a move out; returns 0."""
    write_int(memory + at.EXCLUDED_PLY, excluded_ply)
    return write_int(memory + at.EXCLUDED_MOVE, move)


@jit.helper
def key_without(key: Word, move: int) -> Word:
    """Return the key under which the table holds a node that leaves a move out."""
    return key ^ as_word(move * EXCLUSION_FACTOR)


@jit.helper
def may_be_singular(entry: int, depth: int, ply: int, memory: int) -> int:
    """Return 1 if the table says that its move reaches a bound, so that it may be the only one, else 0."""
    if depth < LEAST_SINGULAR_DEPTH or ply == 0 or entry == MISS or entry_move(entry) == NO_MOVE:
        return 0
    if entry_depth(entry) < depth - 3 or entry_bound(entry) & BOUND_LOWER == 0:
        return 0
    if abs(from_table(entry_score(entry), ply)) >= MATE_BOUND or ply >= read_int(memory + at.EXTENSION_END):
        return 0
    return 1 - is_whole(memory)


@jit.helper
def asks_for_mate(alpha: int, beta: int, ply: int) -> int:
    """Return 1 where a window asks for a mate within a few plies, else 0: that is worth a search of the whole depth."""
    return 1 if min(MATE - alpha, MATE + beta) - ply <= WHOLE_DEPTH + 1 else 0


@jit.helper
def late_reduction(rank: int, number: int, depth: int, is_pv: int, improving: int, gives_check: int) -> int:
    """Return how much less deeply a late move is searched at first, 0 or more."""
    if depth < 3 or number < 2 + is_pv or rank >= QUIET_BOUND:
        return 0
    index = min(depth, _MOST) * (_MOST + 1) + min(number, _MOST)
    reduction = read_int(_reductions() + index * WORD_BYTES) - is_pv
    if gives_check == 1 or rank <= -QUIET_BOUND:
        # What looks like a sacrifice may be one.
        reduction >>= 1
    elif rank >= COUNTER_RANK:
        reduction -= 1
    else:
        reduction += 1 - improving - (rank >> 13)
    return max(0, min(reduction, depth - 2))


@jit.helper
def may_cut_by_estimate(alpha: int, beta: int, ply: int, memory: int) -> int:
    """Return 1 in a node with a null window among estimates, not the root's nor one of a shallow iteration, else 0."""
    if beta - alpha > 1 or ply == 0 or is_whole(memory) == 1:
        return 0
    return 1 if alpha > -MATE_BOUND and beta < MATE_BOUND else 0


@jit.helper
def depth_below(depth: int, gives_check: int, is_singular: int, ply: int, memory: int) -> int:
    """Return the depth below a move before any reduction: as deep as its node where it is extended."""
    if not EXTENDS:
        return depth - 1
    is_extended = is_singular == 1 or (gives_check == 1 and ply < read_int(memory + at.EXTENSION_END))
    return depth if is_extended else depth - 1


@jit.helper
def begin_verification(end_ply: int, memory: int) -> int:
    """Forbid null moves above a ply; returns what was forbidden before."""
    before = read_int(memory + at.NULL_PLY)
    write_int(memory + at.NULL_PLY, end_ply)
    return before
