"""The words of UCI: what a GUI says, parsed; unknown words are passed over, as the protocol wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cluster.uci.clock import Clock
from search.limits import MAX_DEPTH, NO_NODE_LIMIT, Limits

_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime")
_FLAGS = ("infinite", "ponder")
_MS = 1000.0


@dataclass(frozen=True)
class PositionCommand:
    """A position and the moves from there."""

    text: str
    """The game's own text; empty for its usual start."""
    moves: tuple[str, ...]


@dataclass(frozen=True)
class Go:
    """What ``go`` asks for."""

    limits: Limits = Limits()
    """Depth, nodes and mate; a limit of 0 is the least that there is, so that a legal move comes at once."""
    clocks: tuple[Clock, Clock] = (Clock(), Clock())
    """White's, or of whoever began the game, and the other's."""
    is_infinite: bool = False
    is_ponder: bool = False
    search_moves: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether no best move may be told before ``stop`` or ``ponderhit``."""
        return self.is_infinite or self.is_ponder


@dataclass(frozen=True)
class SetOption:
    """An option's name and its value as text."""

    name: str
    value: str


class CommandError(ValueError):
    """A command of ours whose words make no sense; its text is for the GUI's log."""


def parse_position(words: Iterable[str]) -> PositionCommand:
    """Return what follows the word ``position``: ``startpos``, or ``fen`` and a text, then ``moves``.

    Raises
    ------
    CommandError
        If it is neither.
    """
    kind, *rest = list(words) or [""]
    cut = rest.index("moves") if "moves" in rest else len(rest)
    text, moves = " ".join(rest[:cut]), tuple(rest[cut + 1 :])
    if kind == "startpos":
        return PositionCommand("", moves)
    if kind == "fen" and text:
        return PositionCommand(text, moves)
    raise CommandError("position takes startpos, or fen and a position, and then moves")


def parse_go(words: Iterable[str], is_move: Callable[[str], bool]) -> Go:
    """Return what follows the word ``go``.

    Parameters
    ----------
    words
        The words; unknown ones are passed over.
    is_move
        Whether a word is a move: ``searchmoves`` takes all that follow.

    Raises
    ------
    CommandError
        If a number is none.
    """
    numbers: dict[str, int] = {}
    flags, moves = set(), list[str]()
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word in _FLAGS:
            flags.add(word)
        elif word in _NUMBERS:
            numbers[word] = _number(word, waiting.pop(0) if waiting else "")
        elif word == "searchmoves":
            while waiting and waiting[0] not in (*_NUMBERS, *_FLAGS) and is_move(waiting[0]):
                moves.append(waiting.pop(0))
    clocks = (Clock(), Clock())
    if "infinite" not in flags:
        clocks = (_clock(numbers, "wtime", "winc"), _clock(numbers, "btime", "binc"))
    return Go(_limits(numbers), clocks, "infinite" in flags, "ponder" in flags, tuple(moves))


def _limits(numbers: Mapping[str, int]) -> Limits:
    least = {name: max(1, numbers[name]) for name in ("depth", "nodes", "mate") if name in numbers}
    depth, nodes = least.get("depth"), least.get("nodes")
    return Limits(
        depth=None if depth is None else min(depth, MAX_DEPTH),
        nodes=None if nodes is None else min(nodes, NO_NODE_LIMIT),
        mate=least.get("mate"),
    )


def _clock(numbers: Mapping[str, int], left: str, increment: str) -> Clock:
    def seconds(name: str) -> float | None:
        return numbers[name] / _MS if name in numbers else None

    return Clock(
        left_s=seconds(left),
        increment_s=max(0.0, seconds(increment) or 0.0),
        moves_to_go=max(1, numbers["movestogo"]) if numbers.get("movestogo") else None,
        move_time_s=seconds("movetime"),
    )


def parse_setoption(words: Iterable[str]) -> SetOption:
    """Return what follows the word ``setoption``: ``name ...`` and, but for buttons, ``value ...``.

    Raises
    ------
    CommandError
        If there is no name.
    """
    text = " ".join(words)
    head, _, rest = text.partition("name ")
    name, _, value = rest.partition(" value ")
    if head or not name.strip():
        raise CommandError("setoption takes name, an option, and value")
    return SetOption(name.strip(), value.strip())


def _number(word: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise CommandError(f"{word} takes a whole number, not {text!r}") from None
