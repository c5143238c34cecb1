"""The strategies by the names that users give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cluster.dynamic_splitter import DynamicSplitter
from cluster.max_n_splitter import MaxNSplitter
from cluster.root_splitter import RootSplitter, SingleSplitter
from cluster.split_settings import SplitSettings
from cluster.splitter import Root, Splitter
from cluster.team_splitter import TeamSplitter
from search.algorithms import SPLIT_ANYWHERE
from search.flags import Algorithm

DYNAMIC, ROOT, SINGLE, TEAM = "dynamic", "root", "single", "team"
TREE = "tree"
"""Of Monte Carlo tree search: a machine's workers grow one tree, machines grow one each."""

Strategy = Callable[[Root, Iterator[int], SplitSettings], Splitter]

STRATEGIES: dict[str, Strategy] = {
    DYNAMIC: DynamicSplitter,
    ROOT: lambda root, task_ids, _settings: RootSplitter(root, task_ids),
    SINGLE: lambda root, task_ids, _settings: SingleSplitter(root, task_ids),
    TEAM: TeamSplitter,
}
"""`dynamic` splits wherever work is wanted, `root` at the root only, `single` not at all; with `team` the workers of a
machine search the same, and only teams split."""

STRATEGY_NAMES = (*STRATEGIES, TREE)


def make_splitter(
    strategy: str, algorithm: Algorithm, root: Root, task_ids: Iterator[int], settings: SplitSettings
) -> Splitter:
    """Return a strategy for a root; splitting the root of max^n has nothing to do with windows."""
    if (strategy, algorithm) == (ROOT, Algorithm.MAX_N):
        return MaxNSplitter(root, task_ids)
    return STRATEGIES[strategy](root, task_ids, settings)


def best_strategy(algorithm: Algorithm, workers: int) -> str:
    """Return the strategy that is quickest for so many workers."""
    return SINGLE if workers == 1 else strategies_of(algorithm)[0]


def strategies_of(algorithm: Algorithm) -> tuple[str, ...]:
    """Return the strategies that split a search of an algorithm."""
    if algorithm == Algorithm.MCTS:
        return (TREE,)
    return (TEAM, DYNAMIC, ROOT) if algorithm in SPLIT_ANYWHERE else (ROOT,)
