"""One contract for all games, and what is known of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import oracle
import pytest
from conftest import silent
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from cluster.shared_perft import divide
from search.algorithms import flags_to_depth
from search.chance_rules import chance_rules_of
from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags, Pruning
from search.game_files import game_names, load_game
from search.games.chess.board import BLACK_TO_MOVE
from search.perft import LeafCounter
from search.referee import Referee
from search.rules import MAX_MOVE, Game, RulesError, check_evaluation
from search.scores import DRAW, MATE, MATE_BOUND, MAX_PLY, ONGOING
from search.searcher import Job
from search.searchers import AnySearcher, open_searcher
from tt_store.segment import Segment

GAME_FILES = sorted((Path(__file__).parent / "games").glob("*.py"))
GAMES = [*game_names(), *map(str, GAME_FILES)]
LONGEST_GAME = 2_000
"""Plies after which a random game counts as endless."""

NO_TABLE = Flags(Pruning.PVS, table=False)
EXACT = Flags(Pruning.PVS, exact_depth=True)

_CONTROL_WORDS = np.zeros(CONTROL_WORDS, np.int64)
_SEGMENT = Segment.private(1)


def games_with(optional: str) -> list[str]:
    return [name for name in GAMES if hasattr(load_game(name).module, optional)]


each_game = pytest.mark.parametrize("name", GAMES, ids=lambda name: Path(name).stem)


@cache
def referee_of(name: str) -> Referee:
    return Referee(load_game(name))


@cache
def leaf_counter_of(name: str) -> LeafCounter:
    return LeafCounter(load_game(name))


@cache
def searcher_of(name: str, flags: Flags) -> AnySearcher:
    game = load_game(name)
    return open_searcher(game, _SEGMENT, Controls(_CONTROL_WORDS.ctypes.data), flags=flags_to_depth(game, flags))


def value_of(name: str, position: Any, depth: int) -> int:
    searcher = searcher_of(name, NO_TABLE)
    # What a selective search leaves out depends on what it has learnt about moves.
    searcher.forget()
    return searcher.run(Job(position, depth)).score


class Step(NamedTuple):
    """A position of a random game, and how it goes on."""

    position: Any
    moves: list[int]
    plies_to_go: int
    """Plies of players: chance has none."""


def random_game(referee: Referee, rng: random.Random, start: Any) -> list[Step]:
    """Play to the end, also by a draw that could be ignored; the last step has no moves."""

    def moves_of(position: Any) -> list[int]:
        return [] if referee.facts(position).is_over else referee.legal_moves(position)

    visited = [(start, moves_of(start))]
    while visited[-1][1]:
        position, moves = visited[-1]
        following = referee.play(position, rng.choice(moves))
        visited.append((following, moves_of(following)))
        assert len(visited) < LONGEST_GAME
    to_go, steps = 0, []
    for position, moves in reversed(visited):
        to_go += bool(moves) and not referee.facts(position).is_chance
        steps.append(Step(position, moves, to_go))
    return steps[::-1]


def random_steps(name: str, games: int, seed: int) -> Iterator[Step]:
    referee, rng = referee_of(name), random.Random(seed)
    for _ in range(games):
        yield from random_game(referee, rng, referee.game.parse(""))


@each_game
def test_play_keeps_the_contract(name: str) -> None:
    referee = referee_of(name)
    game = referee.game
    kinds = list(get_type_hints(game.position_type).values())
    for step in random_steps(name, games=60, seed=1):
        facts = referee.facts(step.position)
        assert [type(field) for field in step.position] == kinds
        assert len(step.moves) == len(set(step.moves)) <= game.max_moves
        assert all(1 <= move <= MAX_MOVE for move in step.moves)
        assert facts.is_over == (not step.moves), "a game that goes on has a move"
        assert facts.outcome == ONGOING or check_evaluation(facts.outcome)
        assert -MATE_BOUND < facts.evaluation < MATE_BOUND
        assert facts.side_to_move in (0, 1)
        bound = game.plies_left(step.position)
        assert bound is None or bound >= step.plies_to_go


@each_game
def test_texts_lead_back_to_what_they_name(name: str) -> None:
    game = referee_of(name).game
    for step in random_steps(name, games=10, seed=2):
        assert game.parse(game.text(step.position)) == step.position
        texts = [game.move_text(step.position, move) for move in step.moves]
        assert len(set(texts)) == len(texts)
        assert [game.parse_move(step.position, text) for text in texts] == step.moves
        assert game.score_text(step.position, 3, False)
        assert game.score_text(step.position, MATE - 3, True) != game.score_text(step.position, -MATE + 3, True)


@each_game
def test_keys_differ_exactly_where_positions_do(name: str) -> None:
    referee = referee_of(name)
    keys: dict[Any, int] = {}
    for step in random_steps(name, games={"chess": 20, "hex": 4}.get(name, 150), seed=3):
        for move in step.moves:
            position = referee.play(step.position, move)
            key = referee.facts(position).key
            if name == "chess":
                # Clocks and the way of writing castling are not part of what comes back.
                position = position._replace(state=position.state & BLACK_TO_MOVE)
            # The same position by another order of moves is an equal tuple: it must have the same key.
            assert keys.setdefault(position, key) == key
    assert len(set(keys.values())) == len(keys)


def test_transpositions_have_one_key() -> None:
    for name, one, other in (("connect_four", "1234", "3214"), ("tic_tac_toe", "1325", "2315")):
        referee = referee_of(name)
        start = referee.game.parse("")
        positions = [referee.play_texts(start, line) for line in (one, other)]
        assert positions[0] == positions[1]
        assert len({referee.facts(position).key for position in positions}) == 1


@pytest.mark.parametrize("name", games_with("is_chance"), ids=lambda name: Path(name).stem)
def test_chance_keeps_its_contract(name: str) -> None:
    referee = referee_of(name)
    rules = chance_rules_of(referee.game)
    weight = rules.weight

    @njit
    def weight_of(position: Any, move: int) -> int:
        return weight(position, move)

    rolls = 0
    for step in random_steps(name, games=30, seed=8):
        facts = referee.facts(step.position)
        assert abs(facts.evaluation) < rules.value_bound, "only a won game is worth the bound"
        assert not facts.is_over or abs(facts.outcome) <= rules.value_bound
        if step.moves and facts.is_chance:
            weights = [weight_of(step.position, move) for move in step.moves]
            assert min(weights) >= 1
            assert sum(weights) == rules.weight_sum
            assert weights[0] == max(weights)
            rolls += 1
    assert rolls > 10


@pytest.mark.parametrize("name", games_with("mirror"))
def test_symmetric_positions_are_worth_the_same(name: str) -> None:
    referee = referee_of(name)
    mirror = referee.game.module.mirror
    depth = 2 if name == "hex" else 4
    for step in random_steps(name, games={"chess": 2, "othello": 2, "hex": 1}.get(name, 6), seed=4):
        twin = mirror(step.position)
        assert [type(field) for field in twin] == [type(field) for field in step.position]
        facts, twin_facts = referee.facts(step.position), referee.facts(twin)
        assert (facts.outcome, facts.evaluation) == (twin_facts.outcome, twin_facts.evaluation)
        assert value_of(name, step.position, depth) == value_of(name, twin, depth)
        assert leaf_counter_of(name).count(step.position, depth - 1) == leaf_counter_of(name).count(twin, depth - 1)


@pytest.mark.parametrize("name", games_with("swap_sides"))
def test_the_estimate_changes_its_sign_with_the_side(name: str) -> None:
    referee = referee_of(name)
    swap_sides = referee.game.module.swap_sides
    for step in random_steps(name, games=40, seed=5):
        evaluation = referee.facts(step.position).evaluation
        assert referee.facts(swap_sides(step.position)).evaluation == -evaluation


def near_texts(game: Game) -> st.SearchStrategy[str]:
    """Return texts that look like positions, and texts that do not."""
    digits = st.text("0123456789:-,/ sXO.n", max_size=40)
    return st.one_of(st.text(max_size=30), st.text(sorted(set(game.start_text + "1")), max_size=40), digits)


def unless_refused(parse: Callable[[], Any]) -> Any:
    """Return what was parsed, None if it was refused as it should be."""
    try:
        return parse()
    except RulesError as error:
        if not str(error) or "\n" in str(error):
            raise
        return None


@each_game
def test_any_other_text_is_refused_in_one_sentence(name: str) -> None:
    referee = referee_of(name)
    game = referee.game

    @settings(max_examples=300, deadline=None, database=None)
    @given(near_texts(game))
    def parse_position(text: str) -> None:
        position = unless_refused(lambda: game.parse(text))
        if position is not None:
            assert game.text(game.parse(game.text(position))) == game.text(position)
            referee.facts(position)

    @settings(max_examples=200, deadline=None, database=None)
    @given(st.one_of(st.text(max_size=8), st.text("0123456789-+ ", max_size=6)))
    def parse_move(text: str) -> None:
        move = unless_refused(lambda: game.parse_move(game.parse(""), text))
        assert move is None or 1 <= move <= MAX_MOVE

    parse_position()
    parse_move()


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("tic_tac_toe", "X..", "3 characters"),
        ("tic_tac_toe", "X...Y....", "cell 5"),
        ("tic_tac_toe", "XX.......", "2 X and 0 O"),
        ("tic_tac_toe", "XXX.OO.O.", "won before"),
        ("connect_four", "1111111", "column 1 is full"),
        ("connect_four", "11223344", "disc 8"),
        ("kalah", "4,4,4,4,4,4,0/4,4,4,4,4,4,0", "s or n"),
        ("kalah", "4,4,4,4,4,4,0 s", "1 sides"),
        ("kalah", "4,4,4,4,4,4,0/4,4,4,4,4,4 n", "north's side"),
        ("kalah", "4,-4,4,4,4,4,0/4,4,4,4,4,4,0 s", "south's pit 2 is '-4'"),
        ("kalah", "4,4,4,4,4,4,0/4,4,4,4,4,4,256 s", "north's store is '256'"),
        ("kalah", "200,0,0,0,0,0,0/0,0,0,0,0,60,0 s", "260 seeds"),
        ("random_tree", "1:8", "of the form"),
        ("random_tree", "1:0:6", "branching"),
        ("random_tree", "1:9-8:6", "branching"),
        ("random_tree", "1:513:6", "branching"),
        ("random_tree", "1:8:201", "depth"),
        ("random_tree", "1:8:6:101", "order"),
        ("random_tree", f"{1 << 64}:8:6", "seed"),
        ("random_tree", "1:8:6:100:19999", "value"),
    ],
)
def test_a_bad_position_is_named(name: str, text: str, wrong: str) -> None:
    with pytest.raises(RulesError) as caught:
        load_game(name).parse(text)
    assert wrong in str(caught.value)


PERFT = {
    "chess": (20, 400, 8902, 197281, 4865609),
    "connect_four": (7, 49, 343, 2401, 16807, 117649, 823536, 5673234, 39394572, 268031646),
    "tic_tac_toe": (9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872),
    "kalah": (6, 35, 185, 942, 4690),
    "random_tree": (8, 64, 512, 4096, 32768, 262144, 0),
}


@pytest.mark.parametrize("name", PERFT)
def test_perft(name: str) -> None:
    counter = leaf_counter_of(name)
    start = counter.referee.game.parse("")
    counts = tuple(counter.count(start, depth + 1) for depth in range(len(PERFT[name])))
    assert counts == PERFT[name]
    assert sum(divide(counter.referee.game, start, 4, 2, silent).values()) == PERFT[name][3]


def test_perft_of_kalah_equals_the_plain_rules() -> None:
    counter, rng = leaf_counter_of("kalah"), random.Random(6)
    for seeds in (1, 2, 3, 4, 9):
        board = oracle.Kalah(seeds)
        for _ in range(4):
            assert counter.count(counter.referee.game.parse(board.text()), 4) == board.perft(4)
            if not board.is_over():
                board.play(rng.choice(board.legal_moves()))


PLAIN_RULES = {"tic_tac_toe": oracle.TicTacToe, "connect_four": oracle.ConnectFour, "kalah": oracle.Kalah}


@pytest.mark.parametrize("name", PLAIN_RULES)
def test_random_play_agrees_with_the_plain_rules(name: str) -> None:
    referee, rng = referee_of(name), random.Random(7)
    compared = 0
    while compared < 3_000:
        position, board, played = referee.game.parse(""), PLAIN_RULES[name](), ""
        while True:
            facts, moves = referee.facts(position), referee.legal_moves(position)
            compared += 1
            assert (None if facts.outcome == ONGOING else facts.outcome) == board.result(), played
            if name != "connect_four":
                assert referee.game.text(position) == board.text()
            if facts.is_over:
                break
            assert sorted(moves) == board.legal_moves(), played
            move = rng.choice(moves)
            played += str(move)
            position = referee.play(position, move)
            board.play(move)


class Playthrough(NamedTuple):
    """A recorded game: any change of rules, estimate or text breaks it."""

    start: str
    moves: str
    evaluations: str
    """After each move, for the side then to move."""
    outcome: int
    text: str


PLAYTHROUGHS = {
    "chess": Playthrough(
        "start",
        "g2g3 h7h6 c2c4 g8f6 e2e3 h8h7 b1a3 e7e6 c4c5 f6d5 b2b3 b7b6 a3c4 f7f6 c1b2 d5e3 b3b4 g7g6 b2f6 "
        "d7d5 d2d4 c8b7 d1e2 h6h5 g1h3 e3d1 h1g1 f8d6 c5c6 h7h6 c4d2 b8d7 e2e4 d6e7 f6g7 d7e5 f1g2 e5c4 "
        "g2f3 c4e3 g3g4 d8b8 h3f4 h6h8 f4e6 d1f2 b4b5 h8h7 e4g6",
        "20 24 15 3 42 48 -14 27 7 72 -25 64 -20 89 -79 8 39 6 -57 61 -34 50 -40 81 -65 154 -104 157 -103 155 "
        "-119 125 -12 77 -22 11 13 -19 63 37 18 51 -50 97 -204 65 -48 59 -163",
        -MATE,
        "rq2k3/pbp1b1Br/1pP1N1Q1/1P1p3p/3P2P1/4nB2/P2N1n1P/R3K1R1 b Qq - 0 25",
    ),
    "tic_tac_toe": Playthrough("start", "9 4 8 6 2 5", "-3 1 -2 1 -2 -1", -MATE, ".X.OOO.XX"),
    "connect_four": Playthrough(
        "start",
        "6 5 1 5 7 1 7 1 1 6 4 7 2 7 3",
        "0 -2 2 -4 4 -4 4 -4 4 -4 0 0 -28 28 -2",
        -MATE,
        "112115657677374",
    ),
    "kalah": Playthrough(
        "start",
        "2 4 4 1 6 3 3 6 5 6 3 2 4 2 6 1 6 5 1 3 3 2 5 3 4 6 5 1 2 1 5 3 6 6 4 4 5 6 2 2 4 3 5 5 3 4 6 1 5 4 6",
        "0 -1 0 0 -1 0 -1 0 -1 0 0 0 -1 1 2 -6 5 "
        "-6 5 -8 8 -9 8 -8 7 -8 8 9 -9 9 -10 10 -11 10 -11 9 10 -11 11 -11 11 -12 11 -11 9 -9 -8 6 -6 6 -7",
        DRAW,
        "1,2,1,0,2,1,17/0,0,0,0,0,0,24 s",
    ),
    "random_tree": Playthrough(
        "7:3-9:6:80", "5 3 3 9 1 2", "-6 33 37 35 -5 57", 57, "10011555344492310641:3-9:0:80:57"
    ),
}


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_recorded_playthrough(name: str) -> None:
    referee, record = referee_of(name), PLAYTHROUGHS[name]
    position = referee.game.parse(record.start)
    evaluations = []
    for move in record.moves.split():
        position = referee.play_texts(position, [move])
        evaluations.append(str(referee.facts(position).evaluation))
    assert " ".join(evaluations) == record.evaluations
    assert referee.facts(position).outcome == record.outcome
    assert referee.game.text(position) == record.text
    assert referee.legal_moves(position) == []


@pytest.mark.parametrize(
    ("before", "pit", "after"),
    [
        ("4,4,4,4,4,4,0/4,4,4,4,4,4,0 s", "3", "4,4,0,5,5,5,1/4,4,4,4,4,4,0 s"),  # The last seed earns a turn.
        ("4,4,4,4,4,4,0/4,4,4,4,4,4,0 n", "6", "5,5,5,4,4,4,0/4,4,4,4,4,0,1 s"),
        ("1,0,1,1,1,1,0/1,1,1,1,5,1,0 s", "1", "0,0,1,1,1,1,6/1,1,1,1,0,1,0 n"),  # Capture: pit 2 faces pit 5.
        ("1,0,1,1,1,1,0/1,1,1,1,0,1,0 s", "1", "0,1,1,1,1,1,0/1,1,1,1,0,1,0 n"),  # Nothing to capture.
        ("13,0,0,0,0,0,0/0,0,0,0,0,2,0 s", "1", "0,1,1,1,1,1,5/1,1,1,1,1,0,0 n"),  # Once round: captures at home.
        ("0,1,0,0,0,9,0/1,0,0,0,0,0,3 s", "6", "1,2,0,0,0,0,1/2,1,1,1,1,1,3 n"),  # Skips the opponent's store.
    ],
)
def test_sowing(before: str, pit: str, after: str) -> None:
    referee = referee_of("kalah")
    position = referee.play_texts(referee.game.parse(before), [pit])
    assert referee.game.text(position) == after


@pytest.mark.parametrize(
    ("text", "score"), [("0,0,0,0,0,0,20/0,0,3,0,0,0,25 s", -8), ("1,0,0,0,0,2,9/0,0,0,0,0,0,9 n", -3)]
)
def test_the_seeds_left_are_their_owners(text: str, score: int) -> None:
    referee = referee_of("kalah")
    assert referee.facts(referee.game.parse(text)).outcome == score


def test_tic_tac_toe_is_a_draw() -> None:
    game = load_game("tic_tac_toe")
    for flags in (NO_TABLE, EXACT):
        outcome = searcher_of("tic_tac_toe", flags).run(Job(game.parse(""), 9))
        assert (outcome.score, len(outcome.line)) == (0, 9)


@pytest.mark.parametrize(
    ("columns", "plies", "best"),
    [
        ("112233", 1, "4"),  # Three in the bottom row.
        ("171717", 1, "1"),  # Three in a column.
        ("3344", 3, "25"),  # Two open in the middle of the bottom row become three.
        ("33445", -2, "1234567"),  # Three open ones: either end is blocked in vain.
    ],
)
def test_connect_four_mates_have_their_distance(columns: str, plies: int, best: str) -> None:
    """The same table serves searches at several plies and depths, cold and warm."""
    game = load_game("connect_four")
    searcher = searcher_of("connect_four", EXACT)
    position = game.parse(columns)
    for salt in (1, 2):
        for ply in (0, 1, 6, 3):
            for depth in (abs(plies), 4, 7, 6):
                outcome = searcher.run(Job(position, depth, ply=ply, salt=salt))
                if depth < abs(plies):
                    continue
                expected = MATE - ply - plies if plies > 0 else -MATE + ply - plies
                assert outcome.score == expected
                assert game.move_text(position, outcome.line[0]) in best
                assert len(outcome.line) == abs(plies)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_tree_is_worth_its_minimax_value(seed: int) -> None:
    referee = referee_of("random_tree")

    def grown(position: Any, white: bool) -> oracle.Node:
        facts = referee.facts(position)
        children = (grown(referee.play(position, move), not white) for move in referee.legal_moves(position))
        return oracle.Node(facts.evaluation if white else -facts.evaluation, tuple(children))

    root = referee.game.parse(f"{seed}:1-4:5:50")
    tree = grown(root, white=True)
    for depth in range(1, 6):
        assert value_of("random_tree", root, depth) == oracle.minimax_white(tree, depth)


def test_random_trees_are_as_wide_and_as_deep_as_asked() -> None:
    referee, rng = referee_of("random_tree"), random.Random(8)
    widths = set()
    for step in random_game(referee, rng, referee.game.parse("3:8-16:200:90")):
        assert abs(referee.facts(step.position).evaluation) <= 20_000
        widths.add(len(step.moves))
    assert widths == {0, *range(8, 17)}
    assert len(random_game(referee, rng, referee.game.parse("3:1:200"))) == 201 < MAX_PLY
    assert len(referee.legal_moves(referee.game.parse("3:512:1"))) == 512


_order = load_game("random_tree").order


@njit
def estimate(position: Any, move: int) -> int:
    """Call the compiled `order` from Python: a helper has no wrapper of its own."""
    return _order(position, move)


def test_order_says_how_well_the_first_move_is_chosen() -> None:
    """The share of roots whose first move is a best one grows with `order`, from chance to nearly always."""
    searcher, shares = searcher_of("random_tree", NO_TABLE), []
    referee = searcher.referee
    for order in (0, 60, 80, 100):
        best = 0
        for seed in range(100):
            root = referee.game.parse(f"{seed}:8:5:{order}")
            value = searcher.run(Job(root, 5)).score
            first = max(referee.legal_moves(root), key=lambda move, root=root: estimate(root, move))
            best += -searcher.run(Job(referee.play(root, first), 4)).score == value
        shares.append(best / 100)
    assert shares == sorted(shares)
    assert shares[0] < 0.3
    assert shares[-1] > 0.85
