"""The check that every configuration found the value that the sequential search found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster.scaling.plan import BATCH, Problem
from cluster.scaling.records import RunRecord
from cluster.strategies import SINGLE
from tt_store.errors import RunFailedError


@dataclass(frozen=True)
class Difference:
    """A run that found another value than the sequential search."""

    record: RunRecord
    expected: int
    found: int

    @property
    def text(self) -> str:
        """One clause: who found what."""
        configuration, problem = self.record.configuration, self.record.problem
        return (
            f"problem {problem.label}: {configuration.label}, {configuration.workers} workers found {self.found},"
            f" the sequential search {self.expected}"
        )


def reference(records: Iterable[RunRecord], problem: Problem, is_batch: bool) -> RunRecord | None:
    """Return the sequential run of a problem that all others must agree with: the first that was made."""
    for record in records:
        configuration = record.configuration
        is_sequential = configuration.strategy == (BATCH if is_batch else SINGLE) and configuration.workers == 1
        if record.problem == problem and is_sequential:
            return record
    return None


def difference(record: RunRecord, expected: RunRecord) -> Difference | None:
    """Return how a run differs from the sequential one, None if it does not."""
    wanted = expected.scores if record.configuration.strategy == BATCH else expected.scores * len(record.scores)
    for right, found in zip(wanted, record.scores, strict=True):
        if right != found:
            return Difference(record, right, found)
    return None


def differences(records: Sequence[RunRecord]) -> list[Difference]:
    """Return all runs that differ from their sequential ones, as far as these have been made."""
    expected: dict[tuple[Problem, bool], RunRecord | None] = {}
    found = []
    for record in records:
        is_batch = record.configuration.strategy == BATCH
        key = record.problem, is_batch
        if key not in expected:
            expected[key] = reference(records, *key)
        right = expected[key]
        if right is not None and (one := difference(record, right)) is not None:
            found.append(one)
    return found


def check(records: Sequence[RunRecord], exact_depth: bool, is_selective: bool) -> list[Difference]:
    """Return the differences of runs that may differ.

    With a table, values of a fixed depth may differ: a deeper entry says more. In exact-depth mode they may not, nor
    may the values of solved positions, but for a selective search, whose mates need not be the shortest.

    Raises
    ------
    RunFailedError
        If a run that must not differ does.
    """
    allowed = []
    for one in differences(records):
        both = [one.record, reference(records, one.record.problem, one.record.configuration.strategy == BATCH)]
        is_proved = not is_selective and all(record is not None and record.is_solved for record in both)
        if exact_depth or is_proved:
            raise RunFailedError(f"a wrong value: {one.text}")
        allowed.append(one)
    return allowed
