"""The search of games of chance: expectiminimax in negamax form, with Star1 and Star2 below chance nodes.

Expectiminimax (Michie 1966) takes the best of a player's moves and the mean of what chance may bring. A chance node can
still be cut: where the game bounds all values, the outcomes searched so far and the bounds of the others may decide its
window. Star1 (Ballard 1983) gives each outcome the window that this leaves it. Star2 first looks for better bounds: it
probes each outcome by its most promising move alone, which bounds its value from below, and mostly enough to show that
the chance node is too good to be allowed. The negamax form and the table's part in it are as in Hauk, Buro and
Schaeffer (2004); the arithmetic is exact here, on integers, where theirs is on real numbers.

Of the variants of `search.flags.Pruning` there are two here: none, and fail-soft, which is what all others mean.

The function answers by the contract of `search.kernel`, with its driver, table, limits and lines. Values are defined in
`search.chance_rules`. Depth counts the players' moves; what chance does costs none, and a horizon falls before it. A
line goes on through chance with the likeliest outcome, the first of equals. Instantiated for a game and a set of flags
(see `search.jit`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from search import jit
from search import workspace as at
from search.chance_rules import chance_rules_of
from search.flags import Pruning, Star
from search.scores import INFINITY, MAX_PLY, ONGOING, from_table
from tt_store.layout import MOVE_MASK, NO_MOVE, WORD_BYTES
from tt_store.native import Integer, Word, as_int, read_int, read_word, write_int
from tt_store.table import MISS, entry_move, entry_score, prefetch_bucket

_game, _flags = jit.binding(__name__)
_notes = jit.specialise("search.bookkeeping", _game, _flags)
_ordering = jit.specialise("search.ordering", _game, _flags)
_root_moves = jit.specialise("search.root_moves", _game, _flags)
_chance = chance_rules_of(_game)

moves, play, outcome, key_of = _game.moves, _game.play, _game.outcome, _game.key
side_to_move, evaluate = _game.side_to_move, _game.evaluate
is_chance, weight = _chance.is_chance, _chance.weight
WEIGHT_SUM, VALUE_BOUND = _chance.weight_sum, _chance.value_bound
enter_node = _notes.enter_node
leaf_score: Callable[..., int] = _notes.leaf_score
extend_line, count = _notes.extend_line, _notes.count
look_up, is_decided, remember = _notes.look_up, _notes.is_decided, _notes.remember
arrange_moves, bring_move = _ordering.arrange_moves, _ordering.bring_move
credit_fail_high = _ordering.credit_fail_high
keep_others, key_of_others = _root_moves.keep_others, _root_moves.key_of_others

PRUNES = _flags.pruning != Pruning.NONE
TABLE = _flags.table
STAR1 = PRUNES and _flags.star != Star.NONE
STAR2 = PRUNES and _flags.star == Star.STAR2
MOVE_ROW_BYTES = _notes.MOVE_ROW_BYTES

OPEN_LOW: Integer = np.int64(-INFINITY)
OPEN_HIGH: Integer = np.int64(INFINITY)
ALL_MOVES: Integer = np.int64(_game.max_moves)
ONE_MOVE: Integer = np.int64(1)
"""Not Python integers: see `search.kernel`."""

PROBE_MARGIN = VALUE_BOUND // 6
"""A chance node is probed if its estimate comes so near to beta: where it will fall short of it, a probe is wasted. On
EinStein this spares a fifth of the nodes, and the margin matters little from an eighth to a quarter."""

# The word of an outcome, with what is known of its value for the chance node:
#
#   63 ........ 32 31 ............. 16 15 .. 0
#                   lower bound, offset  move
_LOWER_SHIFT = 16
_OFFSET = 1 << 15


@jit.helper
def with_lower_bound(move: int, lower: int) -> int:
    """Return the word of an outcome whose value has a lower bound."""
    return (lower + _OFFSET) << _LOWER_SHIFT | move


@jit.helper
def lower_bound_in(word: int) -> int:
    """Return the lower bound of an outcome's word."""
    return (word >> _LOWER_SHIFT) - _OFFSET


@jit.helper
def mean(total: int) -> int:
    """Return the value of a chance node whose weighted values add up to a total: rounded towards zero."""
    return total // WEIGHT_SUM if total >= 0 else -(-total // WEIGHT_SUM)


@jit.helper
def least_total(value: int) -> int:
    """Return the least total whose mean is at least a value; the greatest one with at most `v` is ``-least(-v)``."""
    return value * WEIGHT_SUM if value > 0 else (value - 1) * WEIGHT_SUM + 1


