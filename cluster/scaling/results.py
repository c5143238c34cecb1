"""The file of an experiment: a line of JSON for what was asked, then one for each thing that was found out.

A line is written in one piece and forced to the disk, so that whatever ends the program costs at most the run that was
under way; half a line at the end, of a machine that lost its power, is cut off when the experiment goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from cluster.scaling.positions import PositionLine
from cluster.scaling.presets import Design
from cluster.scaling.records import Costs, RunRecord
from cluster.simulated_executor import ClusterModel
from tt_store.errors import RootsplitError, writing

FILE_NAME = "results.jsonl"
_EXPERIMENT, _SESSION, _DEPTHS, _COSTS, _MODEL, _RUN = "experiment", "session", "depths", "costs", "model", "run"


class ResultsError(RootsplitError):
    """A file of results that is another experiment's, or damaged."""


@dataclass(frozen=True)
class ModelUse:
    """The costs that a simulated cluster had."""

    imitated: str
    workers: int
    is_validation: bool
    model: ClusterModel


class Results:
    """What an experiment has found out, in memory and in its file.

    Parameters
    ----------
    folder
        Where the file is, or will be.
    design
        What is asked: the file of another design is refused.
    commit
        The program's, None if it is not known: runs of different programs do not belong into one experiment.
    restart
        Begin anew: the old file goes.

    Raises
    ------
    ResultsError
        If the folder holds another experiment, or its file is damaged.
    """

    def __init__(self, folder: Path, design: Design, commit: str | None, restart: bool = False) -> None:
        self.path = folder / FILE_NAME
        self.records: list[RunRecord] = []
        self.depths: dict[PositionLine, list[int]] = {}
        self.costs: dict[str, Costs] = {}
        self.models: list[ModelUse] = []
        self.sessions: list[dict[str, Any]] = []
        """When and on what the experiment was begun, and gone on with."""
        header = {"fingerprint": fingerprint(design), "commit": commit, "design": asdict(design)}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if restart:
                self.path.unlink(missing_ok=True)
            known = self._read() if self.path.exists() else []
        except OSError as error:
            raise ResultsError(f"{self.path} cannot be used: {error.strerror}") from None
        if known:
            _check_header(self.path, known[0], header)
        for number, row in enumerate(known[1:], 2):
            try:
                self._take(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise ResultsError(f"{self.path}, line {number} is no row of an experiment: {error!r}") from None
        try:
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise ResultsError(f"{self.path} cannot be written: {error.strerror}") from None
        if not known:
            self._append(_EXPERIMENT, header)

    def __enter__(self) -> Results:
        """Return the results."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._file.close()

    def begin(self, environment: Mapping[str, Any]) -> None:
        """Note when, where and how the experiment is begun, or gone on with."""
        self.sessions.append(dict(environment))
        self._append(_SESSION, dict(environment))

    def add_depths(self, position: PositionLine, depths: list[int]) -> None:
        """Note the depths that a position is searched to."""
        self.depths[position] = depths
        self._append(_DEPTHS, {"position": asdict(position), "depths": depths})

    def add_costs(self, costs: Costs) -> None:
        """Note what an address costs."""
        self.costs[costs.address] = costs
        self._append(_COSTS, asdict(costs))

    def add_model(self, use: ModelUse) -> None:
        """Note what a simulated cluster is to cost, once."""
        if use not in self.models:
            self.models.append(use)
            self._append(_MODEL, asdict(use))

    def add(self, record: RunRecord) -> None:
        """Note a run."""
        self.records.append(record)
        self._append(_RUN, record.as_json())

    def _append(self, kind: str, row: Mapping[str, Any]) -> None:
        line = json.dumps({"kind": kind} | dict(row), ensure_ascii=False).encode() + b"\n"
        with writing(self.path):
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())

    def _read(self) -> list[dict[str, Any]]:
        """Return the file's rows; half a line at its end is cut off."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(self.path, len(whole))
        rows = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise ResultsError(f"{self.path}, line {number} is no object of JSON")
            rows.append(row)
        return rows

    def _take(self, row: dict[str, Any]) -> None:
        kind = row.pop("kind")
        if kind == _RUN:
            self.records.append(RunRecord.from_json(row))
        elif kind == _SESSION:
            self.sessions.append(row)
        elif kind == _DEPTHS:
            position = PositionLine(**row["position"] | {"moves": tuple(row["position"]["moves"])})
            self.depths[position] = list(row["depths"])
        elif kind == _COSTS:
            self.costs[row["address"]] = Costs(**row)
        elif kind == _MODEL:
            self.models.append(ModelUse(**row | {"model": ClusterModel(**row["model"])}))
        else:
            raise ValueError(f"unknown kind {kind!r}")


def fingerprint(design: Design) -> str:
    """Return a short hash of all that a design says."""
    return hashlib.sha256(json.dumps(asdict(design), sort_keys=True).encode()).hexdigest()[:16]


def _check_header(path: Path, known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    if known.get("kind") != _EXPERIMENT:
        raise ResultsError(f"{path} is no file of an experiment: give another folder")
    if known.get("fingerprint") != wanted["fingerprint"]:
        raise ResultsError(
            f"{path} holds another experiment (positions or options differ): give another folder, or --restart to"
            " replace it"
        )
    if known.get("commit") != wanted["commit"]:
        raise ResultsError(
            f"{path} was begun by commit {known.get('commit')}, and this is {wanted['commit']}: its runs cannot be"
            " compared; give another folder, or --restart to replace it"
        )
