"""max^n and paranoid on two Ray nodes: what one core finds, on every machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SCRIPT = r"""
import json
import warnings

warnings.simplefilter("ignore")
from ray.cluster_utils import Cluster

from cluster.executor import SerialExecutor
from cluster.ray_executor import RayExecutor
from cluster.request import SearchRequest
from cluster.session import Session
from search.algorithms import flags_for
from search.flags import Flags
from search.limits import Limits
from search.game_files import load_game

nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
for _ in range(2):
    nodes.add_node(num_cpus=1)
game = load_game("tricolour:3x3")
rows = []
for algorithm in ("max^n", "paranoid"):
    flags = flags_for(game, algorithm, Flags(exact_depth=algorithm == "paranoid"))
    for executor in (
        RayExecutor(game, None, 8, nodes.address, flags=flags, notice=lambda _line: None),
        SerialExecutor(game, 1, 8.0, flags=flags, notice=lambda _line: None),
    ):
        with Session(game, executor, 8) as session:
            for text in ("", "RGB/.../...", ".../.RG/.BR"):
                report = session.search(SearchRequest(text, limits=Limits(depth=7)))
                answer = [report.result.score, report.values] + ([report.principal_variation] if report.values else [])
                rows.append([algorithm, text, answer, report.machines])
nodes.shutdown()
print(json.dumps(rows))
"""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_two_machines_find_what_one_core_finds() -> None:
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=170, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    rows = json.loads(run.stdout.splitlines()[-1])
    answers: dict[tuple[str, str], list[object]] = {}
    for algorithm, text, answer, machines in rows:
        answers.setdefault((algorithm, text), []).append((answer, machines))
    assert len(answers) == 6
    for (on_ray, machines), (on_one_core, _one) in answers.values():
        assert machines == 2
        assert on_ray == on_one_core
