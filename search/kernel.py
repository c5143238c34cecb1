"""The one search function: fail-soft PVS in negamax form, its variants behind flags.

This module is instantiated for a game and a set of flags (see `search.jit`): what it binds below are constants to the
compiler, so what a game does not define and what a flag leaves out vanish from the machine code. It allocates
nothing, checks nothing and raises nothing: Python checks, then calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from search import jit
from search import workspace as at
from search.flags import Pruning
from search.scores import DRAW, INFINITY, MATE, MATE_BOUND, MAX_PLY, ONGOING, from_table, to_table
from tt_store.layout import MOVE_MASK, NO_MOVE, WORD_BYTES
from tt_store.native import Integer, Word, as_int, read_int, write_int
from tt_store.table import MISS, entry_move, entry_score, prefetch_bucket, probe

_game, _flags = jit.binding(__name__)
_notes = jit.specialise("search.bookkeeping", _game, _flags)
_ordering = jit.specialise("search.ordering", _game, _flags)
_history = jit.specialise("search.history", _game, _flags)
_repetition = jit.specialise("search.repetition", _game, _flags)
_symmetry = jit.specialise("search.symmetry", _game, _flags)
_quiescence = jit.specialise("search.quiescence", _game, _flags)
_foresight = jit.specialise("search.foresight", _game, _flags)
_rules = jit.specialise("search.selectivity", _game, _flags)
_root_moves = jit.specialise("search.root_moves", _game, _flags)
_estimates = jit.specialise("search.estimates", _game, _flags)
_prob_cut = jit.specialise("search.prob_cut", _game, _flags)
_sharing = jit.specialise("search.sharing", _game, _flags)

moves, play, outcome, key_of = _game.moves, _game.play, _game.outcome, _game.key
side_to_move, stuck, pass_turn = _game.side_to_move, _game.stuck, _game.pass_turn
is_late, solve_leaf, upper_bound = _game.is_late, _game.solve_leaf, _game.upper_bound
enter_node = _notes.enter_node
leaf_score: Callable[..., int] = _notes.leaf_score
final_score: Callable[..., int] = _notes.final_score
extend_line, count = _notes.extend_line, _notes.count
extreme_score: Callable[..., int] = _notes.extreme_score
look_up, is_decided, remember = _notes.look_up, _notes.is_decided, _notes.remember
arrange_moves, bring_move = _ordering.arrange_moves, _ordering.bring_move
credit_fail_high = _ordering.credit_fail_high
note_move = _history.note_move
repeats, REPEATS = _repetition.repeats, _repetition.REPEATS
salted_key, turned_move = _symmetry.salted_key, _symmetry.turned_move
quiescence: Callable[..., int] = _quiescence.quiescence
sound_moves = _foresight.sound_moves
score_of_two_plies: Callable[..., int] = _foresight.score_of_two_plies
win_at_once: Callable[..., int] = _foresight.win_at_once
SOUND = _foresight.SOUND
note_estimate, is_improving = _rules.note_estimate, _rules.is_improving
note_check: Callable[..., int] = _rules.note_check
is_far_above, is_far_below = _rules.is_far_above, _rules.is_far_below
may_pass, pass_reduction = _rules.may_pass, _rules.pass_reduction
is_skipped, late_reduction = _rules.is_skipped, _rules.late_reduction
is_hopeless, drop_hopeless = _rules.is_hopeless, _rules.drop_hopeless
is_plain_move = _rules.is_plain_move
is_whole, asks_for_mate = _rules.is_whole, _rules.asks_for_mate
may_cut_by_estimate, correct_estimate = _rules.may_cut_by_estimate, _rules.correct_estimate
begin_verification, depth_below = _rules.begin_verification, _rules.depth_below
may_be_singular, left_out, leave_out = _rules.may_be_singular, _rules.left_out, _rules.leave_out
key_without = _rules.key_without
ask_estimate, estimate_of = _estimates.ask_estimate, _estimates.estimate_of
first_row, shallow_depth = _prob_cut.first_row, _prob_cut.shallow_depth
least_above, most_below = _prob_cut.least_above, _prob_cut.most_below
is_askable, nest, ROW_BYTES = _prob_cut.is_askable, _prob_cut.nest, _prob_cut.ROW_BYTES
keep_others, key_of_others = _root_moves.keep_others, _root_moves.key_of_others
has_all_moves: Callable[..., int] = _root_moves.has_all_moves
is_shared, is_taken, take, give_back = _sharing.is_shared, _sharing.is_taken, _sharing.take, _sharing.give_back
put_last, SHARES = _sharing.put_last, _sharing.SHARES
DEFERRED: int = _sharing.DEFERRED
enter_shared, leave_shared = _sharing.enter_shared, _sharing.leave_shared
resume: Callable[..., int] = _sharing.resume

PRUNES = _flags.pruning != Pruning.NONE
FAIL_HARD = _flags.pruning == Pruning.FAIL_HARD
PVS = _flags.pruning == Pruning.PVS
TABLE = _flags.table
EXTRA_TURNS = _game.has_extra_turns
STUCK = _game.has("stuck")
SOLVES_LEAVES, LATE_PLIES = _game.has("solve_leaf"), _game.late_plies
BOUNDED = PRUNES and _game.has("upper_bound")
QUIESCES = _notes.QUIESCES
EXTENDS, PASSES, REDUCES, SKIPS = _rules.EXTENDS, _rules.PASSES, _rules.REDUCES, _rules.SKIPS
SEES_CHECKS, ESTIMATES, SINGULAR = _rules.SEES_CHECKS, _rules.ESTIMATES, _rules.SINGULAR
PROB_CUTS = _prob_cut.PROB_CUTS

BOUNDS_MATES = STUCK and not FAIL_HARD
ENHANCED = _flags.enhanced_cutoff and TABLE and PRUNES and not FAIL_HARD and not EXTRA_TURNS and not REPEATS
ENHANCED_DEPTH = 16
"""From this depth on a refutation found in the table is worth a probe of each child."""
TABLE_DEPTH = _flags.table_depth
KEEPS_PATH = REPEATS or SEES_CHECKS
SELECTIVE = PASSES or REDUCES or SKIPS or PROB_CUTS
LOOKS_AHEAD = _ordering.LOOKS_AHEAD
RANK_SHIFT = _ordering.RANK_SHIFT
ASKS_EARLY = TABLE and QUIESCES
"""Whether each child asks the table: with a quiescence search there is nothing else at the horizon."""
VERIFIED_DEPTH, LEAST_INTERNAL_DEPTH = _rules.VERIFIED_DEPTH, _rules.LEAST_INTERNAL_DEPTH
SHALLOW_DEPTH = _rules.SHALLOW_DEPTH

MOVE_ROW_BYTES = _notes.MOVE_ROW_BYTES

OPEN_LOW: Integer = np.int64(-INFINITY)
OPEN_HIGH: Integer = np.int64(INFINITY)
"""The full window. Not Python integers: Numba compiles a call with literal arguments as a version of its own."""
AT_HORIZON: Integer = np.int64(0)


class Outlook(NamedTuple):
    """What a node tells of all its moves; what a flag leaves out is constant."""

    depth: int
    """Plies to the horizon: one less than asked for where the table has no move for a deep node."""
    is_pv: bool
    """Whether the window is open."""
    singular_move: int
    """The table's move where no other comes near it, else `NO_MOVE`."""
    excluded: int
    """The move that the node leaves out, else `NO_MOVE`."""
    estimate: int
    """The static estimate, or a better one from the table; `UNKNOWN` in check."""
    improving: int
    """1 if the side to move stands better than before its last move, else 0."""
    is_shared: bool
    """Whether moves that others are searching come last."""


