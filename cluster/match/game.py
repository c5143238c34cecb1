"""One game between two engines: clocks, ends, and who is to blame for a sudden one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import chess
import chess.engine

from cluster.match.contestants import Contestant, MatchError, TimeControl
from cluster.match.openings import Opening

_START_S = 180.0
"""An engine may have to compile its kernel first."""
_MOST_PLIES = 1000
_WHOSE = {chess.WHITE: "White", chess.BLACK: "Black"}
NORMAL, TIME, CRASH, ILLEGAL = "normal", "time forfeit", "abandoned", "rules infraction"


@dataclass(frozen=True)
class Adjudication:
    """When a game ends before its end; 0 moves: never."""

    draw_moves: int = 0
    """So many moves in a row, by both sides, with scores within `draw_score`."""
    draw_score: int = 10
    resign_moves: int = 0
    """So many moves in a row in which a side's own score is at most `-resign_score`."""
    resign_score: int = 900


@dataclass(frozen=True)
class PlayedMove:
    """A move with what its engine said of it."""

    move: chess.Move
    elapsed_s: float
    score: chess.engine.PovScore | None
    depth: int | None
    nodes: int | None


@dataclass(frozen=True)
class PlayedGame:
    """A finished game."""

    opening: Opening
    moves: tuple[PlayedMove, ...]
    result: str
    """1-0, 0-1 or 1/2-1/2."""
    reason: str
    """In words."""
    termination: str = NORMAL
    blame: chess.Color | None = None
    """Who lost by time, a crash or an illegal move."""


@dataclass
class Player:
    """A running engine; started again after a crash."""

    contestant: Contestant
    _engine: chess.engine.SimpleEngine | None = field(default=None, repr=False)

    def engine(self) -> chess.engine.SimpleEngine:
        """Return the process, started if need be.

        Raises
        ------
        MatchError
            If it does not start, or refuses an option.
        """
        if self._engine is None:
            try:
                # In a group of its own: a Ctrl-C that ends the match is no crash of the engine.
                engine = chess.engine.SimpleEngine.popen_uci(
                    list(self.contestant.command), timeout=_START_S, setpgrp=True
                )
            except (OSError, chess.engine.EngineError, TimeoutError) as error:
                raise MatchError(f"the engine {self.contestant.name} does not start: {error}") from None
            try:
                engine.configure(dict(self.contestant.options))
                engine.ping()
            except chess.engine.EngineError as error:
                engine.close()
                raise MatchError(f"the engine {self.contestant.name} refuses an option: {error}") from None
            self._engine = engine
        return self._engine

    def close(self) -> None:
        """End the process."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


def play_game(
    white: Player, black: Player, opening: Opening, control: TimeControl | None, rules: Adjudication, game_id: Any
) -> PlayedGame:
    """Play one game.

    Parameters
    ----------
    white, black
        The engines.
    opening
        Where they begin.
    control
        The clock; None where each engine has limits of its own.
    rules
        Early ends.
    game_id
        Another one for each game: engines then forget what they know.
    """
    board = opening.board()
    clocks = dict.fromkeys((chess.WHITE, chess.BLACK), control.base_s if control else 0.0)
    moves: list[PlayedMove] = []
    while len(moves) < _MOST_PLIES:
        end = _natural_end(board) or _adjudicated(moves, board.turn, rules)
        if end is not None:
            return PlayedGame(opening, tuple(moves), *end)
        side = board.turn
        player = white if side == chess.WHITE else black
        limit = _limit(player.contestant, control, clocks)
        engine = player.engine()
        started_s = time.monotonic()
        try:
            played = engine.play(board, limit, game=game_id, info=chess.engine.INFO_ALL)
        except chess.engine.EngineTerminatedError:
            player.close()
            return _lost(opening, moves, side, f"{_WHOSE[side]}'s engine died", CRASH)
        except (chess.engine.EngineError, TimeoutError) as error:
            player.close()
            return _lost(opening, moves, side, f"{_WHOSE[side]}'s engine: {error or 'no answer'}", ILLEGAL)
        elapsed_s = time.monotonic() - started_s
        if played.move is None:
            return _lost(opening, moves, side, f"{_WHOSE[side]} gives up", NORMAL)
        info = played.info
        moves.append(PlayedMove(played.move, elapsed_s, info.get("score"), info.get("depth"), info.get("nodes")))
        if control is not None and not player.contestant.has_limit:
            clocks[side] -= elapsed_s
            if clocks[side] < 0:
                return _lost(opening, moves[:-1], side, f"{_WHOSE[side]} loses on time", TIME)
            clocks[side] += control.increment_s
        board.push(played.move)
    return PlayedGame(opening, tuple(moves), "1/2-1/2", f"no end after {_MOST_PLIES} plies")


def _limit(contestant: Contestant, control: TimeControl | None, clocks: dict[chess.Color, float]) -> chess.engine.Limit:
    if control is None or contestant.has_limit:
        return contestant.limit
    return replace(
        contestant.limit,
        white_clock=clocks[chess.WHITE],
        black_clock=clocks[chess.BLACK],
        white_inc=control.increment_s,
        black_inc=control.increment_s,
    )


def _lost(opening: Opening, moves: list[PlayedMove], side: chess.Color, reason: str, termination: str) -> PlayedGame:
    result = "0-1" if side == chess.WHITE else "1-0"
    blame = None if termination == NORMAL else side
    return PlayedGame(opening, tuple(moves), result, reason, termination, blame)


def _natural_end(board: chess.Board) -> tuple[str, str] | None:
    outcome = board.outcome(claim_draw=True)
    return None if outcome is None else (outcome.result(), outcome.termination.name.lower().replace("_", " "))


def _adjudicated(moves: list[PlayedMove], turn: chess.Color, rules: Adjudication) -> tuple[str, str] | None:
    """Return result and reason if the engines' scores say how the game ends."""
    wanted = 2 * rules.draw_moves
    if wanted and len(moves) >= wanted and all(_is_even(played, rules.draw_score) for played in moves[-wanted:]):
        return "1/2-1/2", "adjudicated: even for long"
    # The latest moves of the side that is not to move now.
    own = moves[-1::-2][: rules.resign_moves]
    if (
        rules.resign_moves
        and len(own) == rules.resign_moves
        and all(_is_lost(move, rules.resign_score) for move in own)
    ):
        return ("1-0" if turn == chess.WHITE else "0-1"), "adjudicated: resigned"
    return None


def _centipawns(played: PlayedMove) -> int | None:
    return None if played.score is None else played.score.relative.score(mate_score=100_000)


def _is_even(played: PlayedMove, most: int) -> bool:
    score = _centipawns(played)
    return score is not None and abs(score) <= most


def _is_lost(played: PlayedMove, least: int) -> bool:
    score = _centipawns(played)
    return score is not None and score <= -least
