"""Many workers on one search, many searches on one cluster: splitter, executors, session, batches, command line."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.batch.library import analyse as analyse

__all__ = ["analyse"]


def __getattr__(name: str) -> Any:
    """Import what a program asks for by name, so that the command line starts without it."""
    if name == "analyse":
        from cluster.batch.library import analyse

        return analyse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
