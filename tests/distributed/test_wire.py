"""The wire format: what goes in comes out, and nothing else is let in."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np
import pytest

from fluidx.distributed.errors import WireError
from fluidx.distributed.wire import Kind, Limits, Message, decode, encode
from fluidx.kernels import SelectedRows

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "float16", "float32", "float64", "complex64", "complex128",
    ml_dtypes.bfloat16,
]  # fmt: skip


def through(message, limits=None):
    """The message after a trip: frames as bytes, as a socket would give them."""
    frames = encode(message, limits or Limits())
    return decode([bytearray(f) for f in frames]), frames


def same(a, b):
    if a is None or b is None:
        return a is b
    if isinstance(a, SelectedRows):
        return (
            isinstance(b, SelectedRows)
            and a.height == b.height
            and same(a.rows, b.rows)
            and same(a.value, b.value)
        )
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def example():
    rows = SelectedRows(np.array([4, 0, 4]), np.arange(6.0).reshape(3, 2), 5)
    return Message(
        Kind.PUSH,
        trainer=3,
        seq=2**40,
        step=7,
        barrier=True,
        ends=True,
        names=["fc_0.w_0.block0", "ä"],
        values=[
            ("w", np.arange(12, dtype="f4").reshape(3, 4)),
            ("none", None),
            ("rows", rows),
            ("big", np.arange(9000, dtype="f8")),
        ],
        text="why",
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (5, 1, 2)])
@pytest.mark.parametrize("inline", [0, 1 << 14])
def test_arrays_come_back(dtype, shape, inline):
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    sent = Message(Kind.VALUES, values=[("x", array), ("y", array)])
    got, _ = through(sent, Limits(inline=inline))
    assert [n for n, _ in got.values] == ["x", "y"]
    assert all(same(v, array) for _, v in got.values)
    assert all(v.flags.aligned for _, v in got.values)


def test_everything_of_a_message_comes_back():
    sent = example()
    got, _ = through(sent)
    for field in ("kind", "trainer", "seq", "step", "barrier", "ends", "names", "text"):
        assert getattr(got, field) == getattr(sent, field)
    assert [n for n, _ in got.values] == [n for n, _ in sent.values]
    assert all(same(a, b) for (_, a), (_, b) in zip(got.values, sent.values))


def test_what_came_can_be_written_to_and_large_arrays_are_not_copied():
    array = np.zeros(1 << 16, "f4")
    frames = encode(Message(Kind.VALUES, values=[("x", array)]))
    assert np.shares_memory(frames[1], array)
    raw = bytearray(frames[1])
    value = decode([frames[0], raw]).values[0][1]
    value[0] = 1.5
    assert np.frombuffer(raw, "f4")[0] == 1.5


def test_not_contiguous_arrays():
    array = np.arange(20.0).reshape(4, 5)
    sent = Message(Kind.VALUES, values=[("t", array.T), ("s", array[:, ::2])])
    for limits in (Limits(), Limits(inline=0)):
        got, _ = through(sent, limits)
        np.testing.assert_array_equal(got.values[0][1], array.T)
        np.testing.assert_array_equal(got.values[1][1], array[:, ::2])


@pytest.mark.parametrize("chunk", [1, 7, 100, 72000])
def test_no_frame_exceeds_the_limit(chunk):
    sent = Message(Kind.PUSH, values=example().values)
    got, frames = through(sent, Limits(chunk=chunk))
    assert max(len(f) for f in frames[1:]) <= chunk
    assert all(same(a, b) for (_, a), (_, b) in zip(got.values, sent.values))


def test_what_cannot_be_sent():
    for value in (np.array(["a"]), np.array([object()])):
        with pytest.raises(WireError, match="cannot be sent"):
            encode(Message(Kind.PUSH, values=[("x", value)]))
    with pytest.raises(WireError, match="70000 bytes"):
        encode(Message(Kind.PUSH, names=["n" * 70000]))


def test_other_versions_and_other_protocols():
    frames = encode(example())
    with pytest.raises(WireError, match="version 9 came, this one is 1"):
        decode([frames[0][:3] + b"\x09" + frames[0][4:], *frames[1:]])
    with pytest.raises(WireError, match="not a fluidx message"):
        decode([b"GET / HTTP/1.1\r\n" + b" " * 60])
    for frames in ([], [b""], [b"FLX"]):
        with pytest.raises(WireError, match="truncated"):
            decode(frames)


def test_row_numbers_must_fit():
    rows = SelectedRows(np.array([0, 7]), np.zeros((2, 3)), 5)
    with pytest.raises(WireError, match=r"row numbers outside \[0, 5\)"):
        through(Message(Kind.PUSH, values=[("g", rows)]))
    rows = SelectedRows(np.array([0]), np.zeros((2, 3)), 5)
    with pytest.raises(WireError, match="row numbers for"):
        through(Message(Kind.PUSH, values=[("g", rows)]))


def test_a_huge_size_is_refused_before_memory_is_asked_for():
    frames = encode(Message(Kind.PUSH, values=[("x", np.zeros(2, "f4"))]))
    head = bytearray(frames[0])
    at = bytes(head).index(struct.pack("<Q", 2))
    head[at : at + 8] = struct.pack("<Q", 1 << 62)
    with pytest.raises(WireError):
        decode([head])


@pytest.mark.parametrize("limits", [Limits(), Limits(inline=0), Limits(chunk=64)])
def test_cut_messages_are_refused(limits):
    frames = [bytes(memoryview(f)) for f in encode(example(), limits)]
    for size in range(len(frames[0])):
        with pytest.raises(WireError):
            decode([frames[0][:size], *frames[1:]])
    for count in range(1, len(frames)):
        with pytest.raises(WireError):
            decode(frames[:count])
    with pytest.raises(WireError, match="left over"):
        decode([*frames, b"more"])
    with pytest.raises(WireError, match="left over"):
        decode([frames[0] + b"x", *frames[1:]])


@pytest.mark.parametrize("limits", [Limits(), Limits(inline=0)])
def test_damaged_messages_give_wire_errors_or_messages(limits):
    """Whatever the bytes, `decode` answers with a Message or a WireError."""
    frames = [bytes(memoryview(f)) for f in encode(example(), limits)]
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(600):
        damaged = bytearray(frames[0])
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        rest = list(frames[1:])
        if rest and rng.integers(4) == 0:
            del rest[rng.integers(len(rest))]
        try:
            got = decode([damaged, *rest])
        except WireError:
            refused += 1
        else:
            assert isinstance(got, Message)
    assert refused > 100
