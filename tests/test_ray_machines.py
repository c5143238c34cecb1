"""Several Ray nodes on this machine: one agent and one table each, one answer, nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tt_store.memory import default_directory

SCRIPT = r"""
import json
import warnings

warnings.simplefilter("ignore")
from ray.cluster_utils import Cluster

from cluster.ray_executor import RayExecutor
from cluster.request import SearchRequest
from cluster.session import Session
from cluster.split_settings import SplitSettings
from search.driver import search
from search.flags import Flags
from search.limits import Limits
from search.game_files import load_game
from tt_store.memory import default_directory

EXACT = Flags(exact_depth=True)
nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
for _ in range(2):
    nodes.add_node(num_cpus=1)
game = load_game("connect_four")
executor = RayExecutor(game, None, 8, nodes.address, flags=EXACT, notice=lambda _line: None)
executor.least_grain_s = 0.0
with Session(game, executor, 8) as session:
    tables = len([*default_directory().glob("rootsplit-*")])
    settings = SplitSettings(grain_s=1e-3, prefix_s=0.0, least_depth=3, team_size=1)
    reports = []
    for strategy in ("root", "dynamic", "team"):
        request = SearchRequest("4453", limits=Limits(depth=14), strategy=strategy, settings=settings)
        reports.append(session.search(request))
true = search(game, game.parse("4453"), Limits(depth=14), flags=EXACT)
nodes.shutdown()
print(json.dumps({
    "true": true.score,
    "exchanged": reports[1].overheads.exchanged_entries,
    "scores": [report.result.score for report in reports],
    "machines": [report.machines for report in reports],
    "workers": [report.workers for report in reports],
    "busy": [len([s for s in report.overheads.busy_s if s > 0]) for report in reports],
    "tables": tables,
}))
"""


@pytest.mark.ray
@pytest.mark.timeout(180)
def test_two_machines_have_a_table_each_and_one_answer() -> None:
    before = set(default_directory().glob("rootsplit-*"))
    environment = os.environ | {"RAY_AUTH_MODE": "disabled", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=170,
        env=environment,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert run.returncode == 0, run.stderr
    row = json.loads(run.stdout.strip().splitlines()[-1])
    assert row["scores"] == 3 * [row["true"]]
    assert row["machines"] == row["workers"] == row["busy"] == [2, 2, 2]
    assert row["exchanged"] > 0
    assert row["tables"] >= 2
    assert set(default_directory().glob("rootsplit-*")) <= before


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_machine_and_an_agent_are_lost_in_the_middle_of_searches_and_replaced() -> None:
    """The campaign of faults in small: `tests/benchmarks/bench_faults.py` has the other faults and the numbers."""
    words = ["--searches", "2", "--faults", "node", "agent", "--depth", "15", "--json"]
    run = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "benchmarks" / "bench_faults.py"), *words],
        capture_output=True,
        text=True,
        timeout=230,
        env=os.environ | {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(Path(__file__).parents[1])},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    row = json.loads(run.stdout.strip().splitlines()[-1])
    for kind, tally in row["faults"]["search"].items():
        assert (tally["runs"], tally["wrong"], tally["hangs"]) == (1, 0, 0), (kind, run.stderr)
        assert len(tally["recovery_s"]) == 1
    assert row["leftovers"] == []
