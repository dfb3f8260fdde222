"""What scripts lean on beside layers: names in order, prints, feeds, conversions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx.compat.check import resolve
from fluidx.ir import BuildError

FP64 = fluid.core.VarDesc.VarType.FP64


def linear() -> fluid.Variable:
    x = fluid.data("x", [None, 2])
    attr = fluid.ParamAttr("w", fluid.initializer.Constant(1.0), learning_rate=0.5)
    y = fluid.layers.fc(x, 1, param_attr=attr, bias_attr=False)
    return fluid.layers.mean(y)


def ready() -> fluid.Executor:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def weight() -> list[float]:
    found = fluid.global_scope().find_var("w").get_tensor()
    return np.array(found).ravel().tolist()


def test_names_of_an_op_come_in_the_order_of_its_slots() -> None:
    loss = linear()
    made, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    ops = fluid.default_main_program().global_block().ops
    sgd = ops[-1]
    assert sgd.type == "sgd"
    assert sgd.input_names == ["Grad", "LearningRate", "Param"]
    assert sgd.input_arg_names == ["w@GRAD", sgd.input("LearningRate")[0], "w"]
    # the ops of the pass: the parameter's own rate is one
    assert [op.type for op in made] == ["scale", "sgd"]
    assert [p.name for p, _ in pairs] == ["w"]


def test_every_op_has_the_common_attributes() -> None:
    linear()
    op = fluid.default_main_program().global_block().ops[0]
    assert (op.attr("op_role_var"), op.attr("op_role"), op.attr("op_device")) == (
        [],
        0,
        "",
    )
    assert op.has_attr("op_callstack")
    assert not op.has_attr("nothing")
    with pytest.raises(KeyError, match="no attribute 'nothing'"):
        op.attr("nothing")


@pytest.mark.parametrize(
    ("facts", "wrong"),
    [
        ({"shape": [7]}, "shape"),
        ({"dtype": "int64"}, "dtype"),
        ({"lod_level": 1}, "lod_level"),
        ({"persistable": True}, "persistable"),
        ({"type": fluid.core.VarDesc.VarType.SELECTED_ROWS}, "type"),
    ],
)
def test_a_variable_is_not_made_twice_with_other_facts(facts: dict, wrong: str) -> None:
    block = fluid.default_main_program().global_block()
    x = block.create_var(name="x", shape=[-1, 2], dtype="float32", stop_gradient=True)
    assert block.create_var(name="x", shape=[-1, 2], dtype="float32") is x
    assert x.stop_gradient
    assert block.create_var(name="x", stop_gradient=False) is x
    assert not x.stop_gradient
    with pytest.raises(BuildError, match=f"x has been created before, with {wrong}"):
        block.create_var(name="x", **facts)


def test_inference_optimize_keeps_all_but_readers() -> None:
    x = fluid.data("x", [None, 2])
    fluid.io.PyReader([x], 2, iterable=False)
    fluid.optimizer.SGD(0.1).minimize(
        fluid.layers.mean(fluid.layers.dropout(fluid.layers.fc(x, 1), 0.5))
    )
    main = fluid.default_main_program()
    types = [op.type for op in main.global_block().ops]
    kept = main._inference_optimize(prune_read_op=False).global_block()
    assert [op.type for op in kept.ops] == types
    made = main._inference_optimize().global_block()
    assert [op.type for op in made.ops] == types[types.index("read") + 1 :]
    assert [op.attr("is_test") for op in made.ops if op.type == "dropout"] == [True]
    assert [
        op.attr("is_test") for op in main.global_block().ops if op.type == "dropout"
    ]
    assert not [v for v in made.vars.values() if "reader" in v.name]


def test_tensors_and_places_print_as_the_reference_prints_them() -> None:
    tensor = fluid.create_lod_tensor(
        np.array([[1e-5, 1.0], [1 / 3, 123456789]], "float32"), [[2]], fluid.CPUPlace()
    )
    assert str(tensor) == (
        "\tlod: {{0, 2}}\n\tdim: 2, 2\n\tlayout: NCHW\n\tdtype: float\n"
        "\tdata: [1e-05 1 0.333333 1.23457e+08]\n"
    )
    flags = fluid.LoDTensor()
    flags.set(np.array([True, False]), fluid.CPUPlace())
    assert str(flags).splitlines()[-2:] == ["\tdtype: bool", "\tdata: [1 0]"]
    assert str(fluid.LoDTensor()) == "LoDTensor(None)"
    places = (fluid.CPUPlace(), fluid.CUDAPinnedPlace())
    assert [str(p) for p in places] == ["CPUPlace", "CUDAPinnedPlace"]


def test_a_fed_persistable_variable_stays() -> None:
    fluid.optimizer.SGD(1.0).minimize(linear())
    exe = ready()
    ones = {"x": np.ones((3, 2), "float32")}
    given = np.full((2, 1), 5.0, "float32")
    exe.run(feed={**ones, "w": given})
    assert weight() == [4.5, 4.5]
    assert given.tolist() == [[5.0], [5.0]]
    exe.run(feed=ones)
    assert weight() == [4.0, 4.0]


def test_a_reader_made_behind_its_layers_ends_its_pass() -> None:
    x = fluid.data("x", [None, 2])
    total = fluid.layers.reduce_sum(x)
    runs = fluid.layers.create_global_var([1], 0.0, "float32", True, name="runs")
    fluid.layers.increment(runs)
    loader = fluid.io.DataLoader.from_generator([x], 2, iterable=False)
    loader.set_batch_generator(lambda: iter([[np.full((1, 2), 3, "float32")]] * 2))
    exe = ready()
    for _ in range(2):
        loader.start()
        assert [float(exe.run(fetch_list=[total])[0]) for _ in range(2)] == [6.0, 6.0]
        with pytest.raises(fluid.core.EOFException):
            exe.run(fetch_list=[total])
        loader.reset()
    # what does not need the batch has run at the end of the pass, too
    assert float(exe.run(fetch_list=[runs], program=_only(runs))[0]) == 6.0


def _only(var: fluid.Variable) -> fluid.Program:
    program = fluid.Program()
    program.global_block().create_var(**{**var.facts(), "persistable": True})
    return program


def test_unmerged_results_are_a_list_for_each_fetch() -> None:
    loss = linear()
    exe = ready()
    program = fluid.CompiledProgram(fluid.default_main_program())
    feed = {"x": np.ones((3, 2), "float32")}
    got = exe.run(program, feed=feed, fetch_list=[loss], return_merged=False)
    assert [[v.tolist() for v in values] for values in got] == [[[2.0]]]
    assert exe.run(feed=feed, fetch_list=[loss], return_merged=False)[0].shape == (1,)


def test_metrics_of_arrays_are_arrays_that_convert() -> None:
    accuracy = fluid.metrics.Accuracy()
    accuracy.update(np.array([0.5], "float32"), np.array([10]))
    chunks = fluid.metrics.ChunkEvaluator()
    chunks.update(np.array([3]), np.array([4]), np.array([2]))
    distance = fluid.metrics.EditDistance("distance")
    distance.update(np.array([[0.0], [3.0]], "float32"), np.array([2]))
    values = [accuracy.eval(), *chunks.eval(), *distance.eval()]
    assert [v.shape for v in values] == [(1,)] * 6
    assert [round(float(v), 4) for v in values] == [0.5, 0.6667, 0.5, 0.5714, 1.5, 0.5]
    assert f"{distance.eval()[0]:.2f} {distance.eval()[0][0]}" == "1.50 1.5"
    chunks.reset()
    assert chunks.eval() == (0.0, 0.0, 0.0)
    average = fluid.average.WeightedAverage()
    average.add(np.array([2.0]), 3)
    assert f"{average.eval():.1f}" == "2.0"


COPIES = """
import numpy as np
import paddle.fluid as fluid
loss = fluid.layers.reduce_sum(fluid.layers.fill_constant([2], "float32", 1.25))
for out in (True, False):
    got = fluid.Executor().run(fetch_list=[loss], return_numpy=out)
    print(float(np.array(got[0])), "%.1f" % np.asarray(got[0]), float(np.array(got)))
    assert type(np.array(got[0]) * np.ones(2)) is np.ndarray
