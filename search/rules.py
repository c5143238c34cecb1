"""What a game must define, and what it may define.

A game is one Python file. Its compiled functions look into positions; nobody else does. Required names::

    Position                    a NamedTuple whose fields are annotated numpy.uint64 or numpy.int64
    MAX_MOVES                   no position has more moves, 1..1024
    START                       the text of the usual first position
    moves(position, end)        @helper: push each legal move (1..65535) with `push_move`, return the new end
    play(position, move)        @inlined: the position after a legal move
    outcome(position)           @helper: ONGOING, or the final score for the side to move: -MATE, MATE, DRAW, other
    key(position)               @helper: a well mixed 64-bit hash (uint64) of all that matters, `mix` helps
    evaluate(position)          @helper: an estimate for the side to move, within (-MATE_BOUND, MATE_BOUND)
                                which depends on nothing but what `key` sees, and on a `clock` above FRESH_CLOCK;
                                a game of several players has estimates of another form: see `search.player_rules`
    parse(text)                 the Position of a text, or RulesError with one sentence
    text(position)              the text of a Position
    move_text(position, move)   a move in its users' notation
    parse_move(position, text)  the other way; RulesError where the text is no move at all (legality is checked later)

Optional names::

    order(position, move)       @helper: a small estimate (|x| < 2^22) of a move for its mover; higher is tried first
    move_slot(position, move)   @helper, with HISTORY_SIZE: 0..HISTORY_SIZE-1; asks for killers and history
    evaluate_with(position, memory)  @helper, with MEMORY_WORDS: `evaluate`, quicker, with so many words of memory, zero
                                at first, where a searching core may remember what later positions have in common
    side_to_move(position)      @helper, 0 or 1: needed only if a move may leave the same side to move
    count_moves(position)       @helper: how many `moves` pushes; perft then asks for no outcome: draws by rule go on
    stuck(position)             @helper: the final score where `moves` pushes none; `outcome` need not see that then.
                                Where it tells a draw though there are moves, who likes may go on
    ENDED_LINES                 for how many lines perft counts one that ends sooner; 0 by default
    solve_leaf(position, alpha, nodes, room)  @helper, with LATE_PLIES and `is_late`: the value of a late position by
                                the kernel's contract for the window (alpha, alpha + 1), quicker than the kernel finds
                                it. Adds the positions that it visits to the word at `nodes`; memory from `room` on is
                                free, a row of MAX_MOVES words for each ply that may follow. Draws are worth 0, and a
                                decided game counts its plies from the position
    is_late(position, depth)    @helper, 1 or 0: whether `solve_leaf` takes a position that is to be searched so deeply
    LATE_PLIES                  no game lasts longer from a late position
    upper_bound(position, depth, alpha)  @helper: no less than the value of a search of that depth for the side to move;
                                `INFINITY`, where there is none or it is not below alpha anyway. Draws are worth 0
    clock(position)             @helper: plies since a move that cannot be undone. A position that came before is then
                                a draw (see `search.repetition`), and so is, by `outcome`, a clock of 100
    in_check(position)          @helper, 1 or 0: whether the side to move must answer a threat to its king
    may_check(position, move)   @helper: 0 only if a move surely gives no check; the search need not play it to know
    is_quiet(position, move)    @helper, 1 or 0: whether a move leaves the material alone; see `search.history`
    captures(position, end)     @helper: push the moves of the quiescence search; one of a negative `order` is left out
    exchange_at_least(position, move, threshold)  @helper, 1 or 0: whether the exchange that a move begins wins so much
    pass_turn(position)         @inlined: the position after a null move, which only the search plays, with `has_pieces`
    has_pieces(position)        @helper, 1 or 0: whether to be on the move is hardly ever a burden
    sound_moves(position, end)  @helper: push the legal moves after which the opponent cannot win with the next one.
                                Only the search asks, where the side to move cannot win with its next move either
    shared_key(position)        @helper, with `shared_move`: the hash under which the table holds a position and those
                                symmetric to it; equal for all of them, or told apart, as the game likes
    shared_move(position, move) @helper: a move as the position that the shared key stands for has it; its own inverse
    SOLVE_TABLE_DEPTH           when solving, a node of less depth is cheaper to search than to look up in the table
    plies_left(position)        plain: no game from here lasts longer; the search then knows when it is complete
    next_depth(position, depth) plain: the depth that iterative deepening tries after one, by default the next
    score_text(position, score, is_solved)  plain: a score in its users' convention
    mirror(position)            plain: a symmetric position of equal value, for tests
    swap_sides(position)        plain: the same board with the other side to move, for tests
    root_position(position)     plain: what a search begins with where it is asked for a position; by default the same
    prob_cut_stage(position, depth)  @helper, with PROB_CUTS, rows of `ProbCut`: the stage of the game whose rows are
                                good for a search of a depth; below 0 where it must cut nothing: surely where it comes
                                to the end of the game, for then its value is taken for the exact one
    PROB_CUT_PERCENT            how sure a cut must be: by so many hundredths of a row's deviation; 150 by default
    PLAYERS                     how many play, where that is not two against each other: see `search.player_rules`
    playout(position, random, room)  @helper: the result of a random game from an ongoing position for its side to move,
                                1, 0 or -1, found quicker than move by move; `search.random_stream.draw(random, count)`
                                gives random numbers, a row of MAX_MOVES words from `room` on is free
    SUMMARY                     one line for `rootsplit games`
    ALGORITHM                   the search that suits the game, where its kind leaves a choice: see `search.algorithms`
    is_chance(position)         @helper: makes it a game of chance, with what `search.chance_rules` asks for
    PARAMETERS                  what may follow a colon after the game's name, such as ``connect_four:6x5``: then each
                                text makes a module of its own, whose body asks for it with `parameters(__name__)`
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from search.flags import Flags
from search.jit import helper
from search.scores import MATE, MATE_BOUND, mate_distance
from tt_store.errors import RootsplitError
from tt_store.layout import SHORT_BYTES, WORD_BYTES
from tt_store.native import Word, write_int

MAX_MOVE = 0xFFFF
FRESH_CLOCK = 40
"""Up to this clock no estimate depends on it."""
_RECENT_TEXTS = 64
given_parameters: dict[str, str] = {}
"""Of each module of a game, by its name."""


class RulesError(RootsplitError):
    """A game, a position or a move that does not exist or is not allowed."""


SLOPE_SHIFT = 8


class ProbCut(NamedTuple):
    """How a shallow search foretells a deep one at a stage of the game: on a line, with a known error."""

    stage: int
    """0 or more."""
    deep: int
    shallow: int
    """Their depths, ``0 < shallow < deep``."""
    slope: int
    """Above 0, in units of 2 to the power of minus `SLOPE_SHIFT`."""
    offset: int
    deviation: int
    """The standard deviation of the deep score from the line, 0 or more; both in the game's units."""


