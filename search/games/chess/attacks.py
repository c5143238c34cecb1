"""Which squares a man attacks: look-up tables, made when the module is imported.

Knights and kings have a board a square; bishops and rooks one for each set of relevant blockers, found by a *magic*
multiplication (Kannan 2007): whole perft runs fastest with it, and it needs no special instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from search.games.chess.board import EVERYWHERE, FILE_A, FILE_H
from search.games.chess.magics import BISHOP_MAGICS, ROOK_MAGICS
from search.jit import helper, inlined
from tt_store.layout import WORD_BYTES
from tt_store.native import Word, as_int, constant_table, read_int, read_word

Direction = tuple[int, int]
"""Steps up the ranks and along the files."""

DIAGONAL: tuple[Direction, ...] = ((1, 1), (1, -1), (-1, 1), (-1, -1))
STRAIGHT: tuple[Direction, ...] = ((1, 0), (-1, 0), (0, 1), (0, -1))
KNIGHT_STEPS: tuple[Direction, ...] = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))

_SQUARES = 64
_WITHOUT_A = EVERYWHERE ^ FILE_A
_WITHOUT_H = EVERYWHERE ^ FILE_H

# A row of the sliders' directory; all of a rook's rows follow all of a bishop's.
_MASK, _MAGIC, _SHIFT, _START = (index * WORD_BYTES for index in range(4))
_ROW_BYTES = 4 * WORD_BYTES
_ROOKS = _SQUARES * _ROW_BYTES


@cache
def ray(square: int, direction: Direction) -> tuple[int, ...]:
    """Return the squares from a square (exclusive) to the edge of the board."""
    rank, file = square // 8 + direction[0], square % 8 + direction[1]
    squares = []
    while 0 <= rank < 8 and 0 <= file < 8:
        squares.append(rank * 8 + file)
        rank, file = rank + direction[0], file + direction[1]
    return tuple(squares)


def _board(squares: Iterable[int]) -> int:
    return sum(1 << square for square in squares)


def _leaper_table() -> NDArray[np.uint64]:
    """Return the boards of the knight, then those of the king."""
    boards = [
        _board([square for step in steps for square in ray(origin, step)[:1]])
        for steps in (KNIGHT_STEPS, DIAGONAL + STRAIGHT)
        for origin in range(_SQUARES)
    ]
    return np.array(boards, np.uint64)


def _line_table() -> NDArray[np.uint64]:
    """Return the squares from one (exclusive) to another (inclusive), for all pairs; unaligned pairs just the other."""
    boards = np.array([1 << other for _ in range(_SQUARES) for other in range(_SQUARES)], np.uint64)
    for origin in range(_SQUARES):
        for direction in DIAGONAL + STRAIGHT:
            squares = ray(origin, direction)
            for length, other in enumerate(squares, 1):
                boards[origin * _SQUARES + other] = _board(squares[:length])
    return boards


def _blocker_sets(squares: list[int]) -> NDArray[np.uint64]:
    """Return all subsets of some squares."""
    subsets = np.zeros(1, np.uint64)
    for square in squares:
        subsets = np.concatenate((subsets, subsets | np.uint64(1 << square)))
    return subsets


def _slide(origin: int, directions: tuple[Direction, ...], blockers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return what a slider attacks for each set of blockers."""
    attacked = np.zeros_like(blockers)
    for direction in directions:
        is_open = np.ones(len(blockers), np.bool_)
        for square in ray(origin, direction):
            board = np.uint64(1 << square)
            attacked[is_open] |= board
            is_open &= blockers & board == 0
    return attacked


def _slider_tables() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the directory of the sliders, a row of four words for each piece and square, and the attacks.

    Raises
    ------
    ValueError
        If a magic number does not tell two sets of blockers apart.
    """
    directory, tables, start = [], [], 0
    for directions, magics in ((DIAGONAL, BISHOP_MAGICS), (STRAIGHT, ROOK_MAGICS)):
        for origin, magic in enumerate(magics):
            # A man on the edge blocks nothing behind it.
            relevant = [square for direction in directions for square in ray(origin, direction)[:-1]]
            blockers = _blocker_sets(relevant)
            attacked = _slide(origin, directions, blockers)
            shift = _SQUARES - len(relevant)
            table = np.zeros(len(blockers), np.uint64)
            index = blockers * np.uint64(magic) >> np.uint64(shift)
            table[index] = attacked
            if (table[index] != attacked).any():
                raise ValueError(f"the magic number {magic:#x} of square {origin} maps different attacks to one index")
            directory.append((_board(relevant), magic, shift, start * WORD_BYTES))
            tables.append(table)
            start += len(table)
    return np.array(directory, np.uint64), np.concatenate(tables)


_directory, _attacks = _slider_tables()
leapers = constant_table("chess_leapers", _leaper_table())
lines = constant_table("chess_lines", _line_table())
slider_directory = constant_table("chess_slider_directory", _directory)
slider_attacks = constant_table("chess_slider_attacks", _attacks)


@helper
def knight_attacks(square: int) -> Word:
    """Return the squares that a knight attacks."""
    return read_word(leapers() + square * WORD_BYTES)


@helper
def king_attacks(square: int) -> Word:
    """Return the squares that a king attacks."""
    return read_word(leapers() + (_SQUARES + square) * WORD_BYTES)


@helper
def line(origin: int, target: int) -> Word:
    """Return the squares from one (exclusive) to another (inclusive) along a rank, file or diagonal.

    Just the other square where they are not aligned, and for a square and itself.
    """
    return read_word(lines() + (origin * _SQUARES + target) * WORD_BYTES)


@inlined
def _slider_attacks(row: int, blockers: Word) -> Word:
    index = (blockers & read_word(row + _MASK)) * read_word(row + _MAGIC) >> read_word(row + _SHIFT)
    return read_word(slider_attacks() + read_int(row + _START) + as_int(index) * WORD_BYTES)


@helper
def bishop_attacks(square: int, blockers: Word) -> Word:
    """Return the squares that a bishop attacks among these men."""
    return _slider_attacks(slider_directory() + square * _ROW_BYTES, blockers)


@helper
def rook_attacks(square: int, blockers: Word) -> Word:
    """Return the squares that a rook attacks among these men."""
    return _slider_attacks(slider_directory() + _ROOKS + square * _ROW_BYTES, blockers)


@inlined
def pawn_attacks_upward(pawns: Word) -> Word:
    """Return the squares that upward pawns attack; also, from where downward pawns attack these squares."""
    return (pawns & _WITHOUT_A) << np.uint64(7) | (pawns & _WITHOUT_H) << np.uint64(9)


@inlined
def pawn_attacks_downward(pawns: Word) -> Word:
    """Return the squares that downward pawns attack; also, from where upward pawns attack these squares."""
    return (pawns & _WITHOUT_A) >> np.uint64(9) | (pawns & _WITHOUT_H) >> np.uint64(7)


@inlined
def knight_attacks_of(knights: Word) -> Word:
    """Return the squares that any of several knights attacks."""
    near = (knights & _WITHOUT_A) >> np.uint64(1) | (knights & _WITHOUT_H) << np.uint64(1)
    far = (knights & _WITHOUT_AB) >> np.uint64(2) | (knights & _WITHOUT_GH) << np.uint64(2)
    return near << np.uint64(16) | near >> np.uint64(16) | far << np.uint64(8) | far >> np.uint64(8)


_WITHOUT_AB = EVERYWHERE ^ np.uint64(0x0303_0303_0303_0303)
_WITHOUT_GH = EVERYWHERE ^ np.uint64(0xC0C0_C0C0_C0C0_C0C0)
