"""conv2d, depthwise_conv2d, conv2d_transpose."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import vision_oracle
from opcase import OpCase, normal, run_op, suite
from strict_xp import strict_xp

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta, conv_gemm, conv_winograd


def plain_conv(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    """Convolution by its definition, one output element at a time."""
    images, weight = x["Input"], x["Filter"]
    if a["data_format"] == "NHWC":
        images = images.transpose(0, 3, 1, 2)
    (top, left), groups = a["paddings"], a["groups"]
    (sy, sx), (dy, dx) = a["strides"], a["dilations"]
    padded = np.pad(images, ((0, 0), (0, 0), (top, top), (left, left)))
    filters, per_group, kh, kw = weight.shape
    rows = (padded.shape[2] - dy * (kh - 1) - 1) // sy + 1
    columns = (padded.shape[3] - dx * (kw - 1) - 1) // sx + 1
    out = np.zeros((len(images), filters, rows, columns))
    for f, i, j in itertools.product(range(filters), range(rows), range(columns)):
        first = f // (filters // groups) * per_group
        window = padded[
            :,
            first : first + per_group,
            i * sy : i * sy + dy * kh : dy,
            j * sx : j * sx + dx * kw : dx,
        ]
        out[:, f, i, j] = (window * weight[f]).sum((1, 2, 3))
    if x.get("Bias") is not None:
        out += x["Bias"].reshape(1, -1, 1, 1)
    if a["data_format"] == "NHWC":
        out = out.transpose(0, 2, 3, 1)
    return {"Output": out}


def conv(
    name: str,
    x: tuple[int, ...] = (2, 2, 5, 6),
    w: tuple[int, ...] = (3, 2, 3, 2),
    op: str = "conv2d",
    bias: bool = False,
    **attrs: Any,
) -> OpCase:
    inputs = {"Input": normal(*x), "Filter": normal(*w, seed=1)}
    if bias:
        inputs["Bias"] = normal(w[0], seed=2)
    return OpCase(op, inputs, attrs, plain_conv, name)


CASES = [
    conv("plain"),
    conv("pad", paddings=[1, 2]),
    conv("stride", strides=[2, 3], paddings=[1, 0]),
    conv("stride beyond kernel", strides=[4, 3]),
    conv("dilation", dilations=[2, 3]),
    conv("dilation and stride", dilations=[2, 1], strides=[2, 2], paddings=[1, 1]),
    conv("pointwise", w=(3, 2, 1, 1)),
    conv("pointwise stride", w=(3, 2, 1, 1), strides=[2, 2]),
    conv("groups", x=(2, 4, 4, 5), w=(6, 2, 3, 2), groups=2),
    conv("bias", bias=True),
    conv("nhwc", x=(2, 5, 6, 2), data_format="NHWC", bias=True),
    conv("nhwc pointwise", x=(2, 3, 4, 2), w=(3, 2, 1, 1), data_format="NHWC"),
    conv("whole image", w=(3, 2, 5, 6)),
    conv("pad beyond kernel", paddings=[3, 2]),
    conv("one filter per channel", x=(2, 3, 4, 5), w=(3, 1, 3, 3), groups=3),
    conv(
        "two filters per channel",
        x=(2, 3, 4, 5),
        w=(6, 1, 3, 2),
        op="depthwise_conv2d",
        groups=3,
        paddings=[1, 1],
        strides=[2, 1],
    ),
    conv(
        "nhwc",
        x=(2, 4, 5, 3),
        w=(3, 1, 3, 2),
        op="depthwise_conv2d",
        groups=3,
        data_format="NHWC",
        dilations=[1, 2],
    ),
]

test_conv = suite(CASES)


def plain_transpose(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    """Each input element adds the filter, scaled, to the output."""
    images, weight = x["Input"], x["Filter"]
    (sy, sx), (top, left) = a["strides"], a["paddings"]
    n, channels, rows, columns = images.shape
    kh, kw = weight.shape[2:]
    whole = np.zeros(
        (n, weight.shape[1], (rows - 1) * sy + kh, (columns - 1) * sx + kw)
    )
    for c, i, j in itertools.product(range(channels), range(rows), range(columns)):
        whole[:, :, i * sy : i * sy + kh, j * sx : j * sx + kw] += (
            images[:, c, i, j].reshape(n, 1, 1, 1) * weight[c]
        )
    height, width = whole.shape[2] - 2 * top, whole.shape[3] - 2 * left
    out = whole[:, :, top : top + height, left : left + width]
    if x.get("Bias") is not None:
        out = out + x["Bias"].reshape(1, -1, 1, 1)
    return {"Output": out}


def transpose(name: str, bias: bool = False, **attrs: Any) -> OpCase:
    inputs = {"Input": normal(2, 2, 3, 4), "Filter": normal(2, 3, 3, 2, seed=1)}
    if bias:
        inputs["Bias"] = normal(3, seed=2)
    return OpCase("conv2d_transpose", inputs, attrs, plain_transpose, name)


test_transpose = suite(
    [
        transpose("plain"),
        transpose("stride", strides=[2, 3], bias=True),
        transpose("stride and pad", strides=[2, 2], paddings=[1, 1]),
        transpose("pad", paddings=[1, 0]),
    ]
)


@pytest.mark.parametrize("record", vision_oracle.cases("conv"))
def test_as_the_reference(record: dict[str, Any]) -> None:
    vision_oracle.check(record)


def infer(type: str, shapes: dict[str, tuple[int, ...]], **attrs: Any) -> Any:
    definition = kernels.find(type)
    metas = {slot: [Meta(shape)] for slot, shape in shapes.items()}
    context = InferContext(type, metas, {**definition.defaults, **attrs}, {"Output": 1})
    definition.infer(context)
    return context.outs["Output"][0].shape


def test_unknown_sizes_stay_unknown() -> None:
    shapes = {"Input": (-1, 3, -1, 8), "Filter": (4, 3, 3, 3)}
    assert infer("conv2d", shapes) == (-1, 4, -1, 6)
    assert infer("conv2d", shapes, padding_algorithm="SAME") == (-1, 4, -1, 8)
    shapes = {"Input": (-1, 3, -1, 8), "Filter": (3, 4, 3, 3)}
    wanted = (-1, 4, -1, 17)
    assert infer("conv2d_transpose", shapes, strides=[2, 2]) == wanted


@pytest.mark.parametrize(
    ("type", "x", "w", "attrs", "message"),
    [
        ("conv2d", (1, 2, 5, 5), (2, 3, 3, 3), {}, "2 channels"),
        ("conv2d", (1, 2, 5, 5), (3, 1, 3, 3), {"groups": 2}, "divide into 2 groups"),
        ("conv2d", (1, 2, 2, 5), (2, 2, 3, 3), {}, "does not fit height 2"),
        ("conv2d", (1, 2, 5, 5), (2, 2, 3, 3), {"paddings": [1, 1, 1]}, "2 or 4"),
        ("conv2d", (1, 2, 5), (2, 2, 3, 3), {}, "4 dimensions"),
        ("conv2d", (1, 2, 5, 5), (2, 2, 3), {}, "4 dimensions"),
        ("conv2d", (1, 2, 5, 5), (2, 2, 3, 3), {"strides": [0, 1]}, "positive"),
        ("conv2d", (1, 2, 5, 5), (2, 2, 3, 3), {"data_format": "CHWN"}, "NHWC"),
        (
            "conv2d_transpose",
            (1, 2, 5, 6),
            (2, 3, 3, 3),
            {"strides": [2, 2], "output_size": [20, 20]},
            "at least 11 and less than 13",
        ),
    ],
)
def test_refusals(type: str, x: Any, w: Any, attrs: Any, message: str) -> None:
    with pytest.raises(InferError, match=message):
        infer(type, {"Input": x, "Filter": w}, **attrs)


@pytest.mark.parametrize("case", CASES[:10], ids=str)
def test_blocks_of_images(case: OpCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results do not depend on how many images are lowered at a time."""
    inputs = {**case.inputs, "Input": np.repeat(case.inputs["Input"], 3, 0)}
    whole = run_op(case.op, inputs, case.attrs)["Output"]
    given = {**inputs, "Output@GRAD": normal(*whole.shape)}
    whole_grads = run_op(f"{case.op}_grad", given, case.attrs)
    monkeypatch.setattr(conv_gemm, "HOST_BLOCK", 1)
    np.testing.assert_allclose(
        run_op(case.op, inputs, case.attrs)["Output"], whole, 1e-12, 1e-12
    )
    grads = run_op(f"{case.op}_grad", given, case.attrs)
    assert grads.keys() == whole_grads.keys()
    for slot, value in whole_grads.items():
        np.testing.assert_allclose(grads[slot], value, 1e-11, 1e-11)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_under_strict_xp(case: OpCase) -> None:
    """The gradient kernel uses what CuPy has; the result is numpy's."""
    out = run_op(case.op, case.inputs, case.attrs)["Output"]
    given = {**case.inputs, "Output@GRAD": normal(*out.shape)}
    plain = run_op(f"{case.op}_grad", given, case.attrs)
    strict = run_op(f"{case.op}_grad", given, case.attrs, xp=strict_xp())
    for slot, value in plain.items():
        np.testing.assert_allclose(strict[slot], value, 1e-12, 1e-12)


