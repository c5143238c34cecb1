"""The input of a batch: what it is, told by its name, its content and the game, and its rows, one after the other.

=========  =============================================================  ==========================
format     what it is                                                     names
=========  =============================================================  ==========================
``fen``    a position a line, as the game writes it; chess: as ``epd``    ``.fen``
``epd``    positions of chess with operations: `cluster.batch.epd`        ``.epd``
``pgn``    games of chess: `cluster.batch.pgn`                            ``.pgn``
``jsonl``  an object a line: `cluster.batch.tables`                       ``.jsonl``, ``.ndjson``
``csv``    a row a line: `cluster.batch.tables`                           ``.csv``, ``.tsv``
``moves``  Connect Four's columns, a score: `cluster.batch.move_lists`    ``.moves``
``obf``    boards of Othello, moves' worths: `cluster.batch.move_lists`   ``.obf``
=========  =============================================================  ==========================

In ``fen``, ``epd``, ``moves`` and ``obf`` a line that begins with ``#`` is a comment. Any other line that is not blank
gives one row: a position, or an error with the reason. Files may be packed; see `cluster.batch.sources`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import PurePath

from cluster.batch.move_lists import read_move_list, read_obf
from cluster.batch.notation import CHESS, Notation, notation_of
from cluster.batch.rows import Draft, Found, InputError, InputRow, ReadOptions, failure
from cluster.batch.sources import Line, check_source, read_lines
from cluster.batch.tables import CONNECT_FOUR, Table, csv_reader, json_reader
from search.rules import Game
from tt_store.errors import RootsplitError

OTHELLO = "othello"
_FORMATS_OF_NAMES = {
    ".fen": "fen", ".epd": "epd", ".pgn": "pgn", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv",
    ".moves": "moves", ".obf": "obf",
}  # fmt: skip
_PACKED_NAMES = (".gz", ".zst", ".zstd")
_GAMES_OF_FORMATS = {"epd": CHESS, "pgn": CHESS, "moves": CONNECT_FOUR, "obf": OTHELLO}
_USUAL_FORMATS = {CHESS: "epd", CONNECT_FOUR: "moves", OTHELLO: "obf"}
_BLANKS = " \t\v\f\r\n\0\x1a\x1c\x1d\x1e\x1f\x85\xa0\ufeff"
"""What is no text at the ends of a line; zeros, and the mark that ends a file of DOS, among them."""
_ENDS = "\r\n\0\x1a\ufeff"
_MOST_PEEKED = 100
_PGN_BEGIN = re.compile(r'\[\s*[A-Za-z]\w*\s+"|1\s*\.')


def read_rows(paths: Sequence[str], game: Game, options: ReadOptions = ReadOptions()) -> Iterator[InputRow]:
    """Return the rows of files, one after the other; what cannot be read at all is refused at once.

    Parameters
    ----------
    paths
        Names of files, ``-`` for standard input.
    game
        Whose positions they hold.
    options
        How to read them.

    Returns
    -------
    Iterator[InputRow]
        One row for each line, or each wanted position of a game; a bad one has an error. The memory that reading needs
        does not grow with the input.

    Raises
    ------
    InputError
        If a file does not exist, cannot be opened, is not text, or is not of a format that goes with the game. What
        only shows while reading is raised then.
    """
    reader = _Reader(game, options)
    for path in paths:
        if check_source(path):
            with closing(read_lines(path)) as lines:
                reader.drafts(lines, path)
    return _rows(paths, reader)


def _rows(paths: Sequence[str], reader: _Reader) -> Iterator[InputRow]:
    index = 0
    for path in paths:
        with closing(read_lines(path)) as lines:
            for line, draft in reader.drafts(lines, path):
                yield InputRow(index, path, line, draft.row_id, draft.position, *draft[2:])
                index += 1


class _Reader:
    """Reads lines of one game's positions."""

    def __init__(self, game: Game, options: ReadOptions) -> None:
        self._game, self._options = game, options
        self._notation: Notation = notation_of(game)

    def drafts(self, lines: Iterator[Line], path: str) -> Iterator[Found]:
        """Return the positions of a file's lines; the first lines are looked at before anything is returned.

        Raises
        ------
        InputError
            If the file cannot be read so.
        """
        head = _head(lines)
        first = next((text for line in head if _is_content(text := line.text.strip(_BLANKS))), "")
        chosen = self._format(path, first)
        everything = chain(head, lines)
        if chosen == "pgn":
            from cluster.batch.pgn import read_pgn

            return read_pgn(everything, self._game, self._options)
        notation = self._notation
        read: Callable[[str], Draft] = notation.read
        if chosen == "moves":
            read = lambda text: read_move_list(text, notation)  # noqa: E731
        elif chosen == "obf":
            read = lambda text: read_obf(text, notation)  # noqa: E731
        elif chosen in ("jsonl", "csv"):
            table = Table(self._game, notation, self._options)
            if chosen == "jsonl":
                return _drafts_of_lines(everything, json_reader(table))
            header = next((line.text for line in everything if line.text.strip(_BLANKS)), None)
            if header is None:
                return iter(())
            # Tabs and blanks at a line's ends are empty fields.
            return _drafts_of_lines(everything, csv_reader(table, header.strip(_ENDS), path), ends=_ENDS)
        return _drafts_of_lines(everything, read, comment="#")

    def _format(self, path: str, first: str) -> str:
        """Return the format of a file by the user's word, its name, or its first line that is no comment."""
        chosen = self._options.format
        game = self._game.label
        if chosen == "auto":
            chosen = _format_of_name(path) or _format_of_content(first, game)
        wanted = _GAMES_OF_FORMATS.get(chosen, game)
        if wanted != game:
            raise InputError(f"{path} is read as {chosen}, which is for {wanted}, not for {game}: give --format")
        return chosen


def _drafts_of_lines(
    lines: Iterable[Line], read: Callable[[str], Draft], comment: str | None = None, ends: str = _BLANKS
) -> Iterator[Found]:
    """Yield a draft for each line that is not blank and does not begin with the sign of a comment."""
    for line in lines:
        text = line.text.strip(ends)
        if line.fault is not None:
            yield line.number, failure(text, line.fault)
        elif text and text[0] != comment and text.strip(_BLANKS):
            try:
                draft = read(text)
            except RootsplitError as error:
                draft = failure(text, str(error))
            yield line.number, draft


def _head(lines: Iterator[Line]) -> list[Line]:
    """Return the first lines up to one that tells what the file is."""
    head = []
    for line in lines:
        head.append(line)
        if line.fault is not None or _is_content(line.text.strip(_BLANKS)) or len(head) == _MOST_PEEKED:
            break
    return head


def _is_content(text: str) -> bool:
    return bool(text) and text[0] not in "#%"


def _format_of_name(path: str) -> str | None:
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    while suffixes and suffixes[-1] in _PACKED_NAMES:
        suffixes.pop()
    return _FORMATS_OF_NAMES.get(suffixes[-1]) if suffixes else None


def _format_of_content(first: str, game: str) -> str:
    """Return the format of a file by its first line that is neither blank nor a comment."""
    if re.match(r'\{\s*["}]', first):
        return "jsonl"
    if game == CHESS and _PGN_BEGIN.match(first):
        return "pgn"
    names = {name.strip().strip('"').lower() for name in re.split("[,;\t]", first)}
    if len(names) > 1 and names & {"fen", "epd", "position"}:
        return "csv"
    return _USUAL_FORMATS.get(game, "fen")