@helper
def push_move(end: int, move: int) -> int:
    """Push a move on the move stack and return the stack's new end."""
    write_int(end, move)
    return end + WORD_BYTES


@helper
def mix(word: Word) -> Word:
    """Mix a 64-bit word (``uint64``) so that all its bits depend on each other (finaliser of MurmurHash3, Appleby)."""
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    word ^= word >> np.uint64(33)
    return word


MovesRule = Callable[[Any, int], int]
PlayRule = Callable[[Any, int], Any]
PositionRule = Callable[[Any], int]
MoveRule = Callable[[Any, int], int]
ExchangeRule = Callable[[Any, int, int], int]
PassRule = Callable[[Any], Any]
BoundRule = Callable[[Any, int, int], int]
LeafRule = Callable[[Any, int, int, int], int]


@dataclass(frozen=True, eq=False)
class Game:
    """A game's file, checked, with defaults for what it leaves out; the rules are compiled functions."""

    name: str
    """What the user called it: a name, or the path of a file."""
    parameters: str
    """What followed the colon after its name; empty for the usual game."""
    module: ModuleType = field(repr=False)
    position_type: type[Any]
    """The game's NamedTuple."""
    field_types: tuple[type[Any], ...]
    """Of its fields: `numpy.uint64` or `numpy.int64`."""
    max_moves: int
    """No position has more moves."""
    moves: MovesRule
    play: PlayRule
    outcome: PositionRule
    key: PositionRule
    evaluate: PositionRule
    evaluate_with: MovesRule
    """0 by default."""
    memory_words: int
    """Words of a workspace for `evaluate_with`, 0 where there is none."""
    order: MoveRule
    """0 by default; see `has_order`."""
    has_order: bool
    move_slot: MoveRule
    history_size: int
    """Number of history slots; 0 where the game wants no history."""
    side_to_move: PositionRule
    """0 by default; see `has_extra_turns`."""
    has_extra_turns: bool
    """Whether a move may leave the same side to move."""
    count_moves: PositionRule
    """0 by default, as are the next four; `has` tells whether the game defines them."""
    stuck: PositionRule
    clock: PositionRule
    in_check: PositionRule
    has_pieces: PositionRule
    is_quiet: MoveRule
    """0 by default."""
    may_check: MoveRule
    captures: MovesRule
    """None by default."""
    exchange_at_least: ExchangeRule
    """Of an even exchange by default."""
    pass_turn: PassRule
    """Does nothing by default."""
    sound_moves: MovesRule
    shared_key: PositionRule
    """0 by default."""
    shared_move: MoveRule
    """0 by default."""
    """None by default."""
    solve_table_depth: int
    """0 by default: all nodes are looked up in the table."""
    is_late: MoveRule
    """0 by default."""
    solve_leaf: LeafRule
    late_plies: int
    """No game lasts longer from a late position."""
    upper_bound: BoundRule
    """`INFINITY` by default."""
    prob_cut_stage: MovesRule
    """-1 by default."""
    prob_cuts: tuple[ProbCut, ...]
    prob_cut_percent: int
    """How sure a cut must be, in hundredths of a deviation."""
    ended_lines: int
    """For how many lines perft counts one that ends sooner."""

    def has(self, *rules: str) -> bool:
        """Tell whether the game defines all of these optional rules."""
        return all(hasattr(self.module, rule) for rule in rules)

    @property
    def history_words(self) -> int:
        """Words of a workspace for what the search learns about moves: see `search.history`."""
        if not self.has("is_quiet"):
            return self.history_size
        shorts = self.history_size * (self.history_size + 1)
        return self.history_size + -(-shorts * SHORT_BYTES // WORD_BYTES)

    @property
    def has_prob_cuts(self) -> bool:
        """Whether the game tells how a shallow search foretells a deep one."""
        return self.has("prob_cut_stage")

    def is_selective(self, flags: Flags) -> bool:
        """Tell whether a variant of the search may leave out moves, or search them less deeply, in this game."""
        by_moves = flags.judges_moves and self.has("in_check")
        return flags.may_select and (by_moves or (flags.prob_cut and self.has_prob_cuts))

    def leaves_out(self, flags: Flags) -> bool:
        """Tell whether a variant of the search may miss a mate within its depth in this game: extensions miss none."""
        return self.is_selective(flags._replace(check_extension=False, singular_extension=False))

    @property
    def label(self) -> str:
        """The game's short name, fit for a file name."""
        base, text = split_name(self.name)
        return "-".join((Path(base).stem, *re.findall(r"\w+", text)))

    @property
    def summary(self) -> str:
        """One line about the game."""
        return str(getattr(self.module, "SUMMARY", (self.module.__doc__ or "").strip().partition("\n")[0]))

    @property
    def start_text(self) -> str:
        """Text of the usual first position."""
        return str(self.module.START)

    def position(self, words: Sequence[int]) -> Any:
        """Build a position from its fields as integers, each of exactly the type that the kernel was compiled for.

        Raises
        ------
        RulesError
            If the number of fields or a field's range is wrong.
        """
        kinds = self.field_types
        if len(words) != len(kinds):
            raise RulesError(f"a position of {self.label} has {len(kinds)} fields, not {len(words)}")
        try:
            return self.position_type(*(kind(int(word)) for kind, word in zip(kinds, words, strict=True)))
        except OverflowError:
            raise RulesError(f"a field of this {self.label} position does not fit 64 bits") from None

    def parse(self, text: str) -> Any:
        """Return the position that a text describes; an empty text or ``start`` is the usual first one.

        Raises
        ------
        RulesError
            If the text is not a position of this game.
        """
        return _parsed(self, text.strip())

    def text(self, position: Any) -> str:
        """Return the text of a position."""
        return str(self.module.text(position))

    def move_text(self, position: Any, move: int) -> str:
        """Return a move in its users' notation."""
        return str(self.module.move_text(position, move))

    def parse_move(self, position: Any, text: str) -> int:
        """Return the move that a text means; legality is not checked here."""
        return int(self.module.parse_move(position, text.strip()))

    def root_position(self, position: Any) -> Any:
        """Return what a search begins with where it is asked for a position."""
        rule = getattr(self.module, "root_position", None)
        return position if rule is None else self.position(rule(position))

    def plies_left(self, position: Any) -> int | None:
        """Return an upper bound of the plies to the end of the game, or None if the game gives none."""
        bound = getattr(self.module, "plies_left", None)
        return None if bound is None else int(bound(position))

    def next_depth(self, position: Any, depth: int) -> int:
        """Return the depth that iterative deepening of a position tries after one; 1 or more after 0."""
        following = getattr(self.module, "next_depth", None)
        return depth + 1 if following is None else max(int(following(position, depth)), depth + 1)

    def score_text(self, position: Any, score: int, is_solved: bool) -> str:
        """Return a score in the convention of the game's users."""
        convention = getattr(self.module, "score_text", None)
        if convention is not None:
            return str(convention(position, score, is_solved))
        distance = mate_distance(score)
        if distance is not None:
            return f"{'won' if score > 0 else 'lost'} in {abs(distance)}"
        return f"{score:+d}" if is_solved else f"~{score:+d}"

    def value_text(self, position: Any, score: int, values: Sequence[int], is_solved: bool) -> str:
        """Return a score in the convention of the game's users; where all players' are known, all of them."""
        return " ".join(self.score_text(position, value, is_solved) for value in values or (score,))


@functools.lru_cache(maxsize=_RECENT_TEXTS)
def _parsed(game: Game, text: str) -> Any:
    """Return a position, which nobody can change: who reads a line and who plans its search both ask for it."""
    return game.position(game.module.parse(game.start_text if text in ("", "start", "startpos") else text))


def parameters(module_name: str) -> str:
    """Return what a user gave a game after its name and a colon, the empty text if nothing; a game's body asks."""
    return given_parameters.get(module_name, "")


def split_name(name: str) -> tuple[str, str]:
    """Return a game's name or path, and what follows a colon behind it."""
    base, _, text = name.rpartition(":")
    return (base, text.strip()) if base.endswith(".py") or re.fullmatch(r"\w+", base) else (name, "")


def check_evaluation(score: int) -> bool:
    """Tell whether a final score or an estimate lies where a game may put it."""
    return -MATE_BOUND < score < MATE_BOUND or score in (MATE, -MATE)