def test_only_wanted_gradients_are_made() -> None:
    inputs = {
        "Input": normal(1, 2, 4, 4),
        "Filter": normal(3, 2, 3, 3),
        "Output@GRAD": normal(1, 3, 2, 2),
    }
    for type in ("conv2d", "depthwise_conv2d"):
        made = run_op(f"{type}_grad", inputs, {}, wants=["Filter@GRAD"])
        assert list(made) == ["Filter@GRAD"]


def test_results_do_not_share_scratch_memory() -> None:
    x, w = normal(2, 2, 5, 5), normal(2, 2, 3, 3)
    first = run_op("conv2d", {"Input": x, "Filter": w}, {})["Output"]
    kept = first.copy()
    run_op("conv2d", {"Input": -x, "Filter": w}, {})
    np.testing.assert_array_equal(first, kept)


def wide(name: str, x: tuple[int, ...], w: tuple[int, ...], **attrs: Any) -> OpCase:
    inputs = {"Input": normal(*x), "Filter": normal(*w, seed=1)}
    return OpCase("conv2d", inputs, attrs, plain_conv, name)


WINOGRAD = [
    wide("plain", (3, 2, 5, 9), (3, 2, 3, 3)),
    wide("pad", (2, 3, 4, 8), (2, 3, 3, 3), paddings=[1, 1]),
    wide("one row", (2, 2, 4, 10), (3, 2, 1, 3), paddings=[0, 1]),
    wide("tall", (2, 2, 7, 6), (2, 2, 5, 3), paddings=[1, 0]),
    wide("pad beyond kernel", (1, 2, 3, 7), (2, 2, 2, 3), paddings=[3, 4]),
    wide("nhwc", (2, 4, 9, 3), (2, 3, 3, 3), paddings=[1, 1], data_format="NHWC"),
]


