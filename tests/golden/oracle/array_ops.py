"""What the reference makes of the ops on shapes, indices and embeddings."""

import os

import numpy as np
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))


def count(*shape):
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype("float32")


def ids(*values):
    return np.array(values, "int64")


def small(*values):
    return np.array(values, "int32")


def rows(array):
    return {"data": array, "lod": [[0, 2, array.shape[0]]]}


def case(op, inputs, attrs, outs, **more):
    return dict(op=op, inputs=inputs, attrs=attrs, outs=outs, **more)


def shapes():
    two = ["Out", "XShape"]
    x = {"X": count(2, 6)}
    for shape in ([0, 2, 3], [-1, 3], [3, -1], [3, 4], [5, -1], [2, -1, 0], [5, 2]):
        yield case("reshape2", x, {"shape": shape}, two)
    yield case("reshape", x, {"shape": [3, 4]}, ["Out"], grads={"Out": count(3, 4)})
    yield case("reshape2", x, {"shape": [0, 2, -1]}, two, grads={"Out": count(2, 2, 3)})
    more = {"X": count(2, 6), "Shape": small(4, 3)}
    yield case("reshape2", more, {"shape": []}, two)
    yield case("reshape2", more, {"shape": [2, 6]}, two)
    more = {"X": count(2, 6), "ShapeTensor": [small(4), small(3)]}
    yield case("reshape2", more, {"shape": [-1, 3]}, two)
    for shape, new in (([-1, 6], [0, 2, -1]), ([-1, 6], [-1, 3]), ([2, -1], [4, -1])):
        yield case("reshape2", x, {"shape": new}, two, shapes={"X": shape}, run=False)
    thin = {"X": count(2, 1, 3)}
    for axes in ([], [1], [-2], [0]):
        yield case("squeeze2", thin, {"axes": axes}, two)
    yield case("squeeze2", {"X": count(1, 1)}, {"axes": []}, two)
    yield case("squeeze", thin, {"axes": [1]}, ["Out"], grads={"Out": count(2, 3)})
    flat = {"X": count(2, 3)}
    for axes in ([-1], [0, -1], [2, 0], [-3, 1], [1, 2]):
        yield case("unsqueeze2", flat, {"axes": axes}, two)
    more = {"X": count(2, 3), "AxesTensorList": [small(1)]}
    yield case("unsqueeze2", more, {"axes": []}, two)
    more = {"X": count(2, 3), "AxesTensor": small(0, 3)}
    yield case("unsqueeze2", more, {"axes": []}, two)
    for axis in (0, 1, 2):
        yield case("flatten2", {"X": count(2, 3, 4)}, {"axis": axis}, two)
    yield case("flatten2", flat, {"axis": 2}, two)
    yield case(
        "transpose2",
        {"X": count(2, 3, 4)},
        {"axis": [2, 0, 1]},
        two,
        grads={"Out": count(4, 2, 3)},
    )


def levels():
    """Which of these ops keep the sequences of their input."""
    two = ["Out", "XShape"]
    x = {"X": rows(count(4, 6))}
    yield case("reshape2", x, {"shape": [0, 2, 3]}, two)
    yield case("reshape2", x, {"shape": [-1, 3]}, two)
    yield case("reshape", x, {"shape": [0, 2, 3]}, ["Out"])
    yield case("transpose2", x, {"axis": [1, 0]}, two)
    yield case("transpose2", x, {"axis": [0, 1]}, two)
    thin = {"X": rows(count(4, 1))}
    yield case("squeeze2", thin, {"axes": [1]}, two)
    yield case("unsqueeze2", thin, {"axes": [1]}, two)
    yield case("unsqueeze2", thin, {"axes": [0]}, two)
    yield case("flatten2", {"X": rows(count(4, 2, 3))}, {"axis": 1}, two)
    yield case("flatten", {"X": rows(count(4, 2, 3))}, {"axis": 2}, ["Out"])
    pair = {"X": [rows(count(4, 2)), rows(count(4, 3))]}
    yield case("concat", pair, {"axis": 1}, ["Out"])
    x = {"X": rows(count(4, 2))}
    yield case("split", x, {"axis": 1, "num": 2}, {"Out": 2})
    yield case("split", x, {"axis": 0, "num": 2}, {"Out": 2})
    cut = {"Input": rows(count(4, 2))}
    yield case("slice", cut, {"axes": [1], "starts": [0], "ends": [1]}, ["Out"])
    yield case("slice", cut, {"axes": [0], "starts": [0], "ends": [1]}, ["Out"])
    same = {"X": [rows(count(4, 2)), rows(count(4, 2))]}
    yield case("stack", same, {"axis": 1}, ["Y"])
    yield case("unstack", x, {"axis": 1, "num": 2}, {"Y": 2})
    yield case("expand", x, {"expand_times": [1, 2]}, ["Out"])
    yield case("expand", x, {"expand_times": [2, 2]}, ["Out"])
    more = {"X": rows(count(4, 2)), "Index": ids(0, 1, 3, 3)}
    yield case("gather", more, {}, ["Out"])
    labels = rows(ids(1, 0, 2, 1).reshape(4, 1))
    yield case("one_hot", {"X": labels}, {"depth": 3}, ["Out"])
    yield case("one_hot_v2", {"X": rows(ids(1, 0, 2, 1))}, {"depth": 3}, ["Out"])
    yield case("top_k", x, {"k": 1}, ["Out", "Indices"])
    yield case("arg_max", x, {"axis": 1}, ["Out"])
    yield case("argsort", x, {"axis": 1}, ["Out", "Indices"])
    yield case("lookup_table", {"W": count(5, 3), "Ids": labels}, {}, ["Out"])
    flat = rows(ids(1, 0, 2, 1))
    yield case("lookup_table_v2", {"W": count(5, 3), "Ids": flat}, {}, ["Out"])


