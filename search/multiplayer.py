"""max^n: each player takes the move that is best for itself (Luckhardt and Irani 1986), compiled.

Instantiated for a game of several players and a set of flags, like the kernel (see `search.jit`). A position is worth
a vector, one value for each player; it lies in the workspace, a row for each ply. Where the game bounds payoffs and
their sum, moves are left out that cannot change the answer: shallow pruning, and immediate pruning where a player has
all that there is (Korf 1991). Deep pruning would be wrong for more than two players, and is not done.

**Ties.** Which of two moves that are equal for its mover is taken changes what the others get. It is always the one of
the lowest number, in whatever order they were searched. The value of a position at a depth is therefore one vector,
the same for every variant, table and number of workers; a vector from the table counts at equal depth alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from search import jit
from search import workspace as at
from search.flags import Pruning
from search.player_rules import player_rules
from search.rules import mix
from search.scores import INFINITY, MAX_PLY, ONGOING
from tt_store.layout import BOUND_EXACT, MOVE_MASK, NO_MOVE, WORD_BYTES
from tt_store.native import Integer, Word, as_int, as_word, read_int, read_word, write_int
from tt_store.news import store_and_note
from tt_store.table import MISS, entry_bound, entry_depth, entry_move, entry_score, pack_entry, probe

_game, _flags = jit.binding(__name__)
_notes = jit.specialise("search.bookkeeping", _game, _flags)
_ordering = jit.specialise("search.ordering", _game, _flags)
_root_moves = jit.specialise("search.root_moves", _game, _flags)
_players = player_rules(_game)

moves, play, outcome, key_of = _game.moves, _game.play, _game.outcome, _game.key
player, payoff, estimate = _players.player, _players.payoff, _players.estimate
enter_node, extend_line = _notes.enter_node, _notes.extend_line
count, reach, look_up = _notes.count, _notes.reach, _notes.look_up
arrange_moves, bring_move = _ordering.arrange_moves, _ordering.bring_move
credit_fail_high: Callable[..., int] = _ordering.credit_fail_high
keep_others, key_of_others = _root_moves.keep_others, _root_moves.key_of_others

PLAYERS = _players.players
PRUNES = _flags.pruning != Pruning.NONE
SHALLOW = PRUNES and _players.has_bounded_sum
CEILING = _players.ceiling
MOST_FOR_TWO = _players.most_for(2)
TABLE = _flags.table
TABLE_DEPTH = max(2, _flags.table_depth)
"""A node of less depth is cheaper to search than to look up: there is an entry for each player."""
PLAYER_SHIFT = MOVE_MASK.bit_length()

MOVE_ROW_BYTES = _notes.MOVE_ROW_BYTES
NOTHING: Integer = np.int64(-INFINITY)
"""Less than any value. Not a Python integer, as in the kernel."""
BEYOND_MOVES: Integer = np.int64(MOVE_MASK)


@jit.helper
def values_at(ply: int, memory: int) -> int:
    """Return the address of the values of the position at a ply."""
    return memory + at.VALUES + ply * at.VALUES_BYTES


@jit.helper
def score_leaf(position: Any, result: int, ply: int, memory: int) -> int:
    """Count a node below which nothing is searched, and write down its values; returns 0."""
    count(memory, at.NODES)
    write_int(memory + at.LENGTHS + ply * WORD_BYTES, 0)
    reach(ply, memory)
    row = values_at(ply, memory)
    for each in range(PLAYERS):
        value = estimate(position, each) if result == ONGOING else payoff(position, each)
        write_int(row + each * WORD_BYTES, value)
    return 0


@jit.helper
def salted_key(position: Any, memory: int) -> Word:
    """Return the key under which this search holds a position in the table."""
    return key_of(position) ^ read_word(memory + at.KEY_SALT)


@jit.helper
def key_of_value(key: Word, each: int) -> Word:
    """Return the key under which the table holds what a position of a key is worth to a player: to the first, its own.

    The values of a position lie far from each other, so that positions do not drive each other out value by value.
    The key of a root that leaves moves out differs by the hashes of these numbers, which are smaller.
    """
    return key if each == 0 else key ^ mix(as_word(each << PLAYER_SHIFT))


@jit.helper
def recall(key: Word, entry: int, depth: int, ply: int, memory: int) -> int:
    """Write down the values of a node, if the table holds all of them at its depth, and return 1; else return 0.

    They need not come from one search: all searches find the same ones.
    """
    row = values_at(ply, memory)
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    for each in range(PLAYERS):
        data = entry if each == 0 else probe(table, buckets, key_of_value(key, each))
        if data == MISS or entry_depth(data) != depth or entry_bound(data) != BOUND_EXACT:
            return 0
        write_int(row + each * WORD_BYTES, entry_score(data))
    return 1


@jit.helper
def remember(key: Word, move: int, depth: int, ply: int, memory: int) -> int:
    """Store the values of a node, an entry each; returns 0."""
    row = values_at(ply, memory)
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    generation, news = read_int(memory + at.GENERATION), read_int(memory + at.NEWS_ADDRESS)
    for each in range(PLAYERS):
        data = pack_entry(read_int(row + each * WORD_BYTES), move, depth, BOUND_EXACT, generation)
        store_and_note(table, buckets, key_of_value(key, each), data, generation, news)
    return 0


@jit.helper
def take_values(ply: int, memory: int) -> int:
    """Make the values at a ply those of the ply below; returns 0."""
    row, below = values_at(ply, memory), values_at(ply + 1, memory)
    for each in range(PLAYERS):
        write_int(row + each * WORD_BYTES, read_int(below + each * WORD_BYTES))
    return 0


@jit.self_call
def search_below(position: Any, key: Word, depth: int, owner: int, needed: int, ply: int, memory: int) -> int:
    """Call `search_node` from itself."""
    return search_node(position, key, depth, owner, needed, ply, memory)


@jit.helper
def search_node(position: Any, key: Word, depth: int, owner: int, needed: int, ply: int, memory: int) -> int:
    """Search one node and all below it.

    Parameters
    ----------
    position
        The game's named tuple, opaque here; the game goes on.
    key
        Its key for the table.
    depth
        Plies to the horizon, at least 1.
    owner, needed
        The player who moved before, and the least value that makes this node of use to it.
    ply
        Plies from the root of the whole search.
    memory
        Address of the `search.workspace`.

    Returns
    -------
    int
        1 if the values of the node are written down at `ply`; 0 if they are not, because the owner's is less than
        `needed`. Worthless once `STATUS` is not `RUNNING`.
    """
    # Step 1. Count the node.
    if enter_node(ply, memory) != at.RUNNING:
        return 0

    # Step 2. What the table knows: all values, or at least the move to try first.
    table_move = NO_MOVE
    entry = look_up(key, memory) if TABLE and depth >= TABLE_DEPTH else MISS
    if entry != MISS:
        table_move = entry_move(entry)
        if recall(key, entry, depth, ply, memory) == 1:
            count(memory, at.CUTOFFS)
            write_int(memory + at.LENGTHS + (ply + 1) * WORD_BYTES, 0)
            extend_line(memory, ply, table_move)
            return 1

    # Step 3. Generate the moves; the table's comes first, the others by rank or as generated.
    mover = as_int(player(position))
    end = memory + at.MOVES + ply * MOVE_ROW_BYTES
    last = moves(position, end)
    if ply == 0:
        last = keep_others(end, last, memory)
    arrange_moves(position, table_move, ply, memory, end, last)
    below = values_at(ply + 1, memory) + mover * WORD_BYTES
    best, best_move = NOTHING, BEYOND_MOVES
    for cursor in range(end, last, WORD_BYTES):
        # Step 4. A move is of use if it beats the best one, or equals it and has a lower number. Nobody gets more than
        # there is (immediate pruning).
        move = bring_move(cursor, end, last)
        asked = best + 1 if move > best_move else best
        if owner == mover:
            asked = max(asked, needed)
        if PRUNES and asked > CEILING:
            continue

        # Step 5. Search it.
        child = play(position, move)
        result = outcome(child)
        is_known = 1
        if result != ONGOING or depth <= 1 or ply >= MAX_PLY - 2:
            score_leaf(child, result, ply + 1, memory)
        else:
            asked = asked if PRUNES else NOTHING
            is_known = search_below(child, salted_key(child, memory), depth - 1, mover, asked, ply + 1, memory)
            if read_int(memory + at.STATUS) != at.RUNNING:
                return 0
        if is_known == 0:
            continue

        # Step 6. Keep the best. What its mover has, the owner cannot have: too little may be left (shallow pruning).
        value = read_int(below)
        if value > best or (value == best and move < best_move):
            best, best_move = value, move
            take_values(ply, memory)
            extend_line(memory, ply, move)
            if SHALLOW and owner != mover and MOST_FOR_TWO - best < needed:
                credit_fail_high(position, move, depth, ply, memory, end, cursor)
                return 0

    # Step 7. Store the values, unless they are those of moves that were of no use.
    if PRUNES and owner == mover and best < needed:
        return 0
    if TABLE and depth >= TABLE_DEPTH:
        remember(key, best_move, depth, ply, memory)
    return 1


@jit.cached
def search_root(position: Any, depth: int, ply: int, memory: int) -> int:
    """Search a task: its values are those of the position's row.

    Parameters
    ----------
    position, depth, ply, memory
        As in `search_node`. `TASK_ALPHA` of the workspace holds what the player to move has elsewhere: moves that
        bring it no more are of no use. At ply 0 the moves that the workspace lists as left out are not searched.

    Returns
    -------
    int
        A result ``r`` for the exact value ``v`` of the player to move: ``r <= alpha`` means ``v <= r``; otherwise
        ``r == v``, and the values are there. Void unless `STATUS` is `RUNNING`.
    """
    key = key_of_others(position, salted_key(position, memory), memory)
    write_int(memory + at.ROOT_KEY, as_int(key))
    write_int(memory + at.STATUS, at.RUNNING)
    mover = as_int(player(position))
    alpha = read_int(memory + at.TASK_ALPHA)
    result = outcome(position)
    if result != ONGOING or depth <= 0:
        score_leaf(position, result, ply, memory)
    elif search_node(position, key, depth, mover, alpha + 1, ply, memory) == 0:
        return alpha
    return read_int(values_at(ply, memory) + mover * WORD_BYTES)
