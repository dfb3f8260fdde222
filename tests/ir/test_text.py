"""Programs as text: how they look, and that they read back."""

import random

import pytest
from golden.load import dumps, load, names
from random_programs import Maker

from fluidx.ir import BuildError, OpRole, Parameter, Program
from fluidx.kernels import VarType


def small() -> Program:
    program = Program()
    block = program.global_block()
    block.create_var(name="x", shape=[-1, 13], is_data=True, stop_gradient=True)
    block.create_parameter(name="fc_0.w_0", shape=[13, 1], dtype="float32")
    block.create_var(name="fc_0.tmp_0")
    block.append_op(
        "mul", {"X": "x", "Y": "fc_0.w_0"}, {"Out": "fc_0.tmp_0"}, {"x_num_col_dims": 1}
    )
    with program._role_guard(OpRole.Backward, ["fc_0.w_0", "fc_0.w_0@GRAD"]):
        block.create_var(name="fc_0.w_0@GRAD")
        block.append_op(
            "scale", {"X": "fc_0.w_0"}, {"Out": "fc_0.w_0@GRAD"}, {"scale": 0.5}
        )
    return program


SMALL = """\
block 0 {
  data  x             : float32[-1, 13] stop_gradient
  param fc_0.w_0      : float32[13, 1]
  var   fc_0.tmp_0    : float32[-1, 1]
  var   fc_0.w_0@GRAD : float32[13, 1]

  mul(X=x, Y=fc_0.w_0) -> (Out=fc_0.tmp_0)
  scale(X=fc_0.w_0) -> (Out=fc_0.w_0@GRAD) {scale: 0.5} : backward(fc_0.w_0, fc_0.w_0@GRAD)
}
"""  # noqa: E501


def test_looks_like_this():
    assert small().to_text() == SMALL


def test_one_op_and_one_variable_as_a_line():
    block = small().global_block()
    assert str(block.ops[0]) == "mul(X=x, Y=fc_0.w_0) -> (Out=fc_0.tmp_0)"
    assert str(block.var("x")) == "data x : float32[-1, 13] stop_gradient"


def test_long_ops_go_over_several_lines():
    program = load(dict(dumps("local/ctr_dnn"))["main"])
    lines = program.to_text().splitlines()
    # a name alone may be longer than a line
    assert max(len(line) for line in lines) <= 104
    assert program.fingerprint() == Program.from_text("\n".join(lines)).fingerprint()


@pytest.mark.parametrize("name", [*names("local/"), *names()[::4]])
def test_goldens_read_back(name):
    for _, dumped in dumps(name):
        program = load(dumped)
        text = program.to_text()
        again = Program.from_text(text)
        assert again.to_text() == text
        assert again.fingerprint() == program.fingerprint()


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_read_back(seed):
    program = Maker(seed).program()
    text = program.to_text()
    again = Program.from_text(text)
    assert again.to_text() == text
    assert again.fingerprint() == program.fingerprint()


def test_what_a_person_wrote():
    program = Program.from_text(
        """
        # a comment
        seed 7
        block 0 {   # the global block
          data x: float32[-1, 4]
          var "odd, name" : selected_rows int64[3] lod_level=1 persistable
          param w : float32[4,2] frozen distributed
          var out : float32[-1,2] check_feed
          mul( X = x,
               Y = w ) -> ( Out = [out] )
          scale(X=out)->(Out=out){ scale : 1.5, # why
             "bias": -1 } : optimize|lr(w, "odd, name") in /a/b/
          while(X=[], Condition=c) -> () {sub_block: block 1}
        }
        block 1 in 0 { }
        """
    )
    block = program.global_block()
    mul, scale, loop = block.ops
    assert program.random_seed == 7
    assert mul.inputs == {"X": ["x"], "Y": ["w"]}
    assert mul.attr("x_num_col_dims") == 1
    assert (scale.attr("scale"), scale.attr("bias")) == (1.5, -1.0)
    assert scale.attr("bias_after_scale") is True
    assert scale.role == OpRole.Optimize | OpRole.LRSched
    assert scale.role_var == ["w", "odd, name"]
    assert scale.attr("op_namescope") == "/a/b/"
    assert loop.attr("sub_block") is program.block(1)
    assert program.block(1).parent_idx == 0
    odd = block.var("odd, name")
    assert (odd.type, odd.dtype) == (VarType.SELECTED_ROWS, VarType.INT64)
    assert (odd.shape, odd.lod_level, odd.persistable) == ((3,), 1, True)
    w = block.var("w")
    assert isinstance(w, Parameter)
    assert (w.trainable, w.is_distributed) == (False, True)
    assert block.var("out").op is scale