@jit.helper
def enter_path(position: Any, key: int, ply: int, memory: int) -> int:
    """Note what the nodes below need to know of one on the path to them; returns 1 if its side to move is in check."""
    if REPEATS:
        write_int(memory + at.PATH_KEYS + ply * WORD_BYTES, as_int(key))
    return note_check(position, ply, memory) if SEES_CHECKS else 0


@jit.helper
def begin_pass(position: Any, ply: int, memory: int) -> tuple[Any, Word]:
    """Pass the turn, note it on the path, and return the position and its key for the table."""
    passed = pass_turn(position)
    key = salted_key(passed, key_of(passed), memory)
    prefetch_bucket(read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS), key)
    write_int(memory + at.PLAYED + ply * WORD_BYTES, 0)
    enter_path(passed, key_of(passed), ply + 1, memory)
    return passed, key


@jit.helper
def ask_table(position: Any, child: Any, following: int, last: int, memory: int) -> Word:
    """Ask for the bucket of a child whose key is returned, and for that of its next sibling, if that is known.

    The sibling's will have arrived when it is wanted. Worth a third of the speed with a table beyond the processor's
    cache.
    """
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    key = salted_key(child, key_of(child), memory)
    prefetch_bucket(table, buckets, key)
    ask_estimate(child, memory)
    if LOOKS_AHEAD and following < last:
        sibling = play(position, read_int(following) & MOVE_MASK)
        prefetch_bucket(table, buckets, salted_key(sibling, key_of(sibling), memory))
    return key


