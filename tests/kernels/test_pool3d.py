"""pool3d, max_pool2d_with_index, max_pool3d_with_index."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def _bounds(a: dict[str, Any], size: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """(start, stop) of the windows of each axis, padding included."""
    found = []
    for i, n in enumerate(size):
        k, s, p = a["ksize"][i], a["strides"][i], a["paddings"][i]
        if a["global_pooling"]:
            found.append([(0, n)])
        elif a["adaptive"]:
            found.append([(o * n // k, -((-(o + 1) * n) // k)) for o in range(k)])
        else:
            up = s - 1 if a.get("ceil_mode") else 0
            count = (n + 2 * p - k + up) // s + 1
            found.append([(o * s - p, o * s - p + k) for o in range(count)])
    return found


def plain_pool(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    """One window after the other."""
    volume = x["X"]
    last = a.get("data_format") == "NDHWC"
    if last:
        volume = np.moveaxis(volume, -1, 1)
    size = volume.shape[2:]
    bounds = _bounds(a, size)
    out = np.zeros((*volume.shape[:2], *map(len, bounds)))
    mask = np.zeros(out.shape, "int32")
    places = np.arange(math.prod(size)).reshape(size)
    every = (slice(None), slice(None))
    for at in itertools.product(*(range(len(b)) for b in bounds)):
        ends = [b[i] for b, i in zip(bounds, at)]
        cut = tuple(slice(max(start, 0), stop) for start, stop in ends)
        window = volume[every + cut]
        window = window.reshape(*window.shape[:2], math.prod(window.shape[2:]))
        if a.get("pooling_type") == "avg":
            count = window.shape[2]
            if not a["exclusive"] and not a["adaptive"]:
                count = math.prod(stop - start for start, stop in ends)
            out[every + at] = window.sum(2) / count
        else:
            out[every + at] = window.max(2)
            mask[every + at] = places[cut].reshape(-1)[window.argmax(2)]
    if "pooling_type" not in a:
        return {"Out": out, "Mask": mask}
    return {"Out": np.moveaxis(out, 1, -1) if last else out}


def pool(name: str, kind: str, x: Any = (2, 2, 4, 5, 6), **a: Any) -> OpCase:
    attrs = {"pooling_type": kind, "ksize": [2, 2, 3], **a}
    return OpCase("pool3d", {"X": normal(*x)}, attrs, plain_pool, f"{kind} {name}")


def index(name: str, x: Any, **a: Any) -> OpCase:
    type = f"max_pool{len(x) - 2}d_with_index"
    attrs = {"ksize": [2] * (len(x) - 2), **a}
    return OpCase(type, {"X": normal(*x)}, attrs, plain_pool, name)


def both(kind: str) -> list[OpCase]:
    return [
        pool("plain", kind),
        pool("tiles", kind, (2, 2, 4, 4, 6), strides=[2, 2, 3]),
        pool("overlap", kind, strides=[1, 2, 1], paddings=[1, 1, 1]),
        pool("ceil", kind, strides=[2, 2, 3], ceil_mode=True),
        pool("adaptive", kind, ksize=[3, 2, 4], adaptive=True),
        pool("even", kind, (1, 2, 4, 6, 6), ksize=[2, 3, 3], adaptive=True),
        pool("global", kind, global_pooling=True),
        pool("last", kind, (2, 4, 5, 6, 2), data_format="NDHWC"),
        pool("one", kind, ksize=[1, 1, 1]),
        pool("no images", kind, (0, 2, 4, 5, 6)),
    ]


CASES = [
    *both("max"),
    *both("avg"),
    pool("whole windows", "avg", paddings=[1, 1, 1], exclusive=False),
    index("plain", (2, 3, 5, 6)),
    index("stride", (2, 3, 5, 6), ksize=[3, 3], strides=[2, 2], paddings=[1, 1]),
    index("tiles", (2, 3, 4, 6), strides=[2, 2]),
    index("adaptive", (2, 3, 5, 7), ksize=[3, 4], adaptive=True),
    index("even", (2, 3, 6, 8), ksize=[3, 4], adaptive=True),
    index("global", (2, 3, 5, 6), global_pooling=True),
    index("no images", (0, 3, 5, 6)),
    index("plain", (2, 2, 4, 5, 3)),
    index("stride", (2, 2, 4, 5, 3), strides=[2, 2, 1], paddings=[1, 1, 1]),
    index("adaptive", (2, 2, 4, 5, 3), ksize=[3, 2, 2], adaptive=True),
    index("global", (2, 2, 4, 5, 3), global_pooling=True),
]
test_pool3d = suite(CASES)
test_as_the_reference = oracle_suite("volume_pool")


def _infer(type: str, x: Any, **attrs: Any) -> Any:
    every = {**kernels.find(type).defaults, **attrs}
    context = InferContext(type, {"X": [Meta(x)]}, every, {"Out": 1, "Mask": 1})
    kernels.find(type).infer(context)
    return context.outs


def test_unknown_sizes() -> None:
    outs = _infer("pool3d", (-1, 2, -1, 5, 6), pooling_type="max", ksize=[2, 2, 3])
    assert outs["Out"][0].shape == (-1, 2, -1, 4, 4)
    outs = _infer("max_pool2d_with_index", (-1, 2, -1, 5), ksize=[2, 2])
    assert outs["Mask"][0].shape == (-1, 2, -1, 4)
    assert outs["Mask"][0].dtype == kernels.VarType.INT32


@pytest.mark.parametrize(
    ("type", "x", "attrs", "said"),
    [
        ("pool3d", (2, 2, 5, 5), {"ksize": [2] * 3}, "5 dimensions"),
        ("pool3d", (2, 2, 5, 5, 5), {"ksize": [2, 2]}, "ksize needs 3"),
        ("pool3d", (2, 2, 5, 5, 5), {"ksize": [6, 2, 2]}, "does not fit depth 5"),
        ("pool3d", (2, 2, 5, 5, 5), {"ksize": [2] * 3, "strides": [0] * 3}, "strides"),
        ("pool3d", (2, 2, 5, 5, 5), {"ksize": [2] * 3, "paddings": [1]}, "3 or 6"),
        ("max_pool2d_with_index", (2, 2, 5), {"ksize": [2, 2]}, "4 dimensions"),
        ("max_pool2d_with_index", (2, 2, 5, 5), {"ksize": [2, 6]}, "width 5"),
    ],
)
def test_refusals(type: str, x: Any, attrs: Any, said: str) -> None:
    with pytest.raises(InferError, match=said):
        _infer(type, x, pooling_type="max", **attrs)


def test_a_window_of_padding_has_no_position() -> None:
    attrs = {"ksize": [1, 1], "strides": [2, 2], "paddings": [1, 1]}
    outs = run_op("max_pool2d_with_index", {"X": normal(1, 1, 2, 2)}, attrs)
    assert outs["Mask"].tolist() == [[[[-1, -1], [-1, 3]]]]
    grads = run_op(
        "max_pool2d_with_index_grad",
        {
            "X": normal(1, 1, 2, 2),
            "Mask": outs["Mask"],
            "Out@GRAD": np.ones((1, 1, 2, 2)),
        },
        attrs,
    )
    assert grads["X@GRAD"].tolist() == [[[[0, 0], [0, 1]]]]


def test_ties_go_to_the_first() -> None:
    attrs = {"pooling_type": "max", "ksize": [2, 2, 2], "strides": [1, 1, 1]}
    x = np.zeros((1, 1, 3, 3, 3))
    out = run_op("pool3d", {"X": x}, attrs)["Out"]
    given = {"X": x, "Out": out, "Out@GRAD": np.ones_like(out)}
    dx = run_op("pool3d_grad", given, attrs)["X@GRAD"]
    wanted = np.zeros_like(x)
    wanted[..., :2, :2, :2] = 1
    np.testing.assert_array_equal(dx, wanted)
