"""Games from their files: what a file must define is checked, and what it leaves out gets its default."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np

from search.jit import helper, inlined
from search.rules import Game, ProbCut, RulesError, given_parameters, split_name
from search.scores import INFINITY

_GAMES_PACKAGE = "search.games"
_REQUIRED = (
    "Position", "MAX_MOVES", "START", "moves", "play", "outcome", "key", "evaluate",
    "parse", "text", "move_text", "parse_move",
)  # fmt: skip
_TOGETHER = (("shared_key", "shared_move"), ("solve_leaf", "is_late", "LATE_PLIES"))
"""Optional names of which a game defines all or none."""
_FIELD_TYPES = (np.uint64, np.int64)
_PROB_CUT_PERCENT = 150


@helper
def _no_order(_position: Any, _move: int) -> int:
    return 0


@helper
def _one_side(_position: Any) -> int:
    return 0


@helper
def _no_count(_position: Any) -> int:
    return 0


@helper
def _no_moves(_position: Any, end: int) -> int:
    return end


@helper
def _even_exchange(_position: Any, _move: int, threshold: int) -> int:
    return 1 if threshold <= 0 else 0


@helper
def _no_estimate(_position: Any, _memory: int) -> int:
    return 0


@helper
def _no_stage(_position: Any, _depth: int) -> int:
    return -1


@helper
def _no_bound(_position: Any, _depth: int, _alpha: int) -> int:
    return INFINITY


@helper
def _no_solution(_position: Any, _alpha: int, _nodes: int, _room: int) -> int:
    return 0


@inlined
def _same_position(position: Any) -> Any:
    return position


def load_game(name: str) -> Game:
    """Return a game by its name, or by the path of its file (``./my_game.py``), perhaps with parameters.

    Parameters
    ----------
    name
        Such as ``connect_four`` or ``./my_game.py``; for a game that takes parameters also ``connect_four:6x5``.

    Raises
    ------
    RulesError
        If there is no such game, it takes no such parameters, or its file does not define what a game must define.
    """
    base, text = split_name(name)
    if base.endswith(".py"):
        module = _import_file(Path(base), text)
    elif base in game_names():
        module = importlib.import_module(f"{_GAMES_PACKAGE}.{base}")
    else:
        raise RulesError(f"unknown game {base!r}: there are {', '.join(game_names())}, or give the path of a .py file")
    if text and not hasattr(module, "PARAMETERS"):
        raise RulesError(f"the game {base} takes no parameters, such as {text!r}")
    if text and not base.endswith(".py"):
        module = _import_file(Path(str(module.__file__)), text)
    return game_of(module, name, text)


def game_of(module: ModuleType, name: str, parameters: str) -> Game:
    """Return the game that a module defines.

    Parameters
    ----------
    module
        Its file, imported.
    name, parameters
        What the user calls it, and what followed the colon after that.

    Raises
    ------
    RulesError
        If the module does not define what a game must define.
    """
    has_players = hasattr(module, "PLAYERS")
    missing = [
        required
        for required in _REQUIRED
        if not hasattr(module, required) and not (has_players and required == "evaluate")
    ]
    if missing:
        raise RulesError(f"the game {name} does not define {', '.join(missing)}")
    for group in _TOGETHER:
        defined = [rule for rule in group if hasattr(module, rule)]
        if defined and len(defined) < len(group):
            raise RulesError(f"the game {name} defines {defined[0]}, but not all of {', '.join(group)}")
    if hasattr(module, "shared_key") and (has_players or hasattr(module, "is_chance")):
        raise RulesError(f"the game {name} defines shared_key, which is for games of two players without chance")
    hints = get_type_hints(module.Position)
    field_types = tuple(hints[field] for field in module.Position._fields)
    wrong = [kind for kind in field_types if kind not in _FIELD_TYPES]
    if wrong:
        raise RulesError(f"the fields of Position in {name} must be numpy.uint64 or numpy.int64, not {wrong[0]}")
    # Numba tells named tuples apart by their class's name and fields alone where it looks up a compiled function: two
    # games' positions of equal shape would be taken for one type.
    module.Position.__name__ = f"Position_of_{module.__name__.replace('.', '_')}"
    return Game(
        name=name,
        parameters=parameters,
        module=module,
        position_type=module.Position,
        field_types=field_types,
        max_moves=int(module.MAX_MOVES),
        moves=module.moves,
        play=module.play,
        outcome=module.outcome,
        key=module.key,
        evaluate=getattr(module, "evaluate", _no_count),
        evaluate_with=getattr(module, "evaluate_with", _no_estimate),
        memory_words=int(getattr(module, "MEMORY_WORDS", 0)),
        order=getattr(module, "order", _no_order),
        has_order=hasattr(module, "order"),
        move_slot=getattr(module, "move_slot", _no_order),
        history_size=int(getattr(module, "HISTORY_SIZE", 0)),
        side_to_move=getattr(module, "side_to_move", _one_side),
        has_extra_turns=hasattr(module, "side_to_move"),
        count_moves=getattr(module, "count_moves", _no_count),
        stuck=getattr(module, "stuck", _no_count),
        clock=getattr(module, "clock", _no_count),
        in_check=getattr(module, "in_check", _no_count),
        has_pieces=getattr(module, "has_pieces", _no_count),
        is_quiet=getattr(module, "is_quiet", _no_order),
        may_check=getattr(module, "may_check", _no_order),
        captures=getattr(module, "captures", _no_moves),
        exchange_at_least=getattr(module, "exchange_at_least", _even_exchange),
        pass_turn=getattr(module, "pass_turn", _same_position),
        sound_moves=getattr(module, "sound_moves", _no_moves),
        shared_key=getattr(module, "shared_key", _no_count),
        shared_move=getattr(module, "shared_move", _no_order),
        solve_table_depth=int(getattr(module, "SOLVE_TABLE_DEPTH", 0)),
        is_late=getattr(module, "is_late", _no_order),
        solve_leaf=getattr(module, "solve_leaf", _no_solution),
        late_plies=int(getattr(module, "LATE_PLIES", 0)),
        upper_bound=getattr(module, "upper_bound", _no_bound),
        prob_cut_stage=getattr(module, "prob_cut_stage", _no_stage),
        prob_cuts=_checked_prob_cuts(module, name),
        prob_cut_percent=int(getattr(module, "PROB_CUT_PERCENT", _PROB_CUT_PERCENT)),
        ended_lines=int(getattr(module, "ENDED_LINES", 0)),
    )


def _checked_prob_cuts(module: ModuleType, name: str) -> tuple[ProbCut, ...]:
    rows = tuple(ProbCut(*row) for row in getattr(module, "PROB_CUTS", ()))
    if bool(rows) != hasattr(module, "prob_cut_stage"):
        raise RulesError(f"the game {name} must define PROB_CUTS and prob_cut_stage together")
    for row in rows:
        if row.stage < 0 or not 0 < row.shallow < row.deep or row.slope <= 0 or row.deviation < 0:
            raise RulesError(f"a row of PROB_CUTS in {name} is out of range: {row}")
    return rows


def game_names() -> list[str]:
    """Return the names of the games that come with rootsplit, sorted."""
    package = importlib.import_module(_GAMES_PACKAGE)
    return sorted(found.name for found in pkgutil.iter_modules(package.__path__))


def _import_file(path: Path, text: str) -> ModuleType:
    """Import a game's file under a name of its own for each text of parameters, once."""
    if not path.is_file():
        raise RulesError(f"the game file {path} does not exist")
    # No two texts share a name: Numba tells positions apart by it.
    name = "_".join(("rootsplit_game", re.sub(r"\W", "_", path.stem), *([text.encode().hex()] if text else ())))
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path.resolve()):
        return loaded
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise RulesError(f"the game file {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    given_parameters[name] = text
    try:
        spec.loader.exec_module(module)
    except RulesError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise RulesError(f"the game file {path} fails when it is imported: {type(error).__name__}: {error}") from error
    return module
