"""Fetched losses convert to numbers, as 1.x scripts expect."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import fluidx as fluid
from fluidx.executor.fetched import OneElement, as_fetched


def fetched_mean(values):
    x = fluid.data("x", [None])
    loss = fluid.layers.mean(x)
    feed = {"x": np.array(values, "float32")}
    (got,) = fluid.Executor().run(feed=feed, fetch_list=[loss])
    return got


def test_a_fetched_loss_is_a_number_when_asked():
    loss = fetched_mean([1.0, 2.0])
    assert loss.shape == (1,)
    assert isinstance(loss, np.ndarray)
    assert float(loss) == 1.5
    assert int(loss) == 1
    assert round(loss, 1) == 1.5
    assert "%.2f" % loss == "1.50"  # noqa: UP031  # what 1.x scripts write
    assert f"{loss:.2f} {loss}" == "1.50 [1.5]"
    assert loss[0] == np.float32(1.5)


def test_arithmetic_keeps_it_while_one_element_is_left():
    loss = fetched_mean([1.0, 2.0])
    total = 0.0
    for _ in range(3):
        total += loss
    assert "%.2f" % (total / 3) == "1.50"  # as 1.x scripts write
    assert float(np.exp(loss)) == np.exp(np.float32(1.5))
    assert type(loss + np.ones(3)) is np.ndarray
    assert isinstance(loss.mean(), np.floating)
    assert type(np.concatenate([loss, loss])) is np.ndarray


def test_it_copies_and_pickles():
    loss = fetched_mean([3.0])
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert float(again) == 3.0


def test_integers_are_indices_and_floats_are_not():
    assert [5, 6, 7][as_fetched(np.array([2]))] == 7
    with pytest.raises(TypeError, match="float32 is no index"):
        [5, 6][fetched_mean([1.0])]


def test_other_sizes_stay_as_they_are():
    many = np.zeros(2)
    assert as_fetched(many) is many
    assert type(as_fetched(np.zeros(()))) is np.ndarray
    assert not isinstance(as_fetched(np.zeros((0, 1))), OneElement)
