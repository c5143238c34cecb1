"""What each node of a search writes down: counts, control words, scores of leaves, lines.

Instantiated together with the kernel.
"""

from __future__ import annotations

from typing import Any

from search import jit
from search import workspace as at
from search.controls import ABORT_BOUND, BOUND_BITS
from search.flags import Pruning
from search.scores import DRAW, MATE, ONGOING, from_table, to_table
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, WORD_BYTES
from tt_store.native import (
    atomic_read_int,
    atomic_write_int,
    post_semaphore,
    read_int,
    wait_semaphore,
    write_int,
)
from tt_store.news import store_and_note
from tt_store.table import MISS, entry_bound, entry_depth, entry_score, pack_entry, probe

_game, _flags = jit.binding(__name__)

moves, side_to_move, stuck = _game.moves, _game.side_to_move, _game.stuck
estimate_of = jit.specialise("search.estimates", _game, _flags).estimate_of
EVALUATES = _flags.evaluation
EXTRA_TURNS = _game.has_extra_turns
STEPPED = _flags.stepped
QUIESCES = _flags.quiescence and _game.has("captures")
"""Whether the horizon is left to the quiescence search."""
STUCK = _game.has("stuck")
TABLE = _flags.table
EXACT_DEPTH = _flags.exact_depth
PRUNES = _flags.pruning != Pruning.NONE
MOVE_ROW_BYTES = _game.max_moves * WORD_BYTES

POLL_NODES = 1024
"""The control words are read each time so many nodes have passed: about 0.1 ms."""


@jit.helper
def poll(memory: int, nodes: int) -> int:
    """Read the control words, report progress; returns the new status, `RUNNING` if the search may go on.

    The cell of a task says to which bound its `beta` has fallen meanwhile, seen from its own side to move. A worker
    that follows another one obeys its own cell too, which can only recall it.
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
    if atomic_read_int(read_int(memory + at.OWN_CELL_ADDRESS)) >> BOUND_BITS == read_int(memory + at.OWN_TASK_ID):
        status = at.ABORTED
    write_int(memory + at.NEXT_POLL, min(nodes + period, limit + 1))
    write_int(memory + at.STATUS, status)
    return status


@jit.helper
def enter_node(ply: int, memory: int) -> int:
    """Count a node whose line is empty so far; look at the control words now and then; returns the status."""
    nodes = read_int(memory + at.NODES) + 1
    if nodes >= read_int(memory + at.NEXT_POLL) and poll(memory, nodes) != at.RUNNING:
        return read_int(memory + at.STATUS)
    write_int(memory + at.NODES, nodes)
    write_int(memory + at.LENGTHS + ply * WORD_BYTES, 0)
    return at.RUNNING


@jit.helper
def reach(ply: int, memory: int) -> int:
    """Note how deep the search has come; returns 0."""
    if ply > read_int(memory + at.SELECTIVE_DEPTH):
        write_int(memory + at.SELECTIVE_DEPTH, ply)
    return 0


@jit.helper
def final_score(position: Any, result: int, ply: int, memory: int) -> int:
    """Return the score of a finished game: a mate counts from the root; a draw costs the searching side `CONTEMPT`."""
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
def extreme_score(alpha: int, beta: int, highest: int, lowest: int) -> int:
    """Return the highest or the lowest score that a node can have if that decides its window, else `UNKNOWN`."""
    if alpha >= highest:
        return highest
    return lowest if beta <= lowest else at.UNKNOWN


@jit.helper
def leaf_score(position: Any, result: int, ply: int, memory: int) -> int:
    """Count and score a node below which nothing is searched: a finished game, or the horizon."""
    write_int(memory + at.NODES, read_int(memory + at.NODES) + 1)
    write_int(memory + at.LENGTHS + ply * WORD_BYTES, 0)
    reach(ply, memory)
    if STUCK and not QUIESCES and result == ONGOING:
        begin = memory + at.MOVES + ply * MOVE_ROW_BYTES
        if moves(position, begin) == begin:
            result = stuck(position)
    if result == ONGOING:
        return estimate_of(position, memory) if EVALUATES else 0
    return final_score(position, result, ply, memory)


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
def look_up(key: int, memory: int) -> int:
    """Count and return what the table knows of a node, `MISS` if nothing."""
    if not TABLE:
        return MISS
    count(memory, at.PROBES)
    entry = probe(read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS), key)
    if entry != MISS:
        count(memory, at.HITS)
    return entry


@jit.helper
def is_decided(entry: int, depth: int, alpha: int, beta: int, ply: int) -> int:
    """Return 1 if an entry is deep enough and its bound decides the window, else 0."""
    if entry_depth(entry) < depth or (EXACT_DEPTH and entry_depth(entry) > depth):
        return 0
    score, bound = from_table(entry_score(entry), ply), entry_bound(entry)
    if bound == BOUND_EXACT:
        return 1
    is_high = bound == BOUND_LOWER and score >= beta
    is_low = bound == BOUND_UPPER and score <= alpha
    return 1 if PRUNES and (is_high or is_low) else 0


@jit.helper
def remember(key: int, best: int, move: int, depth: int, alpha: int, beta: int, ply: int, memory: int) -> int:
    """Store a node's result, its bound judged by the window that it was searched with; returns 0."""
    if not TABLE:
        return 0
    bound = BOUND_EXACT
    if best <= alpha:
        bound = BOUND_UPPER
    elif best >= beta:
        bound = BOUND_LOWER
    generation = read_int(memory + at.GENERATION)
    data = pack_entry(to_table(best, ply), move, depth, bound, generation)
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    return store_and_note(table, buckets, key, data, generation, read_int(memory + at.NEWS_ADDRESS))
