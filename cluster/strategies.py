"""The strategies by the names that users give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cluster.dynamic_splitter import DynamicSplitter
from cluster.root_splitter import RootSplitter, SingleSplitter
from cluster.splitter import Root, Splitter

DYNAMIC, ROOT, SINGLE = "dynamic", "root", "single"

STRATEGIES: dict[str, Callable[[Root, Iterator[int]], Splitter]] = {
    DYNAMIC: DynamicSplitter,
    ROOT: RootSplitter,
    SINGLE: SingleSplitter,
}
"""`dynamic` splits wherever work is wanted, `root` at the root only, `single` not at all."""
