"""Workers on Ray: a private one on this machine, or a cluster; only `cluster.ray_*` and `cluster.worker` import ray."""

from __future__ import annotations

import ctypes
import errno
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from cluster.cluster_options import ClusterOptions
from cluster.executor import Event, Numbers, ResultEvent, WorkerLost
from cluster.fingerprint import fingerprint
from cluster.ray_connection import LOCAL, connect
from cluster.ray_errors import get, reason
from cluster.ray_fleet import Fleet
from cluster.ray_machines import Call, Machine, Member
from cluster.records import Task, WorkerInfo, pack_tasks, unpack_results
from cluster.worker import Setup
from search.controls import ABORT_BOUND, CONTROL_WORDS, Controls
from search.flags import Flags
from search.mcts_settings import Part
from search.referee import Referee, print_notice
from search.rules import Game
from search.searcher import variant_salt
from search.searchers import open_searcher
from tt_store.errors import RunFailedError, TableError
from tt_store.layout import BYTES_PER_MB, NO_MOVE
from tt_store.memory import default_directory, free_bytes, why_not_created
from tt_store.reclaim import reclaim
from tt_store.segment import Segment

_ANSWER_S = 60.0
"""For the transfer of an answer that is ready."""
_SMALLEST_MB = 0.01


class RayExecutor:
    """Runs tasks on Ray actors.

    Parameters
    ----------
    game
        The game; workers load it by its name.
    workers
        How many workers at most; None for one a CPU of the cluster.
    table_mb
        Size of each machine's table in MB; None for what fits there.
    address
        ``local`` for a private Ray on this machine, ``auto`` or ``host:port`` for a cluster that runs.
    flags, notice
        As for `Searcher`; lines tell of lost and joined workers and machines too.
    options
        Where tables go, and when a worker counts as hung.
    own_table_mb
        Size of a table of each worker's own, which is emptied before each position of a batch; 0 for the machine's.

    Raises
    ------
    ClusterError
        If there is no cluster at the address, or it does not fit.
    RunFailedError
        If an agent or a worker does not start.
    """

    # A task costs one to two milliseconds of processor time here, in all processes together.
    least_grain_s = 0.15
    call_s = 0.0015
    prefetch = 1
    table_part = Part()
    is_simulated = False
    has_teams = True

    def __init__(
        self,
        game: Game,
        workers: int | None = None,
        table_mb: float | None = 64.0,
        address: str = LOCAL,
        *,
        flags: Flags = Flags(),
        notice: Callable[[str], None] = print_notice,
        options: ClusterOptions = ClusterOptions(),
        own_table_mb: float = 0.0,
    ) -> None:
        self.flags = flags
        self.numbers = Numbers()
        self._referee, self._salt = Referee(game, notice), variant_salt(flags)
        self._sent_entries: dict[str, int] = {}
        """Of each machine's table, by its path: also of machines that are lost."""
        self._member_of: dict[int, Member] = {}
        self._is_closed = False
        self._directory = options.table_directory
        reclaim(self._directory)
        if address == LOCAL and table_mb is not None:
            _check_room(table_mb, self._directory)
        if address == LOCAL:
            _compile_here(game, flags, notice)
        connect(address, workers)
        directory = None if self._directory is None else str(self._directory.resolve())
        setup = Setup(
            run=options.run,
            game_name=str(Path(game.name).resolve()) if game.name.endswith(".py") else game.name,
            flags=tuple(int(flag) for flag in flags),
            table_mb=table_mb,
            directory=directory,
            ours=fingerprint(game),
            is_private=address == LOCAL,
            own_table_mb=own_table_mb,
        )
        self._fleet = Fleet(setup, workers, options.hang_s, notice)
        try:
            self._fleet.start()
        except BaseException:
            self.close()
            raise

    @property
    def exchanged_entries(self) -> int:
        """How many entries of tables have gone to other machines so far: the agents are asked."""
        if len(self._fleet.machines) > 1:
            self._sent_entries |= dict(self._fleet.ask_agents(lambda agent: agent.sent_entries.remote()))
        return sum(self._sent_entries.values())

    @property
    def table_mb(self) -> float:
        """Size of the smallest machine's table in MB."""
        return min((machine.table_mb for machine in self._fleet.machines), default=0.0)

    def workers(self) -> list[WorkerInfo]:
        """Return the workers that live and are ready."""
        return [member.info for member in self._fleet.members.values()]

    def awaits_workers(self) -> bool:
        """Tell whether workers, or machines for them, are starting."""
        return self._fleet.is_starting

    def now_s(self) -> float:
        """Return the real time."""
        return time.monotonic()

    def known_move(self, key: int) -> int:
        """Ask the tables of this host; others are out of reach."""
        near = (machine.segment for machine in self._fleet.machines if machine.segment is not None)
        moves = (self._referee.known_move(segment, key ^ self._salt) for segment in near)
        return next((move for move in moves if move != NO_MOVE), NO_MOVE)

    def begin_search(self) -> None:
        """Advance the generation of every machine's table."""
        self._fleet.ask_agents(lambda agent: agent.begin_search.remote())

    def forget(self) -> None:
        """Have the agents empty their tables, and the workers forget their history."""
        self._fleet.ask_agents(lambda agent: agent.forget.remote())
        get([member.actor.forget.remote() for member in self._fleet.members.values()], "a worker", _ANSWER_S)

    def submit(self, worker: int, tasks: Sequence[Task]) -> None:
        """Send tasks to a worker as one call."""
        task_ids = tuple(task.task_id for task in tasks)
        self.send(worker, "run", pack_tasks(tasks), task_ids, _result_events)
        self._member_of.update(dict.fromkeys(task_ids, self._fleet.members[worker]))

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
        member = self._fleet.members[worker]
        member.calls[getattr(member.actor, method).remote(message)] = Call(ids, events)

    def replace(self, worker: int) -> list[Event]:
        """End a worker that does not answer, and start another in its place, which `poll` tells of."""
        self._fleet.end(self._fleet.members[worker], "it did not let its position go")
        return self._noted([*self._fleet.look()])

    def renew(self, worker: int) -> None:
        """Give a worker that has done its work all its replacements back."""
        self._fleet.members[worker].respawns = 0

    def poll(self, timeout_s: float) -> list[Event]:
        """Wait for calls that have been answered, or whose worker has died; see who has come and gone."""
        events: list[Event] = [*self._fleet.look()]
        # Another thread may submit meanwhile: its calls are waited for by the next poll.
        calls = {call: member for member in list(self._fleet.members.values()) for call in list(member.calls)}
        if not calls:
            time.sleep(0.0 if events else min(timeout_s, 0.01))
            return self._noted(events)
        ready, _ = ray.wait(list(calls), num_returns=1, timeout=0.0 if events else max(timeout_s, 0.0))
        if ready and len(calls) > 1:
            ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
        for call in ready:
            # Another call of the same batch may have shown that its worker is dead.
            if call in calls[call].calls:
                events.extend(self._answer(calls[call], call))
        return self._noted(events)

    def abort(self, task_ids: Iterable[int]) -> None:
        """Have the agents write the tasks' control cells."""
        self._send_bounds([(task_id, ABORT_BOUND) for task_id in task_ids])

    def set_bound(self, task_id: int, bound: int) -> None:
        """Have the agent write the task's control cell."""
        self._send_bounds([(task_id, bound)])

    def stop(self, epoch: int) -> None:
        """Have every agent write the stop word."""
        for machine in self._fleet.machines:
            if machine.segment is not None:
                Controls(machine.segment.control_address).stop(epoch)
            else:
                machine.agent.stop.remote(epoch)

    def hashfull(self) -> float:
        """Return the mean share of the tables that is in use."""
        shares = self._fleet.ask_agents(lambda agent: agent.hashfull.remote())
        return sum(shares) / len(shares) if shares else 0.0

    def deepest(self, most: int) -> list[bytes]:
        """Have every agent look through its table."""
        share = most // max(1, len(self._fleet.machines))
        found = self._fleet.ask_agents(lambda agent: agent.deepest.remote(share))
        return [message for messages in found for message in messages]

    def deliver(self, messages: Sequence[bytes]) -> None:
        """Have every agent put entries into its table."""
        self._fleet.ask_agents(lambda agent: agent.deliver_all.remote(list(messages)))

    def close(self) -> None:
        """End the actors, remove the tables, leave the cluster; a private Ray ends with it."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.stop(1 << 62)
            self._fleet.close()
            # Of machines on this host that were lost on the way.
            reclaim(self._directory)
        finally:
            ray.shutdown()

    def _answer(self, member: Member, call: Any) -> list[Event]:
        """Turn an answered call into events; a dead worker is replaced, within a budget."""
        try:
            answer = ray.get(call, timeout=_ANSWER_S)
        except RayTaskError as error:
            raise RunFailedError(f"a worker failed: {type(error.cause).__name__}: {error.cause}") from error
        except RayError as error:
            # Not only RayActorError: memory that ran out, and a machine that left, have errors of their own.
            self._fleet.lose(member, reason(error))
            return [*self._fleet.look()]
        member.answered += 1
        return member.calls.pop(call).events(member.info.worker, answer)

    def _noted(self, events: list[Event]) -> list[Event]:
        """Forget where the tasks of events were."""
        for event in events:
            if isinstance(event, ResultEvent):
                self._member_of.pop(event.result.task_id, None)
            elif isinstance(event, WorkerLost):
                for task_id in event.task_ids:
                    self._member_of.pop(task_id, None)
        return events

    def _send_bounds(self, bounds: list[tuple[int, int]]) -> None:
        """Send control words to the machines whose tasks they concern, without waiting."""
        by_machine: dict[str, tuple[Machine, list[tuple[int, int]]]] = {}
        for task_id, bound in bounds:
            member = self._member_of.get(task_id)
            if member is not None:
                by_machine.setdefault(member.machine.node_id, (member.machine, []))[1].append((task_id, bound))
        for machine, rows in by_machine.values():
            if machine.segment is None:
                machine.agent.set_bounds.remote(rows)
                continue
            controls = Controls(machine.segment.control_address)
            for task_id, bound in rows:
                controls.set_bound(task_id, bound)


def _result_events(worker: int, message: bytes) -> list[Event]:
    return [ResultEvent(worker, result) for result in unpack_results(message)]


def _compile_here(game: Game, flags: Flags, notice: Callable[[str], None]) -> None:
    """Compile the kernel before this machine's agent does: an agent's word would reach nobody."""
    words = (ctypes.c_int64 * CONTROL_WORDS)()
    with Segment.private(_SMALLEST_MB) as segment:
        open_searcher(game, segment, Controls(ctypes.addressof(words)), flags=flags, notice=notice)


def _check_room(table_mb: float, directory: Path | None) -> None:
    """Refuse a table that does not fit here before Ray is started: that takes seconds."""
    directory = directory or default_directory()
    free = free_bytes(directory)
    if table_mb * BYTES_PER_MB > free:
        raise TableError(why_not_created(OSError(errno.ENOSPC, ""), table_mb, directory, free))
