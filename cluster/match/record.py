"""The match's record: a PGN file, one whole game after the other; a match that was cut off goes on from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import chess
import chess.pgn

from cluster.match.contestants import MatchError
from cluster.match.game import PlayedGame
from tt_store.errors import writing

_SETTINGS = "MatchSettings"
_POINTS = {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5}


@dataclass(frozen=True)
class Result:
    """What counts of a game."""

    number: int
    """From 0; games ``2 k`` and ``2 k + 1`` are a pair: the first engine has White in the even ones."""
    points: float
    """Of the first engine: 0, 0.5 or 1."""
    termination: str
    first_is_to_blame: bool
    second_is_to_blame: bool


class Record:
    """Appends games to a PGN file, and reads back what is there.

    Parameters
    ----------
    path
        The file; None to keep nothing.
    names
        Of the engines.
    settings
        What identifies the match: a file of another one is refused.
    """

    def __init__(self, path: Path | None, names: tuple[str, str], settings: str) -> None:
        self._path, self._names, self._settings = path, names, settings

    def load(self) -> dict[int, Result]:
        """Return the finished games of an earlier run; a torn last one is cut off.

        Raises
        ------
        MatchError
            If the file is of another match, or cannot be read.
        """
        if self._path is None or not self._path.exists():
            return {}
        results, whole_bytes = {}, 0
        try:
            with self._path.open("rb") as file:
                content = file.read()
            for text in content.split(b"\n\n\n")[:-1]:
                result = self._result_of(text.decode(errors="replace"))
                results[result.number] = result
                whole_bytes += len(text) + 3
            if whole_bytes < len(content):
                os.truncate(self._path, whole_bytes)
        except OSError as error:
            raise MatchError(f"the record {self._path} cannot be read: {error.strerror}") from None
        return results

    def add(self, number: int, game: PlayedGame) -> Result:
        """Append a game; returns what counts of it."""
        headers = self._headers(number, game)
        if self._path is not None:
            # One write of a whole game: whatever is cut off is the last one.
            with writing(self._path), self._path.open("ab") as file:
                file.write((_pgn(game, headers) + "\n\n\n").encode())
                file.flush()
                os.fsync(file.fileno())
        return self._result(headers)

    def _headers(self, number: int, game: PlayedGame) -> dict[str, str]:
        white, black = self._names if number % 2 == 0 else self._names[::-1]
        blamed = "" if game.blame is None else "White" if game.blame == chess.WHITE else "Black"
        return {
            "Event": "rootsplit match",
            "Site": "?",
            "Date": datetime.now(UTC).strftime("%Y.%m.%d"),
            "Round": f"{number // 2 + 1}.{number % 2 + 1}",
            "White": white,
            "Black": black,
            "Result": game.result,
            "Termination": game.termination,
            "Blame": blamed or "-",
            "Reason": game.reason,
            _SETTINGS: self._settings,
        }

    def _result_of(self, text: str) -> Result:
        headers = {}
        for line in text.strip().splitlines():
            if line.startswith("["):
                name, _, value = line[1:-1].partition(" ")
                headers[name] = value.strip('"')
        if headers.get(_SETTINGS) != self._settings:
            raise MatchError(
                f"{self._path} is the record of another match ({headers.get(_SETTINGS, 'none of ours')}, not"
                f" {self._settings}): choose another file"
            )
        return self._result(headers)

    def _result(self, headers: Mapping[str, str]) -> Result:
        pair, _, half = headers["Round"].partition(".")
        number = 2 * (int(pair) - 1) + int(half) - 1
        white_points = _POINTS[headers["Result"]]
        is_first_white = number % 2 == 0
        first, second = ("White", "Black") if is_first_white else ("Black", "White")
        return Result(
            number,
            white_points if is_first_white else 1 - white_points,
            headers["Termination"],
            headers["Blame"] == first,
            headers["Blame"] == second,
        )


def _pgn(game: PlayedGame, headers: Mapping[str, str]) -> str:
    """Return a game's text: clock and score of each move as comments."""
    root = chess.pgn.Game(headers=None)
    for name, value in headers.items():
        root.headers[name] = value
    if game.opening.fen != chess.STARTING_FEN:
        root.setup(chess.Board(game.opening.fen))
    node: chess.pgn.GameNode = root
    for move in game.opening.moves:
        node = node.add_variation(move)
    for played in game.moves:
        child = node.add_variation(played.move)
        if played.score is not None:
            child.set_eval(played.score, played.depth)
        child.set_emt(round(played.elapsed_s, 3))
        node = child
    exporter = chess.pgn.StringExporter(headers=True, comments=True, variations=False, columns=100)
    text: str = root.accept(exporter)
    return text
