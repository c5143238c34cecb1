"""What a game of chance declares besides `search.rules`: where chance moves, how likely what is, and how scores count.

Names that make a game one of chance, all required::

    is_chance(position)      @helper, 1 or 0: whether chance moves here. `moves` then pushes the outcomes, best the
                             likeliest first, `play` plays one, `move_text` and `parse_move` write it, such as a die's 3
    weight(position, move)   @helper: how likely an outcome is, an integer of 1 or more
    WEIGHT_SUM               what the weights of the outcomes of every chance node add up to, such as 6 or 36
    VALUE_BOUND              no payoff and no estimate is beyond it, either way; below MATE_BOUND
    side_to_move(position)   @helper, 0 or 1: where chance moves, whose point of view the scores there are of

Optional::

    POINT                    how many units of score are one point of payoff; `VALUE_BOUND` by default

**Scores** are expected payoffs in the game's own units: fixed-point numbers with `POINT` units to the point. `outcome`
gives a payoff within the bound, and only a won game may reach it; a mate score there would have no meaning: distances
cannot be averaged, so a win counts the same however soon it comes. Where a game could dither, let its payoffs fall with
its length. A score of exactly plus or minus `VALUE_BOUND` is therefore a proved one: no other average reaches it.

**The value of a chance node** is the sum of weight times value over its outcomes, divided by `WEIGHT_SUM` and rounded
towards zero. This is its definition, no approximation: it is monotone, so that bounds of outcomes bound it, and odd, so
that both sides agree; every variant, window, table and number of workers finds the same. Against an average in real
numbers each chance node on a line loses less than one unit. A bound divisible by a power of `WEIGHT_SUM` keeps as many
dice in a row exact: 23,328 = 3 * 6^5 loses nothing of wins and losses over five rolls of a die.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from search.jit import helper
from search.rules import Game, RulesError
from search.scores import MATE_BOUND

_REQUIRED = ("is_chance", "weight", "WEIGHT_SUM", "VALUE_BOUND", "side_to_move")


@helper
def _never(_position: Any) -> int:
    return 0


@helper
def _no_weight(_position: Any, _move: int) -> int:
    return 1


@dataclass(frozen=True)
class ChanceRules:
    """What a game says of chance, checked; harmless defaults for a game without."""

    is_chance: Callable[[Any], int] = _never
    weight: Callable[[Any, int], int] = _no_weight
    weight_sum: int = 1
    value_bound: int = 0
    """0 for a game without chance."""
    point: int = 1

    def expected_value(self, score: int) -> float | None:
        """Return a score in points of payoff; None for a game without chance."""
        return score / self.point if self.value_bound else None


def chance_rules_of(game: Game) -> ChanceRules:
    """Return what a game says of chance.

    Raises
    ------
    RulesError
        If it says but a part of it, or a number is out of range.
    """
    if not game.has("is_chance"):
        return ChanceRules()
    missing = [name for name in _REQUIRED if not game.has(name)]
    if missing:
        raise RulesError(f"the game of chance {game.name} does not define {', '.join(missing)}")
    module = game.module
    bound, weight_sum = int(module.VALUE_BOUND), int(module.WEIGHT_SUM)
    point = int(getattr(module, "POINT", bound))
    if not 0 < bound < MATE_BOUND or point < 1:
        raise RulesError(f"VALUE_BOUND of {game.name} must be from 1 to {MATE_BOUND - 1}, and POINT at least 1")
    if not 1 <= weight_sum < 1 << 31:
        raise RulesError(f"WEIGHT_SUM of {game.name} must be from 1 to 2^31 - 1, not {weight_sum}")
    return ChanceRules(module.is_chance, module.weight, weight_sum, bound, point)
