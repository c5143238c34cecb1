"""A run with an output: begun, gone on with, or found complete."""

from __future__ import annotations

import queue
import shlex
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.batch.fingerprint import STANDARD_INPUT, fingerprint, first_difference, look_at
from cluster.batch.index import AnswerIndex
from cluster.batch.journal import SUFFIX, Checkpoint, Journal, JournalError, JournalledAnswer
from cluster.batch.planner import Planner
from cluster.batch.pool import Pool, open_pool
from cluster.batch.readers import read_rows
from cluster.batch.rows import InputRow, ReadOptions
from cluster.batch.runner import Runner
from cluster.batch.settings import RunSettings
from cluster.batch.summary import Summary, Tally
from cluster.batch.writers import Format, Writer, make_writer
from cluster.cluster_options import ClusterOptions
from search.algorithms import seen_by
from search.game_files import load_game
from search.referee import Referee, print_notice
from search.rules import Game

_FLUSH_S = 1.0
"""Between two writes of what has come in."""
_AHEAD_ROWS = 4096


@dataclass(frozen=True)
class RunRequest:
    """What a user asks."""

    game: str
    """A game's name, or the path of its file."""
    inputs: tuple[str, ...]
    """Files; ``-`` is standard input."""
    output: Path
    settings: RunSettings
    format: Format
    reading: ReadOptions = ReadOptions()
    is_ordered: bool = True
    workers: int | None = None
    """None for all cores that there are."""
    address: str | None = None
    """None for threads of this process, else as for `cluster.ray_executor.RayExecutor`."""
    options: ClusterOptions = ClusterOptions()
    """Of workers on Ray."""
    restart: bool = False
    """Whether to remove what an earlier run has written and begin again."""


@dataclass(frozen=True)
class RunState:
    """How a run stands, for whoever shows it."""

    tally: Tally
    rows_in_all: int | None
    """An estimate until the input has been read; None if there is none."""
    new_rows: int
    new_nodes: int
    workers: int
    busy_workers: int


class _Rows:
    """Numbers of rows, a bit each."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._bits = bytearray()
        self._count = 0
        for number in numbers:
            byte, bit = divmod(number, 8)
            if byte >= len(self._bits):
                self._bits.extend(bytes(byte + 1 - len(self._bits) + len(self._bits) // 4))
            if self._bits[byte] >> bit & 1:
                raise JournalError(f"the output holds row {number} twice: give --restart")
            self._bits[byte] |= 1 << bit
            self._count += 1

    def __contains__(self, number: object) -> bool:
        """Tell whether a number is there."""
        return (
            isinstance(number, int)
            and number // 8 < len(self._bits)
            and bool(self._bits[number // 8] >> number % 8 & 1)
        )

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers."""
        return (number for number in range(8 * len(self._bits)) if number in self)

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count


