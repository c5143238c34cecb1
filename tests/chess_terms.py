"""The terms of the chess evaluation a second time: slow, by definition, on python-chess's board; imports none of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import chess

Counts = Counter[tuple[str, int]]
"""How often each weight enters, by the term's name and the weight's place in it."""

MINORS = (chess.KNIGHT, chess.BISHOP)
PIECES = (chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN)
NAMES = {chess.KNIGHT: "knight", chess.BISHOP: "bishop", chess.ROOK: "rook", chess.QUEEN: "queen"}


class Side:
    """One side of a board turned so that the side is White."""

    def __init__(self, board: Any, is_to_move: bool) -> None:
        self.board, self.is_to_move = board, is_to_move
        self.king, self.their_king = board.king(chess.WHITE), board.king(chess.BLACK)
        self.pawns, self.their_pawns = (set(board.pieces(chess.PAWN, side)) for side in (chess.WHITE, chess.BLACK))

    def men(self, kind: int) -> list[int]:
        return list(self.board.pieces(kind, chess.WHITE))

    def their(self, kind: int) -> list[int]:
        return list(self.board.pieces(kind, chess.BLACK))

    def reach(self, square: int) -> set[int]:
        """Return what a man of ours attacks; sliders look through friends that move the same way."""
        board = self.board.copy(stack=False)
        kind = board.piece_type_at(square)
        through = {chess.BISHOP: [chess.QUEEN], chess.ROOK: [chess.ROOK, chess.QUEEN]}.get(kind, [])
        for other in (other for friend in through for other in self.men(friend) if other != square):
            board.remove_piece_at(other)
        return set(board.attacks(square))

    def attackers_of(self, square: int) -> int:
        return sum(square in self.reach(man) for man in chess.SquareSet(self.board.occupied_co[chess.WHITE]))

    def covers(self, square: int) -> bool:
        return self.attackers_of(square) > 0

    def pawns_cover(self, square: int) -> bool:
        return any(square in self.reach(pawn) for pawn in self.pawns)


class Pair:
    """Both sides of a board, each as itself sees it, `own` the one that is looked at."""

    def __init__(self, board: Any, is_to_move: bool) -> None:
        self.own, self.other = Side(board, is_to_move), Side(board.mirror(), not is_to_move)

    def they_cover(self, square: int) -> bool:
        return self.other.covers(square ^ 56)

    def their_pawns_cover(self, square: int) -> bool:
        return self.other.pawns_cover(square ^ 56)


def file_of(square: int) -> int:
    return square & 7


def rank_of(square: int) -> int:
    return square >> 3


def counts_of(board: Any) -> Counts:
    """Return how often each linear weight enters for the side to move, less how often for the other."""
    board = board if board.turn == chess.WHITE else board.mirror()
    pair, turned = Pair(board, True), Pair(board.mirror(), False)
    counts = Counter(terms_of(pair))
    counts.subtract(Counter(terms_of(turned)))
    counts[("tempo", 0)] = 1
    return Counter({term: number for term, number in counts.items() if number})


def terms_of(pair: Pair) -> Iterator[tuple[str, int]]:
    yield from stations(pair)
    yield from mobility(pair)
    yield from structure(pair)
    yield from passed(pair)
    yield from shelter(pair.own)
    yield from threats(pair)


def mobility(pair: Pair) -> Iterator[tuple[str, int]]:
    own = pair.own
    stuck = {pawn for pawn in own.pawns if rank_of(pawn) < 3 or own.board.piece_at(pawn + 8)}
    for kind in PIECES:
        for man in own.men(kind):
            free = [s for s in own.reach(man) if s not in stuck and s != own.king and not pair.their_pawns_cover(s)]
            yield f"{NAMES[kind]}_mobility", len(free)


def stations(pair: Pair) -> Iterator[tuple[str, int]]:
    own = pair.own
    for _ in chess.SquareSet(own.board.castling_rights & chess.BB_RANK_1):
        yield "castling_right", 0
    colours = {(file_of(bishop) + rank_of(bishop)) % 2 for bishop in own.men(chess.BISHOP)}
    if len(colours) == 2:
        yield "bishop_pair", 0
    for bishop in own.men(chess.BISHOP):
        same = [p for p in own.pawns if (file_of(p) + rank_of(p) - file_of(bishop) - rank_of(bishop)) % 2 == 0]
        yield from (("bishop_pawns", 0) for _ in same)
    for kind in MINORS:
        for man in own.men(kind):
            if own.board.piece_type_at(man + 8) == chess.PAWN if man < 56 else False:
                yield "minor_behind_pawn", 0
            chased = any(abs(file_of(p) - file_of(man)) == 1 and rank_of(p) > rank_of(man) for p in own.their_pawns)
            if 3 <= rank_of(man) <= 5 and own.pawns_cover(man) and not chased:
                yield f"{NAMES[kind]}_outpost", 0
    for rook in own.men(chess.ROOK):
        ours = any(file_of(p) == file_of(rook) for p in own.pawns)
        theirs = any(file_of(p) == file_of(rook) for p in own.their_pawns)
        if not ours:
            yield "rook_half_open_file" if theirs else "rook_open_file", 0
        if rank_of(rook) == 6 and (rank_of(own.their_king) == 7 or any(rank_of(p) == 6 for p in own.their_pawns)):
            yield "rook_seventh", 0


def structure(pair: Pair) -> Iterator[tuple[str, int]]:
    own = pair.own
    for pawn in own.pawns:
        file, rank = file_of(pawn), rank_of(pawn)
        neighbours = [p for p in own.pawns if abs(file_of(p) - file) == 1]
        is_opposed = any(file_of(p) == file and rank_of(p) > rank for p in own.their_pawns)
        if any(file_of(p) == file and rank_of(p) < rank for p in own.pawns):
            yield "doubled", 0
        if not neighbours:
            yield "isolated", 0 if is_opposed else 1
        elif all(rank_of(p) > rank for p in neighbours) and pair.their_pawns_cover(pawn + 8):
            yield "backward", 0 if is_opposed else 1
        if own.pawns_cover(pawn):
            yield "supported", rank
        if any(rank_of(p) == rank for p in neighbours):
            yield "phalanx", rank


def passed(pair: Pair) -> Iterator[tuple[str, int]]:
    own = pair.own
    their_pieces = [kind for kind in PIECES if own.their(kind)]
    for pawn in own.pawns:
        file, rank = file_of(pawn), rank_of(pawn)
        stops = [p for p in own.their_pawns if abs(file_of(p) - file) <= 1 and rank_of(p) > rank]
        if stops or any(file_of(p) == file and rank_of(p) > rank for p in own.pawns):
            continue
        step, path = pawn + 8, range(pawn + 8, 64, 8)
        yield "passed", rank
        if own.pawns_cover(pawn):
            yield "passed_supported", rank
        if not own.board.piece_at(step) and (own.covers(step) or not pair.they_cover(step)):
            yield "passed_free_step", rank
        if not any(own.board.piece_at(square) for square in path):
            if not any(pair.they_cover(square) for square in path):
                yield "passed_free_path", rank
            needed = min(7 - rank, 5) + (0 if own.is_to_move else 1)
            if not their_pieces and chess.square_distance(own.their_king, 56 + file) > needed:
                yield "passed_unstoppable", 0
        for _ in range(rank - 2):
            yield "passed_own_king", chess.square_distance(own.king, step)
            yield "passed_other_king", chess.square_distance(own.their_king, step)


def shelter(own: Side) -> Iterator[tuple[str, int]]:
    middle = max(1, min(file_of(own.king), 6))
    for file in (middle - 1, middle, middle + 1):
        ours, theirs = (
            min((rank_of(p) for p in pawns if file_of(p) == file and rank_of(p) >= rank_of(own.king)), default=0)
            for pawns in (own.pawns, own.their_pawns)
        )
        yield "shelter_king_file" if file == file_of(own.king) else "shelter_side_file", ours
        yield "storm_blocked" if ours and theirs == ours + 1 else "storm_free", theirs


def threats(pair: Pair) -> Iterator[tuple[str, int]]:
    own, minors = pair.own, [man for kind in MINORS for man in pair.own.men(kind)]
    for place, kind in enumerate((chess.PAWN, *PIECES)):
        for man in own.their(kind):
            by_minor = any(man in own.reach(minor) for minor in minors)
            by_rook = any(man in own.reach(rook) for rook in own.men(chess.ROOK))
            is_loose = not pair.they_cover(man) if kind == chess.PAWN else not pair.their_pawns_cover(man)
            if by_minor and (is_loose or kind in (chess.ROOK, chess.QUEEN)):
                yield "minor_threat", place
            if by_rook and kind != chess.ROOK and (is_loose or kind == chess.QUEEN):
                yield "rook_threat", min(place, 3)
            if kind != chess.PAWN:
                if own.pawns_cover(man):
                    yield "pawn_threat", place - 1
                if own.covers(man) and not pair.they_cover(man):
                    yield "hanging", 0
    steps = {square for pawn in own.pawns for square in pawn_steps(own, pawn)}
    safe = [s for s in steps if not pair.their_pawns_cover(s) and (own.covers(s) or not pair.they_cover(s))]
    aimed = {aim for step in safe for aim in chess.SquareSet(chess.BB_PAWN_ATTACKS[chess.WHITE][step])}
    yield from (("push_threat", 0) for kind in PIECES for man in own.their(kind) if man in aimed)


def pawn_steps(own: Side, pawn: int) -> Iterator[int]:
    if not own.board.piece_at(pawn + 8):
        yield pawn + 8
        if rank_of(pawn) == 1 and not own.board.piece_at(pawn + 16):
            yield pawn + 16


def danger_of(board: Any) -> Counts:
    """Return how often each unit of danger enters for the attack of the side to move."""
    pair = Pair(board if board.turn == chess.WHITE else board.mirror(), True)
    own, king = pair.own, pair.own.their_king
    around = set(chess.SquareSet(chess.BB_KING_ATTACKS[king]))
    ring = around | {king}
    zone = ring | {square - 8 for square in ring if square >= 8}
    counts: Counts = Counter({("danger_base", 0): 1})
    for place, kind in enumerate(PIECES):
        for man in own.men(kind):
            if own.reach(man) & zone:
                counts[("danger_attackers", place)] += 1
                counts[("danger_ring", 0)] += len(own.reach(man) & ring)
    if not own.men(chess.QUEEN):
        counts[("danger_no_queen", 0)] = 1
    middle = max(1, min(file_of(king), 6))
    files = {file_of(pawn) for pawn in own.their_pawns}
    counts[("danger_holes", 0)] = len({middle - 1, middle, middle + 1} - files)
    queen_reach = {square ^ 56 for queen in pair.other.men(chess.QUEEN) for square in pair.other.reach(queen)}

    def is_weak(square: int) -> bool:
        defenders = pair.other.attackers_of(square ^ 56)
        is_hardly = defenders == 0 or (defenders == 1 and square in around | queen_reach)
        return own.covers(square) and is_hardly

    counts[("danger_weak", 0)] = sum(is_weak(square) for square in ring)
    lines = {kind: set(chess.SquareSet(attacks_from(own.board, king, kind))) for kind in PIECES}
    for place, kind in enumerate(PIECES):
        reach = {square for man in own.men(kind) for square in own.reach(man)}
        checks = [s for s in lines[kind] & reach if is_safe(pair, s, is_weak(s))]
        counts[("danger_checks", place)] = 1 if checks else 0
    return Counter({term: number for term, number in counts.items() if number})


def is_safe(pair: Pair, square: int, is_weak: bool) -> bool:
    if pair.own.board.color_at(square) == chess.WHITE:
        return False
    return not pair.they_cover(square) or (is_weak and pair.own.attackers_of(square) > 1)


def attacks_from(board: Any, square: int, kind: int) -> Any:
    board = board.copy(stack=False)
    board.set_piece_at(square, chess.Piece(kind, chess.BLACK))
    return board.attacks(square)
