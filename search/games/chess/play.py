"""Playing a move: new boards and key, turned to the other side's view."""

from __future__ import annotations

from search.games.chess.attacks import bishop_attacks, pawn_attacks_upward, rook_attacks
from search.games.chess.board import (
    BISHOP,
    BLACK_TO_MOVE,
    CASTLING,
    CHESS960,
    DOUBLE_STEP,
    EN_PASSANT,
    HOME_RANKS,
    KING,
    KNIGHT,
    NOTHING,
    NUMBER_SHIFT,
    ONE,
    ONE_REVERSIBLE_PLY,
    PAWN,
    PROMOTION,
    QUEEN,
    RANK_1,
    RANK_6,
    ROOK,
    TURN_SQUARE,
    WITHOUT_CLOCK,
    Position,
    bit,
    kind_at,
    move_from,
    move_kind,
    move_to,
    occupied,
    promoted_kind,
)
from search.games.chess.keys import BLACK_KEY, KIND_STRIDE, OTHER_SIDE, TURN_INDEX, man_key, mark_key
from search.games.chess.moves import C1, D1, F1, G1, STEP
from search.jit import helper, inlined
from tt_store.native import Integer, Word, as_word, swap_bytes, trailing_zeros


@inlined
def _carried(board: Word, origin: int, cleared: Word, target: int) -> Word:
    """Return a board of men after a move: what stood on its two squares is gone, its own man stands on the second."""
    return board & cleared | (board >> as_word(origin) & ONE) << as_word(target)


@helper
def _en_passant_mark(position: Position, target: int) -> Word:
    """Return the square behind a pawn that makes two steps to `target`, if it can legally be taken there, else none.

    `position` is the one before the two steps. Only a line that opens can make the capture illegal.
    """
    behind, victim = bit(target - STEP), bit(target)
    start = behind >> as_word(STEP)
    men = occupied(position) ^ start
    others = men & ~(position.own | victim)
    # The capturing pawns stand beside the pawn; they attack downward.
    waiting = pawn_attacks_upward(behind) & position.pawns & others
    king = trailing_zeros(position.kings & others)
    while waiting != NOTHING:
        after = men & ~(waiting & ~(waiting - ONE)) | behind
        checks = bishop_attacks(king, after) & position.diagonals | rook_attacks(king, after) & position.straights
        if checks & position.own == NOTHING:
            return behind
        waiting &= waiting - ONE
    return NOTHING


@helper
def _mark_keys(marks: Word, turn: int) -> Word:
    """Return the hash of some marks; `turn` leads from their squares to absolute ones."""
    key = NOTHING
    while marks != NOTHING:
        key ^= mark_key(trailing_zeros(marks) ^ turn)
        marks &= marks - ONE
    return key


@inlined
def _state_after(state: Integer, is_irreversible: bool, marks: Word) -> Integer:
    """Return the state word after a move: turn, clocks; who castles no more is no Chess960 either."""
    following = (state + ONE_REVERSIBLE_PLY + ((state & BLACK_TO_MOVE) << NUMBER_SHIFT)) ^ BLACK_TO_MOVE
    if is_irreversible:
        following &= WITHOUT_CLOCK
    if marks & HOME_RANKS == NOTHING:
        following &= ~CHESS960
    return following


@inlined
def play(position: Position, move: int) -> Position:
    """Return the position after a legal move, seen from the other side."""
    origin, target, kind = move_from(move), move_to(move), move_kind(move)
    landing = target
    if kind == CASTLING:
        landing = C1 if target < origin else G1
    arrival = bit(landing)
    cleared = ~(bit(origin) | arrival)
    is_black = int(position.state) & BLACK_TO_MOVE
    turn = is_black * TURN_INDEX

    # Step 1. Lift the man, take what stands where it lands, and put it down.
    man = kind_at(position, origin)
    others = occupied(position) & ~position.own
    key = position.key ^ BLACK_KEY ^ man_key((man * KIND_STRIDE | origin) ^ turn)
    is_capture = others & arrival != NOTHING
    if is_capture:
        victim = kind_at(position, landing)
        key ^= man_key((victim * KIND_STRIDE | OTHER_SIDE | landing) ^ turn)
    own = position.own & cleared | arrival
    others &= ~arrival
    pawns = _carried(position.pawns, origin, cleared, landing)
    knights = _carried(position.knights, origin, cleared, landing)
    diagonals = _carried(position.diagonals, origin, cleared, landing)
    straights = _carried(position.straights, origin, cleared, landing)
    kings = _carried(position.kings, origin, cleared, landing)

    # Step 2. What is special: another man appears, moves or vanishes.
    made = man
    if kind >= PROMOTION:
        made = promoted_kind(kind)
        pawns ^= arrival
        if made == KNIGHT:
            knights |= arrival
        if made in (BISHOP, QUEEN):
            diagonals |= arrival
        if made in (ROOK, QUEEN):
            straights |= arrival
    elif kind == EN_PASSANT:
        taken = landing - STEP
        pawns ^= bit(taken)
        others ^= bit(taken)
        key ^= man_key((PAWN * KIND_STRIDE | OTHER_SIDE | taken) ^ turn)
    elif kind == CASTLING:
        beside = D1 if target < origin else F1
        straights = straights & ~bit(target) | bit(beside)
        # In Chess960 the king may land where its rook stood, and the rook where the king did.
        own = own & ~(bit(target) & ~arrival) | bit(beside)
        key ^= man_key((ROOK * KIND_STRIDE | target) ^ turn) ^ man_key((ROOK * KIND_STRIDE | beside) ^ turn)
    key ^= man_key((made * KIND_STRIDE | landing) ^ turn)

    # Step 3. Marks: few moves change them.
    lost = bit(origin) | bit(target) | RANK_6
    if man == KING:
        lost |= RANK_1
    marks = position.marks
    if marks & lost != NOTHING or kind == DOUBLE_STEP:
        marks &= ~lost
        if kind == DOUBLE_STEP:
            marks |= _en_passant_mark(position, target)
        key ^= _mark_keys(position.marks ^ marks, turn & TURN_SQUARE)

    # Step 4. Turn the board.
    return Position(
        swap_bytes(others),
        swap_bytes(pawns),
        swap_bytes(knights),
        swap_bytes(diagonals),
        swap_bytes(straights),
        swap_bytes(kings),
        swap_bytes(marks),
        _state_after(position.state, is_capture or man == PAWN, marks),
        key,
    )


@inlined
def pass_turn(position: Position) -> Position:
    """Return the position after a null move: the other side is to move, and may not take en passant."""
    turn = (int(position.state) & BLACK_TO_MOVE) * TURN_SQUARE
    marks = position.marks & HOME_RANKS
    return Position(
        swap_bytes(occupied(position) & ~position.own),
        swap_bytes(position.pawns),
        swap_bytes(position.knights),
        swap_bytes(position.diagonals),
        swap_bytes(position.straights),
        swap_bytes(position.kings),
        swap_bytes(marks),
        _state_after(position.state, False, marks),
        position.key ^ BLACK_KEY ^ _mark_keys(position.marks ^ marks, turn),
    )
