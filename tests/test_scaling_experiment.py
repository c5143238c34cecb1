"""A small experiment from its design to its report: interrupted, gone on with, checked, written down."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import silent
from processes import descendants

from cluster.scaling.agreement import check, differences
from cluster.scaling.experiment import run_experiment
from cluster.scaling.filler import filled
from cluster.scaling.plan import LIMIT, PlannedRun
from cluster.scaling.positions import PositionLine
from cluster.scaling.presets import Design, with_preset
from cluster.scaling.records import RunRecord
from cluster.scaling.report import Report, write_report
from cluster.scaling.results import FILE_NAME, Results, ResultsError
from cluster.scaling.summary import summarise, validations
from cluster.scaling.watch import Forecast
from tt_store.errors import RunFailedError

DESIGN = Design(
    "connect_four", (PositionLine(1, "33", 12), PositionLine(2, "444", 13)), strategies=("dynamic", "root"), repeats=2,
    tables_mb=(16.0,), simulate=(4,),
)  # fmt: skip
REAL_RUNS, SIMULATED_RUNS = 2 * 2 * 6, 2 * (4 + 2)
"""Two positions, two repeats, single, dynamic and root with one and two workers, the limit; each simulated once."""


class Watcher:
    """Counts, and interrupts after so many runs."""

    def __init__(self, most: int | None = None) -> None:
        self.planned: list[PlannedRun] = []
        self.done, self._most = 0, most

    def begin(self, runs: Sequence[PlannedRun], done: Sequence[RunRecord]) -> None:
        self.planned = list(runs)

    def say(self, what: str) -> None:
        pass

    def start(self, run: PlannedRun) -> None:
        pass

    def finish(self, record: RunRecord) -> None:
        self.done += 1
        if self.done == self._most:
            raise KeyboardInterrupt


def experiment(folder: Path, design: Design = DESIGN, most: int | None = None, **options: bool) -> Results:
    return run_experiment(design, folder, Watcher(most), notice=silent, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an experiment that was interrupted twice, once in the middle of a line."""
    folder = tmp_path_factory.mktemp("scaling") / "experiment"
    with pytest.raises(KeyboardInterrupt):
        experiment(folder, most=7)
    with (folder / FILE_NAME).open("ab") as file:
        file.write(b'{"kind": "run", "problem": {"num')
    with pytest.raises(KeyboardInterrupt):
        experiment(folder, most=REAL_RUNS - 7 + 3)
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return experiment(folder)


def test_an_interrupted_experiment_equals_another_row_for_row(results: Results, tmp_path: Path) -> None:
    watcher = Watcher()
    whole = run_experiment(DESIGN, tmp_path, watcher, notice=silent)
    assert len(results.records) == len(whole.records) == watcher.done == REAL_RUNS + SIMULATED_RUNS
    for mine, other, planned in zip(results.records, whole.records, watcher.planned, strict=True):
        assert mine.key == other.key == planned.key
        assert (mine.scores, mine.reached_depth, mine.is_solved) == (other.scores, other.reached_depth, other.is_solved)
        if mine.configuration.strategy == "single":
            assert mine.nodes == other.nodes
    assert len(results.sessions) == 3


def test_what_is_read_back_is_what_was_written(results: Results, folder: Path) -> None:
    with Results(folder, DESIGN, results.sessions[-1]["commit"]) as again:
        assert [replace(record, spans=()) for record in again.records] == [
            replace(record, spans=()) for record in results.records
        ]
        assert (again.costs, again.models, again.sessions) == (results.costs, results.models, results.sessions)
        kept = [record for record in again.records if record.spans]
        assert {record.configuration.strategy for record in kept} == {"dynamic"}


def test_a_finished_experiment_runs_nothing(results: Results, folder: Path) -> None:
    watcher = Watcher()
    run_experiment(DESIGN, folder, watcher, notice=silent)
    assert watcher.done == 0


def test_the_factors_give_each_runs_speed_up(results: Results) -> None:
    rows = summarise(results.records, "threads")
    parallel = [row for row in rows if row.decomposition is not None]
    assert len(parallel) == 5 + 4 + 2
    for row in parallel:
        assert row.identity == pytest.approx(1.0, abs=0.01)
        assert row.decomposition is not None
        assert row.decomposition.identity == pytest.approx(1.0, abs=0.01)


