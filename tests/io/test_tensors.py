"""Streams of tensors, beside those that the reference wrote."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fluidx.io.errors import MissingFileError, ModelFileError
from fluidx.io.paths import open_read, open_write, var_path
from fluidx.io.tensors import Reader, read_all, write_value
from fluidx.kernels import VarType

STREAMS = Path(__file__).parents[1] / "golden" / "models" / "streams"
VALUES = np.load(STREAMS / "values.npz")
LODS = {"one_level": [[0, 2, 5]], "two_levels": [[0, 1, 3], [0, 2, 4, 5]]}
PLAIN = ["int8", "int16", "int32", "int64", "float32", "float64"]
SEPARATE = [*(f"of_{d}" for d in PLAIN), *LODS, "empty", "wide"]


def read(data, kind=VarType.LOD_TENSOR):
    return read_all(data, "bytes", [("x", kind)])["x"]


def written(value, lod=None):
    file = BytesIO()
    write_value(file, value, lod)
    return file.getvalue()


@pytest.mark.parametrize("name", SEPARATE)
def test_reference_tensors(name):
    data = (STREAMS / name).read_bytes()
    value, lod = read(data)
    assert value.dtype == VALUES[name].dtype
    np.testing.assert_array_equal(value, VALUES[name])
    assert lod == LODS.get(name)
    assert value.flags.writeable
    assert value.flags.aligned
    assert written(value, lod) == data


def test_reference_halves():
    data = (STREAMS / "halves").read_bytes()
    value, _ = read(data)
    np.testing.assert_array_equal(value, VALUES["halves"].astype("f2"))
    assert written(value) == data


def test_reference_selected_rows():
    data = (STREAMS / "rows").read_bytes()
    rows, lod = read(data, VarType.SELECTED_ROWS)
    assert lod is None
    assert rows.rows.tolist() == [4, 1, 4]
    assert rows.height == 7
    np.testing.assert_array_equal(rows.value, VALUES["rows"])
    assert written(rows) == data


def test_reference_combined_file():
    names = ["of_float32", "of_int64", "two_levels"]
    data = (STREAMS / "combined").read_bytes()
    found = read_all(data, "bytes", [(n, VarType.LOD_TENSOR) for n in names])
    assert list(found) == names
    for name, (value, lod) in found.items():
        np.testing.assert_array_equal(value, VALUES[name])
        assert lod == LODS.get(name)
    assert b"".join(written(*found[n]) for n in names) == data


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "float16", "uint64", "bfloat16", ">f4", ">i8"]
)
def test_other_dtypes_come_back(dtype):
    if dtype == "bfloat16":
        dtype = ml_dtypes.bfloat16
    value = np.array([[0, 1, 2], [1, 0, 3]]).astype(dtype)
    back, _ = read(written(value))
    assert back.dtype == value.dtype.newbyteorder("=")
    np.testing.assert_array_equal(back, value)


def test_memory_order_does_not_matter():
    value = np.arange(24, dtype="f4").reshape(2, 3, 4)
    wanted = written(value)
    assert written(np.asfortranarray(value)) == wanted
    assert written(np.repeat(value, 2, axis=2)[:, :, ::2]) == wanted


def test_no_dimension_is_written_as_one():
    assert written(np.array(2.5, "f4")) == written(np.array([2.5], "f4"))


def test_what_cannot_be_written():
    with pytest.raises(ModelFileError, match="complex64"):
        written(np.zeros(2, "c8"))
    with pytest.raises(ModelFileError, match="list"):
        written([1, 2])


HEADER = struct.pack("<IQIi", 0, 0, 0, 4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "at byte 0: a version need 4 bytes, but 0 are left"),
        (struct.pack("<IQ", 1, 0), "version 1 of a tensor is not known"),
        (struct.pack("<IQ", 0, 1 << 40), "1099511627776 LoD levels"),
        (struct.pack("<IQQ", 0, 1, 1 << 62), "a LoD level need 4611686018427387904"),
        (struct.pack("<IQQ", 0, 1, 7), "a LoD level of 7 bytes"),
        (struct.pack("<IQQ2Q", 0, 1, 16, 5, 3), "do not rise"),
        (struct.pack("<IQIi", 0, 0, 0, -1), "description of -1 bytes"),
        (struct.pack("<IQIi", 0, 0, 0, 1 << 30), "description of 1073741824 bytes"),
        (HEADER + b"\x08\x05\x10", "need 4 bytes, but 3 are left"),
        (HEADER + b"\x08\x07\x10\x01", "VarType.LOD_TENSOR is not an element type"),
        (HEADER + b"\x08\x63\x10\x01", "type 99"),
        (HEADER + b"\x10\x01\x10\x01", "type None"),
        (HEADER + b"\x08\x05\x18\x01", "description is damaged"),
        (HEADER + b"\x08\x05\x10\xff", "description is damaged"),
        (HEADER + b"\x08\x05\x10\x02", "float32[2] need 8 bytes, but 0 are left"),
    ],
)
def test_damaged_tensors(data, message):
    with pytest.raises(ModelFileError) as caught:
        read(data)
    assert message in str(caught.value)


def test_sizes_are_checked_before_memory_is_taken():
    huge = b"\x08\x05" + (b"\x10" + b"\xff" * 8 + b"\x7f") * 3
    data = struct.pack("<IQIi", 0, 0, 0, len(huge)) + huge + bytes(100)
    with pytest.raises(ModelFileError, match="bytes, but 100 are left"):
        read(data)
    nothing = b"\x08\x05\x10\x00" + (b"\x10" + b"\xff" * 8 + b"\x7f") * 2
    data = struct.pack("<IQIi", 0, 0, 0, len(nothing)) + nothing
    with pytest.raises(ModelFileError):
        read(data)


@pytest.mark.parametrize(
    ("rows", "height", "message"),
    [(1 << 61, 7, "row numbers need"), (3, -1, "3 rows of height -1")],
)
def test_damaged_selected_rows(rows, height, message):
    good = (STREAMS / "rows").read_bytes()
    data = struct.pack("<IQ", 0, rows) + good[12:36] + struct.pack("<q", height)
    with pytest.raises(ModelFileError, match=message):
        read(data + good[44:], VarType.SELECTED_ROWS)


def test_packed_dimensions_are_read_too():
    description = b"\x08\x05\x12\x02\x02\x03"
    data = struct.pack("<IQIi", 0, 0, 0, len(description)) + description + bytes(24)
    assert read(data)[0].shape == (2, 3)


def test_wrong_number_of_variables():
    data = (STREAMS / "combined").read_bytes()
    kinds = [(n, VarType.LOD_TENSOR) for n in "abcd"]
    with pytest.raises(ModelFileError, match="variable 'd', at byte 262"):
        read_all(data, "file", kinds)
    with pytest.raises(ModelFileError, match=r"138 bytes more .* as a whole"):
        read_all(data, "file", kinds[:2])


def test_outline_passes_over_the_elements():
    reader = Reader((STREAMS / "combined").read_bytes(), "file")
    assert reader.outline() == (VarType.FP32, [2, 3])
    assert reader.outline() == (VarType.INT64, [2, 3])
    assert reader.outline() == (VarType.FP32, [5, 2])
    reader.end()
    rows = Reader((STREAMS / "rows").read_bytes(), "file")
    assert rows.outline(VarType.SELECTED_ROWS) == (VarType.FP32, [3, 2])


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a\0b", ".."])
def test_names_cannot_lead_out_of_the_folder(name):
    with pytest.raises(ModelFileError, match="cannot be a file in"):
        var_path("model", name)


def test_names_may_lead_below():
    assert var_path("model", "scope/fc.w_0") == "model/scope/fc.w_0"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "sub" / "x"
    with open_write(path) as file:
        file.write(b"old")

    def half_way():
        with open_write(path) as file:
            file.write(b"new")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half"):
        half_way()
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["x"]


def test_writing_follows_links(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with open_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"), open_read(tmp_path / "x"):
        pass
    with pytest.raises(ModelFileError, match="cannot read"), open_read(tmp_path):
        pass
    with pytest.raises(ModelFileError, match="is a directory"), open_write(tmp_path):
        pass
    assert issubclass(MissingFileError, ModelFileError)