assert type(np.array([1.0])) is type(np.array(object=[1.0])) is np.ndarray
assert np.array.__name__ == "array" and np.array(got[0], dtype="int32") == 2
tensor = fluid.LoDTensor()
tensor.set(np.array(got[0]), fluid.CPUPlace())
assert type(tensor.value) is np.ndarray
"""


def test_copies_of_one_element_convert_under_fluidx_run(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(COPIES)
    command = [sys.executable, "-m", "fluidx", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.5 2.5 2.5\n" * 2


def test_check_knows_what_paddle_itself_has() -> None:
    assert resolve("paddle.__version__.split") is not None
    with pytest.raises(LookupError):
        resolve("paddle.__nothing__")


def test_error_clip_by_its_own_name() -> None:
    loss = linear()
    hidden = fluid.default_main_program().global_block().ops[0].output("Out")[0]
    var = fluid.default_main_program().global_block().var(hidden)
    var._set_error_clip(fluid.clip.ErrorClipByValue(0.1))
    fluid.optimizer.SGD(1.0).minimize(loss)
    exe = ready()
    exe.run(feed={"x": np.ones((2, 2), "float32")})
    # each row's gradient is 1/2, clipped to 0.1; two rows, a rate of 0.5
    np.testing.assert_allclose(weight(), [0.9, 0.9], rtol=1e-6)


def test_a_failing_update_names_the_parameter_that_fails() -> None:
    """Adamax, as in the reference, takes no sparse gradients."""
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.embedding(ids, [5, 2], is_sparse=True, param_attr="table")
    loss = fluid.layers.mean(fluid.layers.fc(rows, 2, param_attr="dense"))
    fluid.optimizer.Adamax(0.1).minimize(loss)
    exe = ready()
    with pytest.raises(fluid.core.EnforceNotMet, match="Param table") as raised:
        exe.run(feed={"ids": np.ones((2, 1), "int64")})
    assert "adamax: TypeError: takes a dense gradient" in str(raised.value)
