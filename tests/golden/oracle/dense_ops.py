"""What the reference makes of ops that make, move, pick and multiply: dense_*.json."""

import os

import numpy as np
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))


def count(*shape):
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype("float32")


def floats(*values):
    return np.array(values, "float32")


def ids(*values):
    return np.array(values, "int64")


def small(*values):
    return np.array(values, "int32")


def column(*values):
    return small(*values).reshape(-1, 1)


def rows(array):
    return {"data": array, "lod": [[0, 1, array.shape[0]]]}


def case(op, inputs, attrs=None, outs=("Out",), **more):
    """`run` False: inference only, with the compile-time `shapes`."""
    if "shapes" in more:
        more.setdefault("run", False)
    outs = outs if isinstance(outs, dict) else list(outs)
    return dict(op=op, inputs=inputs, attrs=attrs or {}, outs=outs, **more)


def products():
    m = {"Input": count(2, 3), "X": count(2, 2), "Y": count(2, 3)}
    scaled = {"Alpha": 2.0, "Beta": 3.0}
    yield case("addmm", m, scaled, grads={"Out": count(2, 3)})
    yield case("addmm", m, shapes={"Input": [-1, 3], "X": [-1, 2]})
    for base in (count(1, 3), count(2, 1), count(3)):
        yield case("addmm", dict(m, Input=base), grads={"Out": count(2, 3)})
    yield case("addmm", dict(m, Input=rows(count(2, 3))))
    pair = {"X": count(2, 2, 3), "Y": count(2, 3, 1)}
    yield case("bmm", pair, grads={"Out": count(2, 2, 1)})
    yield case("bmm", dict(pair, Y=count(1, 3, 1)))
    yield case("bmm", dict(pair, X=rows(count(2, 2, 3))))
    yield case("bmm", pair, shapes={"X": [-1, 2, 3], "Y": [-1, 3, 1]})
    for shape in ((3,), (2, 3), (2, 2, 3)):
        pair = {"X": count(*shape), "Y": count(*shape)}
        yield case("dot", pair, grads={"Out": count(*shape[:-1], 1)})
    yield case("dot", {"X": count(2, 3), "Y": count(3)})
    yield case("dot", {"X": ids(1, 2), "Y": ids(3, 4)})
    yield case("dot", {"X": rows(count(2, 3)), "Y": count(2, 3)})
    pair = {"X": count(2, 3), "Y": count(2, 3)}
    yield case("dot", pair, shapes={"X": [-1, 3], "Y": [-1, 3]})
    pair = {"X": count(2, 2), "Y": count(3)}
    yield case("kron", pair, grads={"Out": count(2, 6)})
    yield case("kron", pair, shapes={"X": [-1, 2]})
    pair = {"X": count(2), "Y": count(2, 1, 2)}
    yield case("kron", pair, grads={"Out": count(2, 1, 4)})
    yield case("kron", {"X": ids(1, 2), "Y": ids(3, 4)})
    for shape, dim in (((3, 3), 9), ((2, 3), 9), ((3, 2), -2), ((2, 3), 0)):
        pair = {"X": count(*shape), "Y": count(*shape)[::-1].copy()}
        yield case("cross", pair, {"dim": dim}, grads={"Out": count(*shape)})
    yield case("cross", {"X": count(2, 2), "Y": count(2, 2)})
    yield case("cross", {"X": rows(count(2, 3)), "Y": count(2, 3)}, {"dim": 3})
    yield case("cross", {"X": rows(count(2, 3)), "Y": count(2, 3)})
    pair = {"X": count(2, 3), "Y": count(2, 3)}
    yield case("cross", pair, shapes={"X": [-1, 3], "Y": [-1, 3]})
    yield case("cross", {k: v.astype("int32") for k, v in pair.items()})


