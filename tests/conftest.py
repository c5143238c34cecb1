"""Shared fixtures: games, executors and the optional position sets; nothing here keeps state between tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from cluster.departure import depart
from cluster.executor import Executor, SerialExecutor, ThreadExecutor
from search.flags import Flags
from search.game_files import load_game
from search.rules import Game

REPOSITORY = Path(__file__).parents[1]
DATA_VARIABLE = "ROOTSPLIT_DATA"
DEFAULT_DATA = REPOSITORY.parent / "shared" / "data"


WATCHERS = ("test_cli", "test_hygiene", "test_segment")
"""Files whose tests look at what all processes of the machine leave behind."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what must not run beside other tests; first, because `-m` reads the marks in the same hook."""
    for item in items:
        if item.get_closest_marker("ray") is not None or item.path.stem in WATCHERS:
            item.add_marker(pytest.mark.alone)


def run_without_jit(file: str, warnings: str) -> subprocess.CompletedProcess[str]:
    """Run a test file as plain Python, with its warnings treated as ``-W`` says."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", warnings, file]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)


class Ending(NamedTuple):
    """Ends the test process as `cluster.departure` says, once everything is reported."""

    code: int

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        depart(self.code)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # A worker of pytest-xdist uses no Ray, and has still to tell what it has done.
    if "ray" in sys.modules and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Ending(int(exitstatus)))


def start_as_by_default(patch: pytest.MonkeyPatch) -> None:
    """Free Ray of the machine's settings, and turn tokens off: a private Ray turns them on for the whole process."""
    patch.setenv("RAY_AUTH_MODE", "disabled")
    for name in ("RAY_ADDRESS", "RAY_TMPDIR", "TMPDIR"):
        patch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _one_way_to_authenticate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("ray") is not None:
        start_as_by_default(monkeypatch)


def silent(line: str) -> None:
    """Take a notice, and say nothing."""


class MakeExecutor(Protocol):
    """Makes an executor that is closed when the test ends."""

    def __call__(self, game: Game, *, table_mb: float = 1.0, flags: Flags = Flags()) -> Executor: ...


class ExecutorKind(NamedTuple):
    """One of the executors that need no Ray, and how many workers it is to have."""

    make: type[SerialExecutor] | type[ThreadExecutor]
    workers: int


EXECUTOR_KINDS = {
    f"{name}-{workers}": ExecutorKind(make, workers)
    for name, make in (("serial", SerialExecutor), ("threads", ThreadExecutor))
    for workers in (1, 2, 3)
}


@pytest.fixture(scope="session")
def load() -> Callable[[str], Game]:
    """Return a function that loads each game once."""
    return cache(load_game)


@pytest.fixture(scope="session")
def connect_four(load: Callable[[str], Game]) -> Game:
    return load("connect_four")


@pytest.fixture(scope="session")
def tic_tac_toe(load: Callable[[str], Game]) -> Game:
    return load("tic_tac_toe")


@pytest.fixture(scope="session")
def kalah(load: Callable[[str], Game]) -> Game:
    return load("kalah")


@pytest.fixture(scope="session")
def random_tree(load: Callable[[str], Game]) -> Game:
    return load("random_tree")


@pytest.fixture(params=EXECUTOR_KINDS.values(), ids=EXECUTOR_KINDS.keys())
def executor(request: pytest.FixtureRequest) -> Iterator[MakeExecutor]:
    """Return a factory of one kind of executor; a test that uses it runs once a kind."""
    kind: ExecutorKind = request.param
    made: list[Executor] = []

    def make(game: Game, *, table_mb: float = 1.0, flags: Flags = Flags()) -> Executor:
        made.append(kind.make(game, kind.workers, table_mb, flags=flags, notice=silent))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """Return a function that finds a file of the position sets, or skips the test where they are absent."""
    folder = Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)

    def find(name: str) -> Path:
        path = folder / name
        if not path.is_file():
            pytest.skip(f"{path} is absent: set {DATA_VARIABLE} to the folder of the position sets")
        return path

    return find
