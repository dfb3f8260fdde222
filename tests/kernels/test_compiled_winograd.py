"""Winograd's convolution, compiled, against float64 sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, grads_of, normal, run_op

from fluidx.kernels import threads
from fluidx.kernels.compiled import available
from fluidx.kernels.window import plan_axis

if not available():
    pytest.skip("FLUIDX_COMPILED=0", allow_module_level=True)

from fluidx.kernels.compiled import winograd


def floats(*shape: int, seed: int = 0) -> Any:
    return normal(*shape, seed=seed).astype("float32")


def exact(x: Any, w: Any, d: Any, pads: Any) -> tuple[Any, Any]:
    """The convolution and its filter's gradient in float64."""
    wide = np.pad(x.astype("float64"), ((0, 0), (0, 0), *pads))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    out = np.einsum("nchwij,fcij->nfhw", windows, w.astype("float64"), optimize=True)
    return out, np.einsum("nchwij,nfhw->fcij", windows, d, optimize=True)


def close(found: Any, expected: Any) -> None:
    """As precise as `lanes` says, with room for other channels."""
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6 * abs(expected).max())


# images, filters, padding of rows and of columns
CASES = {
    "whole tiles": ((2, 16, 18, 18), 16, ((0, 0), (0, 0))),
    "padded": ((2, 16, 16, 20), 24, ((1, 1), (1, 1))),
    "odd": ((3, 24, 9, 13), 16, ((1, 1), (1, 1))),
    "one side": ((2, 16, 11, 10), 40, ((2, 0), (0, 1))),
    "wide padding": ((2, 16, 5, 9), 16, ((3, 4), (6, 5))),
    "narrow": ((4, 32, 12, 5), 16, ((1, 1), (1, 1))),
    "few rows": ((4, 56, 2, 30), 48, ((1, 1), (1, 1))),
    "a pixel": ((9, 16, 1, 1), 16, ((1, 1), (1, 1))),
    "widths": ((1, 72, 8, 8), 88, ((1, 1), (1, 1))),
}


@pytest.fixture(scope="module")
def crew() -> Any:
    """One for all tests: its threads wait as long as the process lives."""
    return threads._Crew(2)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("block", [1, 40_000, 1 << 20])
@pytest.mark.parametrize("name", CASES)
def test_sums(
    name: str,
    block: int,
    large: bool,
    width: int,
    crew: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape, filters, pads = CASES[name]
    monkeypatch.setattr(winograd, "BLOCK", block)
    monkeypatch.setattr(winograd, "LARGE_BLOCK", block)
    monkeypatch.setattr(winograd, "LARGE", 0 if large else 1 << 30)
    monkeypatch.setattr(threads, "_width", width)
    monkeypatch.setattr(threads, "_crew", crew)
    monkeypatch.setattr(threads, "_LEAST", 1)
    x, w = floats(*shape), floats(filters, shape[1], 3, 3, seed=1)
    axes = [
        plan_axis(size, 3, 1, 1, pad, "EXPLICIT") for size, pad in zip(shape[2:], pads)
    ]
    out = np.full((shape[0], filters, axes[0].out, axes[1].out), np.nan, "float32")
    d = floats(*out.shape, seed=2)
    sums, grad = exact(x, w, d, pads)
    winograd.convolve(x, w, *axes, out)
    close(out, sums)
    close(winograd.filter_grad(x, d, *axes), grad)


def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is called of `winograd` from now on."""
    calls: list[str] = []

    def watch(name: str, act: Any) -> None:
        def watched(*given: Any) -> Any:
            calls.append(name)
            return act(*given)

        monkeypatch.setattr(winograd, name, watched)

    for name in ("convolve", "filter_grad"):
        watch(name, getattr(winograd, name))
    return calls


@pytest.mark.parametrize("padding", [0, 1, 2, 3])
def test_an_op_and_its_gradients(padding: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"Input": floats(3, 16, 15, 14), "Filter": floats(24, 16, 3, 3, seed=1)}
    attrs = {"paddings": [padding] * 2}
    d = floats(3, 24, 13 + 2 * padding, 12 + 2 * padding, seed=5)
    case = OpCase("conv2d", inputs, attrs)
    calls = taken(monkeypatch)
    outs = run_op("conv2d", inputs, attrs, compiled=True)
    assert calls == ["convolve"]
    grads = grads_of(case, inputs, outs, {"Output": d}, compiled=True)
    # the images' gradient slides over the output's where that is not much larger
    assert calls[1:] == ["convolve"] * (1 <= padding <= 2) + ["filter_grad"]
    own = run_op("conv2d", inputs, attrs)
    expected = grads_of(case, inputs, own, {"Output": d})
    np.testing.assert_allclose(outs["Output"], own["Output"], 1e-4, 1e-4)
    for slot in inputs:
        np.testing.assert_allclose(grads[slot], expected[slot], 1e-3, 1e-3)


@pytest.mark.parametrize(
    ("shape", "filters", "attrs"),
    [
        ((8, 12, 28, 28), 16, {}),  # channels are no multiple of eight
        ((8, 8, 28, 28), 16, {}),  # few channels
        ((8, 16, 28, 28), 16, {"strides": [2, 1]}),
        ((8, 16, 28, 28), 16, {"dilations": [1, 2]}),
        ((8, 32, 28, 28), 32, {"groups": 2}),
        ((1, 128, 8, 8), 128, {"paddings": [1, 1]}),  # 4 tiles, 16,384 filters
    ],
)
def test_what_it_is_not_made_for(
    shape: Any, filters: int, attrs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {
        "Input": floats(*shape),
        "Filter": floats(filters, shape[1] // attrs.get("groups", 1), 3, 3, seed=1),
    }
    calls = taken(monkeypatch)
    outs = run_op("conv2d", inputs, attrs, compiled=True)
    assert calls == []
    own = run_op("conv2d", inputs, attrs)
    np.testing.assert_allclose(outs["Output"], own["Output"], 1e-4, 1e-4)


def test_an_infinity_stays_in_the_tiles_that_read_it() -> None:
    x, w = floats(2, 16, 16, 16), floats(16, 16, 3, 3, seed=1)
    x[1, 3, 6, 6] = np.inf
    axis = plan_axis(16, 3, 1, 1, (1, 1), "EXPLICIT")
    out = np.empty((2, 16, 16, 16), np.float32)
    winograd.convolve(x, w, axis, axis, out)
    # rows and columns 3 to 8 of the input are those of the second tile
    reached = np.zeros((16, 16), bool)
    reached[4:8, 4:8] = True
    assert np.isfinite(out[0]).all()
    assert np.isfinite(out[1][:, ~reached]).all()
    assert not np.isfinite(out[1][:, 5:8, 5:8]).any()
