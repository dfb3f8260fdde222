"""Fingerprints: what counts and what does not."""

import pytest
from golden.load import dumps, load

from fluidx.ir import Program, Where
from fluidx.kernels import VarType


def net() -> Program:
    return load(dict(dumps("local/while_net"))["main"])


def with_scale(value: float) -> str:
    program = Program()
    block = program.global_block()
    block.create_var(name="x", shape=[2])
    block.append_op("scale", {"X": "x"}, {"Out": "x"}, {"scale": value})
    return program.fingerprint()


def test_form():
    assert len(net().fingerprint()) == 64
    assert set(net().fingerprint()) <= set("0123456789abcdef")


def test_copies_are_equal():
    program = net()
    assert program.clone().fingerprint() == program.fingerprint()
    assert net().fingerprint() == program.fingerprint()


def test_floats_count_as_32_bit_numbers():
    assert with_scale(0.02) == with_scale(0.019999999552965164)
    assert with_scale(1) == with_scale(1.0)
    assert with_scale(0.02) != with_scale(0.020001)
    assert with_scale(float("nan")) == with_scale(float("nan"))


def no_change(program):
    pass


def other_order(program):
    block = program.global_block()
    block.vars = dict(sorted(block.vars.items(), reverse=True))
    for op in block.ops:
        op.attrs = dict(reversed(op.attrs.items()))
        op.inputs = dict(reversed(op.inputs.items()))


def other_line(program):
    program.global_block().ops[0].where = Where("x.py", 1, "f")
    program.global_block().ops[1].attrs["op_callstack"] = ["x"]
    program._touch()
    program._desc_version = 3


def empty_slots(program):
    program.global_block().ops[0].inputs["ShapeTensor"] = []


def no_defaults(program):
    for op in program.all_ops():
        op.attrs.pop("force_cpu", None)


@pytest.mark.parametrize(
    "change", [no_change, other_order, other_line, empty_slots, no_defaults]
)
def test_does_not_count(change):
    program = net()
    change(program)
    assert program.fingerprint() == net().fingerprint()


CHANGES = {
    "seed": lambda p: setattr(p, "random_seed", 3),
    "op order": lambda p: p.global_block().ops.reverse(),
    "an op": lambda p: p.block(1).ops.pop(),
    "op type": lambda p: setattr(p.global_block().ops[-1], "type", "momentum"),
    "input": lambda p: p.global_block().ops[5]._rename_input("x", "y"),
    "output": lambda p: p.global_block().ops[5].outputs.clear(),
    "attribute": lambda p: p.global_block().ops[0]._set_attr("value", 3.0),
    "role": lambda p: p.global_block().ops[5]._set_attr("op_role", 1),
    "role variables": lambda p: p.global_block().ops[5]._set_attr("op_role_var", ["x"]),
    "scope": lambda p: p.global_block().ops[5]._set_attr("op_namescope", "/a/"),
    "parent": lambda p: setattr(p.block(1), "parent_idx", -1),
    "forward block": lambda p: setattr(p.block(1), "forward_block_idx", 0),
    "variable": lambda p: p.global_block().vars.pop("x"),
    "shape": lambda p: p.global_block().var("x").set_shape([1]),
    "dtype": lambda p: p.global_block().var("x").set_dtype("int64"),
    "kind": lambda p: setattr(p.global_block().var("x"), "type", VarType.RAW),
    "data": lambda p: setattr(p.global_block().var("x"), "is_data", False),
    "persistable": lambda p: setattr(p.global_block().var("x"), "persistable", True),
    "stop_gradient": lambda p: setattr(
        p.global_block().var("x"), "stop_gradient", False
    ),
    "trainable": lambda p: setattr(
        p.global_block().var("fc_0.w_0"), "trainable", False
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_counts(what):
    program = net()
    CHANGES[what](program)
    assert program.fingerprint() != net().fingerprint()
