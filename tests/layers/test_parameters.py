"""ParamAttr in all its forms, sharing, and the values of initialisers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidx import layers
from fluidx.initializer import Bilinear, Constant, Initializer, NumpyArrayInitializer
from fluidx.input import data
from fluidx.ir import default_main_program, default_startup_program
from fluidx.kernels import find
from fluidx.param_attr import ParamAttr
from fluidx.regularizer import L2Decay


def _startup() -> list[Any]:
    return default_startup_program().global_block().ops


def test_forms_of_param_attr() -> None:
    start, decay, attr = Constant(1.0), L2Decay(0.1), ParamAttr("a")
    assert ParamAttr._to_attr(None).name is None
    assert ParamAttr._to_attr(True).trainable is True
    assert ParamAttr._to_attr(False) is False
    assert ParamAttr._to_attr("w").name == "w"
    assert ParamAttr._to_attr(start).initializer is start
    assert ParamAttr._to_attr(decay).regularizer is decay
    assert ParamAttr._to_attr(attr) is attr
    made = ParamAttr._to_attr(["w", None, False])
    assert (made[0].name, made[1].name, made[2]) == ("w", None, False)


def test_layers_leave_the_given_attr_alone() -> None:
    attr = ParamAttr(learning_rate=0.5)
    x = data("x", [None, 4])
    for _ in range(2):
        layers.fc(x, 3, param_attr=attr, bias_attr=False)
    assert attr.name is None
    assert attr.initializer is None
    names = [p.name for p in default_main_program().all_parameters()]
    assert names == ["fc_0.w_0", "fc_1.w_0"]


def test_one_name_is_one_parameter_with_one_initialiser() -> None:
    x = data("x", [None, 4])
    for _ in range(3):
        layers.fc(x, 3, param_attr="w", bias_attr=False)
    assert [p.name for p in default_main_program().all_parameters()] == ["w"]
    assert len(_startup()) == 1


def test_parameter_carries_the_wishes() -> None:
    decay = L2Decay(0.1)
    attr = ParamAttr("w", None, 0.5, decay, False, False)
    made = layers.create_parameter([3, 4], "float32", attr=attr)
    assert made.optimize_attr == {"learning_rate": 0.5}
    assert made.regularizer is decay
    assert made.trainable is False
    assert made.do_model_average is False


def test_moving_statistics_carry_no_gradient() -> None:
    layers.batch_norm(data("x", [None, 4]))
    facts = [
        (p.name, p.trainable, p.stop_gradient)
        for p in default_main_program().all_parameters()
    ]
    assert facts == [
        ("batch_norm_0.w_0", True, False),
        ("batch_norm_0.b_0", True, False),
        ("batch_norm_0.w_1", False, True),
        ("batch_norm_0.w_2", False, True),
    ]


def test_seed_of_the_program_when_built() -> None:
    default_startup_program().random_seed = 11
    layers.create_parameter([3, 4], "float32")
    assert _startup()[0].attr("seed") == 11


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_bilinear_weights_enlarge_a_ramp_exactly(factor: int) -> None:
    """Of a linear ramp, the transposed convolution makes a finer ramp."""
    size = 2 * factor - factor % 2
    attr = ParamAttr(initializer=Bilinear())
    layers.create_parameter([1, 1, size, size], "float32", attr=attr)
    values = np.array(_startup()[0].attr("fp32_values"), "float32")
    weight = values.reshape(1, 1, size, size)
    assert np.array_equal(weight, weight.transpose(0, 1, 3, 2))
    assert np.array_equal(weight, weight[:, :, ::-1, ::-1])
    ramp = np.tile(np.arange(6, dtype="float32"), (6, 1))[None, None]
    pad = (factor - 1 + 1) // 2 if factor % 2 == 0 else (factor - 1) // 2
    op = find("conv2d_transpose")
    attrs = {**op.defaults, "strides": [factor] * 2, "paddings": [pad] * 2}
    wanted = {k: attrs[k] for k in op.keywords if k in attrs}
    if "wants" in op.keywords:
        wanted["wants"] = (True,)
    big = (
        op.run(np, ramp, weight, None, **wanted)
        if len(op.ins) > 2
        else op.run(np, ramp, weight, **wanted)
    )
    inner = big[0, 0, big.shape[2] // 2, factor:-factor]
    np.testing.assert_allclose(np.diff(inner), 1 / factor, rtol=1e-5)


def test_array_initialiser_takes_the_dtype_of_the_parameter() -> None:
    value = np.array([1.5, 0.0, 2.0])
    attr = ParamAttr("w", initializer=NumpyArrayInitializer(value))
    layers.create_parameter([3], "float32", attr=attr)
    assert _startup()[0].attr("fp32_values") == [1.5, 0.0, 2.0]
    attr = ParamAttr("i", initializer=NumpyArrayInitializer(value.astype("int64")))
    layers.create_parameter([3], "int64", attr=attr)
    assert _startup()[0].attr("int64_values") == [1, 0, 2]


def test_an_initialiser_wants_a_variable_and_a_block() -> None:
    with pytest.raises(TypeError, match="called with a Variable and a Block, got str"):
        Constant(1.0)("w", None)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        Initializer()(data("x", [1]), default_main_program().global_block())


def test_counter_exists_once() -> None:
    first = layers.autoincreased_step_counter()
    assert layers.autoincreased_step_counter() is first
    types = [op.type for op in default_main_program().global_block().ops]
    assert types == ["increment"]
