"""Which search is right for which game: kinds of games, the algorithms that are sound for them, the one refusal.

A game says what it is by what its file defines: `is_chance` makes it a game of chance (`search.chance_rules`),
`PLAYERS` one of several players (`search.player_rules`); any other is one of two players and no chance.
"""

from __future__ import annotations

from enum import StrEnum

from search.flags import FULL_WIDTH, Algorithm, Flags
from search.mcts_standing import playouts_view
from search.paranoid import paranoid_view
from search.rules import Game, RulesError
from search.solving import Question, solving_flags


class Kind(StrEnum):
    """What a game is, in the words of a sentence."""

    TWO_PLAYERS = "a game of two players without chance"
    CHANCE = "a game of chance"
    SEVERAL_PLAYERS = "a game of several players"


SOUND: dict[Kind, tuple[Algorithm, ...]] = {
    Kind.TWO_PLAYERS: (Algorithm.ALPHA_BETA, Algorithm.MCTS),
    Kind.CHANCE: (Algorithm.EXPECTIMINIMAX,),
    Kind.SEVERAL_PLAYERS: (Algorithm.MAX_N, Algorithm.PARANOID),
}
"""Of each kind, the default first. A game may name another of them as its `ALGORITHM`."""

SPLIT_ANYWHERE = frozenset({Algorithm.ALPHA_BETA, Algorithm.PARANOID})
"""Searches whose inner nodes other workers may take over: all below the root is minimax."""

HAS_DEPTH = frozenset(Algorithm) - {Algorithm.MCTS}
"""Searches that go to a depth."""

PROVES_MATES = frozenset({Algorithm.ALPHA_BETA})
"""Searches that can be asked for a mate or a solution."""


def kind_of(game: Game) -> Kind:
    """Return what a game is.

    Raises
    ------
    RulesError
        If it has both chance and several players, for which there is no search here.
    """
    is_of_chance, is_of_several = game.has("is_chance"), game.has("PLAYERS")
    if is_of_chance and is_of_several:
        raise RulesError(f"{game.label} has both chance and several players, and no algorithm here is sound for that")
    if is_of_chance:
        return Kind.CHANCE
    return Kind.SEVERAL_PLAYERS if is_of_several else Kind.TWO_PLAYERS


def chosen(game: Game, name: str | None = None) -> Algorithm:
    """Return the algorithm of a name, or the one that suits a game.

    Parameters
    ----------
    game
        The game.
    name
        What the user wants; None for the game's own `ALGORITHM`, or else the default of its kind.

    Raises
    ------
    RulesError
        If there is no such algorithm, or it is not sound for the game: the sentence names those that are.
    """
    wanted = name or getattr(game.module, "ALGORITHM", None)
    if wanted is None:
        return SOUND[kind_of(game)][0]
    known = {algorithm.label: algorithm for algorithm in Algorithm}
    if wanted not in known:
        raise RulesError(f"unknown algorithm {wanted!r}: there are {', '.join(known)}")
    check_sound(game, known[wanted])
    return known[wanted]


def check_sound(game: Game, algorithm: Algorithm) -> None:
    """Refuse an algorithm that would be wrong for a game.

    Raises
    ------
    RulesError
        In one sentence, which says which one fits.
    """
    kind = kind_of(game)
    if algorithm not in SOUND[kind]:
        fitting = " or ".join(each.label for each in SOUND[kind])
        raise RulesError(f"{algorithm.label} is not sound for {game.label}, {kind}: use {fitting}")


def seen_by(game: Game, algorithm: Algorithm) -> Game:
    """Return a game as an algorithm sees it: some have a view of their own, the others take the game itself."""
    views = {Algorithm.PARANOID: paranoid_view, Algorithm.MCTS: playouts_view}
    return views[algorithm](game) if algorithm in views else game


def flags_to_depth(game: Game, flags: Flags = Flags()) -> Flags:
    """Return a variant of the kernel for the default of a game's kind, a search to a depth, whatever the game names."""
    return flags._replace(algorithm=SOUND[kind_of(game)][0])


def flags_to_answer(
    game: Game, name: str | None, flags: Flags = Flags(), *, mate: int | None = None, question: Question | None = None
) -> Flags:
    """Return a variant of the kernel for what is asked: a mate in so many moves, a proof, or the best move.

    A mate is looked for at full width, unless the flags say something else than usual.

    Raises
    ------
    RulesError
        As `chosen` does.
    """
    if question is not None:
        flags = solving_flags(game, flags)
    elif mate is not None and flags == Flags() and game.is_selective(flags):
        flags = FULL_WIDTH
    return flags_for(game, name, flags)


def flags_for(game: Game, name: str | None = None, flags: Flags = Flags()) -> Flags:
    """Return a variant of the kernel for the algorithm of a name, or for the one that suits a game.

    Raises
    ------
    RulesError
        As `chosen` does.
    """
    return flags._replace(algorithm=chosen(game, name))
