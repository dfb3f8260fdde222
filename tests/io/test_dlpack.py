"""Tensors to and from other frameworks without a copy."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers
from fluidx.io.dlpack import from_dlpack, to_dlpack


class Foreign:
    """A tensor that speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_memory_is_shared_on_the_way_in():
    there = np.arange(6, dtype="f4").reshape(2, 3)
    here = from_dlpack(Foreign(there))
    assert here.shape() == [2, 3]
    there[0, 0] = 9
    assert np.array(here)[0, 0] == 9


def test_memory_is_shared_on_the_way_out():
    here = fluid.LoDTensor(np.arange(4, dtype="f4"))
    there = np.from_dlpack(here)
    np.array(here, copy=None)[1] = 7
    assert there.tolist() == [0, 7, 2, 3]
    assert "dltensor" in repr(to_dlpack(here))


@pytest.mark.parametrize("kind", [Foreign, np.array])
def test_feeds_and_fetches(kind):
    x = fluid.data("x", [None, 2])
    y = layers.scale(x, 3.0)
    value = np.array([[1, 2]], "f4")
    exe = fluid.Executor(fluid.CPUPlace())
    (got,) = exe.run(feed={"x": kind(value)}, fetch_list=[y])
    assert np.from_dlpack(got).tolist() == [[3, 6]]
    (got,) = exe.run(feed={"x": kind(value)}, fetch_list=[y], return_numpy=False)
    assert np.from_dlpack(got).tolist() == [[3, 6]]


def test_complaints():
    with pytest.raises(TypeError, match="that has __dlpack__, got list"):
        from_dlpack([1, 2])
    with pytest.raises(ValueError, match="holds no value"):
        to_dlpack(fluid.LoDTensor())
