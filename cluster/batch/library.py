"""Batches for programs: rows as they come, nothing kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from cluster.batch.index import AnswerIndex
from cluster.batch.journal import Journal
from cluster.batch.planner import Planner
from cluster.batch.pool import open_pool
from cluster.batch.readers import read_rows
from cluster.batch.results import ResultRow
from cluster.batch.rows import InputRow, ReadOptions
from cluster.batch.runner import Runner
from cluster.batch.settings import RunSettings
from cluster.cluster_options import ClusterOptions
from search.algorithms import seen_by
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee, print_notice
from search.rules import Game
from search.solving import Question


def analyse(
    game: str,
    inputs: Iterable[str | Path | InputRow],
    limits: Limits,
    *,
    multipv: int = 1,
    workers: int | None = None,
    address: str | None = None,
    split: int = 1,
    table_mb: float = 64.0,
    is_fresh: bool = False,
    is_deterministic: bool = False,
    deadline_s: float | None = None,
    solve: Question | None = None,
    algorithm: str | None = None,
    is_ordered: bool = True,
    reading: ReadOptions = ReadOptions(),
    options: ClusterOptions = ClusterOptions(),
    notice: Callable[[str], None] = print_notice,
) -> Iterator[ResultRow]:
    """Search many positions, equal ones once, and yield a row for each: what `rootsplit analyse` writes.

    The workers start with the first row and end with the last one, or when the iterator is closed. What waits between
    input and output is bounded; answers that other rows may ask for once more lie in a temporary file.

    Parameters
    ----------
    game
        A game's name, or the path of its file.
    inputs
        Texts of positions, paths of files, or rows; numbered in their order.
    limits
        Of each position; at least one must be set.
    multipv
        How many lines with different first moves.
    workers, address
        How many, on threads (None) or on Ray: as for `cluster.session.open_session`.
    split
        How many of the workers search each position together.
    table_mb
        Size in MB of each machine's table; of each worker's, if it is fresh.
    is_fresh, is_deterministic, deadline_s, solve, algorithm
        As for `RunSettings`.
    is_ordered
        Whether rows come in the order of the inputs, or as soon as they are there.
    reading
        How files are read.
    options
        Of workers on Ray.
    notice
        Gets a line if something must be compiled first, or a worker is replaced.

    Yields
    ------
    ResultRow
        With its `status`: a bad position is a row too.

    Raises
    ------
    RootsplitError
        If the game, the limits, a file, the number of workers, the table or the address are wrong, or no worker is
        left.
    """
    settings = RunSettings(limits, multipv, table_mb, is_fresh, is_deterministic, split, deadline_s, solve, algorithm)
    rules = load_game(game)
    rules = seen_by(rules, settings.flags(rules).algorithm)
    referee = Referee(rules, notice)
    with (
        Journal.temporary() as journal,
        closing(AnswerIndex()) as index,
        closing(open_pool(rules, settings, workers, address, notice, options)) as pool,
    ):
        planner = Planner(rules, referee, settings)
        runner = Runner(planner, pool, settings, journal, index, is_ordered=is_ordered)
        for row in runner.run(_rows(inputs, rules, reading)):
            if row is not None:
                yield row


def _rows(inputs: Iterable[str | Path | InputRow], game: Game, reading: ReadOptions) -> Iterator[InputRow]:
    """Yield the rows of mixed inputs, numbered through."""
    index = 0
    for number, item in enumerate(inputs, 1):
        if isinstance(item, Path):
            found = read_rows([str(item)], game, reading)
        else:
            found = iter([item if isinstance(item, InputRow) else InputRow(0, "", number, position=str(item))])
        for row in found:
            yield row._replace(index=index)
            index += 1
