"""What a game of several players defines: who moves, and what the end is worth to each of them.

Such a game says `PLAYERS`, and needs no `evaluate`. Its required names, besides those of `search.rules`::

    PLAYERS                     how many play, 2..8, numbered from 0
    player(position)            @helper: who is to move, also where the game is over; the turn may pass in any order
    payoff(position, player)    @helper: what a finished game is worth to a player, within (-MATE_BOUND, MATE_BOUND)
    estimate(position, player)  @helper: what a game that goes on may be worth to a player, within the same bounds

Its `outcome` is ONGOING or the payoff of the player to move. Payoffs may be any numbers: both of two players may gain
at once. What bounds them lets `search.multiplayer` leave moves out; estimates must then keep the same bounds::

    LOWEST_PAYOFF               no player ever gets less
    HIGHEST_PAYOFF              no player ever gets more
    PAYOFF_SUM                  all players together never get more; of use together with LOWEST_PAYOFF

`order` ranks a move for the player who makes it. The rules for two sides (`side_to_move`, `stuck`, `clock`,
`in_check` and what belongs to them) have no meaning here, and a file that has both is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from search.rules import Game, PositionRule, RulesError
from search.scores import INFINITY, MATE_BOUND, MAX_PLAYERS

ValueRule = Callable[[Any, int], int]
_REQUIRED = ("player", "payoff", "estimate")
_FOR_TWO_SIDES = (
    "side_to_move", "stuck", "clock", "in_check", "captures", "pass_turn", "sound_moves", "solve_leaf", "upper_bound",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PlayerRules:
    """What a game says of its players; the rules are compiled functions."""

    players: int
    player: PositionRule
    payoff: ValueRule
    estimate: ValueRule
    lowest: int | None
    """No player ever gets less; None where nothing is known, as below."""
    highest: int | None
    payoff_sum: int | None
    """All players together never get more."""

    @property
    def has_bounded_sum(self) -> bool:
        """Whether what one player has tells how much the others can still get."""
        return self.lowest is not None and self.payoff_sum is not None

    @property
    def ceiling(self) -> int:
        """What no player can exceed; `INFINITY` where nothing is known."""
        highest = INFINITY if self.highest is None else self.highest
        return min(highest, self.most_for(1))

    def most_for(self, some: int) -> int:
        """Return the most that so many of the players can have together; `INFINITY` where nothing is known."""
        if self.lowest is None or self.payoff_sum is None:
            return INFINITY
        return self.payoff_sum - (self.players - some) * self.lowest


def player_rules(game: Game) -> PlayerRules:
    """Return what a game says of its players.

    Raises
    ------
    RulesError
        If it is no game of several players, or its file lacks or contradicts something.
    """
    module = game.module
    if not game.has("PLAYERS"):
        raise RulesError(f"the game {game.name} is one of two sides: it does not define PLAYERS")
    players = module.PLAYERS
    if type(players) is not int or not 2 <= players <= MAX_PLAYERS:
        raise RulesError(f"PLAYERS in {game.name} must be from 2 to {MAX_PLAYERS}, not {players!r}")
    missing = [name for name in _REQUIRED if not game.has(name)]
    if missing:
        raise RulesError(f"the game {game.name} has {players} players, but does not define {', '.join(missing)}")
    wrong = [name for name in _FOR_TWO_SIDES if game.has(name)]
    if wrong:
        raise RulesError(f"the game {game.name} has {players} players: {', '.join(wrong)} is for two sides")
    lowest, highest, payoff_sum = (
        _bound(game, name, reach)
        for name, reach in (("LOWEST_PAYOFF", 1), ("HIGHEST_PAYOFF", 1), ("PAYOFF_SUM", players))
    )
    rules = PlayerRules(players, module.player, module.payoff, module.estimate, lowest, highest, payoff_sum)
    if lowest is not None and rules.ceiling < lowest:
        raise RulesError(f"the bounds of payoffs in {game.name} contradict each other: nothing is left above {lowest}")
    return rules


def _bound(game: Game, name: str, reach: int) -> int | None:
    """Return a bound that a game may declare."""
    bound = getattr(game.module, name, None)
    if bound is not None and (type(bound) is not int or not abs(bound) < reach * MATE_BOUND):
        raise RulesError(f"{name} in {game.name} must be an integer within {reach * MATE_BOUND}, not {bound!r}")
    return bound
