"""The live line of a match: on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cluster.match.tournament import Standing


class MatchProgress:
    """Shows how a match stands.

    Parameters
    ----------
    games
        How many there will be.
    """

    def __init__(self, games: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("match", total=games)

    def __enter__(self) -> MatchProgress:
        """Begin to show it."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line away."""
        self._progress.stop()

    def on_game(self, standing: Standing) -> None:
        """Take in a finished game."""
        wins, draws, losses = standing.counts
        strength = standing.rating
        elo = "" if strength is None else f" Elo {strength.elo:+.0f} ({strength.low:+.0f} to {strength.high:+.0f})"
        self._progress.update(
            self._task, completed=len(standing.results), description=f"+{wins} ={draws} -{losses}{elo}"
        )
