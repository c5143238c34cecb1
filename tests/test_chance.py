"""Expectiminimax and all its variants against the plain one: values, bounds, tables, executors, nodes."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import MakeExecutor, silent
from oracle_chance import (
    ChanceNode,
    ChanceTree,
    chance_layers,
    chance_node_count,
    expectiminimax,
    real_value,
)

from cluster.request import SearchRequest
from cluster.session import Session
from search import workspace as at
from search.controls import CONTROL_WORDS, Controls
from search.flags import Algorithm, Flags, Pruning, Star
from search.game_files import load_game
from search.limits import Limits
from search.rules import Game, RulesError
from search.scores import INFINITY
from search.searcher import Job, Outcome, Searcher
from tt_store.layout import BUCKET_BYTES, BYTES_PER_MB
from tt_store.segment import Segment

CHANCE_TREE = str(Path(__file__).parent / "chance_tree.py")
TREES = 2_000
TINY_TABLE_MB = 1.0 * BUCKET_BYTES / BYTES_PER_MB
"""One bucket: four entries."""


def variant(pruning: Pruning, star: Star, *, table: bool) -> Flags:
    return Flags(pruning, table=table, exact_depth=table, algorithm=Algorithm.EXPECTIMINIMAX, star=star)


PLAIN = variant(Pruning.NONE, Star.NONE, table=False)
STAR1 = variant(Pruning.FAIL_SOFT, Star.STAR1, table=False)
STAR2 = variant(Pruning.FAIL_SOFT, Star.STAR2, table=False)
VARIANTS = {
    "plain": PLAIN,
    "star1": STAR1,
    "star2": STAR2,
    "star1-table": variant(Pruning.PVS, Star.STAR1, table=True),
    "star2-table": variant(Pruning.PVS, Star.STAR2, table=True),
}


class Bench(NamedTuple):
    """All variants of the kernel, over one table, over one of a single bucket, and one set of control words."""

    game: Game
    searchers: dict[str, Searcher]
    tiny: dict[str, Searcher]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    game, words = load_game(CHANCE_TREE), np.zeros(CONTROL_WORDS, np.int64)
    controls = Controls(words.ctypes.data)
    with Segment.private(4) as table, Segment.private(TINY_TABLE_MB) as tiny_table:
        made = {name: Searcher(game, table, controls, flags=flags, notice=silent) for name, flags in VARIANTS.items()}
        tiny = {
            name: Searcher(game, tiny_table, controls, flags=flags, notice=silent)
            for name, flags in VARIANTS.items()
            if flags.table
        }
        yield Bench(game, made, tiny)


def plant(game: Game, root: ChanceNode) -> Any:
    """Return the position of a tree's root, whose rows lie breadth first, so that siblings are neighbours."""
    rows, waiting, numbered = [], deque([root]), 1
    while waiting:
        node = waiting.popleft()
        rows.append((node.score, numbered, len(node.children), node.mover, node.weight))
        numbered += len(node.children)
        waiting.extend(node.children)
    return game.parse(f"{game.module.plant(rows)}:0")


def forest(count: int, seed: int, *, regular: tuple[float, ...] = (1.0, 0.5)) -> Iterator[tuple[ChanceNode, int]]:
    """Yield random trees with their depth."""
    rng = random.Random(seed)
    for number in range(count):
        recipe = ChanceTree(
            depth=1 + number % 4,
            branching=rng.randint(1, 4),
            outcomes=rng.randint(1, 4),
            reach=rng.choice((2, 30, 20_000)),
            regular=rng.choice(regular),
        )
        yield recipe.grow(rng), recipe.depth


def value_for_mover(root: ChanceNode, depth: int) -> int:
    return expectiminimax(root, depth) * (-1 if root.mover & 1 else 1)


def breaks_contract(outcome: Outcome, value: int) -> bool:
    """Tell whether a result says something untrue for the window that was searched."""
    score = outcome.score
    if score <= outcome.alpha:
        return value > score
    if score >= outcome.beta:
        return value < score
    return score != value


def test_every_variant_equals_plain_expectiminimax(bench: Bench) -> None:
    mismatches, searches = [], 0
    for root, depth in forest(TREES, seed=1):
        position = plant(bench.game, root)
        for horizon in range(1, depth + 1):
            value = value_for_mover(root, horizon)
            for name, searcher in (*bench.searchers.items(), *bench.tiny.items()):
                outcome = searcher.run(Job(position, horizon))
                searches += 1
                if outcome.score != value or outcome.status != at.RUNNING:
                    mismatches.append((name, horizon, outcome, value))
    assert not mismatches, f"{len(mismatches)} of {searches}: {mismatches[:5]}"
    assert searches == TREES // 4 * (1 + 2 + 3 + 4) * (len(bench.searchers) + len(bench.tiny))


def test_every_window_is_answered_by_the_contract(bench: Bench) -> None:
    rng, broken, narrow = random.Random(2), [], 0
    for root, depth in forest(TREES, seed=3):
        position, value = plant(bench.game, root), value_for_mover(root, depth)
        for name, searcher in (*bench.searchers.items(), *bench.tiny.items()):
            alpha = max(-INFINITY, min(value + rng.choice((-1, 1)) * rng.choice((0, 1, 2, 40, 5_000)), INFINITY - 1))
            beta = min(alpha + rng.choice((1, 1, 2, 50, INFINITY)), INFINITY)
            outcome = searcher.run(Job(position, depth, alpha, beta))
            narrow += not alpha < value < beta
            if breaks_contract(outcome, value):
                broken.append((name, alpha, beta, outcome.score, value))
    assert not broken, f"{len(broken)}: {broken[:5]}"
    assert narrow > TREES


