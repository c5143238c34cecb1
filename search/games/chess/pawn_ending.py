"""King and pawn against king: who wins is known for every position, computed when the module is imported.

Backwards from what is decided (Ströhlein 1970), as boards: for a pawn and its king, the squares of the other king from
which the pawn wins are one word, so that a pass over all positions is a few operations on two small arrays. Pawns of
the files e to h are those of d to a in a mirror.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from search.games.chess.attacks import DIAGONAL, STRAIGHT, ray
from search.games.chess.board import NOTHING, Position, occupied
from search.jit import helper, inlined
from tt_store.layout import WORD_BYTES
from tt_store.native import constant_table, read_word, swap_bytes, trailing_zeros

Boards = NDArray[np.uint64]

WON, WON_A_RANK = 500, 40
"""What a won pawn is worth, and more for each rank that it has gone: less than what it will become."""

_FILES, _SQUARES, _MIRROR = 4, 64, 7
_PAWNS = tuple(8 * rank + file for rank in range(1, 7) for file in range(_FILES))
"""A pawn's place in the table."""
_NEXT_RANK = _FILES
_EDGES = np.uint64(0x7F7F_7F7F_7F7F_7F7F), np.uint64(0xFEFE_FEFE_FEFE_FEFE)
"""All files but h, and all but a."""


def _boards(squares_of: Callable[[int], list[int]], origins: Sequence[int]) -> Boards:
    """Return the board of some squares for each origin."""
    return np.array([sum(1 << square for square in squares_of(origin)) for origin in origins], np.uint64)


def _around(boards: Boards) -> Boards:
    """Return the squares next to any of some squares."""
    beside = (boards & _EDGES[0]) << np.uint64(1) | (boards & _EDGES[1]) >> np.uint64(1)
    wide = boards | beside
    around: Boards = beside | wide << np.uint64(8) | wide >> np.uint64(8)
    return around


def winning_squares() -> Boards:
    """Return where the other king loses: `[2, pawns, kings]`, first with the pawn's side to move."""
    everywhere = range(_SQUARES)
    kings = _boards(lambda square: [square], everywhere)
    near_king = _around(kings) | kings
    pawns = kings[list(_PAWNS)][:, None]
    pawn_attacks = _boards(lambda pawn: [s for step in ((1, 1), (1, -1)) for s in ray(pawn, step)[:1]], _PAWNS)[:, None]
    apart = np.where(pawns == kings, np.uint64(0), ~(near_king | pawns))
    """Where the other king may stand beside both: next to neither king; and not in check where it is not to move."""
    unchecked = apart & ~pawn_attacks
    takes = np.where(pawns & near_king == 0, pawns, np.uint64(0))
    may_move = _around(unchecked | takes)

    # The pawn becomes a queen or rook that is not lost at once; where that is stalemate, its king wins more slowly.
    squares = pawns[-_FILES:] << np.uint64(8)
    protected = squares & near_king != 0
    promoted = ~np.where(protected, squares, squares | _around(squares)) & unchecked[-_FILES:]
    won, lost = np.zeros_like(apart), np.zeros_like(apart)
    won[-_FILES:] = np.where(squares == kings, np.uint64(0), promoted)
    steps = [[s for step in DIAGONAL + STRAIGHT for s in ray(king, step)[:1]] for king in everywhere]
    while True:
        lost_now = apart & ~_around(unchecked & ~won | takes) & (may_move | pawn_attacks)
        if (lost_now == lost).all():
            return np.stack((won, lost))
        lost = lost_now
        for king in everywhere:
            won[:, king] |= np.bitwise_or.reduce(lost[:, steps[king]], axis=1)
        won[:-_NEXT_RANK] |= lost[_NEXT_RANK:]
        # Two steps, over a square where neither king stands.
        passed = pawns[:_FILES] << np.uint64(8)
        won[:_FILES] |= np.where(passed == kings, np.uint64(0), lost[2 * _NEXT_RANK : 3 * _NEXT_RANK] & ~passed)
        won &= unchecked


_table = constant_table("chess_king_and_pawn", winning_squares().ravel())


@inlined
def is_pawn_ending(position: Position) -> bool:
    """Tell whether a single pawn stands beside two kings."""
    pawns = position.pawns
    is_lone = pawns & (pawns - np.uint64(1)) == NOTHING and pawns != NOTHING
    return bool(is_lone and position.knights | position.diagonals | position.straights == NOTHING)


@helper
def _wins(pawn: int, king: int, other_king: int, is_to_move: bool) -> bool:
    """Tell whether a pawn that goes upward wins; its side may be to move or the other."""
    mirror = _MIRROR if pawn & 7 >= _FILES else 0
    row = (pawn ^ mirror) - 8
    place = (0 if is_to_move else len(_PAWNS)) + (row >> 3) * _FILES + (row & 7)
    losing = read_word(_table() + (place * _SQUARES + (king ^ mirror)) * WORD_BYTES)
    return bool(losing >> np.uint64(other_king ^ mirror) & np.uint64(1) != NOTHING)


@helper
def pawn_ending_value(position: Position) -> int:
    """Return the estimate of a position with two kings and a pawn, for the side to move: 0 where it is a draw."""
    is_own = position.own & position.pawns != NOTHING
    pawns, kings, own = position.pawns, position.kings, position.own
    if not is_own:
        pawns, kings, own = swap_bytes(pawns), swap_bytes(kings), swap_bytes(occupied(position) & ~own)
    pawn: int = trailing_zeros(pawns)
    value = WON + WON_A_RANK * (pawn >> 3)
    if not _wins(pawn, trailing_zeros(kings & own), trailing_zeros(kings & ~own), is_own):
        value = 0
    return value if is_own else -value
