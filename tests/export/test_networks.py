"""Whole networks: what they predict in onnxruntime is what the executor computes."""

from __future__ import annotations

import numpy as np
import pytest
from export.onnx_check import run_onnx
from golden.networks.networks import networks

import fluidx as fluid
from fluidx.export import to_onnx


def prediction(program: fluid.Program) -> str:
    """What the first loss compares with the labels."""
    ops = program.global_block().ops
    losses = [op for op in ops if "cross_entropy" in op.type or op.type == "log_loss"]
    first = (losses or [op for op in ops if op.type == "square"])[0]
    slots = ("X", "Logits", "Predicted")
    return next(first.input(s)[0] for s in slots if first.inputs.get(s))


@pytest.mark.parametrize("name", networks())
def test_network(name: str):
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        phases = networks()[name](fluid)
    exe = fluid.Executor()
    exe.run(startup)
    for program, _, make in phases:
        test, target = program.clone(for_test=True), prediction(program)
        feed = make(np.random.RandomState(0))
        block = test._prune_with_input(list(feed), [target]).global_block()
        read = {n for op in block.ops for n in op.input_arg_names}
        feed = {n: value for n, value in feed.items() if n in read}
        model = to_onnx(test, list(feed), [target])
        (wanted,) = exe.run(test, feed=feed, fetch_list=[target], use_prune=True)
        (got,) = run_onnx(model, feed)
        assert got.shape == wanted.shape
        assert np.ptp(wanted) > 0
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=5e-6)
