"""Resizing of images and volumes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def _source(o: int, size: int, out: int, corners: bool, centre: bool) -> float:
    """Where element `o` of the output comes from."""
    if corners:
        return o * (size - 1) / (out - 1) if out > 1 else 0.0
    return (o + 0.5) * size / out - 0.5 if centre else o * size / out


def _cubic(d: float) -> float:
    a, d = -0.75, abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _matrix(size: int, out: int, method: str, corners: bool, mode: int) -> np.ndarray:
    """(out, size), from the definition, one element at a time."""
    made = np.zeros((out, size))
    for o in range(out):
        if method == "nearest":
            place = _source(o, size, out, corners, False)
            made[o, min(int(place + 0.5 if corners else place + 1e-6), size - 1)] = 1
            continue
        centre = method == "bicubic" or mode == 0
        place = _source(o, size, out, corners, centre)
        if method == "bicubic":
            low = int(np.floor(place))
            for i in range(low - 1, low + 3):
                made[o, min(max(i, 0), size - 1)] += _cubic(place - i)
            continue
        place = max(place, 0.0)
        low = int(place)
        made[o, low] += 1 - (place - low)
        made[o, min(low + 1, size - 1)] += place - low
    return made


def plain(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    value = x["X"]
    last = a["data_layout"] == "NHWC"
    dims = value.ndim - 2
    given = [a["out_d"], a["out_h"], a["out_w"]][-dims:]
    for i in range(dims):
        axis = i + 1 if last else i + 2
        size = value.shape[axis]
        out = int(size * a["scale"]) if a["scale"] else given[i]
        how = (a["interp_method"], a["align_corners"], a["align_mode"])
        if size != out:
            matrix = _matrix(size, out, *how)
            value = np.moveaxis(np.tensordot(matrix, value, (1, axis)), 0, axis)
    return {"Out": value}


def resize(method: str, name: str, x: Any, size: Any = (), **a: Any) -> OpCase:
    names = ("out_d", "out_h", "out_w")
    attrs = dict(zip(names[-len(size) :], size)) if size else {}
    attrs |= {"interp_method": method, **a}
    # weights are found in float32
    return OpCase(
        f"{method}_interp",
        {"X": normal(*x)},
        attrs,
        plain,
        name,
        rtol=1e-5,
        atol=1e-5,
    )


def every(method: str) -> list[OpCase]:
    x = (2, 3, 5, 4)
    cases = []
    for corners, mode in ((True, 1), (False, 1), (False, 0)):
        how: dict[str, Any] = {"align_corners": corners, "align_mode": mode}
        cases += [
            resize(method, "larger", x, (8, 9), **how),
            resize(method, "smaller", x, (3, 2), **how),
            resize(method, "one", x, (1, 1), **how),
            resize(method, "one axis", x, (5, 7), **how),
            resize(method, "scale", x, scale=1.5, **how),
        ]
    return [
        *cases,
        resize(method, "same size", x, (5, 4)),
        resize(method, "last", (2, 5, 4, 3), (8, 3), data_layout="NHWC"),
        resize(method, "from one", (2, 3, 1, 1), (4, 3)),
        resize(method, "no images", (0, 3, 5, 4), (8, 9)),
    ]


CASES = [
    *every("bilinear"),
    *every("nearest"),
    *every("bicubic"),
    resize("trilinear", "larger", (1, 2, 2, 3, 4), (4, 5, 6)),
    resize("trilinear", "smaller", (1, 2, 4, 5, 4), (2, 3, 2), align_corners=False),
    resize(
        "trilinear",
        "centres",
        (1, 2, 2, 3, 4),
        (4, 5, 6),
        align_corners=False,
        align_mode=0,
    ),
    resize("trilinear", "scale", (1, 2, 2, 3, 4), scale=2.0),
    resize("trilinear", "last", (1, 2, 3, 4, 2), (4, 2, 6), data_layout="NHWC"),
]
test_interp = suite(CASES)
test_as_the_reference = oracle_suite(
    "image_ops",
    "bilinear_interp",
    "nearest_interp",
    "bicubic_interp",
    "trilinear_interp",
)


def test_a_nan_stays_where_it_is() -> None:
    x = np.ones((1, 1, 4, 8))
    x[0, 0, 0, 0] = np.nan
    attrs = {"interp_method": "bilinear", "out_h": 8, "out_w": 16}
    out = run_op("bilinear_interp", {"X": x}, attrs)["Out"]
    assert np.isnan(out).sum() < 20
    np.testing.assert_allclose(out[0, 0, 4:], 1)


def test_sizes_from_tensors_go_first() -> None:
    attrs = {"out_h": 9, "out_w": 9, "scale": 3.0, "interp_method": "bilinear"}
    x = normal(1, 1, 2, 2)
    size = {"OutSize": np.array([4, 5], "int32")}
    parts = {"SizeTensor": [np.array([3], "int32"), np.array([6], "int32")]}
    scale = {"Scale": np.array([2.0], "float32")}

    def shape(**more: Any) -> tuple[int, ...]:
        got: tuple[int, ...] = run_op("bilinear_interp", {"X": x, **more}, attrs)[
            "Out"
        ].shape
        return got[2:]

    assert shape() == (6, 6)
    assert shape(**scale) == (4, 4)
    assert shape(**scale, **size) == (4, 5)
    assert shape(**scale, **size, **parts) == (3, 6)


@pytest.mark.parametrize(
    ("x", "attrs", "said"),
    [
        ((2, 3, 4), {"out_h": 2, "out_w": 2}, "4 dimensions"),
        ((2, 3, 4, 4), {"out_h": 2}, "out_w must be positive"),
        ((2, 3, 4, 4), {"out_h": 2, "out_w": 2, "data_layout": "CHW"}, "data_layout"),
    ],
)
def test_refusals(x: Any, attrs: Any, said: str) -> None:
    definition = kernels.find("bilinear_interp")
    context = InferContext(
        "bilinear_interp",
        {"X": [Meta(x)]},
        {**definition.defaults, **attrs},
        {"Out": 1},
    )
    with pytest.raises(InferError, match=said):
        definition.infer(context)