def scans():
    pair = {"X": count(2, 3), "Y": count(3)[::-1].copy()}
    far = {"X": floats(3, -3, 1), "Y": floats(0, 0, 0)}
    for p in (2.0, 0.0, 1.0, 3.0, float("inf"), float("-inf")):
        yield case("dist", pair, {"p": p}, grads={"Out": floats(2)})
        yield case("dist", far, {"p": p}, grads={"Out": floats(2)})
    zero = {"X": floats(3, 0, 1), "Y": floats(0, 0, 0)}
    yield case("dist", zero, {"p": 1.5}, grads={"Out": floats(2)})
    yield case("dist", {"X": count(2, 1), "Y": count(2, 3)}, grads={"Out": floats(2)})
    yield case("dist", {"X": count(2, 3), "Y": count(2)})
    d_out = {"Out": count(2, 3)}
    for exclusive in (False, True):
        for reverse in (False, True):
            ways = {"exclusive": exclusive, "reverse": reverse}
            yield case("cumsum", {"X": count(2, 3)}, ways, grads=d_out)
            x = {"X": count(2, 3)}
            yield case("cumsum", x, dict(ways, axis=0), grads=d_out)
    yield case("cumsum", {"X": count(2, 3)}, {"axis": 2})
    yield case("cumsum", {"X": ids(1, 2, 3)}, {"reverse": True})
    yield case("cumsum", {"X": np.zeros((0, 3), "float32")})
    yield case("cumsum", {"X": rows(count(2, 3))})
    near = count(3) + np.float32(1e-6)
    yield case("allclose", {"Input": count(3), "Other": near})
    yield case("allclose", {"Input": floats(1, 2), "Other": floats(1, 2.1)})
    wide = {"rtol": 0.1}
    yield case("allclose", {"Input": floats(1, 2), "Other": floats(1, 2.1)}, wide)
    wide = {"rtol": 0.0, "atol": 0.2}
    yield case("allclose", {"Input": floats(1, 2), "Other": floats(1, 2.1)}, wide)
    holes = {"Input": floats(np.nan, 1), "Other": floats(np.nan, 1)}
    for equal in (False, True):
        yield case("allclose", holes, {"equal_nan": equal})
    yield case("allclose", {"Input": count(2, 3), "Other": count(3)})


def diagonals():
    yield case("diag", {"Diagonal": count(3)})
    yield case("diag", {"Diagonal": ids(1, 2)})
    yield case("diag", {"Diagonal": count(2, 2)})
    yield case("diag", {"Diagonal": count(3)}, shapes={"Diagonal": [-1]})
    x = {"Input": count(2, 2)}
    yield case("diag_embed", x)
    yield case("diag_embed", {"Input": rows(count(2, 2))})
    for offset, dim1, dim2 in ((1, 0, 2), (0, 2, 0), (1, 2, 0), (-1, 2, 0), (0, 1, 1)):
        yield case("diag_embed", x, {"offset": offset, "dim1": dim1, "dim2": dim2})
    yield case("diag_embed", {"Input": count(2)}, {"offset": -1})
    yield case("diag_embed", x, shapes={"Input": [-1, 2]})
    yield case("eye", {}, {"num_rows": 2})
    yield case("eye", {}, {"num_rows": 2, "num_columns": 3, "dtype": 2})
    yield case("eye", {}, {"num_rows": 2, "num_columns": -2})
    yield case("eye", {}, {"num_rows": 0})
    for shape in ((2, 3), (2, 3, 4)):
        for offset in (0, 1, -1, 5):
            for dims in ((-2, -1), (0, len(shape) - 1), (1, 0)):
                gone = {d % len(shape) for d in dims}
                rest = [n for i, n in enumerate(shape) if i not in gone]
                attrs = {"offset": offset, "dim1": dims[0], "dim2": dims[1]}
                d_out = {"Out": count(*(rest or (1,)))}
                yield case("trace", {"Input": count(*shape)}, attrs, grads=d_out)
    yield case("trace", {"Input": ids(1, 2, 3, 4).reshape(2, 2)})
    yield case("trace", {"Input": count(2, 3)}, {"dim1": 1, "dim2": -1})
    yield case("trace", {"Input": count(2, 3, 4)}, shapes={"Input": [-1, 3, 4]})
    yield case("trace", {"Input": rows(count(2, 3, 3))})
    for lower in (True, False):
        for diagonal in (0, 1, -2, 7):
            attrs = {"lower": lower, "diagonal": diagonal}
            x = {"X": count(3, 4)}
            yield case("tril_triu", x, attrs, grads={"Out": count(3, 4)})
    yield case("tril_triu", {"X": count(2, 2, 2)}, {"lower": True, "diagonal": -1})
    yield case("tril_triu", {"X": column(1, 2)}, {"lower": False})
    yield case("tril_triu", {"X": count(3)}, {"lower": True})
    yield case("tril_triu", {"X": rows(count(2, 3))}, {"lower": True})
    for stop, num in ((3.0, 5), (-1.0, 3), (3.0, 1), (3.0, 0)):
        ends = {"Start": floats(1), "Stop": floats(stop), "Num": small(num)}
        yield case("linspace", ends)
    yield case("size", {"Input": count(2, 3)})
    yield case("size", {"Input": count(2, 3)}, shapes={"Input": [-1, 3]})


