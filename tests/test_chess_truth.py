"""Positions whose answer is proved: each record of the set, with the limits that it took."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import silent

from cluster.executor import ThreadExecutor
from cluster.request import SearchRequest
from cluster.session import Session, open_session
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.rules import Game
from search.scores import MATE, mate_distance

NODES = {"fine70": 3_000_000, "zugzwang_1": 1_500_000, "zugzwang_2": 1_500_000, "underpromo_knight": 100_000}
DEFAULT_NODES = 400_000
LEAST_WIN, MOST_DRAW = 150, 50
"""Scores that count as won and as drawn, in hundredths of a pawn."""
UNPROVED_DRAWS = {"fortress_bishops": 150}
"""A draw that the search does not prove at any depth: the evaluation knows no fortresses. The score must stay below
what wins elsewhere."""


@pytest.fixture(scope="module")
def chess() -> Game:
    return load_game("chess")


@pytest.fixture(scope="module")
def records(data_file: Callable[[str], Path]) -> list[dict[str, Any]]:
    lines = data_file("chess/special/known_truth.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def moves_to_mate(score: int) -> int | None:
    plies = mate_distance(score)
    if plies is None:
        return None
    return (plies + 1) // 2 if plies > 0 else -(-plies // 2)


def faults(game: Game, record: dict[str, Any]) -> list[str]:
    """Return what differs from the truth."""
    expected, found = record["expect"], []
    referee = Referee(game, silent)
    position = referee.play_texts(game.parse(record["fen"]), record["moves"])
    facts, legal = referee.facts(position), referee.legal_moves(position)
    if "terminal" in expected and "claimable" not in expected["terminal"]:
        outcome = -MATE if expected["terminal"] == "checkmate" else 0
        return [] if facts.is_over and facts.outcome == outcome else [f"outcome {facts.outcome}"]
    if "legal" in expected and len(legal) != expected["legal"]:
        found.append(f"{len(legal)} legal moves")
    nodes = NODES.get(record["id"], DEFAULT_NODES)
    with Session(game, ThreadExecutor(game, 1, 16.0, notice=silent), 16.0, silent) as session:
        report = session.search(SearchRequest(record["fen"], tuple(record["moves"]), Limits(nodes=nodes)))
    score, move = report.result.score, report.line_texts[-1][0]
    if "mate" in expected and moves_to_mate(score) != expected["mate"]:
        found.append(f"mate {moves_to_mate(score)}")
    if "bm" in expected and move not in expected["bm"]:
        found.append(f"move {move}")
    if expected.get("wdl") == "win" and score < LEAST_WIN:
        found.append(f"score {score} does not win")
    if expected.get("wdl") == "draw" and abs(score) > UNPROVED_DRAWS.get(record["id"], MOST_DRAW):
        found.append(f"score {score} is no draw")
    if expected.get("score") == "cp 0" and score != 0:
        found.append(f"score {score}")
    return found


@pytest.mark.slow
def test_every_proved_record(chess: Game, records: list[dict[str, Any]]) -> None:
    assert len(records) == 39
    wrong = {record["id"]: found for record in records if (found := faults(chess, record))}
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("moves", [1, 2, 3, 4])
def test_every_mate_of_so_many_moves(chess: Game, data_file: Callable[[str], Path], moves: int, workers: int) -> None:
    """Each mate has its distance, quiet key moves of composed ones too, and the whole line to it."""
    referee = Referee(chess, silent)
    wrong = []
    fens = [line for line in data_file(f"chess/mate/mate{moves}.fen").read_text().splitlines() if line.strip()]
    requests = [SearchRequest(fen, (), Limits(mate=moves, nodes=30_000_000)) for fen in fens]
    with open_session("chess", requests[0], workers, 16.0, notice=silent) as session:
        for request in requests:
            report = session.search(request)
            _, end = referee.legal_prefix(report.result.position, report.result.line)
            is_whole = len(report.result.line) == 2 * moves - 1 and referee.facts(end).outcome == -MATE
            if moves_to_mate(report.result.score) != moves or not is_whole:
                wrong.append((request.position, report.result.score, report.line_texts[-1]))
    assert not wrong
