"""``desc`` of programs, blocks, ops, variables; values recorded from the reference."""

from __future__ import annotations

import pytest

import fluidx as fluid
from fluidx import core
from fluidx.ir.errors import EnforceNotMet

AttrType, VarType = core.AttrType, core.VarDesc.VarType


@pytest.fixture
def main():
    """A fully connected layer, and a loop."""
    x = fluid.data("x", [None, 3])
    fluid.layers.fc(x, 2, act="relu")
    i = fluid.layers.fill_constant([1], "int64", 0)
    end = fluid.layers.fill_constant([1], "int64", 3)
    more = fluid.layers.less_than(i, end)
    loop = fluid.layers.While(more)
    with loop.block():
        fluid.layers.increment(i)
        fluid.layers.less_than(i, end, cond=more)
    return fluid.default_main_program()


def test_ops(main):
    op = main.global_block().ops[0]
    desc = op.desc
    assert (desc.type(), op.type) == ("mul", "mul")
    assert desc.input_names() == ["X", "Y"]
    assert desc.input("X") == ["x"]
    assert desc.inputs() == {"X": ["x"], "Y": ["fc_0.w_0"]}
    assert desc.outputs() == {"Out": ["fc_0.tmp_0"]}
    assert desc.input_arg_names() == ["x", "fc_0.w_0"]
    assert desc.output_arg_names() == ["fc_0.tmp_0"]
    assert sorted(desc.attr_names()) == [
        *("force_fp32_output", "op_callstack", "op_device", "op_namescope", "op_role"),
        *("op_role_var", "scale_out", "scale_x", "scale_y", "use_mkldnn"),
        *("x_num_col_dims", "y_num_col_dims"),
    ]
    assert desc.has_attr("x_num_col_dims")
    assert desc.attr("x_num_col_dims") == 1
    assert desc.attr_type("x_num_col_dims") == AttrType.INT == 0
    assert op.attr_type("use_mkldnn") == AttrType.BOOL
    assert desc.attr("op_role_var") == []
    assert desc.attr("op_device") == ""
    assert desc.block().id == 0
    with pytest.raises(
        EnforceNotMet, match=r"mul has no input 'Z'; it has \['X', 'Y'\]"
    ):
        desc.input("Z")
    with pytest.raises(EnforceNotMet, match="mul has no output 'Z'"):
        desc.output("Z")
    with pytest.raises(EnforceNotMet, match="mul has no attribute 'nope'"):
        desc.attr("nope")


def test_ops_are_changed_through_them(main):
    op = main.global_block().ops[0]
    before = main.version
    op.desc.set_input("Y", [b"q"])
    op.desc._set_attr("x_num_col_dims", 2)
    assert (op.input("Y"), op.attr("x_num_col_dims")) == (["q"], 2)
    op.desc._rename_input("q", "r")
    op.desc._rename_output("fc_0.tmp_0", "s")
    assert (op.input("Y"), op.output("Out")) == (["r"], ["s"])
    op.desc.set_type("matmul")
    op.desc.remove_attr("x_num_col_dims")
    assert op.type == "matmul"
    assert "x_num_col_dims" not in op.attrs
    assert main.version > before


def test_sub_blocks(main):
    (loop,) = (op for op in main.global_block().ops if op.type == "while")
    inner = loop.desc.attr("sub_block")
    assert inner == main.block(1).desc
    assert (inner.id, inner.parent, loop.desc._block_attr_id("sub_block")) == (1, 0, 1)
    loop.desc.set_block_attr("sub_block", main.block(0).desc)
    assert loop.attr("sub_block") is main.block(0)


def test_blocks(main):
    block = main.global_block()
    desc = block.desc
    assert (desc.id, desc.parent, desc.get_forward_block_idx()) == (0, -1, -1)
    types = [desc.op(i).type() for i in range(desc.op_size())]
    assert types == [op.type for op in block.ops]
    assert desc.find_var(b"nope") is None
    assert desc.find_var(b"x").name() == desc.find_var_recursive("x").name() == "x"
    assert desc.has_var(b"x")
    assert not desc.has_var_recursive(b"zz")
    assert main.block(1).desc.has_var_recursive("x")
    assert sorted(v.name() for v in desc.all_vars()) == sorted(block.vars)
    assert desc.var(b"new").name() == "new"
    assert block.has_var("new")
    desc._rename_var(b"new", b"newer")
    assert not block.has_var("new")
    desc._remove_var(b"newer")
    assert not block.has_var("newer")
    with pytest.raises(IndexError):
        desc.op(99)


