"""Verification: every kind of fault is found, and sound programs have none."""

import json
from pathlib import Path

import pytest
from golden.load import dumps, exceptions, load, names

from fluidx.ir import BuildError, Operator, Program
from fluidx.ir.verify import check, verify

SPEC = json.loads(
    (Path(__file__).parent.parent / "golden" / "ops_spec.json").read_text()
)


def expected_fault(program, problem):
    """Whether the reference's own program does have this fault."""
    if problem.kind == "op":  # an op that fluidx has not yet; two a CPU build lacks
        type = problem.op_type.removesuffix("_grad")
        return type in SPEC or type in ("gen_nccl_id", "c_gen_nccl_id")
    # local SGD declares NAME@SNAPSHOT as BOOL, and then NAME, too
    known = program.global_block().vars
    snapshots = any("@SNAPSHOT" in n for n in known)
    return snapshots and "declared as FP32, inferred is BOOL" in problem.message


# not where the reference's result is broken or doubtful
@pytest.mark.parametrize("name", [n for n in names() if n not in exceptions()])
def test_no_false_alarm_on_goldens(name):
    for part, dumped in dumps(name):
        program = load(dumped)
        problems = [p for p in verify(program) if not expected_fault(program, p)]
        assert [str(p) for p in problems] == [], part


def test_finds_what_is_broken_in_goldens():
    # clip ops leave the trainer, which then sends gradients that it never computed
    program = load(dict(dumps("clip_by_optimizer--pserver-sync-2"))["trainer-0 main"])
    assert any(
        p.kind in ("order", "variable") and p.op_type == "send" for p in verify(program)
    )


GOOD = """
block 0 {
  data  x  : float32[-1, 4]
  param w  : float32[4, 2]
  var   h  : float32[-1, 2]
  var   h2 : float32[-1, 2]
  mul(X=x, Y=w) -> (Out=h)
  relu(X=h) -> (Out=h2)
}
"""


def problems(text: str, **options) -> list:
    found = verify(Program.from_text(text), **options)
    # these tests are about what stands around a loop
    return [p for p in found if (p.kind, p.op_type) != ("op", "while")]


def test_sound():
    assert problems(GOOD) == []
    check(Program.from_text(GOOD))