def slices():
    x = {"Input": count(4, 3)}

    def one(starts, ends, axes=(0,), **attrs):
        given = {"axes": list(axes), "starts": starts, "ends": ends}
        return dict(given, **attrs)

    yield case("slice", x, one([3], [1]), ["Out"])
    yield case("slice", x, one([5], [9]), ["Out"])
    yield case("slice", x, one([-10], [100]), ["Out"])
    yield case("slice", x, one([-3], [-1]), ["Out"])
    both = one([-2, 1], [-1, 2], (0, 1), decrease_axis=[0, 1])
    yield case("slice", x, both, ["Out"])
    last = one([-2], [-1], (1,), decrease_axis=[1])
    yield case("slice", x, last, ["Out"], grads={"Out": count(4)})
    given = {"Input": count(4, 3), "StartsTensor": small(1), "EndsTensor": small(3)}
    yield case("slice", given, one([], [], infer_flags=[-1]), ["Out"])
    given = {
        "Input": count(4, 3),
        "StartsTensorList": [small(1)],
        "EndsTensorList": [small(3)],
    }
    yield case("slice", given, one([-1], [-1], infer_flags=[-1]), ["Out"])
    for start, end in ((0, 1), (-1, 10000), (1, 3), (-3, -1), (2, 1)):
        unknown = {"Input": [-1, 3]}
        yield case("slice", x, one([start], [end]), ["Out"], shapes=unknown, run=False)
    gone = one([0], [1], decrease_axis=[0])
    yield case("slice", x, gone, ["Out"], shapes={"Input": [-1, 3]}, run=False)


def joins():
    x = {"X": count(6, 2)}
    holes = {"axis": 0, "sections": [1, -1, 2]}
    yield case("split", x, holes, {"Out": 3})
    yield case("split", x, {"axis": 1, "num": 2}, {"Out": 2})
    yield case("split", x, {"axis": 0, "num": 4}, {"Out": 4})
    yield case("split", x, {"axis": 0, "sections": [1, 2]}, {"Out": 2})
    unknown = {"X": [-1, 2]}
    thirds = {"axis": 0, "num": 3}
    yield case("split", x, thirds, {"Out": 3}, shapes=unknown, run=False)
    yield case("split", x, holes, {"Out": 3}, shapes=unknown, run=False)
    yield case("concat", {"X": [count(2, 2), count(2, 3)]}, {"axis": -1}, ["Out"])
    pair = {"X": [count(2, 2), count(2, 2)]}
    yield case("concat", pair, {"axis": 0}, ["Out"], shapes=unknown, run=False)
    yield case("concat", dict(pair, AxisTensor=small(1)), {"axis": 0}, ["Out"])
    yield case("stack", pair, {"axis": -1}, ["Y"])
    yield case("stack", pair, {"axis": 0}, ["Y"], grads={"Y": count(2, 2, 2)})
    yield case("unstack", {"X": count(2, 3)}, {"axis": -1, "num": 3}, {"Y": 3})
    x = {"X": count(2, 1)}
    twice = {"expand_times": [2, 3]}
    yield case("expand", x, twice, ["Out"], grads={"Out": count(4, 3)})
    yield case("expand", x, twice, ["Out"], shapes={"X": [-1, 1]}, run=False)
    yield case("expand", dict(x, ExpandTimes=small(1, 3)), {}, ["Out"])
    many = dict(x, expand_times_tensor=[small(2), small(3)])
    yield case("expand", many, {"expand_times": [-1, 3]}, ["Out"])


