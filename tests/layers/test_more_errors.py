"""Wrong arguments of layers, schedules, gradients and Variables: what is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.ir import BuildError

L = fluid.layers


def _x(name: str = "x", shape: Any = (None, 13), dtype: str = "float32") -> Any:
    return fluid.data(name, list(shape), dtype)


def _w() -> Any:
    return _x("w", (13, 4))


def _image() -> Any:
    return _x("image", (None, 3, 8, 8))


def _ids() -> Any:
    return _x("ids", (None, 1), "int64")


def _never_ending() -> None:
    i = L.fill_constant([1], "int64", 0)
    n = L.fill_constant([1], "int64", 5)
    with L.While(L.less_than(i, n)).block():
        L.increment(i)
        L.less_than(i, n)


Case = tuple[Callable[[], Any], type[Exception], str]

CASES: dict[str, Case] = {
    # numbers that are none
    "momentum": (
        lambda: L.batch_norm(_image(), momentum="a"),
        ValueError,
        "batch_norm: momentum must be a number, got 'a'",
    ),
    "scale": (lambda: L.scale(_x(), "a"), ValueError, "scale: scale must be a number"),
    "clip": (lambda: L.clip(_x(), "a", 1), ValueError, "clip: min must be a number"),
    "clip_by_norm": (
        lambda: L.clip_by_norm(_x(), None),
        TypeError,
        "clip_by_norm: max_norm must be a number, got None",
    ),
    "huber": (
        lambda: L.huber_loss(_x(), _x(), None),
        TypeError,
        "huber_loss: delta must be a number, got None",
    ),
    "increment by a word": (
        lambda: L.increment(_x("i", (1,)), "a"),
        ValueError,
        "increment: value must be a number, got 'a'",
    ),
    "global var": (
        lambda: L.create_global_var([2], "a", "float32"),
        ValueError,
        "create_global_var: value must be a number, got 'a'",
    ),
    "gaussian": (
        lambda: L.gaussian_random([2], mean=None),
        TypeError,
        "gaussian_random: mean must be a number, got None",
    ),
    "label_smooth": (
        lambda: L.label_smooth(_x(), epsilon="a"),
        ValueError,
        "label_smooth: epsilon must be a number, got 'a'",
    ),
    # integers that are none
    "begin_norm_axis": (
        lambda: L.layer_norm(_x(), begin_norm_axis="1"),
        TypeError,
        "layer_norm: begin_norm_axis must be an integer, got '1'",
    ),
    "groups": (
        lambda: L.group_norm(_image(), "3"),
        TypeError,
        "group_norm: groups must be an integer, got '3'",
    ),
    "table": (
        lambda: L.embedding(_ids(), ["a", 4]),
        TypeError,
        "embedding: a size must be an integer, got 'a'",
    ),
    "padding_idx": (
        lambda: L.embedding(_ids(), [10, 4], padding_idx="a"),
        TypeError,
        "embedding: padding_idx must be an integer, got 'a'",
    ),
    "nce": (
        lambda: L.nce(_x(), _ids(), "a"),
        TypeError,
        "nce: num_total_classes must be an integer, got 'a'",
    ),
    "nce samples": (
        lambda: L.nce(_x(), _ids(), 10, num_neg_samples="a"),
        TypeError,
        "nce: num_neg_samples must be an integer, got 'a'",
    ),
    "hsigmoid": (
        lambda: L.hsigmoid(_x(), _ids(), "a"),
        TypeError,
        "hsigmoid: num_classes must be an integer, got 'a'",
    ),
    "size of a parameter": (
        lambda: L.center_loss(_x(), _ids(), "a", 0.1, None),
        TypeError,
        "center_loss: a size of center_loss_0.w_0 must be an integer, got 'a'",
    ),
    "counter": (
        lambda: L.autoincreased_step_counter(begin="a"),
        TypeError,
        "autoincreased_step_counter: begin must be an integer, got 'a'",
    ),
    "hidden_size": (
        lambda: L.GRUCell("8"),
        TypeError,
        "GRUCell: hidden_size must be an integer, got '8'",
    ),
    "hidden_size of lstm": (
        lambda: L.LSTMCell(8.5),
        TypeError,
        "LSTMCell: hidden_size must be an integer, got 8.5",
    ),
    "lod_level": (
        lambda: L.data("q", [2], lod_level="a"),
        TypeError,
        "layers.data: lod_level must be an integer, got 'a'",
    ),
    # tensors that do not go together
    "unstack": (
        lambda: L.unstack(_w(), axis=3),
        IndexError,
        r"unstack: axis 3 is outside w of shape \[13, 4\]",
    ),
    "concat of two dtypes": (
        lambda: L.concat([_x(), _ids()], axis=1),
        ValueError,
        "concat: x is FP32, ids is INT64; cast one of them",
    ),
    "ids that are floats": (
        lambda: L.scatter(_w(), _x("f", (13,)), _w()),
        BuildError,
        "op scatter: Ids must hold int32 or int64, got FP32",
    ),
    "ids of a wrong shape": (
        lambda: L.scatter(_w(), _x("f", (13, 2), "int64"), _w()),
        BuildError,
        r"op scatter: Ids has shape \(13, 2\), not \(n,\) or \(n, 1\)",
    ),
    "index that is float": (
        lambda: L.gather(_w(), _x("f", (3,))),
        BuildError,
        "op gather: Index must hold int32 or int64, got FP32",
    ),
    "sum of two ranks": (
        lambda: L.sum([_x(), _image()]),
        BuildError,
        r"op sum: X of shapes \(-1, 13\) and \(-1, 3, 8, 8\) cannot be added up",
    ),
    "softmax": (
        lambda: L.softmax(_x(), axis=4),
        BuildError,
        r"op softmax: axis 4 is outside of X \(-1, 13\)",
    ),
    "reverse": (
        lambda: L.reverse(_w(), 7),
        BuildError,
        r"op reverse: axis \[7\] is outside of X \(13, 4\)",
    ),
    "increment of many": (
        lambda: L.increment(_x()),
        BuildError,
        r"op increment: X must have one element, got shape \(-1, 13\)",
    ),
    "auc of many classes": (
        lambda: L.auc(_x(), _ids()),
        BuildError,
        r"op auc: Predict has shape \(-1, 13\), not \(n, 2\)",
    ),
    "negative size": (
        lambda: L.fill_constant([-2], "float32", 1),
        BuildError,
        r"op fill_constant: shape must not hold negative sizes, got \[-2\]",
    ),
    "sigmoid of integers": (
        lambda: L.sigmoid(_ids()),
        TypeError,
        r"sigmoid: X \(ids\) must be of FP16, .* got INT64",
    ),
    "sqrt of integers": (lambda: L.sqrt(_ids()), TypeError, "sqrt: X .* got INT64"),
    "matmul of integers": (
        lambda: L.matmul(_ids(), _ids(), transpose_y=True),
        TypeError,
        "matmul: X .* got INT64",
    ),
    # the rest
    "crf_decoding": (
        lambda: L.crf_decoding(_x(), None),
        ValueError,
        "crf_decoding: param_attr must name the parameter of linear_chain_crf",
    ),
    "sequence_length": (
        lambda: L.rnn(L.GRUCell(8), _x("s", (2, 5, 8)), sequence_length=3),
        TypeError,
        "rnn: sequence_length must be a Variable, got int 3",
    ),
    "decoder": (
        lambda: L.dynamic_decode(3),
        TypeError,
        "dynamic_decode: decoder must be a Decoder, got 3",
    ),
    "a body that returns nothing": (
        lambda: L.while_loop(
            lambda i: L.less_than(i, i),
            lambda i: None,
            [L.fill_constant([1], "int64", 0)],
        ),
        TypeError,
        "while_loop: what body returns must be a Variable, got NoneType None",
    ),
    "future_context_size": (
        lambda: L.row_conv(_x(), "a"),
        TypeError,
        "row_conv: future_context_size must be an integer, got 'a'",
    ),
    "a loop without end": (
        _never_ending,
        ValueError,
        "While: nothing in its block sets the condition .* never end",
    ),
    "regularizer": (
        lambda: fluid.ParamAttr(regularizer=3),
        TypeError,
        "ParamAttr: regularizer must be one of fluid.regularizer, got 3",
    ),
    "class of a regularizer": (
        lambda: fluid.ParamAttr(regularizer=fluid.regularizer.L2Decay),
        TypeError,
        "ParamAttr: regularizer must be one of fluid.regularizer",
    ),
    "fan_in": (
        lambda: fluid.initializer.Xavier(fan_in="a"),
        TypeError,
        "XavierInitializer: fan_in must be a number, got 'a'",
    ),
    # schedules
    "rate": (
        lambda: L.exponential_decay("a", 1, 0.1),
        TypeError,
        "exponential_decay: learning_rate must be a number or a Variable, got 'a'",
    ),
    "no steps": (
        lambda: L.natural_exp_decay(0.1, 0, 0.1),
        ZeroDivisionError,
        "natural_exp_decay: decay_steps must not be 0",
    ),
    "no steps of a polynomial": (
        lambda: L.polynomial_decay(0.1, 0),
        ZeroDivisionError,
        "polynomial_decay: decay_steps must not be 0",
    ),
    "no epochs": (
        lambda: L.cosine_decay(0.1, 5, 0),
        ZeroDivisionError,
        "cosine_decay: epochs must not be 0",
    ),
    "no warmup": (
        lambda: L.noam_decay(512, 0),
        ZeroDivisionError,
        "noam_decay: warmup_steps must not be 0",
    ),
    "no linear warmup": (
        lambda: L.linear_lr_warmup(0.1, 0, 0.0, 0.1),
        ZeroDivisionError,
        "linear_lr_warmup: warmup_steps must not be 0",
    ),
    "end of a warmup": (
        lambda: L.linear_lr_warmup(0.1, 5, 0.0, None),
        TypeError,
        "linear_lr_warmup: end_lr must be a number, got None",
    ),
    "boundaries": (
        lambda: L.piecewise_decay(1, [0.1]),
        TypeError,
        "piecewise_decay: boundaries must be a list, got 1",
    ),
    # a Variable is no array
    "iteration": (
        lambda: list(_x()),
        TypeError,
        r"variable x of shape \[-1, 13\] has no length before it runs",
    ),
    "length": (lambda: len(_x()), TypeError, "variable x .* has no length"),
    "numpy": (
        lambda: np.mean(_x()),
        TypeError,
        "variable x is part of a program .* a run that fetches it gives its value",
    ),
    "callbacks": (
        lambda: fluid.append_backward(L.mean(L.fc(_x(), 1)), callbacks=[3]),
        TypeError,
        "append_backward: callbacks must be functions, got 3",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said(case: Case) -> None:
    call, kind, said = case
    with pytest.raises(kind, match=said):
        call()


def test_a_variable_of_known_length_gives_its_rows() -> None:
    rows = list(_x("known", (3, 2)))
    assert [r.shape for r in rows] == [(2,)] * 3


def test_concat_of_one_dtype_and_sum_of_one_rank_still_work() -> None:
    assert L.concat([_x(), _x()], axis=1).shape == (-1, 26)
    assert L.sum([_x(), _x()]).shape == (-1, 13)


@pytest.mark.parametrize("layer", [L.exp, L.abs, L.square, L.gelu, L.erf])
def test_layers_that_take_integers_in_the_reference(layer: Any) -> None:
    assert layer(_ids()).dtype.name == "INT64"
