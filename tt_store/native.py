"""Compiled memory primitives: the only file of `tt_store` that knows Numba.

Each primitive is a pair: an emitter of LLVM instructions for compiled callers, and a plain Python twin that runs
when the JIT is off (``NUMBA_DISABLE_JIT=1``), so that every kernel can be stepped through and measured for
coverage. Addresses are ``int64`` (user space lies below 2^63), so that they mix with offsets without a change of
type; words are ``uint64``.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

# OpenBLAS, which comes with NumPy, would start a thread a core that spins for a while; nothing here uses it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from llvmlite import binding, ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

JIT_DISABLED = bool(cast(Any, config).DISABLE_JIT)
"""True when ``NUMBA_DISABLE_JIT`` is set: everything then runs as plain Python."""

Word = Any
"""An unsigned 64-bit word: ``numpy.uint64`` to the compiler, any integer to plain Python."""

Integer = Any
"""A signed 64-bit integer: ``numpy.int64`` to the compiler, any integer to plain Python."""

_compile = cast(Any, njit)  # Its type knows only some of its options.
_emitting = cast(Any, cgutils)
_WORD = ir.IntType(64)
_WORD_MASK = 0xFFFF_FFFF_FFFF_FFFF
_CACHE_LINE = 64


def helper(function: Function) -> Function:
    """Compile a small function that only compiled code calls (no wrappers: less to compile).

    Parameters
    ----------
    function
        A function of integers and named tuples of integers; compiled at its first call, without the GIL.
    """
    return cast(Function, _compile(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def inlined(function: Function) -> Function:
    """Compile a small function and have LLVM inline it at each call: for `play`, where it measured 27 %."""
    options = {"nogil": True, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, _compile(**options)(function))


def spliced(function: Function) -> Function:
    """Have Numba put a function in the place of its calls before it compiles: for parts of a recursive function.

    Compiled functions cannot call each other in a circle: the linker does not find the second one.
    """
    return cast(Function, _compile(nogil=True, inline="always")(function))


def self_call(plain: Function) -> Function:
    """Turn a function of one line, which calls a compiled function, into that call where it stands in that function.

    Numba types a recursive call by typing the whole function anew, at each such call and in each of its rounds: in the
    kernel that took longer than all else. What is emitted here calls the function that it is emitted into.

    Parameters
    ----------
    plain
        Of arguments of the very types of the called function, an ``int64``; the plain Python twin calls that one.
    """
    if JIT_DISABLED:
        return plain

    called = plain.__code__.co_names[0]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if called not in builder.function.name:
            raise TypeError(f"{plain.__name__} stands in {builder.function.name}, not in {called}")
        convention, kinds = context.call_conv, signature.args
        status, result = convention.call_function(builder, builder.function, signature.return_type, kinds, values)
        with _emitting.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    def typed(_typing_context: Any, *kinds: Any) -> Any:
        return types.int64(*map(types.unliteral, kinds)), generate

    return cast(Function, intrinsic(_of_signature(typed, plain)))


def _of_signature(typed: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Give a typing function the name and the parameters of the plain one: Numba reads their number there."""
    names = ("typing_context", *inspect.signature(plain).parameters)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    typed.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    typed.__name__ = typed.__qualname__ = plain.__name__
    typed.__doc__ = plain.__doc__
    return typed


def entry(function: Function) -> Function:
    """Compile a function that Python calls, without the GIL, in memory only."""
    return cast(Function, njit(nogil=True)(function))


def _primitive(result: Any, arguments: tuple[Any, ...], emit: Callable[..., Any]) -> Callable[[Function], Function]:
    """Pair an LLVM emitter with the decorated plain Python twin.

    Parameters
    ----------
    result, arguments
        Numba types; the callers' values are cast to them.
    emit
        ``emit(builder, *values) -> value`` of the instructions.
    """

    def pair(plain: Function) -> Function:
        if JIT_DISABLED:
            return plain

        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return emit(builder, *values)

        def typed(_typing_context: Any, *_kinds: Any) -> Any:
            return result(*arguments), generate

        return cast(Function, intrinsic(_of_signature(typed, plain)))

    return pair


def word_primitive(emit: Callable[..., Any], arguments: int) -> Callable[[Function], Function]:
    """Pair an LLVM emitter of a function of 1, 2, 3 or 6 words, which returns a word, with its plain Python twin.

    For games whose rules are fastest by instructions that work on many words at once: see `tt_store.lanes`.
    """
    return _primitive(types.uint64, (types.uint64,) * arguments, emit)


def int_primitive(emit: Callable[..., Any], arguments: int) -> Callable[[Function], Function]:
    """Pair an LLVM emitter of a function of so many signed words, such as addresses, with its plain Python twin."""
    return _primitive(types.int64, (types.int64,) * arguments, emit)


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _WORD.as_pointer())


def _emit_read(builder: Any, address: Any) -> Any:
    return builder.load(_pointer(builder, address), align=8)


def _emit_write(builder: Any, address: Any, value: Any) -> Any:
    builder.store(value, _pointer(builder, address), align=8)
    return ir.Constant(ir.IntType(64), 0)


