"""Multi-ProbCut: its bars, its values where it is always right, what it leaves alone, and what Othello gains by it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.bench_prob_cut import play_match
from conftest import silent
from numba import njit

from cluster.executor import ThreadExecutor
from cluster.session import SearchRequest, Session
from search import jit
from search import workspace as at
from search.controls import CONTROL_WORDS, Controls
from search.driver import search
from search.flags import FULL_WIDTH, Flags, Pruning
from search.game_files import load_game
from search.games.othello import prob_cut_fitting as fitting
from search.games.othello.board import SQUARES
from search.games.othello.endgame import SOLVED_SQUARES
from search.games.othello.prob_cut import STAGE_DISCS, prob_cut_stage
from search.games.othello.selfplay import Plan
from search.limits import Limits
from search.referee import Referee
from search.rules import SLOPE_SHIFT, Game, ProbCut, RulesError
from search.searcher import Job, Searcher
from search.solving import solving_flags
from tt_store.layout import WORD_BYTES
from tt_store.segment import Segment

OTHELLO = load_game("othello")
FORETOLD = load_game(str(Path(__file__).parent / "foretold.py"))
ON, OFF = Flags(), Flags(prob_cut=False)
DEPTH = 8
LATE = "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X"

_CONTROL_WORDS = np.zeros(CONTROL_WORDS, np.int64)


@pytest.fixture(scope="module")
def segment() -> Iterator[Segment]:
    with Segment.private(16) as table:
        yield table


def searcher_of(game: Game, table: Segment, flags: Flags) -> Searcher:
    return Searcher(game, table, Controls(_CONTROL_WORDS.ctypes.data), flags=flags, notice=silent)


def midgame(count: int, discs: range, seed: int) -> list[Any]:
    """Return positions of games whose moves look two plies ahead or are random."""
    rng, referee = random.Random(seed), Referee(OTHELLO, silent)
    found: list[Any] = []
    while len(found) < count:
        position = OTHELLO.parse("")
        wanted = rng.choice(discs)
        while referee.legal_moves(position) and (int(position.own) | int(position.other)).bit_count() < wanted:
            position = referee.play(position, rng.choice(referee.legal_moves(position)))
        if referee.legal_moves(position):
            found.append(position)
    return found


def deepened(searcher: Searcher, position: Any, depth: int, salt: int) -> tuple[int, tuple[int, ...], int]:
    """Return the score, the line and the nodes of a search that deepens to a depth."""
    nodes = 0
    for each in range(1, depth + 1):
        outcome = searcher.run(Job(position, each, salt=salt))
        nodes += outcome.statistics.nodes
    return outcome.score, outcome.line, nodes


# The bars


def test_bars_are_the_first_scores_that_foretell_enough() -> None:
    rule = jit.specialise("search.prob_cut", OTHELLO, ON)
    least_above, most_below = rule.least_above, rule.most_below

    @njit
    def bars(row: int, bound: int) -> tuple[int, int]:
        return least_above(row, bound), most_below(row, bound)

    rng = random.Random(1)
    for _ in range(300):
        slope, offset, margin = rng.randrange(1, 600), rng.randrange(-90, 90), rng.randrange(120)
        row = np.array([4, slope, offset, margin], np.int64)
        bound = rng.randrange(-700, 700)
        above, below = bars(row.ctypes.data, bound)

        def foretold(score: int, slope: int = slope, offset: int = offset) -> int:
            return slope * score + (offset << SLOPE_SHIFT)

        highest, lowest = (bound + margin) << SLOPE_SHIFT, (bound - margin) << SLOPE_SHIFT
        assert foretold(above) >= highest > foretold(above - 1)
        assert foretold(below) <= lowest < foretold(below + 1)


def test_rows_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    source = (Path(__file__).parent / "foretold.py").read_text()
    rows = "ProbCut(0, deep, deep // 2, 1 << SLOPE_SHIFT, 0, 0)"
    for number, wrong in enumerate(("(0, 4, 4, 256, 0, 1)", "(-1, 4, 2, 256, 0, 1)", "(0, 4, 2, 0, 0, 1)")):
        game = tmp_path / f"wrong{number}.py"
        game.write_text(source.replace(rows, wrong))
        with pytest.raises(RulesError, match="out of range"):
            load_game(str(game))
    game = tmp_path / "half.py"
    game.write_text(source.replace("def prob_cut_stage", "def another_name"))
    with pytest.raises(RulesError, match="together"):
        load_game(str(game))


# Where it is always right


def test_values_are_the_same_where_every_shallow_search_is_right(segment: Segment) -> None:
    searcher, rng = searcher_of(FORETOLD, segment, ON), random.Random(2)
    for number in range(1, 30):
        value = rng.randrange(-300, 300)
        position = FORETOLD.parse(f"{rng.randrange(1 << 40)}:{value}")
        assert searcher.run(Job(position, 7, salt=number << 32)).score == value
        for alpha in {value - 1, value, value + rng.randrange(-40, 40)}:
            job = Job(position, DEPTH, alpha, alpha + 1, ply=1, salt=number << 32 ^ hash(alpha))
            outcome = searcher.run(job)
            assert (outcome.score > alpha) == (value > alpha)
            # No search of the whole depth proves anything with fewer (Knuth and Moore 1975).
            assert outcome.statistics.nodes < FORETOLD.max_moves ** (DEPTH // 2)


# What it leaves alone


def test_who_may_leave_moves_out_says_so() -> None:
    chess, connect_four = load_game("chess"), load_game("connect_four")
    assert OTHELLO.is_selective(ON)
    assert not OTHELLO.is_selective(OFF)
    assert not OTHELLO.is_selective(FULL_WIDTH)
    assert not OTHELLO.is_selective(Flags(exact_depth=True))
    assert not OTHELLO.is_selective(Flags(Pruning.FAIL_SOFT))
    assert chess.is_selective(ON)
    assert chess.is_selective(OFF)
    assert not connect_four.is_selective(ON)
    assert not OTHELLO.is_selective(solving_flags(OTHELLO, ON))
    assert solving_flags(connect_four, ON).prob_cut


def test_no_variant_but_pvs_has_the_rule() -> None:
    for flags, expected in (
        (ON, True), (OFF, False), (FULL_WIDTH, False), (Flags(exact_depth=True), False), (Flags(Pruning.NONE), False)
    ):  # fmt: skip
        assert expected == jit.specialise("search.prob_cut", OTHELLO, flags).PROB_CUTS
    assert not jit.specialise("search.prob_cut", load_game("tic_tac_toe"), ON).PROB_CUTS


def test_nothing_is_cut_where_the_search_sees_solved_positions() -> None:
    @njit
    def stage(position: Any, depth: int) -> int:
        return prob_cut_stage(position, depth)

    for position in midgame(20, range(4, 62), seed=3):
        left = SQUARES - (int(position.own) | int(position.other)).bit_count()
        for depth in range(1, 2 * left + 1):
            found = stage(position, depth)
            assert found == ((SQUARES - left) // STAGE_DISCS if depth < left - SOLVED_SQUARES else -1)


def test_what_is_solved_is_exact() -> None:
    for flags in (ON, OFF):
        result = search(OTHELLO, OTHELLO.parse(LATE), Limits(), flags=flags, table_mb=4, notice=silent)
        assert (result.score, result.is_solved) == (180, True)
    # A search that was ended before is not solved, whatever it has cut.
    result = search(OTHELLO, midgame(1, range(24, 25), seed=4)[0], Limits(depth=7), table_mb=4, notice=silent)
    assert not result.is_solved


# What Othello gains


def test_midgame_searches_are_smaller_and_say_the_same(segment: Segment) -> None:
    searchers = [searcher_of(OTHELLO, segment, flags) for flags in (OFF, ON)]
    referee = searchers[1].referee
    spent, close = [0, 0], 0
    positions = midgame(10, range(16, 34), seed=5)
    for number, position in enumerate(positions, 1):
        (full, _, full_nodes), (cut, line, nodes) = (
            deepened(searcher, position, DEPTH, number << 32) for searcher in searchers
        )
        spent = [spent[0] + full_nodes, spent[1] + nodes]
        assert line
        assert tuple(referee.legal_prefix(position, line)[0]) == line
        stage = (int(position.own) | int(position.other)).bit_count() // STAGE_DISCS
        errors = [row.deviation for row in OTHELLO.prob_cuts if (row.stage, row.deep) == (stage, DEPTH)]
        close += abs(full - cut) <= max(errors)
    print(f"{spent[0]} nodes became {spent[1]}: {spent[0] / spent[1]:.2f}")
    assert spent[1] < 0.7 * spent[0]
    assert close >= 8


def test_one_worker_finds_the_same_each_time() -> None:
    position = midgame(1, range(20, 21), seed=6)[0]
    found = [search(OTHELLO, position, Limits(depth=DEPTH), table_mb=4, notice=silent) for _ in range(2)]
    assert found[0].statistics == found[1].statistics
    assert (found[0].score, found[0].line) == (found[1].score, found[1].line)


def test_a_search_that_was_stopped_inside_a_shallow_one_leaves_nothing_behind(segment: Segment) -> None:
    searcher, position = searcher_of(OTHELLO, segment, ON), midgame(1, range(20, 21), seed=6)[0]
    for limit in range(1_500, 9_000, 700):
        outcome = searcher.run(Job(position, 10, salt=limit << 20, node_limit=limit))
        assert outcome.status == at.OUT_OF_NODES
        assert searcher._memory[at.PROBE_NESTING // WORD_BYTES] == 0


def test_two_workers_agree_on_legal_lines() -> None:
    referee = Referee(OTHELLO, silent)
    with Session(OTHELLO, ThreadExecutor(OTHELLO, 2, 4, flags=ON, notice=silent), 4) as session:
        for position in midgame(4, range(18, 30), seed=7):
            report = session.search(SearchRequest(OTHELLO.text(position), limits=Limits(depth=10)))
            result = report.result
            assert (result.depth, result.is_solved) == (10, False)
            assert tuple(referee.legal_prefix(position, result.line)[0]) == result.line


def test_a_match_counts_all_games() -> None:
    tally = play_match(pairs=2, nodes=300, seed=1)
    assert sum(tally.counts) == 4


# The tuner


@pytest.fixture(scope="module")
def scores() -> list[fitting.Scores]:
    return list(fitting.search_positions(6, 4, seed=1, plan=Plan(depth=1, solved_squares=8, table_mb=1)))


def test_scores_come_back_from_their_lines(scores: list[fitting.Scores]) -> None:
    assert len(scores) >= 20
    for each in scores:
        assert 3 <= len(each.scores) <= 4
        assert fitting.read_scores(fitting.scores_line(each)) == each
    with pytest.raises(RulesError, match="must end with scores"):
        fitting.read_scores(OTHELLO.text(OTHELLO.parse("")) + ";")
    again = fitting.search_positions(1, 4, seed=1, plan=Plan(depth=1, solved_squares=8, table_mb=1))
    assert list(again) == scores[: fitting.A_GAME]


def test_a_planted_line_is_found_again(scores: list[fitting.Scores]) -> None:
    rng = np.random.default_rng(1)
    planted = [
        fitting.Scores(each.position, (shallow, 0, round(1.25 * shallow + 12 + noise)))
        for each in scores * 40
        for shallow, noise in [(int(rng.integers(-300, 300)), rng.normal(0, 20))]
    ]
    rows = [row for row in fitting.fit(planted) if (row.deep, row.shallow) == (3, 1)]
    assert rows
    for row in rows:
        assert abs(row.slope / (1 << SLOPE_SHIFT) - 1.25) < 0.05
        assert abs(row.offset - 12) < 8
        assert abs(row.deviation - 20) < 6


def test_the_command_searches_and_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "scores.txt"
    monkeypatch.setattr(fitting, "FEWEST", 10)
    fitting.main(["search", str(file), "--games", "25", "--depth", "4", "--discs", "12", "40"])
    discs = [fitting.read_scores(line).stage * STAGE_DISCS for line in file.read_text().splitlines()]
    assert len(discs) == 25 * fitting.A_GAME
    assert (min(discs), max(discs)) == (12, 36)
    fitting.main(["fit", str(file)])
    output = capsys.readouterr().out
    module: dict[str, Any] = {}
    exec(compile("from __future__" + output.split("from __future__", 1)[1], "prob_cuts", "exec"), module)
    assert module["PROB_CUTS"]
    assert all(isinstance(row, ProbCut) for row in module["PROB_CUTS"])
