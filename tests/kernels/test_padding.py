"""pad, pad_constant_like, pad2d, crop, crop_tensor against numpy and records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from replay_oracle import oracle_suite


def _pad(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    pads = np.array(a["paddings"]).reshape(-1, 2)
    return {"Out": np.pad(x["X"], pads, constant_values=a["pad_value"])}


def _pad2d(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    top, bottom, left, right = x.get("Paddings", a["paddings"])
    pads = [(0, 0), (0, 0), (top, bottom), (left, right)]
    if a["data_format"] == "NHWC":
        pads = [pads[0], *pads[2:], pads[1]]
    more = {"constant_values": a["pad_value"]} if a["mode"] == "constant" else {}
    return {"Out": np.pad(x["X"], pads, a["mode"], **more)}


def _small(*values: int) -> np.ndarray:
    return np.array(values, "i4")


IMAGE = {"X": normal(2, 3, 4, 5)}
X = {"X": normal(4, 5)}
CASES = [
    OpCase(
        "pad", {"X": normal(2, 3)}, {"paddings": [1, 0, 0, 2], "pad_value": 0.5}, _pad
    ),
    OpCase(
        "pad",
        {"X": integers(3, high=9)},
        {"paddings": [2, 1]},
        _pad,
        "integers",
        grad=(),
    ),
    OpCase("pad", {"X": normal(0, 2)}, {"paddings": [1, 1, 0, 0]}, _pad, "empty"),
    OpCase("pad", {"X": normal(2)}, {"paddings": [0, 0]}, _pad, "nothing"),
    OpCase(
        "pad_constant_like",
        {"X": normal(3, 4), "Y": normal(2, 4, seed=1)},
        {"pad_value": -1.5},
        lambda x, a: {"Out": np.pad(x["Y"], [(0, 1), (0, 0)], constant_values=-1.5)},
    ),
    *(
        OpCase(
            "pad2d",
            IMAGE,
            {"paddings": pads, "mode": mode, "data_format": layout, "pad_value": 2.0},
            _pad2d,
            f"{mode}-{layout}",
        )
        for mode in ("constant", "reflect", "edge")
        for layout, pads in (("NCHW", [1, 2, 3, 0]), ("NHWC", [2, 0, 1, 2]))
    ),
    OpCase(
        "pad2d",
        {**IMAGE, "Paddings": _small(1, 0, 2, 1)},
        {"paddings": []},
        _pad2d,
        "tensor",
    ),
    OpCase(
        "pad2d",
        IMAGE,
        {"paddings": [-1, 2, 0, -3]},
        lambda x, a: {
            "Out": np.pad(x["X"][:, :, 1:, :-3], [(0, 0), (0, 0), (0, 2), (0, 0)])
        },
        "cut",
    ),
    OpCase(
        "pad2d",
        {"X": normal(0, 1, 2, 2)},
        {"paddings": [1, 1, 0, 0], "mode": "edge"},
        _pad2d,
        "empty",
    ),
    OpCase(
        "crop",
        X,
        {"shape": [2, 3], "offsets": [1, 2]},
        lambda x, a: {"Out": x["X"][1:3, 2:]},
    ),
    OpCase(
        "crop",
        {**X, "Y": normal(3, 2, seed=1), "Offsets": _small(1, 0)},
        {},
        lambda x, a: {"Out": x["X"][1:4, :2]},
        "like",
    ),
    OpCase(
        "crop",
        X,
        {"shape": [-1, 5], "offsets": [3, 0]},
        lambda x, a: {"Out": x["X"][3:]},
        "rest",
    ),
    OpCase(
        "crop_tensor",
        X,
        {"shape": [2, -1], "offsets": [1, 2]},
        lambda x, a: {"Out": x["X"][1:3, 2:]},
    ),
    OpCase(
        "crop_tensor",
        {**X, "ShapeTensor": [_small(2), _small(3)], "Offsets": _small(2, 1)},
        {"shape": [0, 3], "offsets": [-1, -1]},
        lambda x, a: {"Out": x["X"][2:4, 1:4]},
        "tensors",
    ),
    OpCase(
        "crop_tensor",
        {**X, "Shape": _small(2, 3), "OffsetsTensor": [_small(0), _small(1)]},
        {"offsets": [0, -1]},
        lambda x, a: {"Out": x["X"][:2, 1:4]},
        "tensor",
    ),
]
test_padding = suite(CASES)
test_against_reference = oracle_suite("dense_moves", *{case.op for case in CASES})


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        (
            "crop",
            X,
            {"shape": [2, 3], "offsets": [3, 0]},
            r"crop: \[2, 3\] from \[3, 0\]",
        ),
        ("crop", X, {"shape": [2], "offsets": [3]}, "have not one number per axis"),
        (
            "pad2d",
            {"X": normal(1, 1, 2, 2)},
            {"paddings": [3, 0, 0, 0], "mode": "reflect"},
            "pad2d: cannot reflect 3 and 0 elements of an axis of 2",
        ),
        (
            "pad_constant_like",
            {"X": normal(2, 2), "Y": normal(3, 2)},
            {},
            r"pad_constant_like: Y \(3, 2\) does not fit into \(2, 2\)",
        ),
    ],
)
def test_what_does_not_fit(op: str, inputs: Any, attrs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_op(op, inputs, attrs)


def test_crops_are_views() -> None:
    attrs = {"shape": [2, 3], "offsets": [1, 2]}
    assert np.shares_memory(run_op("crop", X, attrs)["Out"], X["X"])