def paddings():
    x = {"X": count(2, 2)}
    around = {"paddings": [0, 1, 2, 0], "pad_value": 7.0}
    yield case("pad", x, around, grads={"Out": count(3, 4)})
    yield case("pad", x, around, shapes={"X": [-1, 2]})
    yield case("pad", {"X": rows(count(2, 2))}, {"paddings": [0, 0, 2, 0]})
    yield case("pad", {"X": ids(1, 2)}, {"paddings": [1, 1]})
    yield case("pad", x, {"paddings": [0, 1, 2]})
    yield case("pad", x, {"paddings": [0, -1, 0, 0]})
    pair = {"X": count(3, 3), "Y": count(2, 1)}
    filled = {"pad_value": -1.0}
    yield case("pad_constant_like", pair, filled, grads={"Out": count(3, 3)})
    yield case("pad_constant_like", dict(pair, Y=count(4, 1)))
    yield case("pad_constant_like", dict(pair, Y=count(2)))
    yield case("pad_constant_like", pair, shapes={"X": [-1, 3], "Y": [-1, 1]})
    pair = {"X": rows(count(2, 3)), "Y": rows(count(2, 1))}
    yield case("pad_constant_like", pair)
    planes = {
        "NCHW": ((1, 2, 2, 3), (1, 2, 4, 5)),
        "NHWC": ((1, 2, 3, 2), (1, 4, 5, 2)),
    }
    for mode in ("constant", "reflect", "edge"):
        for layout, (shape, after) in planes.items():
            attrs = {"mode": mode, "data_format": layout, "pad_value": 9.0}
            attrs["paddings"] = [1, 1, 2, 0]
            x = {"X": count(*shape)}
            yield case("pad2d", x, attrs, grads={"Out": count(*after)})
    x = {"X": count(1, 1, 2, 2)}
    far = {"paddings": [2, 0, 0, 0], "mode": "reflect"}
    yield case("pad2d", x, far, grads={"Out": count(1, 1, 4, 2)})
    cut = {"paddings": [0, -1, 1, 0]}
    yield case("pad2d", x, cut, grads={"Out": count(1, 1, 1, 3)})
    yield case("pad2d", x, {"paddings": [1, 1, 2, 0]}, shapes={"X": [-1, 1, 2, -1]})
    yield case("pad2d", x, {"paddings": [1, 1]})
    yield case("pad2d", {"X": count(2, 2)}, {"paddings": [1, 1, 1, 1]})
    yield case(
        "pad2d", {"X": small(1, 2).reshape(1, 1, 1, 2)}, {"paddings": [1, 0, 0, 1]}
    )
    yield case("pad2d", {"X": rows(count(2, 1, 2, 2))}, {"paddings": [1, 1, 2, 0]})


