"""Adding, subtracting and putting rows, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strict_xp import strict_xp

from fluidx.kernels.rows import add_rows, check_ids, put_rows, subtract_rows

# few and many, narrow and wide, low and tall: every way through the module
SIZES = [
    (0, 3, 5),
    (4, 3, 5),
    (900, 8, 300),
    (900, 8, 100_000),
    (300, 64, 4000),
    (5000, 1, 100),
    (5000, 2, 100),
]


def _case(count: int, width: int, height: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(count + width)
    rows = rng.integers(0, height, count)
    # whole numbers: sums are exact, so order makes no difference
    values = rng.integers(-9, 9, (count, width)).astype("f4")
    target = rng.integers(-9, 9, (height, width)).astype("f4")
    return target, rows, values


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", ["C", "F"])
def test_adding_and_subtracting(size: tuple[int, int, int], layout: Any) -> None:
    for xp in (np, strict_xp()):
        for function, sign in ((add_rows, 1), (subtract_rows, -1)):
            target, rows, values = _case(*size)
            wanted = target.copy()
            for row, value in zip(rows, values):
                wanted[row] += sign * value
            target = np.asarray(target, order=layout)
            function(xp, target, rows, values)
            assert np.array_equal(target, wanted)


def test_distinct_rows_take_one_pass() -> None:
    target, _, values = _case(900, 8, 1000)
    rows = np.random.default_rng(0).permutation(1000)[:900]
    wanted = target.copy()
    wanted[rows] += values
    add_rows(np, target, rows, values)
    assert np.array_equal(target, wanted)


@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 2, 2)])
def test_putting(shape: tuple[int, ...]) -> None:
    for order in ("C", "F"):
        target = np.zeros(shape, "f4", order)
        values = np.arange(1.0, 1 + 3 * target[0].size).reshape(3, *shape[1:])
        put_rows(np, target, np.array([5, 0, 2]), values)
        assert np.array_equal(target[[5, 0, 2]], values)
        assert not target[[1, 3, 4]].any()


@pytest.mark.parametrize("kind", ["i8", "i4"])
def test_ids_are_checked(kind: str) -> None:
    check_ids("op", "id", np.array([0, 4], kind), 5)
    check_ids("op", "id", np.array([], kind), 0)
    with pytest.raises(IndexError, match=r"op: id 7 is not in \[0, 5\)"):
        check_ids("op", "id", np.array([7, 5, 0], kind), 5)
    with pytest.raises(IndexError, match=r"op: id -3 is not in \[0, 5\)"):
        check_ids("op", "id", np.array([7, -3, 0], kind), 5)
