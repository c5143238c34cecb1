"""All Numba policy: how functions are compiled, cached on disk, and specialised for a game.

The kernel is a plain module of small functions. For each game and each set of flags we *instantiate the module*: a
verbatim copy in the cache folder, with the game bound before its body runs. Numba then caches the machine code beside
the copy. The folder's name is a hash of everything that matters (all sources, the game and what it imports, flags,
Numba's version, the processor), so a stale cache cannot be met: Numba's own key would miss edits in other files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import llvmlite.binding
import numba
from numba import njit

from tt_store.errors import RunFailedError
from tt_store.native import JIT_DISABLED, helper, inlined, self_call, spliced

if TYPE_CHECKING:
    from search.flags import Flags
    from search.rules import Game

__all__ = [
    "JIT_DISABLED", "Binding", "binding", "cached", "helper", "inlined", "reachable_sources", "self_call",
    "specialise", "spliced", "warm_up",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])

CACHE_VARIABLE = "ROOTSPLIT_CACHE"
_PACKAGES = ("search", "tt_store")
_FOREIGN = frozenset({"numba", "numpy", "llvmlite"})


class Binding(NamedTuple):
    """What an instance of a module is compiled for."""

    game: Game
    flags: Flags


_bindings: dict[str, Binding] = {}


def cached(function: Function) -> Function:
    """Compile a function that Python calls, without the GIL, and keep its machine code on disk.

    Only for functions of instantiated modules: elsewhere Numba's key would miss edits in the files they call.
    """
    return cast(Function, njit(nogil=True, cache=True)(function))


def binding(module_name: str) -> Binding:
    """Return what the module of this name is being instantiated for; the first line of each such module asks.

    Raises
    ------
    RuntimeError
        If the module was imported directly and not through `specialise`.
    """
    try:
        return _bindings[module_name]
    except KeyError:
        raise RuntimeError(f"{module_name} is instantiated for a game by search.jit.specialise, not imported") from None


def specialise(module_name: str, game: Game, flags: Flags) -> ModuleType:
    """Return the instance of a module for a game and a set of flags, made at its first use in this process.

    Parameters
    ----------
    module_name
        For example ``"search.kernel"``: a module whose first statement asks for its `binding`.
    game, flags
        What it is compiled for.
    """
    source = _source_of(module_name)
    digest = _digest(game, flags)
    instance_name = f"rootsplit_{module_name.rpartition('.')[2]}_{game.label}_{digest}"
    if instance_name in sys.modules:
        return sys.modules[instance_name]
    path = source if JIT_DISABLED else _copy(source, _folder(game, digest))
    spec = importlib.util.spec_from_file_location(instance_name, path)
    if spec is None or spec.loader is None:
        raise RunFailedError(f"the kernel's copy {path} cannot be loaded; delete it and start again")
    module = importlib.util.module_from_spec(spec)
    _bindings[instance_name] = Binding(game, flags)
    sys.modules[instance_name] = module
    spec.loader.exec_module(module)
    return module


def warm_up(module: ModuleType, run: Callable[[], object], notice: Callable[[str], None]) -> bool:
    """Compile an instance once on this machine, or load it from disk; returns True if it had to compile.

    Parameters
    ----------
    module
        An instance made by `specialise`.
    run
        Calls each entry function of the module once, with arguments of the types that are used later.
    notice
        Gets one line for the user if this is the first use on this machine. Other processes that start at the same
        moment wait for this one instead of compiling too.
    """
    if JIT_DISABLED or module.__file__ is None:
        run()
        return False
    marker = Path(module.__file__).with_suffix(".compiled")
    compiles = not marker.exists()
    if compiles:
        with _locked(marker.with_suffix(".lock")):
            compiles = not marker.exists()
            if compiles:
                game = _bindings[module.__name__].game.label
                kind = Path(module.__file__).stem
                notice(f"compiling the {kind} of {game} for this machine, once (a few seconds) ...")
            run()
            marker.touch()
    else:
        run()
    for value in vars(module).values():
        # A position built of other integer types would compile the whole kernel again, silently: make it an error.
        # Only the instance's own functions: others serve more games than this one.
        is_own = getattr(value, "__module__", None) == module.__name__
        if is_own and hasattr(value, "disable_compile") and value.signatures:
            value.disable_compile()
    return compiles


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system releases it if we die."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cache_folder() -> Path:
    """Return the folder of compiled kernels, made if absent: ``ROOTSPLIT_CACHE`` or the user's cache folder.

    Raises
    ------
    RunFailedError
        If it cannot be written.
    """
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rootsplit"
    folder = Path(os.environ.get(CACHE_VARIABLE) or default)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise RunFailedError(
            f"the cache folder {folder} cannot be written ({error.strerror}): set {CACHE_VARIABLE} to one that can"
        ) from None


def _folder(game: Game, digest: str) -> Path:
    folder = cache_folder() / f"{game.label}-{digest}"
    folder.mkdir(exist_ok=True)
    return folder


def _copy(source: Path, folder: Path) -> Path:
    """Put a verbatim copy of a module into a folder, once: Numba's cache is void if the copy's time changes."""
    target = folder / source.name
    if not target.exists():
        with tempfile.NamedTemporaryFile("wb", dir=folder, suffix=".tmp") as file:
            file.write(source.read_bytes())
            file.flush()
            # Race: another process may be first; its copy has the same bytes.
            with contextlib.suppress(FileExistsError):
                os.link(file.name, target)
    return target


def _source_of(module_name: str) -> Path:
    spec = importlib.util.find_spec(module_name)
    if spec is None or spec.origin is None:
        raise RunFailedError(f"the module {module_name} of rootsplit is missing; install rootsplit again")
    return Path(spec.origin)


@cache
def _digest(game: Game, flags: Flags) -> str:
    """Return a hash of everything that the machine code depends on."""
    digest = hashlib.blake2b(digest_size=10)
    versions = (numba.__version__, llvmlite.binding.llvm_version_info, sys.version_info[:3])
    processor = (llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten())
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
    # A view of a game has the game's label, and without the JIT its sources too: its module's name tells it apart.
    which = (tuple(flags), game.parameters, game.module.__name__)
    digest.update(repr((versions, processor, settings, *which)).encode())
    for path in sorted(_package_sources() | reachable_sources(game.module)):
        digest.update(path.name.encode() + b"\0" + hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()


def _package_sources() -> set[Path]:
    """Return our own sources, less the games, of which only the one at hand matters."""
    folders = [_source_of(package).parent for package in _PACKAGES]
    return {path for folder in folders for path in folder.glob("*.py")}


def reachable_sources(module: ModuleType) -> set[Path]:
    """Return the files of a game's module and of all that it imports, except the standard library and Numba's own."""
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        file = getattr(current, "__file__", None)
        if file is None or current.__name__.partition(".")[0] in _FOREIGN:
            continue
        path = Path(file).resolve()
        is_standard = standard in path.parents and "site-packages" not in path.parts
        if path in found or path.suffix != ".py" or is_standard:
            continue
        found.add(path)
        for value in vars(current).values():
            origin = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", "") or "")
            if origin is not None:
                waiting.append(origin)
    return found
