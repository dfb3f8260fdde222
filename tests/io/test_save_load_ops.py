"""The ops that read and write files, built into programs by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers
from fluidx.ir.errors import EnforceNotMet
from fluidx.kernels import SelectedRows, VarType

STREAMS = Path(__file__).parents[1] / "golden" / "models" / "streams"
VALUES = np.load(STREAMS / "values.npz")


@pytest.fixture
def exe():
    return fluid.Executor(fluid.CPUPlace())


@pytest.fixture
def block():
    return fluid.default_main_program().global_block()


def variable(block, name, dtype="float32", kind=VarType.LOD_TENSOR):
    return block.create_var(name=name, type=kind, dtype=dtype, persistable=True)


def held(name):
    return fluid.global_scope().find_var(name)


def load(block, name, path, **attrs):
    kind = attrs.pop("kind", VarType.LOD_TENSOR)
    out = variable(block, name, attrs.pop("dtype", "float32"), kind)
    attrs["file_path"] = str(path)
    block.append_op("load", {}, {"Out": [out]}, attrs)
    return out


def test_load(exe, block):
    load(block, "x", STREAMS / "two_levels")
    load(block, "n", STREAMS / "of_int64", dtype="int64")
    load(block, "r", STREAMS / "rows", kind=VarType.SELECTED_ROWS)
    exe.run()
    np.testing.assert_array_equal(held("x").value, VALUES["two_levels"])
    assert held("x").lod == [[0, 1, 3], [0, 2, 4, 5]]
    np.testing.assert_array_equal(held("n").value, VALUES["of_int64"])
    assert held("r").get_selected_rows().rows() == [4, 1, 4]


def test_loaded_values_can_be_used_at_once(exe, block):
    x = load(block, "x", STREAMS / "of_float32")
    x.set_shape([2, 3])
    y = layers.scale(x, 2.0)
    (got,) = exe.run(fetch_list=[y])
    np.testing.assert_array_equal(got, VALUES["of_float32"] * 2)


def test_load_a_part(exe, block):
    load(block, "x", STREAMS / "of_float32", seek=2, shape=[3])
    exe.run()
    np.testing.assert_array_equal(
        held("x").value, VALUES["of_float32"].reshape(-1)[2:5]
    )


def test_load_more_than_there_is(exe, block):
    load(block, "x", STREAMS / "of_float32", seek=4, shape=[3])
    with pytest.raises(EnforceNotMet, match="need 12 bytes, but 8 are left"):
        exe.run()


def test_load_as_halves(exe, block):
    load(block, "x", STREAMS / "of_float32", load_as_fp16=True)
    exe.run()
    assert held("x").value.dtype == np.float16
    np.testing.assert_array_equal(held("x").value, VALUES["of_float32"])


def test_load_combined(exe, block):
    names = ["of_float32", "of_int64", "two_levels"]
    outs = [variable(block, n) for n in names]
    attrs = {"file_path": str(STREAMS / "combined")}
    block.append_op("load_combine", {}, {"Out": outs}, attrs)
    exe.run()
    for name in names:
        np.testing.assert_array_equal(held(name).value, VALUES[name])
    assert held("two_levels").lod == [[0, 1, 3], [0, 2, 4, 5]]


def test_missing_file(exe, block, tmp_path):
    load(block, "x", tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        exe.run()


def save(block, names, path, type="save", **attrs):
    attrs["file_path"] = str(path)
    block.append_op(type, {"X": list(names)}, {}, attrs)


@pytest.mark.parametrize("name", ["one_level", "of_float64", "of_int8", "empty"])
def test_save(exe, block, tmp_path, name):
    lods = {"one_level": [[0, 2, 5]]}
    variable(block, name, str(VALUES[name].dtype))
    tensor = fluid.global_scope().var(name).get_tensor()
    tensor.set(VALUES[name])
    tensor.set_lod(lods.get(name, []))
    save(block, [name], tmp_path / "sub" / "x")
    exe.run()
    assert (tmp_path / "sub" / "x").read_bytes() == (STREAMS / name).read_bytes()


def test_save_selected_rows(exe, block, tmp_path):
    variable(block, "r", kind=VarType.SELECTED_ROWS)
    rows = SelectedRows(np.array([4, 1, 4]), VALUES["rows"], 7)
    fluid.global_scope().var("r").value = rows
    save(block, ["r"], tmp_path / "x")
    exe.run()
    assert (tmp_path / "x").read_bytes() == (STREAMS / "rows").read_bytes()


def test_save_halves(exe, block, tmp_path):
    variable(block, "x")
    fluid.global_scope().var("x").value = VALUES["halves"]
    save(block, ["x"], tmp_path / "x", save_as_fp16=True)
    exe.run()
    assert (tmp_path / "x").read_bytes() == (STREAMS / "halves").read_bytes()


def test_save_what_was_just_computed(exe, block, tmp_path):
    x = fluid.data("x", [None, 2], lod_level=1)
    y = layers.scale(x, 1.0)
    save(block, [y], tmp_path / "x")
    rows = fluid.create_lod_tensor(VALUES["one_level"], [[2, 3]], fluid.CPUPlace())
    exe.run(feed={"x": rows})
    assert (tmp_path / "x").read_bytes() == (STREAMS / "one_level").read_bytes()


def test_save_combined(exe, block, tmp_path):
    names = ["of_float32", "of_int64", "two_levels"]
    for name in names:
        variable(block, name, str(VALUES[name].dtype))
        fluid.global_scope().var(name).value = VALUES[name]
    held("two_levels").lod = [[0, 1, 3], [0, 2, 4, 5]]
    save(block, names, tmp_path / "x", "save_combine")
    exe.run()
    assert (tmp_path / "x").read_bytes() == (STREAMS / "combined").read_bytes()


def test_save_does_not_overwrite(exe, block, tmp_path):
    variable(block, "x")
    fluid.global_scope().var("x").value = VALUES["halves"]
    (tmp_path / "x").write_bytes(b"old")
    save(block, ["x"], tmp_path / "x", overwrite=False)
    with pytest.raises(EnforceNotMet, match="is there already"):
        exe.run()
    assert (tmp_path / "x").read_bytes() == b"old"


def test_save_to_memory_is_refused(exe, block, tmp_path):
    variable(block, "x")
    fluid.global_scope().var("x").value = VALUES["halves"]
    save(block, ["x"], tmp_path / "x", "save_combine", save_to_memory=True)
    with pytest.raises(EnforceNotMet, match="save_to_memory"):
        exe.run()
