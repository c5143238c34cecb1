"""What an experiment runs and in which order; designs that make no sense are refused in one sentence."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from cluster.records import WorkerInfo
from cluster.scaling.crew import spread
from cluster.scaling.plan import BATCH, LIMIT, STANDARD, Configuration, Problem, baseline_of, interleaved
from cluster.scaling.positions import PositionLine, read_positions
from cluster.scaling.presets import TABLE_SIZES_MB, Design, read_settings, with_preset
from cluster.split_settings import SplitSettings
from search.rules import Game
from tt_store.errors import RootsplitError

PROBLEMS = [Problem(number, f"p{number}", 10) for number in range(1, 6)]
POSITIONS = (PositionLine(1, "33", 10), PositionLine(2, "44", 11))


def design(**options: object) -> Design:
    return Design("connect_four", POSITIONS, **options)  # type: ignore[arg-type]


def test_each_run_is_planned_once_in_blocks() -> None:
    configurations = design().configurations()
    runs = interleaved(PROBLEMS, configurations, 3, seed=1)
    assert len({run.key for run in runs}) == len(runs) == 3 * len(PROBLEMS) * len(configurations)
    blocks = [key for key, _ in itertools.groupby(runs, key=lambda run: (run.repeat, run.problem))]
    assert len(blocks) == 3 * len(PROBLEMS)
    assert [repeat for repeat, _ in blocks] == sorted(repeat for repeat, _ in blocks)


def test_the_seed_decides_the_order_and_nothing_else() -> None:
    configurations = design().configurations()
    first, same, other = (interleaved(PROBLEMS, configurations, 2, seed) for seed in (1, 1, 2))
    assert first == same
    assert first != other
    assert Counter(first) == Counter(other)
    assert len({tuple(run.configuration for run in first if run.problem == problem) for problem in PROBLEMS}) > 1


def test_the_baseline_and_the_limit_stand_beside_what_is_measured() -> None:
    found = design(addresses=("threads", "local"), workers=(1, 2, 4)).configurations()
    assert Counter(item.strategy for item in found) == {"single": 1, "dynamic": 6, "team": 6, "root": 6, LIMIT: 4}
    assert {baseline_of(item, "threads") for item in found} == {Configuration("threads", "single", 1, 256.0)}
    assert min(item.workers for item in found if item.strategy == LIMIT) == 2


def test_a_clusters_baseline_runs_on_the_cluster() -> None:
    assert design(addresses=("head:6379",)).baseline_address == "head:6379"
    assert design(addresses=("local",)).baseline_address == "threads"


def test_weak_scaling_gives_each_number_of_workers_its_problems() -> None:
    problems = [Problem(1, "33", 9, workers=1), Problem(2, "33", 12, workers=4)]
    runs = interleaved(problems, design(preset="weak", sequential_s=1.0, workers=(1, 4)).configurations(), 1, 1)
    searched = {(run.problem.number, run.configuration.strategy, run.configuration.workers) for run in runs}
    assert searched == {
        (1, "single", 1), (1, "dynamic", 1), (1, "team", 1), (1, "root", 1), (2, "single", 1), (2, "dynamic", 4),
        (2, "team", 4), (2, "root", 4),
        (2, LIMIT, 4),
    }  # fmt: skip


def test_presets_are_designs() -> None:
    throughput = with_preset(design(preset="throughput", workers=(2, 4)))
    assert [(item.strategy, item.workers) for item in throughput.configurations()] == [
        (BATCH, 1),
        (BATCH, 2),
        (BATCH, 4),
    ]
    assert with_preset(design(preset="table")).tables_mb == TABLE_SIZES_MB
    assert with_preset(design(preset="table", tables_mb=(1.0, 2.0))).tables_mb == (1.0, 2.0)
    sweep = with_preset(design(preset="settings"))
    assert len({settings for _, settings in sweep.settings}) == len(sweep.settings) > 4
    assert {item.strategy for item in sweep.configurations()} == {"single", "dynamic", LIMIT}


def test_simulated_clusters_are_no_part_of_the_real_plan() -> None:
    made = design(simulate=(4, 64), machines=(2,), strategies=("dynamic",), workers=(2,))
    assert {item.address for item in made.configurations()} == {"threads"}
    assert [(item.workers, item.machines) for item in made.simulated()] == [(4, 2), (64, 2)]


def test_workers_are_spread_over_machines() -> None:
    infos = [WorkerInfo(machine, number) for number, machine in enumerate("aaabbb")]
    assert [info.worker for info in spread(infos, 3, None)] == [0, 1, 2]
    assert [info.worker for info in spread(infos, 4, 2)] == [0, 3, 1, 4]
    assert [info.worker for info in spread(infos, 4, 1)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"preset": "strange"}, "strange"),
        ({"strategies": ("single",)}, "single"),
        ({"workers": (0,)}, "workers"),
        ({"workers": (100_000,)}, "workers"),
        ({"workers": ()}, "at least one"),
        ({"addresses": ("local", "auto")}, "one Ray"),
        ({"addresses": ("auto",), "filler": True}, "filler"),
        ({"repeats": 0}, "repeats"),
        ({"stretch": 0.0}, "stretch"),
        ({"depth": 5, "is_solving": True}, "one of"),
        ({"depth": -5}, "depth"),
        ({"preset": "weak"}, "--seconds"),
        ({"preset": "throughput", "simulate": (4,)}, "--simulate"),
        ({"machines": (0,)}, "machines"),
        ({"simulate": (0,)}, "workers"),
        ({"simulated_problems": 0}, "at least 1 problem"),
    ],
)
def test_senseless_designs_are_refused(options: dict[str, object], word: str) -> None:
    with pytest.raises(RootsplitError, match=word) as refusal:
        design(**options)
    assert "\n" not in str(refusal.value)


def test_a_position_without_any_depth_is_refused() -> None:
    with pytest.raises(RootsplitError, match=r"line 7 .*--depth"):
        Design("connect_four", (*POSITIONS, PositionLine(7, "5")))


def test_settings_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[patient]\ngrain_s = 0.05\nleast_depth = 3\n[eager]\npv_share = 0.9\n")
    found = dict(read_settings(path))
    assert found[STANDARD] == SplitSettings()
    assert found["patient"] == SplitSettings(grain_s=0.05, least_depth=3)
    assert found["eager"] == SplitSettings(pv_share=0.9)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[a]\nno_such = 1", "no_such"),
        ("[a]\ngrain_s = 'long'", "grain_s"),
        ("[a]\ngrain_s = -1", "grain_s"),
        ("[a]\nleast_depth = 1.5", "least_depth"),
        ("[a]\ngrain_s = true", "grain_s"),
        ("grain_s = 1", "grain_s"),
        ("[standard]\ngrain_s = 1", "standard"),
        ("[a\n", "cannot be read"),
    ],
)
def test_wrong_settings_are_refused(text: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(RootsplitError, match=word) as refusal:
        read_settings(path)
    assert str(path) in str(refusal.value)


def test_positions_bring_their_depths(tmp_path: Path, connect_four: Game) -> None:
    path = tmp_path / "positions.csv"
    path.write_text("position,depth\n33,12\n4453,\n")
    first, second = read_positions(path, connect_four)
    assert (first.line, first.depth, second.depth) == (2, 12, None)


def test_a_wrong_position_names_its_line(tmp_path: Path, connect_four: Game) -> None:
    path = tmp_path / "positions.csv"
    path.write_text("position,depth\n33,12\n99,12\n")
    with pytest.raises(RootsplitError, match=r"positions.csv, line 3: "):
        read_positions(path, connect_four)
