"""Loaders that are iterated over. Expected values are the reference's."""

from __future__ import annotations

import os
import threading

import numpy as np
import psutil
import pytest
from loading import CPU, LOADER, batches, endless, variables, xs

import fluidx as fluid
from fluidx.ir.errors import EnforceNotMet, RunError


def samples():
    for i in range(5):
        yield np.full([2], i, "float32"), [i]


def loader(**options):
    return LOADER.from_generator(variables(), capacity=2, **options)


# ------------------------------------------------ iterable


@pytest.mark.parametrize("processes", [False, True])
def test_the_three_kinds_of_generators(processes):
    made = loader(use_multiprocess=processes)
    made.set_sample_generator(samples, batch_size=2, places=CPU)
    assert xs(made()) == [[[0, 1]], [[2, 3]]]
    made.set_sample_generator(samples, batch_size=2, drop_last=False, places=[CPU])
    assert xs(made) == [[[0, 1]], [[2, 3]], [[4]]]
    made.set_sample_list_generator(fluid.io.batch(samples, 3), places=CPU)
    assert xs(made()) == [[[0, 1, 2]], [[3, 4]]]
    made.set_batch_generator(batches(), places=CPU)
    assert xs(made()) == xs(made()) == [[[0, 0]], [[1, 1]], [[2, 2]]]


def test_feeds_are_tensors_of_the_declared_dtype():
    made = loader().set_sample_generator(lambda: iter([([1, 2], 3)]), 1, places=CPU)
    ((feed,),) = made
    assert isinstance(feed["x"], fluid.LoDTensor)
    assert feed["x"].value.dtype == np.float32
    assert feed["y"].value.tolist() == [[3]]
    listed = loader(return_list=True).set_batch_generator(batches(1), CPU)
    (((x, y),),) = listed
    assert x.value.tolist() == [[0, 0], [0, 0]]
    assert y.value.tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("drop_last", "expected"),
    [(False, [[[0, 0], [1, 1]], [[2, 2]]]), (True, [[[0, 0], [1, 1]]])],
)
def test_batches_are_dealt_to_places(drop_last, expected):
    made = loader(drop_last=drop_last).set_batch_generator(batches(), [CPU, CPU])
    assert xs(made()) == expected


def test_sequences_of_a_generator_in_a_process_keep_their_lod():
    words = fluid.data("w", [None, 1], "int64", lod_level=1)
    made = LOADER.from_generator([words], 2, use_multiprocess=True)
    made.set_sample_generator(lambda: iter([([1, 2],), ([3],)]), 2, places=CPU)
    ((feed,),) = made
    assert feed["w"].recursive_sequence_lengths() == [[2, 1]]
    assert feed["w"].value.tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("processes", [False, True])
def test_a_generator_may_use_one_array_again(processes):
    def reusing():
        x, y = np.zeros([2, 2], "float32"), np.zeros([2, 1], "int64")
        for i in range(6):
            x[:] = i
            yield x, y

    made = loader(use_multiprocess=processes).set_batch_generator(reusing, CPU)
    assert xs(made()) == [[[i, i]] for i in range(6)]


@pytest.mark.parametrize("processes", [False, True])
def test_a_pass_ends_when_it_is_dropped(processes):
    before = threading.active_count(), len(psutil.Process().children())
    made = loader(use_multiprocess=processes).set_batch_generator(endless, CPU)
    for _ in made():
        break
    assert (threading.active_count(), len(psutil.Process().children())) == before
    with pytest.raises(ZeroDivisionError):
        [1 / 0 for _ in made()]
    kept = iter(made)
    next(kept)
    iter(made).close()  # another pass ends the one that goes on
    assert (threading.active_count(), len(psutil.Process().children())) == before
    assert list(kept) == []


def test_next_of_the_loader():
    made = loader().set_batch_generator(batches(2), CPU)
    assert xs([next(made), made.next()]) == [[[0, 0]], [[1, 1]]]
    with pytest.raises(StopIteration):
        next(made)
    assert xs([next(made)]) == [[[0, 0]]]
    iter(made).close()


def test_what_the_generator_raises():
    def failing():
        yield next(batches()())
        raise ValueError("boom")

    passing = loader().set_batch_generator(failing, CPU)()
    next(passing)
    with pytest.raises(RunError, match=r"reader of x, y: .* ValueError: boom"):
        next(passing)
    one = lambda: iter([(np.zeros([2, 2], "float32"),)])  # noqa: E731
    with pytest.raises(EnforceNotMet, match="1 arrays, but there are 2 variables"):
        next(loader().set_batch_generator(one, CPU)())


def test_a_process_that_dies_is_named_with_its_exit_code():
    def dying():
        yield from batches(2)()
        os._exit(3)

    made = loader(use_multiprocess=True).set_batch_generator(dying, CPU)
    with pytest.raises(RunError, match=r"process \d+\) died with exit code 3"):
        list(made())


def test_wrong_use():
    with pytest.raises(ValueError, match="capacity"):
        LOADER.from_generator(variables())
    with pytest.raises(ValueError, match="feed_list"):
        LOADER.from_generator(capacity=2)
    with pytest.raises(ValueError, match="places"):
        loader().set_batch_generator(batches())
    with pytest.raises(RuntimeError, match="data source"):
        iter(loader())
    with pytest.raises(RuntimeError, match=r"start\(\) is not for one that is iter"):
        loader().start()
    with pytest.raises(RuntimeError, match="iterating is not for"):
        iter(loader(iterable=False))


def test_what_is_given_is_checked_at_once():
    made = loader()
    for give in (
        lambda g: made.set_batch_generator(g, CPU),
        lambda g: made.set_sample_list_generator(g, CPU),
        lambda g: made.set_sample_generator(g, 2, places=CPU),
        fluid.layers.py_reader(2, [(-1, 2)], ["float32"]).decorate_paddle_reader,
    ):
        with pytest.raises(TypeError, match=r"got <generator .* without \(\)"):
            give(batches()())
    named = lambda: iter([{"x": np.zeros([2, 2], "float32"), "y": [[1], [2]]}])  # noqa: E731
    passing = made.set_batch_generator(named, CPU)()
    with pytest.raises(RunError, match=r"dict of \['x', 'y'\]; give the arrays alone"):
        next(passing)


def test_loaders_of_datasets_check_what_they_are_given():
    with pytest.raises(TypeError, match=r"takes a dataset of fluid.DatasetFactory"):
        LOADER.from_dataset([1], CPU)
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    with pytest.raises(ValueError, match="places"):
        LOADER.from_dataset(dataset, None)
    with pytest.raises(RuntimeError, match=r"call load_into_memory\(\) first"):
        LOADER.from_dataset(dataset, CPU)


def test_py_reader_class_iterates():
    made = fluid.io.PyReader(variables(), capacity=2)
    made.decorate_sample_generator(samples, 2, places=CPU)
    assert xs(made()) == [[[0, 1]], [[2, 3]]]
    made.decorate_sample_list_generator(fluid.io.batch(samples, 4), CPU)
    assert xs(made()) == [[[0, 1, 2, 3]], [[4]]]
    made.decorate_batch_generator(batches(1), CPU)
    assert xs(made()) == [[[0, 0]]]
