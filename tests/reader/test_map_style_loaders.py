"""DataLoader over map-style datasets. Expected values are the reference's."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from loading import CPU, LOADER, variables, xs

import fluidx as fluid
from fluidx.ir.errors import RunError


class Numbers(fluid.io.Dataset):
    def __getitem__(self, index):
        return np.full([2], index, "float32"), np.full([1], index, "int64")

    def __len__(self):
        return 5


@pytest.mark.parametrize("workers", [0, 1, 2, 7])
def test_map_style_batches_come_in_order(workers):
    made = LOADER(
        Numbers(),
        feed_list=variables(),
        places=CPU,
        batch_size=2,
        num_workers=workers,
    )
    assert len(made) == 3
    assert xs(made) == xs(made()) == [[[0, 1]], [[2, 3]], [[4]]]


def test_map_style_options():
    options = {"feed_list": variables(), "places": CPU, "batch_size": 2}
    assert xs(LOADER(Numbers(), drop_last=True, **options)) == [[[0, 1]], [[2, 3]]]
    listed = list(LOADER(Numbers(), return_list=True, **options))
    assert listed[2][0][1].value.tolist() == [[4]]
    sampler = fluid.io.BatchSampler(indices=[4, 2, 0], batch_size=2)
    options.pop("batch_size")
    made = LOADER(Numbers(), batch_sampler=sampler, **options)
    assert xs(made) == [[[4, 2]], [[0]]]
    np.random.seed(0)
    mixed = xs(LOADER(Numbers(), shuffle=True, batch_size=5, **options))[0][0]
    assert sorted(mixed) == [0, 1, 2, 3, 4]


def test_map_style_batches_are_dealt_to_places():
    made = LOADER(Numbers(), variables(), [CPU, CPU], batch_size=2)
    assert xs(made) == [[[0, 1], [2, 3]]]
    sampler = fluid.io.BatchSampler(Numbers())
    for wrong in ({"batch_size": 2}, {"shuffle": True}, {"drop_last": True}):
        with pytest.raises(ValueError, match="batch_sampler decides on batch_size"):
            LOADER(Numbers(), variables(), CPU, batch_sampler=sampler, **wrong)


def test_map_style_workers_that_fail():
    class Failing(Numbers):
        def __getitem__(self, index):
            if index == 3:
                os._exit(9)
            return super().__getitem__(index)

    options = {"feed_list": variables(), "places": CPU, "num_workers": 2}
    with pytest.raises(RunError, match=r"worker 1 .*died with exit code 9"):
        list(LOADER(Failing(), **options))

    class Slow(Numbers):
        def __getitem__(self, index):
            threading.Event().wait()

    with pytest.raises(RunError, match=r"no batch within 0\.2 s from worker 0"):
        list(LOADER(Slow(), timeout=0.2, **options))


def test_workers_draw_different_numbers_and_are_initialised():
    class Drawn(fluid.io.Dataset):
        def __getitem__(self, index):
            return np.random.rand(2).astype("float32"), [index + self.first]

        def __len__(self):
            return 2

    data = Drawn()

    def init(number):
        data.first = 10 * number

    made = LOADER(
        data,
        feed_list=variables(),
        places=CPU,
        num_workers=2,
        worker_init_fn=init,
    )
    first, second = (feed[0] for feed in made)
    assert first["x"].value.tolist() != second["x"].value.tolist()
    assert (first["y"].value.tolist(), second["y"].value.tolist()) == ([[0]], [[11]])
