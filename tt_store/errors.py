"""The one family of errors that a user can cause."""

from __future__ import annotations


class RootsplitError(Exception):
    """Base of all errors whose text is one sentence for the user: what, where, why, what to do."""

    exit_code = 2
    """What the command line returns: 2 for bad input, 1 for a run that failed."""


class RunFailedError(RootsplitError):
    """A run that began well and could not be finished."""

    exit_code = 1


class TableError(RootsplitError):
    """A table, its segment or its snapshot cannot be made, opened or trusted."""
