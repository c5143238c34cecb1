"""Games of the search against itself, for the fit of the weights: positions with what became of them.

A line of a file is a board and the score that its game came to, for the side to move, in discs::

    ---------------------------OX------XO--------------------------- X;+4
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from search.controls import CONTROL_WORDS, Controls
from search.game_files import load_game
from search.games.othello.board import DISC, SQUARES
from search.games.othello.notation import next_depth, parse, plies_left, text
from search.referee import Referee
from search.rules import RulesError
from search.searcher import Job, Outcome, Searcher
from tt_store.segment import Segment

FIRST_SALT = 1 << 32
"""Each game has keys of its own in the table: equal seeds then give equal games."""


class Sample(NamedTuple):
    """A position of a game, and what became of it."""

    position: Any
    score: int
    """For the side to move, in discs."""


@dataclass(frozen=True)
class Plan:
    """How games are played."""

    depth: int = 3
    """Plies that a move looks ahead."""
    random_discs: int = 14
    """Until so many discs are on the board moves are random."""
    slip: float = 0.07
    """Probability of a random move later on."""
    solved_squares: int = 12
    """With so many squares left the game is solved instead of played on."""
    table_mb: float = 16.0


def play_games(games: int, seed: int, plan: Plan = Plan()) -> Iterator[list[Sample]]:
    """Yield the samples of each game, one a position; equal seeds and plans give equal games."""
    game = load_game("othello")
    words = np.zeros(CONTROL_WORDS, np.int64)
    with Segment.private(plan.table_mb) as segment:
        searcher = Searcher(game, segment, Controls(words.ctypes.data))
        for number in range(games):
            player = _Player(searcher, plan, random.Random(f"{seed}-{number}"), FIRST_SALT * (number + 1))
            yield player.play(game.parse(""))


class _Player:
    """Plays one game."""

    def __init__(self, searcher: Searcher, plan: Plan, rng: random.Random, salt: int) -> None:
        self._searcher, self._plan, self._rng, self._salt = searcher, plan, rng, salt
        self._referee: Referee = searcher.referee

    def play(self, position: Any) -> list[Sample]:
        """Return the game's positions with its score."""
        path = [position]
        while self._referee.legal_moves(position) and _squares_left(position) > self._plan.solved_squares:
            position = self._referee.play(position, self._choose(position))
            path.append(position)
        score = self._solve(position) // DISC
        return [Sample(each, score if each.side == position.side else -score) for each in path]

    def _choose(self, position: Any) -> int:
        moves = self._referee.legal_moves(position)
        is_early = SQUARES - _squares_left(position) < self._plan.random_discs
        if is_early or self._rng.random() < self._plan.slip:
            return self._rng.choice(moves)
        return self._search(position, self._plan.depth).best_move

    def _solve(self, position: Any) -> int:
        facts = self._referee.facts(position)
        if facts.is_over:
            return int(facts.outcome)
        depth, score = 0, 0
        while depth < plies_left(position):
            depth = next_depth(position, depth)
            score = self._search(position, depth).score
        return score

    def _search(self, position: Any, depth: int) -> Outcome:
        return self._searcher.run(Job(position, depth, salt=self._salt))


def _squares_left(position: Any) -> int:
    return SQUARES - (int(position.own) | int(position.other)).bit_count()


def sample_line(sample: Sample) -> str:
    """Return a sample as a line of a file."""
    return f"{text(sample.position)};{sample.score:+d}"


def read_sample(line: str) -> Sample:
    """Return the sample of a line.

    Raises
    ------
    RulesError
        If the line is no sample.
    """
    board, _, score = line.partition(";")
    try:
        return Sample(parse(board), int(score))
    except ValueError:
        raise RulesError(f"the sample {line!r} must end with a score, such as ;+4") from None
