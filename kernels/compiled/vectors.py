"""Moves of rows as single vector instructions, where LLVM's loops are too careful.

A loop over one row of an image (10 to 60 floats) that LLVM vectorizes runs its scalar
remainder most of the time. Measured for 56x56 floats, split by column parity: 2.5 us by
loops, 0.3 us here; 28 rows of 28 copied: 0.46 us and 0.07.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["JIT", "copy", "corners", "data", "split", "zip_rows"]

# keeps NaN and infinity as they are; sums may be taken in any order
JIT: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
}


def data(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Pointer to element `at` of a contiguous array."""
    proxy: Any = cgutils.create_struct_proxy
    made = proxy(kind)(context, builder, array)
    return builder.gep(made.data, [at])


@intrinsic
def _copy(typing: Any, into: Any, i: Any, source: Any, j: Any, count: Any) -> Any:
    """into[i : i + count] = source[j : j + count], both float32."""
    signature = types.void(into, i, source, j, count)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = data(context, builder, sig.args[0], args[0], args[1])
        origin = data(context, builder, sig.args[2], args[2], args[3])
        move: Any = cgutils.raw_memcpy
        move(builder, target, origin, args[4], 4)
        return context.get_dummy_value()

    return signature, generate


copy: Any = _copy


def _lanes(count: int) -> tuple[Any, Any, Any]:
    """Vector types of `count` and twice as many floats, and an integer type."""
    single = ir.FloatType()
    return (
        ir.VectorType(single, count),
        ir.VectorType(single, 2 * count),
        ir.IntType(32),
    )


def _mask(numbers: Any) -> Any:
    i32 = ir.IntType(32)
    return ir.Constant(ir.VectorType(i32, len(numbers)), [i32(k) for k in numbers])


def _splitter(count: int) -> Any:
    half, whole, _ = _lanes(count)

    @intrinsic
    def split_some(typing: Any, into: Any, i: Any, j: Any, source: Any, k: Any) -> Any:
        signature = types.void(into, i, j, source, k)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            origin = data(context, builder, sig.args[3], args[3], args[4])
            pairs = builder.load(builder.bitcast(origin, whole.as_pointer()), align=4)
            nothing = ir.Constant(whole, ir.Undefined)
            for first, at in ((0, args[1]), (1, args[2])):
                taken = _mask(range(first, 2 * count, 2))
                part = builder.shuffle_vector(pairs, nothing, taken)
                target = data(context, builder, sig.args[0], args[0], at)
                target = builder.bitcast(target, half.as_pointer())
                builder.store(part, target, align=4)
            return context.get_dummy_value()

        return signature, generate

    return split_some


def _zipper(count: int) -> Any:
    half, whole, _ = _lanes(count)

    @intrinsic
    def zip_some(typing: Any, into: Any, k: Any, source: Any, i: Any, j: Any) -> Any:
        signature = types.void(into, k, source, i, j)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            parts = []
            for at in args[3:]:
                origin = data(context, builder, sig.args[2], args[2], at)
                origin = builder.bitcast(origin, half.as_pointer())
                parts.append(builder.load(origin, align=4))
            order = [n for t in range(count) for n in (t, count + t)]
            pairs = builder.shuffle_vector(*parts, _mask(order))
            target = data(context, builder, sig.args[0], args[0], args[1])
            target = builder.bitcast(target, whole.as_pointer())
            builder.store(pairs, target, align=4)
            return context.get_dummy_value()

        return signature, generate

    return zip_some


