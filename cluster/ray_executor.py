"""Workers on Ray: a private one on this machine, or a cluster; with `cluster.worker` the only importer of ray."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast
from uuid import uuid4

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Ray would otherwise announce a change of its own defaults on stderr each time.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
# Nor should the workers of a private Ray be the last ones whom the machine serves (niceness 15).
os.environ.setdefault("RAY_worker_niceness", "0")

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cluster.executor import Event, Numbers, ResultEvent, WorkerJoined, WorkerLost
from cluster.records import Task, WorkerInfo, pack_tasks, unpack_results
from cluster.worker import NodeAgent, Worker
from search.controls import ABORT_BOUND, CONTROL_WORDS, MAX_WORKERS, Controls
from search.flags import Flags
from search.referee import Referee, print_notice
from search.rules import Game, RulesError
from search.searcher import Searcher, variant_salt
from tt_store.errors import RootsplitError, RunFailedError, TableError
from tt_store.exchange import entries_in
from tt_store.layout import BYTES_PER_MB, NO_MOVE
from tt_store.memory import default_directory, free_bytes, why_not_created
from tt_store.reclaim import reclaim
from tt_store.segment import Segment

# Ray replaces a class by its actor's handle, which a type checker does not see.
_AGENT, _WORKER = cast(Any, NodeAgent), cast(Any, Worker)
LOCAL = "local"
AUTO = "auto"
_OBJECT_STORE_BYTES = 128 << 20
_CONNECT_S = 5.0
_START_S = 180.0
"""A machine may have to compile the kernel first."""
_ANSWER_S = 60.0
"""For the transfer of an answer that is ready."""
_CLOSE_S = 10.0
_SMALLEST_MB = 0.01
_EXCHANGE_S = 0.1
"""Between two batches of entries from a machine: at most 0.3 MB/s to each of the others."""
_RESPAWNS = 3
"""How often one worker is replaced before its core is given up."""


class ClusterError(RootsplitError):
    """A cluster that cannot be reached or does not fit."""


_USER_ERRORS: dict[str, type[RootsplitError]] = {"TableError": TableError, "RulesError": RulesError}
"""What a user may have caused, by the name in which it comes from an actor's start."""


class _Call(NamedTuple):
    """A call that a worker has not answered."""

    task_ids: tuple[int, ...]
    events: Callable[[int, bytes], list[Event]]
    """What becomes of its answer."""


@dataclass
class _Machine:
    """One Ray node with its agent."""

    node_id: str
    agent: Any
    path: str = ""
    segment: Segment | None = None
    """Its table, if it is on this host: control words then need no message."""


@dataclass
class _Member:
    """One worker, and the calls that it has not answered."""

    info: WorkerInfo
    machine: _Machine
    slot: int
    actor: Any
    respawns: int = 0
    calls: dict[Any, _Call] = field(default_factory=dict)
    ready: Any = None
    """The call that tells its process's id."""


