"""A match: pairs of games, several at once, its standing after each, and an end when the test is decided."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.match.contestants import Contestant, MatchError, TimeControl
from cluster.match.elo import Rating, Verdict, rating, sequential_test
from cluster.match.game import CRASH, ILLEGAL, TIME, Adjudication, PlayedGame, Player, play_game
from cluster.match.openings import Opening
from cluster.match.record import Record, Result


@dataclass(frozen=True)
class MatchPlan:
    """What is to be played."""

    first: Contestant
    second: Contestant
    openings: Sequence[Opening]
    games: int
    """An even number: each opening is played with both colours."""
    control: TimeControl | None
    adjudication: Adjudication = Adjudication()
    concurrency: int = 1
    test: tuple[float, float] | None = None
    """Elo of the two hypotheses, if the match is to end when they are told apart."""

    def __post_init__(self) -> None:
        if self.games < 2 or self.games % 2:
            raise MatchError(f"the number of games must be even and at least 2, not {self.games}: colours are reversed")
        if self.concurrency < 1:
            raise MatchError(f"at least one game must run at a time, not {self.concurrency}")
        if self.control is None and not (self.first.has_limit and self.second.has_limit):
            raise MatchError("there is no clock, so both engines need nodes=, depth= or movetime=")

    @property
    def settings(self) -> str:
        """A hash of all that decides what the games mean."""
        meaning = repr((self.first, self.second, self.control, self.adjudication, list(self.openings)))
        return hashlib.sha256(meaning.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Standing:
    """How a match stands."""

    plan: MatchPlan
    results: tuple[Result, ...]

    @property
    def pairs(self) -> list[float]:
        """Points of the first engine in each finished pair."""
        points = {result.number: result.points for result in self.results}
        firsts = [number for number in points if number % 2 == 0 and number + 1 in points]
        return [points[number] + points[number + 1] for number in firsts]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Wins, draws and losses of the first engine."""
        points = [result.points for result in self.results]
        return points.count(1.0), points.count(0.5), points.count(0.0)

    @property
    def rating(self) -> Rating | None:
        """Strength of the first engine relative to the second; None before the first pair is finished."""
        return rating(self.pairs) if self.pairs else None

    @property
    def verdict(self) -> Verdict | None:
        """State of the sequential test, if there is one."""
        return None if self.plan.test is None else sequential_test(self.pairs, *self.plan.test)

    @property
    def is_decided(self) -> bool:
        """Whether the sequential test has ended."""
        verdict = self.verdict
        return verdict is not None and verdict.text != "undecided"

    def faults(self, termination: str) -> tuple[int, int]:
        """Return how often each engine lost by time, a crash or an illegal move."""
        found = [result for result in self.results if result.termination == termination]
        return sum(result.first_is_to_blame for result in found), sum(result.second_is_to_blame for result in found)

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        wins, draws, losses = self.counts
        strength, verdict = self.rating, self.verdict
        pairs = self.pairs
        return {
            "first": self.plan.first.name,
            "second": self.plan.second.name,
            "games": len(self.results),
            "wins": wins,
            "draws": draws,
            "losses": losses,
            "score": (wins + draws / 2) / len(self.results) if self.results else None,
            "pentanomial": [pairs.count(points) for points in (0.0, 0.5, 1.0, 1.5, 2.0)],
            "elo": None if strength is None else strength._asdict(),
            "sprt": None if verdict is None else verdict._asdict() | {"verdict": verdict.text},
            "time_losses": self.faults(TIME),
            "crashes": self.faults(CRASH),
            "illegal_moves": self.faults(ILLEGAL),
        }


def play_match(
    plan: MatchPlan, path: Path | None, on_game: Callable[[Standing], None] = lambda _standing: None
) -> Standing:
    """Play a match, or go on with one that was cut off.

    Parameters
    ----------
    plan
        What is to be played.
    path
        The PGN file; None to keep none.
    on_game
        Called after each game.

    Raises
    ------
    MatchError
        If an engine does not start, or the file is of another match.
    """
    record = Record(path, (plan.first.name, plan.second.name), plan.settings)
    results = record.load()
    waiting = [number for number in range(plan.games) if number not in results]
    standing = Standing(plan, tuple(results.values()))
    seats = threading.local()
    players: list[Player] = []

    def play(number: int) -> tuple[int, PlayedGame]:
        if not hasattr(seats, "players"):
            seats.players = (Player(plan.first), Player(plan.second))
            players.extend(seats.players)
        white, black = seats.players if number % 2 == 0 else seats.players[::-1]
        opening = plan.openings[number // 2 % len(plan.openings)]
        return number, play_game(white, black, opening, plan.control, plan.adjudication, number)

    pool = ThreadPoolExecutor(plan.concurrency, thread_name_prefix="rootsplit-match")
    running: set[Future[tuple[int, PlayedGame]]] = set()
    try:
        while (waiting or running) and not standing.is_decided:
            while waiting and len(running) < plan.concurrency:
                running.add(pool.submit(play, waiting.pop(0)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                number, game = future.result()
                results[number] = record.add(number, game)
                standing = Standing(plan, tuple(results.values()))
                on_game(standing)
    finally:
        # Closing the engines ends the games that still run.
        for player in players:
            player.close()
        pool.shutdown(cancel_futures=True)
    return standing