@pytest.mark.parametrize("case", WINOGRAD, ids=str)
@pytest.mark.parametrize("block", [1, 1 << 24])
@pytest.mark.parametrize("chunk", [1, 1 << 14])
def test_winograd(
    case: OpCase, block: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output and gradients are those of the definition, to float64 precision."""
    out = run_op("conv2d", case.inputs, case.attrs)["Output"]
    given = {**case.inputs, "Output@GRAD": normal(*out.shape)}
    grads = run_op("conv2d_grad", given, case.attrs)
    monkeypatch.setattr(conv_winograd, "BLOCK", block)
    monkeypatch.setattr(conv_winograd, "CHUNK", chunk)
    calls = []
    monkeypatch.setattr(
        conv_winograd, "pays", lambda *a: calls.append(a) is None and a[5].kernel == 3
    )
    definition = kernels.find("conv2d")
    wanted = plain_conv(case.inputs, {**definition.defaults, **case.attrs})["Output"]
    got = run_op("conv2d", case.inputs, case.attrs)["Output"]
    np.testing.assert_allclose(got, wanted, 1e-11, 1e-11)
    assert calls
    made = run_op("conv2d_grad", given, case.attrs)
    for slot, value in grads.items():
        np.testing.assert_allclose(made[slot], value, 1e-11, 1e-11)


def test_winograd_is_taken_and_precise_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32 on a shape where it pays: within 1e-5 of the largest value."""
    x = normal(16, 32, 6, 32).astype("float32")
    w = normal(32, 32, 3, 3, seed=1).astype("float32")
    inputs, attrs = {"Input": x, "Filter": w}, {"paddings": [1, 1]}
    fast = run_op("conv2d", inputs, attrs)["Output"]
    given = {**inputs, "Output@GRAD": normal(*fast.shape).astype("float32")}
    fast_grads = run_op("conv2d_grad", given, attrs)
    monkeypatch.setattr(conv_winograd, "pays", lambda *a: False)
    plain = run_op("conv2d", inputs, attrs)["Output"]
    grads = run_op("conv2d_grad", given, attrs)
    assert (fast != plain).any()
    pairs = [(fast, plain), *((fast_grads[s], grads[s]) for s in grads)]
    for got, wanted in pairs:
        assert got.dtype == np.float32
        assert np.abs(got - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("type", ["conv2d", "depthwise_conv2d"])
def test_empty_batch(type: str) -> None:
    inputs = {"Input": normal(0, 2, 5, 5), "Filter": normal(4, 1, 3, 3)}
    attrs = {"groups": 2}
    out = run_op(type, inputs, attrs)["Output"]
    assert out.shape == (0, 4, 3, 3)
    grads = run_op(f"{type}_grad", {**inputs, "Output@GRAD": out}, attrs)
    assert grads["Input@GRAD"].shape == (0, 2, 5, 5)
    np.testing.assert_array_equal(grads["Filter@GRAD"], np.zeros((4, 1, 3, 3)))


def test_empty_batch_by_gemm() -> None:
    inputs = {"Input": normal(0, 2, 5, 5), "Filter": normal(4, 2, 3, 3)}
    out = run_op("conv2d", inputs, {})["Output"]
    assert out.shape == (0, 4, 3, 3)
    grads = run_op("conv2d_grad", {**inputs, "Output@GRAD": out}, {})
    assert grads["Input@GRAD"].shape == (0, 2, 5, 5)
    np.testing.assert_array_equal(grads["Filter@GRAD"], np.zeros((4, 2, 3, 3)))
