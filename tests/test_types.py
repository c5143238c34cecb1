"""A lint of types: what Numba does silently and wrongly to integers, found in the types that it inferred.

An operation on an unsigned and a signed word gives a signed one, unifying them gives a float, and a recursive call
with a literal argument becomes a version of its own that code from the disk cannot call. The functions are walked in
processes of their own, in which Numba stops when it has the types: the machine code, which takes as long again, is all
other tests' matter, and code from the disk has lost its types.
"""

from __future__ import annotations

import gc
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import silent
from numba import njit, typeof
from numba.core import ir, types
from numba.core.compiler import _LowerResult
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NativeLowering

from search import jit
from search.algorithms import SOUND, flags_to_depth, kind_of, seen_by
from search.flags import Algorithm, Flags, Pruning
from search.game_files import game_names, load_game
from search.perft import LeafCounter
from search.referee import Referee
from search.rules import Game
from search.searcher import KERNELS

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
    """Yield the functions for the compiler of our packages, of the games and of instantiated modules."""
    found: dict[Any, str] = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] in ("search", "tt_store") or module_name.startswith("rootsplit_"):
            for name, value in vars(module).items():
                function = value.dispatcher if isinstance(value, TypedEntry) else value
                if isinstance(function, Dispatcher):
                    found.setdefault(function, f"{function.py_func.__module__}.{name}")
    for function, name in found.items():
        yield name, function


def faults(name: str, function: Any) -> Iterator[str]:
    """Yield what is wrong with the types of a function."""
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


class TypedEntry:
    """An entry of which a call infers the types, of it and of all that it calls, and makes no machine code."""

    def __init__(self, function: Any) -> None:
        self.dispatcher = njit(nogil=True)(function)

    def __call__(self, *arguments: Any) -> int:
        self.dispatcher.compile(tuple(map(typeof, arguments)))
        return 0


def lower_nothing(_pass: Any, state: Any) -> bool:
    """Stand in for the pass that makes machine code of typed functions: there is none, and nobody may call it."""
    # A dispatcher takes nothing but a built-in function; this one refuses the arguments' tuple.
    state["cr"] = _LowerResult(fndesc=None, call_helper=None, cfunc=abs, env=None)
    return True


def variants_of(game: Game, name: str) -> Iterator[Flags]:
    """Yield the variants of the kernel of which the types are looked at."""
    suits = SOUND[kind_of(game)]
    for flags in VARIANTS:
        if flags.algorithm != Algorithm.MCTS or (name in PLAYED_OUT and flags.algorithm in suits):
            yield flags if flags.algorithm in suits else flags_to_depth(game, flags)
    if game.has("PLAYERS"):
        yield Flags(algorithm=Algorithm.PARANOID)


def type_all(name: str) -> None:
    """Infer the types of everything that there is of a game."""
    NativeLowering.run_pass = lower_nothing
    jit.cached = TypedEntry
    game = load_game(name)
    LeafCounter(game, notice=silent)
    for flags in variants_of(game, name):
        seen = seen_by(game, flags.algorithm)
        Referee(seen, notice=silent)
        # As `Searcher` calls it.
        jit.specialise(KERNELS[flags.algorithm], seen, flags).search_root(seen.parse(""), 1, 0, 0)


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


def walked(name: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run this file's `main` for a game."""
    environment = {**os.environ, "ROOTSPLIT_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, __file__, name], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_mixture_in_a_game_is_found(tmp_path: Path) -> None:
    sound = (TESTS / "games" / "explicit_tree.py").read_text()
    mixed = sound.replace("mix(as_word(", "mix(as_word(1) + (")
    assert mixed != sound
    game = tmp_path / "mixed.py"
    game.write_text(mixed)
    walk = walked(str(game), tmp_path / "cache")
    assert walk.returncode == 1, walk.stdout + walk.stderr
    assert "mixed.py" in walk.stdout
    assert "uint64 add int64 is int64" in walk.stdout


@pytest.mark.parametrize("name", GAMES, ids=lambda name: Path(name).stem)
def test_compiled_code_mixes_no_types(name: str, tmp_path: Path) -> None:
    walk = walked(name, tmp_path)
    assert walk.returncode == 0, walk.stdout + walk.stderr
    assert int(walk.stdout.split()[0]) > 30, "the walk missed the kernel"


def main() -> int:
    """Type the game of the command line, print how many functions there are and their faults."""
    # The compiler's trees are alive to the end: looking for garbage among them would take a seventh of the time.
    gc.disable()
    type_all(sys.argv[1])
    typed = [(name, function) for name, function in own_functions() if function.overloads]
    found = [fault for name, function in typed for fault in faults(name, function)]
    print(f"{len(typed)} functions", *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
