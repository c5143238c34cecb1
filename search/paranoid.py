"""The paranoid search of a game of several players: alpha-beta of one against all others (Sturtevant and Korf 2000).

It is the search of two sides over another view of the game, so that it has all that that one has: windows, table,
driver, splitters, executors. The price is its pessimism: nobody plays only to harm one other.
"""

from __future__ import annotations

from functools import cache

from search import jit
from search.flags import Flags
from search.game_files import game_of
from search.player_rules import player_rules
from search.rules import Game


@cache
def paranoid_view(game: Game) -> Game:
    """Return the game of two sides that the player to move sees in a game of several players; of a view, itself.

    A search must begin with the `Game.root_position` of a position: its player to move is the one against all others.

    Raises
    ------
    RulesError
        If it is no game of several players.
    """
    if game.has("inner_of"):
        return game
    player_rules(game)
    return game_of(jit.specialise("search.coalition", game, Flags()), game.name, game.parameters)