def test_every_configuration_stands_beside_its_baseline_and_limit(results: Results) -> None:
    rows = summarise(results.records, "threads")
    single = next(row for row in rows if row.configuration.strategy == "single")
    assert single.speedup == pytest.approx((1.0, 1.0, 1.0))
    for row in rows:
        assert row.sequential_s > 0
        assert len(row.pairs) == 2
        if not row.is_simulated:
            assert row.sequential_s == single.time_s
        if row.configuration.workers == 2 and not row.is_simulated and row.configuration.strategy != LIMIT:
            assert row.limit is not None
            assert row.share_of_limit is not None


def test_simulated_times_are_those_of_the_measured_costs(results: Results) -> None:
    rows = summarise(results.records, "threads")
    assert len(validations(rows)) == 4
    for record in results.records:
        if record.configuration.address == "simulated":
            use = next(
                use for use in results.models
                if (use.workers, use.is_validation) == (record.configuration.workers, record.is_validation)
                and record.nodes / record.busy_s == pytest.approx(use.model.node_rate, rel=0.02)
            )  # fmt: skip
            assert use.model.latency_s == results.costs["threads"].latency_s
    # One worker without latency to speak of is the sequential search.
    alone = next(item for item in validations(rows) if item.row.configuration.workers == 1)
    assert alone.row.decomposition is not None
    assert alone.row.decomposition.search_overhead == pytest.approx(0.0, abs=0.05)


def test_the_simulator_is_judged_by_the_problems_that_it_had(results: Results) -> None:
    some = [item for item in results.records if item.configuration.address != "simulated" or item.problem.number == 1]
    for item in validations(summarise(some, "threads")):
        (real,) = (pair for pair in item.real.pairs if pair.problem.number == 1)
        assert (item.problems, item.real_s, item.sequential_s) == (1, real.record.time_s, real.baseline.time_s)
        assert item.predicted / item.speedup == pytest.approx(1 / item.ratio.value)


def test_another_design_is_refused(results: Results, folder: Path) -> None:
    with pytest.raises(ResultsError, match=r"another experiment.*--restart"):
        experiment(folder, replace(DESIGN, repeats=3))
    with pytest.raises(ResultsError, match=r"begun by commit .*, and this is elsewhere"):
        Results(folder, DESIGN, "elsewhere")


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"kind": "run"}\n', b'{"kind": "other"}\n', b"[1]\n"])
def test_a_damaged_file_is_refused(line: bytes, results: Results, folder: Path, tmp_path: Path) -> None:
    content = (folder / FILE_NAME).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE_NAME).write_bytes(content[0] + line + content[1])
    with pytest.raises(ResultsError, match=f"{FILE_NAME}, line 2 is no"):
        Results(tmp_path, DESIGN, results.sessions[-1]["commit"])


def test_a_wrong_value_is_an_error_where_values_are_exact(results: Results) -> None:
    assert differences(results.records) == []
    wrong = next(record for record in results.records if record.configuration.strategy == "dynamic")
    changed = [replace(item, scores=(item.scores[0] + 1,)) if item is wrong else item for item in results.records]
    (found,) = check(changed, exact_depth=False, is_selective=False)
    assert (found.record.key, found.found - found.expected) == (wrong.key, 1)
    with pytest.raises(RunFailedError, match="a wrong value: problem"):
        check(changed, exact_depth=True, is_selective=False)
    solved = [replace(item, is_solved=True) for item in changed]
    with pytest.raises(RunFailedError, match="a wrong value"):
        check(solved, exact_depth=False, is_selective=False)
    assert len(check(solved, exact_depth=False, is_selective=True)) == 1


