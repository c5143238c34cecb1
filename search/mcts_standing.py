"""What a Monte Carlo tree search knows of its root's moves: counted, merged over machines, ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

from search.mcts_settings import THOUSAND
from search.mcts_tree import DRAWN, LOST, UNKNOWN, WON
from search.rules import Game
from search.scores import DRAW

VERDICT_NAMES = {UNKNOWN: None, LOST: "loss", DRAWN: "draw", WON: "win"}
VERDICT_SCORES = {LOST: -THOUSAND, DRAWN: 0, WON: THOUSAND}
_FIELDS = 3


class PlayedOutGame(Game):
    """A game as playouts see it: won, drawn, lost, and shares in between."""

    def score_text(self, position: Any, score: int, is_solved: bool) -> str:
        """Return a mean result in thousandths, or an outcome, as people read it."""
        if is_solved:
            return "drawn" if score == DRAW else "won" if score > DRAW else "lost"
        return f"{(score / THOUSAND + 1) / 2:.1%}"


@cache
def playouts_view(game: Game) -> Game:
    """Return a game as playouts see it; of a view, itself."""
    if isinstance(game, PlayedOutGame):
        return game
    return PlayedOutGame(**{each.name: getattr(game, each.name) for each in fields(game)})


class RootMove(NamedTuple):
    """What the playouts say of a first move, for the root's side to move."""

    move: int
    visits: int
    value: int
    """Sum of results: 1 for a win, 0 for a draw, -1 for a loss."""
    verdict: int
    """What is proved: a verdict of `search.mcts_tree`."""

    @property
    def mean(self) -> float:
        """Mean result, -1..1; 0 without a visit."""
        return self.value / self.visits if self.visits else 0.0

    @property
    def win_rate(self) -> float:
        """Share of the results that are wins, 0..1, where two draws are a win and a loss; of a proved move, exact."""
        return (self.score / THOUSAND + 1) / 2 if self.verdict != UNKNOWN else (self.mean + 1) / 2

    @property
    def score(self) -> int:
        """Mean result in thousandths; exact where it is proved."""
        return VERDICT_SCORES.get(self.verdict, round(self.mean * THOUSAND))

    @property
    def rank(self) -> tuple[int, int, int]:
        """What ranks moves: a win first, a loss last; a draw before what looks worse; then by visits and results."""
        tier = 1 if self.verdict == UNKNOWN and self.value < 0 else {WON: 3, LOST: 0}.get(self.verdict, 2)
        return tier, self.visits, self.value


class Standing(NamedTuple):
    """A root's moves, by their numbers."""

    moves: tuple[RootMove, ...]

    @property
    def playouts(self) -> int:
        """Visits of all moves."""
        return sum(move.visits for move in self.moves)

    @property
    def ranked(self) -> tuple[RootMove, ...]:
        """The moves, the best first."""
        return tuple(sorted(self.moves, key=lambda move: move.rank, reverse=True))

    @property
    def verdict(self) -> int:
        """What is proved of the root for its side to move, among these moves."""
        verdicts = [move.verdict for move in self.moves]
        return WON if WON in verdicts else UNKNOWN if UNKNOWN in verdicts else max(verdicts)

    def words(self) -> tuple[int, ...]:
        """Return all but the moves' numbers, for the way to another process."""
        return tuple(word for move in self.moves for word in move[1:])


def standing_of(moves: Sequence[int], words: Sequence[int]) -> Standing | None:
    """Return the standing of which another process has sent the words, None where they are none of these moves.

    Parameters
    ----------
    moves
        The root's, in the order of their numbers.
    words
        What `Standing.words` made.
    """
    if len(words) != _FIELDS * len(moves):
        return None
    rows = [tuple(words[begin : begin + _FIELDS]) for begin in range(0, len(words), _FIELDS)]
    found = [RootMove(move, *row) for move, row in zip(moves, rows, strict=True)]
    if all(0 <= abs(each.value) <= each.visits and each.verdict in VERDICT_NAMES for each in found):
        return Standing(tuple(found))
    return None


def merged(standings: Iterable[Standing]) -> Standing:
    """Return the sum of what machines with trees of their own have found of the same moves; at least one.

    A verdict of any of them is one: proofs do not contradict each other.
    """
    return Standing(
        tuple(
            RootMove(
                rows[0].move,
                sum(row.visits for row in rows),
                sum(row.value for row in rows),
                max(row.verdict for row in rows),
            )
            for rows in zip(*(standing.moves for standing in standings), strict=True)
        )
    )