def test_rounding_loses_less_than_a_unit_for_each_chance_node_of_a_line() -> None:
    rounded = 0
    for root, depth in forest(300, seed=4):
        loss = abs(expectiminimax(root, depth) - real_value(root, depth))
        assert loss <= chance_layers(root, depth)
        rounded += loss > 0
    assert rounded > 50


@pytest.mark.parametrize("total", [0, 1, 35, 36, 37, 71, 72, 720_000])
def test_the_mean_is_monotone_odd_and_the_bounds_of_totals_are_tight(bench: Bench, total: int) -> None:
    from search import jit

    kernel = jit.specialise("search.chance", bench.game, PLAIN)
    mean, least_total = kernel.mean.py_func, kernel.least_total.py_func
    assert mean(total) == int(Fraction(total, 36)) == -mean(-total)
    for value in (mean(total), -mean(total), mean(total) + 1):
        least = least_total(value)
        assert mean(least) >= value > mean(least - 1)
        assert mean(-least_total(-value)) <= value < mean(-least_total(-value) + 1)


def test_star2_visits_no_more_than_star1_and_both_far_fewer_than_plain(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where estimates foretell values, as in a game; the probes of a tree of pure noise would find as much noise."""
    rows = []
    for depth, outcomes in ((2, 6), (3, 4), (4, 3)):
        rng, counts = random.Random(depth), []
        for _ in range(40):
            recipe = ChanceTree(depth, 8, outcomes, reach=20_000, early_leaf=0.0, drift=3_000)
            root = recipe.grow(rng)
            position = plant(bench.game, root)
            nodes = [bench.searchers[name].run(Job(position, depth)).statistics.nodes for name in ("star1", "star2")]
            counts.append((chance_node_count(root, depth), *nodes))
        rows.append((depth, outcomes, *(fmean(column) for column in zip(*counts, strict=True))))
    with capsys.disabled():
        print("\n  depth  outcomes      plain      Star1      Star2   (mean nodes of 40 random trees)")
        for depth, outcomes, plain, star1, star2 in rows:
            print(f"  {depth:5}  {outcomes:8}  {plain:9.0f}  {star1:9.0f}  {star2:9.0f}")
    for (_, _, plain, star1, star2), most in zip(rows, (0.75, 0.5, 0.3), strict=True):
        assert star2 <= star1 < most * plain


def test_plain_visits_every_node(bench: Bench) -> None:
    for root, depth in forest(100, seed=5):
        outcome = bench.searchers["plain"].run(Job(plant(bench.game, root), depth))
        assert outcome.statistics.nodes == chance_node_count(root, depth)


def test_every_executor_finds_the_value(executor: MakeExecutor, bench: Bench) -> None:
    flags = variant(Pruning.PVS, Star.STAR2, table=True)
    opened = executor(bench.game, flags=flags)
    with Session(bench.game, opened, 1.0, silent) as session:
        for root, depth in forest(40, seed=6):
            if len(root.children) < 2:
                continue
            position = bench.game.text(plant(bench.game, root))
            report = session.search(SearchRequest(position, limits=Limits(depth=depth)))
            assert report.result.score == value_for_mover(root, depth)
            assert report.result.depth == depth
            if root.is_chance:
                assert report.best_move is None
                assert report.strategy == "single"
            else:
                child = root.children[int(report.best_move or "") - 1]
                assert expectiminimax(child, depth - 1) == expectiminimax(root, depth)
            json = report.as_json()
            assert json["algorithm"] == "expectiminimax"
            assert json["expected_value"] == report.result.score / 20_000


def test_the_line_keeps_its_value_to_the_first_chance_node(bench: Bench) -> None:
    """The best move is a best one, and chance's part of the line is a likeliest outcome."""
    longer = 0
    for root, depth in forest(300, seed=7):
        outcome = bench.searchers["star2"].run(Job(plant(bench.game, root), depth))
        node, left = root, depth
        for move in outcome.line:
            child = node.children[move - 1]
            if node.is_chance:
                assert child.weight == max(each.weight for each in node.children)
            else:
                left -= 1
                assert expectiminimax(child, left) == expectiminimax(node, left + 1)
            node = child
        longer += len(outcome.line) > 2
        assert not node.children or left == 0 or node.is_chance
    assert longer > 100


def test_what_cannot_be_asked_is_refused(bench: Bench, executor: MakeExecutor) -> None:
    opened = executor(bench.game, flags=variant(Pruning.PVS, Star.STAR2, table=True))
    decision = ChanceNode(0, 0, (ChanceNode(1), ChanceNode(2)))
    dice = ChanceNode(0, 2, (ChanceNode(1, weight=18), ChanceNode(2, weight=18)))
    texts = [bench.game.text(plant(bench.game, root)) for root in (decision, dice)]
    depth = Limits(depth=2)
    with Session(bench.game, opened, 1.0, silent) as session:
        for request, sentence in (
            (SearchRequest(texts[0], limits=depth, strategy="dynamic"), "the strategy is root or single, not dynamic"),
            (SearchRequest(texts[0], limits=Limits(mate=3)), "proves no mates"),
            (SearchRequest(texts[0], limits=depth, contempt=20_001), "a draw must cost less"),
            (SearchRequest(texts[1], limits=depth, strategy="root"), "chance moves first"),
            (SearchRequest(texts[1], limits=depth, multipv=2), "chance moves first"),
        ):
            with pytest.raises(RulesError, match=sentence):
                session.search(request)
