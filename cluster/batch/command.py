"""The command `rootsplit analyse`: parses, calls, prints."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from cluster.cli_options import AddressOption, AlgorithmOption, GameArgument, HangAfterOption, TableDirOption
from tt_store.errors import RootsplitError

DEFAULT_TABLE_MB = 64.0
SOME_ROWS_FAILED, NOTHING_READ, INTERRUPTED = 1, 2, 130


class NothingReadError(RootsplitError):
    """An input without any position that can be searched."""


class PausedError(RootsplitError):
    """Ctrl-C, after what ran has been written."""

    exit_code = INTERRUPTED


def analyse(
    game: GameArgument,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Positions; - is standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where results go; its journal lies beside it.")],
    depth: Annotated[int | None, typer.Option(help="Deepest iteration of each position, in plies.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes of each position.")] = None,
    time: Annotated[float | None, typer.Option(help="Seconds of each position.")] = None,
    mate: Annotated[int | None, typer.Option(help="End a position once a win in so many moves is proved.")] = None,
    multipv: Annotated[int, typer.Option(help="How many different first moves to rank.")] = 1,
    workers: Annotated[int | None, typer.Option(help="Number of workers; all cores that there are by default.")] = None,
    address: AddressOption = None,
    split: Annotated[int, typer.Option(metavar="N", help="Put N workers on each position.")] = 1,
    table: Annotated[
        float, typer.Option(help="Size in MB of each machine's table; with --fresh, of each worker's.")
    ] = DEFAULT_TABLE_MB,
    table_dir: TableDirOption = None,
    hang_after: HangAfterOption = 10.0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Empty the table before each position.")] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same bytes for any number of workers: --fresh, and no times.")
    ] = False,
    deadline: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Give a position up after so long, whatever its limits.")
    ] = None,
    solve: Annotated[
        str | None,
        typer.Option(metavar="[score|wdl]", help="Prove each score, or only who wins, to the end of the game."),
    ] = None,
    input_format: Annotated[
        str, typer.Option("--input-format", help="auto, fen, epd, pgn, jsonl, csv, moves or obf.")
    ] = "auto",
    column: Annotated[str | None, typer.Option(help="The position's column of JSONL and CSV.")] = None,
    first_ply: Annotated[int, typer.Option(help="Of PGN: the first ply of each game.")] = 0,
    last_ply: Annotated[int | None, typer.Option(help="Of PGN: the last ply of each game.")] = None,
    every: Annotated[int, typer.Option(metavar="N", help="Of PGN: every Nth ply.")] = 1,
    only_last: Annotated[bool, typer.Option("--only-last", help="Of PGN: the last position of each game.")] = False,
    output_format: Annotated[
        str | None,
        typer.Option("--format", help="jsonl, csv, parquet, epd or pgn; told by the output's name if left out."),
    ] = None,
    unordered: Annotated[bool, typer.Option("--unordered", help="Write rows as they come, with their index.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Remove what is there of this output, and begin.")] = False,
    fail_under: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="Exit with 1 if fewer of the scored rows are solved.")
    ] = None,
    algorithm: AlgorithmOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object on stdout.")] = False,
) -> int:
    """Search every position of files; run the same command again to go on where it was interrupted.

    Exit codes: 0, 1 if some rows failed, 2 if nothing could be read, 130 for Ctrl-C.
    """
    from cluster.batch.progress import BatchProgress
    from cluster.batch.rows import ReadOptions
    from cluster.batch.run import Run, RunRequest, resume_command
    from cluster.batch.settings import RunSettings
    from cluster.batch.writers import format_of
    from cluster.cluster_options import ClusterOptions
    from search.limits import Limits
    from search.solving import question_of

    request = RunRequest(
        game=game,
        inputs=tuple(files),
        output=output,
        settings=RunSettings(
            limits=Limits(depth, nodes, time, mate), multipv=multipv, table_mb=table, is_fresh=fresh,
            is_deterministic=deterministic, split=split, deadline_s=deadline, solve=question_of(solve),
            algorithm=algorithm,
        ),
        format=format_of(output, output_format),
        reading=ReadOptions(input_format, column, first_ply, last_ply, every, only_last),
        is_ordered=not unordered,
        workers=workers,
        address=address,
        options=ClusterOptions(table_dir, hang_after),
        restart=restart,
    )  # fmt: skip
    with Run(request) as run, BatchProgress() as progress, _stopped_by_ctrl_c(run.stop) as listen:
        summary = run.execute(progress.update, listen)
    if as_json:
        print(json.dumps(summary.as_json(), ensure_ascii=False))
    else:
        print("\n".join(summary.lines()))
    if not summary.is_complete:
        raise PausedError(f"interrupted; go on with: {resume_command(sys.argv[1:])}")
    tally = summary.tally
    if tally.failed == tally.rows:
        names = ", ".join(files)
        raise NothingReadError(f"no position of {names} could be {'read' if tally.rows else 'found'}")
    if fail_under is not None and summary.solved_percent < fail_under:
        print(f"rootsplit: {summary.solved_percent:.1f}% solved, under {fail_under:g}%", file=sys.stderr)
        return SOME_ROWS_FAILED
    return SOME_ROWS_FAILED if tally.failed else 0


@contextmanager
def _stopped_by_ctrl_c(stop: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Have the first Ctrl-C (and SIGTERM) call `stop`, and the second one end the command.

    Yields a function that begins to listen: Ray sets handlers of its own when it starts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def end(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.default_int_handler)
        stop()

    def listen() -> None:
        for number in numbers:
            signal.signal(number, end)

    try:
        yield listen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
