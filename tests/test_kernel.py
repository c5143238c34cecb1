"""The one search function and all its variants against plain minimax."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from oracle import Kalah, Node, RandomTree, minimax_black, minimax_white, node_count

from search import workspace as at
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags, Pruning
from search.game_files import load_game
from search.rules import Game
from search.scores import INFINITY, MATE
from search.searcher import Job, Outcome, Searcher
from tt_store.layout import BUCKET_BYTES, BYTES_PER_MB
from tt_store.segment import Segment

EXPLICIT_TREE = str(Path(__file__).parent / "games" / "explicit_tree.py")
TREES = 2_000
TINY_TABLE_MB = 1.0 * BUCKET_BYTES / BYTES_PER_MB
"""One bucket: four entries."""

ALL_FLAGS = [
    Flags(pruning, ordering=ordering, table=table, exact_depth=table)
    for pruning, ordering, table in product(Pruning, (False, True), (False, True))
]


def label(flags: Flags) -> str:
    words = [flags.pruning.name.lower(), "ordered" if flags.ordering else "", "table" if flags.table else ""]
    return "-".join(word for word in words if word)


class Bench(NamedTuple):
    """All variants of the kernel for one game, over one table and one set of control words."""

    game: Game
    controls: Controls
    searchers: dict[Flags, Searcher]
    tiny: dict[Flags, Searcher]
    """The variants with a table, over one of a single bucket."""


def bench_for(name: str, flags: list[Flags]) -> Iterator[Bench]:
    game = load_game(name)
    words = np.zeros(CONTROL_WORDS, np.int64)
    controls = Controls(words.ctypes.data)
    with Segment.private(4) as table, Segment.private(TINY_TABLE_MB) as tiny_table:
        assert tiny_table.buckets == 1
        searchers = {each: Searcher(game, table, controls, flags=each) for each in flags}
        tiny = {each: Searcher(game, tiny_table, controls, flags=each) for each in flags if each.table}
        yield Bench(game, controls, searchers, tiny)


@pytest.fixture(scope="module")
def trees() -> Iterator[Bench]:
    yield from bench_for(EXPLICIT_TREE, ALL_FLAGS)


@pytest.fixture(autouse=True)
def quiet_controls(trees: Bench) -> None:
    trees.controls._word(trees.controls.stop_address).value = 0


def rows_of(root: Node) -> list[tuple[int, int, int]]:
    """Return the rows of a tree, breadth first, so that siblings are neighbours."""
    rows, waiting, numbered = [], deque([root]), 1
    while waiting:
        node = waiting.popleft()
        rows.append((node.score, numbered, len(node.children)))
        numbered += len(node.children)
        waiting.extend(node.children)
    return rows


def plant(bench: Bench, root: Node, side: int = 0) -> Any:
    address = bench.game.module.plant(rows_of(root))
    return bench.game.parse(f"{address}:0:{side}")


def true_value(root: Node, depth: int, side: int, draw_for_mover: int = 0) -> int:
    if side == 0:
        return minimax_white(root, depth, draw=draw_for_mover)
    return -minimax_black(root, depth, draw=-draw_for_mover)


def forest(count: int, seed: int, *, reach: int | None = None) -> Iterator[tuple[Node, int, int]]:
    """Yield random trees with their depth and the side to move."""
    rng = random.Random(seed)
    for number in range(count):
        recipe = RandomTree(
            depth=1 + number % 5,
            branching=rng.randint(1, 4),
            reach=reach or rng.choice((2, 30, 20_000)),
            mate=rng.choice((0.0, 0.0, 0.2)),
        )
        yield recipe.grow(rng), recipe.depth, rng.randrange(2)


def breaks_contract(flags: Flags, outcome: Outcome, value: int) -> bool:
    """Tell whether a result says something untrue for the window that was searched."""
    score, alpha, beta = outcome.score, outcome.alpha, outcome.beta
    if flags.pruning == Pruning.NONE:
        return score != value
    if flags.pruning == Pruning.FAIL_HARD:
        return score != max(alpha, min(value, beta))
    if score <= alpha:
        return value > score
    if score >= beta:
        return value < score
    return score != value


def test_every_variant_equals_minimax(trees: Bench) -> None:
    mismatches, searches = [], 0
    for root, depth, side in forest(TREES, seed=2):
        position = plant(trees, root, side)
        for horizon in range(1, depth + 1):
            value = true_value(root, horizon, side)
            for flags, searcher in trees.searchers.items():
                outcome = searcher.run(Job(position, horizon))
                searches += 1
                if outcome.score != value or outcome.status != at.RUNNING:
                    mismatches.append((label(flags), trees.game.text(position), horizon, outcome, value))
    assert not mismatches, f"{len(mismatches)} of {searches}: {mismatches[:5]}"
    assert searches == TREES // 5 * (1 + 2 + 3 + 4 + 5) * len(ALL_FLAGS)


def test_plain_negamax_visits_every_node(trees: Bench) -> None:
    plain = trees.searchers[Flags(Pruning.NONE, ordering=False, table=False)]
    for root, depth, side in forest(100, seed=3):
        assert plain.run(Job(plant(trees, root, side), depth)).statistics.nodes == node_count(root, depth)


def test_every_small_window_keeps_the_contract(trees: Bench) -> None:
    reach = 2
    windows = [Job(None, 1, low, high) for low in range(-reach - 1, reach + 1) for high in range(low + 1, reach + 2)]
    for root, depth, side in forest(100, seed=4, reach=reach):
        position, value = plant(trees, root, side), true_value(root, depth, side)
        for (flags, searcher), window in product(trees.searchers.items(), windows):
            outcome = searcher.run(window._replace(position=position, depth=depth))
            assert not breaks_contract(flags, outcome, value), (label(flags), outcome, value)


def test_random_windows_keep_the_contract(trees: Bench) -> None:
    rng = random.Random(5)
    for root, depth, side in forest(1_000, seed=6):
        position, value = plant(trees, root, side), true_value(root, depth, side)
        near = max(-INFINITY, min(value + rng.randint(-40, 40), INFINITY - 1))
        for alpha in (near, rng.randint(-INFINITY, INFINITY - 1)):
            beta = rng.choice((alpha + 1, rng.randint(alpha + 1, INFINITY)))
            for flags, searcher in trees.searchers.items():
                outcome = searcher.run(Job(position, depth, alpha, beta))
                assert not breaks_contract(flags, outcome, value), (label(flags), outcome, value)


def test_one_bucket_and_a_warm_table_change_no_value(trees: Bench) -> None:
    rng = random.Random(7)
    planted = [(plant(trees, root, side), root, depth, side) for root, depth, side in forest(150, seed=8)]
    for _ in range(2):
        for position, root, depth, side in planted:
            horizon = rng.randint(1, depth)
            value = true_value(root, horizon, side)
            alpha = rng.choice((-INFINITY, value - 1, value, rng.randint(-INFINITY, INFINITY - 1)))
            beta = rng.choice((INFINITY, alpha + 1))
            for bench in (trees.tiny, trees.searchers):
                for flags, searcher in bench.items():
                    outcome = searcher.run(Job(position, horizon, max(alpha, -INFINITY), beta))
                    assert not breaks_contract(flags, outcome, value), (label(flags), outcome, value)


def test_a_line_is_whole_and_its_end_is_worth_the_score(trees: Bench) -> None:
    for root, depth, side in forest(500, seed=9):
        position = plant(trees, root, side)
        for flags, searcher in trees.searchers.items():
            if flags.table:
                continue
            outcome = searcher.run(Job(position, depth))
            node = root
            for move in outcome.line:
                node = node.children[move - 1]
            assert not node.children or len(outcome.line) == depth, (label(flags), outcome)
            white = node.score
            if not node.children and abs(white) == MATE:
                white -= len(outcome.line) if white > 0 else -len(outcome.line)
            assert outcome.score == (-white if side else white), (label(flags), outcome)


def test_a_task_below_the_root_counts_mates_from_the_root(trees: Bench) -> None:
    root = Node(0, (Node(0, (Node(MATE), Node(0))), Node(0, (Node(-MATE), Node(0)))))
    # White to move at ply 3 chooses a child, Black answers: the second child loses, the first draws.
    position, won = plant(trees, root), plant(trees, Node(0, (Node(MATE), Node(0))))
    for flags, searcher in trees.searchers.items():
        for ply in (0, 3, 10, 4):
            assert searcher.run(Job(position, 2, ply=ply)).score == 0, label(flags)
            assert searcher.run(Job(won, 1, ply=ply)).score == MATE - ply - 1, label(flags)


def test_depth_nought_and_finished_games_are_scored_at_once(trees: Bench) -> None:
    inner, finished = Node(17, (Node(3),)), Node(-MATE)
    for flags, searcher in trees.searchers.items():
        outcome = searcher.run(Job(plant(trees, inner, side=1), 0))
        assert (outcome.score, outcome.line, outcome.statistics.nodes) == (-17, (), 1), label(flags)
        outcome = searcher.run(Job(plant(trees, finished), 4, ply=2))
        assert (outcome.score, outcome.line) == (-MATE + 2, ()), label(flags)


def test_contempt_costs_the_side_that_the_search_is_for(trees: Bench) -> None:
    contempt = 3
    for number, (root, depth, side) in enumerate(forest(300, seed=10, reach=4)):
        position = plant(trees, root, side)
        for task_side in (0, 1):
            # `task_side` 0: the mover is the side that the search is for, and pays for a draw; 1: it gains by one.
            value = true_value(root, depth, side, -contempt if task_side == 0 else contempt)
            for flags, searcher in trees.searchers.items():
                job = Job(position, depth, side=task_side, contempt=contempt, salt=2 * number + task_side)
                assert searcher.run(job).score == value, (label(flags), side, task_side)


def full_tree(depth: int) -> Node:
    rng = random.Random(11)

    def grow(left: int) -> Node:
        return Node(rng.randint(-99, 99), tuple(grow(left - 1) for _ in range(4)) if left else ())

    return grow(depth)


def test_no_more_nodes_than_the_limit_and_one_nodes_leaves(trees: Bench) -> None:
    root = full_tree(6)
    position, truth = plant(trees, root), minimax_white(root, 6)
    for number, (flags, searcher) in enumerate(trees.searchers.items()):
        # Salts keep one search from finding the values of another in the table.
        whole = searcher.run(Job(position, 6, salt=1 << 20 | number)).statistics.nodes
        for limit in (1, 2, 5, 17, 100, whole // 2, whole - 5):
            outcome = searcher.run(Job(position, 6, node_limit=limit, salt=number << 24 | limit << 1 | 1))
            assert outcome.status == at.OUT_OF_NODES, (label(flags), limit, whole)
            assert outcome.statistics.nodes <= limit + 4, (label(flags), limit, whole)
            assert not outcome.is_finished
            # The best of the first moves that were searched, if any was.
            assert outcome.line == () or outcome.score <= truth, (label(flags), limit)
        outcome = searcher.run(Job(position, 6, node_limit=whole, salt=number << 24))
        assert outcome.is_finished, label(flags)


def test_stop_and_abort_end_a_search_at_once(trees: Bench) -> None:
    position = plant(trees, full_tree(5))
    value = trees.searchers[ALL_FLAGS[0]].run(Job(position, 5)).score
    trees.controls.abort(77)
    trees.controls.stop(4)
    for flags, searcher in trees.searchers.items():
        stopped = searcher.run(Job(position, 5, epoch=4))
        assert (stopped.status, stopped.statistics.nodes) == (at.STOPPED, 0), label(flags)
        aborted = searcher.run(Job(position, 5, epoch=5, task_id=77))
        assert (aborted.status, aborted.statistics.nodes) == (at.ABORTED, 0), label(flags)
        other = searcher.run(Job(position, 5, epoch=5, task_id=77 + 4096))
        assert (other.status, other.score) == (at.RUNNING, value), label(flags)


def test_a_narrowed_task_keeps_the_contract_for_the_window_it_ends_with(trees: Bench) -> None:
    rng = random.Random(12)
    task_id = 0
    for root, depth, side in forest(200, seed=13):
        position, value = plant(trees, root, side), true_value(root, depth, side)
        alpha = rng.randint(-60, 40)
        beta = rng.choice((INFINITY, alpha + 50))
        bound = rng.randint(alpha - 20, alpha + 60)
        for flags, searcher in trees.searchers.items():
            task_id += 1
            trees.controls.set_bound(task_id, bound)
            outcome = searcher.run(Job(position, depth, alpha, beta, task_id=task_id))
            assert outcome.status == at.RUNNING
            assert outcome.beta == min(beta, bound)
            assert outcome.alpha == min(alpha, outcome.beta - 1)
            assert not breaks_contract(flags, outcome, value), (label(flags), outcome, value)


KALAH_FLAGS = [
    Flags(Pruning.NONE, ordering=False, table=False),
    Flags(Pruning.FAIL_HARD, ordering=True, table=False),
    Flags(Pruning.FAIL_SOFT, ordering=False, table=True, exact_depth=True),
    Flags(Pruning.PVS, ordering=True, table=False),
    Flags(Pruning.PVS, ordering=True, table=True, exact_depth=True),
]


@pytest.fixture(scope="module")
def kalah() -> Iterator[Bench]:
    yield from bench_for("kalah", KALAH_FLAGS)


@pytest.mark.parametrize("contempt", [0, 2])
def test_extra_turns_change_the_sign_only_with_the_side(kalah: Bench, contempt: int) -> None:
    rng = random.Random(14)
    for number in range(120):
        board = Kalah(rng.randint(1, 4))
        for _ in range(rng.randint(0, 16)):
            last = board.copy()
            board.play(rng.choice(board.legal_moves()))
            if board.is_over():
                board = last
        position = kalah.game.parse(board.text())
        depth = 1 + number % 4
        draw = -contempt if board.south_to_move else contempt
        south = board.minimax(depth, draw)
        value = south if board.south_to_move else -south
        alpha = rng.randint(value - 3, value + 2)
        for flags, searcher in kalah.searchers.items():
            salt = number << 4 | contempt
            assert searcher.run(Job(position, depth, contempt=contempt, salt=salt)).score == value, label(flags)
            outcome = searcher.run(Job(position, depth, alpha, alpha + 1, contempt=contempt, salt=salt))
            assert not breaks_contract(flags, outcome, value), (label(flags), outcome, value)
