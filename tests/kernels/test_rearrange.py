"""flip, roll, meshgrid, expand_as, unbind; moves of channels; unfold; maxout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from replay_oracle import oracle_suite


def _unfolded(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    """Window by window."""
    top, left, bottom, right = a["paddings"]
    image = np.pad(x["X"], [(0, 0), (0, 0), (top, bottom), (left, right)])
    (kh, kw), (sh, sw), (dh, dw) = a["kernel_sizes"], a["strides"], a["dilations"]
    columns = []
    for i in range(0, image.shape[2] - dh * (kh - 1), sh):
        for j in range(0, image.shape[3] - dw * (kw - 1), sw):
            window = image[:, :, i : i + dh * kh : dh, j : j + dw * kw : dw]
            columns.append(window[:, :, :kh, :kw].reshape(len(image), -1))
    return {"Y": np.stack(columns, -1)}


def _window(kernel: Any, strides: Any, paddings: Any, dilations: Any) -> dict[str, Any]:
    return {
        "kernel_sizes": kernel,
        "strides": strides,
        "paddings": paddings,
        "dilations": dilations,
    }


def _by_turns(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    c = x["X"].shape[1]
    order = [
        g * (c // a["group"]) + i
        for i in range(c // a["group"])
        for g in range(a["group"])
    ]
    return {"Out": x["X"][:, order]}


def _enlarged(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    r, (n, c, h, w) = a["upscale_factor"], x["X"].shape
    out = np.zeros((n, c // r**2, h * r, w * r))
    for i in range(r):
        for j in range(r):
            out[:, :, i::r, j::r] = x["X"][:, i * r + j :: r * r]
    return {"Out": out}


def _reorganised(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    b, (n, c, h, w) = a["blocksize"], x["X"].shape
    image = np.zeros((n, c // b**2, h * b, w * b))
    for i in range(b):
        for j in range(b):
            first = (i * b + j) * (c // b**2)
            image[:, :, i::b, j::b] = x["X"][:, first : first + c // b**2]
    return {"Out": image.reshape(n, c * b * b, h // b, w // b)}


def _shifted(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    frames, out = a["seg_num"], x["X"].copy()
    c = x["X"].shape[1]
    first, second = int(c * a["shift_ratio"]), int(2 * c * a["shift_ratio"])
    for i in range(len(out)):
        before = x["X"][i - 1] if i % frames else np.zeros_like(out[i])
        after = x["X"][i + 1] if (i + 1) % frames else np.zeros_like(out[i])
        out[i, :first], out[i, first:second] = before[:first], after[first:second]
    return {"Out": out}


def _largest(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    parts = [
        np.take(x["X"], range(i, x["X"].shape[a["axis"]], a["groups"]), a["axis"])
        for i in range(a["groups"])
    ]
    return {"Out": np.max(parts, 0)}


X = {"X": normal(2, 3, 4)}
CASES = [
    OpCase("flip", X, {"dims": [0, -1]}, lambda x, a: {"Out": x["X"][::-1, :, ::-1]}),
    OpCase(
        "flip",
        {"X": integers(3, high=9)},
        {"dims": [0]},
        lambda x, a: {"Out": x["X"][::-1]},
        "integers",
        grad=(),
    ),
    OpCase(
        "roll",
        X,
        {"shifts": [1, -5], "dims": [0, -1]},
        lambda x, a: {"Out": np.roll(x["X"], (1, -5), (0, 2))},
    ),
    OpCase(
        "roll",
        {"X": normal(0, 2)},
        {"shifts": [1], "dims": [0]},
        {"Out": np.zeros((0, 2))},
        "empty",
    ),
    OpCase(
        "meshgrid",
        {"X": [normal(2), normal(3, seed=1), normal(1, seed=2)]},
        {},
        lambda x, a: {"Out": list(np.meshgrid(*x["X"], indexing="ij"))},
    ),
    OpCase(
        "meshgrid",
        {"X": [normal(1), normal(3)]},
        {},
        lambda x, a: {"Out": list(np.meshgrid(*x["X"], indexing="ij"))},
        "one",
    ),
    OpCase(
        "expand_as",
        {"X": normal(1, 2), "target_tensor": np.zeros((3, 4))},
        {},
        lambda x, a: {"Out": np.tile(x["X"], (3, 2))},
    ),
    OpCase(
        "expand_as",
        {"X": normal(2, 3), "target_tensor": np.zeros((0, 3))},
        {},
        {"Out": np.zeros((0, 3))},
        "empty",
    ),
    OpCase(
        "unbind",
        X,
        {"axis": -2},
        lambda x, a: {"Out": [x["X"][:, i] for i in range(3)]},
        out_counts={"Out": 3},
    ),
    *(
        OpCase(
            "shuffle_channel",
            {"X": normal(2, 6, 2, 1)},
            {"group": g},
            _by_turns,
            f"{g}",
        )
        for g in (1, 2, 3, 6)
    ),
    *(
        OpCase(
            "pixel_shuffle",
            {"X": normal(2, 2 * r * r, 2, 3)},
            {"upscale_factor": r},
            _enlarged,
            f"{r}",
        )
        for r in (1, 2, 3)
    ),
    OpCase("space_to_depth", {"X": normal(2, 8, 2, 4)}, {}, _reorganised),
    OpCase(
        "space_to_depth", {"X": normal(1, 9, 3, 6)}, {"blocksize": 3}, _reorganised, "3"
    ),
    OpCase("temporal_shift", {"X": normal(6, 4, 1, 2)}, {"seg_num": 3}, _shifted),
    OpCase(
        "temporal_shift",
        {"X": normal(2, 5, 1, 1)},
        {"seg_num": 1, "shift_ratio": 0.4},
        _shifted,
        "single frames",
    ),
    OpCase(
        "unfold",
        {"X": normal(2, 3, 4, 5)},
        _window([2, 3], [1, 2], [0, 0, 0, 0], [1, 1]),
        _unfolded,
    ),
    OpCase(
        "unfold",
        {"X": normal(1, 2, 5, 4)},
        _window([3, 2], [2, 1], [1, 2, 3, 0], [1, 2]),
        _unfolded,
        "padded",
    ),
    OpCase("maxout", {"X": normal(2, 6, 2, 3)}, {"groups": 3}, _largest),
    OpCase(
        "maxout", {"X": normal(2, 2, 3, 4)}, {"groups": 2, "axis": -1}, _largest, "last"
    ),
]
test_rearrange = suite(CASES)
test_against_reference = oracle_suite("dense_moves", *{case.op for case in CASES})


def test_flip_and_unbind_are_views() -> None:
    assert np.shares_memory(run_op("flip", X, {"dims": [0]})["Out"], X["X"])
    parts = run_op("unbind", X, {"axis": 0}, counts={"Out": 2})["Out"]
    assert all(np.shares_memory(part, X["X"]) for part in parts)


def test_sizes_that_only_the_run_shows() -> None:
    with pytest.raises(ValueError, match="temporal_shift: batch size 3 is no multiple"):
        run_op("temporal_shift", {"X": normal(3, 4, 1, 1)}, {"seg_num": 2})
    target = {"X": normal(2, 3), "target_tensor": np.zeros((3, 3))}
    with pytest.raises(ValueError, match=r"\(2, 3\) cannot be repeated to \(3, 3\)"):
        run_op("expand_as", target, {})
