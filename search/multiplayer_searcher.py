"""One searching core of max^n: the same face as the searcher of two sides, with values instead of a window."""

from __future__ import annotations

from typing import Any

from search import workspace as at
from search.player_rules import player_rules
from search.scores import INFINITY
from search.searcher import Job, Outcome, Searcher
from search.statistics import Statistics
from tt_store.layout import WORD_BYTES


class MultiplayerSearcher(Searcher):
    """Runs jobs of max^n (see `search.multiplayer`); made like a `Searcher`.

    A job's alpha says what the player to move has elsewhere; its beta says nothing. An outcome has the values of all
    players unless its score is no more than alpha; the score is that of the player to move.
    """

    def run(self, job: Job) -> Outcome:
        """Search a job to its end, its limits, or a control word."""
        score, status, statistics = self._searched(job)
        values: tuple[int, ...] = ()
        line: tuple[int, ...] = ()
        root_key = self._get(at.ROOT_KEY)
        if status == at.RUNNING and score > job.alpha:
            values = self._values(job.ply)
            line, statistics = self._whole_line(job, statistics)
        best_move = line[0] if line else self._known_move(job.position, root_key, is_exact=False)
        return Outcome(score, job.alpha, job.beta, status, line, statistics, best_move, values)

    def _searched(self, job: Job) -> tuple[int, int, Statistics]:
        """Return the score of a job, its status and its counts."""
        score = _within_scores(self._call(job))
        statistics = Statistics(*(int(word) for word in self._memory[: at.STATISTICS_WORDS]))
        return score, self._get(at.STATUS), statistics

    def _values(self, ply: int) -> tuple[int, ...]:
        """Return what the position at a ply is worth to each player."""
        first = (at.VALUES + ply * at.VALUES_BYTES) // WORD_BYTES
        players = player_rules(self.game).players
        # A forged entry of the table may hold any 16 bits.
        return tuple(_within_scores(int(word)) for word in self._memory[first : first + players])

    def _whole_line(self, job: Job, statistics: Statistics) -> tuple[tuple[int, ...], Statistics]:
        """Return the best line of the job that was searched last, and what was counted until it was there.

        It ends where the table knew the values. What is missing is searched from there, the table warm: a line then
        depends on the table as little as the values do. One that meets the limit of nodes stays short.
        """
        line, position = self._known_line(job, job.position)
        while len(line) < job.depth and line and not self.referee.facts(position).is_over:
            rest = job._replace(
                position=position,
                depth=job.depth - len(line),
                ply=job.ply + len(line),
                alpha=-INFINITY,
                left_out=(),
                node_limit=max(0, job.node_limit - statistics.nodes),
            )
            _score, status, more = self._searched(rest)
            statistics = statistics.merged(more)
            found, position = self._known_line(rest, position)
            if status != at.RUNNING or not found:
                break
            line += found
        return line, statistics

    def _known_line(self, job: Job, position: Any) -> tuple[tuple[int, ...], Any]:
        """Return what the workspace holds of the line of a job, as far as it is legal, and the position behind it."""
        length = self._get(at.LENGTHS + job.ply * WORD_BYTES)
        begin = (at.LINES + job.ply * at.LINE_BYTES) // WORD_BYTES
        moves = (int(move) for move in self._memory[begin : begin + length])
        line, position = self.referee.legal_prefix(position, moves)
        return (() if line and line[0] in job.left_out else tuple(line)), position


def _within_scores(value: int) -> int:
    """Return the score that is nearest to a value."""
    return max(-INFINITY, min(value, INFINITY))
