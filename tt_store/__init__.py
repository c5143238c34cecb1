"""The lockless shared-memory transposition table: knows no game and no Ray.

Light to import. What needs Numba or NumPy is imported by its module: `tt_store.table` (``probe`` and ``store``, for
compiled callers), `tt_store.native` (the primitives below them) and `tt_store.snapshot` (``save`` and ``load``).
"""

from tt_store.errors import RootsplitError, RunFailedError, TableError
from tt_store.reclaim import Leftover, leftovers, reclaim
from tt_store.segment import Segment

__all__ = [
    "Leftover",
    "RootsplitError",
    "RunFailedError",
    "Segment",
    "TableError",
    "leftovers",
    "reclaim",
]
