"""Tables of positions: JSONL, an object a line, and CSV, a row a line under a line of names.

The same fields serve both, and large and small letters are the same in their names:

- the position: the column that the user names, else `position`, `fen` or `epd` (Connect Four: `moves` too);
- `moves`, played from the position: a list, or a text with blanks or commas between;
- `id`; `bm` and `am`, best moves and moves to avoid; `score`, in the convention of the game's users (not of chess,
  where it is an estimate and no right answer); `dm`, the moves to mate;
- what the row asks for instead of the run's: `depth`, `nodes`, `time_s`, `mate`, `multipv`, `priority`.

Other fields are left alone. A row of a CSV stands on one line: what a quotation mark opens must end there.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cluster.batch.notation import CHESS, Notation
from cluster.batch.rows import Draft, Expectation, InputError, Overrides, ReadOptions, shortened
from search.limits import MAX_DEPTH, NO_NODE_LIMIT, Limits
from search.rules import Game

CONNECT_FOUR = "connect_four"
_POSITION_COLUMNS = ("position", "fen", "epd")
_DELIMITERS = ",;\t"
_MOST_LINES, _LARGEST_PRIORITY, _LARGEST_SCORE = 1024, 1_000_000, 100_000
_NUMBER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_MATE = re.compile(r"#([+-]?\d{1,4})", re.ASCII)


class Table:
    """Makes drafts of records.

    Parameters
    ----------
    game, notation
        The game.
    options
        The name of the position's column, if it is none of the usual ones.
    """

    def __init__(self, game: Game, notation: Notation, options: ReadOptions) -> None:
        self._notation = notation
        self._takes_scores = game.label != CHESS
        wanted = options.position_column
        usual = (*_POSITION_COLUMNS, "moves") if game.label == CONNECT_FOUR else _POSITION_COLUMNS
        self.position_columns = usual if wanted is None else (wanted.lower(),)

    def draft(self, record: Mapping[str, Any]) -> Draft:
        """Return what a record says.

        Parameters
        ----------
        record
            Fields by their names in small letters.

        Raises
        ------
        RootsplitError
            If the position is none, or a field is not what it must be.
        """
        column = next((name for name in self.position_columns if _is_given(record.get(name))), None)
        if column is None:
            raise InputError(f"there is no position: no field is named {' or '.join(self.position_columns)}")
        draft = self._notation.read(_as_text(record[column], column).strip())
        if column != "moves" and _is_given(record.get("moves")):
            draft = self._notation.play(draft, _as_list(record["moves"], "moves"))
        return self._with_expectation(draft, record)._replace(
            row_id=_as_text(record["id"], "id") if _is_given(record.get("id")) else draft.row_id,
            overrides=_overrides(record, draft.overrides),
        )

    def _with_expectation(self, draft: Draft, record: Mapping[str, Any]) -> Draft:
        """Return a draft with what a record says of the right answer; what it does not say stays as it is."""
        known, warnings = draft.expectation, list(draft.warnings)
        mate_in, moves = known.mate_in, {"bm": known.best_moves, "am": known.avoid_moves}
        for name in moves:
            if not _is_given(record.get(name)):
                continue
            texts = _as_list(record[name], name)
            mates = [int(found[1]) for text in texts if (found := _MATE.fullmatch(text))]
            legal, refused = self._notation.judge(draft, [text for text in texts if not _MATE.fullmatch(text)])
            moves[name] = tuple(legal)
            if mates and name == "bm":
                mate_in = mates[0] or None
            if refused:
                warnings.append(f"{name} names what is no legal move there: {shortened(', '.join(refused))}")
        if _is_given(record.get("dm")):
            mate_in = _as_number(record, "dm", -MAX_DEPTH, MAX_DEPTH) or None
        score = known.score
        if self._takes_scores and _is_given(record.get("score")):
            score = _as_number(record, "score", -_LARGEST_SCORE, _LARGEST_SCORE)
        expectation = Expectation(moves["bm"], moves["am"], score, mate_in)
        return draft._replace(expectation=expectation, warnings=tuple(warnings))


def json_reader(table: Table) -> Callable[[str], Draft]:
    """Return what makes a draft of a line of JSONL, or raises a RootsplitError."""

    def read(text: str) -> Draft:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the line is no JSON: {error}") from None
        if not isinstance(record, dict):
            raise InputError("the line is JSON, but no object with named fields")
        return table.draft({name.lower(): value for name, value in record.items()})

    return read


def csv_reader(table: Table, header: str, path: str) -> Callable[[str], Draft]:
    """Return what makes a draft of a line of a CSV, or raises a RootsplitError.

    Parameters
    ----------
    table
        What to make of the fields.
    header
        The line of names; commas, semicolons or tabs part them.
    path
        For the message.

    Raises
    ------
    InputError
        If no column has the position's name.
    """
    delimiter = max(_DELIMITERS, key=header.count)
    names = [name.strip().lower() for name in _split(header, delimiter)]
    if not set(names) & set(table.position_columns):
        wanted = " or ".join(table.position_columns)
        raise InputError(f"{path} has no column named {wanted}, but {shortened(', '.join(names))}: name the right one")

    def read(text: str) -> Draft:
        values = _split(text, delimiter)
        if len(values) > len(names):
            raise InputError(f"the line has {len(values)} fields: there are {len(names)} columns")
        return table.draft(dict(zip(names, values, strict=False)))

    return read


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InputError(f"the line is no row of a CSV: {error}") from None


def _is_given(value: Any) -> bool:
    return value is not None and value != "" and value != []


def _as_text(value: Any, name: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 1 << 200 else None
    if not isinstance(value, str):
        raise InputError(f"the field {name} must be a text")
    if not value.strip():
        raise InputError(f"the field {name} is blank")
    # JSON can write halves of characters, which no output could.
    return value.encode("utf-8", "replace").decode()


def _as_list(value: Any, name: str) -> Sequence[str]:
    """Return the words of a text, or the texts of a list."""
    if isinstance(value, list):
        return [_as_text(each, name).strip() for each in value]
    return _as_text(value, name).replace(",", " ").split()


def _as_number(record: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = record[name]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    is_written = isinstance(value, str) and _NUMBER.fullmatch(value.strip())
    if (is_number or is_written) and least <= int(value) <= most:
        return int(value)
    raise InputError(f"the field {name} is {shortened(repr(value))}: it must be a whole number from {least} to {most}")


def _overrides(record: Mapping[str, Any], known: Overrides) -> Overrides:
    """Return the limits that a record asks for, beside those that its position's text asks for."""
    ranges = {
        "depth": (1, MAX_DEPTH),
        "nodes": (1, NO_NODE_LIMIT),
        "mate": (1, MAX_DEPTH),
        "multipv": (1, _MOST_LINES),
        "priority": (-_LARGEST_PRIORITY, _LARGEST_PRIORITY),
    }
    given = {name: _as_number(record, name, *limits) for name, limits in ranges.items() if _is_given(record.get(name))}
    overrides = known._replace(**given)
    if not _is_given(record.get("time_s")):
        return overrides
    value = record["time_s"]
    try:
        time_s = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        time_s = -1.0
    return overrides._replace(time_s=Limits(time_s=time_s).time_s)