def crops():
    x = {"X": count(3, 4)}
    window = {"shape": [2, 2], "offsets": [1, 1]}
    for op in ("crop", "crop_tensor"):
        yield case(op, x, window, grads={"Out": count(2, 2)})
        yield case(op, x, {"shape": [2, 2]})
        yield case(op, {"X": rows(count(3, 4))}, {"shape": [3, 2], "offsets": [0, 1]})
        more = dict(x, Offsets=small(1, 2))
        yield case(op, more, {"shape": [2, 2]}, grads={"Out": count(2, 2)})
    yield case("crop", dict(x, Y=count(2, 3)))
    yield case("crop", dict(x, Y=count(2, 3)), {"offsets": [0, 1]})
    yield case("crop", x, {"shape": [-1, 2], "offsets": [0, 1]})
    yield case("crop", x, {"shape": [2, 2]}, shapes={"X": [-1, 4]})
    more = dict(x, Y=count(2, 3))
    yield case("crop", more, shapes={"X": [-1, 4], "Y": [-1, 3]})
    yield case("crop_tensor", x)
    for shape in ([-1, 2], [0, 2]):
        yield case("crop_tensor", x, {"shape": shape, "offsets": [1, 1]})
    yield case("crop_tensor", x, {"shape": [2, 2], "offsets": [2, 1]})
    more = dict(x, Shape=small(2, 3), Offsets=small(1, 0))
    yield case("crop_tensor", more, grads={"Out": count(2, 3)})
    yield case("crop_tensor", more, shapes={"X": [-1, 4]})
    each = [small(2), small(3)], [small(1), small(0)]
    more = dict(x, ShapeTensor=each[0], OffsetsTensor=each[1])
    plain = {"shape": [-1, 3], "offsets": [-1, 0]}
    yield case("crop_tensor", more, plain, grads={"Out": count(2, 3)})
    for shape in ([-1, 2], [2, -1]):
        attrs = {"shape": shape, "offsets": [1, 1]}
        yield case("crop_tensor", x, attrs, shapes={"X": [-1, 4]})


def picks():
    x = {"X": count(3, 2), "Index": ids(2, 0, 2)}
    yield case("index_select", x, grads={"Out": count(3, 2)})
    wide = {"X": count(2, 3), "Index": small(2, 2)}
    for dim in (1, -1):
        yield case("index_select", wide, {"dim": dim}, grads={"Out": count(2, 2)})
    for wrong in (small(3), ids(-1)):
        yield case("index_select", dict(wide, Index=wrong), {"dim": 1})
    yield case("index_select", dict(wide, Index=column(1)), {"dim": 1})
    yield case("index_select", wide, {"dim": 2})
    yield case("index_select", dict(wide, Index=ids()))
    yield case("index_select", dict(wide, X=rows(count(2, 3))), {"dim": 1})
    yield case("index_select", wide, {"dim": 1}, shapes={"X": [-1, 3], "Index": [-1]})
    x = {"X": count(2, 3), "Index": ids(2, 0, 1, 1).reshape(2, 2)}
    yield case("index_sample", x, grads={"Out": count(2, 2)})
    yield case("index_sample", dict(x, Index=small(2, 0, 1, 1).reshape(2, 2)))
    yield case("index_sample", dict(x, Index=small(3, 0, 1, 1).reshape(2, 2)))
    yield case("index_sample", dict(x, Index=column(0, 1, 1)))
    yield case("index_sample", dict(x, Index=small(0, 1, 1)))
    yield case("index_sample", dict(x, X=rows(count(2, 3))))
    yield case("index_sample", x, shapes={"X": [-1, 3], "Index": [-1, 2]})
    x = {"X": count(2, 3, 2), "Index": ids(1, 0, 0, 2).reshape(2, 2)}
    yield case("gather_nd", x, grads={"Out": count(2, 2)})
    yield case("gather_nd", dict(x, Index=column(1, 1)), grads={"Out": count(2, 3, 2)})
    flat = {"X": count(2, 3), "Index": small(1, 1, 0, 2).reshape(2, 1, 2)}
    yield case("gather_nd", flat, grads={"Out": count(2, 1)})
    yield case("gather_nd", dict(flat, Index=np.zeros((3, 0), "int64")))
    for wrong in (ids(1, 1), ids(2, 1).reshape(1, 2), ids(1, 1, 1).reshape(1, 3)):
        yield case("gather_nd", dict(flat, Index=wrong))
    yield case("gather_nd", {"X": rows(count(2, 3)), "Index": column(1, 0)})
    yield case("gather_nd", {"X": count(2, 3), "Index": rows(column(1, 0))})
    yield case("gather_nd", x, shapes={"X": [-1, 3, 4], "Index": [-1, 1]})
    x = {"X": count(3, 2), "Index": column(2, 0, 2), "Updates": count(3, 2)}
    d_out = {"Out": count(3, 2)}
    yield case("scatter_nd_add", x, grads=d_out)
    two = {"Index": small(2, 0, 2, 0).reshape(2, 2), "Updates": count(2)}
    yield case("scatter_nd_add", dict(x, **two), grads=d_out)
    none = {"Index": np.zeros((2, 0), "int32"), "Updates": count(2, 3, 2)}
    yield case("scatter_nd_add", dict(x, **none), grads=d_out)
    yield case("scatter_nd_add", dict(x, Index=ids(2, 0), Updates=count(1)))
    wrong = {"Index": ids(2, 0).reshape(1, 2), "Updates": count(2)}
    yield case("scatter_nd_add", dict(x, **wrong))
    whole = {"X": small(1, 2, 3), "Index": column(2), "Updates": small(4)}
    yield case("scatter_nd_add", whole)
    yield case("scatter_nd_add", dict(x, X=rows(count(3, 2))))