def test_an_error_in_use_names_the_line_of_the_text():
    program = Program.from_text(
        "block 0 {\n  var x : float32[2]\n  mul(X=x)->(Out=x)\n}"
    )
    with pytest.raises(BuildError, match=r"input Y is missing\n.*<program text>:3 in"):
        program.global_block().ops[0].check_slots()


ERRORS = {
    "": "line 1: expected a block, got the end of the text",
    "blok 0 {}": "line 1: expected 'block', got 'blok'",
    "block 1 {}": "line 1: expected block 0, got block 1",
    "block 0 {}\nblock 1 {}": "line 2: block 1 needs 'in' and a block before it",
    "block 0 {}\nblock 1 in 1 {}": "line 2: block 1 needs 'in'",
    "block x {}": "line 1: expected the block's number, got 'x'",
    "seed x block 0 {}": "line 1: expected the random seed, got 'x'",
    "block 0 {\n var x float32[1]\n}": "line 2: expected ':', got 'float32'",
    "block 0 {\n var x : f32[1]\n}": "line 2: expected a type such as float32",
    "block 0 {\n var x : float32\n}": "line 2: expected '\\[' and the shape behind",
    "block 0 {\n var x : reader[1]\n}": "line 2: VarType.READER is not an element type",
    "block 0 {\n var x : float32[a]\n}": "line 2: expected a size, got 'a'",
    "block 0 {\n var x : float32[1 2]\n}": "line 2: expected ',', got '2'",
    "block 0 {\n var x : float32[1] lasting\n}": "line 2: expected one of lod_level",
    "block 0 {\n var x : float32[1] :\n}": "line 2: expected the end of the line",
    "block 0 {\n var x : float32[1]\n var x : float32[1]\n}": "line 3: .* twice",
    "block 0 {\n param x : float32[-1]\n}": "line 2: parameter x: sizes must be",
    "block 0 {\n\n mul\n}": "line 3: expected a variable, an op or '}'",
    "block 0 {\n mul(X=a\n": "line 3: expected ',', got the end of the text",
    "block 0 {\n mul(X=a) (Out=b)\n}": "line 2: expected '->', got '\\('",
    "block 0 {\n mul(X=a, X=b) -> ()\n}": "line 2: slot X stands twice",
    "block 0 {\n mul(X=) -> ()\n}": "line 2: expected a variable, got '\\)'",
    "block 0 {\n mul() -> () {axis: x}\n}": "line 2: expected a value, got 'x'",
    "block 0 {\n mul() -> () {a: 1, a: 1}\n}": "line 2: attribute a stands twice",
    "block 0 {\n scale() -> () {scale: true\n, bias: []}\n}": "line 2: op scale, attr",
    "block 0 {\n scale() -> () {scale: null}\n}": "line 2: .*expected FLOAT, got None",
    "block 0 {\n x() -> () {b: block 3}\n}": "line 2: there is no block 3",
    "block 0 {\n x() -> () : sideways\n}": "line 2: no role 'sideways'; there are forw",
    'block 0 {\n x() -> () {a: "\\q"}\n}': "line 2: .* is not a JSON string",
    "block 0 {\n x() -> () {a: 'b'}\n}": "line 2: cannot read",
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_name_line_and_expectation(text):
    with pytest.raises(BuildError, match="^program text, " + ERRORS[text]):
        Program.from_text(text)


def test_damaged_text_gives_build_errors_only():
    text = load(dict(dumps("local/while_net"))["main"]).to_text()
    r = random.Random(0)
    refused = 0
    for _ in range(200):
        at = r.randrange(len(text))
        cut = text[:at] + r.choice(["", '"', "{", "]", ":", "x", "\n", "9", "é"])
        cut += text[at + r.randrange(3) :]
        try:
            Program.from_text(cut)
        except BuildError:
            refused += 1
    assert refused > 100


def test_labels_of_roles():
    for role in (0, 1, 2, 4, 8, 16, 18, 256, 257, 4096, 77):
        assert OpRole.from_label(OpRole(role).label) == role
    assert OpRole(257).label == "backward|loss"
    assert OpRole(77).label == "backward|rpc|dist|64"
