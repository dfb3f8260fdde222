"""Predictors: models of the reference, wrong input, clones, saving."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.core import (
    AnalysisConfig,
    AnalysisPredictor,
    EnforceNotMet,
    NativeConfig,
    NativePaddlePredictor,
    PaddleDType,
    PaddlePredictor,
    PaddleTensor,
    ZeroCopyTensor,
    create_paddle_predictor,
)
from fluidx.inference import config as config_module
from fluidx.io.errors import MissingFileError, ModelFileError
from fluidx.ir.errors import FeedError, RunError

MODELS = Path(__file__).parents[1] / "golden" / "models"
MLP = MODELS / "mlp"


def expected(model: str = "mlp") -> Any:
    with np.load(MODELS / model / "expected.npz") as file:
        return {name: file[name] for name in file.files}


X, PREDICTION = expected()["feed_x"], expected()["prediction"]


def config_of(model: Path = MLP, **switches: bool) -> AnalysisConfig:
    made = AnalysisConfig(str(model / "infer_separate"))
    for name, value in switches.items():
        getattr(made, f"switch_{name}")(value)
    return made


def made(**switches: bool) -> Any:
    return create_paddle_predictor(config_of(**switches))


def zero_copy() -> Any:
    return made(use_feed_fetch_ops=False)


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("model", ["mlp", "lenet"])
@pytest.mark.parametrize("combined", [False, True])
def test_models_of_the_reference(model: str, combined: bool) -> None:
    values = expected(model)
    folder = MODELS / model / ("infer_combined" if combined else "infer_separate")
    names = [str(folder / "__model__"), str(folder / "__params__")]
    config = AnalysisConfig(*(names if combined else [str(folder)]))
    (feed,) = [v for k, v in values.items() if k in ("feed_x", "feed_img")]
    (out,) = create_paddle_predictor(config).run([PaddleTensor(feed)])
    np.testing.assert_allclose(out.as_ndarray(), values["prediction"], rtol=1e-5)
    assert (out.shape, out.dtype) == (list(out.as_ndarray().shape), PaddleDType.FLOAT32)


@pytest.mark.parametrize("model", ["mlp", "lenet"])
def test_models_that_the_reference_has_optimised(model: str) -> None:
    values = expected(model)
    folder = MODELS.parent / "oracle" / "optimised" / model
    config = AnalysisConfig(str(folder / "model"), str(folder / "params"))
    predictor = create_paddle_predictor(config)
    assert isinstance(predictor, AnalysisPredictor)
    block = predictor.program().block(0)
    assert "fc" in [block.op(i).type() for i in range(block.op_size())]
    (feed,) = [v for k, v in values.items() if k in ("feed_x", "feed_img")]
    (out,) = predictor.run([PaddleTensor(feed)])
    np.testing.assert_allclose(out.as_ndarray(), values["prediction"], rtol=1e-5)


def test_results_are_the_callers() -> None:
    predictor = made()
    (first,) = predictor.run([PaddleTensor(X)])
    kept = first.as_ndarray()
    (second,) = predictor.run([PaddleTensor(X * 2)])
    np.testing.assert_array_equal(first.as_ndarray(), kept)
    assert np.abs(second.as_ndarray() - kept).max() > 1e-3
    first.as_ndarray()[:] = 0
    np.testing.assert_array_equal(first.as_ndarray(), kept)


def test_a_program_and_its_bytes() -> None:
    predictor = made()
    block = predictor.program().block(0)
    types = [block.op(i).type() for i in range(block.op_size())]
    assert (types[0], types[-1]) == ("feed", "fetch")
    again = fluid.Program.parse_from_string(predictor.get_serialized_program())
    assert [op.type for op in again.global_block().ops] == types
    assert predictor.scope().find_var("fc_0.w_0").get_tensor().shape() == [8, 6]


def test_saving_and_loading_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    made().SaveOptimModel(str(folder))
    assert sorted(p.name for p in folder.iterdir()) == ["model", "params"]
    config = AnalysisConfig(str(folder / "model"), str(folder / "params"))
    (out,) = create_paddle_predictor(config).run([PaddleTensor(X)])
    np.testing.assert_allclose(out.as_ndarray(), PREDICTION, rtol=1e-5)


def test_files_in_two_folders(tmp_path: Path) -> None:
    params = tmp_path / "elsewhere"
    params.write_bytes((MLP / "infer_combined" / "__params__").read_bytes())
    config = AnalysisConfig(str(MLP / "infer_combined" / "__model__"), str(params))
    (out,) = create_paddle_predictor(config).run([PaddleTensor(X)])
    np.testing.assert_allclose(out.as_ndarray(), PREDICTION, rtol=1e-5)


def test_a_given_program_on_a_given_scope() -> None:
    executor, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        program, *_ = fluid.io.load_inference_model(
            str(MLP / "infer_separate"), executor
        )
    predictor = AnalysisPredictor(AnalysisConfig())
    assert predictor.init(scope, program.desc)
    (out,) = predictor.run([PaddleTensor(X)])
    np.testing.assert_allclose(out.as_ndarray(), PREDICTION, rtol=1e-5)
    with pytest.raises(TypeError, match="no ProgramDesc: 3"):
        predictor.init(scope, 3)  # type: ignore[arg-type]


def test_testing_is_switched_on(tmp_path: Path) -> None:
    """As the reference's is_test pass: a model saved with dropout in training."""
    x = fluid.data("x", [None, 100])
    y = fluid.layers.dropout(x, 0.5, dropout_implementation="upscale_in_train")
    executor = fluid.Executor(fluid.CPUPlace())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], executor)
    path = tmp_path / "__model__"
    program = fluid.Program.parse_from_string(path.read_bytes())
    for op in program.global_block().ops:
        if op.type == "dropout":
            op._set_attr("is_test", False)
    path.write_bytes(program.serialize_to_string())
    ones = np.ones((2, 100), "float32")
    sums = []
    for switch in (True, False):
        config = AnalysisConfig(str(tmp_path))
        config.switch_ir_optim(switch)
        (out,) = create_paddle_predictor(config).run([PaddleTensor(ones)])
        sums.append(int((out.as_ndarray() == 0).sum()))
    assert sums[0] == 0
    assert 50 < sums[1] < 150