class Run(AbstractContextManager["Run"]):
    """A run whose inputs, settings and output have been checked, and whose workers have not been started.

    Parameters
    ----------
    request
        What is asked.
    notice
        Gets a line if something must be compiled first, or a worker is replaced.

    Raises
    ------
    RootsplitError
        If an input cannot be read, the output is not this run's, or it was begun with other inputs or settings.
    """

    def __init__(self, request: RunRequest, notice: Callable[[str], None] = print_notice) -> None:
        self._request, self._notice = request, notice
        game = load_game(request.game)
        self._game: Game = seen_by(game, request.settings.flags(game).algorithm)
        self._files = [look_at(name) for name in request.inputs]
        self._writer: Writer = make_writer(request.output, request.format, self._game, request.is_ordered)
        self._tally = Tally()
        self._skipped = 0
        self._written: Collection[int] = ()
        self._is_done = False
        self._runner: Runner | None = None
        self._stop_wanted = False
        asked = fingerprint(
            self._files, request.reading, request.settings, self._game, request.format, request.is_ordered
        )
        self._journal = self._open_journal(asked)
        self._index = AnswerIndex()
        try:
            self._recover()
        except BaseException:
            self.close()
            raise
        self.kept_rows = self._writer.settled

    def __exit__(self, *_: Any) -> None:
        """Close the run."""
        self.close()

    def close(self) -> None:
        """Close output, journal and index."""
        self._writer.close()
        self._journal.close()
        self._index.close()

    def stop(self) -> None:
        """Let what runs end, then the run; from any thread, and from a signal's handler."""
        self._stop_wanted = True
        if self._runner is not None:
            self._runner.stop()

    def execute(
        self, on_status: Callable[[RunState], None] = lambda _status: None, on_open: Callable[[], None] = lambda: None
    ) -> Summary:
        """Search what is still to be searched.

        Parameters
        ----------
        on_status
            Called several times a second.
        on_open
            Called when the workers are there.

        Raises
        ------
        RunFailedError
            If no worker is left; what was done by then is kept.
        """
        if self._is_done:
            return self._summary(self._tally, True, 0.0, 0, 0, 0)
        request = self._request
        nodes_before = self._tally.nodes
        referee = Referee(self._game, self._notice)
        pool = open_pool(self._game, request.settings, request.workers, request.address, self._notice, request.options)
        try:
            on_open()
            started_s = time.monotonic()
            runner = self._runner = Runner(
                Planner(self._game, referee, request.settings), pool, request.settings, self._journal, self._index,
                is_ordered=request.is_ordered, tally=self._tally, skipped=self._skipped, written=self._written,
            )  # fmt: skip
            if self._stop_wanted:
                runner.stop()
            workers = len(pool.workers()) * request.settings.split
            try:
                self._pass_on(runner, pool, nodes_before, on_status)
            finally:
                self._flush(runner, is_last=runner.is_complete)
        finally:
            pool.close()
        if runner.is_complete:
            self._finish(runner.tally)
        new_rows = runner.tally.rows - self.kept_rows
        elapsed_s = time.monotonic() - started_s
        return self._summary(
            runner.tally, runner.is_complete, elapsed_s, new_rows, workers, runner.replaced_workers, nodes_before
        )

    def _pass_on(self, runner: Runner, pool: Pool, nodes_before: int, on_status: Callable[[RunState], None]) -> None:
        """Move rows from the runner to the writer."""
        writer = self._writer
        next_flush_s = time.monotonic() + _FLUSH_S
        guess = _sum_or_none([file.lines for file in self._files])
        rows = _ahead(self._rows()) if STANDARD_INPUT in self._request.inputs else self._rows()
        for row in runner.run(rows):
            if row is not None:
                writer.add(row)
            now_s = time.monotonic()
            if now_s >= next_flush_s or writer.is_due:
                self._flush(runner)
                next_flush_s = now_s + _FLUSH_S
            if row is None:
                tally = runner.tally
                on_status(
                    RunState(
                        tally,
                        runner.rows_read or guess,
                        tally.rows - self.kept_rows,
                        tally.nodes - nodes_before,
                        len(pool.workers()),
                        runner.busy_workers,
                    )
                )

    def _rows(self) -> Iterator[InputRow]:
        return read_rows(self._request.inputs, self._game, self._request.reading)

    def _flush(self, runner: Runner, *, is_last: bool = False) -> None:
        """Write what has come in: answers first, then rows, then how many these are."""
        self._journal.sync()
        self._writer.flush(is_last=is_last)
        if self._request.is_ordered and self._writer.settled == runner.tally.rows > self._skipped:
            self._journal.add_checkpoint(runner.tally.as_json())
            self._journal.flush()

    def _finish(self, tally: Tally) -> None:
        """Replace the journal by its end: nobody will ask for the answers again."""
        self._journal.finish(self._journal_path, tally.as_json())

    @property
    def _journal_path(self) -> Path:
        return self._request.output.with_name(self._request.output.name + SUFFIX)

    def _open_journal(self, asked: dict[str, Any]) -> Journal:
        """Open the output's journal if it is this run's, or make it where there is no output."""
        path, output = self._journal_path, self._request.output
        if not path.exists():
            if output.exists():
                raise JournalError(f"{output} exists, and no run of ours has written it: choose another output")
            return Journal.create(path, asked)
        journal, begun = Journal.open(path)
        if self._request.restart:
            _remove_output(output)
            path.unlink()
            journal.close()
            return Journal.create(path, asked)
        difference = first_difference(begun, asked)
        if difference is not None:
            journal.close()
            raise JournalError(
                f"{output} was begun with {difference}: give --restart to begin again, or choose another output"
            )
        return journal

    def _recover(self) -> None:
        """Find out what earlier runs have done."""
        last: dict[str, Any] | None = None
        for item in self._journal.recover():
            if isinstance(item, JournalledAnswer):
                self._index.put(item.identity, item.place)
            elif isinstance(item, Checkpoint):
                last = item.values
        indices = self._writer.recover()
        if not self._request.is_ordered:
            self._written = _Rows(indices)
        else:
            for number, index in enumerate(indices):
                if index != number:
                    raise JournalError(
                        f"the output {self._request.output} has row {index} where row {number} belongs: give --restart"
                    )
            if last is not None and last["rows"] <= self._writer.settled:
                self._tally, self._skipped = Tally.from_json(last), last["rows"]
            self._written = range(self._skipped, self._writer.settled)
        if self._journal.is_finished and last is not None and last["rows"] == self._writer.settled:
            self._tally, self._is_done = Tally.from_json(last), True

    def _summary(
        self,
        tally: Tally,
        is_complete: bool,
        time_s: float,
        new_rows: int,
        workers: int,
        replaced_workers: int,
        nodes_before: int | None = None,
    ) -> Summary:
        return Summary(
            tally, str(self._request.output), is_complete, self.kept_rows, time_s, new_rows,
            0 if nodes_before is None else tally.nodes - nodes_before, workers, replaced_workers,
        )  # fmt: skip


def resume_command(words: Sequence[str]) -> str:
    """Return the command line that goes on with a run, from the words of the one that began it."""
    return shlex.join(["rootsplit", *(word for word in words if word != "--restart")])


def _remove_output(output: Path) -> None:
    """Remove what a run of ours has written."""
    if output.is_dir():
        for part in output.glob("part-*.parquet*"):
            part.unlink()
        if not any(output.iterdir()):
            output.rmdir()
        return
    output.unlink(missing_ok=True)


def _sum_or_none(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _ahead(rows: Iterator[InputRow]) -> Iterator[InputRow | None]:
    """Read rows on a thread of their own, and yield None where none is there yet: a pipe may make us wait for long."""
    found: queue.Queue[InputRow | BaseException | None] = queue.Queue(_AHEAD_ROWS)

    def read() -> None:
        try:
            for row in rows:
                found.put(row)
            found.put(None)
        except BaseException as error:
            found.put(error)

    threading.Thread(target=read, name="rootsplit-reader", daemon=True).start()
    while True:
        try:
            item = found.get_nowait()
        except queue.Empty:
            yield None
            continue
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
        yield item
