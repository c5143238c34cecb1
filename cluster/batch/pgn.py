"""Games in PGN (Edwards 1994), as they are found in the wild, and their positions.

A game ends where its result stands, where the next one's tags begin, or where its moves are numbered from 1 again. Tags
without moves are a game, and so are moves without tags; a tag that comes a second time after a blank line belongs to
the next game. Comments and variations are skipped; a comment in a comment, which the standard does not know, is told by
the brace that is left over. A null move begins a new line of moves, from the position with the other side to move.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.batch.chess_text import ChessLine, accepted, find_move
from cluster.batch.epd import read_epd
from cluster.batch.rows import Draft, Found, ReadOptions, failure, shortened
from cluster.batch.sources import Line
from search.rules import Game, RulesError

MOST_PLIES = 20_000
"""No game of chess is longer: the 75-move rule ends it before."""
_MOST_TAGS = 1000
_TAG_BEGIN = re.compile(r'\s*\[\s*([A-Za-z]\w*)(?:\s*"|\s+[^\s\]])')
_TAG = re.compile(r'\s*\[\s*([A-Za-z]\w*)\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*\]')
_BRACE = re.compile(r"[{}]")
_TOKEN = re.compile(r"[{}();]|\$\d*|[^\s{}();$]+")
_MOVE_NUMBER = re.compile(r"\d+\.+|\d+$|\.+")
_NULL_WARNING = "a null move comes before: repetitions count from there on"
_BRACE_WARNING = "there is a closing brace too many"
_RESULTS = frozenset({"1-0", "0-1", "1/2-1/2", "1/2", "*", "½-½", "1–0", "0–1", "½–½"})  # noqa: RUF001 - as written
_NULL_MOVES = frozenset({"--", "Z0", "0000", "@@@@"})
_ANNOTATIONS = frozenset({"N", "D", "TN", "RR", "ep", "e.p.", "ch", "mate"})
_NO_VARIANTS = frozenset({"", "standard", "chess", "normal", "fromposition", "classical", "unknown"})
_CHESS960_VARIANTS = frozenset({"chess960", "960", "frc", "fischerandom", "fischerrandom", "freestyle", "wildfr"})


class _Token(NamedTuple):
    text: str
    line: int


@dataclass
class PgnGame:
    """One game as text, taken apart."""

    line: int
    """Where it begins."""
    tags: dict[str, str] = field(default_factory=dict)
    moves: list[_Token] = field(default_factory=list)
    """Of the main line; null moves too."""
    warnings: list[str] = field(default_factory=list)
    fault: _Token | None = None
    """A sentence on why the game cannot be read to its end, and where."""

    def take_tag(self, name: str, value: str) -> None:
        """Take a tag, unless there is one of the same name."""
        if len(self.tags) < _MOST_TAGS:
            self.tags.setdefault(shortened(name), shortened(value.strip()))


class PgnSplitter:
    """Takes lines of a PGN and gives games, in constant memory."""

    def __init__(self) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._game: PgnGame | None = None
        self._open_tag: str | None = None
        self._is_after_blank = False
        self._in_comment = self._has_inner_comment = False
        self._depth = 0
        self._last_comment_end: tuple[int, int] | None = None
        """Number of moves and depth of variations at the end of a comment in which another one began."""

    def feed(self, line: Line) -> Iterator[PgnGame]:
        """Take a line, and yield the games that it ends."""
        text = line.text.replace("\0", " ")
        if line.fault is not None:
            game = self._current(line.number)
            game.fault = game.fault or _Token(line.fault, line.number)
            return
        is_continued = self._open_tag is not None and not _TAG_BEGIN.match(text)
        if is_continued:
            text, self._open_tag = f"{self._open_tag} {text.strip()}", None
        self._close_tag(line.number)
        tag = _TAG_BEGIN.match(text)
        # Only after a blank line do the next game's tags end a comment that nobody closed.
        if tag and (not self._in_comment or (self._is_after_blank and _TAG.match(text))):
            if not is_continued and self._begins_game(tag[1]):
                yield from self.finish()
            if not is_continued and "]" not in text:
                # There is an end of line within the tag.
                self._current(line.number)
                self._open_tag, text = text, ""
            else:
                text = self._take_tags(text, line.number)
        if text.strip() and not text.startswith("%"):
            yield from self._take_moves(text, line.number)
        self._is_after_blank = not line.text.strip()

    def finish(self) -> Iterator[PgnGame]:
        """Yield the game that is being read, if there is one."""
        game = self._game
        if game is not None:
            self._close_tag(game.line)
            if self._in_comment:
                game.warnings.append("a comment is not closed")
            if self._depth:
                game.warnings.append("a variation is not closed")
            yield game
        self._begin_anew()

    def _close_tag(self, line: int) -> None:
        """Take a tag that nobody has closed for what stands on its line."""
        if self._open_tag is not None:
            text, self._open_tag = self._open_tag, None
            self._take_tags(text, line)

    def _current(self, line: int) -> PgnGame:
        if self._game is None:
            self._game = PgnGame(line)
        return self._game

    def _begins_game(self, tag: str) -> bool:
        """Tell whether a tag belongs to a new game."""
        game = self._game
        if game is None:
            return False
        is_repeated = tag in game.tags
        return bool(game.moves) or (is_repeated and (self._is_after_blank or tag == "Event")) or self._in_comment

    def _take_tags(self, text: str, line: int) -> str:
        """Take the tags that a line begins with, and return the rest of it."""
        game = self._current(line)
        place = 0
        while (found := _TAG.match(text, place)) is not None:
            game.take_tag(found[1], re.sub(r'\\(["\\])', r"\1", found[2]))
            place = found.end()
        loose = _TAG_BEGIN.match(text, place)
        if loose is None:
            return text[place:]
        # Quotation marks that are lacking, or that the value itself has.
        value = text[loose.end(1) :].strip().removesuffix("]").rstrip()
        game.take_tag(loose[1], value.removeprefix('"').removesuffix('"'))
        return ""

    def _take_moves(self, text: str, line: int) -> Iterator[PgnGame]:
        """Take a line of moves, and yield the games that it ends."""
        place = 0
        first_place = len(text) - len(text.lstrip())
        while place < len(text):
            found = (_BRACE if self._in_comment else _TOKEN).search(text, place)
            if found is None or found[0] == ";":
                return
            place = found.end()
            token = found[0]
            if self._in_comment:
                self._take_brace(token)
            elif token == "{":
                self._in_comment, self._has_inner_comment = True, False
            elif token == "}":
                self._close_outer_comment()
            elif token in "()":
                self._depth = max(0, self._depth + (1 if token == "(" else -1))
            elif self._depth == 0 and token[0] != "$":
                if token in _RESULTS:
                    yield from self.finish()
                elif found.start() == first_place and self._numbers_anew(token, text[place:]):
                    yield from self.finish()
                    self._take_word(token, line)
                else:
                    self._take_word(token, line)

    def _take_brace(self, brace: str) -> None:
        if brace == "{":
            self._has_inner_comment = True
            return
        self._in_comment = False
        moves = 0 if self._game is None else len(self._game.moves)
        self._last_comment_end = (moves, self._depth) if self._has_inner_comment else None

    def _close_outer_comment(self) -> None:
        """Take back what was read since a comment's end: the comment held another one, and ends only here."""
        if self._game is None:
            return
        if self._last_comment_end is not None:
            moves, self._depth = self._last_comment_end
            del self._game.moves[moves:]
            self._last_comment_end = None
        elif _BRACE_WARNING not in self._game.warnings:
            self._game.warnings.append(_BRACE_WARNING)

    def _numbers_anew(self, token: str, rest: str) -> bool:
        """Tell whether a line's first word, a move number, begins a game without tags."""
        game = self._game
        if game is None or not game.moves:
            return False
        return re.match(r"1\.(?!\.)", token) is not None and not rest.lstrip().startswith(".")

    def _take_word(self, word: str, line: int) -> None:
        """Take a move of the main line; its number, signs of praise and words of annotators are skipped."""
        if word not in _NULL_MOVES:
            number = _MOVE_NUMBER.match(word)
            word = word[number.end() :] if number else word
            if word not in _NULL_MOVES and (word in _ANNOTATIONS or not any(map(str.isalnum, word))):
                return
        game = self._current(line)
        if len(game.moves) < MOST_PLIES:
            game.moves.append(_Token(shortened(word), line))
        elif game.fault is None:
            game.fault = _Token(f"the game has more than {MOST_PLIES} moves", line)