def choices():
    pair = [count(2, 2), -count(2, 2)]
    x = {"Ids": column(1, 0), "X": pair}
    yield case("multiplex", x, grads={"Out": count(2, 2)})
    yield case("multiplex", dict(x, Ids=small(1, 0)))
    yield case("multiplex", dict(x, Ids=column(2, 0)))
    yield case("multiplex", dict(x, Ids=column(0, 0), X=pair[:1]))
    yield case("multiplex", dict(x, X=[rows(count(2, 2)), -count(2, 2)]))
    yield case("multiplex", x, shapes={"X": [-1, 2], "Ids": [-1, 1]})
    mask = np.array([True, False])
    x = {"Condition": mask, "X": count(2), "Y": -count(2)}
    yield case("where", x, grads={"Out": count(2)})
    yield case("where", dict(x, X=rows(count(2))))
    yield case("where", dict(x, X=count(2, 2), Y=count(2, 2)))
    grid = np.array([[True, False], [True, True]])
    for given in (grid, ~mask & mask, small(0, 3, 1), floats(0, 1), rows(mask)):
        yield case("where_index", {"Condition": given})
    yield case("where_index", {"Condition": grid}, shapes={"Condition": [-1, 2]})
    many = {"unique": ["Out", "Index"], "unique_with_counts": ["Out", "Index", "Count"]}
    for op, outs in many.items():
        for dtype in (2, 3):
            yield case(op, {"X": small(2, 3, 3, 1, 5, 3)}, {"dtype": dtype}, outs)
        yield case(op, {"X": count(3)}, {"dtype": 3}, outs)
        yield case(op, {"X": count(2, 2)}, {"dtype": 3}, outs)
        yield case(op, {"X": floats(2, np.nan, np.nan)}, {"dtype": 3}, outs)
        yield case(op, {"X": rows(ids(1, 2))}, {"dtype": 3}, outs)
        yield case(op, {"X": ids(1, 2)}, {"dtype": 3}, outs, shapes={"X": [-1]})
    half = {"index_num": 20, "nshards": 2, "shard_id": 1}
    third = {"index_num": 19, "nshards": 3, "shard_id": 2, "ignore_value": -7}
    yield case("shard_index", {"X": ids(0, 5, 19, 10).reshape(4, 1)}, half)
    yield case("shard_index", {"X": ids(0, 5, 18, 10).reshape(4, 1)}, third)
    for wrong in (column(20), column(-1), small(1, 2)):
        yield case("shard_index", {"X": wrong}, half)
    yield case("shard_index", {"X": column(1)}, dict(half, shard_id=2))
    yield case("shard_index", {"X": rows(column(1, 2))}, half)
    counts = ["OutMeanIou", "OutWrong", "OutCorrect"]
    x = {"Predictions": small(0, 1, 2, 1), "Labels": small(0, 2, 2, 1)}
    before = {"InWrongs": [small(1, 0, 0), small(1, 0, 0)], "InMeanIou": [floats(0.5)]}
    before["InCorrects"] = [small(0, 0, 3)]
    for classes in (3, 4):
        yield case("mean_iou", x, {"num_classes": classes}, counts)
    yield case("mean_iou", dict(x, **before), {"num_classes": 3}, counts)
    yield case("sampling_id", {"X": floats(0.5, 0.5)})
    late = {"X": floats(0.5, 0.3, 0.1, 0.0, 0.0, 1.0).reshape(2, 3)}
    yield case("sampling_id", late, {"min": 0.95, "max": 0.99})
    yield case("randint", {}, {"low": 3, "high": 3, "shape": [2]})
    yield case("randint", {}, {"low": 3, "high": 4, "shape": [2]})
    yield case("randperm", {}, {"n": -1})
    yield case("randperm", {}, {"n": 1, "dtype": 2})


