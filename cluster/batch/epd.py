"""EPD as it is found in the wild, and FEN lists: one position of chess a line, with operations or without.

After Edwards (1994), and tolerant of what people write: two to six fields of a FEN; one dash too many; a counter glued
to its dash; operations after the fields with or without a semicolon between; identifiers without quotes; moves in SAN,
UCI or long notation, parted by blanks or commas; free text, which no operation's name begins. ``moves e2e4 ...`` after
the fields plays on. What is repaired or left out is said in a warning.

What is read of the operations: `id`; `bm` and `am` with moves; `bm #N` and `dm N`, a mate in N moves; `acd N`, the
depth to which the line wants to be searched; `hmvc` and `fmvn`, the counters of the FEN; `pv`, a line that is checked
and not played. `acn`, `acs` and `ce` tell of an earlier analysis, the counts D1, D2 ... of perft, and `c0` to `c9`
tell people something: they are left alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cluster.batch.chess_text import START_WORDS, Accepted, ChessLine, accepted, find_move
from cluster.batch.rows import Draft, Expectation, Overrides, shortened
from search.limits import MAX_DEPTH
from search.rules import Game

_LEADING_WORDS = ("position", "fen")
"""As engines are told a position."""
_CASTLING = re.compile(r"-|[KQkq]{1,4}|[A-Ha-h]{1,4}")
_TARGET = re.compile(r"-|[a-h][1-8]")
_GLUED = re.compile(r"-\d+")
_COUNTER = re.compile(r"[+-]?\d+")
_MARK = re.compile('[;"]')
# Possessive quantifiers: a long line must not take longer than in proportion to its length.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)("?)', re.DOTALL)
_SEGMENT = re.compile(rf'(?:[^";]++|{_QUOTED.pattern})++', re.DOTALL)
_OPERATION = re.compile(r"[-\s]*([A-Za-z]\w*)\s*(.*)", re.DOTALL)
_MATE = re.compile(r"#([+-]?\d{1,4})")
_NUMBER = re.compile(r"[+-]?\d{1,6}")
_PUNCTUATION = re.compile(r"[+#!?=.\-]+|\d+\.+|or|and")
_OPCODES = re.compile(
    r"[ab]m|id|[dps][mv]|ac[dns]|ce|hmvc|fmvn|[cvD]\d|moves|eco|nic|noop|rc|resign|draw\w*|tc\w+|class"
)
_MOST_MOVES = 256
"""That are read of one operation: no position has more."""
_WHOLE_FEN = 6


class _Operation(NamedTuple):
    """A segment between semicolons."""

    code: str
    operand: str


def read_epd(text: str, game: Game) -> Draft:
    """Return what a line of a FEN list or of an EPD says.

    Parameters
    ----------
    text
        The line, without blanks around it.
    game
        Chess.

    Raises
    ------
    RulesError
        If the position is none, or a move of ``moves`` is not legal.
    """
    mark = _MARK.search(text)
    cut = mark.start() if mark else len(text)
    pieces = text[:cut].split()
    fields, rest, warnings = _split_fields(pieces)
    if not rest and cut == len(text):
        start = accepted(game, fields)
        return Draft(start.text, warnings=(*warnings, *start.repairs))
    operations = _operations(" ".join(rest) + text[cut:], bool(rest), warnings)
    start = accepted(game, _with_counters(fields, operations))
    return _interpreted(start, operations, [*warnings, *start.repairs], game)


def _split_fields(pieces: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the FEN's fields, the words after them, and what was repaired."""
    while pieces and pieces[0].lower() in _LEADING_WORDS:
        pieces = pieces[1:]
    if pieces and pieces[0] in START_WORDS:
        return pieces[:1], pieces[1:], []
    warnings: list[str] = []
    fields, index = pieces[:2], 2

    def is_next(pattern: re.Pattern[str]) -> bool:
        return index < len(pieces) and pattern.fullmatch(pieces[index]) is not None

    if is_next(_CASTLING) and not is_next(_OPCODES):
        fields.append(pieces[index])
        index += 1
        if is_next(_TARGET):
            fields.append(pieces[index])
            index += 1
        elif is_next(_GLUED):
            warnings.append(f"{pieces[index]} is read as - {pieces[index][1:]}")
            fields += ["-", pieces[index][1:]]
            index += 1
    if len(fields) == 4 and pieces[index : index + 1] == ["-"]:
        warnings.append("there is one dash too many after the fields")
        index += 1
    while 4 <= len(fields) < _WHOLE_FEN and is_next(_COUNTER):
        fields.append(pieces[index])
        index += 1
    return fields, pieces[index:], warnings


