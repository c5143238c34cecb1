"""The machines and workers of a cluster: starts them, watches them, replaces what is lost, uses what joins."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cluster.executor import WorkerJoined, WorkerLost
from cluster.logs import LOGGER
from cluster.ray_errors import ClusterError, get, reason
from cluster.ray_machines import Machine, Member
from cluster.ray_watch import Watch
from cluster.records import WorkerInfo
from cluster.worker import DEAD_AGENT_S, NodeAgent, Setup, Worker
from search.controls import MAX_WORKERS
from search.flags import Flags
from tt_store.errors import RunFailedError

# Ray replaces a class by its actor's handle, which a type checker does not see.
_AGENT, _WORKER = cast(Any, NodeAgent), cast(Any, Worker)
_CONNECT_S = 5.0
_START_S = 180.0
"""A machine may have to compile the kernel first."""
_ANSWER_S = 60.0
"""For the transfer of an answer that is ready."""
_CLOSE_S = 10.0
_LOOK_S = 0.25
"""Between two looks at who is ready."""
_PULSE_S = 1.0
"""Between two looks at how the workers of a machine are."""
_SURVEY_S = 5.0
"""Between two looks at which machines the cluster has."""
_RESPAWNS = 3
"""How often one worker, or one machine's agent, is replaced before it is given up."""


