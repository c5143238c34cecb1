"""The one search function: fail-soft PVS in negamax form, its variants behind flags.

This module is instantiated for a game and a set of flags (see `search.jit`): what it binds below are constants to the
compiler, so what a game does not define and what a flag leaves out vanish from the machine code. It allocates
nothing, checks nothing and raises nothing: Python checks, then calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from search import jit
from search import workspace as at
from search.controls import ABORT_BOUND, BOUND_BITS
from search.flags import Pruning
from search.scores import DRAW, INFINITY, MATE, MAX_PLY, ONGOING, from_table, to_table
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MOVE_MASK, NO_MOVE, WORD_BYTES
from tt_store.native import (
    Integer,
    atomic_read_int,
    atomic_write_int,
    post_semaphore,
    read_int,
    read_word,
    wait_semaphore,
    write_int,
)
from tt_store.table import (
    MISS,
    entry_bound,
    entry_depth,
    entry_move,
    entry_score,
    pack_entry,
    prefetch_bucket,
    probe,
    store,
)

_game, _flags = jit.binding(__name__)
_ordering = jit.specialise("search.ordering", _game, _flags)

moves, play, outcome, key_of = _game.moves, _game.play, _game.outcome, _game.key
evaluate, side_to_move = _game.evaluate, _game.side_to_move
rank_moves, pick_move, credit_fail_high = _ordering.rank_moves, _ordering.pick_move, _ordering.credit_fail_high

PRUNES = _flags.pruning != Pruning.NONE
FAIL_HARD = _flags.pruning == Pruning.FAIL_HARD
PVS = _flags.pruning == Pruning.PVS
TABLE = _flags.table
EXACT_DEPTH = _flags.exact_depth
EVALUATES = _flags.evaluation
RANKS = _ordering.RANKS
EXTRA_TURNS = _game.has_extra_turns
STEPPED = _flags.stepped

MOVE_ROW_BYTES = _game.max_moves * WORD_BYTES

OPEN_LOW: Integer = np.int64(-INFINITY)
OPEN_HIGH: Integer = np.int64(INFINITY)
"""The full window. Not Python integers: Numba compiles a recursive call with literal arguments as a version of its
own, and does not find that one's address when the code comes from the disk."""

POLL_NODES = 1024
"""The control words are read each time so many nodes have passed: about 0.1 ms."""


@jit.helper
def poll(memory: int, nodes: int) -> int:
    """Read the control words, report progress; returns the new status, `RUNNING` if the search may go on.

    The cell of a task says to which bound its `beta` has fallen meanwhile, seen from its own side to move.
    """
    atomic_write_int(read_int(memory + at.PROGRESS_ADDRESS), nodes)
    period = POLL_NODES
    if STEPPED:
        # A simulated worker: let others run, and go on when it is our turn in virtual time.
        period = read_int(memory + at.STEP_NODES)
        post_semaphore(read_int(memory + at.YIELD_ADDRESS))
        while wait_semaphore(read_int(memory + at.RESUME_ADDRESS)) != 0:
            pass
    limit = read_int(memory + at.NODE_LIMIT)
    status = at.RUNNING
    if nodes > limit:
        status = at.OUT_OF_NODES
    # Race: others write the stop word and the cell at any time; both are read in one piece, and never hoisted.
    if atomic_read_int(read_int(memory + at.STOP_ADDRESS)) >= read_int(memory + at.EPOCH):
        status = at.STOPPED
    cell = atomic_read_int(read_int(memory + at.CELL_ADDRESS))
    if cell >> BOUND_BITS == read_int(memory + at.TASK_ID):
        bound = ((cell & 0xFFFF) ^ 0x8000) - 0x8000
        if bound == ABORT_BOUND:
            status = at.ABORTED
        elif bound < read_int(memory + at.TASK_BETA) and status == at.RUNNING:
            write_int(memory + at.TASK_BETA, bound)
            status = at.NARROWED
    write_int(memory + at.NEXT_POLL, min(nodes + period, limit + 1))
    write_int(memory + at.STATUS, status)
    return status


