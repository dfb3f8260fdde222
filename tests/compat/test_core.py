"""`core`, `framework`, `op` and flags: what user code touches of them."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx import core, framework
from fluidx.op import Operator

CPU = core.CPUPlace()


def test_tensors_of_a_scope():
    scope = core.Scope()
    tensor = scope.var("a").get_tensor()
    tensor.set(np.eye(2, dtype="float32"), CPU)
    inner = scope.new_scope()
    np.testing.assert_array_equal(inner.find_var("a").get_tensor(), np.eye(2))
    assert core.get_variable_tensor(inner, "a")._dtype() == core.VarDesc.VarType.FP32
    with pytest.raises(core.EnforceNotMet, match="no variable 'b'"):
        core.get_variable_tensor(scope, "b")


def test_selected_rows_are_set_piece_by_piece():
    scope = core.Scope()
    rows = scope.var("s").get_selected_rows()
    rows.set_height(5)
    rows.set_rows([3, 1, 3])
    rows.get_tensor().set(np.arange(6, dtype="float32").reshape(3, 2), CPU)
    again = scope.find_var("s").get_selected_rows()
    assert (again.height(), again.rows(), again.numel()) == (5, [3, 1, 3], 6)
    np.testing.assert_array_equal(again.to_dense()[3], [4, 6])
    scope.var("t").get_tensor().set(np.ones(2), CPU)
    with pytest.raises(TypeError, match="t holds no SelectedRows"):
        scope.var("t").get_selected_rows()


def test_tensor_arrays():
    held = core.Scope().var("arr").get_lod_tensor_array()
    assert held == []
    held.append(core.LoDTensor(np.ones(2)))
    assert np.array(held[0]).tolist() == [1, 1]


def test_any_place():
    place = core.Place()
    assert place.is_cpu_place()
    place.set_place(core.CUDAPlace(2))
    assert (place.is_gpu_place(), place.gpu_device_id()) == (True, 2)
    place.set_place(core.CUDAPinnedPlace())
    assert place.is_cuda_pinned_place()
    with pytest.raises(ValueError, match="not a CUDAPlace"):
        place.gpu_device_id()


def test_feed_and_fetch_lists():
    scope = core.Scope()
    core.set_feed_variable(scope, np.ones(3), "feed", 1)
    assert core.get_fetch_variable(scope, "feed", 1).shape() == [3]
    with pytest.raises(core.EnforceNotMet, match="holds 2 values, asked for 2"):
        core.get_fetch_variable(scope, "feed", 2)


def test_roles_and_attribute_names():
    maker = core.op_proto_and_checker_maker
    x = fluid.layers.fill_constant([1], "float32", 1.0)
    op = fluid.default_main_program().global_block().ops[-1]
    assert op.attr(maker.kOpRoleAttrName()) == int(maker.OpRole.Forward) == 0
    assert int(maker.OpRole.Optimize) == 2
    assert maker.kOpRoleVarAttrName() == "op_role_var"
    assert maker.kOpNameScopeAttrName() == "op_namescope"
    assert maker.kOpCreationCallstackAttrName() == "op_callstack"
    assert maker.kOpDeviceAttrName() == "op_device"
    assert x.name == op.output("Out")[0]


def test_names():
    assert core.grad_var_suffix() == "@GRAD"
    assert core.loaded_var_suffix() == "@LOADED"
    assert core.empty_var_name() == core.kEmptyVarName() == "@EMPTY@"
    assert framework.grad_var_name("w") == "w@GRAD"


def test_defaults_of_attributes():
    # recorded from the reference
    assert core.get_op_attrs_default_value(b"dropout") == {
        "op_callstack": [],
        "op_namescope": "",
        "op_role_var": [],
        "op_role": 4096,
        "dropout_implementation": "downgrade_in_infer",
        "seed": 0,
        "fix_seed": False,
        "is_test": False,
        "op_device": "",
        "dropout_prob": 0.5,
    }


def test_gradient_ops_of_one_op():
    x = fluid.data("x", [2, 3])
    fluid.layers.elementwise_add(x, fluid.layers.relu(x))
    add = fluid.default_main_program().global_block().ops[-1]
    (made,), names = core.get_grad_op_desc(add, set(), [])
    assert made.type() == "elementwise_add_grad"
    assert made.output("X@GRAD") == ["x@GRAD"]
    assert names["x@GRAD"] == "x"
    (made,), names = core.get_grad_op_desc(add, {"x@GRAD"}, [])
    assert "x@GRAD" not in names
    assert core.has_grad_op_maker("relu")
    assert not core.has_grad_op_maker("accuracy")


# ---------------------------------------------------------------- framework


def test_dtypes():
    assert framework.convert_np_dtype_to_dtype_("float32") == core.VarDesc.VarType.FP32
    assert framework.dtype_is_floating("float64")
    assert not framework.dtype_is_floating("int64")
    assert core.size_of_dtype(core.VarDesc.VarType.FP64) == 8
    assert not fluid.in_dygraph_mode()


@pytest.mark.parametrize("args", [("1.6.0",), ("1.8.5", "1.8.5"), ("1.8", "2.0")])
def test_versions_that_fit(args):
    fluid.require_version(*args)


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (("2.0.0",), Exception, "2.0.0 or higher is required"),
        (("1.5", "1.7"), Exception, r"in \[1.5, 1.7\] required"),
        ((1,), TypeError, "must be a string, got int"),
        (("1.x",), ValueError, "must be like"),
    ],
)
def test_versions_that_do_not(args, error, message):
    with pytest.raises(error, match=message):
        fluid.require_version(*args)


def test_places_by_number(monkeypatch):
    from fluidx.executor import cuda

    assert len(fluid.cpu_places(3)) == len(fluid.cuda_pinned_places(3)) == 3
    monkeypatch.setattr(cuda, "device_count", lambda: 2)
    monkeypatch.setattr(framework, "device_count", lambda: 2)
    assert fluid.cuda_places() == [core.CUDAPlace(0), core.CUDAPlace(1)]
    assert fluid.cuda_places([1]) == [core.CUDAPlace(1)]
    monkeypatch.setattr(framework, "device_count", lambda: 0)
    with pytest.raises(core.EnforceNotMet, match="no CUDA device"):
        fluid.cuda_places()


def test_op_protos():
    holder = framework.OpProtoHolder.instance()
    assert holder.get_op_proto("relu").type == "relu"
    with pytest.raises(ValueError, match="no op 'rleu'; did you mean relu"):
        holder.get_op_proto("rleu")
    assert "relu" in {p.type for p in core.get_all_op_protos()}


# ---------------------------------------------------------------- flags


def test_flags(monkeypatch):
    monkeypatch.setenv("FLAGS_paddle_num_threads", "4")
    assert fluid.get_flags(["FLAGS_paddle_num_threads"]) == {
        "FLAGS_paddle_num_threads": 4
    }
    fluid.set_flags({"FLAGS_cudnn_deterministic": 1})
    assert core.globals()["FLAGS_cudnn_deterministic"] is True
    core.globals()["FLAGS_cudnn_deterministic"] = False
    assert not fluid.get_flags("FLAGS_cudnn_deterministic")["FLAGS_cudnn_deterministic"]
    for call in (fluid.get_flags, lambda f: fluid.set_flags({f: 1})):
        with pytest.raises(ValueError, match="no flag FLAGS_nope"):
            call("FLAGS_nope")
    with pytest.warns(UserWarning, match="FLAGS_benchmark has no effect"):
        fluid.set_flags({"FLAGS_benchmark": True})
    fluid.set_flags({"FLAGS_benchmark": False})


def test_flags_of_the_reference():
    # recorded from it; the last three cannot be set there either
    flags = core.globals()
    assert flags.is_public("FLAGS_allocator_strategy")
    assert not flags.is_public("FLAGS_nope")
    assert flags.get("FLAGS_nope", 3) == 3
    shown = fluid.get_flags(
        ["FLAGS_fuse_parameter_groups_size", "FLAGS_free_idle_chunk"]
    )
    assert shown == {
        "FLAGS_fuse_parameter_groups_size": 1,
        "FLAGS_free_idle_chunk": False,
    }
    with pytest.raises(KeyError, match="no flag FLAGS_nope"):
        flags["FLAGS_nope"]
    for name in ("free_idle_chunk", "free_when_no_cache_hit", "use_mkldnn"):
        with pytest.raises(ValueError, match="in the environment only"):
            fluid.set_flags({f"FLAGS_{name}": True})
    with pytest.raises(TypeError, match="takes a dict, got list"):
        fluid.set_flags(["FLAGS_benchmark"])
    with pytest.raises(TypeError, match="a name or a list of names, got int"):
        fluid.get_flags(3)
    with pytest.raises(ValueError, match="takes a value of float, got 'much'"):
        fluid.set_flags({"FLAGS_eager_delete_tensor_gb": "much"})


# ---------------------------------------------------------------- single ops


def test_a_single_op_runs_on_a_scope():
    scope = core.Scope()
    scope.var("x").get_tensor().set(np.arange(6, dtype="float32").reshape(2, 3), CPU)
    op = Operator("scale", X="x", Out="y", scale=2.0, bias=1.0)
    op.run(scope, CPU)
    wanted = np.arange(6).reshape(2, 3) * 2 + 1
    np.testing.assert_array_equal(scope.find_var("y").get_tensor(), wanted)
    assert (op.type(), op.inputs(), op.output_vars()) == ("scale", {"X": ["x"]}, ["y"])


def test_a_single_op_updates_in_place_and_takes_sparse_gradients():
    scope = core.Scope()
    for name, value in (("w", np.zeros((4, 2))), ("lr", np.array([0.5]))):
        scope.var(name).get_tensor().set(value.astype("float32"), CPU)
    grad = scope.var("g").get_selected_rows()
    grad.set_height(4)
    grad.set_rows([2, 2])
    grad.get_tensor().set(np.ones((2, 2), "float32"), CPU)
    op = Operator("sgd", Param="w", Grad="g", LearningRate="lr", ParamOut="w")
    op.run(scope, CPU)
    wanted = [[0, 0], [0, 0], [-1, -1], [0, 0]]
    np.testing.assert_array_equal(scope.find_var("w").get_tensor(), wanted)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Operator("nope", X="x"), "no op 'nope'"),
        (lambda: Operator("scale", X="x", Out="y", scal=1.0), "attribute scal"),
        (lambda: Operator("scale", "more"), "one positional argument"),
    ],
)
def test_ops_that_do_not_exist(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_op_without_its_input():
    with pytest.raises(core.EnforceNotMet, match="no value for input 'x'"):
        Operator("relu", X="x", Out="y").run(core.Scope(), CPU)