def moves():
    x = {"X": count(2, 3)}
    d_out = {"Out": count(2, 3)}
    yield case("flip", x, {"dims": [0, -1]}, grads=d_out)
    for dims in ([0, 0], [2]):
        yield case("flip", x, {"dims": dims})
    yield case("flip", {"X": rows(count(2, 3))}, {"dims": [1]})
    for shifts, dims in (([1], [0]), ([1, -2], [0, 1]), ([7], [-1]), ([1, 1], [0, 0])):
        yield case("roll", x, {"shifts": shifts, "dims": dims}, grads=d_out)
    for shifts, dims in (([1], []), ([1, 2], [0]), ([1], [3])):
        yield case("roll", x, {"shifts": shifts, "dims": dims})
    yield case("roll", {"X": rows(count(2, 3))}, {"shifts": [1], "dims": [1]})
    yield case("expand_as", {"X": count(2), "target_tensor": count(4, 2)})
    yield case("meshgrid", {"X": [count(2), count(3)]}, {}, {"Out": 2})
    three = [count(1), count(3), -count(2)]
    yield case("meshgrid", {"X": three}, {}, {"Out": 3})
    yield case("meshgrid", {"X": three[:2]}, {}, {"Out": 2}, shapes={"X": [-1]})
    yield case("meshgrid", {"X": [count(2, 1), count(3, 1)]}, {}, {"Out": 2})
    yield case("meshgrid", {"X": [count(2)]}, {}, {"Out": 1})
    for axis, parts in ((0, 2), (-1, 3)):
        yield case("unbind", x, {"axis": axis}, {"Out": parts})
    yield case("unbind", {"X": rows(count(2, 3))}, {"axis": 1}, {"Out": 3})
    yield case("unbind", x, {"axis": 1}, {"Out": 3}, shapes={"X": [-1, 3]})