@jit.helper
def leaf_score(position: Any, result: int, ply: int, memory: int) -> int:
    """Count and score a node below which nothing is searched: a finished game, or the horizon.

    A mate counts from the root; a draw costs the side that the search is for `CONTEMPT`.
    """
    write_int(memory + at.NODES, read_int(memory + at.NODES) + 1)
    if ply > read_int(memory + at.SELECTIVE_DEPTH):
        write_int(memory + at.SELECTIVE_DEPTH, ply)
    if result == ONGOING:
        return evaluate(position) if EVALUATES else 0
    if result == -MATE:
        return ply - MATE
    if result == MATE:
        return MATE - ply
    if result == DRAW:
        contempt = read_int(memory + at.CONTEMPT)
        mark = side_to_move(position) if EXTRA_TURNS else ply & 1
        return -contempt if mark == read_int(memory + at.SIDE_MARK) else contempt
    return result


@jit.helper
def extend_line(memory: int, ply: int, move: int) -> int:
    """Make the line at `ply` this move and the line of the ply below; returns 0."""
    row = memory + at.LINES + ply * at.LINE_BYTES
    below = row + at.LINE_BYTES
    length = read_int(memory + at.LENGTHS + (ply + 1) * WORD_BYTES)
    write_int(row, move)
    for index in range(length):
        write_int(row + (index + 1) * WORD_BYTES, read_int(below + index * WORD_BYTES))
    write_int(memory + at.LENGTHS + ply * WORD_BYTES, length + 1)
    return 0


@jit.helper
def count(memory: int, counter: int) -> int:
    """Add one to a counter of the workspace; returns 0."""
    write_int(memory + counter, read_int(memory + counter) + 1)
    return 0


@jit.helper
def search_node(position: Any, key: int, depth: int, alpha: int, beta: int, ply: int, memory: int) -> int:
    """Search one inner node and all below it.

    Parameters
    ----------
    position
        The game's named tuple, opaque here; the game goes on.
    key
        Its salted hash.
    depth
        Plies to the horizon, 1 or more.
    alpha, beta
        The window, ``-INFINITY <= alpha < beta <= INFINITY``.
    ply
        Plies from the root of the whole search.
    memory
        Address of the `search.workspace`.

    Returns
    -------
    int
        A result ``r`` for the exact value ``v``: ``r <= alpha`` means ``v <= r``; ``r >= beta`` means ``v >= r``;
        otherwise ``r == v``. Fail-hard results are clamped to the window. Worthless once `STATUS` is not `RUNNING`.
    """
    # Step 1. Count the node; look at the control words now and then.
    nodes = read_int(memory + at.NODES) + 1
    if nodes >= read_int(memory + at.NEXT_POLL) and poll(memory, nodes) != at.RUNNING:
        return 0
    write_int(memory + at.NODES, nodes)
    write_int(memory + at.LENGTHS + ply * WORD_BYTES, 0)

    # Step 2. What the table knows: a score that decides this window, or at least the move to try first.
    table_move = NO_MOVE
    table = read_int(memory + at.TABLE_ADDRESS)
    buckets = read_int(memory + at.TABLE_BUCKETS)
    if TABLE:
        count(memory, at.PROBES)
        entry = probe(table, buckets, key)
        if entry != MISS:
            count(memory, at.HITS)
            table_move = entry_move(entry)
            if entry_depth(entry) == depth or (not EXACT_DEPTH and entry_depth(entry) > depth):
                score = from_table(entry_score(entry), ply)
                bound = entry_bound(entry)
                is_high = bound & BOUND_LOWER != 0 and score >= beta
                is_low = bound & BOUND_UPPER != 0 and score <= alpha
                if bound == BOUND_EXACT or (PRUNES and (is_high or is_low)):
                    count(memory, at.CUTOFFS)
                    return max(alpha, min(score, beta)) if FAIL_HARD else score

    # Step 3. Generate the moves; the table's comes first, the others by rank or as generated.
    end = memory + at.MOVES + ply * MOVE_ROW_BYTES
    last = moves(position, end)
    if RANKS:
        rank_moves(position, table_move, ply, memory, end, last)
    elif TABLE and table_move != NO_MOVE:
        for cursor in range(end, last, WORD_BYTES):
            if read_int(cursor) == table_move:
                write_int(cursor, read_int(end))
                write_int(end, table_move)
                break

    best = -INFINITY
    best_move = NO_MOVE
    low = alpha
    if RANKS:
        pick_move(end, last)
    for cursor in range(end, last, WORD_BYTES):
        move = read_int(cursor) & MOVE_MASK
        following = cursor + WORD_BYTES
        if RANKS and following < last:
            pick_move(following, last)

        # Step 4. Play the move. A finished game and the horizon are scored on the spot: half of all nodes.
        child = play(position, move)
        is_same_side = EXTRA_TURNS and side_to_move(child) == side_to_move(position)
        result = outcome(child)
        if result != ONGOING or depth <= 1 or ply >= MAX_PLY - 2:
            score = leaf_score(child, result, ply + 1, memory)
            write_int(memory + at.LENGTHS + (ply + 1) * WORD_BYTES, 0)
            if not is_same_side:
                score = -score
        else:
            # Step 5. Ask for the child's bucket of the table, and for its next sibling's: that one will have arrived
            # when it is wanted. Worth a third of the speed with a table beyond the processor's cache.
            child_key = key
            if TABLE:
                child_key = key_of(child) ^ read_word(memory + at.KEY_SALT)
                prefetch_bucket(table, buckets, child_key)
                if following < last:
                    sibling = play(position, read_int(following) & MOVE_MASK)
                    prefetch_bucket(table, buckets, key_of(sibling) ^ read_word(memory + at.KEY_SALT))

            # Step 6. The first move gets the full window, the others a null window and, if they beat it, the rest.
            lower = low if PRUNES else OPEN_LOW
            upper = low + 1 if PVS and cursor > end else beta if PRUNES else OPEN_HIGH
            while True:
                if is_same_side:
                    score = search_node(child, child_key, depth - 1, lower, upper, ply + 1, memory)
                else:
                    score = -search_node(child, child_key, depth - 1, -upper, -lower, ply + 1, memory)
                if not PVS or upper >= beta or score <= low or score >= beta:
                    break
                count(memory, at.RESEARCHES)
                # One below the score, not at it: a score that stays is then exact, and its line whole.
                lower = score - 1
                upper = beta
        if read_int(memory + at.STATUS) != at.RUNNING:
            return 0

        # Step 7. Keep the best; a move that reaches beta refutes the node.
        if score > best:
            best = score
            best_move = move
            if score > low:
                low = score
                if beta - alpha > 1:
                    extend_line(memory, ply, move)
                if PRUNES and score >= beta:
                    count(memory, at.FAIL_HIGHS)
                    if cursor == end:
                        count(memory, at.FIRST_FAIL_HIGHS)
                    if RANKS:
                        credit_fail_high(position, move, depth, ply, memory)
                    break

    # Step 8. Store the result; its bound is judged by the original alpha.
    if FAIL_HARD:
        best = max(alpha, min(best, beta))
    if TABLE:
        bound = BOUND_EXACT
        if PRUNES and best <= alpha:
            bound = BOUND_UPPER
        elif PRUNES and best >= beta:
            bound = BOUND_LOWER
        generation = read_int(memory + at.GENERATION)
        store(table, buckets, key, pack_entry(to_table(best, ply), best_move, depth, bound, generation), generation)
    return best


