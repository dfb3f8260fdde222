"""Parameters as safetensors files."""

from __future__ import annotations

import json
import struct

import ml_dtypes
import numpy as np
import pytest

import fluidx as fluid
from fluidx import io, layers
from fluidx.io import ModelFileError
from fluidx.io.safetensors import load_file, program_params, save_file

DTYPES = ["?", "u1", "i1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", ml_dtypes.bfloat16]
ARRAYS = {
    f"x{i}/é": np.arange(6 - i % 3 * 2).reshape(2, -1).astype(d)
    for i, d in enumerate(DTYPES)
}


def parts(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :], size


def test_round_trip(tmp_path):
    arrays = {**ARRAYS, "none": np.zeros((0, 3), "f4"), "scalar": np.array(2.5)}
    save_file(arrays, tmp_path / "x", {"format": "np"})
    found = load_file(tmp_path / "x")
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
    header, rest, size = parts(tmp_path / "x")
    assert header["__metadata__"] == {"format": "np"}
    assert (8 + size) % 8 == 0
    assert len(rest) == sum(a.nbytes for a in arrays.values())


def test_the_format(tmp_path):
    """As its specification has it."""
    save_file(
        {"a": np.array([1, 2], "<f4"), "b": np.array([[7]], "<i8")}, tmp_path / "x"
    )
    header, rest, _ = parts(tmp_path / "x")
    assert header == {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
        "b": {"dtype": "I64", "shape": [1, 1], "data_offsets": [0, 8]},
    }
    assert rest == struct.pack("<q2f", 7, 1, 2)


def write(path, header, rest=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(
        struct.pack("<Q", len(text) if size is None else size) + text + rest
    )


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_other_orders_are_read(tmp_path):
    header = {"b": entry(offsets=(4, 8)), "a": entry(offsets=(0, 4))}
    write(tmp_path / "x", header, struct.pack("<2f", 1, 2))
    found = load_file(tmp_path / "x")
    assert {k: v.tolist() for k, v in found.items()} == {"b": [2.0], "a": [1.0]}


@pytest.mark.parametrize(
    ("header", "rest", "message"),
    [
        ({"a": entry()}, b"", "need 4 bytes, but 0 are left"),
        ({"a": entry()}, bytes(5), "1 bytes more"),
        ({"a": entry(shape=(2,))}, bytes(4), r"4 bytes for float32\[2\]"),
        ({"a": entry(dtype="F8_E4M3")}, bytes(4), "is not described"),
        ({"a": {"dtype": "F32"}}, bytes(4), "is not described"),
        ({"a": [1]}, bytes(4), "is not described"),
        ({"a": entry(shape=(-1,))}, bytes(4), "a size that is no size"),
        ({"a": entry(shape=(1.0,))}, bytes(4), "a size that is no size"),
        ({"a": entry(shape=(1 << 70,))}, bytes(4), "a size that is no size"),
        ({"a": entry(shape=(1,) * 80)}, bytes(4), "4 bytes for"),
        ({"a": entry(), "b": entry()}, bytes(4), "begins at 0, not at 4"),
        ({"a": entry(offsets=(4, 8))}, bytes(8), "begins at 4, not at 0"),
        ([1], b"", "is no object"),
        (b"{", b"", "header is damaged"),
        (b"[" * 100_000, b"", "header is damaged"),
        (b'{"a": 1, "a": 2}', b"", "a name stands twice"),
        (b"\xff", b"", "header is damaged"),
    ],
)
def test_damaged_files(tmp_path, header, rest, message):
    write(tmp_path / "x", header, rest)
    with pytest.raises(ModelFileError, match=message):
        load_file(tmp_path / "x")


@pytest.mark.parametrize("size", [1000, 1 << 40, (1 << 64) - 1])
def test_headers_that_are_too_long(tmp_path, size):
    write(tmp_path / "x", {}, size=size)
    with pytest.raises(ModelFileError, match="header"):
        load_file(tmp_path / "x")


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(ModelFileError, match="'x': dtype complex64"):
        save_file({"x": np.zeros(1, "c8")}, tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "nowhere")


def test_programs(tmp_path):
    layers.fc(fluid.data("x", [None, 4]), 3)
    main = fluid.default_main_program()
    fluid.Executor().run(fluid.default_startup_program())
    params = program_params()
    assert set(params) == {"fc_0.w_0", "fc_0.b_0"}
    save_file(params, tmp_path / "x")
    wanted = {k: v.copy() for k, v in params.items()}
    for name in wanted:
        fluid.global_scope().find_var(name).value = np.zeros_like(wanted[name])
    io.set_program_state(main, load_file(tmp_path / "x"))
    for name, array in program_params(main).items():
        np.testing.assert_array_equal(array, wanted[name])
