"""``fluid.save``, ``fluid.load`` and program states."""

from __future__ import annotations

import pickle
from io import BytesIO

import numpy as np
import pytest

import fluidx as fluid
from fluidx import io, layers
from fluidx.io import ModelFileError
from fluidx.io.pickled import write_arrays
from fluidx.kernels import SelectedRows


@pytest.fixture
def exe():
    return fluid.Executor(fluid.CPUPlace())


@pytest.fixture
def main(exe):
    x = fluid.data("x", [None, 4])
    loss = layers.mean(layers.fc(x, 3))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe.run(fluid.default_startup_program())
    return fluid.default_main_program()


W, B = "fc_0.w_0", "fc_0.b_0"
OTHERS = {f"{W}_velocity_0", f"{B}_velocity_0", "learning_rate_0"}


def value(name):
    return np.array(fluid.global_scope().find_var(name).value)


def state(program):
    return {v.name: value(v.name) for v in program.list_vars() if io.is_persistable(v)}


def clear(program):
    for name, array in state(program).items():
        fluid.global_scope().find_var(name).value = np.full_like(array, -9)


def same(found, wanted):
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_files(main, tmp_path):
    fluid.save(main, str(tmp_path / "a" / "m"))
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == [
        "m.pdmodel",
        "m.pdopt",
        "m.pdparams",
    ]
    params = pickle.loads((tmp_path / "a" / "m.pdparams").read_bytes())
    assert list(params) == [W, B]
    assert set(pickle.loads((tmp_path / "a" / "m.pdopt").read_bytes())) == OTHERS
    data = (tmp_path / "a" / "m.pdmodel").read_bytes()
    assert data == main.serialize_to_string()


@pytest.mark.parametrize("suffix", ["", ".pdparams", ".pdopt", ".pdmodel"])
@pytest.mark.parametrize("with_executor", [True, False])
def test_save_and_load(exe, main, tmp_path, suffix, with_executor):
    wanted = state(main)
    fluid.save(main, str(tmp_path / "m"))
    clear(main)
    fluid.load(main, str(tmp_path / "m") + suffix, exe if with_executor else None)
    same(state(main), wanted)
    assert value(W).flags.writeable


def test_load_into_an_empty_scope(main, tmp_path):
    wanted = state(main)
    fluid.save(main, str(tmp_path / "m"))
    with fluid.scope_guard(fluid.Scope()):
        fluid.load(main, str(tmp_path / "m"))
        same(state(main), wanted)


def test_program_without_optimizer(exe, tmp_path):
    y = layers.fc(fluid.data("x", [None, 4]), 3)
    exe.run(fluid.default_startup_program())
    fluid.save(y.block.program, str(tmp_path / "m"))
    assert (tmp_path / "m.pdopt").read_bytes() == b"\x80\x02}q\x00."
    (tmp_path / "m.pdopt").unlink()
    fluid.load(y.block.program, str(tmp_path / "m"))


def test_other_files(exe, main, tmp_path):
    wanted = state(main)
    io.save_persistables(exe, str(tmp_path / "all"))
    io.save_persistables(exe, str(tmp_path), filename="one")
    variables = [v for v in main.list_vars() if io.is_persistable(v)]
    for path, var_list in (("all", None), ("all", variables), ("one", variables)):
        clear(main)
        fluid.load(main, str(tmp_path / path), exe, var_list)
        same(state(main), wanted)
        if path == "all" or var_list:
            same(io.load_program_state(str(tmp_path / path), var_list), wanted)
    w = main.global_block().var(W)
    same(io.load_program_state(str(tmp_path / "all"), [w]), {W: wanted[W]})
    with pytest.raises(ValueError, match="var_list must say"):
        fluid.load(main, str(tmp_path / "one"), exe)
    with pytest.raises(ValueError, match="var_list must say"):
        io.load_program_state(str(tmp_path / "one"))
    with pytest.raises(ModelFileError, match="as a whole"):
        fluid.load(main, str(tmp_path / "one"), exe, variables[:2])


