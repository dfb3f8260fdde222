"""ProgramDesc bytes: what the reference wrote, and what fluidx writes."""

import gzip
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from golden.load import dumps, load
from golden.transpiler.dump import dump
from random_programs import Maker

from fluidx.ir import BuildError, Operator, Program, Where
from fluidx.ir.proto_schema import messages
from fluidx.kernels import VarType

FOLDER = Path(__file__).parent.parent / "golden" / "proto"
NETWORKS = ["fc_regression", "while_net", "cond_net", "emb_sparse", "lenet_bn"]
ACCEPTED = json.loads((FOLDER / "accepted.json").read_text())
#: what saved bytes do not hold
LOST = ("parameter", "trainable", "is_data", "stop_gradient")


def kinds() -> bytes:
    return (FOLDER / "kinds.pb").read_bytes()


def network(name: str) -> bytes:
    return gzip.decompress((FOLDER / f"{name}.pb.gz").read_bytes())


def written(program: Program) -> Program:
    return Program.parse_from_string(program.serialize_to_string())


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("name", NETWORKS)
def test_reads_what_the_reference_wrote(name):
    golden = dict(dumps(f"local/{name}"))["main"]
    for block in golden["blocks"]:
        for facts in block["vars"].values():
            for fact in LOST:
                facts.pop(fact, None)
    assert dump(Program.parse_from_string(network(name))) == golden


def test_reads_every_kind_of_variable():
    block = Program.parse_from_string(kinds()).global_block()
    for kind in ("LOD_TENSOR", "LOD_TENSOR_ARRAY"):
        var = block.var(f"v_{kind}")
        assert (var.type, var.dtype) == (VarType[kind], VarType.INT64)
        assert (var.shape, var.lod_level) == ((-1, 3), 2)
    rows = block.var("rows")
    assert (rows.type, rows.dtype) == (VarType.SELECTED_ROWS, VarType.FP64)
    assert rows.shape == (7, 3)
    for kind in ("STEP_SCOPES", "FEED_MINIBATCH", "LOD_RANK_TABLE", "RAW"):
        assert block.var(f"v_{kind}").type == VarType[kind]
    assert block.var("reader").type == VarType.READER
    for name in ("bool", "int8", "uint8", "int16", "int32", "int64"):
        assert block.var(f"e_{name}").dtype == VarType[name.upper()]
    assert block.var("e_float16").dtype == VarType.FP16
    assert block.var("par").persistable
    assert block.var("x").need_check_feed
    assert block.var("x").lod_level == 1


def test_reads_every_kind_of_attribute():
    program = Program.parse_from_string(kinds())
    relu = program.global_block().ops[0]
    assert {n: v for n, v in relu.attrs.items() if n.startswith("a_")} == {
        "a_int": 7,
        "a_negative": -7,
        "a_long": 1 << 40,
        "a_float": 0.1,
        "a_string": "h\u00e9",
        "a_ints": [1, -2],
        "a_floats": [0.5, 0.1],
        "a_strings": ["a", "b"],
        "a_longs": [1 << 40, -2],
        "a_blocks": program.blocks,
    }
    loop = program.global_block().ops[-1]
    assert loop.attr("sub_block") is program.block(1)
    assert program.block(1).forward_block_idx == 0


def test_call_stack_gives_the_users_line():
    relu = Program.parse_from_string(kinds()).global_block().ops[0]
    assert relu.where == Where("train.py", 12, "net")


def test_reading_knows_no_parameters():
    program = Program.parse_from_string(network("fc_regression"))
    assert program.all_parameters() == []
    assert program.global_block().var("fc_0.w_0").persistable


# ---------------------------------------------------------------- writing back


@pytest.mark.parametrize("name", [*NETWORKS, "kinds"])
def test_the_references_bytes_come_back(name):
    data = kinds() if name == "kinds" else network(name)
    program = Program.parse_from_string(data)
    assert program.serialize_to_string() == data
    assert program.clone().serialize_to_string() == data


