"""The memory of one searching core: what outlives a node, at fixed offsets from one address.

An array owned by Numba costs 10-12 ns a node in reference counts; kernels therefore get the address of this block::

    +----------+---------+---------+------+-------+-----------+--------+------------+----------+--------+---------+
    | counters | killers | lengths | path | lines | estimates | values | move stack | left out | memory | history |
    +----------+---------+---------+------+-------+-----------+--------+------------+----------+--------+---------+

All fields are 64-bit words. One thread at a time uses a workspace. What belongs to a ply of the path is found by the
ply; the words before the root's are those of the game before it, or say that nothing is known.
"""

from __future__ import annotations

from search.scores import INFINITY, MAX_PLAYERS, MAX_PLY
from tt_store.layout import WORD_BYTES

_HEADER_WORDS = 64

# Statistics of the running task.
NODES = 0 * WORD_BYTES
SELECTIVE_DEPTH = 1 * WORD_BYTES
PROBES = 2 * WORD_BYTES
HITS = 3 * WORD_BYTES
CUTOFFS = 4 * WORD_BYTES
FAIL_HIGHS = 5 * WORD_BYTES
FIRST_FAIL_HIGHS = 6 * WORD_BYTES
RESEARCHES = 7 * WORD_BYTES
STATISTICS_WORDS = 8

# Limits and control.
STATUS = 8 * WORD_BYTES
NEXT_POLL = 9 * WORD_BYTES
NODE_LIMIT = 10 * WORD_BYTES
TASK_ID = 11 * WORD_BYTES
EPOCH = 12 * WORD_BYTES
CELL_ADDRESS = 13 * WORD_BYTES
STOP_ADDRESS = 14 * WORD_BYTES
PROGRESS_ADDRESS = 15 * WORD_BYTES
TASK_ALPHA = 16 * WORD_BYTES
TASK_BETA = 17 * WORD_BYTES

# Of simulated workers only.
STEP_NODES = 26 * WORD_BYTES
YIELD_ADDRESS = 27 * WORD_BYTES
RESUME_ADDRESS = 28 * WORD_BYTES

# What the search is for.
TABLE_ADDRESS = 20 * WORD_BYTES
TABLE_BUCKETS = 21 * WORD_BYTES
GENERATION = 22 * WORD_BYTES
KEY_SALT = 23 * WORD_BYTES
CONTEMPT = 24 * WORD_BYTES
SIDE_MARK = 25 * WORD_BYTES
"""Parity of the ply (with extra turns: side to move) of the nodes where the side that the search is for moves."""

NULL_PLY = 29 * WORD_BYTES
"""No null move is tried above this ply: while a null move's verdict is verified."""

EXTENSION_END = 30 * WORD_BYTES
"""From this ply on no check extends the search."""

EXCLUDED_PLY = 31 * WORD_BYTES
EXCLUDED_MOVE = 32 * WORD_BYTES
"""At this ply this move is left out: while the search asks how good the others are. `NO_MOVE` if none is."""

LEFT_OUT_MOVES = 33 * WORD_BYTES
"""How many first moves the whole task leaves out; see `left_out_offset`."""

ROOT_KEY = 34 * WORD_BYTES
"""The key under which the table holds the task's root."""

PROBE_NESTING = 35 * WORD_BYTES
"""How many shallow searches that foretell a deep one lie around the running node; see `search.prob_cut`."""

SCORE_SO_FAR = 36 * WORD_BYTES
"""Of the root's best first move among those searched; `UNKNOWN` as long as none has a value inside the window."""

SHARING_ADDRESS = 37 * WORD_BYTES
"""Of the machine's words that say which positions are being searched."""
SHARE_DEPTH = 38 * WORD_BYTES
"""Nodes deeper than this leave moves that another worker is searching for last; see `search.sharing`."""
SHARED_NODES = 39 * WORD_BYTES
"""How many nodes of the path are shared, and have their rows in `SHARED`."""
NEXT_LOOK = 40 * WORD_BYTES
"""After so many nodes the path is looked at again."""
DECIDED_NODE = 41 * WORD_BYTES
DECIDED_SCORE = 42 * WORD_BYTES
"""With `STATUS` `DECIDED`: the shared node that another worker has decided, and its score."""

