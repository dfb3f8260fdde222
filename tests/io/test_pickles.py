"""The dicts of arrays in .pdparams files: ours, the reference's, and hostile ones."""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from fluidx.io.errors import ModelFileError
from fluidx.io.pickled import write_arrays
from fluidx.io.unpickle import loads

MODELS = Path(__file__).parents[1] / "golden" / "models"
REFERENCE = [
    MODELS / "streams" / "many.pdparams",
    MODELS / "streams" / "many.pdopt",
    *(
        MODELS / m / "ckpt" / f"model{s}"
        for m in ("mlp", "lenet")
        for s in (".pdparams", ".pdopt")
    ),
]
ARRAYS = {
    "floats": np.arange(12, dtype="f4").reshape(3, 4),
    "doubles": np.linspace(-1, 1, 5),
    "halves": np.ones((2, 1), "f2"),
    "flags": np.array([True, False]),
    "bytes": np.arange(256, dtype="u1"),
    "nothing": np.zeros((0, 4), "f4"),
    "scalar": np.array(7, "i8"),
    "five": np.zeros((1, 2, 1, 2, 1), "i4"),
}


def written(arrays):
    file = BytesIO()
    write_arrays(file, arrays)
    return file.getvalue()


def same(found, wanted):
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype, name
        assert found[name].shape == value.shape, name
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("path", REFERENCE, ids=lambda p: "-".join(p.parts[-3:]))
def test_reference_files_byte_for_byte(path):
    data = path.read_bytes()
    found = loads(data)
    same(found, pickle.loads(data, encoding="latin1"))
    assert written(found) == data


def test_python_reads_what_we_write():
    same(pickle.loads(written(ARRAYS)), ARRAYS)
    same(loads(written(ARRAYS)), ARRAYS)
    assert loads(written({})) == {}
    one = {"only": np.ones(3)}
    same(pickle.loads(written(one)), one)


def test_many_names():
    many = {f"p{i}": np.array([i]) for i in range(2100)}
    same(pickle.loads(written(many)), many)
    same(loads(written(many)), many)


@pytest.mark.parametrize("protocol", range(6))
def test_we_read_what_python_writes(protocol):
    arrays = {**ARRAYS, "fortran": np.asfortranarray(ARRAYS["floats"])}
    same(loads(pickle.dumps(arrays, protocol)), arrays)
    same(loads(pickle.dumps(OrderedDict(arrays), protocol)), arrays)
    big_endian = {"x": np.arange(3, dtype=">f8")}
    np.testing.assert_array_equal(
        loads(pickle.dumps(big_endian, protocol))["x"], range(3)
    )


@pytest.mark.parametrize("protocol", range(6))
def test_plain_containers(protocol):
    value = {
        "text": "a" * 300,
        "list": [1, -2, 3.5, None, True, False, 1 << 40, -(1 << 70)],
        "tuple": (1, (2,), ()),
        "names": {"w": "fc_0.w_0"},
        "raw": b"\x00\xff",
        "scalar": np.float32(2.5),
        "empty": [],
    }
    found = loads(pickle.dumps(value, protocol))
    assert found == value
    assert type(found["scalar"]) is np.float32


def test_shared_arrays_stay_shared():
    array = np.arange(4)
    found = loads(pickle.dumps({"a": array, "b": array}))
    assert found["a"] is found["b"]


