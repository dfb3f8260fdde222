"""Operators and indexing of Variables beyond what programs are compared for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidx.layers  # noqa: F401 (gives Variable its operators)
from fluidx.input import data
from fluidx.ir import default_main_program
from fluidx.kernels import VarType


def _last() -> Any:
    return default_main_program().global_block().ops[-1]


def _count() -> int:
    return len(default_main_program().global_block().ops)


def test_numpy_numbers_stand_for_numbers() -> None:
    x: Any = data("x", [None, 4])
    (np.float32(2) * x).name  # noqa: B018
    assert _last().type == "scale"
    assert _last().attr("scale") == 2.0
    (np.array([3.0]) - x).name  # noqa: B018
    assert (_last().attr("scale"), _last().attr("bias")) == (-1.0, 3.0)


def test_an_array_is_no_operand() -> None:
    x: Any = data("x", [None, 4])
    with pytest.raises(TypeError, match=r"shape \[4\] cannot be an operand; .*assign"):
        x + np.ones(4)


@pytest.mark.parametrize("other", ["a", None, object()])
def test_comparison_with_anything_else_is_false(other: Any) -> None:
    x: Any = data("x", [None, 4])
    assert (x == other) is False
    assert (x != other) is True
    with pytest.raises(TypeError, match="'Variable' and"):
        x + other
    assert _count() == 0


def test_variables_stay_hashable_and_found_in_containers() -> None:
    x, y = data("x", [None, 4]), data("y", [None, 4])
    assert {x: 1, y: 2}[y] == 2
    assert x in {x}
    assert _count() == 0


def test_a_fraction_does_not_fit_an_integer() -> None:
    i: Any = data("i", [None], "int64")
    with pytest.raises(TypeError, match=r"i is INT64: 1.5 does not fit; cast it first"):
        i + 1.5
    assert (i + 2.0).dtype == VarType.INT64


def test_division_by_zero() -> None:
    x: Any = data("x", [None, 4])
    with pytest.raises(ZeroDivisionError, match="x / 0"):
        x / 0


def test_the_right_operand_takes_the_left_dtype() -> None:
    x: Any = data("x", [None, 4])
    i: Any = data("i", [None, 4], "int32")
    assert (i * x).dtype == VarType.INT32
    assert (x * i).dtype == VarType.FP32


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (0, (4, 6)),
        (slice(1, 3), (2, 4, 6)),
        ((slice(None), 1), (7, 6)),
        ((..., 0), (7, 4)),
        ((0, ...), (4, 6)),
        ((1, ..., slice(2, 4)), (4, 2)),
        ((-1, -1, -1), (1,)),
        (slice(-2, None), (2, 4, 6)),
        (slice(None, -1), (6, 4, 6)),
        (..., (7, 4, 6)),
        ((np.int64(2), slice(None, np.int32(3))), (3, 6)),
        (slice(0, 5, 2), (3, 4, 6)),
        (slice(None, None, -1), (7, 4, 6)),
        (slice(None, None, -2), (4, 4, 6)),
        (slice(5, None, -2), (3, 4, 6)),
        (slice(-1, 2, -1), (4, 4, 6)),
        ((1, slice(None, None, 2), slice(None, None, -1)), (2, 6)),
        ((slice(None, None, 3), slice(1, 3), -1), (3, 2)),
    ],
)
def test_index_gives_the_shape_of_numpy(index: Any, shape: tuple[int, ...]) -> None:
    x: Any = data("x", [7, 4, 6])
    assert x[index].shape == shape
    expected = np.zeros((7, 4, 6))[index].shape
    assert shape == (expected or (1,))


@pytest.mark.parametrize(
    ("index", "kind", "message"),
    [
        (7, IndexError, r"index 7 is outside dimension 0 of shape \[7, 4, 6\]"),
        ((0, -5), IndexError, "index -5 is outside dimension 1"),
        ((0, 0, 0, 0), IndexError, "4 indices for shape"),
        ((..., ...), IndexError, "only one ellipsis"),
        ("a", TypeError, "an index is an integer, a slice, .* got 'a'"),
        (None, TypeError, "got None"),
        (slice("a", None), TypeError, "a bound must be an integer or a Variable"),
        (slice(None, None, 0), ValueError, "a step cannot be 0"),
    ],
)
def test_bad_index(index: Any, kind: type[Exception], message: str) -> None:
    x: Any = data("x", [7, 4, 6])
    with pytest.raises(kind, match=message):
        x[index]


def test_iteration_ends() -> None:
    x: Any = data("x", [3, 4])
    assert [part.shape for part in x] == [(4,)] * 3