def test_folders_of_inference_models_have_a_program_too(exe, main, tmp_path):
    io.save_params(exe, str(tmp_path / "m"))
    (tmp_path / "m" / "__model__").write_bytes(main.serialize_to_string())
    clear(main)
    fluid.load(main, str(tmp_path / "m"))
    assert (value(W) != -9).all()
    with pytest.raises(ModelFileError, match="__model__"):
        io.load_program_state(str(tmp_path / "m"))


def test_load_program_state(main, tmp_path):
    fluid.save(main, str(tmp_path / "m"))
    found = io.load_program_state(str(tmp_path / "m.pdparams"))
    same(found, state(main))
    assert all(v.flags.writeable for v in found.values())
    (tmp_path / "m.pdopt").unlink()
    assert set(io.load_program_state(str(tmp_path / "m"))) == {W, B}


def test_set_program_state(main):
    wanted = {W: np.ones((4, 3), "f4"), "learning_rate_0": np.array([0.5], "f4")}
    before = value(B)
    io.set_program_state(main, wanted)
    same({n: value(n) for n in wanted}, wanted)
    np.testing.assert_array_equal(value(B), before)
    wanted[W][:] = 2  # what was given stays the caller's
    assert (value(W) == 1).all()


def test_set_program_state_complains(main):
    with pytest.raises(ModelFileError, match=r"float32\[4, 3\], .* float32\[2, 2\]"):
        io.set_program_state(main, {W: np.ones((2, 2), "f4")})
    with pytest.raises(ModelFileError, match=r"but the state has float64\[4, 3\]"):
        io.set_program_state(main, {W: np.ones((4, 3))})
    with pytest.warns(UserWarning, match="no variable for more, other"):
        io.set_program_state(main, {"more": np.ones(1), "other": np.ones(1)})
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(ModelFileError, match="startup program"),
    ):
        io.set_program_state(main, {W: np.ones((4, 3), "f4")})


def write(path, arrays):
    file = BytesIO()
    write_arrays(file, arrays)
    path.write_bytes(file.getvalue())


def test_load_complains_and_changes_nothing(exe, main, tmp_path):
    path = tmp_path / "m.pdparams"
    fluid.save(main, str(tmp_path / "m"))
    good = io.load_program_state(str(tmp_path / "m"))
    wanted = state(main)

    def refused(message):
        with pytest.raises(ModelFileError, match=message):
            fluid.load(main, str(tmp_path / "m"), exe)
        same(state(main), wanted)

    write(path, {B: good[B]})
    refused(f"holds nothing for variable '{W}'")
    write(path, {B: good[B], W: np.zeros((2, 2), "f4")})
    refused(r"has shape \[4, 3\] in the program, but \[2, 2\]")
    path.write_bytes(pickle.dumps([1, 2]))
    refused("holds a list, not a dict")
    path.write_bytes(pickle.dumps({W: [1.0], B: good[B]}))
    refused(f"holds nothing for variable '{W}'")
    path.write_bytes(b"nonsense")
    refused("opcode b'n'")
    write(path, {W: good[W], B: good[B]})
    (tmp_path / "m.pdopt").unlink()
    refused("no file .*pdopt")
    path.unlink()
    refused("no file .*pdparams")


def test_save_complains(main, tmp_path):
    with pytest.raises(ValueError, match="a folder and a file name"):
        fluid.save(main, str(tmp_path) + "/")
    with pytest.raises(TypeError, match="must be a Program"):
        fluid.save("main", str(tmp_path / "m"))
    rows = SelectedRows(np.array([0]), np.ones((1, 3), "f4"), 4)
    fluid.global_scope().find_var(W).value = rows
    with pytest.raises(ModelFileError, match="use save_vars"):
        fluid.save(main, str(tmp_path / "m"))
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(ModelFileError, match="startup program"),
    ):
        fluid.save(main, str(tmp_path / "m"))