# ---------------------------------------------------------------- clones


def test_clones_share_parameters_and_nothing_else() -> None:
    first = zero_copy()
    second = first.clone()
    assert isinstance(second, AnalysisPredictor)
    for predictor, rows in ((first, 5), (second, 2)):
        predictor.get_input_tensor("x").copy_from_cpu(X[:rows])
    (name,) = first.get_output_names()
    weight = first.scope().find_var("fc_1.w_0").get_tensor()
    weight.set(np.zeros((6, 3), "float32"), fluid.CPUPlace())
    shapes = []
    for predictor in (first, second):
        assert predictor.zero_copy_run()
        out = predictor.get_output_tensor(name)
        shapes.append(out.shape())
        rows = out.copy_to_cpu()
        np.testing.assert_allclose(rows, rows[:1].repeat(len(rows), 0), rtol=1e-6)
    assert shapes == [[5, 3], [2, 3]]


def test_clones_run_in_threads() -> None:
    first = made()
    right: list[bool] = []

    def work(predictor: Any, rows: int) -> None:
        tensor = PaddleTensor(X[:rows])
        found = [predictor.run([tensor])[0].as_ndarray() for _ in range(50)]
        right.append(all(np.allclose(f, PREDICTION[:rows], rtol=1e-5) for f in found))

    clones = [(first.clone(), rows) for rows in (1, 2, 5)]
    threads = [threading.Thread(target=work, args=pair) for pair in clones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 3


# ---------------------------------------------------------------- zero copy


def test_variables_between_can_be_read() -> None:
    predictor = zero_copy()
    predictor.get_input_tensor("x").copy_from_cpu(X)
    hidden = predictor.get_output_tensor("fc_0.tmp_2")
    predictor.zero_copy_run()
    held = predictor.scope().find_var
    weight, bias = (
        np.array(held(n).get_tensor(), "float64") for n in ("fc_0.w_0", "fc_0.b_0")
    )
    np.testing.assert_allclose(
        hidden.copy_to_cpu(), np.tanh(X @ weight + bias), rtol=1e-5
    )
    np.testing.assert_array_equal(predictor.get_output_tensor("x").copy_to_cpu(), X)


def test_parameters_can_be_read_and_set() -> None:
    predictor = zero_copy()
    predictor.get_input_tensor("x").copy_from_cpu(X)
    weight = predictor.get_input_tensor("fc_1.w_0")
    assert weight.shape() == [6, 3]
    weight.copy_from_cpu(np.zeros((6, 3), "float32"))
    predictor.zero_copy_run()
    out = predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu()
    np.testing.assert_allclose(out, out[:1].repeat(5, 0), rtol=1e-6)


def test_shapes_that_are_announced() -> None:
    handle = zero_copy().get_input_tensor("x")
    handle.reshape([-1, 8])
    assert handle.shape() == [-1, 8]
    handle.copy_from_cpu(X)
    handle.reshape([2, 8])
    np.testing.assert_array_equal(handle.copy_to_cpu(), X[:2])
    handle.reshape([9, 8])  # more than there is: nothing is kept
    assert handle.shape() == [9, 8]
    with pytest.raises(EnforceNotMet, match="'x' has no value yet"):
        handle.copy_to_cpu()


def test_zero_copy_needs_its_switch_and_its_inputs() -> None:
    with pytest.raises(EnforceNotMet, match=r"needs switch_use_feed_fetch_ops\(False"):
        made().zero_copy_run()
    predictor = zero_copy()
    with pytest.raises(EnforceNotMet, match="'x' has no value yet"):
        predictor.zero_copy_run()
    with pytest.raises(EnforceNotMet, match="get_input_tensor"):
        predictor.run([PaddleTensor(X)])
    with pytest.raises(EnforceNotMet, match=r"no variable 'y'; its inputs are .'x'."):
        predictor.get_input_tensor("y")
    with pytest.raises(EnforceNotMet, match="has no value yet"):
        predictor.get_output_tensor(predictor.get_output_names()[0]).type()
    predictor.get_input_tensor("x").copy_from_cpu(X.astype("int64"))
    with pytest.raises(FeedError, match="'x': expected dtype float32, came int64"):
        predictor.zero_copy_run()
    with pytest.raises(TypeError, match="float64: cast it"):
        predictor.get_input_tensor("x").copy_from_cpu(X.astype("float64"))


# ---------------------------------------------------------------- wrong input


def test_wrong_inputs() -> None:
    predictor, x = made(), PaddleTensor(X)
    with pytest.raises(FeedError, match=r"takes 1 inputs .*'x'.*, got 0"):
        predictor.run([])
    with pytest.raises(FeedError, match="got 2"):
        predictor.run([x, x])
    with pytest.raises(TypeError, match="a list of PaddleTensors, not PaddleTensor"):
        predictor.run(x)
    with pytest.raises(TypeError, match="input 0 is a ndarray"):
        predictor.run([X])
    with pytest.raises(FeedError, match="'x': expected dtype float32, came int32"):
        predictor.run([PaddleTensor(X.astype("int32"))])
    with pytest.raises(RunError, match="mul"):
        predictor.run([PaddleTensor(X[:, :5])])
    empty = PaddleTensor()
    empty.shape = [2, 8]
    with pytest.raises(ValueError, match="needs 64 bytes, its data has 0"):
        predictor.run([empty])
    (out,) = predictor.run([x])  # and it still works
    np.testing.assert_allclose(out.as_ndarray(), PREDICTION, rtol=1e-5)


def test_wrong_names() -> None:
    predictor = made(specify_input_names=True)
    for tensor, said in (
        (PaddleTensor(X), "named '', which is none of the model's"),
        (PaddleTensor(X, name="y"), "named 'y', which is none of the model's"),
    ):
        with pytest.raises(FeedError, match=said):
            predictor.run([tensor])
    assert len(predictor.run([PaddleTensor(X, name="x")])) == 1


def test_no_model() -> None:
    cases: list[tuple[AnalysisConfig, type[Exception], str]] = [
        (AnalysisConfig(), ValueError, "names no model"),
        (AnalysisConfig("/nowhere"), MissingFileError, "no directory '/nowhere'"),
        (AnalysisConfig("/nowhere/m", "/p"), MissingFileError, "'/nowhere/m'.*program"),
        (
            AnalysisConfig(str(MLP / "infer_combined" / "__model__"), "/p"),
            MissingFileError,
            "'/p'.*parameters",
        ),
        (AnalysisConfig(str(MLP), str(MLP)), ModelFileError, "is a folder"),
        (AnalysisConfig(str(MODELS)), MissingFileError, "__model__"),
    ]
    for config, error, said in cases:
        with pytest.raises(error, match=said):
            create_paddle_predictor(config)
    config = AnalysisConfig()
    config.set_prog_file(str(MLP / "infer_combined" / "__model__"))
    with pytest.raises(ValueError, match="but no parameters"):
        create_paddle_predictor(config)
    with pytest.raises(ValueError, match="names no model"):
        create_paddle_predictor(NativeConfig())


def test_what_is_not_loaded_yet() -> None:
    for predictor in (
        AnalysisPredictor(config_of()),
        NativePaddlePredictor(config_of().to_native_config()),
    ):
        with pytest.raises(EnforceNotMet, match="its model is not loaded yet"):
            predictor.run([PaddleTensor(X)])
        assert predictor.init()
        (out,) = predictor.run([PaddleTensor(X)])
        np.testing.assert_allclose(out.as_ndarray(), PREDICTION, rtol=1e-5)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="got str"):
        create_paddle_predictor("model")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes an AnalysisConfig"):
        AnalysisPredictor(NativeConfig())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a NativeConfig"):
        NativePaddlePredictor(AnalysisConfig())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="create_paddle_predictor"):
        PaddlePredictor()
    with pytest.raises(TypeError, match="get_input_tensor"):
        ZeroCopyTensor()
    with pytest.raises(TypeError, match="a path is a str, got 3"):
        AnalysisConfig(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="switch_ir_optim takes True or False"):
        AnalysisConfig().switch_ir_optim("no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="enable_quantizer"):
        AnalysisConfig().quantizer_config()
    with pytest.raises(AttributeError, match="graph passes"):
        AnalysisConfig().pass_builder()


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_module, "device_count", lambda: 0)
    config = config_of()
    with pytest.warns(UserWarning, match="runs on the CPU"):
        config.enable_use_gpu(100, 1)
    assert not config.use_gpu()
    monkeypatch.setattr(config_module, "device_count", lambda: 2)
    config.enable_use_gpu(200, 1)
    assert (config.use_gpu(), config.gpu_device_id()) == (True, 1)
    assert config.memory_pool_init_size_mb() == 200
    assert config.to_native_config().use_gpu
    config.disable_gpu()
    assert not config.use_gpu()


