"""Convolution, pooling, normalisation and resizing, in onnxruntime and here."""

from __future__ import annotations

from typing import Any

import pytest
from export.onnx_check import check, rand

from fluidx import layers

CONVOLUTIONS: list[dict[str, Any]] = [
    {"padding": 1},
    {"padding": "SAME", "stride": 2},
    {"padding": "VALID", "dilation": 2},
    {"padding": [1, 0, 2, 1], "stride": [1, 2], "groups": 2},
    {"padding": 1, "groups": 4, "use_cudnn": False},
]


@pytest.mark.parametrize("how", CONVOLUTIONS)
def test_conv2d(how: dict[str, Any]):
    check(lambda x: layers.conv2d(x, 8, 3, act="relu", **how), x=rand(2, 4, 9, 8))


def test_conv2d_channels_last():
    check(
        lambda x: layers.conv2d(x, 8, 3, padding=1, data_format="NHWC"),
        x=rand(2, 9, 8, 4),
    )


TRANSPOSED: list[dict[str, Any]] = [
    {"filter_size": 3, "padding": 1, "groups": 2},
    {"filter_size": 3, "padding": 1, "output_size": [18, 17]},
    {"filter_size": 2, "padding": [0, 1, 1, 0], "dilation": 2},
]


@pytest.mark.parametrize("how", TRANSPOSED)
def test_conv2d_transpose(how: dict[str, Any]):
    check(lambda x: layers.conv2d_transpose(x, 6, stride=2, **how), x=rand(2, 4, 9, 9))


POOLS: list[dict[str, Any]] = [
    {"pool_size": 2, "pool_stride": 2},
    {"pool_size": 3, "pool_stride": 2, "pool_padding": 1},
    {"pool_size": 3, "pool_stride": 2, "pool_padding": 1, "exclusive": False},
    {"pool_size": 3, "pool_stride": 2, "ceil_mode": True},
    {"pool_size": 3, "pool_padding": "SAME", "pool_stride": 2},
    {"global_pooling": True},
]


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("how", POOLS)
def test_pool2d(kind: str, how: dict[str, Any]):
    check(lambda x: layers.pool2d(x, pool_type=kind, **how), x=rand(2, 3, 8, 9))


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("size", [1, [2, 3]])
def test_adaptive_pool2d(kind: str, size: Any):
    check(lambda x: layers.adaptive_pool2d(x, size, kind), x=rand(2, 3, 8, 9))


def test_normalisation():
    def build(x: Any) -> list[Any]:
        return [
            layers.batch_norm(x, act="relu"),
            layers.instance_norm(x),
            layers.group_norm(x, 2),
            layers.layer_norm(x),
            layers.layer_norm(x, begin_norm_axis=3, scale=False, shift=False),
            layers.lrn(x),
            layers.pixel_shuffle(x, 2),
        ]

    check(build, x=rand(2, 4, 5, 6), atol=1e-5)


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("align_mode", [0, 1])
def test_resize(corners: bool, align_mode: int):
    check(
        lambda x: [
            layers.resize_bilinear(
                x, [7, 5], align_corners=corners, align_mode=align_mode
            ),
            layers.resize_nearest(x, [6, 9], align_corners=corners),
        ],
        x=rand(2, 3, 4, 5),
    )
