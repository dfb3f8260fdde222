"""Compiled convolution and pooling against the ops' own kernels, on images large
enough to take every way through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, grads_of, normal, run_op

from fluidx.kernels.compiled import available

pytestmark = pytest.mark.skipif(not available(), reason="FLUIDX_COMPILED=0")


def floats(*shape: int, seed: int = 0) -> Any:
    return normal(*shape, seed=seed).astype("float32")


def both(op: str, inputs: dict[str, Any], out: str, **attrs: Any) -> tuple[Any, ...]:
    """[own, compiled] of the output, and of the gradients."""
    outs = [run_op(op, inputs, attrs, compiled=c) for c in (False, True)]
    d = floats(*outs[0][out].shape, seed=5)
    case = OpCase(op, inputs, attrs)
    grads = [
        grads_of(case, inputs, outs[0], {out: d}, compiled=c) for c in (False, True)
    ]
    return [o[out] for o in outs], grads


CONVS = {
    "one channel": ((2, 1, 28, 28), (4, 1, 5, 5), {}),
    "padded": ((2, 3, 20, 21), (4, 3, 3, 3), {"paddings": [1, 1]}),
    "uneven padding": ((2, 3, 20, 21), (4, 3, 3, 3), {"paddings": [0, 2, 1, 0]}),
    "same": (
        (2, 3, 31, 30),
        (4, 3, 4, 3),
        {"padding_algorithm": "SAME", "strides": [2, 1]},
    ),
    "stride": (
        (2, 3, 40, 41),
        (4, 3, 7, 7),
        {"strides": [2, 2], "paddings": [3, 3]},
    ),
    "stride beyond kernel": ((2, 3, 70, 72), (4, 3, 2, 1), {"strides": [3, 4]}),
    "pointwise stride": ((2, 8, 40, 40), (4, 8, 1, 1), {"strides": [2, 2]}),
    "dilated": (
        (2, 4, 30, 31),
        (4, 4, 3, 3),
        {"dilations": [2, 3], "paddings": [2, 3]},
    ),
    "groups": ((2, 8, 24, 24), (12, 2, 3, 3), {"groups": 4, "paddings": [1, 1]}),
    "filters in eights and more": ((2, 3, 20, 21), (43, 3, 4, 2), {"strides": [1, 2]}),
    "narrow": ((40, 4, 20, 9), (9, 4, 3, 3), {"strides": [2, 2], "dilations": [1, 2]}),
    "many taps": ((2, 70, 20, 21), (6, 70, 3, 3), {"paddings": [1, 2]}),
    "rows at a time": ((1, 96, 48, 48), (8, 96, 3, 3), {"strides": [2, 2]}),
    "depthwise": ((2, 6, 28, 29), (6, 1, 3, 3), {"groups": 6, "paddings": [1, 1]}),
    "depthwise stride": (
        (2, 6, 29, 28),
        (6, 1, 5, 5),
        {"groups": 6, "paddings": [2, 2], "strides": [2, 2]},
    ),
    "depthwise dilated": (
        (2, 6, 28, 28),
        (6, 1, 3, 2),
        {"groups": 6, "dilations": [3, 2], "strides": [1, 2]},
    ),
    "two filters per channel": ((2, 6, 28, 28), (12, 1, 3, 3), {"groups": 6}),
}


@pytest.mark.parametrize("name", CONVS)
def test_conv2d(name: str) -> None:
    x, w, attrs = CONVS[name]
    inputs = {"Input": floats(*x), "Filter": floats(*w, seed=1)}
    outs, grads = both("conv2d", inputs, "Output", **attrs)
    np.testing.assert_allclose(outs[1], outs[0], 1e-4, 1e-4)
    for slot in inputs:
        np.testing.assert_allclose(grads[1][slot], grads[0][slot], 1e-3, 1e-3)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_conv2d_transpose(stride: int, groups: int) -> None:
    inputs = {"Input": floats(2, 6, 16, 17), "Filter": floats(6, 4, 4, 3, seed=1)}
    attrs = {"strides": [stride] * 2, "paddings": [1, 1], "groups": groups}
    outs, grads = both("conv2d_transpose", inputs, "Output", **attrs)
    np.testing.assert_allclose(outs[1], outs[0], 1e-4, 1e-4)
    for slot in inputs:
        np.testing.assert_allclose(grads[1][slot], grads[0][slot], 1e-3, 1e-3)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("channels", [4, 36])
def test_conv3d(channels: int, groups: int, stride: int) -> None:
    inputs = {
        "Input": floats(2, channels, 5, 14, 13),
        "Filter": floats(6, channels // groups, 3, 3, 2, seed=1),
    }
    attrs = {"strides": [stride] * 3, "paddings": [1, 0, 1], "groups": groups}
    outs, _ = both("conv3d", inputs, "Output", **attrs)
    np.testing.assert_allclose(outs[1], outs[0], 1e-4, 1e-4)


POOLS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "corners": ((3, 5, 24, 26), {"ksize": [2, 2], "strides": [2, 2]}),
    "few corners": ((20, 5, 8, 8), {"ksize": [2, 2], "strides": [2, 2]}),
    "fewest corners": ((50, 5, 6, 6), {"ksize": [2, 2], "strides": [2, 2]}),
    "side by side": ((3, 5, 24, 27), {"ksize": [2, 3], "strides": [2, 3]}),
    "overlapping": (
        (3, 5, 28, 29),
        {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1]},
    ),
    "stride 1": ((3, 5, 20, 21), {"ksize": [3, 3], "paddings": [1, 1]}),
    "gaps": ((3, 5, 28, 29), {"ksize": [2, 2], "strides": [3, 4]}),
    "ceil": (
        (3, 5, 28, 29),
        {"ksize": [3, 3], "strides": [2, 2], "ceil_mode": True},
    ),
    "uneven": ((3, 5, 20, 21), {"ksize": [3, 4], "adaptive": True}),
    "global": ((30, 20, 7, 7), {"ksize": [1, 1], "global_pooling": True}),
}


def pooled(kind: str, name: str, x: Any) -> None:
    shape, attrs = POOLS[name]
    attrs = {"strides": [1, 1], **attrs, "pooling_type": kind}
    outs, grads = both("pool2d", {"X": x.reshape(shape)}, "Out", **attrs)
    np.testing.assert_allclose(outs[1], outs[0], 1e-5, 1e-5)
    np.testing.assert_allclose(grads[1]["X"], grads[0]["X"], 1e-5, 1e-5)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("name", POOLS)
def test_pool2d(name: str, kind: str) -> None:
    pooled(kind, name, floats(*POOLS[name][0]))


@pytest.mark.parametrize("name", POOLS)
def test_the_first_of_equal_maxima(name: str) -> None:
    x = np.random.default_rng(0).integers(0, 3, POOLS[name][0]).astype("float32")
    pooled("max", name, x)


@pytest.mark.parametrize("name", POOLS)
def test_a_nan_and_infinities(name: str) -> None:
    x = floats(*POOLS[name][0])
    flat = x.reshape(-1)
    flat[::37] = np.nan
    flat[5::41] = np.inf
    flat[7::3] = -np.inf
    pooled("max", name, x)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("pad", [0, 1])
def test_pool3d(kind: str, pad: int) -> None:
    x = np.random.default_rng(0).integers(0, 9, (2, 3, 6, 14, 13)).astype("float32")
    attrs = {"pooling_type": kind, "ksize": [3, 2, 3], "strides": [2, 2, 1]}
    outs, grads = both("pool3d", {"X": x}, "Out", paddings=[pad] * 3, **attrs)
    np.testing.assert_allclose(outs[1], outs[0], 1e-5, 1e-5)
    np.testing.assert_allclose(grads[1]["X"], grads[0]["X"], 1e-5, 1e-5)