def test_unknown_fields_are_kept():
    # field 15 with a number, in the program, a block, a variable and an op
    extra = b"\x78\x2a"
    message = messages().Program.FromString(network("fc_regression"))
    block = message.blocks[0]
    for part in (message, block, block.vars[3], block.ops[2]):
        part.MergeFromString(extra)
    message.op_versions = b"\x0a\x03mul"
    data = message.SerializeToString()
    assert data.count(extra) == network("fc_regression").count(extra) + 4
    program = Program.parse_from_string(data)
    again = program.serialize_to_string()
    assert messages().Program.FromString(again) == message
    assert again == data
    # an op that was changed keeps them, too
    program.global_block().ops[2].type = "tanh"
    assert program.serialize_to_string().count(extra) == data.count(extra)


def test_changes_are_written():
    program = Program.parse_from_string(kinds())
    block = program.global_block()
    relu = block.ops[0]
    relu._set_attr("a_int", 8)
    relu._rename_input("x", "reader")
    block.var("x").set_shape([5])
    block._rename_var("reader", "reader_1")
    again = written(program).global_block()
    assert again.ops[0].attr("a_int") == 8
    assert again.ops[0].input("X") == ["reader_1"]
    assert again.var("x").shape == (5,)
    # kinds that no op declares stay as they were read
    message = messages().Program.FromString(program.serialize_to_string())
    read = {a.name: a.kind for a in message.blocks[0].ops[0].attrs}
    assert (read[b"a_longs"], read[b"a_ints"]) == (11, 3)
    # what the reader yields is not ours to read, but stays
    readers = [v for v in message.blocks[0].vars if v.name == b"reader_1"]
    assert len(readers[0].type.reader.tensors) == 2


def test_format_number_stays():
    assert messages().Program.FromString(kinds()).version.version == 1008005
    message = messages().Program.FromString(Program().serialize_to_string())
    assert message.version.version == 1008005
    message.version.version = 7
    program = Program.parse_from_string(message.SerializeToString())
    assert program.serialize_to_string() == message.SerializeToString()


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_writes_bytes_that_the_reference_reads(name):
    """accept.py: of these bytes the reference dumped what the golden says."""
    network, _, kind = name.rpartition("-")
    program = load(dict(dumps(f"local/{network}"))[kind], defaults=False)
    data = program.serialize_to_string()
    assert hashlib.sha256(data).hexdigest() == ACCEPTED[name]


def test_enough_was_accepted():
    assert len(ACCEPTED) == 22


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_read_back(seed):
    program = Maker(seed).program()
    again = written(program)
    assert again.serialize_to_string() == program.serialize_to_string()
    for old, new in zip(program.blocks, again.blocks):
        assert list(map(str, new.ops)) == list(map(str, old.ops))
        assert list(new.vars) == list(old.vars)


def test_user_line_is_written_as_a_call_stack(tmp_path):
    source = tmp_path / "net.py"
    source.write_text("\n\n    y = relu(x)\n")
    program = Program()
    op = Operator(program.global_block(), "relu", where=Where(str(source), 3, "net"))
    program.global_block().ops.append(op)
    read = written(program).global_block().ops[0]
    assert read.where == op.where
    head = f'  File "{source}", line 3, in net\n'
    assert read.attrs["op_callstack"] == [f"{head}    y = relu(x)\n"]
    assert written(program).fingerprint() == program.fingerprint()


def test_attribute_without_a_kind_is_an_error():
    program = Program()
    op = Operator(program.global_block(), "relu", attrs={"odd": {"a": 1}})
    program.global_block().ops.append(op)
    with pytest.raises(BuildError, match="op relu: attribute odd: no attribute"):
        program.serialize_to_string()


