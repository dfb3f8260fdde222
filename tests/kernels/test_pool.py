"""pool2d."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vision_oracle
from opcase import OpCase, normal, run_op, suite
from strict_xp import strict_xp

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def plain_pool(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    """Pooling by its definition, one window at a time (two paddings, no SAME)."""
    images = x["X"]
    if a["data_format"] == "NHWC":
        images = images.transpose(0, 3, 1, 2)
    bounds = []
    for i in range(2):
        size, k, s, p = (
            images.shape[2 + i],
            a["ksize"][i],
            a["strides"][i],
            a["paddings"][i],
        )
        if a["global_pooling"]:
            bounds.append([(0, size)])
        elif a["adaptive"]:
            bounds.append(
                [(o * size // k, -((-(o + 1) * size) // k)) for o in range(k)]
            )
        else:
            round_up = s - 1 if a["ceil_mode"] else 0
            count = (size + 2 * p - k + round_up) // s + 1
            bounds.append([(o * s - p, o * s - p + k) for o in range(count)])
    out = np.zeros((*images.shape[:2], len(bounds[0]), len(bounds[1])))
    for i, (top, bottom) in enumerate(bounds[0]):
        for j, (left, right) in enumerate(bounds[1]):
            window = images[:, :, max(top, 0) : bottom, max(left, 0) : right]
            if a["pooling_type"] == "max":
                out[:, :, i, j] = window.max((2, 3))
            else:
                count = window.shape[2] * window.shape[3]
                if not a["exclusive"] and not a["adaptive"]:
                    count = (bottom - top) * (right - left)
                out[:, :, i, j] = window.sum((2, 3)) / count
    return {"Out": out.transpose(0, 2, 3, 1) if a["data_format"] == "NHWC" else out}


def pool(name: str, kind: str, x: tuple[int, ...] = (2, 2, 5, 7), **a: Any) -> OpCase:
    attrs = {"pooling_type": kind, "ksize": [2, 2], "strides": [2, 2], **a}
    return OpCase("pool2d", {"X": normal(*x)}, attrs, plain_pool, f"{kind} {name}")


CASES = [
    case
    for kind in ("max", "avg")
    for case in (
        pool("plain", kind),
        pool("even", kind, x=(2, 2, 4, 6)),
        pool("overlap", kind, ksize=[3, 3], strides=[1, 2], paddings=[1, 1]),
        pool("one tap", kind, ksize=[1, 1], strides=[2, 3]),
        pool("gaps", kind, ksize=[2, 1], strides=[3, 2]),
        pool("ceil", kind, ceil_mode=True, ksize=[3, 2], paddings=[1, 0]),
        pool("inclusive", kind, exclusive=False, ksize=[3, 3], paddings=[1, 1]),
        pool("adaptive", kind, ksize=[3, 4], adaptive=True),
        pool("adaptive even", kind, x=(1, 2, 6, 4), ksize=[3, 2], adaptive=True),
        pool("adaptive larger", kind, x=(1, 2, 2, 3), ksize=[3, 5], adaptive=True),
        pool("global", kind, global_pooling=True),
        pool("nhwc", kind, x=(2, 5, 6, 3), data_format="NHWC", ksize=[3, 2]),
        pool("nhwc global", kind, data_format="NHWC", global_pooling=True),
        pool("nhwc adaptive", kind, data_format="NHWC", adaptive=True, ksize=[3, 2]),
    )
]

test_pool = suite(CASES)


@pytest.mark.parametrize("record", vision_oracle.cases("pool"))
def test_as_the_reference(record: dict[str, Any]) -> None:
    vision_oracle.check(record)


def test_average_of_a_window_outside_is_zero() -> None:
    """The reference divides by zero here."""
    attrs = {
        "pooling_type": "avg",
        "ksize": [2, 2],
        "strides": [3, 3],
        "paddings": [1, 1],
        "ceil_mode": True,
    }
    x = np.ones((1, 1, 5, 5))
    out = run_op("pool2d", {"X": x}, attrs)["Out"]
    np.testing.assert_array_equal(out[0, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    given = {"X": x, "Out": out, "Out@GRAD": np.ones_like(out)}
    grad = run_op("pool2d_grad", given, attrs)["X@GRAD"]
    wanted = [1, 0, 0.5, 0.5, 0]
    np.testing.assert_array_equal(grad[0, 0, 0], wanted)


def test_max_keeps_nan() -> None:
    x = np.ones((1, 1, 2, 4), "float32")
    x[0, 0, 1, 1] = np.nan
    attrs = {"pooling_type": "max", "ksize": [2, 2], "strides": [2, 2]}
    out = run_op("pool2d", {"X": x}, attrs)["Out"]
    np.testing.assert_array_equal(out[0, 0, 0], [np.nan, 1.0])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_under_strict_xp(case: OpCase) -> None:
    """The gradient kernel uses what CuPy has; float32 stays float32."""
    x = case.inputs["X"].astype("float32")
    out = run_op(case.op, {"X": x}, case.attrs)["Out"]
    given = {"X": x, "Out": out, "Out@GRAD": normal(*out.shape).astype("float32")}
    plain = run_op("pool2d_grad", given, case.attrs)["X@GRAD"]
    strict = run_op("pool2d_grad", given, case.attrs, xp=strict_xp())["X@GRAD"]
    assert plain.dtype == np.float32
    np.testing.assert_allclose(strict, plain, 1e-6, 1e-6)


def infer(shape: tuple[int, ...], **attrs: Any) -> tuple[int, ...]:
    definition = kernels.find("pool2d")
    every = {**definition.defaults, "pooling_type": "max", "ksize": [2, 2], **attrs}
    context = InferContext("pool2d", {"X": [Meta(shape)]}, every, {"Out": 1})
    definition.infer(context)
    return context.outs["Out"][0].shape


def test_unknown_sizes_stay_unknown() -> None:
    assert infer((-1, 3, -1, 8), strides=[2, 2]) == (-1, 3, -1, 4)
    assert infer((-1, 3, -1, -1), global_pooling=True) == (-1, 3, 1, 1)
    assert infer((-1, 3, -1, -1), adaptive=True) == (-1, 3, 2, 2)
    assert infer((-1, -1, 8, 3), data_format="NHWC") == (-1, -1, 7, 3)


@pytest.mark.parametrize(
    ("shape", "attrs", "message"),
    [
        ((1, 2, 5), {}, "4 dimensions"),
        ((1, 2, 5, 5), {"pooling_type": "min"}, "max or avg"),
        ((1, 2, 5, 5), {"ksize": [2]}, "ksize needs 2"),
        ((1, 2, 5, 5), {"paddings": [1, 1, 1]}, "2 or 4"),
        ((1, 2, 5, 5), {"ksize": [2, 7]}, "does not fit width 5"),
    ],
)
def test_refusals(shape: Any, attrs: Any, message: str) -> None:
    with pytest.raises(InferError, match=message):
        infer(shape, **attrs)