def _emit_read_short(builder: Any, address: Any) -> Any:
    short = builder.load(builder.inttoptr(address, ir.IntType(16).as_pointer()), align=2)
    return builder.sext(short, _WORD)


def _emit_write_short(builder: Any, address: Any, value: Any) -> Any:
    builder.store(builder.trunc(value, ir.IntType(16)), builder.inttoptr(address, ir.IntType(16).as_pointer()), align=2)
    return ir.Constant(ir.IntType(64), 0)


def _emit_atomic_read(builder: Any, address: Any) -> Any:
    return builder.load_atomic(_pointer(builder, address), "monotonic", 8)


def _emit_atomic_write(builder: Any, address: Any, value: Any) -> Any:
    builder.store_atomic(value, _pointer(builder, address), "monotonic", 8)
    return ir.Constant(ir.IntType(64), 0)


def _emit_atomic_add(builder: Any, address: Any, value: Any) -> Any:
    return builder.atomic_rmw("add", _pointer(builder, address), value, "monotonic")


def _emit_compare_exchange(builder: Any, address: Any, expected: Any, value: Any) -> Any:
    # Release: whoever reads the new word sees all that we wrote before it.
    pair = builder.cmpxchg(_pointer(builder, address), expected, value, "acq_rel", "monotonic")
    return builder.zext(builder.extract_value(pair, 1), _WORD)


def _emit_prefetch(builder: Any, address: Any) -> Any:
    i32 = ir.IntType(32)
    byte_pointer = ir.IntType(8).as_pointer()
    signature = ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
    prefetch_intrinsic = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], signature)
    # Read (0), keep in all cache levels (3), data cache (1).
    builder.call(prefetch_intrinsic, [builder.inttoptr(address, byte_pointer), i32(0), i32(3), i32(1)])
    return ir.Constant(ir.IntType(64), 0)


def _emit_multiply_high(builder: Any, left: Any, right: Any) -> Any:
    wide = ir.IntType(128)
    product = builder.mul(builder.zext(left, wide), builder.zext(right, wide))
    return builder.trunc(builder.lshr(product, wide(64)), _WORD)


def _emit_count_ones(builder: Any, word: Any) -> Any:
    return builder.ctpop(word)


def _emit_swap_bytes(builder: Any, word: Any) -> Any:
    return builder.bswap(word)


def _emit_trailing_zeros(builder: Any, word: Any) -> Any:
    return builder.cttz(word, ir.IntType(1)(0))


_turn = threading.Lock()
"""What makes one step of several for threads of plain Python."""

_libc = ctypes.CDLL(None)


