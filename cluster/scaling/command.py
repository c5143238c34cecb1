"""``rootsplit scale``: parses, calls, prints; no logic of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from cluster.cli_options import AlgorithmOption, GameArgument, JsonOption
from tt_store.errors import RootsplitError

_Value = TypeVar("_Value")


class ScaleError(RootsplitError):
    """Words of the command line that make no sense."""


def scale(
    game: GameArgument,
    positions: Annotated[
        Path, typer.Argument(help="Positions, in any format of a batch; JSONL and CSV may say each one's depth.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report; goes on with what is in it.")],
    preset: Annotated[str, typer.Option(help="strong, weak, throughput, table or settings.")] = "strong",
    workers: Annotated[str, typer.Option(help="Numbers of workers, such as 1,2,4.")] = "1,2",
    address: Annotated[
        str, typer.Option(help="Where: threads, local, auto or host:port; several such as threads,local.")
    ] = "threads",
    machines: Annotated[str, typer.Option(help="Spread workers over so many machines, such as 1,2.")] = "",
    strategy: Annotated[
        str | None,
        typer.Option(help="team, dynamic, root or several, as far as the algorithm has them; single is always there."),
    ] = None,
    algorithm: AlgorithmOption = None,
    playouts: Annotated[int | None, typer.Option(help="Of mcts, for positions whose line says no nodes.")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="TOML file: one table a variant of the splitter's numbers.")
    ] = None,
    depth: Annotated[int | None, typer.Option(help="Plies, for positions whose line says none.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Choose each depth so that the sequential search takes at most so long.")
    ] = None,
    solve: Annotated[bool, typer.Option("--solve", help="Prove each position's score, as search does.")] = False,
    repeats: Annotated[int, typer.Option(help="How often each run is made.")] = 3,
    table: Annotated[str, typer.Option(help="Size of each machine's table in MB; several such as 64,256.")] = "256",
    exact_depth: Annotated[bool, typer.Option("--exact-depth", help="Values may not differ; somewhat slower.")] = False,
    warm: Annotated[bool, typer.Option("--warm", help="Leave in the table what the run before has found.")] = False,
    filler: Annotated[bool, typer.Option("--filler", help="Keep idle cores busy, for an even clock.")] = False,
    simulate: Annotated[str, typer.Option(help="Simulate clusters of so many workers, such as 4,16,64.")] = "",
    simulated_problems: Annotated[int | None, typer.Option(help="Simulate only the first so many problems.")] = None,
    stretch: Annotated[float, typer.Option(help="Simulated nodes take so many times as long.")] = 1.0,
    workers_a_machine: Annotated[int, typer.Option(help="Of a simulated cluster.")] = 16,
    timeline: Annotated[int | None, typer.Option(help="Number of the problem whose time line is drawn.")] = None,
    seed: Annotated[int, typer.Option(help="Of the order of runs.")] = 1,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away what the folder holds.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure how search scales with workers, and write a report."""
    from cluster.scaling.experiment import run_experiment
    from cluster.scaling.plan import STANDARD
    from cluster.scaling.positions import read_positions
    from cluster.scaling.presets import Design, read_settings, with_preset
    from cluster.scaling.report import Report, write_report
    from cluster.scaling.watch import ExperimentProgress
    from cluster.split_settings import SplitSettings
    from cluster.strategies import strategies_of
    from search.algorithms import chosen
    from search.flags import Algorithm
    from search.game_files import load_game

    rules = load_game(game)
    used = chosen(rules, algorithm)
    possible = strategies_of(used)
    design = with_preset(
        Design(
            game=game,
            positions=read_positions(positions, rules),
            algorithm=Algorithm.MCTS.label if used == Algorithm.MCTS else algorithm,
            playouts=playouts,
            addresses=_list(address, str, "--address"),
            workers=_list(workers, int, "--workers"),
            strategies=possible if strategy is None else _list(strategy, str, "--strategy"),
            machines=_list(machines, int, "--machines"),
            tables_mb=_list(table, float, "--table"),
            settings=((STANDARD, SplitSettings()),) if settings is None else read_settings(settings),
            preset=preset,
            depth=depth,
            sequential_s=seconds,
            is_solving=solve,
            repeats=repeats,
            seed=seed,
            exact_depth=exact_depth,
            is_cold=not warm,
            filler=filler,
            simulate=_list(simulate, int, "--simulate"),
            simulated_problems=simulated_problems,
            stretch=stretch,
            workers_a_machine=workers_a_machine,
        )
    )
    with ExperimentProgress() as progress:
        results = run_experiment(design, output, progress, restart=restart)
    report = Report.of(design, results, timeline)
    try:
        path = write_report(report, output)
    except OSError as error:
        raise ScaleError(f"{error.filename} cannot be written: {error.strerror}") from None
    if as_json:
        print(json.dumps(report.as_json() | {"report": str(path)}, ensure_ascii=False))
        return
    for content in report.tables():
        print(content.text(), end="\n\n")
    print(report.agreement())
    for warning in report.warnings:
        print(f"note: {warning}")
    print(f"report: {path}")


def _list(text: str, kind: Callable[[str], _Value], option: str) -> tuple[_Value, ...]:
    """Return the values of a list with commas, each once, in their order."""
    try:
        return tuple(dict.fromkeys(kind(word.strip()) for word in text.split(",") if word.strip()))
    except ValueError:
        raise ScaleError(f"{option} takes numbers with commas between them, not {text!r}") from None