@jit.helper
def prefetch_children(position: Any, memory: int, begin: int, last: int) -> int:
    """Ask for the buckets of all children of a node, whose moves have no ranks yet; returns 0."""
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    for cursor in range(begin, last, WORD_BYTES):
        child = play(position, read_int(cursor))
        prefetch_bucket(table, buckets, salted_key(child, key_of(child), memory))
    return 0


@jit.helper
def refuted_by_table(
    position: Any, depth: int, alpha: int, beta: int, ply: int, memory: int, begin: int, last: int
) -> int:
    """Return a score of at least beta that the table proves of a child, else `UNKNOWN` (Plaat 1996)."""
    table, buckets = read_int(memory + at.TABLE_ADDRESS), read_int(memory + at.TABLE_BUCKETS)
    for cursor in range(begin, last, WORD_BYTES):
        child = play(position, read_int(cursor) & MOVE_MASK)
        entry = probe(table, buckets, salted_key(child, key_of(child), memory))
        if entry != MISS and is_decided(entry, depth - 1, -beta, -alpha, ply + 1) == 1:
            score = -from_table(entry_score(entry), ply + 1)
            if score >= beta:
                count(memory, at.CUTOFFS)
                return score
    return at.UNKNOWN


@jit.helper
def score_at_sight(position: Any, depth: int, alpha: int, beta: int, ply: int, memory: int) -> int:
    """Return a score that decides the window before anything is searched, else `UNKNOWN`."""
    if BOUNDS_MATES:
        # No mate below can be nearer to the root than the node itself.
        score = extreme_score(alpha, beta, MATE - ply - 1, ply - MATE)
        if score != at.UNKNOWN:
            return score
    if BOUNDED:
        ceiling = upper_bound(position, depth, alpha)
        if ceiling <= alpha and read_int(memory + at.CONTEMPT) == 0:
            return alpha if FAIL_HARD else ceiling
    return at.UNKNOWN


@jit.helper
def score_of_entry(entry: int, depth: int, alpha: int, beta: int, ply: int, memory: int) -> int:
    """Return the score of a table's entry if that decides the window, else `UNKNOWN`."""
    # Where a path may end in a draw that the table does not see, the principal variation is searched all the same.
    if entry == MISS or (REPEATS and beta - alpha > 1) or is_decided(entry, depth, alpha, beta, ply) == 0:
        return at.UNKNOWN
    count(memory, at.CUTOFFS)
    score = from_table(entry_score(entry), ply)
    return max(alpha, min(score, beta)) if FAIL_HARD else score


@jit.helper
def outcome_on_path(child: Any, ply: int, memory: int) -> int:
    """Return the outcome of a position at a ply, a repetition being a draw."""
    result = outcome(child)
    if REPEATS and result == ONGOING and repeats(child, key_of(child), ply, memory) == 1:
        return DRAW
    return result


@jit.helper
def is_same_side(position: Any, child: Any) -> bool:
    """Tell whether a move leaves the same side to move."""
    return EXTRA_TURNS and side_to_move(child) == side_to_move(position)