def read_pgn(lines: Iterable[Line], game: Game, options: ReadOptions) -> Iterator[Found]:
    """Yield the positions of the games that are wanted; a game that cannot be read on ends in one with an error.

    Parameters
    ----------
    lines
        Of the PGN.
    game
        Chess.
    options
        Which positions of a game are wanted.
    """
    splitter = PgnSplitter()
    number = 0
    for line in lines:
        for each in splitter.feed(line):
            number += 1
            yield from _positions(each, number, game, options)
    for each in splitter.finish():
        number += 1
        yield from _positions(each, number, game, options)


def _positions(pgn: PgnGame, number: int, game: Game, options: ReadOptions) -> Iterator[Found]:
    """Yield the wanted positions of a game."""
    name = _name_of(pgn, number)
    if pgn.fault is not None and not pgn.tags and not pgn.moves:
        yield pgn.fault.line, failure("", pgn.fault.text, name)
        return
    try:
        line, warnings = _begin(pgn, game)
    except RulesError as error:
        yield pgn.line, failure(pgn.tags.get("FEN", ""), str(error), name)
        return
    if not pgn.moves and pgn.fault is None:
        warnings.append("the game has no moves")

    def draft(ply: int) -> Draft:
        return Draft(line.position, f"{name} ply {ply}", line.moves, warnings=tuple(warnings))

    fault = pgn.fault
    if options.wants(0):
        yield pgn.line, draft(0)
    for ply, token in enumerate(pgn.moves, 1):
        try:
            _play(line, token.text, warnings)
        except RulesError as error:
            fault = _Token(f"{error} (ply {ply} of the game): the rest of the game is not read", token.line)
            break
        if options.wants(ply):
            yield pgn.line, draft(ply)
    if fault is not None:
        yield fault.line, failure(line.board.fen(), fault.text, name)
    elif options.only_last:
        yield pgn.line, draft(len(pgn.moves))


