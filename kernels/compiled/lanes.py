"""Vector code for Winograd's convolution: transforms of tiles, and their products.

Each function here becomes a straight stretch of instructions on eight floats at a time
(LLVM's own vectorizer gives up on 36 arrays at once). Arrays are flat, contiguous
float32; places and distances are counted in floats.

The interpolation points are 0, -3/4, 3/4, -3/2, 3/2 and infinity. Symmetric ones need
few operations, and these keep a float32 convolution of 64 channels within 1.8e-6 of its
largest value (0, -1, 1, -2, 2 and infinity: 4.6e-6), one of 512 within 4e-6.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016); Barabasz,
Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd
Convolution for Deep Neural Networks" (2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .vectors import data

__all__ = [
    "LANES",
    "ROWS",
    "WIDTHS",
    "add_products",
    "products",
    "table_products",
    "transform_filter",
    "transform_gradient",
    "transform_grad_filter",
    "transform_input",
    "transform_output",
    "transpose",
]

#: floats in a vector
LANES = 8
#: rows of a product that are made at a time, and columns
ROWS, WIDTHS = 4, (24, 16, 8)

_A, _B = 3 / 4, 3 / 2

_VECTOR: Any = ir.VectorType(ir.FloatType(), LANES)
# a * b + c may become one instruction
_FLAGS = ("contract", "nsz", "arcp")


class _Maker:
    """Vector instructions at the place where an intrinsic is used."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any) -> None:
        self._context, self.builder = context, builder
        self._sig, self.args = sig, args

    def place(self, array: int, at: Any, kind: Any = _VECTOR) -> Any:
        """Pointer to what begins at float `at` of the argument `array`."""
        kinds = self._sig.args[array]
        made = data(self._context, self.builder, kinds, self.args[array], at)
        return self.builder.bitcast(made, kind.as_pointer())

    def load(self, array: int, at: Any) -> Any:
        return self.builder.load(self.place(array, at), align=4)

    def store(self, value: Any, array: int, at: Any) -> None:
        self.builder.store(value, self.place(array, at), align=4)

    def spread(self, array: int, at: Any) -> Any:
        """One float in all lanes."""
        one = self.builder.load(self.place(array, at, ir.FloatType()), align=4)
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = self.builder.insert_element(nothing, one, ir.IntType(32)(0))
        same = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, nothing, same)

    def at(self, first: Any, *steps: tuple[int, Any]) -> Any:
        """first + the sum of count * distance."""
        for count, distance in steps:
            if count:
                many = ir.Constant(distance.type, count)
                first = self.builder.add(first, self.builder.mul(many, distance))
        return first

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=_FLAGS)

    def sub(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(a, b, flags=_FLAGS)

    def times(self, a: Any, by: float) -> Any:
        made = ir.Constant(_VECTOR, [by] * LANES)
        return self.builder.fmul(a, made, flags=_FLAGS)

    def plus(self, a: Any, b: Any, by: float) -> Any:
        """a + by * b"""
        return self.add(a, self.times(b, by))


def _pair(m: _Maker, even: Any, odd: Any, by: float) -> list[Any]:
    """even + by * odd, even - by * odd"""
    return [m.plus(even, odd, by), m.plus(even, odd, -by)]


def _input(m: _Maker, d: list[Any]) -> list[Any]:
    """Six points of six columns."""
    aa, bb = _A * _A, _B * _B
    even_a, odd_a = m.plus(d[4], d[2], -bb), m.plus(d[3], d[1], -bb)
    even_b, odd_b = m.plus(d[4], d[2], -aa), m.plus(d[3], d[1], -aa)
    first = m.plus(m.plus(d[4], d[2], -aa - bb), d[0], aa * bb)
    last = m.plus(m.plus(d[5], d[3], -aa - bb), d[1], aa * bb)
    return [
        first,
        *_pair(m, even_a, odd_a, _A),
        *_pair(m, even_b, odd_b, _B),
        last,
    ]


def _output(m: _Maker, v: list[Any]) -> list[Any]:
    """Four columns of six points."""
    sum_a, sum_b = m.add(v[1], v[2]), m.add(v[3], v[4])
    off_a, off_b = m.sub(v[1], v[2]), m.sub(v[3], v[4])
    return [
        m.add(m.add(v[0], sum_a), sum_b),
        m.plus(m.times(off_a, _A), off_b, _B),
        m.plus(m.times(sum_a, _A**2), sum_b, _B**2),
        m.plus(m.plus(v[5], off_a, _A**3), off_b, _B**3),
    ]


def _gradient(m: _Maker, d: list[Any]) -> list[Any]:
    """Six points of four columns: the transpose of `_output`."""
    made = [d[0]]
    for p in (_A, _B):
        made += _pair(m, m.plus(d[0], d[2], p * p), m.plus(d[1], d[3], p * p), p)
    return [*made, d[3]]


#: what the points of a filter are divided by
_BY_ZERO = (_A * _B) ** 2
_BY_A, _BY_B = 2 * _A**2 * (_A**2 - _B**2), 2 * _B**2 * (_B**2 - _A**2)


def _filter(m: _Maker, g: list[Any]) -> list[Any]:
    """Six points of three columns."""
    made = [m.times(g[0], 1 / _BY_ZERO)]
    for p, by in ((_A, _BY_A), (_B, _BY_B)):
        even = m.plus(m.times(g[0], 1 / by), g[2], p * p / by)
        made += _pair(m, even, g[1], p / by)
    return [*made, g[2]]


def _grad_filter(m: _Maker, v: list[Any]) -> list[Any]:
    """Three columns of six points: the transpose of `_filter`."""
    sum_a, sum_b = m.add(v[1], v[2]), m.add(v[3], v[4])
    off_a, off_b = m.sub(v[1], v[2]), m.sub(v[3], v[4])
    first = m.plus(m.times(v[0], 1 / _BY_ZERO), sum_a, 1 / _BY_A)
    last = m.plus(v[5], sum_a, _A**2 / _BY_A)
    return [
        m.plus(first, sum_b, 1 / _BY_B),
        m.plus(m.times(off_a, _A / _BY_A), off_b, _B / _BY_B),
        m.plus(last, sum_b, _B**2 / _BY_B),
    ]


def _transformer(
    along: Callable[[_Maker, list[Any]], list[Any]], given: int, tile_is_source: bool
) -> Any:
    """An intrinsic that transforms both directions of given x given vectors.

    A tile lies in an image with channels innermost (`row` floats from row to row,
    `column` from column to column), its points `point` floats from each other.
    """

    @intrinsic
    def transform(
        typing: Any,
        source: Any,
        i: Any,
        into: Any,
        j: Any,
        row: Any,
        column: Any,
        point: Any,
    ) -> Any:
        signature = types.void(source, i, into, j, row, column, point)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            m = _Maker(context, builder, sig, args)
            _, first, _, target, row, column, point = args

            def place(begin: Any, is_tile: bool, y: int, x: int, across: int) -> Any:
                if is_tile:
                    return m.at(begin, (y, row), (x, column))
                return m.at(begin, (y * across + x, point))

            columns = []  # of the rows' transforms
            for x in range(given):
                places = (
                    place(first, tile_is_source, y, x, given) for y in range(given)
                )
                columns.append(along(m, [m.load(0, p) for p in places]))
            for y in range(len(columns[0])):
                made = along(m, [column[y] for column in columns])
                for x, value in enumerate(made):
                    m.store(
                        value, 2, place(target, not tile_is_source, y, x, len(made))
                    )
            return context.get_dummy_value()

        return signature, generate

    return transform


#: 6 x 6 floats of each of eight channels at `i` of an image to 36 points at `j`
transform_input: Any = _transformer(_input, 6, True)
#: 36 points at `i` to 4 x 4 floats of each of eight channels at `j` of an image
transform_output: Any = _transformer(_output, 6, False)
#: 4 x 4 floats of each of eight channels at `i` of an image to 36 points at `j`
transform_gradient: Any = _transformer(_gradient, 4, True)
#: 3 x 3 floats of each of eight filters at `i` to 36 points at `j`
transform_filter: Any = _transformer(_filter, 3, True)
#: 36 points at `i` to 3 x 3 floats of each of eight filters at `j`
transform_grad_filter: Any = _transformer(_grad_filter, 6, False)


@intrinsic
def _transpose(
    typing: Any, source: Any, i: Any, from_each: Any, into: Any, j: Any, to_each: Any
) -> Any:
    signature = types.void(source, i, from_each, into, j, to_each)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        m = _Maker(context, builder, sig, args)
        rows = [m.load(0, m.at(args[1], (k, args[2]))) for k in range(LANES)]
        low = [n for t in range(LANES // 2) for n in (t, LANES + t)]
        high = [n + LANES // 2 for n in low]
        masks = [
            ir.Constant(ir.VectorType(ir.IntType(32), LANES), numbers)
            for numbers in (low, high)
        ]
        half = LANES // 2
        for _ in range(3):  # three times zipped with the one half away
            rows = [
                builder.shuffle_vector(rows[k], rows[k + half], mask)
                for k in range(half)
                for mask in masks
            ]
        for k, value in enumerate(rows):
            m.store(value, 3, m.at(args[4], (k, args[5])))
        return context.get_dummy_value()

    return signature, generate


#: transpose(source, i, from_each, into, j, to_each):
#: into[j + a * to_each + b] = source[i + b * from_each + a] for a, b below 8
transpose: Any = _transpose


def _multiplier(width: int, adds: bool = False, by_table: bool = False) -> Any:
    """An intrinsic that makes (or adds to) ROWS rows of `width` sums over `count`."""
    across = width // LANES

    @intrinsic
    def multiply(
        typing: Any,
        a: Any,
        i: Any,
        row: Any,
        step: Any,
        b: Any,
        j: Any,
        pitch: Any,
        count: Any,
        c: Any,
        k: Any,
        apart: Any,
    ) -> Any:
        signature = types.void(a, i, row, step, b, j, pitch, count, c, k, apart)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            m = _Maker(context, builder, sig, args)
            _, i, row, step, _, j, pitch, count, _, k, apart = args
            lanes = [ir.Constant(i.type, t * LANES) for t in range(across)]
            new: Any = cgutils.alloca_once
            sums = [[new(builder, _VECTOR) for _ in lanes] for _ in range(ROWS)]
            for sum in (sum for row_sums in sums for sum in row_sums):
                builder.store(ir.Constant(_VECTOR, None), sum)
            with cgutils.for_range(builder, count) as loop:
                right = builder.add(j, builder.mul(loop.index, pitch))
                values = [m.load(4, builder.add(right, lane)) for lane in lanes]
                if by_table:
                    far = builder.load(m.place(3, loop.index, i.type))
                else:
                    far = builder.mul(loop.index, step)
                left = builder.add(i, far)
                for r in range(ROWS):
                    factor = m.spread(0, m.at(left, (r, row)))
                    for sum, value in zip(sums[r], values):
                        more = builder.fmul(factor, value, flags=_FLAGS)
                        builder.store(m.add(builder.load(sum), more), sum)
            for r in range(ROWS):
                for sum, lane in zip(sums[r], lanes):
                    place = builder.add(m.at(k, (r, apart)), lane)
                    total = builder.load(sum)
                    if adds:
                        total = m.add(m.load(8, place), total)
                    m.store(total, 8, place)
            return context.get_dummy_value()

        return signature, generate

    return multiply


#: by width: c[k + r * apart + t] = the sum over n < count of
#: a[i + r * row + n * step] * b[j + n * pitch + t], for r < ROWS and t < width
products: dict[int, Any] = {w: _multiplier(w) for w in WIDTHS}
#: the same added to what is there
add_products: dict[int, Any] = {w: _multiplier(w, adds=True) for w in WIDTHS}
#: with step[n], of an array of int64, in place of n * step
table_products: dict[int, Any] = {w: _multiplier(w, by_table=True) for w in WIDTHS}
