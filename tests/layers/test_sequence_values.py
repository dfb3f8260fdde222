"""Sequence layers by the Executor: LoD through a program, and a net that trains."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import sequence_training  # noqa: E402

sys.path.remove(str(ORACLE))

layers = fluid.layers


def _sequences(rows: Any, *lengths: list[int]) -> Any:
    return fluid.create_lod_tensor(np.asarray(rows), list(lengths), fluid.CPUPlace())


def _run(made: list[Any], **feed: Any) -> list[Any]:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=made, return_numpy=False)


X = np.arange(10, dtype="f4").reshape(5, 2)


def test_a_sentiment_net_trains_as_the_reference() -> None:
    recorded = json.loads((ORACLE / "sequence_training.json").read_text())
    main, startup, loss = sequence_training.build(fluid)
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for name, value in recorded["start"].items():
            scope.find_var(name).get_tensor().set(np.array(value, "f4"), exe.place)
        losses = sequence_training.train(fluid, main, loss, exe)
        end = {n: np.array(scope.find_var(n).get_tensor()) for n in recorded["end"]}
    np.testing.assert_allclose(losses, recorded["losses"], 1e-5)
    for name, value in recorded["end"].items():
        np.testing.assert_allclose(end[name], value, 1e-4, 1e-5, err_msg=name)


def test_lod_goes_from_the_words_to_the_pools() -> None:
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    hidden = layers.fc(layers.embedding(words, [9, 4]), 3, act="tanh")
    conv = layers.sequence_conv(hidden, 2)
    total = layers.elementwise_add(conv, layers.sequence_reverse(conv))
    pooled = layers.sequence_pool(total, "sum")
    ids = _sequences([[1], [2], [3], [4], [5]], [2, 0, 3])
    got = _run([hidden, total, pooled], words=ids)
    assert [v.lod() for v in got] == [[[0, 2, 2, 5]], [[0, 2, 2, 5]], []]
    assert np.array(got[2]).shape == (3, 2)
    assert not np.array(got[2])[1].any()


def test_concatenated_sequences_follow_each_other() -> None:
    x = fluid.data("x", [None, 2], lod_level=1)
    y = fluid.data("y", [None, 2], lod_level=1)
    plain = fluid.data("plain", [None, 2])
    below, beside = layers.concat([x, y]), layers.concat([y, x], 1)
    first, second = layers.sums([x, plain]), layers.sums([plain, x])
    mixed = layers.sequence_concat([x, y])
    a, b = _sequences(X, [2, 3]), _sequences(X, [4, 1])
    got = _run([below, beside, mixed, first, second], x=a, y=b, plain=X)
    assert [v.lod() for v in got] == [
        [[0, 2, 5, 9, 10]],
        [[0, 4, 5]],
        [[0, 6, 10]],
        [[0, 2, 5]],
        [],
    ]
    rows = [0, 1, 0, 1, 2, 3, 2, 3, 4, 4]
    np.testing.assert_array_equal(np.array(got[2]), X[rows])


def test_gradients_pass_what_knows_its_sequences_only_from_the_output() -> None:
    x = fluid.data("x", [None, 2], lod_level=1)
    x.stop_gradient = False
    padded, length = layers.sequence_pad(x, layers.assign(np.zeros(1, "f4")))
    again = layers.sequence_unpad(padded, length)
    turned = layers.sequence_reverse(again)
    weight = fluid.data("weight", [None, 2])
    loss = layers.reduce_sum(layers.elementwise_mul(turned, weight))
    (grad,) = fluid.gradients([loss], [x])
    got = _run([turned, grad], x=_sequences(X, [2, 3]), weight=X)
    rows = [1, 0, 4, 3, 2]
    assert got[0].lod() == [[0, 2, 5]]
    np.testing.assert_array_equal(np.array(got[0]), X[rows])
    np.testing.assert_array_equal(np.array(got[1]), X[rows])


def test_dense_rows_become_sequences() -> None:
    x = fluid.data("x", [None, 2])
    x.stop_gradient = False
    told = layers.lod_reset(x, target_lod=[0, 1, 5])
    offsets = fluid.data("offsets", [None], "int32")
    fed = layers.lod_reset(x, offsets)
    deeper = layers.lod_append(told, [0, 1, 2, 3, 4, 5])
    pooled = layers.sequence_pool(told, "max")
    (grad,) = fluid.gradients([layers.reduce_sum(pooled)], [x])
    made = [told, fed, deeper, pooled, grad]
    got = _run(made, x=X, offsets=np.array([0, 5], "i4"))
    assert [v.lod() for v in got[:3]] == [
        [[0, 1, 5]],
        [[0, 5]],
        [[0, 1, 5], [0, 1, 2, 3, 4, 5]],
    ]
    np.testing.assert_array_equal(np.array(got[3]), X[[0, 4]])
    assert np.array(got[4])[:, 0].tolist() == [1, 0, 0, 0, 1]


def test_a_sequence_of_another_run_is_not_remembered() -> None:
    x = fluid.data("x", [None, 2], lod_level=1)
    y = layers.scale(x, 2.0)
    exe = fluid.Executor(fluid.CPUPlace())
    lods = []
    for fed in (_sequences(X, [2, 3]), X, _sequences(X, [5])):
        (out,) = exe.run(feed={"x": fed}, fetch_list=[y], return_numpy=False)
        lods.append(out.lod())
    assert lods == [[[0, 2, 5]], [], [[0, 5]]]


def test_attention_over_sequences() -> None:
    """expand, softmax and slice together, against plain numpy."""
    x = fluid.data("x", [None, 2], lod_level=1)
    query = fluid.data("query", [None, 2])
    spread = layers.sequence_expand(query, x)
    score = layers.reduce_sum(layers.elementwise_mul(x, spread), 1, keep_dim=True)
    weight = layers.sequence_softmax(score)
    made = layers.sequence_pool(layers.elementwise_mul(x, weight, axis=0), "sum")
    q = np.array([[0.5, -1], [0.25, 0.5]], "f4")
    got = np.array(_run([made], x=_sequences(X / 10, [2, 3]), query=q)[0])
    for row, part, one in zip(got, (X[:2] / 10, X[2:] / 10), q):
        e = np.exp(part @ one)
        np.testing.assert_allclose(row, (e / e.sum()) @ part, 1e-5)


def test_hashes_are_below_their_size() -> None:
    ids = fluid.data("ids", [None, 2], "int64", lod_level=1)
    made = layers.hash(ids, 1000, 3)
    (got,) = _run([made], ids=_sequences(np.array([[3, 1], [4, 9], [5, 2]]), [1, 2]))
    assert got.lod() == [[0, 1, 3]]
    # the reference's, for one hash
    assert np.array(got)[:, 0, 0].tolist() == [700, 23, 259]
    assert np.array(got).shape == (3, 3, 1)


CASES: dict[str, tuple[Any, type[Exception], str]] = {
    "conv": (
        lambda x: layers.sequence_conv(layers.cast(x, "int64"), 3),
        TypeError,
        "sequence_conv: input .* must be of FP32, FP64, got INT64",
    ),
    "conv stride": (
        lambda x: layers.sequence_conv(x, 3, filter_stride=2),
        ValueError,
        "sequence_conv: contextStride must be 1, got 2",
    ),
    "concat": (
        lambda x: layers.sequence_concat(x),
        TypeError,
        "sequence_concat: input must be a list",
    ),
    "expand": (
        lambda x: layers.sequence_expand(x, x, "0"),
        TypeError,
        "ref_level must be an integer, got '0'",
    ),
    "reset": (lambda x: layers.lod_reset(x), ValueError, "give y or target_lod"),
    "append": (
        lambda x: layers.lod_append(x, 3),
        TypeError,
        "lod_append: level must be a list or a Variable, got 3",
    ),
    "hash": (lambda x: layers.hash(x, 10), TypeError, "hash: input .* got FP32"),
    "mask": (
        lambda x: layers.sequence_mask(x, "3"),
        TypeError,
        "sequence_mask: maxlen must be an integer or a Variable, got 3",
    ),
    "enumerate": (
        lambda x: layers.sequence_enumerate(layers.cast(x, "int64"), 2),
        ValueError,
        r"sequence_enumerate: X has shape \(-1, 4\), not \(ids, 1\)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_arguments(name: str) -> None:
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call(fluid.data("x", [None, 4], lod_level=1))