def _begin(pgn: PgnGame, game: Game) -> tuple[ChessLine, list[str]]:
    """Return the line of a game before its first move, and what is to be said of it."""
    variant = re.sub(r"[^a-z0-9]", "", pgn.tags.get("Variant", "").lower())
    if variant not in _NO_VARIANTS | _CHESS960_VARIANTS:
        raise RulesError(f"the game is of the variant {pgn.tags['Variant']}: only chess and Chess960 are read")
    start = read_epd(pgn.tags["FEN"], game) if pgn.tags.get("FEN") else Draft(game.start_text)
    line = ChessLine(game, accepted(game, start.position.split()))
    line.play(start.moves)
    return line, [*start.warnings, *pgn.warnings]


def _play(line: ChessLine, text: str, warnings: list[str]) -> None:
    if text in _NULL_MOVES:
        if line.board.is_check():
            raise RulesError(f"the null move {text} leaves a king in check")
        line.pass_turn()
        if _NULL_WARNING not in warnings:
            warnings.append(_NULL_WARNING)
        return
    move = find_move(line.board, text)
    if move is None:
        raise RulesError(f"the move {shortened(text)} is not legal there")
    line.push(move)


def _name_of(pgn: PgnGame, number: int) -> str:
    """Return what a game's rows are called."""
    players = [pgn.tags.get(colour, "?") for colour in ("White", "Black")]
    known = any(player.strip("? ") for player in players)
    return f"{' - '.join(players)} (game {number})" if known else f"game {number}"
