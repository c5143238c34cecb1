"""However a search ends, no process of it runs on, and no table stays in shared memory.

Each driver is the command line in a process of its own; its processes are those that it has started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Process, alive, descendants, wait_until
from segments import create_in_child

from tt_store.reclaim import leftovers, reclaim

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are told by /proc"),
]

COMMAND = [sys.executable, "-m", "cluster.cli"]
TABLE_MB = 8
LONG = ["search", "connect_four", "--time", "60", "--workers", "2", "--table", str(TABLE_MB), "--json"]
ON_RAY = [*LONG, "--address", "local"]
GONE_S = 10.0
"""All that a driver has started is gone so soon after its end."""

HELPERS_GONE_S = 75.0
"""After `kill -9` of a driver Ray's own helpers take a minute where our agent died before it could end them."""


class Driver:
    """A search that runs, with all processes that it has started."""

    def __init__(self, words: list[str]) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # A session of its own, as a terminal gives: Ctrl-C then reaches all of its processes.
        self.popen = subprocess.Popen([*COMMAND, *words], text=True, env=environment, start_new_session=True, **pipes)
        self.family: set[Process] = set()

    def wait_for_threads(self) -> None:
        """Wait until it has computed longer than a start takes."""
        assert wait_until(lambda: self.popen.poll() is not None or cpu_seconds(self.popen.pid) > 4, 60)
        assert self.popen.poll() is None, self.popen.communicate()

    def wait_for_ray(self) -> None:
        """Wait until both workers search."""
        assert wait_until(lambda: self.popen.poll() is not None or len(self.searching()) == 2, 60)
        assert self.popen.poll() is None, self.popen.communicate()
        time.sleep(0.5)
        self.family = descendants(self.popen.pid)
        commands = " ".join(process.command for process in self.family)
        for name in ("raylet", "gcs_server", "ray::Worker", "ray::NodeAgent"):
            assert name in commands

    def searching(self) -> list[Process]:
        return [process for process in descendants(self.popen.pid) if process.command.startswith("ray::Worker.run")]

    def tables(self) -> list[Path]:
        pids = {self.popen.pid, *(process.pid for process in self.family)}
        return [found.path for found in leftovers() if found.owner_pid in pids]

    def end(self, signal_number: signal.Signals, to_all: bool = False) -> tuple[int, str, str]:
        """Send a signal to the driver, or to all in its terminal; returns its exit code and what it has written."""
        if to_all:
            os.killpg(self.popen.pid, signal_number)
        else:
            self.popen.send_signal(signal_number)
        output, errors = self.popen.communicate(timeout=30)
        return self.popen.returncode, output, errors

    def assert_gone(self, within_s: float = GONE_S) -> None:
        assert wait_until(lambda: not alive(self.family), within_s), alive(self.family)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    """Return a list of drivers; whatever a failed test leaves of them is ended."""
    started: list[Driver] = []
    yield started
    for driver in started:
        with driver.popen:
            if driver.popen.poll() is None:
                driver.popen.kill()
        for process in alive(driver.family):
            os.kill(process.pid, signal.SIGKILL)


def start_on_ray(drivers: list[Driver]) -> Driver:
    driver = Driver(ON_RAY)
    drivers.append(driver)
    driver.wait_for_ray()
    assert len(driver.tables()) == 1
    return driver


def start_on_threads(drivers: list[Driver]) -> Driver:
    driver = Driver(LONG)
    drivers.append(driver)
    driver.wait_for_threads()
    driver.family = descendants(driver.popen.pid)
    return driver


# Threads of the driver: their table is nobody else's, and goes with the process.


