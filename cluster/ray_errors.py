"""What goes wrong on Ray, in one sentence each: Ray tells it in many lines."""

from __future__ import annotations

import re
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from search.rules import RulesError
from tt_store.errors import RootsplitError, RunFailedError, TableError


class ClusterError(RootsplitError):
    """A cluster that cannot be reached or does not fit."""


_USER_ERRORS: dict[str, type[RootsplitError]] = {
    kind.__name__: kind for kind in (ClusterError, RulesError, RunFailedError, TableError)
}
"""What a user may have caused, by the name in which it comes from an actor's start."""


def get(calls: list[Any], what: str, timeout_s: float) -> list[Any]:
    """Return what calls bring that are part of a start.

    Raises
    ------
    RootsplitError
        An actor's own, if it is one of ours; else `RunFailedError`, which names what has failed.
    """
    try:
        return list(ray.get(calls, timeout=timeout_s))
    except GetTimeoutError:
        raise RunFailedError(f"{what} has not answered for {timeout_s:.0f} s") from None
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, RootsplitError):
            raise cause from None
        raise RunFailedError(f"{what} failed to start: {type(cause).__name__}: {cause}") from error
    except RayActorError as error:
        raise _startup_error(what, error) from None


def reason(error: Exception) -> str:
    """Return one line for what Ray tells in many: an actor's own error, else Ray's first line."""
    own = _own_error(error)
    lines = str(error).split("\n", 1)
    return own[1] if own else lines[0].strip() or type(error).__name__


def _startup_error(what: str, error: RayActorError) -> RootsplitError:
    """Return an actor's own error if its start failed with one of ours, else Ray's first line."""
    own = _own_error(error)
    if own is None:
        return RunFailedError(f"{what} died: {reason(error)}")
    name, sentence = own
    if name == "ModuleNotFoundError":
        return ClusterError(
            f"a machine of the cluster lacks what this program needs, install the same there: {sentence}"
        )
    return _USER_ERRORS.get(name, RunFailedError)(sentence)


def _own_error(error: Exception) -> tuple[str, str] | None:
    """Return the class's name and the text of the Python error that ended an actor's start: Ray tells them last."""
    last = str(error).strip().rpartition("\n")[2]
    found = re.fullmatch(r"(?:\w+\.)*(\w+Error): (.+)", last.strip())
    return (found[1], found[2]) if found else None
