"""A lint of types: what Numba does silently and wrongly to integers, found in the types that it inferred.

An operation on an unsigned and a signed word gives a signed one, unifying them gives a float, and a recursive call
with a literal argument becomes a version of its own that code from the disk cannot call. The compiled functions are
walked in processes of their own with an empty cache, because code from the disk has lost its types.
"""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core import ir, types
from numba.core.dispatcher import Dispatcher

from search.algorithms import SOUND, flags_to_depth, kind_of
from search.controls import CONTROL_WORDS, Controls
from search.flags import Algorithm, Flags, Pruning
from search.game_files import game_names, load_game
from search.perft import LeafCounter
from search.searchers import open_searcher
from tt_store.segment import Segment

TESTS = Path(__file__).parent
GAMES = [*game_names(), *(str(path) for path in sorted((TESTS / "games").glob("*.py")))]
VARIANTS = (Flags(), Flags(Pruning.NONE, ordering=False, table=False), Flags(algorithm=Algorithm.MCTS))
PLAYED_OUT = ("hex", "kalah", "chess")
"""Games that have all that Monte Carlo tree search asks some games for: it is compiled for these alone."""
REAL_NUMBERS = ("choose", "upper_confidence")
"""The functions that weigh means by roots and logarithms."""

_SHIFTS = (operator.lshift, operator.rshift, operator.ilshift, operator.irshift)
_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
SOUND_MIXTURES = frozenset((*_SHIFTS, *_COMPARISONS))
"""Shifts and comparisons of an unsigned word and a signed integer come out right."""


def own_functions() -> Iterator[tuple[str, Any]]:
    """Yield the compiled functions of our packages, of the games and of instantiated modules."""
    found: dict[Any, str] = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] in ("search", "tt_store") or module_name.startswith("rootsplit_"):
            for name, value in vars(module).items():
                if isinstance(value, Dispatcher):
                    found.setdefault(value, f"{value.py_func.__module__}.{name}")
    for function, name in found.items():
        yield name, function


def faults(name: str, function: Any) -> Iterator[str]:
    """Yield what is wrong with the types of a compiled function."""
    if function.py_func.__name__ in function.py_func.__code__.co_names and len(function.overloads) > 1:
        yield f"{name} calls itself in several versions: {[*function.overloads]}"
    for signature, compiled in function.overloads.items():
        annotation = compiled.type_annotation
        if annotation is None:
            yield f"{name}{signature} came from the disk, without types"
            continue
        for variable, kind in annotation.typemap.items():
            if isinstance(kind, types.Float) and not name.endswith(REAL_NUMBERS):
                yield f"{name}{signature}: {variable} is a {kind}"
        for node, call in annotation.calltypes.items():
            if isinstance(node, ir.Expr) and node.op in ("binop", "inplace_binop"):
                left, right = (types.unliteral(annotation.typemap[side.name]) for side in (node.lhs, node.rhs))
                if node.fn not in SOUND_MIXTURES and is_mixed(left, right):
                    mixture = f"{left} {node.fn.__name__} {right} is {call.return_type}"
                    yield f"{name}{signature}, {node.loc.short()}: {mixture}"


def is_mixed(left: Any, right: Any) -> bool:
    """Tell whether one operand is a signed and the other an unsigned integer."""
    return isinstance(left, types.Integer) and isinstance(right, types.Integer) and left.signed != right.signed


def compile_all(name: str) -> None:
    """Compile everything that there is of a game."""
    game = load_game(name)
    words = np.zeros(CONTROL_WORDS, np.int64)
    LeafCounter(game, notice=lambda _line: None)
    with Segment.private(1) as segment:
        for flags in VARIANTS:
            suits = SOUND[kind_of(game)]
            if flags.algorithm != Algorithm.MCTS or (name in PLAYED_OUT and flags.algorithm in suits):
                fitting = flags if flags.algorithm in suits else flags_to_depth(game, flags)
                open_searcher(game, segment, Controls(words.ctypes.data), flags=fitting, notice=lambda _line: None)
        for algorithm in (Algorithm.PARANOID,) if game.has("PLAYERS") else ():
            flags = Flags(algorithm=algorithm)
            open_searcher(game, segment, Controls(words.ctypes.data), flags=flags, notice=lambda _line: None)


def test_the_walk_finds_what_it_looks_for() -> None:
    @njit
    def mixed(word: int, number: int) -> int:
        return word + number

    @njit
    def floating(word: int, number: int) -> int:
        return word if number > 0 else number

    @njit
    def sound(word: int, number: int) -> int:
        return word >> number

    for function in (mixed, floating, sound):
        function(np.uint64(1), np.int64(1))
    assert any("uint64 add int64 is int64" in fault for fault in faults("mixed", mixed))
    assert any("float64" in fault for fault in faults("floating", floating))
    assert not list(faults("sound", sound))


@pytest.mark.parametrize("name", GAMES, ids=lambda name: Path(name).stem)
def test_compiled_code_mixes_no_types(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "ROOTSPLIT_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    walk = subprocess.run(
        [sys.executable, __file__, name], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert walk.returncode == 0, walk.stdout + walk.stderr
    assert int(walk.stdout.split()[0]) > 30, "the walk missed the kernel"


def main() -> int:
    """Compile the game of the command line, print how many functions there are and their faults."""
    compile_all(sys.argv[1])
    compiled = [(name, function) for name, function in own_functions() if function.overloads]
    found = [fault for name, function in compiled for fault in faults(name, function)]
    print(f"{len(compiled)} functions", *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
