"""Attributes: kinds, and values brought into their form."""

import math

import numpy as np
import pytest

from fluidx.ir import Block, BuildError, Program
from fluidx.ir.attrs import coerce, kind_of, short_float
from fluidx.kernels import AttrType, VarType

T = AttrType


@pytest.mark.parametrize(
    ("value", "short"),
    [
        (0.019999999552965164, 0.02),
        (1 / 3, 0.33333334),
        (1e-8, 1e-8),
        (16777216.0, 16777216.0),
        (1e300, math.inf),
        (-math.inf, -math.inf),
    ],
)
def test_shortest_float(value, short):
    assert short_float(value) == short
    if math.isfinite(short):
        assert np.float32(short) == np.float32(value)


def test_minus_zero_stays():
    assert math.copysign(1, short_float(-0.0)) == -1


@pytest.mark.parametrize(
    ("kind", "value", "made"),
    [
        (T.INT, True, 1),
        (T.INT, VarType.FP32, 5),
        (T.INT, np.int64(3), 3),
        (T.LONG, 1 << 40, 1 << 40),
        (T.FLOAT, 1, 1.0),
        (T.FLOAT, np.float64(0.1), 0.1),
        (T.BOOLEAN, 1, True),
        (T.BOOLEAN, np.bool_(False), False),
        (T.STRING, b"ab", "ab"),
        (T.INTS, (1, 2), [1, 2]),
        (T.LONGS, np.array([1, 2]), [1, 2]),
        (T.FLOATS, [1, 0.5], [1.0, 0.5]),
        (T.STRINGS, [], []),
    ],
)
def test_coerced(kind, value, made):
    got = coerce(kind, value)
    assert got == made
    assert type(got) is type(made)
    if isinstance(made, list):
        assert list(map(type, got)) == list(map(type, made))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (T.INT, 1.5),
        (T.INT, "a"),
        (T.INT, [1]),
        (T.INT, 1 << 31),
        (T.LONG, 1 << 63),
        (T.FLOAT, "a"),
        (T.BOOLEAN, 2),
        (T.STRING, 1),
        (T.INTS, 1),
        (T.INTS, [1.5]),
        (T.BLOCK, 1),
    ],
)
def test_refused(kind, value):
    with pytest.raises(TypeError, match=r"^expected [A-Z]+, got "):
        coerce(kind, value)


def test_kinds():
    block = Program().global_block()
    assert kind_of("mul", "x_num_col_dims", 1) == T.INT
    assert kind_of("fill_constant", "shape", [1]) == T.LONGS
    assert kind_of("nothing", "op_role_var", []) == T.STRINGS
    found = {
        T.BOOLEAN: True,
        T.INT: 1,
        T.LONG: 1 << 40,
        T.FLOAT: 0.5,
        T.STRING: "a",
        T.BLOCK: block,
        T.INTS: [1],
        T.LONGS: [1, 1 << 40],
        T.FLOATS: [1, 0.5],
        T.STRINGS: ["a"],
        T.BOOLEANS: [True],
        T.BLOCKS: [block],
    }
    for kind, value in found.items():
        assert kind_of("nothing", "a", value) == kind
    with pytest.raises(TypeError, match="no attribute can hold"):
        kind_of("nothing", "a", [1, "a"])


def scale(attrs) -> Block:
    block = Program().global_block()
    block.create_var(name="x", shape=[2])
    block.append_op("scale", {"X": "x"}, {"Out": "x"}, attrs)
    return block


def test_building_brings_values_in_form():
    # the reference does the same: a whole number for a float, a truth value for any
    op = scale({"scale": 2, "bias_after_scale": 0}).ops[0]
    assert (op.attr("scale"), type(op.attr("scale"))) == (2.0, float)
    assert op.attr("bias_after_scale") is False
    op._set_attr("scale", 1 / 3)
    assert op.attr("scale") == 0.33333334


def test_building_refuses_values_of_another_kind():
    with pytest.raises(BuildError, match="op scale: attribute scale: expected FLOAT"):
        scale({"scale": "a"})
    op = scale({}).ops[0]
    with pytest.raises(BuildError, match="attribute scale: expected FLOAT"):
        op._set_attr("scale", [1.0])


def test_none_leaves_the_default():
    assert scale({"scale": None}).ops[0].attr("scale") == 1.0


def test_ops_share_no_lists():
    block = Program().global_block()
    block.create_var(name="x")
    ops = [
        block.append_op("fill_constant", {}, {"Out": "x"}, {"shape": [2], "dtype": 5}),
        block.append_op("fill_constant", {}, {"Out": "x"}),
        block.append_op("fill_constant", {}, {"Out": "x"}),
    ]
    copies = block.program.clone().global_block().ops
    for op in ops:
        op.attrs["shape"].append(9)
    assert [op.attr("shape") for op in copies] == [[2], [], []]
    assert [op.attr("shape") for op in ops] == [[2, 9], [9], [9]]
