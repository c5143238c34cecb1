"""The known experiment on random trees: how much each variant leaves out."""

from __future__ import annotations

import pytest
from benchmarks.bench_experiment import (
    ALL_NODES,
    LEAST_LEAVES,
    LEAST_NODES,
    ORDER,
    TREES,
    Column,
    run_experiment,
    table_of,
)


@pytest.fixture(scope="module", params=[ORDER, 100], ids=lambda order: f"order {order}")
def columns(request: pytest.FixtureRequest) -> dict[str, Column]:
    row = run_experiment(request.param)
    print(f"\norder {request.param} %\n{table_of(row)}")
    return {column.variant: column for column in row}


def test_the_bounds_are_the_known_ones() -> None:
    assert (ALL_NODES, LEAST_LEAVES, LEAST_NODES) == (299_593, 1_023, 1_820)


def test_plain_negamax_visits_every_node(columns: dict[str, Column]) -> None:
    assert columns["negamax"].nodes == (ALL_NODES,) * TREES


def test_all_variants_agree(columns: dict[str, Column]) -> None:
    assert {column.scores for column in columns.values()} == {columns["negamax"].scores}


def test_fail_hard_and_fail_soft_visit_the_same_nodes(columns: dict[str, Column]) -> None:
    # Without a table a bound outside the window is of no use.
    assert columns["fail-hard"].nodes == columns["fail-soft"].nodes


def test_ordering_by_the_static_estimate_cuts_the_nodes_fivefold(columns: dict[str, Column]) -> None:
    unordered, ordered = columns["fail-soft"], columns["fail-soft, ordered"]
    assert unordered.mean_nodes / ordered.mean_nodes >= 4
    assert columns["PVS"].mean_nodes / columns["PVS, ordered"].mean_nodes >= 4


def test_no_variant_beats_the_minimal_tree(columns: dict[str, Column]) -> None:
    for column in columns.values():
        if column.leaves is None:
            assert min(column.nodes) >= LEAST_NODES, column
        else:
            assert min(column.leaves) >= LEAST_LEAVES, column
