"""Imports point one way, and few files know Ray or Numba: read from the sources."""

from __future__ import annotations

import ast
import fnmatch
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
LAYERS = ("tt_store", "search", "cluster")
KNOWN_BY = {
    "ray": ("cluster/ray_*.py", "cluster/worker.py"),
    "numba": ("search/jit.py", "tt_store/native.py"),
}


def sources() -> list[Path]:
    return sorted(path for layer in LAYERS for path in (REPOSITORY / layer).rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Return the packages that a file imports, at its top or within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_imports_point_one_way() -> None:
    for path in sources():
        layer = LAYERS.index(path.relative_to(REPOSITORY).parts[0])
        assert not imports_of(path) & set(LAYERS[layer + 1 :]), path


@pytest.mark.parametrize("package", sorted(KNOWN_BY))
def test_few_files_know(package: str) -> None:
    for path in sources():
        name = path.relative_to(REPOSITORY).as_posix()
        is_allowed = any(fnmatch.fnmatch(name, pattern) for pattern in KNOWN_BY[package])
        assert is_allowed or package not in imports_of(path), f"{name} imports {package}"


def test_nothing_is_unpickled_or_evaluated() -> None:
    for path in sources():
        assert not imports_of(path) & {"pickle", "cloudpickle", "marshal", "shelve"}, path
        calls = {node.func.id for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}  # fmt: skip
        assert not calls & {"eval", "exec"}, path
