"""What is to be done with each row: refuse it, tell the result of a finished game, or have it searched."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from typing import Any, NamedTuple

from cluster.batch.jobs import Answer, PositionJob, Status
from cluster.batch.rows import InputRow
from cluster.batch.settings import RunSettings
from cluster.position_rules import words_of
from search.algorithms import HAS_DEPTH
from search.limits import Limits
from search.referee import Referee
from search.rules import Game, RulesError
from tt_store.errors import RootsplitError

UNREADABLE, IMPOSSIBLE, BAD_LIMIT = "unreadable", "impossible position", "bad limit"
"""Kinds of errors that come before a search."""

_MOST_DIGESTS = 4096


class Plan(NamedTuple):
    """A row, and what is to be done with it."""

    row: InputRow
    answer: Answer | None
    """Where none has to be searched for: of an error, or of a finished game."""
    error_kind: str | None
    identity: int
    """64 bits that are equal where position, history and settings are; 0 where nothing is searched."""
    job: PositionJob | None
    settings_hash: str


class _Place(NamedTuple):
    """A position that was reached by a row's moves."""

    position: Any
    history: tuple[int, ...]


class Planner:
    """Plans rows one by one.

    Parameters
    ----------
    game, referee
        The game.
    settings
        The run's.
    """

    def __init__(self, game: Game, referee: Referee, settings: RunSettings) -> None:
        self._game, self._referee, self._settings = game, referee, settings
        self._goes_deep = settings.flags(game).algorithm in HAS_DEPTH
        self._digests: dict[tuple[Limits, int], str] = {}
        self._last_text = ""
        self._last_places: list[_Place] = []
        self._last_moves: tuple[str, ...] = ()

    def plan(self, row: InputRow) -> Plan:
        """Return what is to be done with a row; whatever is wrong with it is an answer too."""
        if row.error is not None:
            return self._refused(row, UNREADABLE, row.error)
        try:
            place = self._place(row)
        except RootsplitError as error:
            return self._refused(row, IMPOSSIBLE, str(error))
        multipv = row.overrides.multipv or self._settings.multipv
        try:
            overrides = row.overrides if self._goes_deep else row.overrides._replace(depth=None, mate=None)
            limits = self._settings.limits_of(overrides)
        except RootsplitError as error:
            return self._refused(row, BAD_LIMIT, str(error))
        digest = self._digest(limits, multipv)
        place = place._replace(position=self._game.root_position(place.position))
        facts = self._referee.facts(place.position)
        if facts.is_over:
            payoffs = self._referee.payoffs(place.position)
            text = self._game.value_text(place.position, facts.outcome, payoffs, True)
            answer = Answer(0, Status.OVER, score=facts.outcome, score_text=text, bound="exact")
            return Plan(row, answer, None, 0, None, digest)
        job = PositionJob(
            job_id=row.index,
            position=row.position,
            moves=row.moves,
            words=words_of(place.position),
            history=place.history,
            depth=limits.depth,
            nodes=limits.nodes,
            time_s=limits.time_s,
            mate=limits.mate,
            multipv=multipv,
            deadline_s=self._settings.deadline_s,
            solve=self._settings.solve,
        )
        identity = identity_of(facts.table_key, (*place.history, facts.key), digest)
        return Plan(row, None, None, identity, job, digest)

    def _refused(self, row: InputRow, kind: str, reason: str) -> Plan:
        answer = Answer(0, Status.ERROR, reason=" ".join(reason.split()))
        return Plan(row, answer, kind, 0, None, "")

    def _place(self, row: InputRow) -> _Place:
        """Return where a row's moves lead; those that the row before had too are not played again."""
        if not row.moves:
            return _Place(self._game.parse(row.position), ())
        if row.position != self._last_text or not self._last_places:
            self._last_text, self._last_moves = row.position, ()
            self._last_places = [_Place(self._game.parse(row.position), ())]
        shared = 0
        for mine, its in zip(row.moves, self._last_moves, strict=False):
            if mine != its:
                break
            shared += 1
        places = self._last_places[: shared + 1]
        self._last_places, self._last_moves = places, row.moves[:shared]
        for number, text in enumerate(row.moves[shared:], shared + 1):
            position, history = places[-1]
            move = self._game.parse_move(position, text)
            if move not in self._referee.legal_moves(position):
                raise RulesError(f"move {number}, {text}, is not legal there")
            places.append(_Place(*self._referee.follow(position, history, (move,))))
            self._last_moves += (text,)
        return places[-1]

    def _digest(self, limits: Limits, multipv: int) -> str:
        known = self._digests.get((limits, multipv))
        if known is None:
            if len(self._digests) >= _MOST_DIGESTS:
                # Each row may have limits of its own.
                self._digests.clear()
            known = self._digests[limits, multipv] = self._settings.digest(self._game, limits, multipv)
        return known


def identity_of(table_key: int, path: tuple[int, ...], settings_hash: str) -> int:
    """Return 64 bits that are equal where a search cannot tell two positions apart.

    Of the path that is what came at least twice: a position that came once, the root too, can become a draw only where
    it comes a second time within the search, and that is one by itself.

    Parameters
    ----------
    table_key
        The position's hash, as a table holds it (signed).
    path
        Hashes of the positions before it that can come back, and its own.
    settings_hash
        Of the limits and of all else that decides an answer.
    """
    twice = sorted(key for key, count in Counter(path).items() if count > 1) if len(path) > 1 else ()
    words = struct.pack(f"<{1 + len(twice)}q", table_key, *twice)
    digest = hashlib.blake2b(words + settings_hash.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1