def test_bytes_do_not_depend_on_the_hash_seed():
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1])\n"
        "from random_programs import Maker\n"
        "p = Maker(3).program()\n"
        "print(hashlib.sha256(p.serialize_to_string()).hexdigest(), p.fingerprint())"
    )
    tests = str(Path(__file__).parent.parent)
    found = {
        subprocess.run(
            [sys.executable, "-c", code, tests],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    program = Maker(3).program()
    digest = hashlib.sha256(program.serialize_to_string()).hexdigest()
    assert found == {f"{digest} {program.fingerprint()}\n"}


# ---------------------------------------------------------------- damage


def damaged(data: bytes, r: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(r.randint(1, 3)):
        at = r.randrange(len(made))
        how = r.randrange(4)
        if how == 0:
            made[at] = r.randrange(256)
        elif how == 1:
            made[at] ^= 1 << r.randrange(8)
        elif how == 2:
            del made[at : at + r.randint(1, 4)]
        else:
            made[at:at] = bytes(r.choices(range(256), k=r.randint(1, 4)))
    return bytes(made)


def test_damaged_bytes_give_build_errors_only():
    r = random.Random(0)
    whole = [kinds(), network("fc_regression")]
    refused = 0
    for i in range(2000):
        try:
            program = Program.parse_from_string(damaged(whole[i % 20 == 0], r))
        except BuildError:
            refused += 1
            continue
        # what is read can be written and read again
        data = program.serialize_to_string()
        assert Program.parse_from_string(data).serialize_to_string() == data
    assert refused > 1000


def test_truncated_bytes_give_build_errors():
    data = kinds()
    # without its last field, the format number, it is whole
    whole = len(data) - 6
    for size in range(len(data)):
        if size == whole:
            assert Program.parse_from_string(data[:size])._desc_version is None
            continue
        with pytest.raises(BuildError, match=r"^saved program: "):
            Program.parse_from_string(data[:size])


def broken(change) -> bytes:
    message = messages().Program.FromString(kinds())
    change(message.blocks)
    return message.SerializeToString()


def relu_attr(blocks, name: bytes):
    return next(a for a in blocks[0].ops[0].attrs if a.name == name)


BROKEN = {
    "block 5 stands at place 1": lambda b: setattr(b[1], "idx", 5),
    "block 1 cannot be inside block 1": lambda b: setattr(b[1], "parent_idx", 1),
    "block 0 cannot be inside block 0": lambda b: setattr(b[0], "parent_idx", 0),
    "block 1 is of block 9": lambda b: setattr(b[1], "forward_block_idx", 9),
    "variable 'twin' stands twice": lambda b: [
        setattr(v, "name", b"twin") for v in b[0].vars[:2]
    ],
    "99 is not a valid VarType": lambda b: setattr(b[0].vars[0].type, "kind", 99),
    "a name is empty": lambda b: setattr(b[0].vars[0], "name", b""),
    "is not UTF-8": lambda b: setattr(b[0].vars[0], "name", b"\xff"),
    "op 0 .relu.: slot X stands twice": lambda b: b[0].ops[0].inputs.add(name=b"X"),
    "attribute a_int is of an unknown kind 44": lambda b: setattr(
        relu_attr(b, b"a_int"), "kind", 44
    ),
    "attribute a_int .INT. has no value": lambda b: relu_attr(b, b"a_int").ClearField(
        "i"
    ),
    "attribute a_int stands twice": lambda b: (
        b[0].ops[0].attrs.add(name=b"a_int", kind=0, i=1)
    ),
    "attribute a_blocks: there is no block 7": lambda b: relu_attr(
        b, b"a_blocks"
    ).blocks.append(7),
}


@pytest.mark.parametrize("text", BROKEN)
def test_what_cannot_be_is_named(text):
    with pytest.raises(BuildError, match="^saved program: .*" + text):
        Program.parse_from_string(broken(BROKEN[text]))


def test_not_bytes():
    with pytest.raises(TypeError, match="a saved program is bytes, got str"):
        Program.parse_from_string("text")
    with pytest.raises(BuildError, match="0 bytes hold no block"):
        Program.parse_from_string(b"")


def test_protobuf_is_not_imported_before_it_is_needed():
    code = (
        "import sys, fluidx.ir.proto\n"
        "bad = [m for m in ('google.protobuf', 'networkx') if m in sys.modules]\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
