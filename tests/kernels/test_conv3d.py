"""conv3d, conv3d_transpose, depthwise_conv2d_transpose."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def _pads(a: dict[str, Any], size: Any, kernel: Any, dims: int) -> list[Any]:
    """(before, after) of each axis."""
    if a["padding_algorithm"] == "VALID":
        return [(0, 0)] * dims
    if a["padding_algorithm"] == "SAME":
        pads = []
        for n, k, s in zip(size, kernel, a["strides"]):
            total = max((-(-n // s) - 1) * s + k - n, 0)
            pads.append((total // 2, total - total // 2))
        return pads
    given = a["paddings"]
    if len(given) == dims:
        return [(p, p) for p in given]
    return list(zip(given[::2], given[1::2]))


def plain_conv(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    """The definition: a sum over the taps of the kernel, one at a time."""
    volume, weight = x["Input"], x["Filter"]
    last = a["data_format"] == "NDHWC"
    if last:
        volume = np.moveaxis(volume, -1, 1)
    size, kernel = volume.shape[2:], weight.shape[2:]
    dims = len(kernel)
    dilations = [1] * dims if a["padding_algorithm"] == "SAME" else a["dilations"]
    pads = _pads(a, size, kernel, dims)
    padded = np.pad(volume, [(0, 0), (0, 0), *pads])
    out_size = [
        (n + sum(p) - (d * (k - 1) + 1)) // s + 1
        for n, p, d, k, s in zip(size, pads, dilations, kernel, a["strides"])
    ]
    groups, filters = a["groups"], weight.shape[0]
    out = np.zeros((len(volume), filters, *out_size))
    for f in range(filters):
        g = f // (filters // groups)
        channels = slice(g * weight.shape[1], (g + 1) * weight.shape[1])
        for tap in itertools.product(*map(range, kernel)):
            spans = tuple(
                slice(t * d, t * d + (o - 1) * s + 1, s)
                for t, d, o, s in zip(tap, dilations, out_size, a["strides"])
            )
            part = padded[(slice(None), channels, *spans)]
            taken = weight[(f, slice(None), *tap)].reshape(1, -1, *(1,) * dims)
            out[:, f] += (part * taken).sum(1)
    return {"Output": np.moveaxis(out, 1, -1) if last else out}


def plain_transpose(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    """Each input element adds its multiple of the kernel."""
    volume, weight = x["Input"], x["Filter"]
    last = a["data_format"] == "NHWC"
    if last:
        volume = np.moveaxis(volume, -1, 1)
    size, kernel = volume.shape[2:], weight.shape[2:]
    dims = len(kernel)
    pads = _pads(a, size, kernel, dims)
    dilations = [1] * dims if a["padding_algorithm"] == "SAME" else a["dilations"]
    whole = [
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(size, a["strides"], dilations, kernel)
    ]
    natural = [w - sum(p) for w, p in zip(whole, pads)]
    wanted = list(a["output_size"]) or natural
    room = [w + o - n for w, o, n in zip(whole, wanted, natural)]
    groups, per = a["groups"], weight.shape[1]
    out = np.zeros((len(volume), per * groups, *room))
    for c in range(volume.shape[1]):
        g = c // (volume.shape[1] // groups)
        for tap in itertools.product(*map(range, kernel)):
            spans = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilations, size, a["strides"])
            )
            for f in range(per):
                place = (slice(None), g * per + f, *spans)
                out[place] += volume[:, c] * weight[(c, f, *tap)]
    cut = tuple(slice(p[0], p[0] + o) for p, o in zip(pads, wanted))
    out = out[(slice(None), slice(None), *cut)]
    return {"Output": np.moveaxis(out, 1, -1) if last else out}


def conv(
    name: str, x: Any = (2, 4, 5, 6, 4), w: Any = (4, 4, 3, 2, 3), **a: Any
) -> Any:
    inputs = {"Input": normal(*x), "Filter": normal(*w, seed=1)}
    return OpCase("conv3d", inputs, a, plain_conv, name, rtol=2e-5, atol=2e-5)


def transpose(
    name: str, x: Any = (2, 4, 2, 3, 4), w: Any = (4, 3, 3, 2, 3), **a: Any
) -> Any:
    inputs = {"Input": normal(*x), "Filter": normal(*w, seed=1)}
    type = "conv3d_transpose" if len(x) == 5 else "depthwise_conv2d_transpose"
    return OpCase(type, inputs, a, plain_transpose, name, rtol=2e-5, atol=2e-5)


CASES = [
    conv("plain"),
    conv("stride", strides=[2, 1, 3], paddings=[1, 0, 2]),
    conv("six pads", paddings=[0, 1, 2, 0, 1, 1]),
    conv("same", strides=[2, 2, 1], dilations=[2, 1, 1], padding_algorithm="SAME"),
    conv("valid", paddings=[3, 3, 3], padding_algorithm="VALID"),
    conv("dilation", dilations=[2, 3, 1]),
    conv("groups", w=(4, 2, 3, 2, 3), groups=2),
    conv("one channel a group", w=(8, 1, 2, 2, 2), groups=4, paddings=[1, 1, 1]),
    conv("last", x=(2, 5, 6, 4, 4), data_format="NDHWC", paddings=[1, 1, 1]),
    conv("pointwise", w=(3, 4, 1, 1, 1)),
    conv("flat kernel", w=(3, 4, 1, 3, 3), paddings=[0, 1, 1]),
    conv("deep kernel", w=(3, 4, 5, 1, 1)),
    conv("no images", x=(0, 4, 5, 6, 4)),
    transpose("plain"),
    transpose("stride", strides=[2, 1, 3], paddings=[1, 0, 1]),
    transpose("six pads", strides=[2, 2, 2], paddings=[0, 1, 1, 0, 1, 1]),
    transpose("output size", strides=[2, 2, 2], output_size=[6, 6, 10]),
    transpose("dilation", dilations=[2, 2, 1]),
    transpose("groups", w=(4, 2, 3, 2, 3), groups=2),
    transpose("same", strides=[2, 2, 2], padding_algorithm="SAME"),
    transpose("valid", paddings=[1, 1, 1], padding_algorithm="VALID"),
    transpose("last", x=(2, 2, 3, 4, 4), data_format="NHWC"),
    transpose("plain", (2, 3, 4, 5), (3, 1, 3, 2), groups=3),
    transpose(
        "stride",
        (2, 3, 4, 5),
        (3, 1, 3, 2),
        groups=3,
        strides=[2, 3],
        paddings=[1, 0],
    ),
    transpose(
        "last",
        (2, 4, 5, 3),
        (3, 1, 3, 3),
        groups=3,
        data_format="NHWC",
        padding_algorithm="SAME",
    ),
]
# five axes of attributes, where the op's defaults are for three or two
test_conv3d = suite(CASES)
test_as_the_reference = oracle_suite("volume_conv")


def _infer(type: str, x: Any, w: Any, **attrs: Any) -> tuple[int, ...]:
    metas = {"Input": [Meta(x)], "Filter": [Meta(w)]}
    every = {**kernels.find(type).defaults, **attrs}
    context = InferContext(type, metas, every, {"Output": 1})
    kernels.find(type).infer(context)
    return context.outs["Output"][0].shape


def test_unknown_sizes() -> None:
    shape = _infer("conv3d", (-1, 4, -1, 6, -1), (2, 4, 3, 3, 3))
    assert shape == (-1, 2, -1, 4, -1)
    shape = _infer("conv3d_transpose", (-1, 4, -1, 6, -1), (4, 2, 3, 3, 3))
    assert shape == (-1, 2, -1, 8, -1)


@pytest.mark.parametrize(
    ("type", "x", "w", "attrs", "said"),
    [
        ("conv3d", (2, 4, 5, 5), (2, 4, 3, 3, 3), {}, "5 dimensions"),
        ("conv3d", (2, 4, 5, 5, 5), (2, 4, 3, 3), {}, "5 dimensions"),
        ("conv3d", (2, 4, 5, 5, 5), (2, 3, 3, 3, 3), {}, "has 4 channels"),
        ("conv3d", (2, 4, 5, 5, 5), (3, 2, 3, 3, 3), {"groups": 2}, "do not divide"),
        ("conv3d", (2, 4, 2, 5, 5), (2, 4, 3, 3, 3), {}, "does not fit depth 2"),
        ("conv3d", (2, 4, 5, 5, 5), (2, 4, 3, 3, 3), {"strides": [1, 1]}, "strides"),
        ("conv3d", (2, 4, 5, 5, 5), (2, 4, 3, 3, 3), {"paddings": [1] * 4}, "3 or 6"),
        (
            "conv3d",
            (2, 4, 5, 5, 5),
            (2, 4, 3, 3, 3),
            {"data_format": "NCHW"},
            "NCDHW or NDHWC",
        ),
        ("conv3d_transpose", (2, 4, 5, 5, 5), (3, 2, 3, 3, 3), {}, "takes 3"),
        (
            "conv3d_transpose",
            (2, 4, 5, 5, 5),
            (4, 2, 3, 3, 3),
            {"output_size": [8, 7, 7]},
            "dimension 0",
        ),
    ],
)
def test_refusals(type: str, x: Any, w: Any, attrs: Any, said: str) -> None:
    with pytest.raises(InferError, match=said):
        _infer(type, x, w, **attrs)


def test_the_same_as_conv2d_on_one_plane() -> None:
    x, w = normal(2, 3, 1, 7, 8), normal(4, 3, 1, 3, 3, seed=1)
    flat = run_op("conv2d", {"Input": x[:, :, 0], "Filter": w[:, :, 0]}, {})["Output"]
    whole = run_op("conv3d", {"Input": x, "Filter": w}, {})["Output"]
    np.testing.assert_allclose(whole[:, :, 0], flat, rtol=1e-12)
