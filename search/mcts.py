"""Monte Carlo tree search: UCT (Kocsis and Szepesvari 2006) on a tree that all workers of a machine share.

A playout walks down the tree by the upper confidence bounds of the means, ends with a random game, and adds its result
to all nodes on its way. While it is under way it counts there as lost, so that other workers look elsewhere (virtual
loss: Chaslot, Winands and van den Herik 2008). What is won or lost whatever is played is proved, and goes up the tree
at once (MCTS-Solver: Winands, Bjornsson and Saito 2008). So is what is drawn: who has a move that surely draws looks
for better ones, and what comes back lost counts as drawn there (after Cazenave and Saffidine 2010). A final score
counts by its sign.

Instantiated for a game, like `search.kernel`, whose workspace, control words and entry it has; a node of its counts is
a playout. Positions in the tree are paths: one that came before on its path is a draw, where the game knows that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from search import jit
from search import mcts_settings as words
from search import workspace as at
from search.mcts_tree import (
    BELOW_MASK,
    COUNT_MASK,
    COUNT_SHIFT,
    DRAWN,
    FIRST_SHIFT,
    FULL,
    LOST,
    MOVE_MASK,
    UNKNOWN,
    VALUE_SHIFT,
    VERDICT_MASK,
    VISITS_SHIFT,
    WON,
    Tree,
    allocate,
    best_verdict,
    enter,
    join,
    leave,
    links_address,
    make_node,
    publish_children,
    settle,
    tree_at,
    value_address,
    visits_address,
)
from search.random_stream import begin_stream, draw
from search.scores import MAX_PLY, ONGOING
from tt_store.layout import WORD_BYTES
from tt_store.native import Integer, as_int, atomic_read_int, read_int, write_int

_game, _flags = jit.binding(__name__)
_notes = jit.specialise("search.bookkeeping", _game, _flags)
_playouts = jit.specialise("search.mcts_playout", _game, _flags)
_repetition = jit.specialise("search.repetition", _game, _flags)
_root_moves = jit.specialise("search.root_moves", _game, _flags)

moves, play, outcome, key_of = _game.moves, _game.play, _game.outcome, _game.key
side_to_move, stuck = _game.side_to_move, _game.stuck
poll, reach = _notes.poll, _notes.reach
random_result, sign_of = _playouts.random_result, _playouts.sign_of
repeats, REPEATS = _repetition.repeats, _repetition.REPEATS
keep_others = _root_moves.keep_others

EXTRA_TURNS, STUCK, STEPPED = _game.has_extra_turns, _game.has("stuck"), _flags.stepped
POLL_PLAYOUTS = 16
"""The control words are read after so many: a playout may be a whole game of chess."""
DEEPEST = MAX_PLY - 2
"""No node at this ply or below gets children."""
NO_CHILD = -1


@jit.helper
def upper_confidence(value: int, visits: int, log_visits: float, exploration: float) -> float:
    """Return the mean result of a node plus what it may be better than that (UCB1: Auer et al. 2002)."""
    return value / visits + exploration * math.sqrt(log_visits / visits)


@jit.helper
def choose(node: int, links: int, ply: int, tree: Tree, memory: int) -> int:
    """Return the child to walk to, and note whether one is a sure draw.

    One that is won, else of those that are not proved the one of the highest bound; `NO_CHILD` if there is none.
    """
    write_int(memory + words.PATH_FLOORS + ply * WORD_BYTES, 0)
    own = atomic_read_int(visits_address(tree, node))
    log_visits = math.log((own >> VISITS_SHIFT) + (own & BELOW_MASK))
    exploration = read_int(memory + words.EXPLORATION) / words.THOUSAND
    urgency = read_int(memory + words.FIRST_PLAY_URGENCY) / words.THOUSAND
    chosen, highest = NO_CHILD, -math.inf
    first = links >> FIRST_SHIFT
    for child in range(first, first + (links >> COUNT_SHIFT & COUNT_MASK)):
        # Race: other workers change these words meanwhile; each is read in one piece, and a bound is but a hint.
        verdict = atomic_read_int(links_address(tree, child)) & VERDICT_MASK
        if verdict == WON:
            return child
        if verdict == DRAWN:
            write_int(memory + words.PATH_FLOORS + ply * WORD_BYTES, 1)
        if verdict != UNKNOWN:
            continue
        counts = atomic_read_int(visits_address(tree, child))
        below = counts & BELOW_MASK
        visits = (counts >> VISITS_SHIFT) + below
        bound = urgency
        if visits > 0:
            value = (atomic_read_int(value_address(tree, child)) >> VALUE_SHIFT) - below
            bound = upper_confidence(value, visits, log_visits, exploration)
        if bound > highest:
            chosen, highest = child, bound
    return chosen


@jit.helper
def judge(position: Any, ply: int, memory: int) -> int:
    """Return the verdict on a position for its side to move if the game is over there, else `UNKNOWN`."""
    result = outcome(position)
    if STUCK and result == ONGOING:
        begin = memory + at.MOVES
        if moves(position, begin) == begin:
            result = stuck(position)
    if result != ONGOING:
        sign: int = sign_of(result)
        return DRAWN + sign
    if REPEATS and ply > 0 and repeats(position, key_of(position), ply, memory) == 1:
        return DRAWN
    return UNKNOWN


@jit.helper
def expand(position: Any, node: int, ply: int, tree: Tree, memory: int) -> int:
    """Give a node its children in random order, so that no place on the board comes first; returns its links."""
    begin = memory + at.MOVES
    last = moves(position, begin)
    if ply == 0:
        last = keep_others(begin, last, memory)
    count = (last - begin) // WORD_BYTES
    first = allocate(tree, count)
    if first == FULL:
        return atomic_read_int(links_address(tree, node))
    for index in range(count):
        drawn = begin + (index + draw(memory + words.STREAM, count - index)) * WORD_BYTES
        make_node(tree, first + index, read_int(drawn))
        write_int(drawn, read_int(begin + index * WORD_BYTES))
    return publish_children(tree, node, first, count)


@jit.helper
def note_node(position: Any, node: int, ply: int, memory: int) -> int:
    """Note a node on the path; returns its side to move, 0 or 1."""
    side = side_to_move(position) if EXTRA_TURNS else ply & 1
    write_int(memory + words.PATH_NODES + ply * WORD_BYTES, node)
    write_int(memory + words.PATH_SIDES + ply * WORD_BYTES, side)
    if REPEATS:
        write_int(memory + at.PATH_KEYS + ply * WORD_BYTES, as_int(key_of(position)))
    return side


@jit.helper
def chooser(ply: int, memory: int) -> int:
    """Return who chose the move to a node of the path, 0 or 1: at the root its own side to move."""
    return read_int(memory + words.PATH_SIDES + max(ply - 1, 0) * WORD_BYTES)


@jit.helper
def seen_by(side: int, other: int, verdict: int) -> int:
    """Return a verdict for one side as it is for another one, perhaps the same."""
    return verdict if side == other else LOST + WON - verdict


@jit.helper
def prove(ply: int, tree: Tree, memory: int) -> int:
    """Settle the nodes of the path above a ply that their children's verdicts decide; returns 0."""
    for above in range(ply - 1, -1, -1):
        node = read_int(memory + words.PATH_NODES + above * WORD_BYTES)
        verdict = best_verdict(tree, node)
        if verdict == UNKNOWN:
            return 0
        side = read_int(memory + words.PATH_SIDES + above * WORD_BYTES)
        settle(tree, node, seen_by(side, chooser(above, memory), verdict))
    return 0


