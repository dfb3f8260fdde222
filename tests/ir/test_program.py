"""Programs: copies, pruning, names and scopes, as the reference has them."""

import pytest

from fluidx.ir import (
    BuildError,
    OpRole,
    Parameter,
    Program,
    default_main_program,
    name_scope,
    program_guard,
    unique_name,
)
from fluidx.kernels import VarType


def net() -> Program:
    """x -> mul w -> dropout -> mean, its gradients, sgd; `unused` is data."""
    program = Program()
    program.random_seed = 5
    block = program.global_block()
    for name in ("x", "unused"):
        block.create_var(name=name, shape=[-1, 4], is_data=True, stop_gradient=True)
    block.create_parameter(name="w", shape=[4, 2], dtype="float32")
    for name in ("h", "d", "mask", "loss", "w@GRAD"):
        block.create_var(name=name)
    block.create_var(name="lr", shape=[1], persistable=True)
    block.append_op("mul", {"X": "x", "Y": "w"}, {"Out": "h"})
    block.append_op(
        "dropout", {"X": "h"}, {"Out": "d", "Mask": "mask"}, {"dropout_prob": 0.3}
    )
    block.append_op("mean", {"X": "d"}, {"Out": "loss"}, {"op_role": 256})
    with program._role_guard(OpRole.Backward, ["w", "w@GRAD"]):
        block.append_op("scale", {"X": "w"}, {"Out": "w@GRAD"})
    with program._role_guard(OpRole.Optimize, ["w", "w@GRAD"]):
        sgd = {"Param": "w", "Grad": "w@GRAD", "LearningRate": "lr"}
        block.append_op("sgd", sgd, {"ParamOut": "w"})
    return program


def types(program: Program) -> list[str]:
    return [op.type for op in program.global_block().ops]


# ---------------------------------------------------------------- copies


def test_clone_is_independent():
    program = net()
    text = program.to_text()
    copy = program.clone()
    assert copy.to_text() == text
    assert copy.random_seed == 5
    assert isinstance(copy.global_block().var("w"), Parameter)
    assert copy.global_block().var("h").op is copy.global_block().ops[0]
    copy.global_block().ops[0]._rename_input("x", "unused")
    copy.global_block().ops[1].attrs["dropout_prob"] = 0.5
    copy.global_block().var("w").set_shape([1, 1])
    copy.global_block().ops.pop()
    assert program.to_text() == text


def test_clone_maps_blocks_to_its_own():
    program = Program()
    inner = program._create_block()
    program._rollback()
    block = program.global_block()
    block.create_var(name="c", shape=[1], dtype="bool")
    text = (
        "block 0 {\n var c : bool[1]\n"
        " while(Condition=c) -> () {sub_block: block 1}\n}\nblock 1 in 0 {}"
    )
    program = Program.from_text(text)
    copy = program.clone()
    assert copy.global_block().ops[0].attr("sub_block") is copy.block(1)
    assert inner is not copy.block(1)


def test_clone_for_test_drops_training():
    # as in the reference: data that nothing reads goes, too, once ops were dropped
    copy = net().clone(for_test=True)
    assert types(copy) == ["mul", "dropout", "mean"]
    assert copy.global_block().ops[1].attr("is_test") is True
    assert sorted(copy.global_block().vars) == ["d", "h", "loss", "mask", "w", "x"]


def test_clone_for_test_before_minimize_keeps_variables():
    program = net()
    del program.global_block().ops[3:]
    copy = program.clone(for_test=True)
    assert sorted(copy.global_block().vars) == sorted(program.global_block().vars)
    assert copy.global_block().ops[1].attr("is_test") is True
    assert program.global_block().ops[1].attr("is_test") is False


BRANCHES = """
block 0 {
  data x : float32[1]
  var  c : bool[1]
  var  y : float32[1]
  var  z : float32[1]
  var  s : step_scopes
  less_than(X=x, Y=x) -> (Out=c)
  while(Condition=c, X=x) -> (Out=y, StepScopes=s) {sub_block: block 1}
  while(Condition=c, X=x) -> (Out=z, StepScopes=s) {sub_block: block 2} : backward
  while(Condition=c, X=x) -> (Out=z, StepScopes=s) {sub_block: block 3}
}
block 1 in 0 { relu(X=x) -> (Out=y) }
block 2 in 0 of 1 { relu(X=x) -> (Out=z) }
block 3 in 0 of 1 { tanh(X=x) -> (Out=z) }
"""


def test_clone_for_test_drops_blocks_that_nothing_leads_to():
    copy = Program.from_text(BRANCHES).clone(for_test=True)
    assert [b.idx for b in copy.blocks] == [0, 1, 2]
    assert [b.forward_block_idx for b in copy.blocks] == [-1, -1, 1]
    assert copy.block(2).ops[0].type == "tanh"
    assert copy.global_block().ops[-1].attr("sub_block") is copy.block(2)
    assert Program.from_text(copy.to_text()).fingerprint() == copy.fingerprint()


# ---------------------------------------------------------------- pruning