def _operations(text: str, is_glued: bool, warnings: list[str]) -> list[_Operation]:
    """Return the operations of the text after the fields.

    Parameters
    ----------
    text
        From the first word after the fields on.
    is_glued
        Whether no semicolon parts the first operation from the fields: unknown words are then hardly a comment.
    warnings
        Get a sentence for what cannot be understood.
    """
    operations = []
    for number, segment in enumerate(found[0] for found in _SEGMENT.finditer(text)):
        if not all(quoted[2] for quoted in _QUOTED.finditer(segment)):
            warnings.append("a quotation mark is not closed")
        found = _OPERATION.fullmatch(segment.strip())
        if number == 0 and is_glued and not (found and _OPCODES.fullmatch(found[1])):
            warnings.append(f"{shortened(segment.strip())!r} after the position is not understood")
        if found:
            operations.append(_Operation(found[1].lower(), found[2].strip()))
    return operations


def _with_counters(fields: list[str], operations: list[_Operation]) -> list[str]:
    """Return a FEN of four fields with the counters that operations give it."""
    counters = dict(operations)
    if len(fields) != 4 or not counters.keys() & {"hmvc", "fmvn"}:
        return fields
    return [*fields, counters.get("hmvc", "0"), counters.get("fmvn", "1")]


def _interpreted(start: Accepted, operations: list[_Operation], warnings: list[str], game: Game) -> Draft:
    """Return what the operations say of a position."""
    row_id, depth, mate_in = None, None, None
    best: list[str] = []
    avoid: list[str] = []
    line: ChessLine | None = None
    for code, operand in sorted(operations, key=lambda operation: operation.code != "moves"):
        if code in ("bm", "am", "pv", "moves") and line is None:
            line = ChessLine(game, start)
        if code == "id":
            row_id = _unquoted(operand)
        elif code == "acd":
            depth = _read_number(code, operand, 1, MAX_DEPTH, warnings)
        elif code == "dm":
            mate_in = _read_number(code, operand, -MAX_DEPTH, MAX_DEPTH, warnings)
        elif code == "moves" and line is not None:
            line.play(_move_texts(operand))
        elif code == "pv" and line is not None:
            _check_line(line, operand, warnings)
        elif code in ("bm", "am") and line is not None:
            texts = _move_texts(operand)[:_MOST_MOVES]
            mates = [int(found[1]) for text in texts if (found := _MATE.fullmatch(text))]
            legal, refused = line.judged(text for text in texts if not _MATE.fullmatch(text))
            (best if code == "bm" else avoid).extend(legal)
            if mates and code == "bm":
                mate_in = mates[0]
            if refused:
                warnings.append(f"{code} names what is no legal move there: {shortened(', '.join(refused))}")
    expectation = Expectation(tuple(dict.fromkeys(best)), tuple(dict.fromkeys(avoid)), mate_in=mate_in or None)
    return Draft(
        start.text if line is None else line.position,
        row_id,
        () if line is None else line.moves,
        expectation,
        Overrides(depth=depth),
        tuple(warnings),
    )


def _unquoted(operand: str) -> str:
    found = _QUOTED.match(operand)
    return operand if found is None else re.sub(r'\\(["\\])', r"\1", found[1])


def _read_number(code: str, operand: str, least: int, most: int, warnings: list[str]) -> int | None:
    if _NUMBER.fullmatch(operand) and least <= int(operand) <= most:
        return int(operand)
    warnings.append(f"{code} {shortened(operand)} is left out: it must be a number from {least} to {most}")
    return None


def _move_texts(operand: str) -> list[str]:
    """Return the words of a list of moves; signs that stand apart belong to the move before them."""
    spaced = operand.replace(",", " ").replace('"', " ").replace("=", " = ")
    words = " ".join(spaced.split()).replace(" = ", "=").split()
    return [word for word in words if not _PUNCTUATION.fullmatch(word)]


def _check_line(line: ChessLine, operand: str, warnings: list[str]) -> None:
    """Warn where a line comes to what is no legal move: it was cut off, or belongs to another position."""
    board = line.board.copy(stack=False)
    for number, text in enumerate(_move_texts(operand), 1):
        move = find_move(board, text)
        if move is None:
            warnings.append(f"pv ends at its move {number}, {shortened(text)}, which is not legal there")
            return
        board.push(move)