@jit.helper
def play_out(position: Any, root: int, tree: Tree, memory: int) -> int:
    """Walk down the tree, play a random game, and add its result to all nodes on the way; returns 0."""
    node, ply, current = root, 0, position
    # Step 1. Walk down until a node is proved or has no children.
    while True:
        finished = enter(tree, node)
        side = note_node(current, node, ply, memory)
        links = atomic_read_int(links_address(tree, node))
        verdict = links & VERDICT_MASK
        if verdict != UNKNOWN:
            result = seen_by(chooser(ply, memory), 0, verdict) - DRAWN
            break
        if finished == 0:
            # Step 2. Nobody has come back from here yet: is the game over? Then that goes up the tree.
            verdict = judge(current, ply, memory)
            if verdict != UNKNOWN:
                settle(tree, node, seen_by(side, chooser(ply, memory), verdict))
                prove(ply, tree, memory)
                result = seen_by(side, 0, verdict) - DRAWN
                break
        # Step 3. Let the tree grow where it is visited again.
        is_due = ply == 0 or finished >= read_int(memory + words.EXPAND_AFTER)
        if links >> COUNT_SHIFT == 0 and is_due and ply < DEEPEST:
            links = expand(current, node, ply, tree, memory)
        if links >> COUNT_SHIFT == 0:
            # Step 4. Play at random from here.
            own_result = random_result(current, memory)
            result = own_result if side == 0 else -own_result
            break
        child = choose(node, links, ply, tree, memory)
        if child == NO_CHILD:
            # Race: other workers have just proved the last of the children; one of us settles this node.
            prove(ply + 1, tree, memory)
            result = seen_by(side, 0, best_verdict(tree, node)) - DRAWN
            break
        current = play(current, atomic_read_int(value_address(tree, child)) & MOVE_MASK)
        node, ply = child, ply + 1
    reach(ply, memory)
    # Step 5. Add the result, seen by who chose each move, and take the virtual losses back.
    for above in range(ply, -1, -1):
        visited = read_int(memory + words.PATH_NODES + above * WORD_BYTES)
        if above < ply and read_int(memory + words.PATH_FLOORS + above * WORD_BYTES) == 1:
            own_side = read_int(memory + words.PATH_SIDES + above * WORD_BYTES)
            result = max(result, 0) if own_side == 0 else min(result, 0)
        leave(tree, visited, result if chooser(above, memory) == 0 else -result)
    return 0


@jit.cached
def search_root(position: Any, depth: int, ply: int, memory: int) -> int:
    """Make the playouts of a slice, until its number, a control word or the root's proof ends it; returns 0.

    What comes of it lies in the tree, and in the workspace's counters; depth and ply mean nothing here.
    """
    if poll(memory, 1) != at.RUNNING:
        return 0
    capacity, number = read_int(memory + words.TREE_CAPACITY), read_int(memory + words.TREE_NUMBER)
    tree = tree_at(read_int(memory + words.TREE_ADDRESS), capacity, number)
    root = join(tree)
    origin, first_stream = read_int(memory + words.ORIGIN), read_int(memory + words.FIRST_STREAM)
    made: Integer = np.int64(0)
    while root != FULL and atomic_read_int(links_address(tree, root)) & VERDICT_MASK == UNKNOWN:
        is_due = made + 1 >= read_int(memory + at.NEXT_POLL) or (not STEPPED and made % POLL_PLAYOUTS == 0)
        if is_due and poll(memory, made + 1) != at.RUNNING:
            break
        begin_stream(memory + words.STREAM, origin, first_stream + made)
        play_out(position, root, tree, memory)
        made += 1
        write_int(memory + at.NODES, made)
    return 0
