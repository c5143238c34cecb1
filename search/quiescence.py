"""The quiescence search: captures only, until the estimate can be trusted; in check, all answers.

Instantiated together with the kernel, for games that define `captures`. Fail-soft; the side to move may stand pat on
the estimate (Harris 1975). A capture whose exchange loses is left out; one that wins too little to matter is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search import jit
from search import workspace as at
from search.flags import Pruning
from search.scores import INFINITY, MATE_BOUND, MAX_PLY, ONGOING, from_table
from tt_store.layout import BOUND_LOWER, BOUND_UPPER, NO_MOVE, WORD_BYTES
from tt_store.native import read_int, write_int
from tt_store.table import MISS, entry_bound, entry_move, entry_score, probe

_game, _flags = jit.binding(__name__)
turned_move = jit.specialise("search.symmetry", _game, _flags).turned_move
_notes = jit.specialise("search.bookkeeping", _game, _flags)
_ordering = jit.specialise("search.ordering", _game, _flags)
_selectivity = jit.specialise("search.selectivity", _game, _flags)
_estimates = jit.specialise("search.estimates", _game, _flags)

moves, captures, play, outcome, key_of = _game.moves, _game.captures, _game.play, _game.outcome, _game.key
side_to_move, stuck, order = _game.side_to_move, _game.stuck, _game.order
enter_node, reach, remember = _notes.enter_node, _notes.reach, _notes.remember
leaf_score: Callable[..., int] = _notes.leaf_score
final_score: Callable[..., int] = _notes.final_score
extend_line, count, MOVE_ROW_BYTES, STUCK = _notes.extend_line, _notes.count, _notes.MOVE_ROW_BYTES, _notes.STUCK
estimate_of, ask_estimate = _estimates.estimate_of, _estimates.ask_estimate
pick_move = _ordering.pick_move
note_check, SEES_CHECKS = _selectivity.note_check, _selectivity.SEES_CHECKS

TABLE = _flags.table
EVALUATES = _flags.evaluation
PRUNES = _flags.pruning != Pruning.NONE
EXTRA_TURNS = _game.has_extra_turns

DEEPEST = 24
"""No quiescence search goes so many plies."""


@jit.helper
def rank_captures(position: Any, table_move: int, begin: int, last: int) -> int:
    """Put a rank above each move between two addresses of the stack: the table's first, then by `order`; returns 0."""
    for cursor in range(begin, last, WORD_BYTES):
        move = read_int(cursor)
        rank = _ordering.TABLE_RANK if move == table_move else order(position, move)
        write_int(cursor, _ordering.ranked(rank, (cursor - begin) // WORD_BYTES, move))
    return 0


@jit.self_call
def quiescence_below(position: Any, key: int, alpha: int, beta: int, ply: int, fallen: int, memory: int) -> int:
    """Call `quiescence` from itself."""
    return quiescence(position, key, alpha, beta, ply, fallen, memory)


@jit.helper
def quiescence(position: Any, key: int, alpha: int, beta: int, ply: int, fallen: int, memory: int) -> int:
    """Search captures below the horizon.

    Parameters
    ----------
    position, key, alpha, beta, ply, memory
        As in `search.kernel`; whether the side to move is in check is noted.
    fallen
        Plies below the horizon. Only its first node uses the table.

    Returns
    -------
    int
        By the contract of the kernel, for the value that this search has with an open window.
    """
    # Step 1. Count the node; what the table knows may decide it.
    if enter_node(ply, memory) != at.RUNNING:
        return 0
    reach(ply, memory)
    table_move = NO_MOVE
    # Before the table's bucket is read, which is on its way: see the kernel.
    estimate = estimate_of(position, memory) if EVALUATES else 0
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    if TABLE and fallen == 0:
        entry = probe(table, buckets, key)
        if entry != MISS:
            table_move = turned_move(position, entry_move(entry))
            score = from_table(entry_score(entry), ply)
            bound = entry_bound(entry)
            is_high = bound & BOUND_LOWER != 0 and score >= beta
            is_low = bound & BOUND_UPPER != 0 and score <= alpha
            if PRUNES and beta - alpha == 1 and (is_high or is_low):
                return score

    # Step 2. Stand pat, unless in check.
    checked = SEES_CHECKS and read_int(memory + at.CHECKS + ply * WORD_BYTES) == 1
    best = -INFINITY if checked else estimate
    best_move = NO_MOVE
    low = max(alpha, best)
    if best >= beta or fallen >= DEEPEST or ply >= MAX_PLY - 2:
        return estimate

    # Step 3. The captures, or all answers to a check.
    end = memory + at.MOVES + ply * MOVE_ROW_BYTES
    last = moves(position, end) if checked else captures(position, end)
    if STUCK and checked and last == end:
        return final_score(position, stuck(position), ply, memory)
    rank_captures(position, table_move, end, last)
    for cursor in range(end, last, WORD_BYTES):
        move = pick_move(cursor, last)
        if best > -MATE_BOUND and read_int(cursor) < 0:
            # It loses by exchange, and so do all that follow.
            break
        child = play(position, move)
        ask_estimate(child, memory)
        result = outcome(child)
        is_same_side = EXTRA_TURNS and side_to_move(child) == side_to_move(position)
        if result != ONGOING:
            score = leaf_score(child, result, ply + 1, memory)
            score = score if is_same_side else -score
        else:
            if SEES_CHECKS:
                note_check(child, ply + 1, memory)
            if is_same_side:
                score = quiescence_below(child, key, low, beta, ply + 1, fallen + 1, memory)
            else:
                score = -quiescence_below(child, key, -beta, -low, ply + 1, fallen + 1, memory)
        if read_int(memory + at.STATUS) != at.RUNNING:
            return 0
        if score > best:
            best = score
            if score > low:
                best_move = move
                low = score
                if beta - alpha > 1:
                    extend_line(memory, ply, move)
                if score >= beta:
                    break

    # Step 4. Store the result as of depth 0.
    if TABLE and fallen == 0:
        remember(key, best, turned_move(position, best_move), 0, alpha, beta, ply, memory)
    return best