class Fleet:
    """The machines and workers that there are; `look` must be called often.

    Parameters
    ----------
    setup
        What they are started with.
    workers
        How many; None for one a CPU of all machines, those that will join included.
    hang_s
        After how many seconds without progress a busy worker is replaced.
    notice
        Gets a line for each machine or worker that is lost, and for each machine that joins.
    """

    def __init__(self, setup: Setup, workers: int | None, hang_s: float, notice: Callable[[str], None]) -> None:
        self.machines: list[Machine] = []
        """Those whose agents are ready."""
        self.members: dict[int, Member] = {}
        """The workers that are ready."""
        self._events: list[WorkerLost | WorkerJoined] = []
        self._setup, self._hang_s, self._notice = setup, hang_s, notice
        self._exchanges = Flags.of_words(setup.flags).keeps_entries and not setup.own_table_mb
        self._wanted = workers
        self._worker_ids = itertools.count()
        self._opening: list[Machine] = []
        self._opened: Counter[str] = Counter()
        """How often each machine has been given an agent."""
        self._starting: list[Member] = []
        self._watch = Watch()
        self._next_look_s, self._next_survey_s = 0.0, time.monotonic() + _SURVEY_S

    def start(self) -> None:
        """Start an agent on each machine, then the workers: the agents' kernels are compiled by then.

        Raises
        ------
        ClusterError
            If there are fewer CPUs than wanted workers, or a machine has another program than the driver.
        RunFailedError
            If an agent or a worker does not start.
        """
        cores = _cores()
        if not cores:
            raise RunFailedError("the cluster has no machine with a CPU for a worker")
        most = sum(cores.values())
        if self._wanted is not None and self._wanted > most:
            raise ClusterError(f"{self._wanted} workers were asked for, and the cluster has CPUs for {most}")
        for node_id in cores:
            self._open(node_id, cores[node_id])
        calls = [machine.ready for machine in self._opening]
        _done, waiting = ray.wait(calls, num_returns=len(calls), timeout=_CONNECT_S)
        if waiting:
            self._notice(f"waiting for {len(waiting)} of {len(calls)} machines to start and compile the kernel ...")
        get(calls, "an agent", _START_S)
        self._take_machines()
        self._fill()
        get([member.ready for member in self._starting], "a worker", _START_S)
        self._take_members()
        self._events.clear()

    @property
    def is_starting(self) -> bool:
        """Whether a worker, or a machine's agent, is on its way; it has `_START_S` for that."""
        return bool(self._starting or self._opening)

    def look(self) -> list[WorkerLost | WorkerJoined]:
        """See who is ready, who has died or hangs, and which machines have come and gone; returns what is new."""
        now_s = time.monotonic()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_S
            for machine in self._take_machines():
                self._notice(f"machine {machine.name} has joined with {machine.cores} cores")
                self._fill()
            self._take_members()
            for machine in list(self.machines):
                self._feel_pulse(machine, now_s)
        if now_s >= self._next_survey_s:
            self._next_survey_s = now_s + _SURVEY_S
            self._survey()
        events, self._events = self._events, []
        return events

    def ask_agents(self, call: Callable[[Any], Any]) -> list[Any]:
        """Return what the agents answer to a call; a machine whose agent does not is lost."""
        asked = [(machine, call(machine.agent)) for machine in self.machines]
        answers = []
        for machine, answer in asked:
            try:
                answers.append(ray.get(answer, timeout=_ANSWER_S))
            except RayError as error:
                self._give_up(machine, reason(error))
        return answers

    def lose(self, member: Member, why: str, how: str = "died") -> None:
        """Take a worker's tasks back and start another in its place, unless that has been done too often."""
        self._take_back(member)
        if member.respawns >= _RESPAWNS:
            self._notice(f"{member.name} {how} and is given up after {member.respawns} replacements: {why}")
            return
        self._notice(f"{member.name} {how} and is replaced: {why}")
        member.respawns += 1
        self._begin(member)

    def end(self, member: Member, why: str) -> None:
        """End a worker that hangs, and lose it."""
        member.machine.agent.end_worker.remote(member.pid)
        ray.kill(member.actor)
        self.lose(member, why, "hung")

    def close(self) -> None:
        """End all actors and remove the tables."""
        for member in (*self.members.values(), *self._starting):
            ray.kill(member.actor)
        for machine in (*self.machines, *self._opening):
            machine.remove()

    def _open(self, node_id: str, cores: int) -> None:
        """Start the agent of a machine."""
        self._opened[node_id] += 1
        strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
        agent = _AGENT.options(scheduling_strategy=strategy).remote(self._setup, node_id[:8])
        started_s = time.monotonic()
        self._opening.append(Machine(node_id, agent, cores=cores, ready=agent.ready.remote(), started_s=started_s))

    def _spawn(self, machine: Machine, slot: int) -> Any:
        strategy = NodeAffinitySchedulingStrategy(machine.node_id, soft=False)
        return _WORKER.options(scheduling_strategy=strategy).remote(self._setup, machine.path, slot)

    def _begin(self, member: Member) -> None:
        """Start the process of a worker."""
        member.actor = self._spawn(member.machine, member.slot)
        member.ready, member.started_s = member.actor.ready.remote(), time.monotonic()
        self._starting.append(member)

    def _fill(self) -> None:
        """Start workers on free cores until there are as many as wanted."""
        for machine in self.machines:
            for slot in range(min(machine.cores, MAX_WORKERS)):
                if self._has_enough(len(self.members) + len(self._starting)):
                    return
                if slot not in machine.taken:
                    machine.taken.add(slot)
                    info = WorkerInfo(machine.name, next(self._worker_ids))
                    self._begin(Member(info, machine, slot, None))

    def _has_enough(self, workers: int) -> bool:
        return self._wanted is not None and workers >= self._wanted

    def _survey(self) -> None:
        """Give up machines that have left the cluster; use those that have joined."""
        cores = _cores()
        for machine in (*self.machines, *self._opening):
            if machine.node_id not in cores:
                self._give_up(machine, "it has left the cluster")
        for machine in [each for each in self._opening if time.monotonic() - each.started_s > _START_S]:
            self._give_up(machine, f"its agent has not started for {_START_S:.0f} s")
        present = {machine.node_id for machine in (*self.machines, *self._opening)}
        seats = sum(machine.cores - len(machine.taken) for machine in self.machines)
        seats += sum(machine.cores for machine in self._opening) + len(self.members) + len(self._starting)
        for node_id in cores.keys() - present:
            if not self._has_enough(seats) and self._opened[node_id] <= _RESPAWNS:
                self._open(node_id, cores[node_id])
                seats += cores[node_id]
        self._fill()

    def _take_machines(self) -> list[Machine]:
        """Take the machines whose agents are ready, and return them."""
        joined = []
        for machine in _ready(self._opening):
            try:
                machine.attach(*ray.get(machine.ready, timeout=_ANSWER_S))
            except RayError as error:
                self._give_up(machine, reason(error))
                continue
            self._opening.remove(machine)
            self.machines.append(machine)
            joined.append(machine)
        if joined:
            self._introduce()
        return joined

    def _introduce(self) -> None:
        """Tell each agent of all others: tables that keep entries for all exchange the deep ones."""
        if not self._exchanges:
            return
        for machine in self.machines:
            machine.agent.meet.remote([each.agent for each in self.machines if each is not machine])

    def _take_members(self) -> None:
        """Take the workers whose processes are ready."""
        for member in _ready(self._starting):
            self._starting.remove(member)
            try:
                member.pid = ray.get(member.ready, timeout=_ANSWER_S)
            except RayError as error:
                self.lose(member, reason(error))
                continue
            self.members[member.info.worker] = member
            self._events.append(WorkerJoined(member.info))
            LOGGER.info("worker=%d machine=%s pid=%d joined", member.info.worker, member.info.machine, member.pid)
        for member in [each for each in self._starting if time.monotonic() - each.started_s > _START_S]:
            self._starting.remove(member)
            ray.kill(member.actor)
            self.lose(member, f"it has not started for {_START_S:.0f} s")

    def _feel_pulse(self, machine: Machine, now_s: float) -> None:
        """Ask an agent how its workers are, and see to those that have died or hang."""
        if machine.pulse is None:
            if now_s >= machine.next_pulse_s:
                machine.next_pulse_s = now_s + _PULSE_S
                asked = [member for member in self.members.values() if member.machine is machine]
                machine.asked = [(member, member.pid) for member in asked]
                machine.pulse = machine.agent.pulse.remote([(member.slot, member.pid) for member in asked])
            return
        if not ray.wait([machine.pulse], timeout=0)[0]:
            if self._watch.quiet_s(machine.node_id, machine.pulse, now_s) > DEAD_AGENT_S:
                self._give_up(machine, f"its agent has not answered for {DEAD_AGENT_S:.0f} s")
            return
        try:
            signs = ray.get(machine.pulse, timeout=_ANSWER_S)
        except RayError as error:
            self._give_up(machine, reason(error))
            return
        machine.pulse = None
        for (member, pid), (progress, is_running) in zip(machine.asked, signs, strict=True):
            # It may have been replaced while the answer was on its way.
            if self.members.get(member.info.worker) is not member or member.pid != pid:
                continue
            if not member.calls:
                self._watch.forget(member)
                if not is_running:
                    self.lose(member, "its process has ended")
            elif self._watch.quiet_s(member, (progress, member.answered, member.pid), now_s) > self._hang_s:
                self.end(member, f"it has shown no progress for {self._hang_s:g} s")

    def _give_up(self, machine: Machine, why: str) -> None:
        """Lose a machine with all its workers. If its node lives, the next survey gives it another agent."""
        lost = [member for member in (*self.members.values(), *self._starting) if member.machine is machine]
        self._notice(f"machine {machine.name} is lost with {len(lost)} workers: {why}")
        for member in lost:
            ray.kill(member.actor)
            if member in self._starting:
                self._starting.remove(member)
            self._take_back(member)
        if machine in self._opening:
            self._opening.remove(machine)
        if machine in self.machines:
            self.machines.remove(machine)
            self._introduce()
        self._watch.forget(machine.node_id)
        self._next_survey_s = min(self._next_survey_s, time.monotonic() + _PULSE_S)
        machine.let_go()
        ray.kill(machine.agent)

    def _take_back(self, member: Member) -> None:
        """Take all tasks back that a worker has not answered, and strike it off."""
        lost = tuple(each for call in member.calls.values() for each in call.ids)
        member.calls.clear()
        self._watch.forget(member)
        if self.members.pop(member.info.worker, None) is not None:
            LOGGER.info("worker=%d machine=%s tasks=%d lost", member.info.worker, member.info.machine, len(lost))
            self._events.append(WorkerLost(member.info.worker, lost))


def _cores() -> dict[str, int]:
    """Return the cores of each machine of the cluster that lives and offers any."""
    nodes = [node for node in cast(Any, ray).nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    return {node["NodeID"]: int(node["Resources"]["CPU"]) for node in nodes}


def _ready(starting: Sequence[Any]) -> list[Any]:
    """Return those of starting machines or workers that are ready, or have failed."""
    if not starting:
        return []
    by_call = {each.ready: each for each in starting}
    return [by_call[call] for call in ray.wait(list(by_call), num_returns=len(by_call), timeout=0)[0]]
