"""Games of the search against itself, for the trainer: positions with what became of them, as lines of EPD.

A line is a FEN with two operations (Edwards 1994)::

    r1bq1rk1/pp3ppp/2n1pn2/8/3P4/2N2N2/PP3PPP/R1BQ1RK1 w - - 0 11 ce 31; c9 "1/2-1/2";

``ce`` is the search's score for the side to move, ``c9`` the result of the game.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from search.controls import CONTROL_WORDS, Controls
from search.game_files import load_game
from search.games.chess.board import BLACK_TO_MOVE
from search.games.chess.legality import in_check
from search.games.chess.ordering import is_quiet
from search.referee import Referee
from search.rules import Game
from search.scores import DRAW, MATE_BOUND
from search.searcher import Job, Searcher
from tt_store.native import entry
from tt_store.segment import Segment

WHITE_WINS, BLACK_WINS, DRAWN = "1-0", "0-1", "1/2-1/2"
SHARES = {WHITE_WINS: 1.0, DRAWN: 0.5, BLACK_WINS: 0.0}
"""White's share of the point by the result."""

RANDOM_PLIES = 6, 10
"""A game begins with so many random plies, at least and at most."""
FAIREST = 350
"""A game starts where the search sees no larger advantage."""
DECISIVE, DECISIVE_PLIES = 1_500, 5
"""A game is won when the winner's advantage has been so large for so many plies."""
LEVEL, LEVEL_PLIES, LEVEL_FROM = 6, 16, 100
"""A game is drawn when no side has had any advantage for so many plies, from a ply on."""
LAST_PLY = 400
MOST_SCORE = 3_000
"""A position of a larger score, either way, teaches nothing."""
MOST_DEPTH = 30


class Sample(NamedTuple):
    """A quiet position of a game, and what became of it."""

    fen: str
    score: int
    """The search's, for the side to move."""
    result: str


@dataclass(frozen=True)
class Plan:
    """How games are played."""

    nodes: int = 1_500
    """Nodes a move."""
    keep: float = 1.0
    """Probability that a quiet position is kept."""
    table_mb: float = 16.0


@entry
def _is_sample(position: Any, move: int) -> bool:
    """Tell whether the side to move is not in check and plays neither a capture nor a promotion."""
    return is_quiet(position, move) == 1 and in_check(position) == 0


class Player:
    """Plays games against itself on one core; the same seeds give the same games.

    Parameters
    ----------
    plan
        How games are played.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.game: Game = load_game("chess")
        self.referee = Referee(self.game)
        self._words = np.zeros(CONTROL_WORDS, np.int64)
        self._segment = Segment.private(plan.table_mb)
        self._searcher = Searcher(self.game, self._segment, Controls(self._words.ctypes.data))

    def close(self) -> None:
        """Give the table's memory back."""
        self._segment.close()

    def best(self, position: Any, salt: int, history: tuple[int, ...] = ()) -> tuple[int, int]:
        """Return the best move and its score with the plan's nodes.

        Parameters
        ----------
        position
            The game goes on.
        salt
            Keeps games apart in the table.
        history
            Keys of the positions before this one.
        """
        nodes_left, found = self.plan.nodes, (self.referee.legal_moves(position)[0], 0)
        for depth in range(1, MOST_DEPTH):
            outcome = self._searcher.run(Job(position, depth, node_limit=nodes_left, salt=salt, history=history))
            nodes_left -= outcome.statistics.nodes
            if outcome.is_finished and outcome.line:
                found = outcome.line[0], outcome.score
            if not outcome.is_finished or nodes_left <= 0 or abs(outcome.score) >= MATE_BOUND:
                break
        return found

    def game_samples(self, seed: int) -> list[Sample]:
        """Play one game and return what is kept of it; empty where the random opening was unfair or mated."""
        rng = random.Random(seed)
        self._searcher.forget()
        position = self._opening(rng)
        if position is None or abs(self.best(position, seed)[1]) > FAIREST:
            return []
        kept: list[tuple[str, int]] = []
        judge = _Judge()
        history: tuple[int, ...] = ()
        while True:
            facts = self.referee.facts(position)
            if facts.is_over:
                result = DRAWN if facts.outcome == DRAW else _winner(position, facts.outcome)
                break
            move, score = self.best(position, seed, history)
            is_white = not position.state & BLACK_TO_MOVE
            verdict = judge.verdict(score if is_white else -score, facts.key)
            if verdict is not None:
                result = verdict
                break
            if rng.random() < self.plan.keep and abs(score) < MOST_SCORE and _is_sample(position, move):
                kept.append((self.game.text(position), score))
            following = self.referee.play(position, move)
            history = self.referee.history_after(history, facts, self.referee.facts(following))
            position = following
        return [Sample(fen, score, result) for fen, score in kept]

    def _opening(self, rng: random.Random) -> Any:
        """Return the position after random moves, None if the game is over by then."""
        position = self.game.parse("")
        for _ in range(rng.randint(*RANDOM_PLIES)):
            moves = self.referee.legal_moves(position)
            if not moves:
                return None
            position = self.referee.play(position, rng.choice(moves))
        return position if self.referee.legal_moves(position) else None


class _Judge:
    """Ends a game by its scores, its repetitions and its length."""

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()
        self._plies = self._white = self._black = self._level = 0

    def verdict(self, white_score: int, key: int) -> str | None:
        """Take note of a position; return the result if the game is over."""
        self._plies += 1
        self._seen[key] += 1
        self._white = self._white + 1 if white_score >= DECISIVE else 0
        self._black = self._black + 1 if white_score <= -DECISIVE else 0
        self._level = self._level + 1 if abs(white_score) <= LEVEL else 0
        if self._white >= DECISIVE_PLIES:
            return WHITE_WINS
        if self._black >= DECISIVE_PLIES:
            return BLACK_WINS
        is_level = self._level >= LEVEL_PLIES and self._plies >= LEVEL_FROM
        return DRAWN if is_level or self._seen[key] >= 3 or self._plies >= LAST_PLY else None


def _winner(position: Any, outcome: int) -> str:
    """Return the result of a decided game from the outcome for the side to move."""
    is_black = bool(position.state & BLACK_TO_MOVE)
    return WHITE_WINS if (outcome > 0) != is_black else BLACK_WINS


def play_games(games: int, seed: int, plan: Plan = Plan()) -> Iterator[list[Sample]]:
    """Yield what is kept of each game."""
    player = Player(plan)
    try:
        for number in range(games):
            yield player.game_samples(seed * 1_000_003 + number)
    finally:
        player.close()


def sample_line(sample: Sample) -> str:
    """Return the EPD line of a sample."""
    return f'{sample.fen} ce {sample.score}; c9 "{sample.result}";'


def read_sample(line: str) -> Sample:
    """Return the sample of a line that `sample_line` wrote."""
    fen, _, operations = line.strip().partition(" ce ")
    score, _, result = operations.partition("; c9 ")
    return Sample(fen, int(score), result.strip('";'))
