"""Corners of the API build what they build in the reference, op for op."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid

GOLDEN = Path(__file__).parents[1] / "golden" / "oracle"
RECORDED = json.loads((GOLDEN / "small_programs.json").read_text())


@pytest.fixture(scope="module")
def recorder():
    """The script that recorded them, with fluidx for paddle."""
    from fluidx import compat

    compat.install_as_paddle(old_names=False)
    names = {"__name__": "small_programs", "__file__": str(GOLDEN / "x.py")}
    try:
        exec((GOLDEN / "small_programs.py").read_text(), names)
    finally:
        compat.uninstall()
    return names


def same(mine, theirs):
    """Of an attribute's value; a float of the reference has 32 bits."""
    if isinstance(theirs, float):
        return np.float32(mine) == np.float32(theirs)
    if isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    return mine == theirs


@pytest.mark.parametrize("name", RECORDED)
def test_builds_what_the_reference_builds(recorder, name):
    made = recorder["build"](recorder[name])
    for mine, theirs in zip(made, RECORDED[name]):
        assert [op[:3] for op in mine] == [op[:3] for op in theirs]
        for (kind, *_, found), (*_, wanted) in zip(mine, theirs):
            assert found.keys() >= wanted.keys(), kind  # defaults are filled in
            wrong = {k: v for k, v in wanted.items() if not same(found[k], v)}
            assert wrong == {}, kind


def test_decay_shrinks_beside_the_step():
    x = fluid.data("x", [2, 3])
    w = fluid.ParamAttr("w", fluid.initializer.Constant(2.0))
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=w, bias_attr=False))
    SGDW = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD)
    ops, pairs = SGDW(weight_decay=0.25, learning_rate=0.5).minimize(loss)
    assert [op.type for op in ops] == ["sgd"]
    assert pairs[0][0].name == "w"
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.array([[1, 2, 3], [3, 2, 1]], "float32")}
    exe.run(feed=feed)
    held = np.array(fluid.global_scope().find_var("w").get_tensor())
    # gradient of the mean: 2 for each; 2 - 0.25 * 2 - 0.5 * 2
    np.testing.assert_allclose(held.ravel(), [0.5, 0.5, 0.5], rtol=1e-6)


def test_no_decay_and_what_is_refused():
    extend = fluid.contrib.extend_with_decoupled_weight_decay
    x = fluid.data("x", [2, 3])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    extend(fluid.optimizer.SGD)(weight_decay=0.0, learning_rate=0.1).minimize(loss)
    assert "assign" not in [o.type for o in loss.block.ops]
    with pytest.raises(TypeError, match="expected a class of optimizers, got 3"):
        extend(3)
    with pytest.raises(TypeError, match="must be a number or Variable, got 'a'"):
        extend(fluid.optimizer.SGD)(weight_decay="a", learning_rate=0.1)


def test_sums_of_a_click_model():
    x, y = (fluid.data(n, [None, 1]) for n in "xy")
    sums = fluid.contrib.layers.ctr_metric_bundle(x, y)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    predicted, clicks = np.array([[0.5], [0.25]]), np.array([[1.0], [0.0]])
    for count in (1, 2):
        feed = {"x": predicted.astype("float32"), "y": clicks.astype("float32")}
        values = exe.run(feed=feed, fetch_list=list(sums))
        wanted = [
            ((predicted - clicks) ** 2).sum(),
            np.abs(predicted - clicks).sum(),
            predicted.sum(),
            (1 / (1 + np.exp(-predicted))).sum(),
            clicks.sum(),
            2,
        ]
        np.testing.assert_allclose(
            np.ravel(values), count * np.array(wanted), rtol=1e-6
        )
    with pytest.raises(ValueError, match=r"input has shape \[-1, 1\], label \[-1, 2\]"):
        fluid.contrib.layers.ctr_metric_bundle(x, fluid.data("z", [None, 2]))


def test_load_reads_what_was_saved(tmp_path):
    w = fluid.layers.create_parameter([2, 3], "float32", "w")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_vars(exe, str(tmp_path), vars=[w])
    main = fluid.Program()
    with fluid.program_guard(main):
        out = fluid.layers.create_tensor("float32", name="out")
        half = fluid.layers.create_tensor("float16", name="half")
        fluid.layers.load(out, str(tmp_path / "w"))
        fluid.layers.load(half, str(tmp_path / "w"), load_as_fp16=True)
        with pytest.raises(TypeError, match="file_path must be a string, got 3"):
            fluid.layers.load(out, 3)
    full, low = exe.run(main, fetch_list=[out, half])
    held = np.array(fluid.global_scope().find_var("w").get_tensor())
    np.testing.assert_array_equal(full, held)
    np.testing.assert_array_equal(low, held.astype("float16"))
    assert low.dtype == "float16"


def test_generated_layers_check_what_they_get():
    made = fluid.layers.layer_function_generator
    with pytest.raises(ValueError, match="no op 'meann'; did you mean"):
        made.generate_layer_fn("meann")
    with pytest.raises(ValueError, match="top_k has 2 outputs to return, not one"):
        made.generate_layer_fn("top_k")
    x = fluid.data("x", [2, 3])
    with pytest.raises(TypeError, match="scale takes no argument factor"):
        made.generate_layer_fn("scale")(x, factor=2)
    with pytest.raises(TypeError, match="mean: expected a Variable, got 3"):
        made.generate_layer_fn("mean")(3)

    @made.templatedoc()
    @made.autodoc("In front. ")
    def layer():
        "Behind."

    assert layer.__doc__ == "In front. Behind."
    with pytest.warns(DeprecationWarning, match="layer is deprecated"):
        made.deprecated(layer)()
