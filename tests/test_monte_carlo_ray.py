"""Monte Carlo tree search on Ray: two workers grow one tree of their machine, and one may die."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from conftest import silent

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray

from cluster.ray_executor import RayExecutor
from cluster.request import SearchRequest
from cluster.session import Session
from search.flags import Algorithm, Flags
from search.game_files import load_game
from search.limits import Limits

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]

TABLE_MB = 16.0
CENTRE = ("3", "4", "5")
"""Two workers race: which of these has most visits is chance, the edges never have."""


def test_two_workers_share_a_tree_and_one_may_be_killed() -> None:
    notices: list[str] = []
    game, flags = load_game("connect_four"), Flags(algorithm=Algorithm.MCTS)
    executor = RayExecutor(game, 2, TABLE_MB, flags=flags, notice=notices.append)
    with Session(game, executor, TABLE_MB, silent) as session:
        report = session.search(SearchRequest(limits=Limits(nodes=30_000)))
        assert (report.workers, report.machines, report.strategy) == (2, 1, "tree")
        # One tree: every playout of both workers is a visit of the same root.
        assert report.result.statistics.nodes == sum(move.visits for move in report.result.root_moves) == 30_000
        assert report.best_move in CENTRE
        assert executor.exchanged_entries == 0

        victim = next(iter(executor._fleet.members.values()))
        pid = ray.get(victim.actor.ready.remote(), timeout=60)
        timer = threading.Timer(0.4, os.kill, (pid, signal.SIGKILL))
        timer.start()
        survived = session.search(SearchRequest(limits=Limits(time_s=2.5)))
        timer.join()
        assert any(" died and is " in notice for notice in notices)
        assert survived.best_move in CENTRE
        visits = sum(move.visits for move in survived.result.root_moves)
        # Its unfinished slice is in the tree, and in nobody's count.
        assert visits >= survived.result.statistics.nodes > 30_000
