"""The live line of a match: on a terminal only."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from cluster.match.tournament import Standing
from cluster.progress import LiveLine


class MatchProgress(LiveLine):
    """Shows how a match stands.

    Parameters
    ----------
    games
        How many there will be.
    """

    def __init__(self, games: int) -> None:
        super().__init__(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._task = self._progress.add_task("match", total=games)

    def on_game(self, standing: Standing) -> None:
        """Take in a finished game."""
        wins, draws, losses = standing.counts
        strength = standing.rating
        elo = "" if strength is None else f" Elo {strength.elo:+.0f} ({strength.low:+.0f} to {strength.high:+.0f})"
        self._progress.update(
            self._task, completed=len(standing.results), description=f"+{wins} ={draws} -{losses}{elo}"
        )
