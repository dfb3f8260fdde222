"""Picking, masks, distances, costs and volumes in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from export.onnx_check import check, rand

import fluidx as fluid
from fluidx import layers
from fluidx.export import ExportError, to_onnx
from fluidx.layer_helper import LayerHelper


def _op(type: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """One op without a layer of its own."""
    helper = LayerHelper(type)
    out = helper.create_variable_for_type_inference(next(iter(inputs.values())).dtype)
    helper.append_op(type, inputs, {"Out": out}, attrs)
    return out


X = rand(3, 4, 5)
IMAGE = rand(4, 6, 4, 6)
ROWS = np.array([2, 0], "int64")
LABELS = np.array([[1], [3], [0]], "int64")
CHANCES = rand(3, 5, low=0.05, high=0.95)

CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "flip": (lambda x: layers.reverse(x, [0, 2]), {"x": X}),
    "flip_op": (lambda x: _op("flip", {"X": x}, {"dims": [1]}), {"x": X}),
    "roll": (lambda x: _op("roll", {"X": x}, {"shifts": [2], "dims": [1]}), {"x": X}),
    "roll_two": (
        lambda x: _op("roll", {"X": x}, {"shifts": [-1, 7], "dims": [2, 1]}),
        {"x": X},
    ),
    "index_select": (
        lambda x, i: _op("index_select", {"X": x, "Index": i}, {"dim": 1}),
        {"x": X, "i": ROWS},
    ),
    "index_sample": (
        lambda x, i: _op("index_sample", {"X": x, "Index": i}, {}),
        {"x": rand(3, 5), "i": np.array([[1, 0], [4, 4], [2, 3]])},
    ),
    "scatter": (
        lambda x, i, u: layers.scatter(x, i, u),
        {"x": X, "i": ROWS, "u": rand(2, 4, 5, seed=4)},
    ),
    "scatter_nd_add": (
        lambda x, i, u: layers.scatter_nd_add(x, i, u),
        {"x": X, "i": np.array([[1, 2], [1, 2]]), "u": rand(2, 5, seed=4)},
    ),
    "multiplex": (
        lambda x, y, i: layers.multiplex([x, y], i),
        {"x": rand(3, 4), "y": rand(3, 4, seed=4), "i": LABELS.astype("int32") % 2},
    ),
    "where": (lambda x: layers.where(layers.greater_than(x, x * x)), {"x": X}),
    "crop_tensor": (
        lambda x: layers.crop_tensor(x, [-1, 2, 3], [0, 1, 2]),
        {"x": X},
    ),
    "pad_constant_like": (
        lambda x, y: layers.pad_constant_like(x, y, 1.5),
        {"x": X, "y": rand(3, 2, 3)},
    ),
    "tril": (
        lambda x: _op("tril_triu", {"X": x}, {"diagonal": -1, "lower": True}),
        {"x": X},
    ),
    "triu": (
        lambda x: _op("tril_triu", {"X": x}, {"diagonal": 1, "lower": False}),
        {"x": X},
    ),
    "finite": (
        lambda x: [layers.isfinite(x), layers.has_nan(x), layers.has_inf(x)],
        {"x": np.array([[1.0, np.inf]], "float32")},
    ),
    "size": (lambda x: [layers.size(x), layers.is_empty(x)], {"x": X}),
    "like": (lambda x: [layers.ones_like(x), layers.zeros_like(x)], {"x": X}),
    "eye": (lambda x: layers.elementwise_add(x, layers.eye(4, 5)), {"x": X}),
    "diag": (
        lambda x: layers.matmul(x, layers.diag(layers.assign(ROWS.astype("f4")))),
        {"x": rand(3, 2)},
    ),
    "space_to_depth": (lambda x: layers.space_to_depth(x, 2), {"x": rand(2, 8, 4, 6)}),
    "shuffle_channel": (lambda x: layers.shuffle_channel(x, 3), {"x": IMAGE}),
    "maxout": (
        lambda x: [layers.maxout(x, 3), layers.maxout(x, 2, axis=3)],
        {"x": IMAGE},
    ),
    "temporal_shift": (lambda x: layers.temporal_shift(x, 2, 0.2), {"x": IMAGE}),
    "grid_sampler": (
        lambda x, g: layers.grid_sampler(x, g),
        {"x": IMAGE, "g": rand(4, 4, 6, 2, low=-1.2, high=1.2)},
    ),
    "addmm": (
        lambda a, x, y: _op(
            "addmm", {"Input": a, "X": x, "Y": y}, {"Alpha": 0.5, "Beta": 2.0}
        ),
        {"a": rand(3, 2), "x": rand(3, 4), "y": rand(4, 2)},
    ),
    "bilinear": (
        lambda x, y: layers.bilinear_tensor_product(x, y, 6),
        {"x": rand(3, 4), "y": rand(3, 5)},
    ),
    "cos_sim": (
        lambda x, y: layers.cos_sim(x, y),
        {"x": rand(3, 4), "y": rand(3, 4, seed=9)},
    ),
    "clip_by_norm": (
        lambda x: [layers.clip_by_norm(x, 1.0), layers.clip_by_norm(x, 99.0)],
        {"x": X},
    ),
    "label_smooth": (
        lambda y: layers.label_smooth(layers.one_hot(y, 5), epsilon=0.2),
        {"y": LABELS},
    ),
    "log_loss": (
        lambda p, y: layers.log_loss(p, y),
        {"p": CHANCES[:, :1], "y": LABELS.astype("float32") % 2},
    ),
    "cross_entropy": (
        lambda p, y: [layers.cross_entropy(p, y), layers.cross_entropy(p, p, True)],
        {"p": CHANCES, "y": LABELS},
    ),
    "softmax_with_cross_entropy": (
        lambda x, y, p: [
            *layers.softmax_with_cross_entropy(x, y, return_softmax=True),
            layers.softmax_with_cross_entropy(x, p, soft_label=True),
        ],
        {"x": rand(3, 5), "y": LABELS, "p": CHANCES},
    ),
    "sigmoid_cross_entropy": (
        lambda x, y: layers.sigmoid_cross_entropy_with_logits(x, y, ignore_index=1),
        {"x": rand(3, 5), "y": np.round(CHANCES)},
    ),
    "huber_loss": (
        lambda x, y: layers.huber_loss(x, y, 0.8),
        {"x": rand(6, 1), "y": rand(6, 1, seed=8)},
    ),
    "squared_l2": (
        lambda x, y: [
            _op("squared_l2_norm", {"X": x}, {}),
            _op("squared_l2_norm", {"X": layers.square(y)}, {}),
        ],
        {"x": rand(3, 4), "y": rand(3, 2, seed=8)},
    ),
    "square_error_cost": (
        lambda x, y: layers.square_error_cost(x, y),
        {"x": rand(3, 1), "y": rand(3, 1, seed=8)},
    ),
    "conv3d": (
        lambda x: [
            layers.conv3d(x, 4, 3, 2, 1),
            layers.conv3d(x, 4, 2, groups=2, bias_attr=False, padding="SAME"),
            layers.conv3d(x, 4, 2, padding=[[0, 0], [0, 0], [1, 0], [0, 1], [2, 0]]),
        ],
        {"x": rand(2, 2, 5, 4, 6)},
    ),
    "conv3d_transpose": (
        lambda x: layers.conv3d_transpose(x, 3, filter_size=2, stride=2),
        {"x": rand(2, 2, 3, 4, 2)},
    ),
    "pool3d": (
        lambda x: [
            layers.pool3d(x, 2, "max", 2),
            layers.pool3d(x, 3, "avg", 1, 1),
            layers.pool3d(x, 3, "avg", 1, 1, exclusive=False),
            layers.pool3d(x, global_pooling=True, pool_type="avg"),
        ],
        {"x": rand(2, 2, 5, 4, 6)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_op(name: str) -> None:
    build, feed = CASES[name]
    check(build, atol=5e-6, **feed)


def test_squared_l2_distance() -> None:
    def build(x: Any, y: Any) -> Any:
        helper = LayerHelper("squared_l2_distance")
        slots = ("Out", "sub_result")
        outs = {s: helper.create_variable_for_type_inference("float32") for s in slots}
        helper.append_op("squared_l2_distance", {"X": x, "Y": y}, outs)
        return list(outs.values())

    check(build, x=rand(3, 4), y=rand(3, 4, seed=8))


def test_meshgrid() -> None:
    feed = {"a": rand(3), "b": rand(4, seed=5)}

    def build(a: Any, b: Any) -> Any:
        helper = LayerHelper("meshgrid")
        outs = [helper.create_variable_for_type_inference("float32") for _ in "ab"]
        helper.append_op("meshgrid", {"X": [a, b]}, {"Out": outs})
        return outs

    check(build, unknown=(), **feed)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (
            lambda x, i: layers.scatter(x, i, x, overwrite=False),
            "overwrite=False",
        ),
        (
            lambda x, i: layers.softmax_with_cross_entropy(
                x, layers.reshape(i, [-1, 1]), ignore_index=0
            ),
            "ignore_index",
        ),
    ],
)
def test_what_has_no_equal_is_named(build: Any, says: str) -> None:
    x, i = fluid.data("x", [None, 3]), fluid.data("i", [None], "int64")
    out = build(x, i)
    with pytest.raises(ExportError, match=says):
        to_onnx(fluid.default_main_program(), ["x", "i"], [out])