@jit.helper
def score_on_the_spot(
    position: Any, child: Any, result: int, child_depth: int, is_unsound: bool, ply: int, memory: int
) -> int:
    """Return the score of a move below which nothing is searched, seen from its node, else `UNKNOWN`.

    Parameters
    ----------
    position, child
        Before the move and after it.
    result
        The outcome of the child.
    child_depth
        Plies that are left to the horizon.
    is_unsound
        Whether the moves were not told by `sound_moves`, so that a reply may win at once.
    ply, memory
        Of the node.
    """
    if SOUND and is_unsound and result == ONGOING:
        reply_wins = win_at_once(child, ply + 1, memory)
        if reply_wins != 0:
            return -reply_wins
    if result == ONGOING and (QUIESCES or child_depth > 0) and ply < MAX_PLY - 2:
        return at.UNKNOWN
    score = leaf_score(child, result, ply + 1, memory)
    return score if is_same_side(position, child) else -score


@jit.spliced
def line_up_moves(position: Any, table_move: int, depth: int, ply: int, memory: int, begin: int, last: int) -> int:
    """Prepare the moves between two addresses to be tried in turn; returns the list's end, which a root's may change.

    The children's buckets are asked for meanwhile, where `refuted_by_table` will want them.
    """
    if ply == 0:
        last = keep_others(begin, last, memory)
    if ENHANCED and depth >= ENHANCED_DEPTH:
        prefetch_children(position, memory, begin, last)
    arrange_moves(position, table_move, ply, memory, begin, last)
    return last


@jit.spliced
def store_result(
    position: Any, key: int, best: int, best_move: int, depth: int, alpha: int, beta: int, ply: int, memory: int
) -> int:
    """Store a node's result, its bound judged by the original alpha, and return it by the contract of `search_node`.

    Parameters
    ----------
    position, key, depth, alpha, beta, ply, memory
        As in `search_node`.
    best, best_move
        The greatest score of its moves, and whose it is.
    """
    if SINGULAR and best == -INFINITY:
        # The move that is left out is the only one.
        return alpha
    if FAIL_HARD:
        best = max(alpha, min(best, beta))
    if depth >= TABLE_DEPTH:
        lower, upper = alpha if PRUNES else OPEN_LOW, beta if PRUNES else OPEN_HIGH
        remember(key, best, turned_move(position, best_move), depth, lower, upper, ply, memory)
    return best


