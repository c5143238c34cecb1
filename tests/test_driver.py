"""Iterative deepening on one core: limits, finished games, known values, mates, contempt."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest
from conftest import silent

from search.controls import CONTROL_WORDS, Controls
from search.driver import OneCore, deepen, search
from search.limits import Limits
from search.referee import Referee
from search.results import Iteration, RootResult, SearchResult
from search.rules import Game
from search.scores import DRAW, MATE, mate_distance
from search.searcher import Job, Searcher
from search.statistics import Statistics
from tt_store.segment import Segment

START_DEPTH = 40
"""A depth that takes Connect Four's start many minutes."""
FULL_BOARD = "455714637617614767242476316455122212535333"
LAST_DISC_WINS = "23576321365176526327451563657374712211444"
SOLVED_IN_A_MOMENT = "226744515337"


def run(game: Game, text: str, limits: Limits, contempt: int = 0, table_mb: float = 16.0) -> SearchResult:
    return search(game, game.parse(text), limits, contempt=contempt, table_mb=table_mb, notice=silent)


def text_of(game: Game, result: SearchResult) -> str:
    return game.score_text(result.position, result.score, result.is_solved)


def test_the_depth_limit_is_the_last_iteration(connect_four: Game) -> None:
    seen: list[Iteration] = []
    position = connect_four.parse("4453")
    result = search(connect_four, position, Limits(depth=7), table_mb=1, on_iteration=seen.append, notice=silent)
    assert [iteration.depth for iteration in result.iterations] == list(range(1, 8))
    assert tuple(seen) == result.iterations
    assert result.depth == 7
    assert not result.is_solved
    last = result.iterations[-1]
    assert (result.score, result.line, result.best_move) == (last.score, last.line, last.line[0])


def test_statistics_and_times_add_up(connect_four: Game) -> None:
    result = run(connect_four, "", Limits(depth=9))
    total = Statistics()
    for iteration in result.iterations:
        total = total.merged(iteration.statistics)
    assert result.statistics == total
    assert total.nodes > 1_000
    assert 0 < total.first_move_fail_highs <= total.fail_highs < total.nodes
    assert 0 < total.cutoffs <= total.hits <= total.probes <= total.nodes
    assert all(before.time_s <= after.time_s for before, after in pairwise(result.iterations))
    assert result.iterations[-1].time_s <= result.time_s


@pytest.mark.parametrize("nodes", [1, 2, 10, 1_000, 1_023, 1_024, 1_025, 50_000])
def test_the_node_limit_is_passed_by_one_row_of_leaves_at_most(connect_four: Game, nodes: int) -> None:
    result = run(connect_four, "", Limits(nodes=nodes))
    assert result.statistics.nodes <= nodes + connect_four.max_moves
    if nodes >= 1_000:
        assert result.statistics.nodes >= nodes
        assert result.depth >= 3


def test_the_node_limit_holds_for_wide_trees(random_tree: Game) -> None:
    result = run(random_tree, "3:100-200:30", Limits(nodes=5_000))
    assert 5_000 <= result.statistics.nodes <= 5_000 + 200


def test_a_single_node_gives_a_legal_move(connect_four: Game) -> None:
    # Column 4 is full: the move that the game would try first.
    searched = run(connect_four, "444444", Limits(nodes=1))
    assert searched.best_move in Referee(connect_four, silent).legal_moves(searched.position)
    assert searched.line[0] == searched.best_move


def test_a_root_search_that_never_finishes_gives_any_legal_move_and_the_estimate(connect_four: Game) -> None:
    referee = Referee(connect_four, silent)
    position = connect_four.parse("444444")
    stopped = RootResult(12345, (), Statistics(nodes=5), is_finished=False)
    result = deepen(lambda _depth, _window, _left_out: stopped, referee, position, Limits())
    assert result.best_move in referee.legal_moves(position)
    assert result.line == (result.best_move,)
    assert result.score == referee.facts(position).evaluation
    assert (result.depth, result.iterations, result.is_solved) == (0, (), False)
    assert result.statistics.nodes == 5


def test_the_time_limit_is_kept(connect_four: Game) -> None:
    run(connect_four, "", Limits(depth=1))
    started = time.monotonic()
    result = run(connect_four, "", Limits(depth=START_DEPTH, time_s=0.3))
    elapsed_s = time.monotonic() - started
    assert 0.25 < elapsed_s < 2
    assert 1 <= result.depth < START_DEPTH
    assert result.best_move is not None
    assert result.time_s == pytest.approx(elapsed_s, abs=0.5)


def test_a_time_limit_leaves_no_thread(connect_four: Game) -> None:
    before = threading.active_count()
    run(connect_four, "4453", Limits(depth=3, time_s=60.0))
    assert threading.active_count() == before


def test_more_seconds_than_a_clock_can_wait_for_are_no_limit(tic_tac_toe: Game) -> None:
    assert run(tic_tac_toe, "", Limits(time_s=1e300)).is_solved


def test_tic_tac_toe_is_a_draw(tic_tac_toe: Game) -> None:
    result = run(tic_tac_toe, "", Limits())
    assert (result.score, result.depth, result.is_solved) == (DRAW, 9, True)
    assert len(result.line) == 9