#: kind -> (text in GOOD, what comes in its place, message)
FAULTS = {
    "op": ("relu(", "rleu(", "op 1 (rleu): fluidx has no op 'rleu'"),
    "slot": ("mul(X=x", "mul(Z=x", "has no input 'Z'; it has ['X', 'Y']"),
    "missing": ("Y=w)", "Y=[])", "op 0 (mul): input Y is missing"),
    "single": ("X=h)", "X=[h, x])", "input X takes one variable, got ['h', 'x']"),
    "output": ("Out=h2", "Z=h2", "has no output 'Z'"),
    "attribute": ("(Out=h2)", "(Out=h2) {odd: 1}", "has no attribute 'odd'"),
    "undeclared": ("X=h)", "X=hh)", "reads 'hh': no such variable in block 0"),
    "undeclared out": ("Out=h2", "Out=h3", "writes 'h3': no such variable"),
    "order": (
        "X=x, Y=w",
        "X=h2, Y=w",
        "reads 'h2' before it is made by op 1 (relu) of block 0",
    ),
    "never": ("data ", "var ", "reads 'x', which no op makes; it is not persistable"),
    "shape": (
        "h  : float32[-1, 2]",
        "h  : float32[-1, 3]",
        "Out h: declared with shape [-1, 3], inferred is [-1, 2]",
    ),
    "rank": (
        "h2 : float32[-1, 2]",
        "h2 : float32[2]",
        "shape [2], inferred is [-1, 2]",
    ),
    "dtype": (
        "h2 : float32",
        "h2 : int64",
        "Out h2: declared as INT64, inferred is FP32",
    ),
    "inference": ("w  : float32[4, 2]", "w  : float32[5, 2]", "op 0 (mul): "),
    "role": ("(Out=h2)", "(Out=h2) : backward(q)", "op_role_var: no variable 'q'"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_finds(what):
    old, new, message = FAULTS[what]
    text = GOOD.replace(old, new)
    if what == "never":  # a program that marks some data
        text = text.replace("var   h2", "data y : float32[1]\n  var   h2")
    found = problems(text)
    assert any(message in str(p) for p in found), list(map(str, found))


def test_problem_names_everything():
    found = problems(GOOD.replace("X=h)", "X=hh)"))
    assert [(p.kind, p.block, p.op, p.op_type, p.variable) for p in found] == [
        ("variable", 0, 1, "relu", "hh")
    ]
    assert str(found[0]).startswith("block 0, op 1 (relu): reads 'hh': no such vari")
    assert "\n  built at <program text>:8 in block 0" in str(found[0])


def test_duplicate_outputs():
    text = "block 0 {\n data x : float32[2]\n split(X=x) -> (Out=[x, x]) {num: 2}\n}"
    assert "op 0 (split): writes 'x' twice" in str(problems(text)[0])


def test_blocks():
    program = Program.from_text(
        "block 0 {\n var c : bool[1] persistable\n"
        " while(Condition=c) -> () {sub_block: block 1}\n}\nblock 1 in 0 {}"
    )
    loop = program.global_block().ops[0]
    loop.attrs["sub_block"] = Program().global_block()
    assert "attribute sub_block names a block that is not of this program" in str(
        verify(program)[0]
    )
    loop.attrs["sub_block"] = program.global_block()
    assert "attribute sub_block names block 0, which is not inside" in str(
        verify(program)[0]
    )


def test_wrong_kind_of_attribute():
    program = Program.from_text(GOOD)
    program.global_block().ops[0].attrs["x_num_col_dims"] = "one"
    found = verify(program)
    assert [p.kind for p in found] == ["attribute"]
    assert "attribute x_num_col_dims: expected INT, got 'one'" in str(found[0])


LOOP = """
block 0 {
  data x : float32[1]
  var  c : bool[1]
  var  y : float32[1]
  less_than(X=x, Y=x) -> (Out=c)
  while(Condition=c, X=x) -> (Out=c) {sub_block: block 1}
  relu(X=x) -> (Out=y)
}
block 1 in 0 {
  var inner : float32[1]
  tanh(X=inner) -> (Out=inner)
  relu(X=x) -> (Out=inner)
  less_than(X=inner, Y=x) -> (Out=c)
}
"""


def test_sub_blocks():
    # in a loop, what stands further down was made the last time round
    assert problems(LOOP) == []
    early = problems(LOOP.replace("tanh(X=inner)", "tanh(X=y)"))
    assert "block 1, op 0 (tanh): reads 'y' before it is made by op 2" in str(early[0])
    gone = problems(LOOP.replace("relu(X=x) -> (Out=y)", "relu(X=inner) -> (Out=y)"))
    assert "block 0, op 2 (relu): reads 'inner': no such variable" in str(gone[0])


def test_feeds():
    text = GOOD.replace("data  x", "var   x")
    # saved programs do not say what is data: what nothing makes is taken as fed
    assert problems(text) == []
    assert problems(text, feeds=["x"]) == []
    assert [p.variable for p in problems(text, feeds=[])] == ["x"]


def test_saved_program_is_sound():
    program = load(dict(dumps("local/fc_regression"))["main"])
    again = Program.parse_from_string(program.serialize_to_string())
    assert verify(again) == []


def test_check_raises_all_at_once():
    text = GOOD.replace("X=h)", "X=hh)").replace("data  x", "var   x")
    program = Program.from_text(text)
    with pytest.raises(BuildError) as error:
        check(program, feeds=[])
    lines = str(error.value).splitlines()
    assert lines[0] == "the program has 2 problems:"
    assert lines[1].startswith("block 0, op 0 (mul): reads 'x', which no op makes")
    assert lines[3].startswith("block 0, op 1 (relu): reads 'hh'")


def test_empty_gradient_name_is_nobody():
    program = Program.from_text(GOOD)
    block = program.global_block()
    outputs = {"X@GRAD": ["@EMPTY@"], "Y@GRAD": ["@EMPTY@"]}
    inputs = {"X": ["x"], "Y": ["w"], "Out@GRAD": ["h"]}
    block._adopt(Operator(block, "mul_grad", inputs, outputs))
    assert verify(program) == []