def test_ops_are_made_through_them(main):
    block = main.global_block()
    made = block.desc.append_op()
    assert made.type() == ""
    made.set_type("scale")
    made.set_input("X", ["x"])
    made.set_output("Out", ["y"])
    block.create_var(name="y")
    made._set_attr("scale", 3.0)
    made.check_attrs()
    made.infer_shape(block.desc)
    assert block.ops[-1].attr("bias") == 0.0
    assert block.var("y").shape == (-1, 3)
    copy = block.desc._prepend_op()
    copy.copy_from(made)
    assert block.ops[0].input("X") == ["x"]
    block.desc._remove_op(0, 1)
    assert block.ops[0].type == "mul"
    assert core.OpDesc().type() == ""


def test_programs(main):
    desc = main.desc
    assert desc.num_blocks() == 2
    assert desc.block(1).op_size() == 2
    assert desc.append_block(main.global_block().desc).id == 2
    assert (main.num_blocks, main.current_block_idx) == (3, 0)
    assert desc.get_feed_target_names() == []
    assert desc.serialize_to_string() == main.serialize_to_string()
    desc.flush()
    assert desc._version() == 1008005
    desc._set_version(7)
    fresh = core.ProgramDesc()
    assert fresh.num_blocks() == 1
    fresh.parse_from_string(main.serialize_to_string())
    assert (fresh.num_blocks(), fresh._version()) == (3, 7)
    assert fresh.serialize_to_string() == main.serialize_to_string()


def test_feeds_and_fetches_of_a_saved_program(tmp_path):
    y = fluid.layers.scale(fluid.data("x", [None, 3]), 2.0)
    exe = fluid.Executor(fluid.CPUPlace())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe)
    desc = core.ProgramDesc()
    desc.parse_from_string((tmp_path / "__model__").read_bytes())
    assert desc.get_feed_target_names() == ["x"]
    assert len(desc.get_fetch_target_names()) == 1


def test_variables(main):
    x = main.global_block().var("x")
    desc = x.desc
    assert (desc.name(), desc.shape(), desc.get_shape()) == ("x", [-1, 3], [-1, 3])
    assert (desc.dtype(), desc.type()) == (VarType.FP32, VarType.LOD_TENSOR)
    assert (desc.lod_level(), desc.persistable(), desc.need_check_feed()) == (0, 0, 1)
    desc.set_shape([4, 3])
    desc.set_dtype(VarType.FP64)
    desc.set_lod_level(1)
    desc.set_persistable(True)
    desc.set_need_check_feed(False)
    desc.set_type(VarType.SELECTED_ROWS)
    assert (x.shape, x.dtype, x.lod_level) == ((4, 3), VarType.FP64, 1)
    assert (x.persistable, x.need_check_feed) == (True, False)
    assert x.type == VarType.SELECTED_ROWS
    desc.set_name("z")
    assert main.global_block().ops[0].input("X") == ["z"]
    assert core.VarDesc("q").name() == "q"
    assert core.VarDesc.VarType.FP32 == 5


def test_parts_serialise_as_in_the_whole(main):
    whole = main.serialize_to_string()
    block = main.global_block()
    for part in (block.desc, block.ops[0].desc, block.var("x").desc):
        assert part.serialize_to_string() in whole


def test_what_a_variable_has_no_value_for(main):
    x = main.global_block().var("x")
    assert x.grad_name == "x@GRAD"
    for call, hint in (
        (x.numpy, "fetches it"),
        (lambda: x.set_value(1), "get_tensor"),
        (x.backward, "append_backward"),
        (x.gradient, "@GRAD"),
        (x.clear_gradient, ""),
        (x.detach, ""),
    ):
        with pytest.raises(
            TypeError, match=f"x: .* exists in dygraph mode only.*{hint}"
        ):
            call()


def test_global_seed():
    program = fluid.Program()
    try:
        program.global_seed(3)
        assert (program.random_seed, fluid.Program().random_seed) == (3, 3)
        with pytest.raises(ValueError, match="must be an integer"):
            program.global_seed("3")
    finally:
        program.global_seed(0)
    assert fluid.Program().random_seed == 0