class Page(HTMLParser):
    """Notes tags that are not closed, what is loaded from elsewhere, and the text."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if tag in ("script", "link", "img", "iframe") or (name.endswith(("href", "src")) and "//" in (value or "")):
                self.loaded.append(f"{tag} {name} {value}")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def page_path(results: Results, folder: Path) -> Path:
    return write_report(Report.of(DESIGN, results), folder)


def test_the_report_stands_by_itself(page_path: Path, folder: Path) -> None:
    content = page_path.read_text()
    page = Page()
    page.feed(content)
    assert page.open == []
    assert page.loaded == []
    assert len(page.ids) == len(set(page.ids))
    assert "@import" not in content
    assert "url(http" not in content
    for word in (
        "Speed-up (SIMULATED", "Is the simulator right?", "machine's limit", "DTS", "Zugzwang", "Seed of the order",
        "numba", "Commit", "sequential s", "All 36 runs found the value",
    ):  # fmt: skip
        assert word in page.text, word
    names = {path.stem for path in (folder / "plots").glob("*.svg")}
    assert names == {path.stem for path in (folder / "plots").glob("*.png")}
    assert names == {
        "speedup", "efficiency", "overheads", "timeline", "iterations", "durations", "speedup-over-time"
    }  # fmt: skip
    assert content.count("<svg") == len(names)


def test_the_summaries_hold_every_configuration(page_path: Path, folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail)
    with (folder / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(summary["rows"]) == 6 + 4 + 2
    for row, other in zip(rows, summary["rows"], strict=True):
        assert float(row["speedup_value"]) == other["speedup"]["value"]
        assert row["strategy"] == other["strategy"]
    assert summary["runs"] == REAL_RUNS + SIMULATED_RUNS


def test_a_time_line_can_be_chosen(results: Results) -> None:
    chosen = Report.of(DESIGN, results, timeline=1).timeline
    assert chosen is not None
    assert chosen.problem.number == 1
    with pytest.raises(Exception, match="problem 9 has no time line"):
        Report.of(DESIGN, results, timeline=9)


def test_weak_scaling_and_throughput_use_the_same_machinery(tmp_path: Path) -> None:
    positions = (PositionLine(1, "33"), PositionLine(2, "444"))
    weak = Design(
        "connect_four",
        positions,
        preset="weak",
        sequential_s=0.05,
        strategies=("dynamic",),
        repeats=1,
        tables_mb=(16.0,),
    )
    found = experiment(tmp_path / "weak", weak)
    depths = {(record.problem.position, record.problem.workers): record.problem.depth for record in found.records}
    assert all(depths[text, 2] >= depths[text, 1] for text in ("33", "444"))
    assert {record.problem.workers for record in found.records if record.configuration.strategy == "dynamic"} == {1, 2}
    batch = with_preset(replace(DESIGN, preset="throughput", repeats=1, simulate=()))
    found = experiment(tmp_path / "batch", batch)
    (one, two) = summarise(found.records, "threads")
    assert (one.configuration.workers, two.configuration.workers) == (1, 2)
    assert two.sequential_s == one.time_s
    write_report(Report.of(batch, found), tmp_path / "batch")


def test_filler_load_ends_with_its_block() -> None:
    before = descendants(os.getpid())
    with filled(2):
        assert len(descendants(os.getpid()) - before) == 2
    assert descendants(os.getpid()) - before == set()


def test_the_forecast_multiplies_what_it_knows(results: Results) -> None:
    forecast = Forecast()
    run = PlannedRun(results.records[0].problem, results.records[0].configuration, 0)
    assert forecast.seconds([run]) is None
    forecast.learn(run.problem, run.configuration, 2.0)
    assert forecast.seconds([run, run]) == pytest.approx(4.0)


def test_the_command_prints_one_object(tmp_path: Path) -> None:
    positions = tmp_path / "positions.csv"
    positions.write_text("position,depth\n4453,9\n")
    words = ["scale", "connect_four", str(positions), "-o", str(tmp_path / "out"), "--repeats", "1", "--table", "4"]
    command = [sys.executable, "-m", "cluster.cli", *words, "--strategy", "dynamic", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(done.stdout)
    assert Path(found["report"]).is_file()
    assert re.search(r"2 workers, dynamic on threads: [\d.]+ times as fast", found["headline"][0])
    refused = subprocess.run([*command, "--workers", "x"], capture_output=True, text=True, timeout=60, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.count("\n") == 1
    assert "--workers takes numbers" in refused.stderr


@pytest.mark.ray
@pytest.mark.slow
def test_a_private_ray_is_measured_beside_threads(tmp_path: Path) -> None:
    design = Design(
        "connect_four", (PositionLine(1, "33", 12),), addresses=("threads", "local"), strategies=("dynamic",),
        repeats=1, tables_mb=(16.0,),
    )  # fmt: skip
    records = experiment(tmp_path, design).records
    assert {record.configuration.address for record in records} == {"threads", "local"}
    single = next(record for record in records if record.configuration.strategy == "single")
    limit = next(
        record
        for record in records
        if record.configuration.strategy == LIMIT and record.configuration.address == "local"
    )
    assert limit.nodes == pytest.approx(2 * single.nodes, rel=0.01)
    one = next(
        record for record in records if record.configuration.workers == 1 and record.configuration.address == "local"
    )
    assert one.nodes == pytest.approx(single.nodes, rel=0.05)
