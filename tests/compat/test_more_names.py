"""Smaller modules of ``paddle``, and options: what they do, as in the reference."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import fluidx as fluid
from fluidx import core, graphviz, net_drawer

# ---------------------------------------------------------------- strategies


# recorded from the reference: what differs from False, 0, "" and nothing
BUILD = {
    "enable_backward_optimizer_op_deps": True,
    "enable_inplace": True,
    "fuse_all_reduce_ops": True,
    "fuse_broadcast_ops": True,
    "nccl_comm_num": 1,
    "num_trainers": 1,
    "remove_unnecessary_lock": True,
}
EXECUTION = {
    "num_iteration_per_drop_scope": 100,
    "num_iteration_per_run": 1,
    "use_cuda": True,
    "use_experimental_executor": True,
}


@pytest.mark.parametrize(
    ("kind", "number", "set_by_default"),
    [(fluid.BuildStrategy, 26, BUILD), (fluid.ExecutionStrategy, 7, EXECUTION)],
)
def test_options_and_their_defaults(kind, number, set_by_default):
    strategy = kind()
    names = [n for n in dir(strategy) if n[0] not in "_GR"]
    assert len(names) == number
    assert {n: getattr(strategy, n) for n in names if getattr(strategy, n)} == (
        set_by_default
    )
    for name in names:
        setattr(strategy, name, getattr(strategy, name))
    with pytest.raises(AttributeError, match=f"{kind.__name__} has no option 'foo'"):
        strategy.foo = 1


def test_options_take_values_of_their_kind():
    strategy = fluid.BuildStrategy()
    strategy.fuse_bn_act_ops = 3
    strategy.enable_inplace = None
    strategy.trainers_endpoints = ("a", "b")
    assert strategy.fuse_bn_act_ops is True
    assert strategy.enable_inplace is False
    assert strategy.trainers_endpoints == ["a", "b"]
    assert fluid.BuildStrategy().trainers_endpoints == []
    assert strategy.memory_optimize is None
    strategy.memory_optimize = 1
    assert strategy.memory_optimize is True
    strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    for name, value in (("reduce_strategy", 1), ("num_trainers", "x")):
        with pytest.raises(TypeError, match=f"BuildStrategy.{name} takes a value of"):
            setattr(strategy, name, value)
    with pytest.raises(AttributeError, match="did you mean memory_optimize"):
        strategy.memory_optimise = True


# ---------------------------------------------------------------- modules


def test_scopes_one_inside_the_other(paddle):
    from paddle.fluid import default_scope_funcs as scopes

    scopes.enter_local_scope()
    inner = scopes.var("a")
    assert scopes.find_var("a") is inner
    scopes.leave_local_scope()
    assert scopes.find_var("a") is None
    found = []
    scopes.scoped_function(lambda: found.append(scopes.var("b")))
    assert scopes.find_var("b") is None
    thread = threading.Thread(target=lambda: found.append(scopes.get_cur_scope()))
    thread.start()
    thread.join()
    assert found[-1] is not scopes.get_cur_scope()
    with pytest.raises(RuntimeError, match="no local scope was entered"):
        scopes.leave_local_scope()


def test_deprecated_functions(paddle, capsys):
    from paddle.fluid.annotations import deprecated

    @deprecated("1.0", "b", "more")
    def f(a):
        "doc"
        return a

    assert f(2) == 2
    text = "API f is deprecated since 1.0. Please use b instead.\nmore"
    assert capsys.readouterr().err == text + "\n"
    assert f.__doc__ == f"doc\n    {text}"


def test_loggers(paddle, capsys):
    logger = paddle.fluid.log_helper.get_logger(
        "fluid-test", logging.INFO, "> %(message)s"
    )
    logger.info("hello")
    assert capsys.readouterr().err == "> hello\n"


def test_memory_optimize_says_that_it_does_nothing(caplog):
    fluid.memory_optimize(fluid.default_main_program())
    assert "changes nothing" in caplog.text
    fluid.release_memory(fluid.default_main_program())


def test_data_is_a_module_and_a_function(paddle):
    import paddle.fluid.data
    from paddle.fluid.data import data

    assert paddle.fluid.data("x", [2]).shape == data("y", [2]).shape == (2,)


def test_plots(paddle, tmp_path, monkeypatch):
    from paddle.utils.plot import PlotData, Ploter

    data = PlotData()
    data.append(1, 2)
    assert (data.step, data.value) == ([1], [2])
    costs = Ploter("train", "test")
    costs.append("train", 0, 1.5)
    with pytest.raises(KeyError, match=r"has \['train', 'test'\], no 'other'"):
        costs.append("other", 0, 1.5)
    monkeypatch.setenv("DISABLE_PLOT", "True")
    costs.plot(str(tmp_path / "a.png"))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delenv("DISABLE_PLOT")
    drawn = []
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", _Plots(drawn))
    costs.plot(str(tmp_path / "a.png"))
    assert drawn[:2] == [("plot", [0], [1.5]), ("legend", ["train"])]
    assert drawn[2] == ("savefig", str(tmp_path / "a.png"))
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        costs.plot()
    costs.reset()


class _Plots:
    """Notes what would be drawn."""

    def __init__(self, drawn):
        self.pyplot = self
        self._drawn = drawn

    def __getattr__(self, name):
        return lambda *args, **_: self._drawn.append((name, *args)) or self


def test_nested_structures():
    from fluidx.layers import utils

    assert utils.flatten([1, (2, [3])]) == [1, 2, 3]
    assert utils.flatten({"b": 1, "a": [2, {"c": 3}]}) == [2, 3, 1]
    assert utils.pack_sequence_as([0, {"z": (0,), "y": 0}], [5, 6, 7]) == [
        5,
        {"z": (7,), "y": 6},
    ]
    assert utils.map_structure(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
    assert utils.convert_to_list(3, 2, "k") == [3, 3]
    assert utils.convert_to_list((1, 2), 2, "k") == [1, 2]
    with pytest.raises(ValueError, match="has 2 places for 1 values"):
        utils.pack_sequence_as([0, 0], [1])
    for other in ([1], [1, [2]]):
        with pytest.raises(ValueError, match="structures differ"):
            utils.assert_same_structure([1, 2], other)
    with pytest.raises(TypeError, match="structures differ"):
        utils.assert_same_structure([1, 2], (1, 2))
    utils.assert_same_structure([1, 2], (1, 2), check_types=False)
    with pytest.raises(ValueError, match="k must have 2 values"):
        utils.convert_to_list([1, 2, 3], 2, "k")
    with pytest.raises(ValueError, match="k must be a int or 2 of them, got 'aa'"):
        utils.convert_to_list("aa", 2, "k")


def test_checks_of_arguments():
    from fluidx import data_feeder as checks

    given = ("float32", np.float64, core.VarDesc.VarType.INT64, "bool")
    assert [checks.convert_dtype(d) for d in given] == [
        *("float32", "float64", "int64", "bool")
    ]
    for wrong in ("foo", core.VarDesc.VarType.RAW, "complex64"):
        with pytest.raises(ValueError, match="dtype must be one of bool, float16"):
            checks.convert_dtype(wrong)
    x = fluid.data("x", [None, 3])
    checks.check_variable_and_dtype(x, "x", ["float32"], "relu")
    with pytest.raises(TypeError, match=r"'x' in relu must be \['int64'\], but rec"):
        checks.check_variable_and_dtype(x, "x", ["int64"], "relu")
    with pytest.raises(TypeError, match=r"type of 'x' in relu must be .*Variable"):
        checks.check_variable_and_dtype(3, "x", ["int64"], "relu")
    with pytest.raises(TypeError, match=r"'axis' in relu .*'str'>. as told"):
        checks.check_type("a", "axis", (int, list), "relu", "as told")


def test_tensors_as_arrays():
    as_numpy = fluid.executor.as_numpy
    tensor = fluid.LoDTensor(np.arange(3.0))
    np.testing.assert_array_equal(as_numpy(tensor), [0, 1, 2])
    assert len(as_numpy([tensor, tensor])) == 2
    sequences = fluid.create_lod_tensor(np.ones((3, 1)), [[1, 2]], fluid.CPUPlace())
    with pytest.raises(RuntimeError, match="LoD"):
        as_numpy(sequences)
    with pytest.raises(TypeError, match="takes a LoDTensor, got int"):
        as_numpy(3)
    scope = fluid.Scope()
    scope.var("a").get_tensor().set(np.ones(2), fluid.CPUPlace())
    np.testing.assert_array_equal(fluid.executor._fetch_var("a", scope), [1, 1])
    with pytest.raises(core.EnforceNotMet, match="no variable 'b'"):
        fluid.executor._fetch_var("b", scope)


def test_feed_and_fetch_ops_are_found():
    y = fluid.layers.scale(fluid.data("x", [2]), 2.0)
    block = fluid.default_main_program().global_block()
    executor = fluid.executor
    assert not executor.has_feed_operators(block, {"x": 1}, "feed")
    block.create_var(name="feed", type=core.VarDesc.VarType.FEED_MINIBATCH)
    block.create_var(name="fetch", type=core.VarDesc.VarType.FETCH_LIST)
    block._prepend_op("feed", {"X": ["feed"]}, {"Out": ["x"]}, {"col": 0})
    block.append_op("fetch", {"X": [y]}, {"Out": ["fetch"]}, {"col": 0})
    assert executor.has_feed_operators(block, {"x": 1}, "feed")
    assert executor.has_fetch_operators(block, [y], "fetch")
    with pytest.raises(core.EnforceNotMet, match=r"feed ops are for \['x'\], not"):
        executor.has_feed_operators(block, {"z": 1}, "feed")
    with pytest.raises(core.EnforceNotMet, match="fetch ops are for"):
        executor.has_fetch_operators(block, ["x"], "fetch")


def test_dygraph_is_refused_by_name(paddle):
    import paddle.fluid as fluid

    assert not fluid.in_dygraph_mode()
    fluid.disable_dygraph()
    for name in ("dygraph", "enable_dygraph", "Linear"):
        with pytest.raises(AttributeError, match=f"{name}.*dygraph .imperative. mode"):
            getattr(fluid, name)
    with pytest.raises(ModuleNotFoundError, match=r"paddle\.fluid\.dygraph"):
        import paddle.fluid.dygraph  # noqa: F401


def test_parts_that_scripts_reach_without_an_import(paddle):
    code = "import paddle.fluid as f; print(f.incubate.fleet.base.role_maker.__name__)"
    from .test_names import python

    ran = python("import fluidx.compat as c; c.install_as_paddle(); " + code)
    assert ran[:2] == (0, "fluidx.incubate.fleet.base.role_maker")
    for owner in (fluid.incubate, fluid.incubate.fleet, fluid.incubate.fleet.base):
        with pytest.raises(AttributeError, match="no 'nothing' in fluidx"):
            _ = owner.nothing


def test_what_op_protos_tell():
    holder = fluid.framework.OpProtoHolder.instance()
    holder.update_op_proto()
    assert holder.generated_op_attr_names() == {
        *("op_callstack", "op_role_var", "op_namescope", "op_device", "op_role")
    }
    from fluidx.op import Operator

    assert Operator.get_op_inputs("sum") == [("X", True)]
    assert Operator.get_op_outputs("scale") == [("Out", False)]
    assert core.AttrType.BOOL == core.AttrType.BOOLEAN == 6
    assert core.AttrType.BOOLS == core.AttrType.BOOLEANS


# ---------------------------------------------------------------- pictures


@pytest.fixture
def programs():
    x = fluid.data("x", [None, 3])
    fluid.layers.mean(fluid.layers.fc(x, 2))
    return fluid.default_startup_program(), fluid.default_main_program()


def test_programs_as_one_picture(programs, tmp_path):
    path = tmp_path / "net.dot"
    graph = net_drawer.draw_graph(
        *programs, graph_attr={"rankdir": "LR"}, output=str(path)
    )
    text = path.read_text()
    assert text == graph.code()
    assert 'rankdir="LR"' in text
    startup, main = programs
    labels = [op.type for p in programs for op in p.global_block().ops]
    assert [n.label for n in graph.nodes if n.startswith("op_")] == labels
    # the initialiser of the weight points at the product
    fill = next(n for n in graph.nodes if n.label == "uniform_random")
    mul = next(n for n in graph.nodes if n.label == "mul")
    assert f'{fill} -> {mul} [label="Y: fc_0.w_0"]' in text
    count = net_drawer.unique_id()
    assert (count(), count()) == (0, 1)


def test_previews():
    made = graphviz.GraphPreviewGenerator("net")
    op, arg = made.add_op("mul"), made.add_arg("x", highlight=True)
    made.add_edge(made.add_param("w", "float32"), op)
    made.add_edge(arg, op, highlight=True)
    text = made.graph.code()
    assert 'arg_0 -> op_0 [color="orange"]' in text
    assert 'label="w\\nfloat32"' in text
    assert graphviz.crepr("a") == '"a"'


def test_ranks():
    graph = graphviz.Graph("g")
    late, soon = graph.rank_group("same", 2), graph.rank_group("min", 1)
    one = graph.node("one", "n", rank=late)
    two = graph.node("two", "n", rank=late)
    graph.node("three", "n", rank=soon)
    assert graph.code().splitlines()[-3:-1] == [
        "  {rank=min; n_2}",
        f"  {{rank=same; {one}; {two}}}",
    ]
    with pytest.raises(ValueError, match="no rank 'sam'"):
        graph.rank_group("sam", 1)
