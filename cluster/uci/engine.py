"""The engine: reads commands, never blocked by a search; one search at a time, on a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from importlib.metadata import version

from cluster.request import SearchRequest
from cluster.session import Session, open_session
from cluster.uci.commands import CommandError, Go, PositionCommand, parse_go, parse_position, parse_setoption
from cluster.uci.options import CLEAR_HASH, Options, changed, declarations
from cluster.uci.thinking import Thinking
from search.game_files import load_game
from search.game_record import GameRecord
from search.limits import Limits
from search.referee import Referee
from search.rules import RulesError
from tt_store.errors import RootsplitError

_MS = 1000.0


class Engine:
    """A game behind the UCI protocol, or behind the same words for games other than chess.

    Parameters
    ----------
    game_name
        A game's name, or the path of its file.
    options
        What holds until the GUI says otherwise.
    address
        Where workers run; see `cluster.session.open_session`.
    say
        Takes a line for the GUI; may be called from any thread.

    Raises
    ------
    RulesError
        If there is no such game.
    """

    def __init__(self, game_name: str, options: Options, address: str | None, say: Callable[[str], None]) -> None:
        self._game_name, self._options, self._address = game_name, options, address
        self._game = load_game(game_name)
        self._lock = threading.Lock()
        self._write = say
        self._record: GameRecord | None = None
        self._session: Session | None = None
        self._is_full_width = False
        self._position = PositionCommand("", ())
        self._thinking: Thinking | None = None
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._identify,
            "isready": self._get_ready,
            "ucinewgame": self._forget,
            "setoption": self._set_option,
            "position": self._set_position,
            "go": self._go,
            "stop": lambda _words: self._stop(),
            "ponderhit": self._ponder_hit,
        }

    def run(self, lines: Iterable[str]) -> None:
        """Obey commands until ``quit`` or the end of the input; then nothing is left running."""
        try:
            for line in lines:
                words = line.split()
                if "quit" in words[:1]:
                    break
                self._obey(words)
        finally:
            self._stop()
            self._close()

    def _obey(self, words: list[str]) -> None:
        # Words that are not ours before one that is are passed over, as the protocol wants it.
        while words and words[0] not in self._commands:
            words = words[1:]
        if not words:
            return
        try:
            self._commands[words[0]](words[1:])
        except (CommandError, RootsplitError) as error:
            self._note(str(error))

    def _say(self, line: str) -> None:
        with self._lock:
            self._write(line)

    def _note(self, sentence: str) -> None:
        self._say(f"info string {' '.join(sentence.split())}")

    # Commands

    def _identify(self, _words: list[str]) -> None:
        self._say(f"id name rootsplit {version('rootsplit')}")
        self._say("id author the rootsplit authors")
        for line in declarations(self._options):
            self._say(line)
        self._say("uciok")

    def _get_ready(self, _words: list[str]) -> None:
        # While it searches, an engine is ready by definition.
        try:
            if self._thinking is None:
                self._open(self._is_full_width)
        finally:
            self._say("readyok")

    def _forget(self, _words: list[str]) -> None:
        self._stop()
        if self._session is not None:
            self._session.executor.forget()

    def _set_option(self, words: list[str]) -> None:
        command = parse_setoption(words)
        self._stop()
        if command.name.lower() == CLEAR_HASH.lower():
            self._forget([])
            return
        before, self._options = self._options, changed(self._options, command)
        if (before.hash_mb, before.workers) != (self._options.hash_mb, self._options.workers):
            self._close()

    def _set_position(self, words: list[str]) -> None:
        command = parse_position(words)
        self._stop()
        text = self._own_text(command.text)
        self._games().place(text, command.moves)
        self._position = PositionCommand(text, command.moves)

    def _go(self, words: list[str]) -> None:
        self._stop()
        try:
            go = parse_go(words, self._is_legal)
        except CommandError as error:
            # A GUI waits for the answer to each `go`, whatever it meant.
            self._note(f"{error}; searched to depth 1")
            go = Go(Limits(depth=1))
        position, options = self._position, self._options
        session = self._open(go.limits.mate is not None)
        is_second = (position.text.split()[1:2] == ["b"]) != (len(position.moves) % 2 == 1)
        request = SearchRequest(
            position.text,
            position.moves,
            go.limits,
            contempt=self._contempt(is_second),
            multipv=options.multipv,
            root_moves=go.search_moves,
        )
        self._thinking = Thinking(session, request, go, go.clocks[is_second], options.move_overhead_ms / _MS, self._say)

    def _stop(self) -> None:
        """End the search that runs, if any; its best move is told before this returns."""
        thinking, self._thinking = self._thinking, None
        if thinking is not None:
            thinking.stop()
            thinking.join()

    def _ponder_hit(self, _words: list[str]) -> None:
        if self._thinking is not None:
            self._thinking.ponder_hit()

    # What the commands need

    def _games(self) -> GameRecord:
        if self._record is None:
            self._record = GameRecord(Referee(self._game, self._note))
        return self._record

    def _open(self, is_full_width: bool) -> Session:
        """Return the session, opened anew if the options have changed; who asks for a mate gets one of full width."""
        if self._session is not None and self._is_full_width != is_full_width:
            self._close()
        if self._session is None:
            request = SearchRequest("", limits=Limits(mate=1 if is_full_width else None))
            options = self._options
            self._session = open_session(
                self._game_name, request, options.workers, options.hash_mb, self._address, notice=self._note
            )
            self._is_full_width = is_full_width
        return self._session

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _contempt(self, is_second: bool) -> int:
        options = self._options
        is_for_second = {"White": False, "Black": True}.get(options.contempt_side, is_second)
        return options.contempt if is_for_second == is_second else -options.contempt

    def _is_legal(self, word: str) -> bool:
        games = self._games()
        position = games.place(self._position.text, self._position.moves).position
        with contextlib.suppress(RulesError):
            return self._game.parse_move(position, word) in games.referee.legal_moves(position)
        return False

    def _own_text(self, text: str) -> str:
        """Return a position's text; in Chess960 castling rights by their rooks' files, so that moves are written so."""
        if not self._options.is_chess960 or self._game.label != "chess":
            return text
        # Imported where it is needed: it takes long to load.
        import chess

        try:
            return chess.Board(text or chess.STARTING_FEN, chess960=True).shredder_fen()
        except ValueError as error:
            raise RulesError(f"{text!r} is no position of chess: {error}") from None
