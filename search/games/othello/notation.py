"""Boards, moves and scores as text: 64 squares and the side to move, or the moves played so far."""

from __future__ import annotations

import numpy as np

from search.games.othello.board import DISC, PASS, SQUARES, Position
from search.games.othello.lines import plain_flips, plain_reachable
from search.rules import RulesError

START = "---------------------------OX------XO--------------------------- X"
PASS_TEXT = "pass"
_BLACK, _WHITE, _EMPTY = "Xx*Bb", "Oo0Ww", "-._"
_COLUMNS, _ROWS = "abcdefgh", "12345678"
_WIDTH = len(_COLUMNS)
LEAP = 12
"""From a horizon with so many squares left deepening goes on to the end of the game."""


def parse(text: str) -> Position:
    """Return the position of a text; RulesError with one sentence where it is none.

    Parameters
    ----------
    text
        The 64 squares from a1 to h1, then from a2 on, and the side to move: black is X, * or b, white O, 0 or w, an
        empty square - or a dot. Or the moves from the start, such as ``f5d6c3``; a pass may be left out there.
    """
    squeezed = "".join(text.split())
    if PASS_TEXT in squeezed.lower() or any(letter in _ROWS for letter in squeezed):
        return _parse_moves(squeezed.lower())
    return _parse_board(squeezed)


def _parse_board(text: str) -> Position:
    if len(text) != SQUARES + 1:
        raise RulesError(f"the board {text!r} has {len(text)} characters: it needs {SQUARES} squares and the side")
    discs = [0, 0]
    for index, letter in enumerate(text[:SQUARES]):
        if letter in _BLACK or letter in _WHITE:
            discs[letter in _WHITE] |= 1 << index
        elif letter not in _EMPTY:
            raise RulesError(f"the square {_square_text(index)} of {text!r} is {letter!r}: it must be X, O or -")
    side = text[SQUARES]
    if side not in _BLACK + _WHITE:
        raise RulesError(f"the board {text!r} must end with who is to move, X or O, not {side!r}")
    return _position(discs, int(side in _WHITE))


def _parse_moves(text: str) -> Position:
    position = _parse_board(START.replace(" ", ""))
    number = 0
    while text:
        number += 1
        length = len(PASS_TEXT) if text.startswith(PASS_TEXT) else 2
        word, text = text[:length], text[length:]
        try:
            move = parse_move(position, word)
        except RulesError as error:
            raise RulesError(f"move {number}: {error}") from None
        if move != PASS and _must_pass(position):
            position = _played(position, PASS)
        is_legal = _must_pass(position) if move == PASS else _flips(position, move) != 0
        if not is_legal:
            raise RulesError(f"move {number}, {word}, is not legal there")
        position = _played(position, move)
    return position


def _must_pass(position: Position) -> bool:
    own, other = int(position.own), int(position.other)
    return plain_reachable(own, other) == 0 and plain_reachable(other, own) != 0


def _flips(position: Position, move: int) -> int:
    own, other, square = int(position.own), int(position.other), 1 << move - 1
    return 0 if square & (own | other) else plain_flips(own, other, square)


def _played(position: Position, move: int) -> Position:
    own, other = int(position.own), int(position.other)
    if move != PASS:
        flipped = _flips(position, move)
        own, other = own | flipped | 1 << move - 1, other ^ flipped
    return Position(np.uint64(other), np.uint64(own), np.int64(1 - position.side))


def _position(discs: list[int], side: int) -> Position:
    own, other = discs[side], discs[1 - side]
    return Position(np.uint64(own), np.uint64(other), np.int64(side))


def text(position: Position) -> str:
    """Return the 64 squares and the side to move."""
    own, other = int(position.own), int(position.other)
    letters = "XO" if position.side == 0 else "OX"
    squares = (letters[other >> index & 1] if (own | other) >> index & 1 else "-" for index in range(SQUARES))
    return f"{''.join(squares)} {letters[0]}"


def _square_text(index: int) -> str:
    return f"{_COLUMNS[index % _WIDTH]}{index // _WIDTH + 1}"


def move_text(position: Position, move: int) -> str:
    """Return a square such as f5, or ``pass``."""
    return PASS_TEXT if move == PASS else _square_text(move - 1)


def parse_move(position: Position, text: str) -> int:
    """Return the move that a text names, in small or capital letters."""
    word = text.lower()
    if word == PASS_TEXT:
        return PASS
    if len(word) != 2 or word[0] not in _COLUMNS or word[1] not in _ROWS:
        raise RulesError(f"{text!r} is no move: a move is a square such as f5, or {PASS_TEXT}")
    return _COLUMNS.index(word[0]) + _WIDTH * _ROWS.index(word[1]) + 1


def score_text(position: Position, score: int, is_solved: bool) -> str:
    """Return a score in discs: of a solved position a whole number, else an estimate with its tenths."""
    return f"{score // DISC:+d}" if is_solved and score % DISC == 0 else f"~{score / DISC:+.1f}"


def plies_left(position: Position) -> int:
    """Return an upper bound: before each disc that is still to come there may be a pass."""
    return 2 * (SQUARES - (int(position.own) | int(position.other)).bit_count())


def next_depth(position: Position, depth: int) -> int:
    """Return the depth to try after one: once the end is near its horizon, a search goes there at once."""
    left = plies_left(position)
    return left if left // 2 - depth <= LEAP else depth + 1


def mirror(position: Position) -> Position:
    """Return the board with left and right exchanged and the other side to move with the other colour."""
    own, other = (_turned(int(discs)) for discs in (position.own, position.other))
    return Position(np.uint64(own), np.uint64(other), np.int64(1 - position.side))


def _turned(discs: int) -> int:
    return sum((discs >> index & 1) << (index ^ _WIDTH - 1) for index in range(SQUARES))


def swap_sides(position: Position) -> Position:
    """Return the same board with the other side to move."""
    return Position(position.other, position.own, np.int64(1 - position.side))