@jit.helper
def least_of_one(total: int, share: int) -> int:
    """Return the least value that, with the weight of one outcome, adds at least so much: the quotient rounded up."""
    return -(-total // share)


@jit.helper
def key_below(child: Any, memory: int) -> Word:
    """Return the key under which this search holds a child in the table, whose bucket is asked for."""
    key = key_of(child) ^ read_word(memory + at.KEY_SALT)
    if TABLE:
        prefetch_bucket(read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS), key)
    return key


@jit.self_call
def search_below(position: Any, key: int, depth: int, alpha: int, beta: int, ply: int, tries: int, memory: int) -> int:
    """Call `search_node` from itself."""
    return search_node(position, key, depth, alpha, beta, ply, tries, memory)


@jit.helper
def search_node(position: Any, key: int, depth: int, alpha: int, beta: int, ply: int, tries: int, memory: int) -> int:
    """Search one node, at least one move above the horizon, and all below it.

    Parameters
    ----------
    position
        The game's named tuple; the game goes on.
    key
        Its key for the table.
    depth
        Moves of the players to the horizon, 1 or more.
    alpha, beta
        The window, ``-INFINITY <= alpha < beta <= INFINITY``.
    ply
        Plies from the root, what chance does included.
    tries
        How many moves of a decision are searched: all of them, or the first one of a probe.
    memory
        Address of the `search.workspace`.

    Returns
    -------
    int
        A result ``r`` for the exact value ``v``: ``r <= alpha`` means ``v <= r``; ``r >= beta`` means ``v >= r``;
        otherwise ``r == v``. Of a probe, whose alpha is `OPEN_LOW`: always ``v >= r``. Worthless once `STATUS` is not
        `RUNNING`.
    """
    # Step 1. Count the node. No value is beyond the game's bound.
    if enter_node(ply, memory) != at.RUNNING:
        return 0
    if PRUNES and (alpha >= VALUE_BOUND or beta <= -VALUE_BOUND):
        return VALUE_BOUND if alpha >= VALUE_BOUND else -VALUE_BOUND
    if PRUNES:
        beta = min(beta, VALUE_BOUND)

    # Step 2. What the table knows: a score that decides this window, or at least the move to try first.
    table_move = NO_MOVE
    entry = look_up(key, memory)
    if entry != MISS:
        table_move = entry_move(entry)
        if is_decided(entry, depth, alpha, beta, ply) == 1:
            count(memory, at.CUTOFFS)
            known: int = from_table(entry_score(entry), ply)
            return known
    end = memory + at.MOVES + ply * MOVE_ROW_BYTES
    last = moves(position, end)
    side = side_to_move(position)

    if is_chance(position) == 1:
        # Step 3. The window as totals of weighted values: at most `low_total` fails low, at least `high_total` high.
        low_total, high_total = -least_total(-alpha), least_total(beta)
        lower_total, upper_total = -VALUE_BOUND * WEIGHT_SUM, VALUE_BOUND * WEIGHT_SUM
        for cursor in range(end, last, WORD_BYTES):
            write_int(cursor, with_lower_bound(read_int(cursor), -VALUE_BOUND))

        # Step 4. Star2: probe each outcome by one move, until their lower bounds reach beta.
        is_probed = STAR2 and evaluate(position) + PROBE_MARGIN >= beta
        for cursor in range(end, last if is_probed else end, WORD_BYTES):
            move = read_int(cursor) & MOVE_MASK
            child = play(position, move)
            if outcome(child) != ONGOING or is_chance(child) == 1 or side_to_move(child) != side:
                continue
            share = weight(position, move)
            others = lower_total + share * VALUE_BOUND
            upper = min(least_of_one(high_total - others, share), VALUE_BOUND + 1)
            score = search_below(child, key_below(child, memory), depth, OPEN_LOW, upper, ply + 1, ONE_MOVE, memory)
            if read_int(memory + at.STATUS) != at.RUNNING:
                return 0
            lower_total = others + share * score
            write_int(cursor, with_lower_bound(move, score))
            if lower_total >= high_total:
                bound = mean(lower_total)
                remember(key, bound, NO_MOVE, depth, OPEN_LOW, bound, ply, memory)
                return bound

        # Step 5. Star1: search each outcome with the window that the bounds of the others leave it.
        likeliest = 0
        for cursor in range(end, last, WORD_BYTES):
            move = read_int(cursor) & MOVE_MASK
            child = play(position, move)
            result = outcome(child)
            share = weight(position, move)
            lower_of_others = lower_total - share * lower_bound_in(read_int(cursor))
            upper_of_others = upper_total - share * VALUE_BOUND
            lower, upper = OPEN_LOW, OPEN_HIGH
            if STAR1:
                upper = min(least_of_one(high_total - lower_of_others, share), VALUE_BOUND + 1)
                lower = max((low_total - upper_of_others) // share, -VALUE_BOUND - 1)
            is_same_side = side_to_move(child) == side
            if result != ONGOING or ply >= MAX_PLY - 2:
                score = leaf_score(child, result, ply + 1, memory)
                score = score if is_same_side else -score
            elif is_same_side:
                score = search_below(child, key_below(child, memory), depth, lower, upper, ply + 1, ALL_MOVES, memory)
            else:
                score = -search_below(
                    child, key_below(child, memory), depth, -upper, -lower, ply + 1, ALL_MOVES, memory
                )
            if read_int(memory + at.STATUS) != at.RUNNING:
                return 0
            if share > likeliest and beta - alpha > 1:
                likeliest = share
                extend_line(memory, ply, move)
            lower_total, upper_total = lower_of_others + share * score, upper_of_others + share * score
            # Such a score is a bound alone, but it decides the window.
            if STAR1 and score <= lower:
                bound = mean(upper_total)
                remember(key, bound, NO_MOVE, depth, bound, OPEN_HIGH, ply, memory)
                return bound
            if STAR1 and score >= upper:
                bound = mean(lower_total)
                remember(key, bound, NO_MOVE, depth, OPEN_LOW, bound, ply, memory)
                return bound
        value = mean(lower_total)
        remember(key, value, NO_MOVE, depth, OPEN_LOW, OPEN_HIGH, ply, memory)
        return value

    # Step 6. A decision: the table's move comes first, the others by rank or as generated. All have the full window:
    # where chance follows, null windows and what has to be searched again cost more than they spare (6 % of the nodes).
    if ply == 0:
        last = keep_others(end, last, memory)
    arrange_moves(position, table_move, ply, memory, end, last)
    is_pv = beta - alpha > 1
    best = -INFINITY
    best_move = NO_MOVE
    low = alpha
    for cursor in range(end, min(last, end + tries * WORD_BYTES), WORD_BYTES):
        move = bring_move(cursor, end, last)
        child = play(position, move)
        result = outcome(child)
        is_same_side = side_to_move(child) == side
        if result != ONGOING or depth <= 1 or ply >= MAX_PLY - 2:
            score = leaf_score(child, result, ply + 1, memory)
            score = score if is_same_side else -score
        else:
            child_key = key_below(child, memory)
            lower = low if PRUNES else OPEN_LOW
            upper = beta if PRUNES else OPEN_HIGH
            if is_same_side:
                score = search_below(child, child_key, depth - 1, lower, upper, ply + 1, ALL_MOVES, memory)
            else:
                score = -search_below(child, child_key, depth - 1, -upper, -lower, ply + 1, ALL_MOVES, memory)
        if read_int(memory + at.STATUS) != at.RUNNING:
            return 0

        # Step 7. Keep the best; a move that reaches beta refutes the node.
        if score > best:
            best, best_move = score, move
            if score > low:
                low = score
                if is_pv:
                    extend_line(memory, ply, move)
                if PRUNES and score >= beta:
                    credit_fail_high(position, move, depth, ply, memory, end, cursor)
                    break

    # Step 8. Store the result; that of a probe is a lower bound.
    if end + tries * WORD_BYTES < last:
        beta = best
    remember(key, best, best_move, depth, alpha if PRUNES else OPEN_LOW, beta if PRUNES else OPEN_HIGH, ply, memory)
    return best


@jit.cached
def search_root(position: Any, depth: int, ply: int, memory: int) -> int:
    """Search a task: the window lies in the workspace, and may be narrowed from outside while the search runs.

    Parameters, result and control words are those of `search.kernel.search_root`.
    """
    key = key_of_others(position, key_of(position) ^ read_word(memory + at.KEY_SALT), memory)
    write_int(memory + at.ROOT_KEY, as_int(key))
    result = outcome(position)
    if result != ONGOING or depth <= 0:
        write_int(memory + at.STATUS, at.RUNNING)
        return leaf_score(position, result, ply, memory)
    while True:
        write_int(memory + at.STATUS, at.RUNNING)
        alpha = read_int(memory + at.TASK_ALPHA)
        beta = read_int(memory + at.TASK_BETA)
        score = search_node(position, key, depth, alpha, beta, ply, ALL_MOVES, memory)
        if read_int(memory + at.STATUS) != at.NARROWED:
            return score
        # Beta fell below what this search could still decide: ask again, with the table warm.
        if alpha >= read_int(memory + at.TASK_BETA):
            write_int(memory + at.TASK_ALPHA, read_int(memory + at.TASK_BETA) - 1)
