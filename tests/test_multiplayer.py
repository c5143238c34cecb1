"""max^n and paranoid against plain searches: equal values for every variant, table and executor."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import oracle_players
import pytest
from conftest import MakeExecutor, silent
from oracle_players import PlayerNode
from player_trees import KINDS, TREE_GAME, grown, node_count, planted, tree_game

import cluster
from cluster.executor import Executor
from cluster.request import SearchRequest
from cluster.session import Session, open_session
from search.controls import CONTROL_WORDS, Controls
from search.flags import Algorithm, Flags, Pruning
from search.game_files import load_game
from search.limits import Limits
from search.player_rules import player_rules
from search.referee import Referee
from search.rules import Game, RulesError
from search.scores import INFINITY, MATE_BOUND
from search.searcher import Job, Searcher
from search.searchers import open_searcher
from tt_store.segment import Segment

TREES = 2_000
"""Of the slow tests; the quick ones look at some of them."""
SOME_TREES = 300
MAX_N, PARANOID = Flags(algorithm=Algorithm.MAX_N), Flags(algorithm=Algorithm.PARANOID, exact_depth=True)

_CONTROL_WORDS = np.zeros(CONTROL_WORDS, np.int64)
_LARGE, _TINY = Segment.private(4), Segment.private(0.01)


def searcher_for(game: Game, segment: Segment, flags: Flags) -> Searcher:
    searcher = open_searcher(game, segment, Controls(_CONTROL_WORDS.ctypes.data), flags=flags, notice=silent)
    assert isinstance(searcher, Searcher)
    return searcher


def check_max_n(kind: str, searchers: list[Searcher], trees: int) -> None:
    for tree, text, rng in grown(kind, 1, trees):
        position = searchers[0].game.parse(text)
        for depth in (5, rng.randint(1, 4)):
            values, best = oracle_players.max_n(tree, depth)
            line = oracle_players.best_line(tree, depth)
            alpha = rng.choice((-INFINITY, values[tree.mover] + rng.randint(-3, 3)))
            for searcher in searchers:
                outcome = searcher.run(Job(position, depth))
                assert (outcome.values, outcome.best_move) == (values, best)
                assert outcome.score == values[tree.mover]
                assert list(outcome.line) == line
                if len(tree.children) > 1:
                    others = searcher.run(Job(position, depth, left_out=(best,)))
                    assert others.values == oracle_players.max_n(without(tree, best), depth)[0]
                bounded = searcher.run(Job(position, depth, alpha=alpha))
                if values[tree.mover] > alpha:
                    assert bounded.values == values
                else:
                    assert bounded.score <= alpha


def without(tree: PlayerNode, number: int | None) -> PlayerNode:
    """Return a tree less one of its first moves."""
    children = [child for each, child in enumerate(tree.children, 1) if each != number]
    return replace(tree, children=tuple(children))


def check_paranoid(kind: str, searchers: list[Searcher], trees: int) -> None:
    for tree, text, rng in grown(kind, 2, trees):
        for depth in (5, rng.randint(1, 4)):
            value = oracle_players.paranoid(tree, depth, tree.mover)
            alpha = value + rng.randint(-6, 5)
            beta = alpha + rng.choice((1, 1, 5, 12))
            for searcher in searchers:
                position = searcher.game.root_position(searcher.game.parse(text))
                assert searcher.run(Job(position, depth)).score == value
                score = searcher.run(Job(position, depth, alpha, beta)).score
                assert value <= score if score <= alpha else value >= score if score >= beta else value == score


@pytest.mark.parametrize(("kind", "variants"), [
    ("3-general", ({},)),
    ("4-bounded", ({}, {"table": False})),
])  # fmt: skip
def test_max_n_is_plain_max_n(kind: str, variants: tuple[dict[str, object], ...]) -> None:
    game = tree_game(kind)
    searchers = [searcher_for(game, _LARGE, MAX_N._replace(**variant)) for variant in variants]
    check_max_n(kind, [*searchers, searcher_for(game, _TINY, MAX_N)], SOME_TREES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "2-general"])
def test_every_variant_of_max_n_is_plain_max_n(kind: str) -> None:
    game = tree_game(kind)
    searchers = [
        searcher_for(game, segment, MAX_N._replace(pruning=pruning, ordering=ordering, table=table, table_depth=least))
        for pruning in (Pruning.NONE, Pruning.PVS)
        for ordering in (False, True)
        for table, segment, least in ((False, _LARGE, 0), (True, _LARGE, 0), (True, _TINY, 0), (True, _LARGE, 3))
    ]
    check_max_n(kind, searchers, TREES)


def test_paranoid_is_plain_minimax_of_one_against_all() -> None:
    searchers = [searcher_for(tree_game("3-general"), segment, PARANOID) for segment in (_LARGE, _TINY)]
    check_paranoid("3-general", searchers, SOME_TREES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["3-bounded", "4-general"])
def test_every_variant_of_paranoid_is_plain_minimax(kind: str) -> None:
    searchers = [
        searcher_for(tree_game(kind), _LARGE, PARANOID._replace(pruning=pruning, ordering=ordering, table=table))
        for pruning in Pruning
        for ordering, table in ((True, True), (False, True), (True, False))
    ]
    check_paranoid(kind, searchers, TREES)


def test_pruning_spares_nodes_where_the_sum_is_bounded() -> None:
    game = tree_game("4-bounded")
    pruned = searcher_for(game, _LARGE, MAX_N._replace(table=False))
    spent = sum(
        pruned.run(Job(game.parse(text), 5)).statistics.nodes for _tree, text, _rng in grown("4-bounded", 3, 300)
    )
    every = sum(node_count(tree) for tree, _text, _rng in grown("4-bounded", 3, 300))
    assert spent < 0.9 * every


def test_of_equal_moves_the_one_of_the_lowest_number_is_played() -> None:
    """The game generates the last move first, and its `order` prefers the second: neither matters."""
    leaves = [PlayerNode(1, (5, 0, 9)), PlayerNode(1, (5, 9, 0)), PlayerNode(1, (5, 3, 3)), PlayerNode(1, (4, 4, 4))]
    tree = PlayerNode(0, (0, 0, 0), tuple(leaves))
    game = tree_game("3-general")
    position = game.parse(planted("3-general", tree))
    searcher = searcher_for(game, _LARGE, MAX_N)
    outcome = searcher.run(Job(position, 3))
    assert (outcome.values, outcome.line) == ((5, 0, 9), (1,))
    others = searcher.run(Job(position, 3, left_out=(1,)))
    assert (others.values, others.line) == ((5, 9, 0), (2,))


@pytest.mark.parametrize("algorithm", ["max^n", "paranoid"])
def test_every_executor_finds_what_plain_search_finds(executor: MakeExecutor, algorithm: str) -> None:
    kind = "3-general"
    game = tree_game(kind)
    made: Executor = executor(game, flags=MAX_N if algorithm == "max^n" else PARANOID)
    strategies = ("root", "single") if algorithm == "max^n" else ("dynamic", "root", "single")
    with Session(game, made, 1.0, silent) as session:
        for number, (tree, text, _rng) in enumerate(grown(kind, 4, 40)):
            request = SearchRequest(text, limits=Limits(depth=5), strategy=strategies[number % len(strategies)])
            report = session.search(request)
            if algorithm == "max^n":
                values, best = oracle_players.max_n(tree, 5)
                assert (report.values, report.best_move) == (values, str(best))
                line = " ".join(str(move) for move in oracle_players.best_line(tree, 5))
                assert " ".join(report.principal_variation) == line
            assert report.result.score == plain_score(tree, algorithm)


def plain_score(tree: PlayerNode, algorithm: str) -> int:
    if algorithm == "max^n":
        return oracle_players.max_n(tree, 5)[0][tree.mover]
    return oracle_players.paranoid(tree, 5, tree.mover)


@pytest.mark.parametrize(
    ("size", "algorithm"),
    [("3x3", "max^n"), *(pytest.param("5x2", name, marks=pytest.mark.slow) for name in ("max^n", "paranoid"))],
)
def test_small_boards_are_solved_exactly(size: str, algorithm: str) -> None:
    width, height = (int(number) for number in size.split("x"))
    request = SearchRequest(algorithm=algorithm, limits=Limits(depth=width * height))
    with open_session(f"tricolour:{size}", request, workers=2, table_mb=4, notice=silent) as session:
        report = session.search(request)
    assert report.result.is_solved
    if algorithm == "max^n":
        assert report.values == oracle_players.tricolour_max_n(width, height)
    else:
        assert report.result.score == oracle_players.tricolour_paranoid(width, height, 0)


@pytest.mark.slow
def test_positions_of_a_larger_board_are_solved_exactly() -> None:
    game, rng = load_game("tricolour:4x3"), random.Random(5)
    max_n, paranoid = (searcher_for(game, _LARGE, flags) for flags in (MAX_N, PARANOID))
    for _ in range(12):
        board = oracle_players.Tricolour(4, 3)
        for _ in range(rng.randint(5, 9)):
            board = board.after(rng.choice(board.legal_moves()))
        cells, position = "".join(board.cells), game.parse(board.text())
        left = board.cells.count(".")
        assert max_n.run(Job(position, left)).values == oracle_players.tricolour_max_n(4, 3, cells)
        view = paranoid.game
        seen = view.root_position(view.parse(board.text()))
        value = oracle_players.tricolour_paranoid(4, 3, board.mover, cells)
        assert paranoid.run(Job(seen, left)).score == value


def test_tricolour_is_played_by_its_rules() -> None:
    for size in ("3x3", "8x8"):
        game, rng = load_game(f"tricolour:{size}"), random.Random(6)
        referee = Referee(game, silent)
        width, height = (int(number) for number in size.split("x"))
        for _ in range(20):
            board, position = oracle_players.Tricolour(width, height), game.parse("")
            while moves := board.legal_moves():
                assert referee.legal_moves(position) == moves
                assert game.text(position) == board.text()
                assert tuple(game.parse(board.text())) == tuple(position)
                move = rng.choice(moves)
                board, position = board.after(move), referee.play(position, move)
            assert referee.facts(position).is_over
            assert referee.facts(position).outcome == board.counts()[board.mover]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("RG./...", "not 3x3"), ("RGX/.../...", "a 'X'"), ("RGBB", "not 3x3")],
)
def test_tricolour_refuses_what_is_no_board(text: str, reason: str) -> None:
    with pytest.raises(RulesError, match=reason):
        load_game("tricolour:3x3").parse(text)


@pytest.mark.parametrize("name", ["tricolour:3x3", f"{TREE_GAME}:3-general", f"{TREE_GAME}:4-bounded"])
def test_values_of_players_keep_what_the_game_declares(name: str) -> None:
    game = load_game(name)
    rules, rng = player_rules(game), random.Random(7)
    searcher = searcher_for(game, _LARGE, MAX_N)
    texts = [text for _tree, text, _rng in grown(name[-9:], 8, 20)] if "tree" in name else [game.start_text] * 10
    for text in texts:
        position = game.parse(text)
        while moves := searcher.referee.legal_moves(position):
            check_values(rules, searcher.run(Job(position, 0)).values)
            position = searcher.referee.play(position, rng.choice(moves))
        values = searcher.run(Job(position, 0)).values
        check_values(rules, values)
        assert searcher.referee.facts(position).outcome in values


def check_values(rules, values: tuple[int, ...]) -> None:
    assert len(values) == rules.players
    assert all(abs(value) < MATE_BOUND for value in values)
    assert rules.lowest is None or min(values) >= rules.lowest
    assert rules.highest is None or max(values) <= rules.highest
    assert rules.payoff_sum is None or sum(values) <= rules.payoff_sum


@pytest.fixture
def variant(tmp_path: Path) -> Callable[[str, str], Game]:
    """Return a function that makes a game of the tree game with a line changed."""

    def make(old: str, new: str) -> Game:
        source = TREE_GAME.read_text()
        assert old in source
        path = tmp_path / f"variant_{abs(hash(new))}.py"
        path.write_text(source.replace(old, new))
        return load_game(str(path))

    return make


def test_what_contradicts_itself_is_refused(variant: Callable[[str, str], Game]) -> None:
    for line, reason in (
        ("PLAYERS = 9\n", "from 2 to 8, not 9"),
        ("PLAYERS = True\n", "from 2 to 8, not True"),
        ("def stuck(position):\n    return 0\n", "stuck is for two sides"),
        ("del payoff\n", "does not define payoff"),
        ("LOWEST_PAYOFF = 1.5\n", "LOWEST_PAYOFF"),
        ("LOWEST_PAYOFF, PAYOFF_SUM = 10, 5\n", "contradict"),
    ):
        with pytest.raises(RulesError, match=reason):
            player_rules(variant("START = ", f"{line}START = "))


def test_what_is_made_for_two_sides_is_refused() -> None:
    for request, reason in (
        (SearchRequest(algorithm="alpha-beta"), "alpha-beta is not sound .* several players: use max\\^n or paranoid"),
        (SearchRequest(strategy="dynamic"), "the strategy is root or single, not dynamic"),
        (SearchRequest(limits=Limits(mate=2)), "proves no mates"),
        (SearchRequest(contempt=5), "no draws"),
        (SearchRequest("RGB/RGB/RGR"), r"is over in this position \(score 4 3 2\)"),
    ):
        with pytest.raises(RulesError, match=reason):
            open_session("tricolour:3x3", request, workers=1, table_mb=1, notice=silent)
    with pytest.raises(RulesError, match=r"paranoid is not sound .* use alpha-beta"):
        open_session("tic_tac_toe", SearchRequest(algorithm="paranoid"), workers=1, table_mb=1, notice=silent)


def test_a_batch_tells_what_each_player_gets() -> None:
    rows = list(cluster.analyse("tricolour:3x3", ["RG./.B./...", "RGB/RGB/RGR"], Limits(depth=6), table_mb=1))
    values = oracle_players.tricolour_max_n(3, 3, "RG..B....")
    assert [row.status for row in rows] == ["ok", "over"]
    assert rows[0].score_text == " ".join(str(value) for value in values)
    assert rows[0].score == values[0]
    assert rows[1].score_text == "4 3 2"
