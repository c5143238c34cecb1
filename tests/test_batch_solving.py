"""`--solve` of a batch: scores proved, or who wins, judged by what the input expects; on one worker or more each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from conftest import silent

from cluster.batch.index import AnswerIndex
from cluster.batch.jobs import PositionJob, pack_jobs, unpack_jobs
from cluster.batch.journal import Journal
from cluster.batch.planner import Planner
from cluster.batch.pool import open_pool
from cluster.batch.results import ResultRow
from cluster.batch.rows import Expectation, InputRow, Overrides
from cluster.batch.runner import Runner
from cluster.batch.settings import RunSettings, SettingsError
from cluster.records import RecordError
from cluster.request import SearchRequest
from cluster.simulated_executor import ClusterModel
from cluster.simulation import simulate
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.rules import Game, RulesError
from search.solving import Question, question_of

WON, LOST, DRAWN = "226744515337", "2252576253462244111563365343671351441", "23163416124767223154467471272416755633"
"""Scores +7, -1 and 0."""
Solve = Callable[[RunSettings, list[InputRow]], list[ResultRow]]


def row_of(position: str, score: int, **fields: object) -> InputRow:
    return InputRow(0, "here", 1, position=position, expectation=Expectation(score=score))._replace(**fields)


@pytest.fixture
def run(connect_four: Game) -> Solve:
    def rows_of(settings: RunSettings, rows: list[InputRow]) -> list[ResultRow]:
        numbered = [row._replace(index=index) for index, row in enumerate(rows)]
        with Journal.temporary() as journal, closing(open_pool(connect_four, settings, 2, None, silent)) as pool:
            planner = Planner(connect_four, Referee(connect_four), settings)
            runner = Runner(planner, pool, settings, journal, AnswerIndex())
            return [row for row in runner.run(iter(numbered)) if row is not None]

    return rows_of


@pytest.mark.parametrize("split", [1, 2])
def test_scores_are_proved_whatever_depth_a_row_asks_for(run: Solve, split: int) -> None:
    settings = RunSettings(Limits(), table_mb=4, split=split, solve=Question.SCORE)
    rows = [row_of(WON, 7), row_of(LOST, -1), row_of(DRAWN, 0, overrides=Overrides(depth=1, mate=1)), row_of(WON, 6)]
    found = run(settings, rows)
    assert [(row.score_text, row.bound, row.solved) for row in found] == [
        ("+7", "exact", True), ("-1", "exact", True), ("0", "exact", True), ("+7", "exact", False),
    ]  # fmt: skip
    assert found[0].best_move == "4"


def test_who_wins_is_judged_by_the_sign_and_the_move(run: Solve) -> None:
    settings = RunSettings(Limits(), table_mb=4, solve=Question.WDL)
    rows = [row_of(WON, 7), row_of(LOST, -1), row_of(DRAWN, 0), row_of(WON, -7), row_of(LOST, 0), row_of(WON, 0)]
    wrong_move = row_of(WON, 7, expectation=Expectation(best_moves=("1",), score=7))
    found = run(settings, [*rows, wrong_move])
    assert [row.solved for row in found] == [True, True, True, False, False, False, False]
    assert [row.bound for row in found[:3]] == ["lower", "upper", "exact"]
    assert found[0].score_text is not None
    assert found[0].score_text.startswith("at least ")
    assert found[0].mate_in is None


def test_a_proof_that_is_not_finished_says_so(run: Solve) -> None:
    (found,) = run(RunSettings(Limits(nodes=50), table_mb=4, solve=Question.SCORE), [row_of("4", 0)])
    assert (found.bound, found.depth, found.solved) == (None, 0, False)
    assert found.best_move is not None


def test_what_cannot_be_proved_is_refused() -> None:
    for options in ({"limits": Limits(depth=4)}, {"limits": Limits(mate=2)}, {"limits": Limits(), "multipv": 2}):
        with pytest.raises(SettingsError, match="leave out depth, mate and multipv"):
            RunSettings(solve=Question.SCORE, **options)
    with pytest.raises(RulesError, match="chess cannot be solved"):
        RunSettings(Limits(), solve=Question.SCORE).flags(load_game("chess"))
    with pytest.raises(RulesError, match="score or wdl, not 'win'"):
        question_of("win")
    job = PositionJob(1, "4", (), (0, 0), (), None, None, None, None, 1, None, "win")
    with pytest.raises(RecordError, match="cannot be proved"):
        unpack_jobs(pack_jobs([job]))


def test_a_simulated_cluster_proves_the_same_score(connect_four: Game) -> None:
    request = SearchRequest(WON, solve=Question.SCORE)
    simulation = simulate(connect_four, request, 4, 4.0, ClusterModel(node_rate=1e5), notice=silent)
    assert simulation.report.result.is_solved
    assert simulation.report.score_text() == "+7"