# ---------------------------------------------------------------- tensors


def test_arrays_that_a_tensor_cannot_hold() -> None:
    for array in (np.ones(2), np.ones(2, "float16"), np.array(["a"]), [1.5]):
        with pytest.raises(TypeError, match="float32, int32 or int64, got"):
            PaddleTensor(array)
    with pytest.raises(TypeError, match="got uint64"):
        PaddleTensor(np.array([1 << 40], "uint64"))
    assert PaddleTensor(np.array([7], "uint64")).dtype == PaddleDType.INT32


def test_the_order_of_memory_does_not_matter() -> None:
    turned = np.arange(6, dtype="float32").reshape(2, 3).T
    for copy in (True, False):
        found = PaddleTensor(turned, copy=copy)
        np.testing.assert_array_equal(found.as_ndarray(), turned)
        assert found.data.float_data() == [0, 3, 1, 4, 2, 5]


def test_wrong_attributes() -> None:
    tensor = PaddleTensor(X)
    with pytest.raises(TypeError, match="a name is a str"):
        tensor.name = 3  # type: ignore[assignment]
    with pytest.raises(TypeError, match="dtype is a PaddleDType"):
        tensor.dtype = "int32"  # type: ignore[assignment]
    with pytest.raises(TypeError, match=re.escape("data.reset(array)")):
        tensor.data = X
    with pytest.raises(ValueError, match="float32, int32 or int64, not 'uint8'"):
        tensor.data.tolist("uint8")
    tensor.shape = [41]
    with pytest.raises(ValueError, match="needs 164 bytes, its data has 160"):
        tensor.as_ndarray()


def test_an_output_that_a_tensor_cannot_hold(tmp_path: Path) -> None:
    x = fluid.data("x", [2])
    wide = fluid.layers.cast(x, "float64")
    executor = fluid.Executor(fluid.CPUPlace())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [wide], executor)
    config = AnalysisConfig(str(tmp_path))
    predictor = create_paddle_predictor(config)
    with pytest.raises(TypeError, match=r"output 'save_infer.*holds float64"):
        predictor.run([PaddleTensor(np.ones(2, "float32"))])