class RayExecutor:
    """Runs tasks on Ray actors.

    Parameters
    ----------
    game
        The game; workers load it by its name.
    workers
        How many workers at most; None for one a CPU of the cluster.
    table_mb
        Size of each machine's table in MB.
    address
        ``local`` for a private Ray on this machine, ``auto`` or ``host:port`` for a cluster that runs.
    flags, notice
        As for `Searcher`.
    own_table_mb
        Size of a table of each worker's own, which is emptied before each position of a batch; 0 for the machine's.

    Raises
    ------
    ClusterError
        If there is no cluster at the address.
    RunFailedError
        If an agent or a worker does not start.
    """

    # A task costs one to two milliseconds of processor time here, in all processes together.
    least_grain_s = 0.15
    call_s = 0.0015
    prefetch = 1
    is_simulated = False

    def __init__(
        self,
        game: Game,
        workers: int | None = None,
        table_mb: float = 64.0,
        address: str = LOCAL,
        *,
        flags: Flags = Flags(),
        notice: Callable[[str], None] = print_notice,
        own_table_mb: float = 0.0,
    ) -> None:
        self._own_table_mb = own_table_mb
        self._game_name = str(Path(game.name).resolve()) if game.name.endswith(".py") else game.name
        self.flags, self._flags = flags, tuple(int(flag) for flag in flags)
        self.numbers = Numbers()
        self._table_mb = table_mb
        self._referee, self._salt = Referee(game, notice), variant_salt(flags)
        self._machines: list[_Machine] = []
        self._batches: dict[Any, _Machine] = {}
        self._next_exchange_s = 0.0
        self.exchanged_entries = 0
        self._members: dict[int, _Member] = {}
        self._calls: dict[Any, int] = {}
        self._worker_of: dict[int, int] = {}
        self._is_private = address == LOCAL
        self._is_closed = False
        self._notice = notice
        reclaim()
        if self._is_private:
            _check_room(table_mb)
            _compile_here(game, flags, notice)
        with _own_handler():
            _connect(address, workers)
        try:
            self._start(workers)
        except BaseException:
            self.close()
            raise

    def workers(self) -> list[WorkerInfo]:
        """Return the workers that live."""
        return [member.info for member in self._members.values()]

    def now_s(self) -> float:
        """Return the real time."""
        return time.monotonic()

    def known_move(self, key: int) -> int:
        """Ask the tables of this host; others are out of reach."""
        near = (machine.segment for machine in self._machines if machine.segment is not None)
        moves = (self._referee.known_move(segment, key ^ self._salt) for segment in near)
        return next((move for move in moves if move != NO_MOVE), NO_MOVE)

    def begin_search(self) -> None:
        """Advance the generation of every machine's table."""
        self._ask_agents(lambda agent: agent.begin_search.remote())

    def forget(self) -> None:
        """Have the agents empty their tables, and the workers forget their history."""
        self._ask_agents(lambda agent: agent.forget.remote())
        _get([member.actor.forget.remote() for member in self._members.values()], "a worker")

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Send tasks to a worker as one call."""
        task_ids = tuple(task.task_id for task in tasks)
        self.send(worker, "run", pack_tasks(tasks), task_ids, _result_events)
        self._worker_of.update(dict.fromkeys(task_ids, worker))

    def send(
        self, worker: int, method: str, message: bytes, ids: tuple[int, ...], events: Callable[[int, bytes], list[Any]]
    ) -> None:
        """Call a method of a worker.

        Parameters
        ----------
        worker
            Whose.
        method, message
            Its name, and what it gets.
        ids
            What the event of its loss is to name.
        events
            Makes events of worker and answer, for `poll` to return.
        """
        member = self._members[worker]
        call = getattr(member.actor, method).remote(message)
        member.calls[call] = _Call(ids, events)
        self._calls[call] = worker

    def replace(self, worker: int) -> list[Event]:
        """End a worker that does not answer, and start another in its place; returns the events of both."""
        member = self._members[worker]
        ray.kill(member.actor)
        if member.ready is not None and ray.wait([member.ready], timeout=0)[0]:
            # A process that is stopped does not do what Ray asks of it, and keeps its CPU from its replacement.
            member.machine.agent.end_worker.remote(ray.get(member.ready, timeout=_ANSWER_S))
        return self._lose(member, (), RunFailedError("it did not let its position go"))

    def is_started(self, worker: int) -> bool:
        """Tell whether a worker's start has ended, well or not."""
        member = self._members.get(worker)
        return member is not None and bool(ray.wait([member.ready], timeout=0)[0])

    def renew(self, worker: int) -> None:
        """Give a worker that has done its work all its replacements back."""
        self._members[worker].respawns = 0

    def poll(self, timeout_s: float) -> list[Event]:
        """Wait for calls that have been answered, or whose worker has died."""
        self._exchange()
        if not self._calls:
            time.sleep(min(timeout_s, 0.01))
            return []
        # Another thread may submit meanwhile: its calls are waited for by the next poll.
        calls = list(self._calls)
        ready, _ = ray.wait(calls, num_returns=1, timeout=max(timeout_s, 0.0))
        if ready and len(calls) > 1:
            ready, _ = ray.wait(calls, num_returns=len(calls), timeout=0)
        events: list[Event] = []
        for call in ready:
            events.extend(self._answer(call))
        return events

    def abort(self, task_ids: Iterable[int]) -> None:
        """Have the agents write the tasks' control cells."""
        self._send_bounds([(task_id, ABORT_BOUND) for task_id in task_ids])

    def set_bound(self, task_id: int, bound: int) -> None:
        """Have the agent write the task's control cell."""
        self._send_bounds([(task_id, bound)])

    def stop(self, epoch: int) -> None:
        """Have every agent write the stop word."""
        for machine in self._machines:
            if machine.segment is not None:
                Controls(machine.segment.control_address).stop(epoch)
            else:
                machine.agent.stop.remote(epoch)

    def hashfull(self) -> float:
        """Return the mean share of the tables that is in use."""
        shares = self._ask_agents(lambda agent: agent.hashfull.remote())
        return sum(shares) / len(shares) if shares else 0.0

    def close(self) -> None:
        """End the actors, remove the tables, leave the cluster; a private Ray ends with it."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.stop(1 << 62)
            for member in self._members.values():
                ray.kill(member.actor)
            for machine in self._machines:
                if machine.segment is not None:
                    machine.segment.close()
                    machine.segment = None
                _remove_table(machine)
        finally:
            ray.shutdown()

    def _start(self, workers: int | None) -> None:
        """Start an agent on each machine, then the workers: the agents' kernels are compiled by then."""
        nodes = [node for node in cast(Any, ray).nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        if not nodes:
            raise RunFailedError("the cluster has no machine with a CPU for a worker")
        cores = {node["NodeID"]: int(node["Resources"]["CPU"]) for node in nodes}
        wanted = sum(cores.values()) if workers is None else workers
        if wanted > sum(cores.values()):
            raise ClusterError(f"{wanted} workers were asked for, and the cluster has CPUs for {sum(cores.values())}")
        run = uuid4().hex[:8]
        for node in nodes:
            node_id = node["NodeID"]
            agent = _AGENT.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False)).remote(
                self._game_name, self._flags, self._table_mb, f"{run}{node_id[:8]}", self._is_private
            )
            self._machines.append(_Machine(node_id, agent))
        calls = [machine.agent.ready.remote() for machine in self._machines]
        _done, waiting = ray.wait(calls, num_returns=len(calls), timeout=_CONNECT_S)
        if waiting:
            self._notice(f"waiting for {len(waiting)} of {len(calls)} machines to start and compile the kernel ...")
        for machine, path in zip(self._machines, _get(calls, "an agent"), strict=True):
            machine.path, machine.segment = path, _near_segment(path)
        seats = [(machine, slot) for machine in self._machines for slot in range(cores[machine.node_id])]
        members = []
        for number, (machine, slot) in enumerate(seats[:wanted]):
            info = WorkerInfo(machine.node_id[:8], number)
            members.append(_Member(info, machine, slot % MAX_WORKERS, self._spawn(machine, slot)))
        for member in members:
            member.ready = member.actor.ready.remote()
        _get([member.ready for member in members], "a worker")
        self._members = {member.info.worker: member for member in members}

    def _spawn(self, machine: _Machine, slot: int) -> Any:
        strategy = NodeAffinitySchedulingStrategy(machine.node_id, soft=False)
        return _WORKER.options(scheduling_strategy=strategy).remote(
            self._game_name, self._flags, machine.path, slot, self._own_table_mb
        )

    def _exchange(self) -> None:
        """Pass batches of deep entries on, from each machine to all the others, at a bounded rate, without waiting."""
        if len(self._machines) < 2 or self.now_s() < self._next_exchange_s:
            return
        self._next_exchange_s = self.now_s() + _EXCHANGE_S
        ready, _ = (
            ray.wait(list(self._batches), num_returns=len(self._batches), timeout=0) if self._batches else ([], [])
        )
        for call in ready:
            sender = self._batches.pop(call)
            try:
                message = ray.get(call, timeout=_ANSWER_S)
            except RayError as error:
                # The machine's workers will show that it is lost; here only entries are.
                logging.getLogger("rootsplit").info("no entries from %s: %s", sender.node_id, error)
                continue
            for machine in self._machines if message else ():
                if machine is not sender:
                    machine.agent.deliver.remote(message)
                    self.exchanged_entries += entries_in(message)
        waiting = list(self._batches.values())
        for machine in self._machines:
            if machine not in waiting:
                self._batches[machine.agent.collect.remote()] = machine

    def _answer(self, call: Any) -> list[Event]:
        """Turn an answered call into events; a dead worker is replaced, within a budget."""
        # A call of a worker that another call of the same batch has shown to be dead is no longer known.
        worker = self._calls.pop(call, None)
        if worker is None:
            return []
        member = self._members[worker]
        task_ids, events = member.calls.pop(call)
        try:
            answer = ray.get(call, timeout=_ANSWER_S)
        except RayTaskError as error:
            raise RunFailedError(f"a worker failed: {type(error.cause).__name__}: {error.cause}") from error
        except RayError as error:
            # Not only RayActorError: memory that ran out, and a machine that left, have errors of their own.
            return self._lose(member, task_ids, error)
        for task_id in task_ids:
            self._worker_of.pop(task_id, None)
        return events(worker, answer)

    def _lose(self, member: _Member, task_ids: tuple[int, ...], error: Exception) -> list[Event]:
        """Take a worker's tasks back and replace it; a replacement that dies at once comes here by its next call."""
        worker = member.info.worker
        lost = [*task_ids, *(task_id for call in member.calls.values() for task_id in call.task_ids)]
        for call in member.calls:
            self._calls.pop(call, None)
        member.calls.clear()
        for task_id in lost:
            self._worker_of.pop(task_id, None)
        events: list[Event] = [WorkerLost(worker, tuple(lost))]
        name = f"worker {worker} on machine {member.info.machine}"
        reason = _reason(error)
        if member.respawns >= _RESPAWNS:
            del self._members[worker]
            self._notice(f"{name} died and is given up after {member.respawns} replacements: {reason}")
            return events
        self._notice(f"{name} died and is replaced: {reason}")
        member.respawns += 1
        member.actor = self._spawn(member.machine, member.slot)
        member.ready = member.actor.ready.remote()
        events.append(WorkerJoined(member.info))
        return events

    def _send_bounds(self, bounds: list[tuple[int, int]]) -> None:
        """Send control words to the machines whose tasks they concern, without waiting."""
        by_machine: dict[str, tuple[_Machine, list[tuple[int, int]]]] = {}
        for task_id, bound in bounds:
            member = self._members.get(self._worker_of.get(task_id, -1))
            if member is not None:
                by_machine.setdefault(member.machine.node_id, (member.machine, []))[1].append((task_id, bound))
        for machine, rows in by_machine.values():
            if machine.segment is None:
                machine.agent.set_bounds.remote(rows)
                continue
            controls = Controls(machine.segment.control_address)
            for task_id, bound in rows:
                controls.set_bound(task_id, bound)

    def _ask_agents(self, call: Callable[[Any], Any]) -> list[Any]:
        return _get([call(machine.agent) for machine in self._machines], "an agent")