def test_what_python_2_wrote():
    """Protocol 2 of Python 2 has the bytes of arrays as plain strings."""
    raw = np.arange(3, dtype="f4").tobytes()
    data = (
        b"\x80\x02}U\x01wcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        b"K\x00\x85U\x01b\x87R(K\x01K\x03\x85cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R"
        b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x0c"
    )
    data += raw + b"tbs."
    same(loads(data), {"w": np.arange(3, dtype="f4")})


def test_what_cannot_be_written():
    with pytest.raises(ModelFileError, match="'x': dtype complex64"):
        written({"x": np.zeros(1, "c8")})
    with pytest.raises(ModelFileError, match="'x': dtype object"):
        written({"x": np.array([{}])})


# ---------------------------------------------------------------- hostile files


class Evil:
    """Pickles as a call of whatever it is given."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def boom(*_):
    raise AssertionError("code of a pickle was run")


@pytest.mark.parametrize(
    "value",
    [
        Evil(boom),
        {"x": Evil(boom)},
        Evil(eval, "boom()"),
        Evil(getattr, "x", "y"),
        Evil(bytes, 1 << 40),
        Evil(bytearray, 1 << 40),
        Evil(np.zeros, (1 << 40,)),
        Evil(OrderedDict, [("a", 1)]),
        np.array([{}], object),
        np.zeros(2, [("a", "f4")]),
        np.array(["text"]),
        {1, 2},
        {("a", "b"): 1},
        {3: 1},
        np.ma.array([1]),
        range(3),
        1 << 400,
        complex(1, 2),
    ],
    ids=lambda value: value.__class__.__name__,
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_everything_else_is_refused(value, protocol):
    with pytest.raises(ModelFileError, match="pickle, at byte"):
        loads(pickle.dumps(value, protocol))


def nested_tuples():
    """Hashing these as a key would take 2**60 steps."""
    twice = b"h\x00h\x00\x86q\x000"
    return b"\x80\x02})q\x000" + twice * 60 + b"h\x00K\x01s."


def one_array_many_times():
    """A thousand arrays, each over the same bytes."""
    data = b"\x80\x05C\xff" + bytes(255) + b"\x94("
    one = (
        b"cnumpy.core.numeric\n_frombuffer\n(h\x00cnumpy\ndtype\nX\x02\x00\x00\x00u1"
        b"\x89\x88\x87RM\xff\x00\x85X\x01\x00\x00\x00CtR"
    )
    return data + one * 1000 + b"l."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut off"),
        (b"\x80\x02}", "cut off"),
        (b"\x80\x09}.", "protocol 9"),
        (b"\x80\x02X\xff\xff\xff\xff.", "4294967295 bytes asked for"),
        (b"\x80\x04\x8e" + b"\xff" * 8 + b".", "bytes asked for"),
        (b"\x80\x04\x96" + b"\x00" * 7 + b"\x10.", "bytes asked for"),
        (b"\x80\x02cos\nsystem\n.", "os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (b"\x80\x02c" + b"a" * 5000, "a line does not end"),
        (b"\x80\x02)R.", "cut off"),
        (b"\x80\x02N)R.", "cannot be called"),
        (b"\x80\x02cnumpy\nndarray\n)R.", "cannot be called"),
        (b"\x80\x02cnumpy\nndarray\n.", "no value"),
        (b"\x80\x02(.", "no value"),
        (b"\x80\x02u.", "cut off"),
        (b"\x80\x02}u.", "no mark"),
        (b"\x80\x02](K\x01u.", "no dict"),
        (b"\x80\x02}K\x01a.", "no list"),
        (b"\x80\x02\x8a\xff" + b"\xff" * 255 + b".", "integer of 255 bytes"),
        (b"\x80\x02L" + b"9" * 900 + b"\n.", "long integer"),
        (b"\x80\x02h\x05.", "cut off"),
        (b"\x80\x02Pid\n.", "not one of plain data"),
        (b"\x80\x02\x82\x01.", "not one of plain data"),
        (b"\x80\x02cnumpy\ndtype\nX\x02\x00\x00\x00V9\x85R.", "no number"),
        (b"\x80\x02cnumpy\ndtype\nX\x05\x00\x00\x00f4,f4\x85R.", "no number"),
        (nested_tuples(), "tuple as a key"),
        (one_array_many_times(), "larger than the file"),
    ],
)
def test_hostile_streams(data, message):
    with pytest.raises(ModelFileError) as caught:
        loads(data)
    assert message in str(caught.value)


def test_memo_numbers_take_no_memory():
    data = b"\x80\x02}r" + struct.pack("<I", 0xFFFFFFF0) + b"."
    assert loads(data) == {}


def test_containers_within_themselves():
    ring: list = []
    ring.append(ring)
    assert len(loads(pickle.dumps({"x": ring}))["x"]) == 1