def test_prune():
    program = net()
    pruned = program._prune(["loss"])
    assert types(pruned) == ["mul", "dropout", "mean"]
    assert sorted(pruned.global_block().vars) == ["d", "h", "loss", "mask", "w", "x"]
    assert pruned.global_block().ops[1].attr("is_test") is False
    assert types(program._prune(program.global_block().ops[1])) == ["mul", "dropout"]
    assert types(program._prune([program.global_block().var("h")])) == ["mul"]


def test_prune_with_input_stops_at_what_is_fed():
    pruned = net()._prune_with_input(["h"], ["loss"])
    assert types(pruned) == ["dropout", "mean"]
    assert sorted(pruned.global_block().vars) == ["d", "h", "loss", "mask"]


def test_prune_keeps_all_writers_up_to_the_use():
    # the reference keeps the first fill, too: what comes later might not overwrite it
    text = """
    block 0 {
      var t : float32[1]
      var z : float32[1]
      fill_constant() -> (Out=t) {shape: [1], value: 1.0}
      fill_constant() -> (Out=t) {shape: [1], value: 2.0}
      scale(X=t) -> (Out=z)
      fill_constant() -> (Out=t) {shape: [1], value: 3.0}
    }
    """
    program = Program.from_text(text)
    pruned = program._prune(["z"])
    assert types(pruned) == ["fill_constant", "fill_constant", "scale"]
    assert types(program._prune_with_input(["t"], ["z"])) == ["scale"]
    assert types(program._prune_with_input(["t"], ["t"])) == []


def test_prune_follows_sub_blocks():
    program = Program.from_text(BRANCHES)
    pruned = program._prune(["y"])
    assert types(pruned) == ["less_than", "while"]
    assert [b.idx for b in pruned.blocks] == [0, 1]
    assert sorted(pruned.global_block().vars) == ["c", "s", "x", "y"]


def test_prune_refuses_what_is_no_target():
    with pytest.raises(TypeError, match="a target is a Variable, its name or an Oper"):
        net()._prune([3])


# ---------------------------------------------------------------- names


def test_unique_names():
    with unique_name.guard("A_"):
        assert unique_name.generate("fc") == "A_fc_0"
        assert unique_name.generate("fc") == "A_fc_1"
        with unique_name.guard(b"B_"):
            assert unique_name.generate("fc") == "B_fc_0"
        assert unique_name.generate("fc") == "A_fc_2"
    assert unique_name.generate("fc") == "fc_0"


def test_name_scopes():
    block = default_main_program().global_block()
    block.create_var(name="x", shape=[1])
    found = []

    def scope() -> None:
        op = block.append_op("relu", {"X": "x"}, {"Out": "x"})
        found.append(op.attr("op_namescope"))

    scope()
    with name_scope("a"):
        scope()
        for inner in "bbc":
            with name_scope(inner):
                scope()
        scope()
    with name_scope("a"), name_scope("b"):
        scope()
    with name_scope("b"):
        scope()
    with name_scope("x/y"):
        scope()
    # as the reference numbers them
    assert found == [
        *("/", "/a/", "/a/b/", "/a/b_1/", "/a/c/", "/a/"),
        *("/a_1/b/", "/b/", "/x/y/"),
    ]
    with pytest.raises(ValueError, match="name_scope needs a prefix"), name_scope(""):
        pass


# ---------------------------------------------------------------- building ops


def test_version_counts_changes():
    program = net()
    before = program.version
    program.global_block().ops[0]._set_attr("x_num_col_dims", 1)
    assert program.version > before


def test_undeclared_input_names_op_and_line():
    block = Program().global_block()
    with pytest.raises(BuildError) as error:
        block.append_op("relu", {"X": "nothing"}, {"Out": "y"})
    text = str(error.value)
    assert "op relu: input X: no variable 'nothing' in block 0 or around it" in text
    assert "test_program.py" in text
    assert block.ops == []


def test_required_input_must_hold_something():
    block = Program().global_block()
    with pytest.raises(BuildError, match="op relu: input X is missing"):
        block.append_op("relu", {"X": []}, {})
    # an op that acts on the world may have nothing to wait for
    assert not block.append_op("recv", {}, {"Out": []}).inputs


def test_guards_restore_the_defaults():
    outside = default_main_program()
    inner = Program()
    with program_guard(inner, Program()):
        assert default_main_program() is inner
    assert default_main_program() is outside
    wrong = pytest.raises(TypeError, match="main program must be a Program, got int")
    with wrong, program_guard(3):
        pass


def test_variables_as_text():
    block = Program().global_block()
    var = block.create_var(name="rows", type=VarType.SELECTED_ROWS, shape=[3, 2])
    assert str(var) == "var rows : selected_rows float32[3, 2]"
    assert var.to_string(True) == str(var)


def test_a_variable_is_true_so_that_scripts_can_ask_for_it():
    bias = Program().global_block().create_var(name="b", shape=[-1, 0], dtype="float32")
    assert bias
    assert (bias or None) is bias