def test_threads_leave_nothing_at_the_normal_end(drivers: list[Driver]) -> None:
    driver = Driver([*LONG[:2], "4453", "--depth", "12", *LONG[4:]])
    drivers.append(driver)
    output, errors = driver.popen.communicate(timeout=60)
    assert (driver.popen.returncode, driver.tables()) == (0, [])
    assert json.loads(output)["depth"] == 12
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, None), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_threads_leave_nothing_at_a_signal(number: signal.Signals, code: int | None, drivers: list[Driver]) -> None:
    driver = start_on_threads(drivers)
    begun = time.monotonic()
    returned, output, errors = driver.end(number)
    assert time.monotonic() - begun < 5
    assert code in (None, returned)
    assert returned != 0
    assert (output, driver.tables()) == ("", [])
    assert "Traceback" not in errors
    driver.assert_gone()


# A private Ray.


@pytest.mark.ray
@pytest.mark.slow
def test_ray_leaves_nothing_at_the_normal_end_though_a_worker_was_killed(drivers: list[Driver]) -> None:
    driver = Driver([*ON_RAY[:2], "--depth", "19", *ON_RAY[4:]])
    drivers.append(driver)
    driver.wait_for_ray()
    tables = driver.tables()
    os.kill(driver.searching()[0].pid, signal.SIGKILL)
    assert wait_until(lambda: bool(descendants(driver.popen.pid) - driver.family), 5)
    driver.family |= descendants(driver.popen.pid)
    output, errors = driver.popen.communicate(timeout=60)
    assert driver.popen.returncode == 0
    report = json.loads(output)
    assert (report["depth"], report["workers"]) == (19, 2)
    (line,) = errors.splitlines()
    assert line.startswith("rootsplit: worker ")
    assert "died and is replaced" in line
    assert [path for path in tables if path.exists()] == []
    driver.assert_gone()


@pytest.mark.ray
@pytest.mark.parametrize(
    "to_all",
    [pytest.param(False, id="the-driver", marks=pytest.mark.slow), pytest.param(True, id="its-terminal")],
)
def test_ray_leaves_nothing_at_ctrl_c(to_all: bool, drivers: list[Driver]) -> None:
    driver = start_on_ray(drivers)
    tables = driver.tables()
    begun = time.monotonic()
    code, output, errors = driver.end(signal.SIGINT, to_all)
    assert time.monotonic() - begun < 10
    assert (code, output) == (130, "")
    assert "Traceback" not in errors
    assert [path for path in tables if path.exists()] == []
    driver.assert_gone()


@pytest.mark.ray
def test_ray_leaves_nothing_at_sigterm(drivers: list[Driver]) -> None:
    driver = start_on_ray(drivers)
    code, output, errors = driver.end(signal.SIGTERM)
    assert code != 0
    assert output == ""
    assert "Traceback" not in errors
    driver.assert_gone()
    reclaim()
    assert driver.tables() == []


@pytest.mark.ray
def test_after_kill_9_of_the_driver_its_processes_end_and_its_table_goes(drivers: list[Driver]) -> None:
    driver = start_on_ray(drivers)
    code, _, _ = driver.end(signal.SIGKILL)
    assert code == -signal.SIGKILL
    driver.assert_gone(HELPERS_GONE_S)
    # The agent saw it and removed its table, or was too late: then the next start does.
    reclaim()
    assert driver.tables() == []


@pytest.mark.ray
@pytest.mark.slow
def test_after_kill_9_of_driver_and_agent_the_table_goes_by_itself(drivers: list[Driver]) -> None:
    driver = start_on_ray(drivers)
    (table,) = driver.tables()
    (agent,) = (process for process in driver.family if process.command.startswith("ray::NodeAgent"))
    os.kill(agent.pid, signal.SIGKILL)
    driver.end(signal.SIGKILL)
    assert wait_until(lambda: not table.exists(), GONE_S)


def test_the_command_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    with create_in_child(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)") as child:
        assert child.stdout is not None
        table = Path(child.stdout.readline().strip())
    assert table.exists()
    words = [*COMMAND, "clean", "--table-dir", str(tmp_path)]
    cleaned = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert f"{table}  " in cleaned.stdout
    assert not table.exists()
