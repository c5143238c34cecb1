"""The one family of errors that a user can cause."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class RootsplitError(Exception):
    """Base of all errors whose text is one sentence for the user: what, where, why, what to do."""

    exit_code = 2
    """What the command line returns: 2 for bad input, 1 for a run that failed."""


class RunFailedError(RootsplitError):
    """A run that began well and could not be finished."""

    exit_code = 1


class TableError(RootsplitError):
    """A table, its segment or its snapshot cannot be made, opened or trusted."""


@contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """Turn what the system says against a write, such as that the disk is full, into a sentence.

    Parameters
    ----------
    path
        Of a file with which the same command goes on; None for one that nobody sees.

    Raises
    ------
    RunFailedError
        In the place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        # Arrow adds words of its own to the system's.
        reason = os.strerror(error.errno) if error.errno else str(error)
        if path is None:
            raise RunFailedError(f"cannot write a temporary file: {reason}") from None
        raise RunFailedError(
            f"cannot write {path}: {reason}; what is there is kept, and the same command goes on from it"
        ) from None