NEWS_ADDRESS = 43 * WORD_BYTES
"""Of the machine's ring of deep entries; see `tt_store.news`."""
OWN_CELL_ADDRESS = 44 * WORD_BYTES
OWN_TASK_ID = 45 * WORD_BYTES
"""A second cell that ends the task, whatever it says: of a worker that searches another's task."""

FIRST_FREE = 46 * WORD_BYTES
"""From here on words of the header are an algorithm's own; see `search.mcts_settings`."""

KILLERS = _HEADER_WORDS * WORD_BYTES
KILLERS_A_PLY = 2
LENGTHS = KILLERS + MAX_PLY * KILLERS_A_PLY * WORD_BYTES

HISTORY_KEYS = 128
"""Positions before the root that a repetition can reach back to: the clock ends the game sooner."""
_BEFORE = 2
PATH_KEYS = LENGTHS + (MAX_PLY + 1 + HISTORY_KEYS) * WORD_BYTES
"""Hash of the position at each ply."""
CHECKS = PATH_KEYS + (MAX_PLY + 1) * WORD_BYTES
"""Whether the side to move is in check."""
ESTIMATES = CHECKS + (MAX_PLY + 1 + _BEFORE) * WORD_BYTES
"""The static estimate, `UNKNOWN` in check."""
PLAYED = ESTIMATES + (MAX_PLY + 1 + _BEFORE) * WORD_BYTES
"""Slot of the move that is being searched, plus one; 0 for a null move, `NOT_KNOWN` above the root of a task."""
LINES = PLAYED + (MAX_PLY + 1) * WORD_BYTES
LINE_BYTES = MAX_PLY * WORD_BYTES
KNOWN_ESTIMATES = LINES + MAX_PLY * LINE_BYTES
"""Of positions: see `search.estimates`."""
KNOWN_ESTIMATES_WORDS = 1 << 15
VALUES = KNOWN_ESTIMATES + KNOWN_ESTIMATES_WORDS * WORD_BYTES
"""Of the position at each ply, one for each player: see `search.multiplayer`."""
VALUES_BYTES = MAX_PLAYERS * WORD_BYTES
SHARED = VALUES + (MAX_PLY + 1) * VALUES_BYTES
SHARED_BYTES = 4 * WORD_BYTES
"""Key, depth, alpha of a null window, ply."""
MOST_SHARED = MAX_PLY
MOVES = SHARED + MOST_SHARED * SHARED_BYTES

RUNNING, OUT_OF_NODES, STOPPED, ABORTED, NARROWED, DECIDED = 0, 1, 2, 3, 4, 5
"""Values of `STATUS`: why a search is unwinding, if it is; the last one ends within the search."""


NOT_KNOWN = -1
UNKNOWN = -INFINITY
"""An estimate that nobody made."""


def workspace_words(max_moves: int, memory_words: int, history_words: int) -> int:
    """Return the size of a workspace in words, for a game's branching, estimates, and what it learns about moves."""
    return history_offset(max_moves, memory_words) // WORD_BYTES + history_words


def left_out_offset(max_moves: int) -> int:
    """Return the byte offset of the first moves that a task leaves out, in a row behind the move stack."""
    return MOVES + MAX_PLY * max_moves * WORD_BYTES


def memory_offset(max_moves: int) -> int:
    """Return the byte offset of the memory of a game's estimates, behind the moves that are left out."""
    return left_out_offset(max_moves) + max_moves * WORD_BYTES


def history_offset(max_moves: int, memory_words: int) -> int:
    """Return the byte offset of the history table, behind the memory of a game's estimates."""
    return memory_offset(max_moves) + memory_words * WORD_BYTES
