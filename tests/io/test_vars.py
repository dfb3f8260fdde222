"""Saving and loading variables in all their forms."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx import io, layers
from fluidx.io import MissingFileError, ModelFileError
from fluidx.kernels import SelectedRows, VarType


@pytest.fixture
def exe():
    return fluid.Executor(fluid.CPUPlace())


@pytest.fixture
def main(exe):
    """A small training program, initialised."""
    x = fluid.data("x", [None, 4])
    y = fluid.data("y", [None, 1])
    h = layers.batch_norm(layers.fc(x, 3, act="relu"))
    p = layers.fc(h, 1, name="deep/fc")
    loss = layers.mean(layers.square_error_cost(p, y))
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe.run(fluid.default_startup_program())
    return fluid.default_main_program()


PARAMS = {
    *("fc_0.w_0", "fc_0.b_0", "deep/fc.w_0", "deep/fc.b_0"),
    *(f"batch_norm_0.{n}" for n in ("w_0", "b_0", "w_1", "w_2")),
}


def value(name):
    return np.array(fluid.global_scope().find_var(name).value)


def state(program):
    return {v.name: value(v.name) for v in program.list_vars() if io.is_persistable(v)}


def clear(program):
    for name in state(program):
        fluid.global_scope().find_var(name).value = np.float32([-9])


def files(folder):
    return {
        str(p.relative_to(folder)).replace("\\", "/")
        for p in folder.rglob("*")
        if p.is_file()
    }


def same(found, wanted):
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_separate_files(exe, main, tmp_path):
    io.save_params(exe, str(tmp_path / "params"))
    assert files(tmp_path / "params") == PARAMS
    io.save_persistables(exe, str(tmp_path / "all"), main)
    wanted = state(main)
    assert files(tmp_path / "all") == set(wanted)
    assert {"learning_rate_0", "fc_0.w_0_moment1_0"} < set(wanted)
    clear(main)
    io.load_persistables(exe, str(tmp_path / "all"), main)
    same(state(main), wanted)


def test_one_file(exe, main, tmp_path):
    wanted = state(main)
    io.save_persistables(exe, str(tmp_path), filename="sub/all")
    assert files(tmp_path) == {"sub/all"}
    clear(main)
    io.load_persistables(exe, str(tmp_path), filename="sub/all")
    same(state(main), wanted)


def test_bytes(exe, main):
    wanted = state(main)
    data = io.save_persistables(exe, None)
    assert isinstance(data, bytes)
    clear(main)
    io.load_persistables(exe, None, filename=data)
    same(state(main), wanted)


def test_by_predicate_and_by_list(exe, main, tmp_path):
    io.save_vars(exe, str(tmp_path / "p"), predicate=lambda v: "moment2" in v.name)
    assert len(files(tmp_path / "p")) == 6
    assert all("moment2" in n for n in files(tmp_path / "p"))
    w = main.global_block().var("fc_0.w_0")
    io.save_vars(exe, str(tmp_path / "v"), vars=[w, w])
    assert files(tmp_path / "v") == {"fc_0.w_0"}
    wanted = value("fc_0.w_0")
    clear(main)
    io.load_vars(exe, str(tmp_path / "v"), vars=[w])
    np.testing.assert_array_equal(value("fc_0.w_0"), wanted)
    assert value("fc_0.b_0").tolist() == [-9]


def test_compiled_programs(exe, main, tmp_path):
    io.save_params(exe, str(tmp_path), fluid.CompiledProgram(main))
    assert files(tmp_path) == PARAMS


def test_lod_and_selected_rows(exe, tmp_path):
    block = fluid.default_main_program().global_block()
    kinds = {"steps": VarType.LOD_TENSOR, "rows": VarType.SELECTED_ROWS}
    variables = [
        block.create_var(name=n, type=k, dtype="float32", persistable=True)
        for n, k in kinds.items()
    ]
    scope = fluid.global_scope()
    tensor = scope.var("steps").get_tensor()
    tensor.set(np.arange(5, dtype="f4"))
    tensor.set_recursive_sequence_lengths([[2, 3]])
    rows = SelectedRows(np.array([3, 0]), np.ones((2, 2), "f4"), 9)
    scope.var("rows").value = rows
    for name in (None, "both"):
        io.save_vars(exe, str(tmp_path), vars=variables, filename=name)
        with fluid.scope_guard(fluid.Scope()):
            io.load_vars(exe, str(tmp_path), vars=variables, filename=name)
            found = fluid.global_scope()
            assert found.find_var("steps").get_tensor().lod() == [[0, 2, 5]]
            back = found.find_var("rows").get_selected_rows()
        assert back.rows() == [3, 0]
        assert back.height() == 9
        np.testing.assert_array_equal(back.get_tensor(), rows.value)


def test_values_are_those_of_the_scope_in_force(exe, main, tmp_path):
    io.save_params(exe, str(tmp_path))
    wanted = value("fc_0.w_0")
    with fluid.scope_guard(fluid.Scope()):
        io.load_params(exe, str(tmp_path))
        np.testing.assert_array_equal(value("fc_0.w_0"), wanted)
        fluid.global_scope().find_var("fc_0.w_0").value += 1
    np.testing.assert_array_equal(value("fc_0.w_0"), wanted)


def test_nothing_changes_if_a_file_is_bad(exe, main, tmp_path):
    io.save_params(exe, str(tmp_path))
    (tmp_path / "fc_0.w_0").write_bytes(b"bad")
    clear(main)
    with pytest.raises(ModelFileError, match=r"fc_0\.w_0"):
        io.load_params(exe, str(tmp_path))
    assert all(v.tolist() == [-9] for v in state(main).values())


def test_shapes_must_fit(exe, main, tmp_path):
    io.save_params(exe, str(tmp_path))
    other = fluid.Program()
    other.global_block().create_parameter(
        name="fc_0.w_0", shape=[4, 9], dtype="float32"
    )
    with pytest.raises(RuntimeError, match=r"\[4, 9\] in the program, but \[4, 3\]"):
        io.load_params(exe, str(tmp_path), other)


def test_complaints(exe, main, tmp_path):
    with pytest.raises(MissingFileError, match=r"no file .*for variable"):
        io.load_params(exe, str(tmp_path))
    with pytest.raises(FileNotFoundError):
        io.load_params(exe, str(tmp_path / "nowhere"), filename="x")
    with pytest.raises(TypeError, match="must be a Program, got int"):
        io.save_params(exe, str(tmp_path), 3)
    with pytest.raises(TypeError, match="vars takes Variables"):
        io.save_vars(exe, str(tmp_path), vars=["fc_0.w_0"])
    with pytest.raises(TypeError, match="needs a dirname"):
        io.save_params(exe, None, filename="x")
    with pytest.raises(TypeError, match="must be bytes"):
        io.load_params(exe, None, filename="x")
    with pytest.raises(ModelFileError, match=r"'mean_0\.tmp_0' has no value"):
        io.save_vars(exe, str(tmp_path), vars=[main.global_block().var("mean_0.tmp_0")])
    io.save_persistables(exe, str(tmp_path), filename="all")

    def first(var):
        return io.is_persistable(var) and var.name < "batch_norm_0.b_0_c"

    with pytest.raises(ModelFileError, match="as a whole"):
        io.load_vars(exe, str(tmp_path), predicate=first, filename="all")
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(ModelFileError, match="startup program"),
    ):
        io.save_params(exe, str(tmp_path))


def test_nothing_to_save(exe, tmp_path):
    with pytest.warns(UserWarning, match="no variable to save"):
        io.save_params(exe, str(tmp_path / "x"), fluid.Program())
    assert io.save_vars(exe, str(tmp_path / "x"), vars=[]) is None
    assert not (tmp_path / "x").exists()
    io.load_params(exe, str(tmp_path / "x"), fluid.Program())


def test_hostile_names(exe, tmp_path):
    program = fluid.Program()
    program.global_block().create_var(
        name="../out", dtype="float32", shape=[1], persistable=True
    )
    fluid.global_scope().var("../out").value = np.zeros(1, "f4")
    with pytest.raises(ModelFileError, match="cannot be a file"):
        io.save_persistables(exe, str(tmp_path / "model"), program)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ModelFileError, match="cannot be a file"):
        io.load_persistables(exe, str(tmp_path / "model"), program)


def test_facts_of_variables(exe, main):
    block = main.global_block()
    facts = {
        n: (
            io.is_parameter(block.var(n)),
            io.is_persistable(block.var(n)),
            io.is_belong_to_optimizer(block.var(n)),
        )
        for n in ("fc_0.w_0", "batch_norm_0.w_1", "learning_rate_0", "x")
    }
    assert facts == {
        "fc_0.w_0": (True, True, False),
        "batch_norm_0.w_1": (True, True, False),
        "learning_rate_0": (False, True, True),
        "x": (False, False, False),
    }
    assert {v.name for v in io.get_program_parameter(main)} == PARAMS
    found = {v.name for v in io.get_program_persistable_vars(main)}
    assert found == set(state(main))


def test_values_of_parameters(exe, main):
    w = main.global_block().var("fc_0.w_0")
    got = io.get_parameter_value(w, exe)
    np.testing.assert_array_equal(got, value("fc_0.w_0"))
    got += 1  # it is a copy
    by_name = io.get_parameter_value_by_name("fc_0.w_0", exe, main)
    np.testing.assert_array_equal(by_name, value("fc_0.w_0"))
    with pytest.raises(TypeError, match="expected a Parameter"):
        io.get_parameter_value(main.global_block().var("x"), exe)
    with pytest.raises(ValueError, match="'zz'"):
        io.get_parameter_value_by_name("zz", exe)
