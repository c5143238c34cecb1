"""Workers that search one job side by side: a move that another one is searching comes last.

Each worker searches the whole job; the table tells it what the others have found, and a few shared words which
positions they are at. Simplified ABDADA (Weill 1996, Kerrigan 2017). The words are hints: one that is lost, or left
behind by a worker that died, changes the order of moves and no value. Beyond that a worker leaves a subtree as soon as
the table shows that another one has decided a node above it.

Instantiated together with the kernel.
"""

from __future__ import annotations

from search import jit
from search import workspace as at
from search.controls import SHARED_WORDS
from search.flags import Pruning
from search.scores import from_table
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_int, as_word, atomic_read_int, atomic_write_int, read_int, write_int
from tt_store.table import MISS, entry_score, probe

_game, _flags = jit.binding(__name__)
_rules = jit.specialise("search.selectivity", _game, _flags)
is_decided = jit.specialise("search.bookkeeping", _game, _flags).is_decided

STEPPED = _flags.stepped
SHARES = _flags.table and _flags.pruning == Pruning.PVS
DEFERRED = at.UNKNOWN - 1
"""In the place of a score: this move is to be tried after the others."""
_LOOK_NODES = 512
"""The table is asked about the whole path once in so many nodes: that costs some misses of the processor's cache. A
simulated worker, whose nodes may take longer, looks eight times a step: of 1 ms, by default."""
_LEAST_DEPTH = max(_flags.table_depth, _rules.SHALLOW_DEPTH if _rules.SKIPS else 0)
"""Where moves are left out by their number their order must not change."""


@jit.helper
def is_shared(depth: int, memory: int) -> bool:
    """Tell whether a node of a depth is worth the look at what others do."""
    return SHARES and depth > _LEAST_DEPTH and depth > read_int(memory + at.SHARE_DEPTH)


@jit.helper
def _word_of(key: Word, memory: int) -> int:
    """Return the address of the word that a position may be written to."""
    return read_int(memory + at.SHARING_ADDRESS) + (as_int(key) & (SHARED_WORDS - 1)) * WORD_BYTES


@jit.helper
def is_taken(key: Word, memory: int) -> bool:
    """Tell whether another worker is searching a position."""
    # Race: others write and clear the word at any time; it is read in one piece.
    return atomic_read_int(_word_of(key, memory)) == as_int(key)


@jit.helper
def take(key: Word, memory: int) -> int:
    """Tell others that a position is being searched; returns 0."""
    # Race: what another worker wrote here is lost, and its position may then be searched twice at a time.
    return atomic_write_int(_word_of(key, memory), as_int(key))


@jit.helper
def give_back(key: Word, memory: int) -> int:
    """Take back what `take` has told, unless another position stands there by now; returns 0."""
    word = _word_of(key, memory)
    # Race: between the two lines another worker may write here; then its word is lost, as above.
    if atomic_read_int(word) == as_int(key):
        atomic_write_int(word, 0)
    return 0


@jit.helper
def put_last(cursor: int, last: int) -> int:
    """Move the move at a cursor behind the others of a list; returns 0."""
    word = read_int(cursor)
    for address in range(cursor, last - WORD_BYTES, WORD_BYTES):
        write_int(address, read_int(address + WORD_BYTES))
    return write_int(last - WORD_BYTES, word)


@jit.helper
def enter_shared(key: Word, depth: int, alpha: int, is_pv: bool, ply: int, memory: int) -> int:
    """Note a shared node of the path, unless its window is open or there are too many; returns 1 if it was, else 0."""
    number = read_int(memory + at.SHARED_NODES)
    if is_pv or number >= at.MOST_SHARED:
        return 0
    row = memory + at.SHARED + number * at.SHARED_BYTES
    write_int(row, as_int(key))
    write_int(row + WORD_BYTES, depth)
    write_int(row + 2 * WORD_BYTES, alpha)
    write_int(row + 3 * WORD_BYTES, ply)
    write_int(memory + at.SHARED_NODES, number + 1)
    return 1


@jit.helper
def leave_shared(was_noted: int, memory: int) -> int:
    """Look whether another worker has decided a node of the path, the highest first, and forget the last node noted.

    If one is decided, `STATUS` says so until `resume` has come back to it. Returns 0.
    """
    number, nodes = read_int(memory + at.SHARED_NODES), read_int(memory + at.NODES)
    first = number - was_noted
    if nodes >= read_int(memory + at.NEXT_LOOK):
        first = 0
        write_int(memory + at.NEXT_LOOK, nodes + (read_int(memory + at.STEP_NODES) // 8 if STEPPED else _LOOK_NODES))
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    for node in range(first, number if read_int(memory + at.STATUS) == at.RUNNING else 0):
        row = memory + at.SHARED + node * at.SHARED_BYTES
        depth, alpha = read_int(row + WORD_BYTES), read_int(row + 2 * WORD_BYTES)
        ply = read_int(row + 3 * WORD_BYTES)
        entry = probe(table, buckets, as_word(read_int(row)))
        if entry != MISS and is_decided(entry, depth, alpha, alpha + 1, ply) == 1:
            write_int(memory + at.STATUS, at.DECIDED)
            write_int(memory + at.DECIDED_NODE, node)
            write_int(memory + at.DECIDED_SCORE, from_table(entry_score(entry), ply))
            break
    return write_int(memory + at.SHARED_NODES, number - was_noted)


@jit.helper
def resume(memory: int) -> int:
    """Return the score of a node whose move was given up: if another worker has decided it, the search goes on."""
    if read_int(memory + at.STATUS) != at.DECIDED:
        return 0
    if read_int(memory + at.SHARED_NODES) != read_int(memory + at.DECIDED_NODE):
        return 0
    write_int(memory + at.STATUS, at.RUNNING)
    return read_int(memory + at.DECIDED_SCORE)