def _near_segment(path: str) -> Segment | None:
    """Attach to a machine's table if it lies on this host, else return None."""
    try:
        return Segment.attach(Path(path))
    except TableError:
        return None


def _compile_here(game: Game, flags: Flags, notice: Callable[[str], None]) -> None:
    """Compile the kernel before this machine's agent does: an agent's word would reach nobody."""
    words = (ctypes.c_int64 * CONTROL_WORDS)()
    with Segment.private(_SMALLEST_MB) as segment:
        Searcher(game, segment, Controls(ctypes.addressof(words)), flags=flags, notice=notice)


def _check_room(table_mb: float) -> None:
    """Refuse a table that does not fit here before Ray is started: that takes seconds."""
    directory = default_directory()
    free = free_bytes(directory)
    if table_mb * BYTES_PER_MB > free:
        raise TableError(why_not_created(OSError(errno.ENOSPC, ""), table_mb, directory, free))


def _remove_table(machine: _Machine) -> None:
    """Have an agent remove its table and end; one that is gone already leaves it to `reclaim`."""
    try:
        ray.get(machine.agent.close.remote(), timeout=_CLOSE_S)
    except (RayError, GetTimeoutError) as error:
        logging.getLogger("rootsplit").info("agent on %s did not close: %s", machine.node_id, error)
    ray.kill(machine.agent)