def test_a_depth_beyond_the_end_of_the_game_is_not_searched(tic_tac_toe: Game) -> None:
    assert run(tic_tac_toe, "XOX......", Limits(depth=30)).depth <= 6


@pytest.mark.parametrize(
    ("columns", "score_text", "best_move"),
    [
        (SOLVED_IN_A_MOMENT, "+7", 4),
        ("475772722323", "+4", None),
        (FULL_BOARD[:-1], "0", int(FULL_BOARD[-1])),
        (LAST_DISC_WINS, "+1", None),
    ],
)
def test_connect_four_scores_are_exact(
    connect_four: Game, columns: str, score_text: str, best_move: int | None
) -> None:
    result = run(connect_four, columns, Limits())
    assert text_of(connect_four, result) == score_text
    assert result.is_solved
    assert result.best_move == best_move or best_move is None
    distance = mate_distance(result.score)
    if distance is not None:
        # Deepening ends with the iteration that proves it.
        assert result.depth == distance


def test_a_long_win_is_exact(connect_four: Game) -> None:
    result = run(connect_four, "1413112", Limits(), table_mb=64)
    assert (text_of(connect_four, result), result.score, result.is_solved) == ("+5", MATE - 27, True)


@pytest.mark.parametrize(
    ("columns", "score", "score_text"),
    [(FULL_BOARD, DRAW, "0"), ("1212121", -MATE, "-18")],
)
def test_a_finished_game_has_no_move_and_its_exact_score(
    connect_four: Game, columns: str, score: int, score_text: str
) -> None:
    result = run(connect_four, columns, Limits(depth=5))
    assert (result.best_move, result.line, result.iterations) == (None, (), ())
    assert (result.score, result.is_solved, result.statistics.nodes) == (score, True, 0)
    assert text_of(connect_four, result) == score_text


def test_a_mate_limit_ends_the_search_when_so_short_a_win_is_proved(connect_four: Game) -> None:
    full = run(connect_four, SOLVED_IN_A_MOMENT, Limits())
    distance = mate_distance(full.score)
    assert distance == 17
    moves = (distance + 1) // 2
    assert run(connect_four, SOLVED_IN_A_MOMENT, Limits(mate=moves)).score == full.score
    # A win that takes longer than asked does not end it: depth does.
    result = run(connect_four, SOLVED_IN_A_MOMENT, Limits(mate=moves - 1, depth=12))
    assert result.depth == 12


def test_a_mate_limit_takes_a_longer_win_that_lies_beyond_the_depth(connect_four: Game) -> None:
    referee = Referee(connect_four, silent)

    def proves_a_win_at_once(_depth: int, _window: object, _left_out: object) -> RootResult:
        return RootResult(MATE - 9, (4,), Statistics(), is_finished=True)

    result = deepen(proves_a_win_at_once, referee, connect_four.parse(""), Limits(mate=5))
    assert (result.depth, result.is_solved) == (1, False)
    result = deepen(proves_a_win_at_once, referee, connect_four.parse(""), Limits(mate=4))
    assert (result.depth, result.is_solved) == (9, True)


def test_a_mate_limit_ignores_losses(connect_four: Game) -> None:
    lost = RootResult(-MATE + 8, (4,), Statistics(), is_finished=True)
    result = deepen(
        lambda _depth, _window, _left_out: lost, Referee(connect_four, silent), connect_four.parse(""), Limits(mate=4)
    )
    assert (result.depth, result.is_solved, result.score) == (8, True, -MATE + 8)


def test_a_warm_table_gives_the_same_mate_distance(connect_four: Game) -> None:
    position = connect_four.parse(SOLVED_IN_A_MOMENT)
    with Segment.private(16, control_words=CONTROL_WORDS) as segment:
        searcher = Searcher(connect_four, segment, Controls(segment.control_address), notice=silent)
        scores, nodes = [], []
        for _ in range(3):
            root_search = OneCore(searcher, Job(position, depth=1), Limits())
            result = deepen(root_search, searcher.referee, position, Limits())
            scores.append(result.score)
            nodes.append(result.statistics.nodes)
            segment.advance_generation()
    assert scores == [MATE - 17] * 3
    assert nodes[1] < nodes[0] / 2


@pytest.mark.parametrize("text", ["." * 9, "X........", "X...O...."])
@pytest.mark.parametrize("contempt", [-7, 7, 300])
def test_contempt_prices_a_draw_for_the_side_that_the_search_is_for(
    tic_tac_toe: Game, text: str, contempt: int
) -> None:
    result = run(tic_tac_toe, text, Limits(), contempt=contempt)
    assert (result.score, result.is_solved) == (-contempt, True)


def test_contempt_leaves_decided_games_alone(connect_four: Game) -> None:
    assert run(connect_four, SOLVED_IN_A_MOMENT, Limits(), contempt=50).score == MATE - 17


def test_a_solved_position_stops_deepening(connect_four: Game) -> None:
    # Three in a row, open on both sides: the next disc wins.
    result = run(connect_four, "415161", Limits(depth=20))
    assert (result.score, result.depth, result.is_solved) == (MATE - 1, 1, True)
