"""The judge of a game for Python code: legal moves, play, outcome; wraps the compiled `search.rulebook`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from search import jit
from search.flags import Flags
from search.player_rules import player_rules
from search.rules import Game, RulesError
from search.scores import ONGOING
from tt_store.layout import WORD_BYTES, unpack
from tt_store.segment import Segment

_PLAIN = Flags()


def print_notice(line: str) -> None:
    """Tell the user one line, on stderr."""
    print(f"rootsplit: {line}", file=sys.stderr, flush=True)


class Facts(NamedTuple):
    """What the rules say of a position."""

    outcome: int
    """`ONGOING` or the final score for the side to move."""
    evaluation: int
    """The estimate for the side to move."""
    side_to_move: int
    """0 or 1 for games with extra turns, else always 0."""
    key: int
    """The 64-bit hash, as a signed integer."""
    table_key: int
    """Another hash where a draw by the clock is near: equal where a search cannot tell positions apart."""
    entry_key: int
    """The hash under which a table holds the position, and those that are symmetric to it."""
    clock: int
    """Plies since a move that cannot be undone; 0 for games that have no clock."""
    is_chance: int = 0
    """1 if chance moves here, else 0."""

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return self.outcome != ONGOING


class Referee:
    """Answers questions about positions of one game.

    Parameters
    ----------
    game
        A game from `search.game_files.load_game`.
    notice
        Gets a line if something must be compiled first.
    """

    def __init__(self, game: Game, notice: Callable[[str], None] = print_notice) -> None:
        self.game = game
        self.rulebook = jit.specialise("search.rulebook", game, _PLAIN)
        self._buffer = np.zeros(game.max_moves + 1, np.int64)
        jit.warm_up(self.rulebook, self._touch_all, notice)

    def legal_moves(self, position: Any) -> list[int]:
        """Return the legal moves as the game generates them; none where the game is over.

        In a game that defines `stuck` a draw by rule ends nothing by itself: somebody must claim it. Where there are
        moves, they are legal.
        """
        if not self.game.has("stuck") and self.facts(position).is_over:
            return []
        begin = self._buffer.ctypes.data
        end = self.rulebook.list_moves(position, begin)
        return [int(move) for move in self._buffer[: (end - begin) // WORD_BYTES]]

    def play(self, position: Any, move: int) -> Any:
        """Return the position after a legal move."""
        return self.game.position(self.rulebook.play_move(position, move))

    def facts(self, position: Any) -> Facts:
        """Return outcome, estimate, side to move, hashes and clock."""
        return Facts(*self.rulebook.facts_of(position, self._buffer.ctypes.data))

    def payoffs(self, position: Any) -> tuple[int, ...]:
        """Return what a finished game is worth to each of several players; nothing where two sides play."""
        if not self.game.has("payoff"):
            return ()
        players = range(player_rules(self.game).players)
        return tuple(int(self.rulebook.payoff_of(position, player)) for player in players)

    def history_after(self, history: tuple[int, ...], parent: Facts, child: Facts) -> tuple[int, ...]:
        """Return the hashes of the positions that can come back after a move, the latest last.

        Parameters
        ----------
        history
            The same, of the position before the move.
        parent, child
            The positions before and after it.
        """
        return (*history, parent.key)[-child.clock :] if child.clock else ()

    def follow(self, position: Any, history: tuple[int, ...], line: Iterable[int]) -> tuple[Any, tuple[int, ...]]:
        """Return the position after a legal line, and the hashes of the positions that can come back there."""
        facts = self.facts(position)
        for move in line:
            position = self.play(position, move)
            before, facts = facts, self.facts(position)
            history = self.history_after(history, before, facts)
        return position, history

    def is_repetition(self, history: tuple[int, ...], key: int, ply: int) -> bool:
        """Tell whether a position is a draw because it came before: the plain twin of `search.repetition`.

        Parameters
        ----------
        history
            The positions that can come back, the latest last.
        key, ply
            Hash of the position, and its plies from the root; the root and what came before it count from the third
            time on.
        """
        return history.count(key) > 1 or (ply > 1 and key in history[1 - ply :])

    def changes_side(self, before: Any, after: Any) -> bool:
        """Tell whether the other side is to move after a move."""
        if not self.game.has_extra_turns:
            return True
        return self.facts(before).side_to_move != self.facts(after).side_to_move

    def play_texts(self, position: Any, texts: Iterable[str]) -> Any:
        """Play moves given as text.

        Raises
        ------
        RulesError
            If one of them is no move, or not legal where it is played.
        """
        return self.follow(position, (), self.line_of(position, texts))[0]

    def line_of(self, position: Any, texts: Iterable[str], first_number: int = 1) -> tuple[int, ...]:
        """Return the legal line that is given as text; errors count its moves from a first number.

        Raises
        ------
        RulesError
            If one of the moves is no move, or not legal where it is played.
        """
        line = []
        for number, text in enumerate(texts, first_number):
            move = self.game.parse_move(position, text)
            if move not in self.legal_moves(position):
                raise RulesError(f"move {number}, {text}, is not legal there")
            position = self.play(position, move)
            line.append(move)
        return tuple(line)

    def legal_prefix(self, position: Any, line: Iterable[int]) -> tuple[list[int], Any]:
        """Return the moves of a line up to the first illegal one, and the position after them."""
        played: list[int] = []
        for move in line:
            if move not in self.legal_moves(position):
                break
            position = self.play(position, move)
            played.append(move)
        return played, position

    def rank(self, position: Any, move: int, child: Any) -> tuple[int, bool]:
        """Return what the rules alone say of a move: its rank, and whether it gives check."""
        rank, gives_check = self.rulebook.rank_of(position, move, child)
        return int(rank), bool(gives_check)

    def depth_change(self, rank: int, number: int, depth: int, gives_check: bool) -> tuple[int, int]:
        """Return what a selective search makes of a move in a node with a null window.

        Parameters
        ----------
        rank, gives_check
            From `rank`.
        number
            How many moves are tried before.
        depth
            Of the node.

        Returns
        -------
        extension, reduction
            Plies that are added, and that are left out at first.
        """
        extension, reduction = self.rulebook.depth_change(rank, number, depth, int(gives_check))
        return int(extension), int(reduction)

    def turned_move(self, position: Any, move: int) -> int:
        """Return a move of the table's entry for a position as the position has it; `NO_MOVE` stays."""
        return int(self.rulebook.turned_move(position, move))

    def known_move(self, segment: Segment, key: int) -> int:
        """Return the move that a table holds for a salted hash (signed), as the entry has it; `NO_MOVE` if none.

        It may be illegal.
        """
        return unpack(self.rulebook.probe_table(segment.table_address, segment.buckets, key)).move

    def line_texts(self, position: Any, line: Iterable[int]) -> list[str]:
        """Return a legal line in its users' notation."""
        texts = []
        for move in line:
            texts.append(self.game.move_text(position, move))
            position = self.play(position, move)
        return texts

    def _touch_all(self) -> None:
        position = self.game.parse("")
        word = np.zeros(16, np.int64)
        address = (word.ctypes.data + 63) & ~63
        self.rulebook.facts_of(position, self._buffer.ctypes.data)
        self.rulebook.list_moves(position, self._buffer.ctypes.data)
        self.rulebook.play_move(position, int(self._buffer[0]))
        self.rulebook.turned_move(position, int(self._buffer[0]))
        self.rulebook.probe_table(address, 1, 0)
        self.rulebook.rank_of(position, int(self._buffer[0]), position)
        self.rulebook.depth_change(0, 0, 0, 0)
        self.payoffs(position)
