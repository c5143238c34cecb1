"""Monte Carlo tree search on one machine: proofs against plain minimax, counts that add up, seeds that repeat."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from oracle import Node, RandomTree, minimax_black, minimax_white

from search import workspace as at
from search.controls import CONTROL_WORDS, Controls
from search.driver import search
from search.flags import Algorithm, Flags
from search.game_files import load_game
from search.limits import Limits
from search.mcts_searcher import MonteCarloSearcher
from search.mcts_settings import MonteCarloSettings, Part, SettingsError, slice_of
from search.mcts_standing import RootMove, Standing, merged, standing_of
from search.mcts_tree import DRAWN, LOST, UNKNOWN, WON, TreeView, tree_number
from search.random_stream import origin_of
from search.referee import Referee
from search.rules import Game
from search.scores import MAX_PLY
from search.searcher import Job, Outcome
from tt_store.segment import Segment

EXPLICIT_TREE = str(Path(__file__).parent / "games" / "explicit_tree.py")
MCTS = Flags(algorithm=Algorithm.MCTS)
SETTINGS = MonteCarloSettings()
EAGER = MonteCarloSettings(expand_after=1)
ENOUGH = 100_000


class Bench(NamedTuple):
    """A searcher of one game on a table of its own."""

    game: Game
    segment: Segment
    searcher: MonteCarloSearcher
    words: Any
    """Its control words."""

    def run(
        self,
        position: Any,
        playouts: int,
        tree: int,
        settings: MonteCarloSettings = SETTINGS,
        first: int = 0,
        **job: Any,
    ) -> Outcome:
        words = tuple(settings.slice(tree, first))
        return self.searcher.run(Job(position, 1, node_limit=playouts, settings=words, **job))

    def view(self, tree: int) -> TreeView:
        return TreeView(self.segment.table_address, self.segment.size_bytes, tree)


def bench_of(name: str, table_mb: float = 16.0) -> Iterator[Bench]:
    game, words = load_game(name), np.zeros(CONTROL_WORDS, np.int64)
    with Segment.private(table_mb) as segment:
        controls = Controls(words.ctypes.data)
        searcher = MonteCarloSearcher(game, segment, controls, flags=MCTS, notice=lambda _line: None)
        yield Bench(game, segment, searcher, words)


@pytest.fixture(scope="module")
def trees() -> Iterator[Bench]:
    yield from bench_of(EXPLICIT_TREE)


@pytest.fixture(scope="module")
def tic_tac_toe_bench() -> Iterator[Bench]:
    yield from bench_of("tic_tac_toe")


@pytest.fixture(scope="module")
def hex_bench() -> Iterator[Bench]:
    yield from bench_of("hex:3")


def plant(game: Game, root: Node, side: int) -> Any:
    rows, waiting, numbered = [], deque([root]), 1
    while waiting:
        node = waiting.popleft()
        rows.append((node.score, numbered, len(node.children)))
        numbered += len(node.children)
        waiting.extend(node.children)
    return game.parse(f"{game.module.plant(rows)}:0:{side}")


def verdict_of(score: int) -> int:
    """Return the verdict for whom a score is."""
    return DRAWN if score == 0 else WON if score > 0 else LOST


def true_verdict(node: Node, side: int) -> int:
    """Return what a node is for its side to move."""
    score = minimax_white(node, MAX_PLY) if side == 0 else -minimax_black(node, MAX_PLY)
    return verdict_of(score)


def check_verdicts(view: TreeView, seen: int, node: Node, side: int) -> int:
    """Hold all that a tree has settled below a node against minimax; returns how many nodes were settled."""
    settled = 0
    for child in view.children(seen):
        below = node.children[child.move - 1]
        if child.verdict != UNKNOWN:
            # A child's verdict is for who chose it; minimax says it for who moves next.
            assert child.verdict == LOST + WON - true_verdict(below, 1 - side)
            settled += 1
        settled += check_verdicts(view, child.node, below, 1 - side)
    return settled


def random_roots(number: int) -> Iterator[tuple[Node, int]]:
    rng = random.Random(10)
    recipes = [RandomTree(4, 3, reach=1, mate=0.3), RandomTree(6, 2, reach=1), RandomTree(3, 6, reach=2, mate=0.5)]
    for index in range(number):
        yield recipes[index % len(recipes)].grow(rng), index % 2


def test_what_is_proved_is_what_minimax_says(trees: Bench) -> None:
    settled = 0
    for tree, (root, side) in enumerate(random_roots(2_000), 1):
        outcome = trees.run(plant(trees.game, root, side), ENOUGH, tree, EAGER)
        assert outcome.status == at.RUNNING
        standing = standing_of(range(1, len(root.children) + 1), outcome.values)
        assert standing is not None
        assert standing.verdict == true_verdict(root, side), tree
        # The best move is one that keeps the value.
        best = root.children[outcome.best_move - 1]
        assert LOST + WON - true_verdict(best, 1 - side) == standing.verdict
        if tree % 20 == 0:
            view = trees.view(tree)
            assert view.root is not None
            settled += check_verdicts(view, view.root.node, root, side)
    assert settled > 500


def test_no_playouts_prove_a_wrong_value_on_the_way(trees: Bench) -> None:
    settled = 0
    for tree, (root, side) in enumerate(random_roots(120), 5_000):
        for first in range(0, 60, 20):
            trees.run(plant(trees.game, root, side), 20, tree, first=first)
            view = trees.view(tree)
            assert view.root is not None
            settled += check_verdicts(view, view.root.node, root, side)
    assert settled > 500


def test_hex_on_three_by_three_is_proved_to_be_won(hex_bench: Bench) -> None:
    game = hex_bench.game
    outcome = hex_bench.run(game.parse(""), ENOUGH, 1)
    standing = standing_of(range(1, 10), outcome.values)
    assert standing is not None
    assert standing.verdict == WON
    assert outcome.statistics.nodes < ENOUGH
    assert game.move_text(game.parse(""), outcome.best_move) == "b2"
    # The acute corner a1 is a losing opening.
    lost = hex_bench.run(game.parse("a1"), ENOUGH, 2)
    assert lost.score == 1000


@pytest.mark.parametrize("text", ["X...O....", "XO.......", "X.O.X....", "XOX.O....", "XX..O....", "....X...."])
def test_draws_are_proved_too(tic_tac_toe_bench: Bench, tic_tac_toe: Game, text: str) -> None:
    position = tic_tac_toe.parse(text)
    exact = search(tic_tac_toe, position, Limits(), notice=lambda _line: None)
    tree = 100 + int("".join(str(".XO".index(cell)) for cell in text), 3)
    outcome = tic_tac_toe_bench.run(position, 200_000, tree)
    moves = sorted(tic_tac_toe_bench.searcher.referee.legal_moves(position))
    standing = standing_of(moves, outcome.values)
    assert standing is not None
    assert standing.verdict == standing.ranked[0].verdict == verdict_of(exact.score)


def test_one_worker_does_the_same_again_and_slices_change_nothing(hex_bench: Bench) -> None:
    position = hex_bench.game.parse("a1")
    settings = MonteCarloSettings(seed=7, exploration=1_400)
    whole = hex_bench.run(position, 150, 11, settings)
    assert hex_bench.run(position, 150, 12, settings).values == whole.values
    for first in (0, 50, 100):
        sliced = hex_bench.run(position, 50, 13, settings, first)
    assert sliced.values == whole.values
    other = hex_bench.run(position, 150, 14, MonteCarloSettings(seed=8, exploration=1_400))
    assert other.values != whole.values
    assert origin_of(7) == origin_of(7 + (1 << 64)) != origin_of(8)


def every_node(view: TreeView, node: int) -> Iterator[Any]:
    yield view.view(node)
    for child in view.children(node):
        yield from every_node(view, child.node)


def grown_by(bench: Bench, position: Any, workers: int, playouts: int, tree: int) -> int:
    """Let threads grow one tree; returns how many playouts they made."""
    controls = Controls(bench.words.ctypes.data)
    searchers = [
        MonteCarloSearcher(bench.game, bench.segment, controls, flags=MCTS, slot=slot, notice=lambda _line: None)
        for slot in range(workers)
    ]
    made = [0] * workers

    def work(slot: int) -> None:
        for number in range(10):
            job = Job(position, 1, node_limit=playouts // 10, task_id=slot + 1)
            settings = tuple(SETTINGS.slice(tree, (slot * 10 + number) * playouts))
            made[slot] += searchers[slot].run(job._replace(settings=settings)).statistics.nodes

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(made)


def test_counts_of_many_threads_add_up_and_no_virtual_loss_stays(tic_tac_toe_bench: Bench) -> None:
    position = tic_tac_toe_bench.game.parse("")
    made = grown_by(tic_tac_toe_bench, position, workers=4, playouts=20_000, tree=77)
    view = tic_tac_toe_bench.view(77)
    assert view.root is not None
    assert view.root.visits == made == 80_000
    nodes = list(every_node(view, view.root.node))
    assert len(nodes) > 1_000
    assert not any(node.below for node in nodes)
    assert all(abs(node.value) <= node.visits for node in nodes)
    for node in nodes:
        children = view.children(node.node)
        assert sum(child.visits for child in children) <= node.visits
    assert sum(child.visits for child in view.children(view.root.node)) == made


def test_a_full_memory_stops_growth_and_not_the_search() -> None:
    for bench in bench_of("tic_tac_toe", table_mb=0.01):
        position = bench.game.parse("")
        outcome = bench.run(position, 20_000, 3)
        view = bench.view(3)
        assert outcome.statistics.nodes == 20_000
        assert view.root is not None
        assert view.root.visits == 20_000
        assert view.capacity - 9 < view.nodes <= view.capacity < 450
        assert not any(node.below for node in every_node(view, view.root.node))


def test_a_tree_that_does_not_even_hold_the_root_is_refused() -> None:
    for bench in bench_of("tic_tac_toe", table_mb=0.0002):
        with pytest.raises(SettingsError, match="the tree needs memory for 10 nodes"):
            bench.run(bench.game.parse(""), 100, 3)


def test_a_new_search_takes_the_memory_over(hex_bench: Bench) -> None:
    first = hex_bench.run(hex_bench.game.parse("a1"), 100, tree_number(40))
    second = hex_bench.run(hex_bench.game.parse("a1"), 100, tree_number(41))
    assert first.values == second.values
    assert hex_bench.view(tree_number(40)).root is None
    assert tree_number(40) != tree_number(41)
    assert 1 <= tree_number(1 << 60) <= (1 << 23) - 1


def test_parts_of_one_memory_hold_trees_of_their_own(hex_bench: Bench) -> None:
    whole = hex_bench.run(hex_bench.game.parse("a1"), 100, 50).values
    position = hex_bench.game.parse("a1")
    for first in (0, 50):
        for part in (0, 1, 2):
            words = tuple(SETTINGS.slice(51 + part, first, Part(part, 3)))
            outcome = hex_bench.searcher.run(Job(position, 1, node_limit=50, settings=words))
    assert outcome.values == whole


def test_the_stop_word_and_an_abort_end_a_slice_at_once(hex_bench: Bench) -> None:
    controls = Controls(hex_bench.words.ctypes.data)
    position = load_game("hex:3").parse("")
    controls.abort(9)
    assert hex_bench.run(position, ENOUGH, 60, task_id=9).status == at.ABORTED
    controls.stop(5)
    outcome = hex_bench.run(position, ENOUGH, 61, epoch=5)
    assert (outcome.status, outcome.statistics.nodes, outcome.values) == (at.STOPPED, 0, ())
    controls._word(controls.stop_address).value = 0


def test_first_moves_that_are_left_out_stay_out(tic_tac_toe_bench: Bench, tic_tac_toe: Game) -> None:
    position = tic_tac_toe.parse("XX.OO....")
    outcome = tic_tac_toe_bench.run(position, ENOUGH, 70, left_out=(3, 7))
    standing = standing_of((6, 8, 9), outcome.values)
    exact = search(tic_tac_toe, position, Limits(), root_moves=(6, 8, 9), notice=lambda _line: None)
    assert standing is not None
    assert standing.verdict == verdict_of(exact.score)
    assert tic_tac_toe_bench.run(position, ENOUGH, 71).best_move == 3


def plain_verdict(referee: Referee, position: Any) -> int:
    """Return what a position is for its side to move, by looking at all that can follow."""
    facts = referee.facts(position)
    if facts.is_over:
        return verdict_of(facts.outcome)
    found = []
    for move in referee.legal_moves(position):
        child = referee.play(position, move)
        verdict = plain_verdict(referee, child)
        found.append(LOST + WON - verdict if referee.changes_side(position, child) else verdict)
    return max(found)


def test_who_moves_again_is_proved_rightly(kalah: Game) -> None:
    """Late positions of Kalah, where a move may leave the same side to move."""
    referee, rng, solved = Referee(kalah, lambda _line: None), random.Random(6), set()
    for bench in bench_of("kalah"):
        for tree in range(1, 121):
            # Few seeds are left to sow, so that all that can follow is soon looked at.
            pits = [0] * 12
            for _ in range(rng.randint(2, 4)):
                pits[rng.randrange(12)] += 1
            home = rng.randint(20, 26)
            sides = (*pits[:6], home), (*pits[6:], 48 - home - sum(pits))
            position = kalah.parse("/".join(",".join(map(str, side)) for side in sides) + rng.choice((" s", " n")))
            if referee.facts(position).is_over:
                continue
            found = bench.run(position, 5_000, tree)
            standing = standing_of(sorted(referee.legal_moves(position)), found.values)
            assert standing is not None
            if standing.verdict != UNKNOWN:
                assert standing.verdict == plain_verdict(referee, position)
                solved.add((tree, standing.verdict))
    assert len(solved) > 20
    assert {verdict for _tree, verdict in solved} >= {WON, LOST}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("7k/5Q2/8/6K1/8/8/8/8 w - - 0 1", 1000),
        ("7k/8/8/8/8/8/q7/K7 w - - 0 1", 0),
        ("k7/7Q/2K5/8/8/8/8/8 b - - 99 80", 0),
    ],
)
def test_mates_and_draws_of_chess_are_proved(text: str, score: int) -> None:
    """A mate in one; a queen that is taken, so that kings alone are left; a clock that runs out."""
    game = load_game("chess")
    found = search(game, game.parse(text), Limits(nodes=3_000), flags=MCTS, notice=lambda _line: None)
    assert found.is_solved
    assert found.score == score


def test_iterations_are_doublings_with_lines_of_first_moves_that_differ() -> None:
    game = load_game("tic_tac_toe")
    found = search(game, game.parse(""), Limits(nodes=5_000), flags=MCTS, multipv=3, notice=lambda _line: None)
    spent = np.cumsum([iteration.statistics.nodes for iteration in found.iterations])
    assert list(spent) == [256, 512, 1024, 2048, 4096, 5000]
    assert all(len({line.moves[0] for line in iteration.lines}) == 3 for iteration in found.iterations)
    assert found.best_move == found.iterations[-1].line[0] == found.root_moves[0].move
    assert [move.rank for move in found.root_moves] == sorted((move.rank for move in found.root_moves), reverse=True)


def test_standings_of_machines_are_added_up_and_proofs_of_any_count() -> None:
    one = Standing((RootMove(1, 10, 4, UNKNOWN), RootMove(2, 5, -5, LOST), RootMove(3, 1, 0, UNKNOWN)))
    other = Standing((RootMove(1, 3, -3, LOST), RootMove(2, 20, 2, UNKNOWN), RootMove(3, 2, 0, DRAWN)))
    both = merged([one, other])
    assert both.moves == (RootMove(1, 13, 1, LOST), RootMove(2, 25, -3, LOST), RootMove(3, 3, 0, DRAWN))
    assert both.verdict == DRAWN
    assert both.ranked[0].move == 3
    assert both.playouts == 41
    assert standing_of((1, 2, 3), both.words()) == both
    assert one.verdict == UNKNOWN
    for words in ((), (1, 2, 3), (1, 5, 0) * 3, (1, 1, 9) * 3, (-1, 0, 0) * 3):
        assert standing_of((1, 2, 3), words) is None


def test_moves_rank_by_proof_then_by_visits() -> None:
    won, draw, lost = RootMove(1, 1, -1, WON), RootMove(2, 9, 0, DRAWN), RootMove(3, 99, 99, LOST)
    good, bad = RootMove(4, 50, 1, UNKNOWN), RootMove(5, 80, -1, UNKNOWN)
    assert Standing((lost, bad, draw, good, won)).ranked == (won, good, draw, bad, lost)
    assert (won.win_rate, draw.win_rate, lost.win_rate, good.win_rate) == (1.0, 0.5, 0.0, 0.51)
    assert (won.score, draw.score, lost.score, good.score) == (1000, 0, -1000, 20)


@pytest.mark.parametrize("wrong", [{"exploration": -1}, {"expand_after": 0}, {"longest_playout": 0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match="must be from"):
        MonteCarloSettings(**wrong)


def test_a_slice_from_elsewhere_is_checked() -> None:
    good = tuple(SETTINGS.slice(1, 0))
    assert tuple(slice_of(good)) == good
    for bad in (
        (),
        good[:-1],
        (0, *good[1:]),
        (1 << 30, *good[1:]),
        (*good[:3], 1, 1, *good[5:]),
        (*good[:-1], 1 << 40),
    ):
        with pytest.raises(SettingsError, match="does not say how to play"):
            slice_of(bad)
