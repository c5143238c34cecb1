"""Rows of shorts, beside NumPy: also where a sum runs over, and where lanes lie outside the unit."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import run_without_jit
from numba import njit
from numpy.typing import NDArray

from tt_store.lanes import row_primitives
from tt_store.native import JIT_DISABLED

UNIT = 255
SHORT = np.iinfo(np.int16)


def rows(length: int, seed: int) -> list[NDArray[np.int16]]:
    """Return a row, a bias for it, and weights of a byte."""
    rng = np.random.default_rng(seed)
    row = rng.integers(SHORT.min // 2, SHORT.max // 2, length).astype(np.int16)
    row[: length // 2] //= 64
    return [row, rng.integers(-300, 300, length).astype(np.int16), rng.integers(-127, 128, length).astype(np.int16)]


@pytest.mark.parametrize("length", [16, 48, 128])
def test_rows_are_added_subtracted_and_multiplied(length: int) -> None:
    add, subtract, squared_product = row_primitives(length, UNIT)

    @njit
    def change(row: int, other: int, is_added: bool) -> int:
        return add(row, other) if is_added else subtract(row, other)

    @njit
    def product(row: int, bias: int, weights: int) -> int:
        return squared_product(row, bias, weights)

    for seed in range(50):
        row, bias, weights = rows(length, seed)
        before = row.copy()
        assert change(row.ctypes.data, bias.ctypes.data, True) == 0
        assert np.array_equal(row, before + bias)
        lanes = np.clip(before.astype(int) + bias, 0, UNIT)
        assert change(row.ctypes.data, bias.ctypes.data, False) == 0
        assert np.array_equal(row, before)
        assert product(row.ctypes.data, bias.ctypes.data, weights.ctypes.data) == int((lanes**2) @ weights.astype(int))
    full = np.full(length, SHORT.max, np.int16)
    change(full.ctypes.data, np.ones(length, np.int16).ctypes.data, True)
    assert (full == SHORT.min).all()


@pytest.mark.skipif(JIT_DISABLED, reason="this is the run without the compiler")
def test_the_same_without_the_compiler() -> None:
    run = run_without_jit(__file__, "error")
    assert run.returncode == 0, run.stdout