def indices():
    x = {"X": count(4, 2), "Index": ids(1, 1, 3)}
    for overwrite in (True, False):
        attrs = {"overwrite": overwrite}
        yield case("gather", x, attrs, ["Out"], grads={"Out": count(3, 2)})
        more = {"X": count(4, 2), "Ids": ids(1, 1, 3), "Updates": -count(3, 2)}
        yield case("scatter", more, attrs, ["Out"], grads={"Out": count(4, 2)})
    tall = {"X": count(4, 2), "Index": ids(1, 1, 3).reshape(3, 1)}
    yield case("gather", tall, {}, ["Out"])
    yield case("gather", {"X": count(4), "Index": small(1, 2)}, {}, ["Out"])
    labels = {"X": ids(1, 0, 5).reshape(3, 1)}
    free = {"depth": 3, "allow_out_of_range": True}
    yield case("one_hot", labels, {"depth": 6}, ["Out"])
    yield case("one_hot", labels, {"depth": 3}, ["Out"])
    yield case("one_hot", labels, free, ["Out"])
    below = {"X": ids(1, -1, 5).reshape(3, 1)}
    yield case("one_hot", below, free, ["Out"])
    deep = {"X": ids(1, 0, 1, 1).reshape(2, 2, 1)}
    yield case("one_hot", deep, {"depth": 3, "dtype": 3}, ["Out"])
    yield case("one_hot_v2", {"X": ids(1, 0, 2)}, {"depth": 3}, ["Out"])
    yield case("one_hot_v2", {"X": ids(1, 0).reshape(2, 1)}, {"depth": 3}, ["Out"])
    more = {"X": ids(1, 0, 2), "depth_tensor": small(4)}
    yield case("one_hot_v2", more, {"depth": 3}, ["Out"])


def orders():
    both = ["Out", "Indices"]
    x = np.array([[1, 4, 2], [3, 0, 5]], "float32")
    yield case("top_k", {"X": x}, {"k": 2}, both, grads={"Out": count(2, 2)})
    yield case("top_k", {"X": x}, {"k": 4}, both)
    yield case("top_k", {"X": np.array([1, 2, 2], "float32")}, {"k": 1}, both)
    ties = np.array([[1, 2, 2], [4, 4, 1]], "float32")
    for op in ("arg_max", "arg_min"):
        yield case(op, {"X": ties}, {"axis": 1}, ["Out"])
        yield case(op, {"X": ties}, {"axis": -1, "keepdims": True}, ["Out"])
        yield case(op, {"X": ties}, {"axis": 0, "dtype": 2}, ["Out"])
        yield case(op, {"X": ties[0]}, {"axis": 0}, ["Out"])
    ties = np.array([[1, 3, 3, 2, 1]], "float32")
    yield case("argsort", {"X": ties}, {"axis": 1}, both, grads={"Out": count(1, 5)})
    yield case("argsort", {"X": ties}, {"axis": -1, "descending": True}, both)
    tall = {"X": np.array([[1, 3], [3, 2], [0, 2]], "float32")}
    down = {"axis": 0, "descending": True}
    yield case("argsort", tall, down, both, grads={"Out": count(3, 2)})


def embeddings():
    for sparse in (False, True):
        for padding in (-1, 1):
            attrs = {"padding_idx": padding, "is_sparse": sparse}
            x = {"W": count(4, 2), "Ids": ids(1, 3, 1).reshape(3, 1)}
            yield case("lookup_table", x, attrs, ["Out"], grads={"Out": count(3, 2)})
            x = {"W": count(4, 2), "Ids": ids(1, 3, 1, 0).reshape(2, 2)}
            d_out = {"Out": count(2, 2, 2)}
            yield case("lookup_table_v2", x, attrs, ["Out"], grads=d_out)
    x = {"W": count(4, 2), "Ids": ids(1, 3, 1, 0).reshape(2, 2, 1)}
    yield case("lookup_table", x, {}, ["Out"], grads={"Out": count(2, 2, 2)})
    for wrong in (4, -1):
        x = {"W": count(4, 2), "Ids": ids(1, wrong).reshape(2, 1)}
        yield case("lookup_table", x, {}, ["Out"])
    unknown = {"Ids": [-1, 1], "W": [4, 2]}
    yield case("lookup_table", x, {}, ["Out"], shapes=unknown, run=False)


if __name__ == "__main__":
    every = (shapes, levels, slices, joins, indices, orders, embeddings)
    cases = [c for family in every for c in family()]
    record(cases, os.path.join(HERE, "array_ops.json"))