@jit.helper
def search_node(position: Any, key: int, depth: int, alpha: int, beta: int, ply: int, memory: int) -> int:
    """Search one node and all below it.

    Parameters
    ----------
    position
        The game's named tuple, opaque here; the game goes on. What the path to it tells is noted (`enter_path`).
    key
        Its key for the table.
    depth
        Plies to the horizon; 0 or less is left to the quiescence search, where there is one.
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
        Selective rules make ``v`` another value than that of a search of fixed depth.
    """
    # Step 1. Count the node. What is on the board may decide the window, or two plies where the game knows them.
    if QUIESCES and depth <= 0:
        return quiescence(position, key, alpha, beta, ply, AT_HORIZON, memory)
    if enter_node(ply, memory) != at.RUNNING:
        return 0
    is_sound = SOUND and depth > 1 and (ply > 0 or has_all_moves(memory) == 1)
    end = last = memory + at.MOVES + ply * MOVE_ROW_BYTES
    known: int = score_at_sight(position, depth, alpha, beta, ply, memory)
    if is_sound and known == at.UNKNOWN:
        last = sound_moves(position, end)
        known = score_of_two_plies(position, alpha, beta, ply, memory, end, last)
    if known != at.UNKNOWN:
        return known

    # Step 2. What the table knows. Its bucket is on its way: to make the estimate meanwhile costs less than to wait.
    estimate = note_estimate(position, ply, memory) if ESTIMATES else 0
    entry = look_up(key, memory) if depth >= TABLE_DEPTH else MISS
    table_move: int = turned_move(position, entry_move(entry)) if entry != MISS else NO_MOVE
    known = score_of_entry(entry, depth, alpha, beta, ply, memory)
    if known != at.UNKNOWN:
        return known

    # Step 3. Cut by the estimate: far above the window or far below, or so good that even a null move stays above; or
    # by what a shallow search foretells.
    excluded = left_out(ply, memory) if SINGULAR else NO_MOVE
    improving = is_improving(estimate, ply, memory) if ESTIMATES else 0
    estimate = correct_estimate(estimate, entry, ply) if ESTIMATES else 0
    may_cut = (ESTIMATES or PROB_CUTS) and excluded == NO_MOVE and may_cut_by_estimate(alpha, beta, ply, memory) == 1
    known = cut_early(position, key, estimate, improving, depth, alpha, beta, ply, memory) if may_cut else at.UNKNOWN
    if known != at.UNKNOWN:
        return known

    # Step 4. Is the table's move the only good one? If another one refutes the node too, that is enough.
    known, singular_move = find_singular(position, key, entry, table_move, excluded, depth, alpha, beta, ply, memory)
    if known != at.UNKNOWN:
        return known
    if REDUCES and table_move == NO_MOVE and depth >= LEAST_INTERNAL_DEPTH and ply > 0:
        depth -= 1

    # Step 5. Generate the moves; the table's comes first, the others by rank or as generated.
    if not is_sound:
        last = moves(position, end)
    if STUCK and last == end:
        return final_score(position, stuck(position), ply, memory)
    last = line_up_moves(position, table_move, depth, ply, memory, end, last)
    if ENHANCED and depth >= ENHANCED_DEPTH:
        known = refuted_by_table(position, depth, alpha, beta, ply, memory, end, last)
        if known != at.UNKNOWN:
            return known

    best, best_move, low = -INFINITY, NO_MOVE, alpha
    is_pv, shares = beta - alpha > 1, is_shared(depth, memory)
    outlook = Outlook(depth, is_pv, singular_move, excluded, estimate, improving, shares)
    has_hopeless = SKIPS and may_cut
    cursor, undeferred, deferred_number = end - WORD_BYTES, last, 0
    while cursor + WORD_BYTES < last:
        cursor += WORD_BYTES
        move = bring_move(cursor, end, undeferred if shares else last)

        # Step 6. Leave the move out, if it is hopeless with all others that are; else play it and score it.
        may_skip = may_cut and depth <= SHALLOW_DEPTH and best > -MATE_BOUND if SKIPS else False
        number, rank = (cursor - end) // WORD_BYTES, read_int(cursor) >> RANK_SHIFT
        if SKIPS and may_skip and has_hopeless and is_hopeless(rank, number, depth, estimate, improving, low) == 1:
            has_hopeless = False
            last = drop_hopeless(position, cursor, last, low, memory)
            cursor -= WORD_BYTES
            continue
        if shares and cursor >= undeferred:
            number = deferred_number
        score = score_move(
            position, key, outlook, move, number, cursor, end, undeferred if shares else last, low, beta, may_skip,
            is_sound, ply, memory
        )  # fmt: skip
        if score == at.UNKNOWN:
            continue
        if SHARES and score == DEFERRED:
            deferred_number = number if undeferred == last else deferred_number
            put_last(cursor, last)
            undeferred -= WORD_BYTES
            cursor -= WORD_BYTES
            continue
        if read_int(memory + at.STATUS) != at.RUNNING:
            return resume(memory) if SHARES else 0

        # Step 7. Keep the best; a move that reaches beta refutes the node.
        if score > best:
            best, best_move = score, move
            if score > low:
                low = score
                if is_pv:
                    extend_line(memory, ply, move)
                    if ply == 0:
                        write_int(memory + at.SCORE_SO_FAR, score)
                if PRUNES and score >= beta:
                    credit_fail_high(position, move, depth, ply, memory, end, cursor)
                    break

    # Step 8. Store the result.
    return store_result(position, key, best, best_move, depth, alpha, beta, ply, memory)


@jit.self_call
def search_below(position: Any, key: int, depth: int, alpha: int, beta: int, ply: int, memory: int) -> int:
    """Call `search_node` from itself."""
    return search_node(position, key, depth, alpha, beta, ply, memory)


@jit.spliced
def cut_early(
    position: Any, key: int, estimate: int, improving: int, depth: int, alpha: int, beta: int, ply: int, memory: int
) -> int:
    """Return a score that decides a null window before any move is tried, else `UNKNOWN`.

    Parameters
    ----------
    position, key, depth, alpha, beta, ply, memory
        As in `search_node`.
    estimate, improving
        The node's; the estimate is `UNKNOWN` in check.
    """
    if ESTIMATES and estimate != at.UNKNOWN:
        score = cut_by_estimate(position, key, estimate, improving, depth, alpha, beta, ply, memory)
        if score != at.UNKNOWN:
            return score
    row = first_row(position, depth, memory) if PROB_CUTS else 0
    if PROB_CUTS and row != 0:
        return cut_by_probes(position, key, row, alpha, beta, ply, memory)
    return at.UNKNOWN


