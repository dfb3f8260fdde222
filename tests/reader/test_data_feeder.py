"""`DataFeeder`. Expected values are the reference's."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx.data_feeder import DataFeeder


def fed(variables, samples):
    feed = DataFeeder(variables, fluid.CPUPlace()).feed(samples)
    return {
        name: (
            np.asarray(t).tolist(),
            str(t.value.dtype),
            t.recursive_sequence_lengths(),
        )
        for name, t in feed.items()
    }


def var(shape, dtype="float32", level=0):
    return fluid.data("v", shape, dtype, lod_level=level)


ONE_FIELD = [
    # variable, samples, values, lengths
    (([None, 2],), [[1, 2], [4, 5]], [[1.0, 2.0], [4.0, 5.0]], []),
    (([None, 1], "int64"), [3, 6], [[3], [6]], []),
    (([None, 1], "int64"), [[3], 6], [[3], [6]], []),
    (([None, 1], "int64"), [1.5], [[1]], []),
    (([None],), [1, 2], [1.0, 2.0], []),
    (([None, 2],), [[1, 2, 3]], [[1.0, 2.0, 3.0]], []),
    (([None, 1], "bool"), [True, False], [[True], [False]], []),
    (
        ([None, 1, 2, 2],),
        [np.arange(4)] * 2,
        [[[[0.0, 1.0], [2.0, 3.0]]]] * 2,
        [],
    ),
    (
        ([None, 1, 2, 2],),
        [[[[0], [1]], [[2], [3]]]],
        [[[[0.0], [1.0]], [[2.0], [3.0]]]],
        [],
    ),
    (([None, 1, 2],), [[1, 2, 3, 4]], [[[1.0, 2.0]], [[3.0, 4.0]]], []),
    (([None],), [[1, 2], [3, 4]], [1.0, 2.0, 3.0, 4.0], []),
    (([None, 3, None],), [[1, 2, 3]], [[1.0, 2.0, 3.0]], []),
    (([None, 1], "int64", 1), [[1, 2, 3], [4]], [[1], [2], [3], [4]], [[3, 1]]),
    (([None, 1], "int64", 1), [[[1], [2]], [[4]]], [[1], [2], [4]], [[2, 1]]),
    (([None, 1], "int64", 1), [np.array([1, 2]), [4]], [[1], [2], [4]], [[2, 1]]),
    (
        ([None, 1], "int64", 1),
        [np.array([1, 2]), np.array([[4]])],
        [[1], [2], [4]],
        [[2, 1]],
    ),
    (([None, 1], "int64", 1), [[], [4]], [[4]], [[0, 1]]),
    (([None, 1], "int64", 2), [[], [[4], []]], [[4]], [[0, 2], [1, 0]]),
    (([None, 3], "float32", 1), [[[1, 2], [4, 5]]], [[1.0, 2.0], [4.0, 5.0]], [[2]]),
    (
        ([None, 1], "int64", 2),
        [[[1, 2], [3]], [[4]]],
        [[1], [2], [3], [4]],
        [[2, 1], [2, 1, 1]],
    ),
    (
        ([None, 3], "float32", 1),
        [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9]]],
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
        [[2, 1]],
    ),
]


@pytest.mark.parametrize(("declared", "samples", "values", "lengths"), ONE_FIELD)
def test_one_field(declared, samples, values, lengths):
    made = var(*declared)
    dtype = declared[1] if len(declared) > 1 else "float32"
    assert fed([made], [(s,) for s in samples]) == {"v": (values, dtype, lengths)}


def test_no_samples():
    assert np.asarray(DataFeeder([var([None, 2])], None).feed([])["v"]).shape == (0, 2)


def test_variables_by_name_of_a_program():
    main = fluid.Program()
    with fluid.program_guard(main):
        fluid.data("x", [None, 2])
    feed = DataFeeder(["x"], fluid.CPUPlace(), main).feed([([1, 2],)])
    assert feed["x"].value.tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="nope"):
        DataFeeder(["nope"], None, main)
    with pytest.raises(TypeError, match="takes variables and names"):
        DataFeeder([1], None)


def test_wrong_samples():
    x, y = var([None, 2]), fluid.data("y", [None, 1], "int64")
    with pytest.raises(ValueError, match=r"has 1 fields.*2 variables: \['v', 'y'\]"):
        fed([x, y], [([1, 2],)])
    with pytest.raises(ValueError, match=r"samples of v make no array of float32"):
        fed([x], [("a",)])
    with pytest.raises(ValueError, match=r"shapes of the samples: \[2\], \[3\]"):
        fed([x], [([1, 2],), ([1, 2, 3],)])


def test_samples_that_no_reshaping_fits():
    text = r"v is \[-1, 1, 2, 2\], which a batch of \[1, 3\] cannot be reshaped to"
    with pytest.raises(ValueError, match=text):
        fed([var([None, 1, 2, 2])], [([1, 2, 3],)])
    with pytest.raises(ValueError, match=r"n is \[-1, 2\], .* batch of \[1\]"):
        fed([fluid.data("n", [None, 2])], [(None,)])
    fixed = fluid.layers.data("f", [2, 2], append_batch_size=False)
    assert fed([fixed], [(i,) for i in range(4)])["f"][0] == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(ValueError, match=r"f is \[2, 2\], .* batch of \[3\]"):
        fed([fixed], [(i,) for i in range(3)])


def test_wrong_sequences():
    words = fluid.data("w", [None, 1], "int64", lod_level=1)
    with pytest.raises(TypeError, match=r"w has lod_level 1.* belongs came 3$"):
        fed([words], [(3,)])
    with pytest.raises(TypeError, match=r"lod_level 2.* nest 2 deep.* came 7$"):
        fed([fluid.data("w2", [None, 1], "int64", lod_level=2)], [([7],)])
    with pytest.raises(ValueError, match=r"expected 3 values of an item in \[-1, 3\]"):
        fed([fluid.data("t", [None, 3], lod_level=1)], [([1, 2, 3],)])


def test_several_places():
    feeder = DataFeeder([var([None, 2])], None)
    batches = [[([1, 2],)], [([3, 4],)], [([5, 6],)]]
    two = list(feeder.feed_parallel(batches[:2], 2))
    assert [f["v"].value.tolist() for f in two] == [[[1.0, 2.0]], [[3.0, 4.0]]]
    with pytest.raises(ValueError, match="2 places take as many batches, came 1"):
        list(feeder.feed_parallel(batches[:1], 2))
    groups = list(feeder.decorate_reader(lambda: iter(batches), True, 2)())
    assert [len(g) for g in groups] == [2]
    plain = list(feeder.decorate_reader(lambda: iter(batches), False)())
    assert [f["v"].value.tolist() for f in plain[:1]] == [[[1.0, 2.0]]]
    with pytest.raises(ValueError, match="left over"):
        list(feeder.decorate_reader(lambda: iter(batches), True, 2, drop_last=False)())


def test_feeds_run():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    total = fluid.layers.sequence_pool(fluid.layers.cast(words, "float32"), "sum")
    feed = DataFeeder([words], None).feed([([1, 2, 3],), ([4],)])
    (got,) = fluid.Executor().run(feed=feed, fetch_list=[total])
    assert got.tolist() == [[6.0], [4.0]]
