"""Weights to start from: a few ideas written as formulas, in centipawns for the middle game and for the end game.

Tuning begins here, and stays near where the data say little. Men belong to the centre, knights most of all; pawns
want to advance, in the end game above all; the king hides first and walks to the centre later; each further square
that a man can reach is worth less than the one before.
"""

from __future__ import annotations

from collections.abc import Callable

from search.games.chess.board import KINDS, KNIGHT, PAWN, QUEEN, ROOK

Pair = tuple[int, int]
"""Values for the middle game and for the end game."""
Pairs = tuple[Pair, ...]

MATERIAL: Pairs = ((85, 105), (330, 300), (345, 320), (480, 540), (0, 0), (1010, 980))
_RANKS = 8


def _centrality(rank: int, file: int) -> int:
    """Return -3 in a corner to +3 in the centre."""
    return 3 - (max(file, 7 - file) + max(rank, 7 - rank) - 8)


def _square(kind: int, rank: int, file: int) -> Pair:
    centre, is_central_file = _centrality(rank, file), file == 3
    if kind == PAWN:
        is_on_board = rank not in (0, 7)
        return (rank - 1) * (4 if is_central_file else 1) * is_on_board, (rank - 1) * 4 * is_on_board
    if kind == KNIGHT:
        return 8 * centre + 2 * rank, 6 * centre
    if kind == ROOK:
        return 4 * is_central_file, rank
    if kind == QUEEN:
        return centre, 4 * centre
    if kind == KINDS - 2:
        return -12 * rank - 8 * centre + 10 * (file in (1, 2)), 9 * centre
    return 4 * centre - 6 * (rank == 0), 2 * centre


def _squares(kind: int) -> Pairs:
    return tuple(_square(kind, rank, file) for rank in range(8) for file in range(4))


def _growth(most: int, middle: float, end: float, usual: float) -> Pairs:
    """Return values for 0..most of something, 0 at the usual share of the most, growing ever more slowly."""
    shape = [(number / most) ** 0.6 - usual**0.6 for number in range(most + 1)]
    return tuple((round(middle * share), round(end * share)) for share in shape)


def _by_rank(value: Callable[[int], Pair]) -> Pairs:
    return tuple(value(rank) if 0 < rank < _RANKS - 1 else (0, 0) for rank in range(_RANKS))


def starting_weights() -> dict[str, Pairs]:
    """Return all terms and their weights by formula, in the order of the table."""
    return {
        "material": MATERIAL,
        "pawn_squares": _squares(0),
        "knight_squares": _squares(1),
        "bishop_squares": _squares(2),
        "rook_squares": _squares(3),
        "king_squares": _squares(4),
        "queen_squares": _squares(5),
        "tempo": ((20, 12),),
        "castling_right": ((12, 0),),
        "bishop_pair": ((25, 45),),
        "bishop_pawns": ((-2, -4),),
        "knight_mobility": _growth(8, 60, 60, 0.4),
        "bishop_mobility": _growth(13, 70, 90, 0.4),
        "rook_mobility": _growth(14, 50, 110, 0.4),
        "queen_mobility": _growth(27, 50, 100, 0.4),
        "knight_outpost": ((25, 15),),
        "bishop_outpost": ((18, 8),),
        "minor_behind_pawn": ((8, 3),),
        "rook_open_file": ((30, 10),),
        "rook_half_open_file": ((14, 8),),
        "rook_seventh": ((10, 25),),
        "doubled": ((-6, -20),),
        "isolated": ((-8, -10), (-16, -16)),
        "backward": ((-5, -8), (-14, -14)),
        "supported": _by_rank(lambda rank: (3 * rank, 2 * rank)),
        "phalanx": _by_rank(lambda rank: (2 * rank, 2 * rank)),
        "passed": _by_rank(lambda rank: (rank * rank, 3 * rank * rank)),
        "passed_free_step": _by_rank(lambda rank: (rank, rank * rank)),
        "passed_free_path": _by_rank(lambda rank: (rank, 2 * rank * rank)),
        "passed_supported": _by_rank(lambda rank: (2 * rank, 3 * rank)),
        "passed_own_king": tuple((0, -3 * distance) for distance in range(8)),
        "passed_other_king": tuple((0, 4 * distance) for distance in range(8)),
        "passed_unstoppable": ((0, 250),),
        "shelter_king_file": ((-30, 0), *((24 - 6 * rank, 0) for rank in range(1, 8))),
        "shelter_side_file": ((-20, 0), *((24 - 6 * rank, 0) for rank in range(1, 8))),
        "storm_free": ((-5, 0), *((-max(0, 32 - 8 * rank), 0) for rank in range(1, 8))),
        "storm_blocked": ((0, 0), *((-max(0, 16 - 4 * rank), 0) for rank in range(1, 8))),
        "pawn_threat": ((40, 25), (45, 35), (60, 20), (55, 15)),
        "minor_threat": ((2, 15), (20, 25), (25, 30), (50, 30), (45, 40)),
        "rook_threat": ((2, 15), (20, 25), (20, 25), (45, 30)),
        "hanging": ((25, 15),),
        "push_threat": ((14, 10),),
    }


def starting_danger() -> dict[str, tuple[int, ...]]:
    """Return the units of danger to a king by formula; see `search.games.chess.king_safety`."""
    return {
        "danger_base": (-20,),
        "danger_attackers": (9, 7, 10, 12),
        "danger_ring": (3,),
        "danger_weak": (6,),
        "danger_checks": (24, 14, 26, 22),
        "danger_no_queen": (-40,),
        "danger_holes": (5,),
    }