@jit.spliced
def find_singular(
    position: Any,
    key: int,
    entry: int,
    table_move: int,
    excluded: int,
    depth: int,
    alpha: int,
    beta: int,
    ply: int,
    memory: int,
) -> tuple[int, int]:
    """Tell by a search of the others whether the table's move is the only good one.

    Parameters
    ----------
    position, key, depth, alpha, beta, ply, memory
        As in `search_node`.
    entry, table_move, excluded
        What the table knows, the move that it tells to try first, and the one that the node leaves out.

    Returns
    -------
    tuple[int, int]
        A score that decides the window, else `UNKNOWN`; and the singular move, else `NO_MOVE`.
    """
    score, singular_move = at.UNKNOWN, NO_MOVE
    if SINGULAR and excluded == NO_MOVE and may_be_singular(entry, depth, ply, memory) == 1:
        bar: int = from_table(entry_score(entry), ply) - 2 * depth
        others = search_others(position, key, table_move, bar, depth, ply, memory)
        if read_int(memory + at.STATUS) != at.RUNNING:
            score = 0
        elif others < bar:
            singular_move = table_move
        elif bar >= beta and beta - alpha == 1:
            score = bar
    return score, singular_move


@jit.spliced
def cut_by_estimate(
    position: Any, key: int, estimate: int, improving: int, depth: int, alpha: int, beta: int, ply: int, memory: int
) -> int:
    """Return a score that decides a null window because the estimate lies far beside it, else `UNKNOWN`.

    Parameters
    ----------
    position, key, depth, alpha, beta, ply, memory
        As in `search_node`.
    estimate, improving
        The node's, known.
    """
    if SKIPS and is_far_above(estimate, depth, beta, improving) == 1:
        return estimate
    if SKIPS and QUIESCES and is_far_below(estimate, depth, alpha) == 1:
        score = quiescence(position, key, alpha, beta, ply, AT_HORIZON, memory)
        if score <= alpha or read_int(memory + at.STATUS) != at.RUNNING:
            return score
    if not PASSES or may_pass(position, estimate, depth, beta, ply, memory) == 0:
        return at.UNKNOWN
    shallow = depth - pass_reduction(estimate, depth, beta)
    passed, passed_key = begin_pass(position, ply, memory)
    score = -search_below(passed, passed_key, shallow, -beta, -alpha, ply + 1, memory)
    if score >= beta and depth >= VERIFIED_DEPTH and read_int(memory + at.STATUS) == at.RUNNING:
        before = begin_verification(ply + max(shallow, 1), memory)
        score = search_below(position, key, shallow, alpha, beta, ply, memory)
        write_int(memory + at.NULL_PLY, before)
    if read_int(memory + at.STATUS) != at.RUNNING:
        return 0
    if score < beta:
        return at.UNKNOWN
    # A mate after a null move is no mate.
    return score if score < MATE_BOUND else beta


@jit.spliced
def cut_by_probes(position: Any, key: int, row: int, alpha: int, beta: int, ply: int, memory: int) -> int:
    """Return the bound of a null window that shallow searches foretell, else `UNKNOWN`.

    Parameters
    ----------
    position, key, alpha, beta, ply, memory
        As in `search_node`.
    row
        Address of the first row of `search.prob_cut` for the node and its depth.
    """
    # The estimate tells which side of the window is worth a search.
    is_above = estimate_of(position, memory) >= beta
    while shallow_depth(row) > 0:
        bar = least_above(row, beta) if is_above else most_below(row, alpha)
        if is_askable(bar) == 1:
            lower = bar - 1 if is_above else bar
            nest(memory, 1)
            score = search_below(position, key, shallow_depth(row), lower, lower + 1, ply, memory)
            nest(memory, -1)
            if read_int(memory + at.STATUS) != at.RUNNING:
                return 0
            if is_above and score >= bar:
                return beta
            if not is_above and score <= bar:
                return alpha
        row += ROW_BYTES
    return at.UNKNOWN