def _get(calls: list[Any], what: str) -> list[Any]:
    try:
        return list(ray.get(calls, timeout=_START_S))
    except GetTimeoutError:
        raise RunFailedError(f"{what} has not answered for {_START_S:.0f} s") from None
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, RootsplitError):
            raise cause from None
        raise RunFailedError(f"{what} failed to start: {type(cause).__name__}: {cause}") from error
    except RayActorError as error:
        raise _startup_error(what, error) from None


def _startup_error(what: str, error: RayActorError) -> RootsplitError:
    """Return an actor's own error if its start failed with one of ours, else Ray's first line."""
    own = _own_error(error)
    if own is None:
        return RunFailedError(f"{what} died: {_reason(error)}")
    name, sentence = own
    return _USER_ERRORS.get(name, RunFailedError)(sentence)


def _result_events(worker: int, message: bytes) -> list[Event]:
    return [ResultEvent(worker, result) for result in unpack_results(message)]


def _reason(error: Exception) -> str:
    """Return one line for what Ray tells in many: an actor's own error, else Ray's first line."""
    own = _own_error(error)
    lines = str(error).split("\n", 1)
    return own[1] if own else lines[0].strip() or type(error).__name__


def _own_error(error: Exception) -> tuple[str, str] | None:
    """Return the class's name and the text of the Python error that ended an actor's start: Ray tells them last."""
    last = str(error).strip().rpartition("\n")[2]
    found = re.fullmatch(r"(?:\w+\.)*(\w+Error): (.+)", last.strip())
    return (found[1], found[2]) if found else None


