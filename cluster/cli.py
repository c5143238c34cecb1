"""The command line: parses, calls, prints; no logic of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cluster.batch.command import analyse
from cluster.cli_options import (
    AddressOption,
    AlgorithmOption,
    GameArgument,
    HangAfterOption,
    JsonOption,
    TableDirOption,
)
from cluster.departure import depart
from cluster.match.command import match
from cluster.scaling.command import scale
from tt_store.errors import RootsplitError

DEFAULT_TIME_S = 10.0
DEFAULT_TABLE_MB = 64.0


class InterruptionError(RootsplitError):
    """Ctrl-C."""

    exit_code = 130


if TYPE_CHECKING:
    from cluster.request import SearchRequest


class _Commands(TyperGroup):
    """The commands; Ctrl-C leaves them as an error of ours: Typer prints an empty line or nothing, by its version."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let `--solve` alone stand for `--solve score`: Typer has no option whose value may be left out.

        A word that begins like an option and has a space in it is a position, such as a board of Othello.
        """
        if args[:1] in (["search"], ["analyse"]):
            from search.solving import Question

            values = tuple(Question)
            pairs = list(zip(args, [*args[1:], ""], strict=True))
            args = [part for word, following in pairs for part in _with_value(word, following, values)]
        return super().parse_args(ctx, [f" {word}" if word[:1] == "-" and " " in word else word for word in args])

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise InterruptionError("interrupted") from None


def _with_value(word: str, following: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return (word, values[0]) if word == "--solve" and following not in values else (word,)


app = typer.Typer(
    name="rootsplit",
    cls=_Commands,
    help="Distributed game-tree search: the right move sooner with more workers.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

PositionArgument = Annotated[str, typer.Argument(help="The game's own text; the usual start if left out.")]


def _table_mb(text: str) -> float | None:
    """Return the MB that a user asks for, None for what fits."""
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number of MB nor auto") from None


# Typer brings a click of its own or uses the installed one, by its version: this is the base of its errors in both.
_ParseError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class UsageError(RootsplitError):
    """Words on the command line that make no sense together."""


def main() -> None:
    """Run the command line; errors are one line on stderr.

    Exit codes: 0, 2 for bad input, 1 for a run that failed, 130 for Ctrl-C.
    """
    _end_like_ctrl_c()
    try:
        code = app(args=sys.argv[1:] or ["--help"], standalone_mode=False)
    except _ParseError as error:
        code = _complain(getattr(error, "format_message", error.__str__)(), 2)
    except RootsplitError as error:
        code = _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def run() -> None:
    """Be the process that was started for a command line: `main`, and the end that suits what it used."""
    try:
        main()
    except SystemExit as ending:
        depart(int(ending.code or 0))


def _end_like_ctrl_c() -> None:
    """Make SIGTERM end a command as Ctrl-C does: workers stopped, tables removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _complain(sentence: str, code: int) -> int:
    print(f"rootsplit: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


@app.command()
def games(as_json: JsonOption = False) -> None:
    """List the games."""
    from search.game_files import game_names, load_game

    rows = [{"game": name, "summary": load_game(name).summary} for name in game_names()]
    if as_json:
        _print_json(rows)
        return
    for row in rows:
        print(f"{row['game']:14} {row['summary']}")


@app.command()
def search(
    game: GameArgument,
    position: PositionArgument = "",
    moves: Annotated[list[str] | None, typer.Option(help="A move played from there; may be repeated.")] = None,
    depth: Annotated[int | None, typer.Option(help="Deepest iteration, in plies.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes, summed over all workers.")] = None,
    time: Annotated[float | None, typer.Option(help=f"Seconds; {DEFAULT_TIME_S:g} without any limit.")] = None,
    mate: Annotated[int | None, typer.Option(help="End once a win in so many moves is proved.")] = None,
    workers: Annotated[int | None, typer.Option(help="Number of workers; all cores that there are by default.")] = None,
    address: AddressOption = None,
    table: Annotated[
        Any, typer.Option(parser=_table_mb, metavar="MB|auto", help="Size of each machine's table; auto: what fits.")
    ] = str(DEFAULT_TABLE_MB),
    table_dir: TableDirOption = None,
    hang_after: HangAfterOption = 10.0,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Save the search in this file, and go on with what an earlier run left there.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between two saves.")] = 60.0,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Log on stderr: debug, info or warning; nothing if left out.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="team, dynamic, root or single; what suits the game and the workers if left out."),
    ] = None,
    simulate: Annotated[
        int | None, typer.Option(metavar="WORKERS", help="Search in virtual time on a simulated cluster of so many.")
    ] = None,
    multipv: Annotated[int, typer.Option(metavar="K", help="The best K lines, each with another first move.")] = 1,
    root_moves: Annotated[
        list[str] | None, typer.Option(help="A first move to be searched, and no other; may be repeated.")
    ] = None,
    contempt: Annotated[int, typer.Option(help="What a draw costs the side to move, in the game's units.")] = 0,
    solve: Annotated[
        str | None,
        typer.Option(metavar="[score|wdl]", help="Prove the exact score, or only whether it is won, drawn or lost."),
    ] = None,
    algorithm: AlgorithmOption = None,
    playouts: Annotated[
        int | None, typer.Option(help="Random games of mcts, summed over all workers: what its --nodes counts.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of mcts: one worker does the same again.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Search a position."""
    from cluster import logs
    from cluster.checkpointer import CheckpointFile
    from cluster.cluster_options import ClusterOptions
    from cluster.progress import SearchProgress, print_report
    from cluster.request import SearchRequest
    from cluster.session import open_session
    from search.algorithms import chosen
    from search.flags import Algorithm
    from search.game_files import load_game
    from search.limits import Limits
    from search.mcts_settings import MonteCarloSettings
    from search.solving import question_of

    if playouts is not None:
        if chosen(load_game(game), algorithm) != Algorithm.MCTS:
            raise UsageError("only mcts makes playouts: give --nodes, or --algorithm mcts")
        nodes = playouts if nodes is None else min(nodes, playouts)
    if time is None and depth is None and nodes is None and mate is None and solve is None:
        time = DEFAULT_TIME_S
    limits = Limits(depth=depth, nodes=nodes, time_s=time, mate=mate)
    request = SearchRequest(
        position.strip(),
        tuple(moves or ()),
        limits,
        strategy,
        contempt,
        multipv=multipv,
        root_moves=tuple(root_moves or ()),
        solve=question_of(solve),
        algorithm=algorithm,
        monte_carlo=MonteCarloSettings(seed=seed),
    )
    if simulate is not None:
        if table is None or checkpoint is not None:
            raise UsageError("a simulation takes a table of a fixed size, and no checkpoint")
        _simulate(game, request, simulate, table, as_json)
        return
    file = None if checkpoint is None else CheckpointFile(checkpoint, checkpoint_every)
    options = ClusterOptions(table_dir, hang_after)
    if log_level is not None:
        if log_level not in logs.LEVELS:
            raise UsageError(f"the level of logs is one of {', '.join(logs.LEVELS)}, not {log_level!r}")
        logs.configure(log_level, options.run)
    with (
        open_session(game, request, workers, table, address, options=options) as session,
        SearchProgress(lambda: len(session.executor.workers()), time) as progress,
    ):
        report = session.search(request, progress.on_iteration, file)
    if as_json:
        _print_json(report.as_json())
    else:
        print_report(report)


def _simulate(game_name: str, request: SearchRequest, workers: int, table_mb: float, as_json: bool) -> None:
    """Search on a simulated cluster, and print what it would be like."""
    from cluster.progress import SearchProgress, print_report
    from cluster.request import checked_game
    from cluster.simulation import measured_model, simulate
    from search.referee import print_notice

    game = checked_game(game_name, request, workers, table_mb, print_notice)
    with SearchProgress(lambda: workers, None) as progress:
        simulation = simulate(
            game, request, workers, table_mb, measured_model(game, request), on_iteration=progress.on_iteration
        )
    if as_json:
        _print_json(simulation.as_json())
        return
    print_report(simulation.report)
    print(
        f"simulated: {workers} workers, speed-up {simulation.speedup:.2f} over {simulation.sequential_time_s:.2f} s, "
        f"{simulation.model.node_rate / 1e6:.1f} M nodes/s a worker, latency {simulation.model.latency_s * 1e3:g} ms"
    )


app.command()(analyse)
app.command()(scale)


@app.command()
def perft(
    game: GameArgument,
    words: Annotated[list[str], typer.Argument(metavar="[POSITION] DEPTH", help="Position (optional) and plies.")],
    divide: Annotated[bool, typer.Option(help="Count each first move by itself.")] = False,
    workers: Annotated[int, typer.Option(help="Threads; each counts some of the first moves.", min=1)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Count the lines of DEPTH plies: the check of a move generator."""
    from time import perf_counter

    from cluster import shared_perft
    from search.game_files import load_game
    from search.limits import MAX_DEPTH
    from search.perft import LeafCounter

    if len(words) > 2:
        raise UsageError(f"perft takes a position and a depth, not {len(words)} words: quote a position with spaces")
    position_text, depth_text = (word.strip() for word in ("", *words)[-2:])
    if not depth_text.isdecimal() or int(depth_text) > MAX_DEPTH:
        raise UsageError(f"the depth of perft must be from 0 to {MAX_DEPTH} plies, not {depth_text!r}")
    depth = int(depth_text)
    rules = load_game(game)
    start = rules.parse(position_text)
    counter = LeafCounter(rules)
    started = perf_counter()
    shares = shared_perft.divide(rules, start, depth, workers) if depth and (divide or workers > 1) else None
    leaves = counter.count(start, depth) if shares is None else sum(shares.values())
    time_s = perf_counter() - started
    rows = [(rules.move_text(start, move), count) for move, count in (shares or {}).items()] if divide else []
    if as_json:
        result = {"game": rules.label, "position": position_text, "depth": depth, "leaves": leaves, "time_s": time_s}
        _print_json(result | ({"divide": dict(rows)} if divide else {}))
        return
    for move, count in rows:
        print(f"{move}: {count}")
    print(f"{leaves} lines of {depth} plies in {time_s:.3f} s ({leaves / max(time_s, 1e-9) / 1e6:.1f} M/s)")


@app.command()
def uci(
    game: Annotated[str, typer.Option(help="A game's name or the path of its .py file.")] = "chess",
    workers: Annotated[
        int | None, typer.Option(help="Default of the option Threads; all cores that there are.")
    ] = None,
    address: AddressOption = None,
    table: Annotated[int, typer.Option(help="Default of the option Hash, in MB.")] = int(DEFAULT_TABLE_MB),
) -> None:
    """Be an engine for graphical interfaces: speak UCI on standard input and output."""
    from cluster.request import cores
    from cluster.uci.engine import Engine
    from cluster.uci.options import Options

    options = Options(hash_mb=table, workers=cores() if workers is None else workers)
    Engine(game, options, address, lambda line: print(line, flush=True)).run(sys.stdin)


app.command()(match)


@app.command()
def bench(as_json: JsonOption = False) -> None:
    """Search a fixed set on one worker with a cold table; print one total of nodes."""
    from search.bench import bench as run_bench

    rows = []
    for row in run_bench():
        rows.append(row)
        if not as_json:
            name = f"{row.game} {row.position}".strip()
            print(
                f"{name:28} depth {row.depth:2}  score {row.score:6}  nodes {row.nodes:10}  "
                f"{row.nodes_per_s / 1e6:6.2f} M/s"
            )
    total = sum(row.nodes for row in rows)
    time_s = sum(row.time_s for row in rows)
    if as_json:
        _print_json({"bench": total, "time_s": time_s, "rows": [asdict(row) for row in rows]})
        return
    print(f"Bench: {total}  ({total / time_s / 1e6:.2f} M nodes/s)")


@app.command()
def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show only.")] = False,
    kernels: Annotated[bool, typer.Option(help="Remove the compiled kernels too; they are made again.")] = False,
    table_dir: Annotated[Path | None, typer.Option(help="Where to look; shared memory if left out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Remove tables in shared memory whose owner has died, and on demand the compiled kernels."""
    from tt_store.reclaim import leftovers, reclaim

    found = leftovers(table_dir)
    removed = [] if dry_run else [str(path) for path in reclaim(table_dir)]
    rows: list[dict[str, Any]] = [
        {
            "path": str(item.path),
            "size_bytes": item.size_bytes,
            "owner_pid": item.owner_pid,
            "alive": item.alive,
            "removed": str(item.path) in removed,
        }
        for item in found
    ]
    folders = _kernel_folders() if kernels else []
    if not dry_run:
        for folder in folders:
            shutil.rmtree(folder)
    if as_json:
        _print_json({"tables": rows, "kernels": [str(folder) for folder in folders]})
        return
    for row in rows:
        state = "removed" if row["removed"] else "in use" if row["alive"] else "owner dead"
        print(f"{row['path']}  {row['size_bytes'] / 2**20:.0f} MB  owner {row['owner_pid']}  {state}")
    print(f"{len(rows)} tables, {len(removed)} removed; {len(folders)} compiled kernels")


def _kernel_folders() -> list[Path]:
    from search.jit import cache_folder

    return sorted(path for path in cache_folder().iterdir() if path.is_dir())


if __name__ == "__main__":
    run()
