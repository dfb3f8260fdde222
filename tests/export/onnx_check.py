"""Build a small net, run it here and in onnxruntime, compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.export import to_onnx

pytest.importorskip("onnx", reason="the extra onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

Build = Callable[..., Any]


def rand(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 3) -> Any:
    values = np.random.RandomState(seed).uniform(low, high, shape)
    return values.astype("float32")


def run_onnx(model: Any, feed: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    data = model.SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def check(
    build: Build, *, atol: float = 2e-6, unknown: tuple[int, ...] = (0,), **feed: Any
) -> Any:
    """Build a net over the fed arrays; both systems must agree. Returns the model."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        inputs = [
            fluid.data(
                name,
                [None if i in unknown else d for i, d in enumerate(a.shape)],
                a.dtype,
            )
            for name, a in feed.items()
        ]
        found = build(*inputs)
    outs = list(found) if isinstance(found, (list, tuple)) else [found]
    test = main.clone(for_test=True)
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    wanted = exe.run(test, feed=feed, fetch_list=outs, scope=scope)
    model = to_onnx(test, list(feed), outs, scope)
    got = run_onnx(model, feed)
    for ours, theirs in zip(wanted, got, strict=True):
        assert np.asarray(theirs).dtype == ours.dtype
        assert np.asarray(theirs).shape == ours.shape
        np.testing.assert_allclose(theirs, ours, rtol=2e-5, atol=atol)
    return model