@jit.cached
def search_root(position: Any, depth: int, ply: int, memory: int) -> int:
    """Search a task: the window lies in the workspace, and may be narrowed from outside while the search runs.

    Parameters
    ----------
    position, depth, ply, memory
        As in `search_node`; `TASK_ALPHA` and `TASK_BETA` of the workspace hold the window.

    Returns
    -------
    int
        The score, by the contract of `search_node` for the window that the workspace then holds. It is void if
        `STATUS` is neither `RUNNING` nor changed by a narrowing that this function has dealt with.
    """
    key = key_of(position) ^ read_word(memory + at.KEY_SALT)
    result = outcome(position)
    if result != ONGOING or depth <= 0:
        write_int(memory + at.STATUS, at.RUNNING)
        write_int(memory + at.LENGTHS + ply * WORD_BYTES, 0)
        return leaf_score(position, result, ply, memory)
    while True:
        write_int(memory + at.STATUS, at.RUNNING)
        alpha = read_int(memory + at.TASK_ALPHA)
        beta = read_int(memory + at.TASK_BETA)
        score = search_node(position, key, depth, alpha, beta, ply, memory)
        if read_int(memory + at.STATUS) != at.NARROWED:
            return score
        # Beta fell below what this search could still decide: ask again, with the table warm.
        if alpha >= read_int(memory + at.TASK_BETA):
            write_int(memory + at.TASK_ALPHA, read_int(memory + at.TASK_BETA) - 1)