@contextlib.contextmanager
def _own_handler() -> Iterator[None]:
    """Keep this process's answer to SIGTERM: Ray would set one of its own, which leaves tables behind."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if is_main and handler is not None:
            signal.signal(signal.SIGTERM, handler)


def _connect(address: str, workers: int | None) -> None:
    """Join the cluster at an address, or start a private one."""
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "configure_logging": True,
        "include_dashboard": False,
        "namespace": f"rootsplit-{uuid4().hex[:8]}",
    }
    # Whatever `log_to_driver` says, Ray tells of dead workers on stdout, where our result goes: it has no other switch.
    ray._private.worker._worker_logs_enabled = False
    if ray.is_initialized():
        raise ClusterError("this process is on a Ray cluster already: close the other session first")
    if address == LOCAL:
        cpus = max(workers or 0, os.cpu_count() or 1)
        ray.init(address=LOCAL, num_cpus=cpus, object_store_memory=_OBJECT_STORE_BYTES, **options)
        return
    if address == AUTO:
        address = _recorded_address()
    if address.startswith("ray://"):
        raise ClusterError(
            f"{address} is a Ray Client address, which is too slow for search: give host:port of the cluster's head"
            " (port 6379 by default) and run on a machine of the cluster"
        )
    if address != AUTO:
        _check_reachable(address)
    del options["include_dashboard"]
    try:
        ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first_line = str(error).strip().partition("\n")[0]
        hint = "" if "RAY_AUTH_MODE" in os.environ else " (if it wants a token, set RAY_AUTH_MODE=token)"
        raise ClusterError(f"the Ray cluster at {address} cannot be joined: {first_line}{hint}") from None


def _recorded_address() -> str:
    """Return the address that Ray would take for `AUTO`, so that it can be checked; `AUTO` where Ray must look."""
    named = os.environ.get("RAY_ADDRESS", "")
    if named in ("", AUTO, LOCAL):
        directory = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
        record = Path(directory, "ray", "ray_current_cluster")
        named = record.read_text().strip() if record.is_file() else ""
    return named or AUTO


def _check_reachable(address: str) -> None:
    """Fail within seconds where nobody listens: Ray itself would wait for minutes."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ClusterError(f"{address!r} is no cluster address: give {LOCAL}, {AUTO}, or host:port such as head:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ClusterError(f"no Ray cluster answers at {address}: {reason}") from None
