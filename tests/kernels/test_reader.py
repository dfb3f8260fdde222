"""Readers as kernels see them; the executor's side is in tests/reader."""

from __future__ import annotations

import numpy as np
import pytest

from fluidx import kernels


class Source:
    def __init__(self):
        self.batches = [[np.ones(2, "float32"), [[3]]]]

    def take(self):
        return self.batches.pop()


def test_read_gives_the_arrays_of_the_next_batch():
    source = Source()
    (made,) = kernels.find("create_py_reader").run(np, source)
    reader = kernels.find("create_double_buffer_reader").run(np, made)
    first, second = kernels.find("read").run(np, reader)
    assert first.tolist() == [1.0, 1.0]
    assert second.tolist() == [[3]]
    with pytest.raises(IndexError):
        kernels.find("read").run(np, reader)


@pytest.mark.parametrize(
    "type", ["create_py_reader", "create_double_buffer_reader", "read"]
)
def test_they_act_on_the_world_and_have_no_gradient(type):
    found = kernels.find(type)
    assert found.effect
    assert found.grad is None
