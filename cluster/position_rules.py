"""A game's rules as strategies see them: positions as integers, finished games with their scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.upper_tree import Child
from search.referee import Referee
from search.scores import DRAW, final_score
from tt_store.layout import NO_MOVE


class PositionRules:
    """A game's rules as strategies see them.

    Parameters
    ----------
    referee
        The game.
    contempt
        What a draw costs the side that the search is for.
    known_move
        What a table holds for best at a hash; 0 if nothing.
    sees_repetition
        Whether a position that came before is a draw.
    """

    def __init__(
        self, referee: Referee, contempt: int, known_move: Callable[[int], int], sees_repetition: bool = True
    ) -> None:
        self._referee, self._contempt, self._known_move = referee, contempt, known_move
        self._sees_repetition = sees_repetition

    def expand(self, position: tuple[int, ...], ply: int, side: int, history: tuple[int, ...]) -> list[Child]:
        """Return the children of a position that is not over, in the order in which the game would try them."""
        referee = self._referee
        parent = referee.game.position(position)
        parent_facts = referee.facts(parent)
        children = []
        for move in referee.legal_moves(parent):
            child = referee.play(parent, move)
            facts = referee.facts(child)
            is_same_side = referee.game.has_extra_turns and facts.side_to_move == parent_facts.side_to_move
            child_side = side if is_same_side else 1 - side
            before = referee.history_after(history, parent_facts, facts)
            outcome, key, is_over = facts.outcome, facts.table_key, facts.is_over
            if self._sees_repetition and not is_over and referee.is_repetition(before, facts.key, ply + 1):
                # Other paths to the same position are no draws: its key must not lead to this one.
                outcome, key, is_over = DRAW, ~key, True
            score = None
            if is_over:
                score = final_score(outcome, ply + 1, self._contempt if child_side else -self._contempt)
            reply = NO_MOVE if is_over else referee.turned_move(child, self._known_move(facts.entry_key))
            rank, gives_check = referee.rank(parent, move, child)
            children.append(Child(move, words_of(child), child_side, key, score, reply, before, rank, gives_check))
        children.sort(key=lambda child: -child.rank)
        return children


def words_of(position: Any) -> tuple[int, ...]:
    """Return a position's fields as integers."""
    return tuple(int(word) for word in position)