def images():
    block = {"blocksize": 2}
    x = {"X": count(1, 4, 2, 2)}
    yield case("space_to_depth", x, block, grads={"Out": count(1, 16, 1, 1)})
    yield case("space_to_depth", x, block, shapes={"X": [-1, 4, 2, 2]})
    yield case("space_to_depth", {"X": count(1, 8, 4, 2)}, block)
    yield case("space_to_depth", {"X": count(1, 2, 2, 2)}, block)
    yield case("space_to_depth", {"X": count(1, 4, 3, 2)}, block)
    yield case("space_to_depth", x, {"blocksize": 1})
    yield case("space_to_depth", {"X": rows(count(2, 4, 2, 2))}, block)
    twice = {"upscale_factor": 2}
    x = {"X": count(1, 8, 1, 2)}
    yield case("pixel_shuffle", x, twice, grads={"Out": count(1, 2, 2, 4)})
    yield case("pixel_shuffle", {"X": count(1, 6, 1, 2)}, twice)
    yield case("pixel_shuffle", {"X": rows(count(2, 8, 1, 2))}, twice)
    x = {"X": count(1, 6, 1, 2)}
    for group in (2, 3, 1):  # its gradient is none where group * group != channels
        yield case("shuffle_channel", x, {"group": group})
    square = {"X": count(1, 4, 1, 2)}
    d_out = {"Out": count(1, 4, 1, 2)}
    yield case("shuffle_channel", square, {"group": 2}, grads=d_out)
    yield case("shuffle_channel", {"X": rows(count(2, 6, 1, 2))}, {"group": 2})
    x = {"X": count(4, 4, 1, 2)}
    frames = {"seg_num": 2, "shift_ratio": 0.25}
    yield case("temporal_shift", x, frames, grads={"Out": count(4, 4, 1, 2)})
    yield case("temporal_shift", x, frames, shapes={"X": [-1, 4, 1, 2]})
    more = {"seg_num": 3, "shift_ratio": 0.4}
    x = {"X": count(3, 3, 1, 1)}
    yield case("temporal_shift", x, more, grads={"Out": count(3, 3, 1, 1)})
    yield case("temporal_shift", x, {"seg_num": 2})
    yield case("temporal_shift", x, {"seg_num": 3, "shift_ratio": 0.6})
    yield case("temporal_shift", {"X": rows(count(4, 4, 1, 1))}, frames)
    plain = {"kernel_sizes": [2, 2], "strides": [1, 1], "paddings": [0, 0, 0, 0]}
    plain["dilations"] = [1, 1]
    x = {"X": count(1, 2, 3, 3)}
    yield case("unfold", x, plain, ["Y"], grads={"Y": count(1, 8, 4)})
    yield case("unfold", x, plain, ["Y"], shapes={"X": [-1, 2, 3, 3]})
    yield case("unfold", {"X": rows(count(2, 2, 3, 3))}, plain, ["Y"])
    odd = {"kernel_sizes": [2, 3], "strides": [2, 1], "paddings": [1, 0, 0, 2]}
    odd["dilations"] = [1, 2]
    x = {"X": count(1, 1, 3, 4)}
    yield case("unfold", x, odd, ["Y"], grads={"Y": count(1, 6, 4)})
    tall = dict(odd, kernel_sizes=[4, 3], paddings=[0, 0, 0, 0])
    yield case("unfold", x, tall, ["Y"])
    x = {"X": count(1, 4, 1, 2)}
    pairs = {"groups": 2}
    yield case("maxout", x, pairs, grads={"Out": count(1, 2, 1, 2)})
    ties = {"X": np.ones((1, 4, 1, 1), "float32")}
    yield case("maxout", ties, pairs, grads={"Out": count(1, 2, 1, 1)})
    last = {"X": count(1, 1, 2, 4)}
    yield case(
        "maxout", last, {"groups": 2, "axis": 3}, grads={"Out": count(1, 1, 2, 2)}
    )
    yield case("maxout", x, pairs, shapes={"X": [-1, 4, -1, 2]})
    for groups in (3, 1):
        yield case("maxout", x, {"groups": groups})
    yield case("maxout", {"X": rows(count(2, 4, 1, 1))}, pairs)


if __name__ == "__main__":
    files = {
        "dense_math": (products, scans, diagonals),
        "dense_moves": (paddings, crops, moves, images),
        "dense_picks": (picks, choices),
    }
    for name, families in files.items():
        cases = [c for family in families for c in family()]
        record(cases, os.path.join(HERE, name + ".json"))
