"""Exported models compute, in onnxruntime, what the executor computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export.onnx_check import check, rand, run_onnx

import fluidx as fluid
from fluidx import layers
from fluidx.export import ExportError, exportable_ops, save_onnx, to_onnx, unexportable

GOLDEN = Path(__file__).parent.parent / "golden" / "models"
ACTIVATIONS = (
    *("relu", "sigmoid", "tanh", "exp", "abs", "ceil", "floor", "reciprocal", "erf"),
    *("sin", "cos", "softplus", "softsign", "sign", "relu6", "leaky_relu", "elu"),
    *("selu", "hard_sigmoid", "hard_swish", "swish", "gelu", "stanh", "tanh_shrink"),
    *("soft_relu", "thresholded_relu", "hard_shrink", "softshrink", "logsigmoid"),
    *("square", "round", "brelu", "atan"),
)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str):
    check(getattr(layers, name), x=rand(3, 7) * 3)


@pytest.mark.parametrize("name", ["log", "sqrt", "rsqrt", "log1p"])
def test_function_of_positive_numbers(name: str):
    check(getattr(layers, name), x=rand(3, 7, low=0.1))


@pytest.mark.parametrize("name", ["asin", "acos"])
def test_arc(name: str):
    check(getattr(layers, name), x=rand(3, 7, low=-0.9, high=0.9))


def test_gelu_by_tanh():
    check(lambda x: layers.gelu(x, approximate=True), x=rand(3, 7))


def test_numbers_in_attributes():
    check(
        lambda x: [
            layers.scale(x, 2.0, 1.0),
            layers.scale(x, 2.0, 1.0, bias_after_scale=False),
            layers.pow(x, 3.0),
            layers.clip(x, -0.5, 0.7),
            layers.softmax(x, axis=1),
            layers.l2_normalize(x, 1),
            layers.cast(x, "float64"),
            layers.cumsum(x, axis=1, reverse=True),
        ],
        x=rand(3, 4, 5),
    )


@pytest.mark.parametrize("mode", ["all", "channel", "element"])
def test_prelu(mode: str):
    attr = fluid.ParamAttr(initializer=fluid.initializer.Uniform(0, 1, seed=3))
    check(lambda x: layers.prelu(x, mode, attr), x=rand(2, 3, 4, 4))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min", "pow"])
@pytest.mark.parametrize(("shape", "axis"), [((4,), 1), ((4, 5), -1), ((2, 4, 1), 0)])
def test_elementwise(name: str, shape: tuple[int, ...], axis: int):
    layer = getattr(layers, f"elementwise_{name}")
    known = shape[0] != 2
    check(
        lambda x, y: layer(x, y, axis=axis),
        unknown=() if known else (0,),
        x=rand(2, 4, 5, low=0.5),
        y=rand(*shape, low=0.5, seed=4),
    )


@pytest.mark.parametrize("name", ["elementwise_mod", "elementwise_floordiv"])
def test_integers(name: str):
    x = np.array([[7, 9, 13], [8, 1, 22]], "int64")
    check(getattr(layers, name), x=x, y=np.array([[3, 2, 5], [5, 4, 7]], "int64"))


def test_comparisons_and_logic():
    def build(x: Any, y: Any) -> list[Any]:
        names = ("equal", "not_equal", "less_than", "less_equal", "greater_than")
        found = [getattr(layers, n)(x, y) for n in (*names, "greater_equal")]
        both = layers.logical_and(found[1], found[2])
        either = layers.logical_or(both, found[0])
        return [*found, both, either, layers.logical_xor(both, either)]

    x = np.array([[1, 2, 3]], "float32")
    check(build, x=x, y=np.array([[1, 3, 2]], "float32"))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
def test_reductions(name: str):
    layer = getattr(layers, f"reduce_{name}")
    check(
        lambda x: [
            layer(x),
            layer(x, dim=1),
            layer(x, dim=[0, -1], keep_dim=True),
            layers.mean(x),
        ],
        x=rand(2, 3, 4),
    )


def test_reductions_of_truth():
    def build(x: Any) -> list[Any]:
        yes = layers.cast(x, "bool")
        return [layers.reduce_all(yes, dim=1), layers.reduce_any(yes, dim=1)]

    check(build, x=np.array([[1, 0, 2], [1, 1, 1], [0, 0, 0]], "float32"))


def test_ranking():
    check(
        lambda x: [
            layers.argmax(x, axis=1),
            layers.argmin(x, axis=-1),
            *layers.topk(x, 2),
            *layers.argsort(x, axis=1, descending=True),
        ],
        x=rand(3, 5),
    )


# ---------------------------------------------------------------- products


def test_fc_over_all_shapes():
    def build(x: Any) -> list[Any]:
        flat = layers.fc(x, 6, act="relu")
        each = layers.fc(x, 3, num_flatten_dims=2)
        return [flat, each, layers.fc([flat, flat], 2)]

    check(build, x=rand(2, 3, 4))


def test_mul_of_two_tensors():
    check(
        lambda x, y: layers.mul(x, y, x_num_col_dims=2, y_num_col_dims=2),
        unknown=(),
        x=rand(2, 3, 4, 5),
        y=rand(4, 5, 6, 2),
    )


def test_matmul():
    check(
        lambda x, y: [
            layers.matmul(x, y, transpose_y=True, alpha=0.5),
            layers.matmul(x, y, transpose_x=True),
        ],
        x=rand(2, 3, 4),
        y=rand(2, 3, 4, seed=5),
    )


def test_embedding():
    def build(old: Any, new: Any) -> list[Any]:
        one = layers.embedding(old, [11, 4], padding_idx=3)
        return [one, fluid.embedding(new, [9, 5]), fluid.one_hot(new, 9)]

    old = np.array([[1], [3], [10]], "int64")
    check(build, old=old, new=np.array([[1, 3], [8, 0], [2, 2]], "int64"))


# ---------------------------------------------------------------- shapes


def test_shapes_and_parts():
    def build(x: Any) -> list[Any]:
        halves = layers.split(x, [1, 3], dim=2)
        return [
            layers.reshape(x, [0, -1]),
            layers.transpose(x, [2, 0, 1]),
            layers.concat([halves[1], halves[0]], axis=2),
            *layers.split(x, 2, dim=-1),
            layers.unsqueeze(x, [1, 3]),
            layers.squeeze(layers.unsqueeze(x, [1]), [1]),
            layers.stack([x, x], axis=-1),
            *layers.unstack(x, axis=1),
            layers.flatten(x, 2),
            layers.expand(x, [1, 2, 3]),
            layers.slice(x, [1, 2], [0, -3], [2, 4]),
            layers.strided_slice(x, [2], [3], [0], [-2]),
            layers.reverse(x, [1, 2]),
            x[:, 1],
            layers.shape(x),
            layers.zeros_like(x),
        ]

    check(build, x=rand(2, 3, 4))


def test_shape_from_tensors():
    def build(x: Any) -> list[Any]:
        batch = layers.shape(x)[0]
        wide = layers.fill_constant([batch, 2], "float32", 1.5)
        like = layers.fill_constant_batch_size_like(x, [-1, 3], "int64", 4)
        return [layers.reshape(x, [batch, 2, -1]), wide, like]

    check(build, x=rand(3, 4))


def test_picking():
    def build(x: Any, i: Any) -> list[Any]:
        rows = layers.gather(x, i)
        more = layers.expand_as(layers.reduce_sum(x, 1, keep_dim=True), x)
        return [rows, more, layers.gather_nd(x, layers.unsqueeze(i, [1]))]

    check(build, x=rand(4, 3), i=np.array([2, 0, 3], "int64"))


def test_constants():
    def build(x: Any) -> list[Any]:
        fixed = layers.assign(np.array([[1, 2, 3]], "float32"))
        return [x + fixed, x + layers.fill_constant([3], "float32", 0.5)]

    check(build, x=rand(2, 3))


def test_padding():
    check(
        lambda x: [
            layers.pad2d(x, [1, 2, 0, 1], "constant", 0.5),
            layers.pad2d(x, [1, 2, 0, 1], "reflect"),
            layers.pad2d(x, [1, 2, 0, 1], "edge"),
            layers.pad(x, [0, 0, 0, 1, 1, 2, 0, 0], 0.25),
        ],
        x=rand(2, 3, 4, 4),
    )


# ---------------------------------------------------------------- whole models


def attention(x: Any, heads: int, width: int) -> Any:
    """One block of a transformer encoder."""
    depth = width // heads
    q, k, v = (layers.fc(x, width, num_flatten_dims=2) for _ in range(3))

    def apart(t: Any) -> Any:
        return layers.transpose(layers.reshape(t, [0, 0, heads, depth]), [0, 2, 1, 3])

    scores = layers.matmul(apart(q), apart(k), transpose_y=True, alpha=depth**-0.5)
    weights = layers.dropout(layers.softmax(scores), 0.1)
    mixed = layers.transpose(layers.matmul(weights, apart(v)), [0, 2, 1, 3])
    mixed = layers.fc(layers.reshape(mixed, [0, 0, width]), width, num_flatten_dims=2)
    x = layers.layer_norm(x + mixed, begin_norm_axis=2)
    inner = layers.fc(x, 4 * width, num_flatten_dims=2, act="gelu")
    return layers.layer_norm(
        x + layers.fc(inner, width, num_flatten_dims=2), begin_norm_axis=2
    )


def test_attention_block_over_any_batch_and_length():
    def build(words: Any) -> Any:
        x = fluid.embedding(words, [30, 16])
        return layers.fc(layers.reduce_mean(attention(x, 4, 16), 1), 5, act="softmax")

    words = np.random.RandomState(0).randint(0, 30, (3, 7))
    model = check(build, unknown=(0, 1), words=words)
    other = run_onnx(model, {"words": words[:1, :4]})[0]
    assert other.shape == (1, 5)
    np.testing.assert_allclose(other.sum(), 1.0, rtol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_models_of_the_reference(name: str, tmp_path: Path):
    """They compute what the reference computed with them."""
    recorded = np.load(GOLDEN / name / "expected.npz")
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        folder = str(GOLDEN / name / "infer_separate")
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        save_onnx(tmp_path / "model.onnx", program, feeds, fetches)
        model = to_onnx(program, feeds, fetches)
    assert (tmp_path / "model.onnx").read_bytes() == model.SerializeToString()
    (got,) = run_onnx(model, {n: recorded[f"feed_{n}"] for n in feeds})
    np.testing.assert_allclose(got, recorded["prediction"], rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- names and errors


def test_signature_has_the_names_and_symbolic_sizes():
    model = check(lambda x: layers.fc(x, 2, name="last"), x=rand(2, 3))
    (given,), (made,) = model.graph.input, model.graph.output
    sizes = [d.dim_param or d.dim_value for d in given.type.tensor_type.shape.dim]
    assert (given.name, sizes) == ("x", ["x_0", 3])
    assert made.name.startswith("last")
    assert {i.name for i in model.graph.initializer} == {"last.w_0", "last.b_0"}


def test_variable_that_is_written_twice():
    def build(x: Any) -> Any:
        y = layers.scale(x, 2.0)
        layers.increment(y, 1.0)
        return layers.increment(y, 3.0)

    check(build, unknown=(), x=np.ones(1, "float32"))


def test_fetch_of_what_is_fed():
    check(lambda x: [x, layers.relu(x)], x=rand(2, 3))


def test_one_error_names_every_op_and_its_line():
    x = fluid.data("x", [None, 4])
    label = fluid.data("label", [None, 1], "int64")
    y = layers.dropout(layers.batch_norm(layers.fc(x, 4)), 0.5)
    loss = layers.hsigmoid(y, label, 6)  # line of hsigmoid
    main = fluid.default_main_program()
    fluid.Executor().run(fluid.default_startup_program())
    assert [p.type for p in unexportable(main)] == ["hierarchical_sigmoid"]
    with pytest.raises(ExportError) as caught:
        to_onnx(main, [x, label], [loss])
    types = [p.type for p in caught.value.problems]
    assert types == ["batch_norm", "dropout", "hierarchical_sigmoid"]
    message = str(caught.value)
    assert "it trains: export program.clone(for_test=True)" in message
    assert "# line of hsigmoid" in message


def test_parameter_without_a_value():
    x = fluid.data("x", [None, 4])
    y = layers.fc(x, 2)
    with pytest.raises(ExportError, match=r"fc_\d+\.w_0.*no value"):
        to_onnx(fluid.default_main_program(), [x], [y], fluid.Scope())


def test_unknown_fetch():
    x = fluid.data("x", [None, 4])
    with pytest.raises(ExportError, match="no variable 'nothing'"):
        to_onnx(fluid.default_main_program(), [x], ["nothing"])


def test_every_rule_is_of_a_declared_op():
    declared = [fluid.kernels.find(type).type for type in exportable_ops()]
    assert tuple(declared) == exportable_ops()
