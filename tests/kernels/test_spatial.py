"""affine_grid, grid_sampler, affine_channel, prelu."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite, uniform
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def plain_grid(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    given = x.get("OutputShape")
    _, _, h, w = a["output_shape"] if given is None else given
    out = np.zeros((len(x["Theta"]), h, w, 2))
    for i in range(h):
        for j in range(w):
            place = np.array([2 * j / (w - 1) - 1, 2 * i / (h - 1) - 1, 1])
            out[:, i, j] = x["Theta"] @ place
    return {"Output": out}


def plain_sample(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    """Point by point: the four pixels around it, 0 outside."""
    image, grid = x["X"], x["Grid"]
    n, c, h, w = image.shape
    out = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in np.ndindex(*grid.shape[:3]):
        px = (grid[b, i, j, 0] + 1) / 2 * (w - 1)
        py = (grid[b, i, j, 1] + 1) / 2 * (h - 1)
        for row in (int(np.floor(py)), int(np.floor(py)) + 1):
            for column in (int(np.floor(px)), int(np.floor(px)) + 1):
                if 0 <= row < h and 0 <= column < w:
                    share = (1 - abs(py - row)) * (1 - abs(px - column))
                    out[b, :, i, j] += image[b, :, row, column] * share
    return {"Output": out}


def plain_channel(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    wide = [1] * x["X"].ndim
    wide[-1 if a["data_layout"] == "NHWC" else 1] = -1
    return {"Out": x["X"] * x["Scale"].reshape(wide) + x["Bias"].reshape(wide)}


def plain_prelu(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    shape = {"all": (1,), "channel": (1, -1, 1, 1), "element": (1, *x["X"].shape[1:])}
    slopes = x["Alpha"].reshape(shape[a["mode"]])
    return {"Out": np.maximum(x["X"], 0) + slopes * np.minimum(x["X"], 0)}


def channel(name: str, *shape: int, c: int = 3, **attrs: Any) -> OpCase:
    inputs = {
        "X": normal(*shape),
        "Scale": normal(c, seed=1),
        "Bias": normal(c, seed=2),
    }
    return OpCase("affine_channel", inputs, attrs, plain_channel, name)


def sample(name: str, grid: np.ndarray, x: Any = (2, 3, 4, 5)) -> OpCase:
    inputs = {"X": normal(*x), "Grid": grid}
    return OpCase("grid_sampler", inputs, {}, plain_sample, name, atol=1e-5)


THETA = normal(2, 2, 3)
FAR = uniform(2, 4, 5, 2, low=-2.5, high=2.5, seed=4)
CASES = [
    OpCase("affine_grid", {"Theta": THETA}, {"output_shape": [2, 3, 4, 5]}, plain_grid),
    OpCase(
        "affine_grid",
        {"Theta": THETA, "OutputShape": np.array([2, 3, 3, 2], "int32")},
        {},
        plain_grid,
        "tensor",
    ),
    OpCase(
        "affine_grid",
        {"Theta": np.zeros((0, 2, 3))},
        {"output_shape": [0, 3, 4, 5]},
        plain_grid,
        "empty",
    ),
    sample("inside", uniform(2, 4, 5, 2, low=-0.95, high=0.95, seed=3)),
    sample("outside", FAR),
    sample("empty", np.zeros((0, 4, 5, 2)), (0, 3, 4, 5)),
    channel("images", 2, 3, 4, 5, data_layout="NCHW"),
    channel("rows", 4, 3, data_layout="NCHW"),
    channel("last", 2, 4, 5, 3, data_layout="NHWC"),
    channel("volume", 2, 3, 2, 2, 2, data_layout="NCHW"),
    channel("empty", 0, 3, 4, 5),
    OpCase("prelu", {"X": normal(2, 3, 4, 5), "Alpha": normal(1)}, {}, plain_prelu),
    OpCase(
        "prelu",
        {"X": normal(2, 3, 4, 5), "Alpha": normal(1, 3, 1, 1, seed=1)},
        {"mode": "channel"},
        plain_prelu,
        "channel",
    ),
    OpCase(
        "prelu",
        {"X": normal(2, 3, 4), "Alpha": normal(1, 3, 4, seed=1)},
        {"mode": "element"},
        plain_prelu,
        "element",
    ),
]
test_spatial = suite(CASES)
test_as_the_reference = oracle_suite(
    "image_ops", "affine_grid", "grid_sampler", "affine_channel"
)


def test_an_axis_of_one_pixel_is_in_the_middle() -> None:
    theta = np.array([[[2.0, 3, 5], [7, 11, 13]]])
    outs = run_op("affine_grid", {"Theta": theta}, {"output_shape": [1, 1, 1, 2]})
    assert outs["Output"].tolist() == [[[[3, 6], [7, 20]]]]


def test_a_grid_that_moves_nothing() -> None:
    x = normal(2, 3, 4, 5)
    theta = np.array([[[1.0, 0, 0], [0, 1, 0]]] * 2)
    grid = run_op("affine_grid", {"Theta": theta}, {"output_shape": [2, 3, 4, 5]})
    out = run_op("grid_sampler", {"X": x, "Grid": grid["Output"]}, {})["Output"]
    np.testing.assert_allclose(out, x, atol=1e-12)


@pytest.mark.parametrize(
    ("type", "shapes", "attrs", "said"),
    [
        ("affine_grid", {"Theta": (2, 3, 3)}, {}, "2, 3"),
        ("affine_grid", {"Theta": (2, 2, 3)}, {"output_shape": [2, 3]}, "4 numbers"),
        ("grid_sampler", {"X": (2, 3, 4, 5), "Grid": (2, 5, 4, 2)}, {}, "height"),
        ("grid_sampler", {"X": (2, 3, 4), "Grid": (2, 5, 4, 2)}, {}, "4 dimensions"),
        ("affine_channel", {"X": (2, 3), "Scale": (2,), "Bias": (3,)}, {}, "Scale"),
        ("affine_channel", {"X": (3,), "Scale": (3,), "Bias": (3,)}, {}, "channels"),
        ("prelu", {"X": (2, 3, 4, 5), "Alpha": (3,)}, {}, "1 elements in mode all"),
        ("prelu", {"X": (2, 3), "Alpha": (3,)}, {"mode": "each"}, "not 'each'"),
    ],
)
def test_refusals(type: str, shapes: Any, attrs: Any, said: str) -> None:
    definition = kernels.find(type)
    metas = {slot: [Meta(shape)] for slot, shape in shapes.items()}
    every = {**definition.defaults, **attrs}
    context = InferContext(type, metas, every, {s.name: 1 for s in definition.outs})
    with pytest.raises(InferError, match=said):
        definition.infer(context)
