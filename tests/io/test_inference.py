"""Saving and loading inference models."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx import io, kernels, layers
from fluidx.io import ModelFileError
from fluidx.io.inference import parse_program
from fluidx.ir import OpRole


@pytest.fixture
def exe():
    return fluid.Executor(fluid.CPUPlace())


def network():
    """Three inputs, two outputs, dropout; trained by momentum."""
    a, b, c = (fluid.data(n, [None, 4]) for n in "abc")
    h = layers.dropout(layers.fc(a + b, 5, act="relu"), 0.5)
    p = layers.fc(h, 2, name="deep/fc")
    q = layers.fc(a, 3, act="softmax")
    loss = layers.mean(layers.square_error_cost(p, layers.fc(c, 2)))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return p, q, loss


@pytest.fixture
def made(exe):
    outs = network()
    exe.run(fluid.default_startup_program())
    return outs


def types(program):
    return [op.type for op in program.global_block().ops]


def feed(names="abc", seed=0):
    rng = np.random.default_rng(seed)
    return {n: rng.random((3, 4), "f4") for n in names}


def saved(path):
    return fluid.Program.parse_from_string(path.read_bytes())


def expected(exe, outs, fed):
    """The outputs of the test program, computed without saving."""
    test = fluid.default_main_program().clone(for_test=True)
    names = [v.name for v in outs]
    pruned = test._prune_with_input(list(fed), names)
    return exe.run(pruned, feed=fed, fetch_list=names)


def test_round_trip(exe, made, tmp_path):
    p, q, _ = made
    before = fluid.default_main_program().fingerprint()
    names = io.save_inference_model(str(tmp_path), ["b", "a"], [q, p], exe)
    assert fluid.default_main_program().fingerprint() == before
    assert names == [f"save_infer_model/scale_{i}.tmp_0" for i in (0, 1)]
    files = {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()}
    assert files == {
        "__model__",
        *(
            f"{layer}.{kind}_0"
            for layer in ("fc_0", "deep/fc", "fc_1")
            for kind in "wb"
        ),
    }
    fed = feed("ab")
    wanted = expected(exe, [q, p], fed)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = io.load_inference_model(str(tmp_path), exe)
        assert feeds == ["b", "a"]
        assert [t.name for t in targets] == names
        got = exe.run(program, feed=fed, fetch_list=targets)
    for one, other in zip(got, wanted):
        np.testing.assert_array_equal(one, other)


def test_the_saved_program(exe, made, tmp_path):
    """Feeds in front, last one first; fetches at the end; only forward ops between."""
    p, q, _ = made
    io.save_inference_model(str(tmp_path), ["b", "a"], [p, q], exe)
    program = saved(tmp_path / "__model__")
    ops = program.global_block().ops
    assert types(program) == [
        *("feed", "feed", "elementwise_add", "mul", "elementwise_add", "relu"),
        *("dropout", "mul", "elementwise_add", "mul", "elementwise_add", "softmax"),
        *("scale", "scale", "fetch", "fetch"),
    ]
    ends = [(op.type, op.attr("col")) for op in ops if op.type in ("feed", "fetch")]
    assert ends == [("feed", 1), ("feed", 0), ("fetch", 0), ("fetch", 1)]
    assert [op.output("Out") for op in ops[:2]] == [["a"], ["b"]]
    assert [op.input("X") for op in ops[:2]] == [["feed"], ["feed"]]
    assert all(op.role == OpRole.Forward for op in ops)
    assert next(op for op in ops if op.type == "dropout").attr("is_test") is True
    block = program.global_block()
    kinds = {
        n: (str(block.var(n).type), block.var(n).persistable) for n in ("feed", "fetch")
    }
    assert kinds == {
        "feed": ("VarType.FEED_MINIBATCH", True),
        "fetch": ("VarType.FETCH_LIST", True),
    }
    assert not any(
        "velocity" in v.name or "GRAD" in v.name for v in program.list_vars()
    )


@pytest.mark.parametrize("params", [None, "sub/params"])
def test_file_names(exe, made, tmp_path, params):
    p, _, _ = made
    io.save_inference_model(str(tmp_path), ["a", "b"], p, exe, None, "x/model", params)
    assert (tmp_path / "model").exists()
    assert (tmp_path / "params").exists() == (params is not None)
    fed = feed("ab")
    (wanted,) = expected(exe, [p], fed)
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = io.load_inference_model(
            str(tmp_path), exe, "model", params
        )
        (got,) = exe.run(program, feed=fed, fetch_list=targets)
    np.testing.assert_array_equal(got, wanted)


def test_from_bytes(exe, made, tmp_path):
    p, _, _ = made
    io.save_inference_model(str(tmp_path), ["a", "b"], [p], exe, params_filename="all")
    model, params = ((tmp_path / n).read_bytes() for n in ("__model__", "all"))
    fed = feed("ab")
    (wanted,) = expected(exe, [p], fed)
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = io.load_inference_model(None, exe, model, params)
        (got,) = exe.run(program, feed=fed, fetch_list=targets)
    np.testing.assert_array_equal(got, wanted)
    with pytest.raises(ValueError, match="the bytes themselves"):
        io.load_inference_model(None, exe)
    with pytest.raises(TypeError, match="a saved program is bytes, got str"):
        io.load_inference_model(None, exe, "__model__", params)


def test_program_only(exe, made, tmp_path):
    p, _, _ = made
    with pytest.warns(UserWarning, match="no parameters are saved"):
        io.save_inference_model(str(tmp_path), "a", p, exe, program_only=True)
    assert [f.name for f in tmp_path.iterdir()] == ["__model__"]


def test_not_for_deployment(exe, made, tmp_path):
    p, _, _ = made
    main = fluid.default_main_program()
    io.save_inference_model(str(tmp_path), ["a"], [p], exe, export_for_deployment=False)
    program = saved(tmp_path / "__model__.main_program")
    assert types(program) == [*types(main), "scale"]
    names = {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()}
    wanted = {v.name for v in io.get_program_persistable_vars(main)}
    assert names == wanted | {"__model__.main_program"}


def test_saving_a_loaded_model_again(exe, made, tmp_path):
    p, _, _ = made
    io.save_inference_model(str(tmp_path / "1"), ["a", "b"], [p], exe)
    fed = feed("ab")
    (wanted,) = expected(exe, [p], fed)
    with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        program, feeds, targets = io.load_inference_model(str(tmp_path / "1"), exe)
        again = io.save_inference_model(
            str(tmp_path / "2"), feeds, targets, exe, program
        )
    assert again != [t.name for t in targets]
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = io.load_inference_model(str(tmp_path / "2"), exe)
        assert types(program)[-3:] == ["scale", "scale", "fetch"]
        assert types(program).count("feed") == 2
        (got,) = exe.run(program, feed=fed, fetch_list=targets)
    np.testing.assert_array_equal(got, wanted)


def test_parameters_that_training_changes_midway(exe, tmp_path):
    """As in a GAN: the second part of the program reads what the first one trains."""
    x = fluid.data("x", [None, 2])
    one = layers.fc(x, 2, param_attr=fluid.ParamAttr("shared"), bias_attr=False)
    fluid.optimizer.SGD(0.1).minimize(layers.mean(one))
    two = layers.fc(x, 2, param_attr=fluid.ParamAttr("shared"), bias_attr=False)
    exe.run(fluid.default_startup_program())
    io.save_inference_model(str(tmp_path), ["x"], [two], exe)
    assert types(saved(tmp_path / "__model__")) == ["feed", "mul", "scale", "fetch"]


def test_gradients_as_targets(exe, tmp_path):
    x = fluid.data("x", [None, 2])
    x.stop_gradient = False
    loss = layers.mean(layers.square(x))
    (grad,) = fluid.gradients(loss, x)
    doubled = grad * 2.0
    for target, factor in ((grad, 1.0), (doubled, 2.0)):
        io.save_inference_model(str(tmp_path), ["x"], [target], exe)
        program, _, targets = io.load_inference_model(str(tmp_path), exe)
        value = np.array([[1, -3]], "f4")
        (got,) = exe.run(program, feed={"x": value}, fetch_list=targets)
        np.testing.assert_allclose(got, factor * value, rtol=1e-6)


def test_inputs_that_are_not_fed_are_kept(exe, made, tmp_path):
    _, _, loss = made
    io.save_inference_model(str(tmp_path), ["a"], [loss], exe)
    program = saved(tmp_path / "__model__")
    assert {"b", "c"} < set(program.global_block().vars)


def test_complaints_of_saving(exe, made, tmp_path):
    p, q, _ = made
    path = str(tmp_path / "m")
    with pytest.raises(ValueError, match="do not need 'c'"):
        io.save_inference_model(path, ["a", "c"], [q], exe)
    with pytest.raises(ValueError, match="do not need 'nope'"):
        io.save_inference_model(path, ["nope"], [q], exe)
    with pytest.raises(ValueError, match="must be a list of names, got None"):
        io.save_inference_model(path, None, [q], exe)
    with pytest.raises(ValueError, match="must be a list of names"):
        io.save_inference_model(path, [p], [q], exe)
    with pytest.raises(ValueError, match="it holds 's'"):
        io.save_inference_model(path, ["a"], ["s"], exe)
    with pytest.raises(ValueError, match="must be a list of Variables"):
        io.save_inference_model(path, ["a"], [], exe)
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(ModelFileError, match=r"'fc_1\.\w_0' has no value"),
    ):
        io.save_inference_model(path, ["a"], [q], exe)


def test_complaints_of_loading(exe, made, tmp_path):
    p, _, _ = made
    path = str(tmp_path)
    with pytest.raises(FileNotFoundError, match="no directory"):
        io.load_inference_model(str(tmp_path / "x"), exe)
    with pytest.raises(FileNotFoundError, match="__model__"):
        io.load_inference_model(path, exe)
    io.save_inference_model(path, ["a", "b"], [p], exe)
    (tmp_path / "fc_0.w_0").unlink()
    with pytest.raises(FileNotFoundError, match=r"for variable .fc_0\.w_0."):
        io.load_inference_model(path, exe)
    (tmp_path / "__model__").write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match=r"__model__.*not a program"):
        io.load_inference_model(path, exe)


@pytest.mark.parametrize("damage", ["double", "undeclared", "missing"])
def test_damaged_feed_ops(exe, made, tmp_path, damage):
    p, _, _ = made
    io.save_inference_model(str(tmp_path), ["a", "b"], [p], exe)
    program = saved(tmp_path / "__model__")
    op = program.global_block().ops[0]
    if damage == "double":
        op.attrs["col"] = 0
    elif damage == "undeclared":
        op.outputs = {"Out": ["x"]}
        fetch = program.global_block().ops[-1]
        fetch.inputs = {"X": ["y"]}
    else:
        op.outputs = {"Out": []}
    op.wire = b""
    (tmp_path / "__model__").write_bytes(program.serialize_to_string())
    with pytest.raises(ModelFileError, match="feed op"):
        io.load_inference_model(str(tmp_path), exe)


# ---------------------------------------------------------------- trainers


class Servers:
    """Holds the slices of a table, as servers do."""

    def __init__(self, slices):
        self.slices = slices
        self.asked = []

    def exchange(self, barriers, wanted, trainer_id):
        assert list(barriers) == []
        self.asked += wanted
        return [self.slices[endpoint, name] for endpoint, name in wanted]


def remote_network(version):
    ids = [
        fluid.data(f"ids{i}", [None, 1] if version == 1 else [None], "int64")
        for i in "12"
    ]
    embed = layers.embedding if version == 1 else fluid.embedding
    found = [
        embed(i, [30000, 4], True, padding_idx=3, param_attr=fluid.ParamAttr("table"))
        for i in ids
    ]
    p = layers.fc(found[0] + found[1], 2, act="softmax")
    label = fluid.data("label", [None, 1], "int64")
    loss = layers.mean(layers.cross_entropy(p, label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return p


@pytest.mark.parametrize("version", [1, 2])
def test_trainers_export_without_servers(exe, tmp_path, version):
    """Look-ups become local again, the table comes from its servers, whole."""
    p = remote_network(version)
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(3)
    table = rng.standard_normal((30000, 4)).astype("f4")
    fed = {
        f"ids{i}": rng.integers(0, 30000, (5, 1) if version == 1 else 5) for i in "12"
    }
    fed["ids1"][1] = 3  # the padding row
    fluid.global_scope().find_var("table").value = table
    (wanted,) = expected(exe, [p], fed)

    transpiler = fluid.DistributeTranspiler()
    endpoints = ["127.0.0.1:6174", "127.0.0.1:6175"]
    transpiler.transpile(0, pservers=",".join(endpoints), trainers=2)
    trainer = transpiler.get_trainer_program(wait_port=False)
    lookup = next(
        op for op in trainer.all_ops() if op.type == "distributed_lookup_table"
    )
    cuts = np.cumsum([0, *lookup.attr("height_sections")])
    slices = {
        (endpoint, name): table[a:b]
        for endpoint, name, a, b in zip(
            lookup.attr("endpoints"), lookup.attr("table_names"), cuts, cuts[1:]
        )
    }
    assert len(slices) == 2
    exe._rpc = servers = Servers(slices)
    fluid.global_scope().find_var("table").value = np.zeros_like(table)

    before = trainer.fingerprint()
    io.save_inference_model(str(tmp_path), ["ids1", "ids2"], [p], exe, trainer)
    assert trainer.fingerprint() == before
    assert servers.asked == list(slices)
    exe._rpc = None
    program = saved(tmp_path / "__model__")
    lookups = [op for op in program.all_ops() if "lookup" in op.type]
    assert len(lookups) == 2
    assert {op.type for op in lookups} == {f"lookup_table{'_v2' * (version == 2)}"}
    assert not [op.type for op in program.all_ops() if is_distributed(op.type)]
    with fluid.scope_guard(fluid.Scope()):
        loaded, feeds, targets = io.load_inference_model(str(tmp_path), exe)
        (got,) = exe.run(loaded, feed=fed, fetch_list=targets)
    np.testing.assert_array_equal(got, wanted)


def is_distributed(type):
    module = kernels.find(type).module
    return module.rpartition(".")[2] in ("distributed", "sharding", "collective")


def test_tables_are_fetched_for_checkpoints_too(exe, tmp_path):
    remote_network(1)
    exe.run(fluid.default_startup_program())
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6174", trainers=1)
    trainer = transpiler.get_trainer_program(wait_port=False)
    table = np.ones((30000, 4), "f4")
    exe._rpc = Servers({("127.0.0.1:6174", "table"): table})
    io.save_persistables(exe, str(tmp_path), trainer)
    exe._rpc = None
    variables = [trainer.global_block().var("table")]
    io.load_vars(exe, str(tmp_path), vars=variables)
    np.testing.assert_array_equal(fluid.global_scope().find_var("table").value, table)
    with pytest.raises(ModelFileError, match="'table' is on servers"):
        fluid.save(trainer, str(tmp_path / "m"))


def test_collective_trainers_export_without_collectives(exe, tmp_path):
    p = layers.fc(fluid.data("x", [None, 4]), 2)
    fluid.optimizer.SGD(0.1).minimize(layers.mean(p))
    exe.run(fluid.default_startup_program())
    config = fluid.DistributeTranspilerConfig()
    config.mode = "collective"
    config.collective_mode = "grad_allreduce"
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(
        0, trainers="127.0.0.1:1,127.0.0.1:2", current_endpoint="127.0.0.1:1"
    )
    main = fluid.default_main_program()
    assert "c_allreduce_sum" in types(main)
    io.save_inference_model(str(tmp_path), ["x"], [p], exe)
    found = types(saved(tmp_path / "__model__"))
    assert found == ["feed", "mul", "elementwise_add", "scale", "fetch"]


# ---------------------------------------------------------------- hostile programs


def nested(links):
    """A program in which blocks refer to blocks: pairs (from, to)."""
    program = fluid.Program()
    for _ in range(max(max(link) for link in links)):
        program._create_block(0)
    for source, target in links:
        block = program.block(source)
        op = fluid.ir.make_op(block, "conditional_block", {}, {})
        op.attrs["sub_block"] = program.block(target)
        block.ops.append(op)
    return program.serialize_to_string()


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([(0, 1), (1, 1)], "within itself"),
        ([(0, 1), (1, 2), (2, 1)], "within itself"),
        ([(i, i + 1) for i in range(300)], "beyond reason"),
        ([(i, i + 1) for i in range(60) for _ in "ab"], "beyond reason"),
    ],
)
def test_blocks_within_blocks_must_end(links, message):
    with pytest.raises(ModelFileError, match=message):
        parse_program(nested(links), "file")


def test_blocks_may_be_shared():
    program = parse_program(nested([(0, 1), (0, 1), (1, 2), (0, 2)]), "file")
    assert program.num_blocks == 3