def _emit_libc(name: str) -> Callable[..., Any]:
    """Return an emitter of a call of a C library function that takes an address and returns an ``int``."""
    symbol = f"rootsplit_{name}"
    # Registered when this module is imported: a missing symbol would crash code that comes from the disk.
    binding.add_symbol(symbol, ctypes.cast(getattr(_libc, name), ctypes.c_void_p).value)

    def emit(builder: Any, address: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        signature = ir.FunctionType(ir.IntType(32), [byte_pointer])
        function = builder.module.globals.get(symbol) or ir.Function(builder.module, signature, symbol)
        return builder.sext(builder.call(function, [builder.inttoptr(address, byte_pointer)]), ir.IntType(64))

    return emit


def _as_signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


@_primitive(types.int64, (types.int64,), _emit_read)
def read_int(address: int) -> int:
    """Read the signed 64-bit integer at an address that no other process writes."""
    return ctypes.c_int64.from_address(int(address)).value


@_primitive(types.uint64, (types.int64,), _emit_read)
def read_word(address: int) -> Word:
    """Read the unsigned 64-bit word at an address that no other process writes."""
    return ctypes.c_uint64.from_address(int(address)).value


@_primitive(types.int64, (types.int64, types.int64), _emit_write)
def write_int(address: int, value: int) -> int:
    """Write a signed 64-bit integer at an address that no other process reads; returns 0."""
    ctypes.c_int64.from_address(int(address)).value = int(value)
    return 0


@_primitive(types.int64, (types.int64,), _emit_read_short)
def read_short(address: int) -> int:
    """Read the signed 16-bit integer at an address that no other process writes."""
    return ctypes.c_int16.from_address(int(address)).value


@_primitive(types.int64, (types.int64, types.int64), _emit_write_short)
def write_short(address: int, value: int) -> int:
    """Write a signed 16-bit integer at an address that no other process reads; returns 0."""
    ctypes.c_int16.from_address(int(address)).value = int(value)
    return 0


@_primitive(types.int64, (types.int64,), _emit_atomic_read)
def atomic_read_int(address: int) -> int:
    """Read a signed word that others write: never torn, never hoisted out of a loop."""
    return ctypes.c_int64.from_address(int(address)).value


@_primitive(types.int64, (types.int64, types.int64), _emit_atomic_write)
def atomic_write_int(address: int, value: int) -> int:
    """Write a signed word that others read, in one piece; returns 0."""
    ctypes.c_int64.from_address(int(address)).value = int(value)
    return 0


@_primitive(types.uint64, (types.int64,), _emit_atomic_read)
def atomic_read_word(address: int) -> Word:
    """Read an unsigned word that others write: never torn, never hoisted out of a loop."""
    return ctypes.c_uint64.from_address(int(address)).value


@_primitive(types.int64, (types.int64, types.uint64), _emit_atomic_write)
def atomic_write_word(address: int, word: Word) -> int:
    """Write an unsigned word that others read, in one piece; returns 0."""
    ctypes.c_uint64.from_address(int(address)).value = int(word) & _WORD_MASK
    return 0


@_primitive(types.int64, (types.int64, types.int64), _emit_atomic_add)
def atomic_add_int(address: int, value: int) -> int:
    """Add to a signed word that others change too, as one step; returns what it was before."""
    with _turn:
        word = ctypes.c_int64.from_address(int(address))
        before = word.value
        word.value = before + int(value)
        return before


@_primitive(types.int64, (types.int64, types.int64, types.int64), _emit_compare_exchange)
def compare_exchange(address: int, expected: int, value: int) -> int:
    """Write a signed word if it still is what was expected, as one step; returns 1 if it was, else 0.

    Whoever then reads the word sees everything that was written before it: this is how what was built in private is
    made known.
    """
    with _turn:
        word = ctypes.c_int64.from_address(int(address))
        if word.value != int(expected):
            return 0
        word.value = int(value)
        return 1


@_primitive(types.int64, (types.int64,), _emit_prefetch)
def prefetch(address: int) -> int:
    """Ask for the cache line at an address; never faults; returns 0."""
    return 0


@_primitive(types.uint64, (types.uint64, types.uint64), _emit_multiply_high)
def multiply_high(left: Word, right: Word) -> Word:
    """Return the high 64 bits of the 128-bit product: maps a hash evenly onto any range (Lemire 2019)."""
    return (int(left) * int(right)) >> 64


@_primitive(types.int64, (types.uint64,), _emit_count_ones)
def count_ones(word: Word) -> int:
    """Return the number of bits set, 0-64."""
    return int(word).bit_count()


@_primitive(types.int64, (types.uint64,), _emit_trailing_zeros)
def trailing_zeros(word: Word) -> int:
    """Return the number of zero bits below the lowest one, 64 for a zero word."""
    word = int(word)
    return (word & -word).bit_length() - 1 if word else 64


@_primitive(types.uint64, (types.uint64,), _emit_swap_bytes)
def swap_bytes(word: Word) -> Word:
    """Return the word with its eight bytes in the reverse order."""
    import numpy as np

    return np.uint64(int.from_bytes(int(word).to_bytes(8, "little"), "big"))


@_primitive(types.int64, (types.uint64,), lambda _builder, word: word)
def as_int(word: Word) -> int:
    """Take the bits of an unsigned word for a signed integer."""
    return _as_signed(int(word))


@_primitive(types.uint64, (types.int64,), lambda _builder, value: value)
def as_word(value: Integer) -> Word:
    """Take the bits of a signed integer for an unsigned word."""
    if JIT_DISABLED:
        import numpy as np

        return np.uint64(int(value) & _WORD_MASK)
    return int(value) & _WORD_MASK


@_primitive(types.int64, (types.int64,), _emit_libc("sem_post"))
def post_semaphore(address: int) -> int:
    """Post the POSIX semaphore at an address; returns 0."""
    return int(_libc.sem_post(ctypes.c_void_p(int(address))))


@_primitive(types.int64, (types.int64,), _emit_libc("sem_wait"))
def wait_semaphore(address: int) -> int:
    """Wait on the POSIX semaphore at an address; returns 0, or -1 if a signal came first."""
    return int(_libc.sem_wait(ctypes.c_void_p(int(address))))


_tables: dict[str, Any] = {}
"""The memory of each constant table, for the life of the process."""


def constant_table(name: str, words: Any) -> Callable[[], int]:
    """Make an array readable to compiled code, and return a function that returns its address.

    Compiled code refers to it by a linker symbol: a frozen global array would be copied into each function. Call this
    when a module is imported: a missing symbol would crash code that comes from the disk. The symbol is named by the
    array's content, so that such code never reads another table.

    Parameters
    ----------
    name
        For whoever reads the machine code.
    words
        A NumPy array of 64-bit integers.
    """
    content = words.tobytes()
    symbol = f"rootsplit_{name}_{hashlib.blake2b(content, digest_size=8).hexdigest()}"
    if symbol not in _tables:
        _tables[symbol] = ctypes.create_string_buffer(len(content) + _CACHE_LINE)
    address = -(-ctypes.addressof(_tables[symbol]) // _CACHE_LINE) * _CACHE_LINE
    ctypes.memmove(address, content, len(content))
    binding.add_symbol(symbol, address)

    def plain() -> int:
        return address

    if JIT_DISABLED:
        return plain

    def generate(_context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        table = builder.module.globals.get(symbol) or ir.GlobalVariable(builder.module, ir.IntType(8), symbol)
        return builder.ptrtoint(table, ir.IntType(64))

    def typed(_typing_context: Any) -> Any:
        return types.int64(), generate

    return cast(Callable[[], int], intrinsic(typed))