@jit.spliced
def search_others(position: Any, key: Word, move: int, bar: int, depth: int, ply: int, memory: int) -> int:
    """Search all moves of a node but one, half as deeply, with a null window below a score; returns theirs."""
    outer_ply, outer_move = read_int(memory + at.EXCLUDED_PLY), read_int(memory + at.EXCLUDED_MOVE)
    leave_out(ply, move, memory)
    score = search_below(position, key_without(key, move), (depth - 1) // 2, bar - 1, bar, ply, memory)
    leave_out(outer_ply, outer_move, memory)
    return score


@jit.spliced
def score_move(
    position: Any,
    key: int,
    outlook: Outlook,
    move: int,
    number: int,
    cursor: int,
    end: int,
    last: int,
    low: int,
    beta: int,
    may_skip: bool,
    is_sound: bool,
    ply: int,
    memory: int,
) -> int:
    """Play a move and return its score as its node sees it, `UNKNOWN` if it is left out, `DEFERRED` if it comes last.

    Parameters
    ----------
    position, key, outlook, ply, memory
        Of the node.
    move, number
        The move, and how many come before it, whatever was deferred.
    cursor, end, last
        Where it lies among those of the node, and behind those that are not deferred.
    low, beta
        The rest of the node's window.
    may_skip
        Whether the move may be left out.
    is_sound
        Whether the moves were told by `sound_moves`.
    """
    # Leave it out, if that can be told without playing it; else play it, and leave it out then.
    depth, is_pv, estimate, improving = outlook.depth, outlook.is_pv, outlook.estimate, outlook.improving
    rank = read_int(cursor) >> RANK_SHIFT
    if SINGULAR and move == outlook.excluded:
        return at.UNKNOWN
    is_plain = SKIPS and may_skip and is_plain_move(position, move, rank, low, memory) == 1
    if SKIPS and is_plain and is_skipped(position, move, rank, number, depth, estimate, improving, low) == 1:
        return at.UNKNOWN
    child = play(position, move)
    following = cursor + WORD_BYTES
    child_key = ask_table(position, child, following, last, memory) if ASKS_EARLY else key
    result = outcome_on_path(child, ply + 1, memory)
    gives_check = enter_path(child, key_of(child), ply + 1, memory) if KEEPS_PATH else 0
    may_skip = may_skip and not is_plain and gives_check == 0 and result == ONGOING
    if SKIPS and may_skip and is_skipped(position, move, rank, number, depth, estimate, improving, low) == 1:
        return at.UNKNOWN

    # Decide how deeply it is searched.
    is_singular = 1 if SINGULAR and move == outlook.singular_move else 0
    child_depth = depth_below(depth, gives_check, is_singular, ply, memory)
    reduction = 0
    if REDUCES and is_whole(memory) == 0 and asks_for_mate(low, beta, ply) == 0:
        reduction = late_reduction(rank, number, depth, is_pv, improving, gives_check)
    is_solved_here = SOLVES_LEAVES and is_late(child, child_depth) == 1 and read_int(memory + at.CONTEMPT) == 0
    if is_solved_here:
        # Its value is the exact one in every window and at every depth.
        child_depth = max(child_depth, LATE_PLIES)

    # A finished game and the horizon are scored on the spot: half of all nodes. Others are searched.
    score: int = score_on_the_spot(position, child, result, child_depth, not is_sound and depth > 1, ply, memory)
    if score != at.UNKNOWN:
        return score
    if TABLE and not ASKS_EARLY and child_depth >= TABLE_DEPTH and not (is_solved_here and not is_pv):
        child_key = ask_table(position, child, following, last, memory)
    shares = outlook.is_shared and not is_solved_here
    if shares:
        if end < cursor < last and is_taken(child_key, memory):
            return DEFERRED
        take(child_key, memory)
        was_noted = enter_shared(key, depth, low, is_pv, ply, memory)
    if KEEPS_PATH:
        note_move(position, move, ply, memory)
    is_late_move = PVS and cursor > end
    score = search_child(
        position, child, child_key, child_depth, reduction, low, beta, is_late_move, is_solved_here, ply, memory
    )
    if shares:
        give_back(child_key, memory)
        leave_shared(was_noted, memory)
    return score


@jit.spliced
def search_child(
    position: Any,
    child: Any,
    child_key: int,
    depth: int,
    reduction: int,
    low: int,
    beta: int,
    is_late_move: bool,
    is_solved_here: bool,
    ply: int,
    memory: int,
) -> int:
    """Search below a move by PVS, and return its score as its node sees it.

    The first move gets the full window, the others a null window, late ones a shallower search too; if they beat it,
    the whole depth, and the rest of the window.

    Parameters
    ----------
    position, child, child_key
        Before the move and after it, with its key for the table.
    depth, reduction
        Plies below the move to the horizon, and how many less at first.
    low, beta
        The rest of the node's window.
    is_late_move
        Whether a null window comes first.
    is_solved_here
        Whether the game itself solves the child, if asked by a null window.
    ply, memory
        Of the node.
    """
    lower = low if PRUNES else OPEN_LOW
    upper = low + 1 if is_late_move else beta if PRUNES else OPEN_HIGH
    while True:
        if is_solved_here and upper - lower == 1:
            room = memory + at.MOVES + (ply + 1) * MOVE_ROW_BYTES
            bar = to_table(-upper, ply + 1)
            score = -from_table(solve_leaf(child, bar, memory + at.NODES, room), ply + 1)
        elif is_same_side(position, child):
            score = search_below(child, child_key, depth - reduction, lower, upper, ply + 1, memory)
        else:
            score = -search_below(child, child_key, depth - reduction, -upper, -lower, ply + 1, memory)
        is_running = read_int(memory + at.STATUS) == at.RUNNING
        if REDUCES and reduction > 0 and score > low and is_running:
            reduction = 0
            continue
        if not PVS or upper >= beta or score <= low or score >= beta or not is_running:
            return score
        count(memory, at.RESEARCHES)
        # One below the score, not at it: a score that stays is then exact, and its line whole. Selective searches of
        # two windows may disagree: what the first one said is then forgotten.
        lower = low if SELECTIVE else score - 1
        upper = beta


@jit.cached
def search_root(position: Any, depth: int, ply: int, memory: int) -> int:
    """Search a task: the window lies in the workspace, and may be narrowed from outside while the search runs.

    Parameters
    ----------
    position, depth, ply, memory
        As in `search_node`; `TASK_ALPHA` and `TASK_BETA` of the workspace hold the window. At
        ply 0 the moves that it lists as left out are not searched.

    Returns
    -------
    int
        The score, by the contract of `search_node` for the window that the workspace then holds. It is void if
        `STATUS` is neither `RUNNING` nor changed by a narrowing that this function has dealt with.
    """
    key = key_of_others(position, salted_key(position, key_of(position), memory), memory)
    write_int(memory + at.ROOT_KEY, as_int(key))
    result = outcome(position)
    if STUCK and result == DRAW and ply == 0 and depth > 0:
        # A draw that nobody claimed: who asks for a move wants one.
        result = ONGOING
    if result != ONGOING or (depth <= 0 and not QUIESCES):
        write_int(memory + at.STATUS, at.RUNNING)
        return leaf_score(position, result, ply, memory)
    if SOUND and depth > 0 and (ply > 0 or has_all_moves(memory) == 1):
        score = win_at_once(position, ply, memory)
        if score != 0:
            write_int(memory + at.STATUS, at.RUNNING)
            return score
    enter_path(position, key_of(position), ply, memory)
    write_int(memory + at.EXTENSION_END, 2 * (ply + depth))
    write_int(memory + at.NULL_PLY, 0)
    write_int(memory + at.SHARED_NODES, 0)
    write_int(memory + at.NEXT_LOOK, 0)
    write_int(memory + at.PROBE_NESTING, 0)
    leave_out(-1, NO_MOVE, memory)
    write_int(memory + at.PLAYED + (ply - 1) * WORD_BYTES, at.NOT_KNOWN)
    for before in (1, 2):
        write_int(memory + at.ESTIMATES + (ply - before) * WORD_BYTES, at.UNKNOWN)
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