def _corners(count: int) -> Any:
    half, whole, _ = _lanes(count)

    @intrinsic
    def some_corners(
        typing: Any, x: Any, i: Any, j: Any, best: Any, given: Any, k: Any, into: Any
    ) -> Any:
        signature = types.void(x, i, j, best, given, k, into)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def place(number: int, at: Any, kind: Any) -> Any:
                made = data(context, builder, sig.args[number], args[number], at)
                return builder.bitcast(made, kind.as_pointer())

            most = builder.load(place(3, args[5], half), align=4)
            d = builder.load(place(4, args[5], half), align=4)
            nothing, zero = ir.Constant(whole, ir.Undefined), ir.Constant(half, None)
            free: Any = None
            for at in args[1:3]:
                pairs = builder.load(place(0, at, whole), align=4)
                parts = []
                for first in (0, 1):
                    taken = _mask(range(first, 2 * count, 2))
                    value = builder.shuffle_vector(pairs, nothing, taken)
                    hit = builder.fcmp_ordered("==", value, most)
                    if free is None:
                        free = builder.not_(hit)
                    else:
                        hit = builder.and_(hit, free)
                        free = builder.xor(free, hit)
                    parts.append(builder.select(hit, d, zero))
                order = [n for t in range(count) for n in (t, count + t)]
                made = builder.shuffle_vector(*parts, _mask(order))
                builder.store(made, place(6, at, whole), align=4)
            return context.get_dummy_value()

        return signature, generate

    return some_corners


_corners8, _corners4 = _corners(8), _corners(4)


@njit(**JIT)
def corners(
    x: Any, i: Any, j: Any, best: Any, given: Any, k: Any, into: Any, pairs: Any
) -> None:
    """Each of `pairs` windows of 2 by 2, in the rows of x from i and from j on: its
    gradient goes to the first value that equals its maximum, zero to the others."""
    if pairs >= 8:
        for t in range(0, pairs - 7, 8):
            _corners8(x, i + 2 * t, j + 2 * t, best, given, k + t, into)
        if pairs % 8:
            t = pairs - 8  # the last ones overlap
            _corners8(x, i + 2 * t, j + 2 * t, best, given, k + t, into)
    elif pairs >= 4:
        _corners4(x, i, j, best, given, k, into)
        if pairs > 4:
            t = pairs - 4
            _corners4(x, i + 2 * t, j + 2 * t, best, given, k + t, into)
    else:
        for t in range(pairs):
            free = True
            for place in (i + 2 * t, i + 2 * t + 1, j + 2 * t, j + 2 * t + 1):
                hit = free and x[place] == best[k + t]
                into[place] = given[k + t] if hit else np.float32(0)
                free = free and not hit


_split8, _split4 = _splitter(8), _splitter(4)
_zip8, _zip4 = _zipper(8), _zipper(4)


@njit(**JIT)
def split(into: Any, i: Any, j: Any, source: Any, k: Any, pairs: Any) -> None:
    """into[i + t], into[j + t] = source[k + 2 t], source[k + 2 t + 1]."""
    if pairs >= 8:
        for t in range(0, pairs - 7, 8):
            _split8(into, i + t, j + t, source, k + 2 * t)
        if pairs % 8:
            t = pairs - 8  # the last ones overlap
            _split8(into, i + t, j + t, source, k + 2 * t)
    elif pairs >= 4:
        _split4(into, i, j, source, k)
        if pairs > 4:
            t = pairs - 4
            _split4(into, i + t, j + t, source, k + 2 * t)
    else:
        for t in range(pairs):
            into[i + t] = source[k + 2 * t]
            into[j + t] = source[k + 2 * t + 1]


@njit(**JIT)
def zip_rows(into: Any, k: Any, source: Any, i: Any, j: Any, pairs: Any) -> None:
    """The inverse: into[k + 2 t], into[k + 2 t + 1] = source[i + t], source[j + t]."""
    if pairs >= 8:
        for t in range(0, pairs - 7, 8):
            _zip8(into, k + 2 * t, source, i + t, j + t)
        if pairs % 8:
            t = pairs - 8
            _zip8(into, k + 2 * t, source, i + t, j + t)
    elif pairs >= 4:
        _zip4(into, k, source, i, j)
        if pairs > 4:
            t = pairs - 4
            _zip4(into, k + 2 * t, source, i + t, j + t)
    else:
        for t in range(pairs):
            into[k + 2 * t] = source[i + t]
            into[k + 2 * t + 1] = source[j + t]
