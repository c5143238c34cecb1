"""Vectors for games' rules: instructions that work on several words, or on rows of shorts, at once.

Functions whose first parameter is a `builder` emit parts of a primitive (see `tt_store.native.word_primitive`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from tt_store.layout import SHORT_BYTES
from tt_store.native import int_primitive

_WORD, _INT, _SHORT = ir.IntType(64), ir.IntType(32), ir.IntType(16)
_SHORTS = 16
"""Lanes of a vector of shorts: 256 bits."""


def lanes_of(words: Sequence[int]) -> Any:
    """Return a constant vector of 64-bit words for an emitter."""
    return ir.Constant(ir.VectorType(_WORD, len(words)), [ir.Constant(_WORD, word) for word in words])


def spread(builder: Any, word: Any, lanes: int) -> Any:
    """Emit a vector whose lanes all hold a word."""
    kind = ir.VectorType(_WORD, lanes)
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), word, ir.IntType(32)(0))
    same = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [ir.IntType(32)(0)] * lanes)
    return builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), same)


def rotate_lanes(builder: Any, vector: Any, steps: Any) -> Any:
    """Emit the rotation of each lane to the left by the bits that the same lane of a constant vector says."""
    name = f"llvm.fshl.v{vector.type.count}i64"
    signature = ir.FunctionType(vector.type, [vector.type] * 3)
    rotate = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
    return builder.call(rotate, [vector, vector, steps])


def load_lanes(builder: Any, address: Any, lanes: int) -> Any:
    """Emit the load of words that follow each other from an address on, a multiple of their size."""
    kind = ir.VectorType(_WORD, lanes)
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=lanes * 8)


def count_leading_zeros(builder: Any, vector: Any) -> Any:
    """Emit the number of zero bits above the highest one in each lane; void where a lane is zero."""
    name = f"llvm.ctlz.v{vector.type.count}i64"
    signature = ir.FunctionType(vector.type, [vector.type, ir.IntType(1)])
    leading = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
    return builder.call(leading, [vector, ir.IntType(1)(1)])


def join_lanes(builder: Any, vector: Any) -> Any:
    """Emit the word of all bits that any lane has."""
    name = f"llvm.vector.reduce.or.v{vector.type.count}i64"
    signature = ir.FunctionType(_WORD, [vector.type])
    join = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
    return builder.call(join, [vector])


def join_words(builder: Any, words: Sequence[Any]) -> Any:
    """Emit one wide integer of some words, the lowest first."""
    kind = ir.IntType(64 * len(words))
    wide = builder.zext(words[0], kind)
    for index, word in enumerate(words[1:], 1):
        wide = builder.or_(wide, builder.shl(builder.zext(word, kind), kind(64 * index)))
    return wide


class RowPrimitives(NamedTuple):
    """What compiled code does with rows of shorts at addresses; see `row_primitives`."""

    add: Callable[[int, int], int]
    """``add(row, other)`` adds a row to another; returns 0."""
    subtract: Callable[[int, int], int]
    """``subtract(row, other)`` takes a row away from another; returns 0."""
    squared_product: Callable[[int, int, int], int]
    """``squared_product(row, bias, weights)`` sums weights times squares of `row + bias`, limited to a unit."""


def _shorts_at(builder: Any, address: Any, index: int) -> Any:
    """Emit the pointer to a vector of shorts, the index-th from an address on."""
    place = builder.add(address, _WORD(index * _SHORTS * SHORT_BYTES))
    return builder.inttoptr(place, ir.VectorType(_SHORT, _SHORTS).as_pointer())


def _load_shorts(builder: Any, address: Any, index: int) -> Any:
    return builder.load(_shorts_at(builder, address, index), align=SHORT_BYTES)


def _limited(builder: Any, vector: Any, unit: int) -> Any:
    """Emit the vector with each lane brought into 0..unit."""
    least, most = (ir.Constant(vector.type, [_SHORT(bound)] * _SHORTS) for bound in (0, unit))
    raised = builder.select(builder.icmp_signed(">", vector, least), vector, least)
    return builder.select(builder.icmp_signed("<", raised, most), raised, most)


def _sum_of(builder: Any, vector: Any) -> Any:
    """Emit the sum of a vector's lanes."""
    name = f"llvm.vector.reduce.add.v{vector.type.count}i32"
    signature = ir.FunctionType(_INT, [vector.type])
    reduce = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
    return builder.call(reduce, [vector])


def row_primitives(length: int, unit: int) -> RowPrimitives:
    """Return primitives for rows of so many shorts.

    Parameters
    ----------
    length
        Shorts in a row, a multiple of 16.
    unit
        Where squared products limit their lanes, at most 255; a weight is at most 127, so that a limited lane times its
        weight is a short.
    """
    vectors = range(length // _SHORTS)

    def emit_change(operation: str) -> Callable[..., Any]:
        def emit(builder: Any, row: Any, other: Any) -> Any:
            for index in vectors:
                pair = _load_shorts(builder, row, index), _load_shorts(builder, other, index)
                builder.store(getattr(builder, operation)(*pair), _shorts_at(builder, row, index), align=SHORT_BYTES)
            return _WORD(0)

        return emit

    def emit_product(builder: Any, row: Any, bias: Any, weights: Any) -> Any:
        wide = ir.VectorType(_INT, _SHORTS)
        total = ir.Constant(wide, None)
        for index in vectors:
            lanes = builder.add(_load_shorts(builder, row, index), _load_shorts(builder, bias, index))
            lanes = _limited(builder, lanes, unit)
            weighted = builder.mul(lanes, _load_shorts(builder, weights, index))
            total = builder.add(total, builder.mul(builder.sext(weighted, wide), builder.sext(lanes, wide)))
        return builder.sext(_sum_of(builder, total), _WORD)

    def shorts(address: int) -> NDArray[np.int16]:
        return np.ctypeslib.as_array((ctypes.c_int16 * length).from_address(int(address)))

    @int_primitive(emit_change("add"), 2)
    def add(row: int, other: int) -> int:
        shorts(row)[:] += shorts(other)
        return 0

    @int_primitive(emit_change("sub"), 2)
    def subtract(row: int, other: int) -> int:
        shorts(row)[:] -= shorts(other)
        return 0

    @int_primitive(emit_product, 3)
    def squared_product(row: int, bias: int, weights: int) -> int:
        lanes = np.clip(shorts(row) + shorts(bias), 0, unit).astype(np.int64)
        return int((lanes * lanes) @ shorts(weights))

    return RowPrimitives(add, subtract, squared_product)
