"""What the reference makes of the ops on sequences, and of LoD through other ops."""

import os
import sys

import numpy as np
from array_ops import case, count
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))
ONE = [[0, 2, 5]]
HOLES = [[0, 0, 3, 3, 5]]
TWO = [[0, 1, 3], [0, 2, 2, 5]]


def seq(data, lod):
    return {"data": np.asarray(data), "lod": lod}


def numbers(*shape):
    """Distinct numbers, neither sorted nor round."""
    size = int(np.prod(shape))
    return (np.arange(size) * 7 % 11 - 4.5).reshape(shape).astype("float32") / 4


def ids(*values):
    return np.array(values, "int64").reshape(-1, 1)


def whole(*values):
    return np.array(values, "int64")


def convolutions():
    for lod in (ONE, HOLES, TWO):
        for length, start in ((3, -1), (2, 0), (2, -1), (3, 1), (1, 0), (4, -3)):
            x = {"X": seq(numbers(5, 2), lod), "Filter": numbers(length * 2, 3)}
            attrs = {"contextLength": length, "contextStart": start}
            attrs["contextStride"] = 1
            yield case("sequence_conv", x, attrs, ["Out"], grads={"Out": count(5, 3)})
    attrs = {"contextLength": 3, "contextStart": -2, "contextStride": 1}
    x = {"X": seq(numbers(5, 2), ONE), "Filter": numbers(6, 3)}
    padded = dict(x, PaddingData=numbers(2, 2) + 1)
    trained = dict(attrs, paddingTrainable=True)
    yield case("sequence_conv", padded, trained, ["Out"], grads={"Out": count(5, 3)})
    bad = dict(x, Filter=numbers(4, 3))
    yield case("sequence_conv", bad, attrs, ["Out"])
    yield case("sequence_conv", x, dict(attrs, contextStride=2), ["Out"])
    plain = dict(x, X=numbers(5, 2))
    yield case("sequence_conv", plain, attrs, ["Out"])
    for lod in (ONE, [[0, 1, 5]]):  # an empty sequence is too much for the reference
        x = {"X": seq(numbers(5, 2), lod), "Filter": numbers(3, 2)}
        yield case("row_conv", x, {}, ["Out"], grads={"Out": count(5, 2)})
    x = {"X": numbers(2, 4, 2), "Filter": numbers(3, 2)}
    yield case("row_conv", x, {}, ["Out"], grads={"Out": count(2, 4, 2)})


def softmaxes():
    for lod in (ONE, HOLES, TWO):
        for shape in ((5, 1), (5,)):
            x = {"X": seq(numbers(*shape), lod)}
            d_out = {"Out": count(*shape)}
            yield case("sequence_softmax", x, {}, ["Out"], grads=d_out)
    yield case("sequence_softmax", {"X": seq(numbers(5, 2), ONE)}, {}, ["Out"])


def expansions():
    op = "sequence_expand"
    x, y = numbers(2, 2), numbers(5, 1)
    pairs = [
        (x, y, ONE, -1, 5),
        (numbers(4, 2), y, HOLES, -1, 5),
        (x, y, TWO, 0, 3),
        (numbers(3, 2), y, TWO, 1, 5),
        (numbers(3, 2), y, TWO, -1, 5),
        (seq(numbers(5, 2), ONE), y, ONE, 0, 13),
        (seq(numbers(4, 1), [[0, 2, 4]]), y, [[0, 2, 3], [0, 1, 3, 5]], 0, 6),
        (seq(numbers(5, 1), HOLES), y, [[0, 1, 1, 3, 5]], -1, 4),
        (seq(numbers(3, 1), [[0, 1, 3]]), y, [[0, 0, 5]], -1, 10),
        (seq(numbers(3, 1), [[0, 1, 3]]), y, [[0, 0, 1, 5]], -1, 1),
    ]
    for data, like, lod, level, rows in pairs:
        given = {"X": data, "Y": seq(like, lod)}
        width = (data["data"] if isinstance(data, dict) else data).shape[1]
        attrs = {"ref_level": level}
        yield case(op, given, attrs, ["Out"], grads={"Out": count(rows, width)})
    yield case(op, {"X": x, "Y": seq(y, ONE)}, {"ref_level": 1}, ["Out"])
    yield case(op, {"X": x, "Y": y}, {}, ["Out"])
    op = "sequence_expand_as"
    for data, lod in ((x, ONE), (numbers(4, 2), HOLES), (numbers(3, 2), TWO)):
        for given in (data, seq(data, [list(range(len(data) + 1))])):
            pair = {"X": given, "Y": seq(y, lod)}
            yield case(op, pair, {}, ["Out"], grads={"Out": count(5, 2)})
    yield case(op, {"X": numbers(3, 2), "Y": seq(y, ONE)}, {}, ["Out"])


def moves():
    for lod in (ONE, HOLES, TWO):
        x = {"X": seq(numbers(5, 2), lod)}
        d_y = {"Y": seq(count(5, 2), lod)}
        yield case("sequence_reverse", x, {}, ["Y"], grads=d_y)
    op = "sequence_concat"
    for one, other in (
        (ONE, [[0, 1, 3]]),
        (HOLES, [[0, 1, 1, 1, 3]]),
        (ONE, [[0, 1, 2, 3]]),
    ):
        x = {"X": [seq(numbers(5, 2), one), seq(numbers(3, 2) + 9, other)]}
        yield case(op, x, {}, ["Out"], grads={"Out": count(8, 2)})
    yield case(op, {"X": [numbers(5, 2), numbers(3, 2)]}, {}, ["Out"])
    op = "sequence_slice"
    for lod, offset, length in (
        (ONE, (0, 1), (1, 2)),
        (ONE, (1, 0), (1, 3)),
        (HOLES, (0, 1, 0, 0), (0, 2, 0, 1)),
        (ONE, (0, 1), (1, 0)),
        (ONE, (0, 1), (1, 3)),
        (ONE, (0, -1), (1, 1)),
        (TWO, (0, 0, 1), (1, 0, 2)),
        (ONE, (0,), (1,)),
    ):
        x = {"X": seq(numbers(5, 2), lod), "Offset": ids(*offset)}
        x["Length"] = ids(*length)
        d_out = {"Out": count(max(sum(length), 1), 2)}
        yield case(op, x, {}, ["Out"], grads=d_out)
    op = "sequence_reshape"
    for lod, width in (([[0, 2, 6]], 4), ([[0, 2, 6]], 1), ([[0, 0, 6]], 4)):
        x = {"X": seq(numbers(6, 2), lod)}
        d_out = {"Out": count(12 // width, width)}
        yield case(op, x, {"new_dim": width}, ["Out"], grads=d_out)
    for lod in ([[0, 1, 6]], [[0, 1, 2], [0, 2, 6]]):
        yield case(op, {"X": seq(numbers(6, 2), lod)}, {"new_dim": 4}, ["Out"])


def paddings():
    op, two = "sequence_pad", ["Out", "Length"]
    zero, vector = np.array([9], "float32"), np.array([8, 9], "float32")
    for lod in (ONE, HOLES, TWO):
        for length, pad in ((-1, zero), (4, zero), (4, vector), (2, zero)):
            x = {"X": seq(numbers(5, 2), lod), "PadValue": pad}
            shape = (len(lod[-1]) - 1, 3 if length < 0 else length, 2)
            d_out = {"Out": count(*shape)}
            yield case(op, x, {"padded_length": length}, two, grads=d_out)
    x = {"X": seq(numbers(5, 2, 2), ONE), "PadValue": numbers(2, 2)}
    yield case(op, x, {}, two, grads={"Out": count(2, 3, 2, 2)})
    x = {"X": seq(numbers(5), ONE), "PadValue": zero}
    yield case(op, x, {}, two)
    yield case(op, {"X": numbers(5, 2), "PadValue": zero}, {}, two)
    op = "sequence_unpad"
    for length in (whole(2, 3), whole(0, 4), whole(2, 5), whole(1, 2, 1)):
        x = {"X": numbers(2, 4, 2), "Length": length}
        lod = [[0, *np.cumsum(length).tolist()]]
        d_out = {"Out": seq(count(int(length.sum()), 2), lod)}
        yield case(op, x, {}, ["Out"], grads=d_out)
        yield case(op, x, {}, ["Out"])
    x = {"X": numbers(2, 4), "Length": whole(2, 3)}
    yield case(op, x, {}, ["Out"])
    yield case(op, x, {}, ["Out"], grads={"Out": seq(count(5, 1), ONE)})
    x = {"X": numbers(2, 4, 2), "Length": ids(2, 3)}
    yield case(op, x, {}, ["Out"])
    op = "sequence_mask"
    for attrs in (
        {"maxlen": -1, "out_dtype": 3},
        {"maxlen": 4, "out_dtype": 5},
        {"maxlen": 2, "out_dtype": 2},
        {"maxlen": 4, "out_dtype": 0},
        {"maxlen": 4, "out_dtype": 6},
    ):
        for lengths in (whole(1, 3, 0), ids(2, 4), whole(1, 2).astype("int32")):
            yield case(op, {"X": lengths}, attrs, ["Y"])
    x = {"X": whole(1, 3), "MaxLenTensor": np.array([5], "int32")}
    yield case(op, x, {"maxlen": -1, "out_dtype": 3}, ["Y"])
    attrs = {"maxlen": 3, "out_dtype": 3}
    yield case(op, {"X": seq(ids(1, 3), [[0, 1, 2]])}, attrs, ["Y"])


def words():
    data = ids(3, 1, 4, 1, 5)
    op = "sequence_enumerate"
    for lod in (ONE, HOLES, TWO):
        for width in (1, 2, 3, 6):
            attrs = {"win_size": width, "pad_value": 7}
            yield case(op, {"X": seq(data, lod)}, attrs, ["Out"])
    small = data.astype("int32")
    yield case(op, {"X": seq(small, ONE)}, {"win_size": 2}, ["Out"])
    yield case(op, {"X": seq(data.reshape(-1), ONE)}, {"win_size": 2}, ["Out"])
    yield case("sequence_erase", {"X": seq(data, ONE)}, {"tokens": [1, 5]}, ["Out"])
    yield case("sequence_erase", {"X": seq(data, TWO)}, {"tokens": [1, 5]}, ["Out"])
    x = {"X": numbers(2, 6), "Ids": seq(ids(0, 2, 5, 1, 3), ONE)}
    x["Updates"] = seq(numbers(5, 1), ONE)
    yield case("sequence_scatter", x, {}, ["Out"], grads={"Out": count(2, 6)})
    for data in (ids(3, 1, 4, 1, 5), whole(3, 1, 4, 9, 5, 2).reshape(3, 2)):
        for attrs in ({"num_hash": 1, "mod_by": 1000}, {"num_hash": 4, "mod_by": 97}):
            yield case("hash", {"X": data}, attrs, ["Out"])
    yield case("hash", {"X": seq(ids(3, 1, 4, 1, 5), ONE)}, {"mod_by": 1000}, ["Out"])
    yield case("hash", {"X": ids(3, 1).astype("int32")}, {"mod_by": 1000}, ["Out"])
    wide = (np.arange(64) ** 3).reshape(2, 32)
    for width in (3, 4, 5, 6, 8, 12, 16, 29, 30, 32):
        x = {"X": np.ascontiguousarray(wide[:, :width])}
        yield case("hash", x, {"num_hash": 2, "mod_by": 100000007}, ["Out"])


def resets():
    op, x = "lod_reset", numbers(5, 2)
    d_out = {"Out": count(5, 2)}
    for data in (x, seq(x, ONE), seq(x, TWO)):
        for append in (False, True):
            attrs = {"target_lod": [0, 1, 4, 5], "append": append}
            yield case(op, {"X": data}, attrs, ["Out"], grads=d_out)
    yield case(op, {"X": x, "Y": seq(numbers(5, 1), TWO)}, {}, ["Out"], grads=d_out)
    level = np.array([0, 1, 4, 5], "int32")
    yield case(op, {"X": seq(x, ONE), "Y": level}, {}, ["Out"], grads=d_out)
    yield case(op, {"X": seq(x, ONE), "Y": seq(level, [[0, 1, 4]])}, {}, ["Out"])
    for data in (x, seq(x, ONE)):
        for like in (seq(x, ONE), seq(x, TWO), level):
            yield case(op, {"X": data, "Y": like}, {"append": True}, ["Out"])
    for level in ([0, 1, 4], [1, 5], [0, 4, 3, 5], [0], []):
        yield case(op, {"X": x}, {"target_lod": level}, ["Out"])


def others():
    """LoD through ops that are not about sequences."""
    x, y = seq(numbers(5, 2), ONE), seq(numbers(5, 2), HOLES)
    plain = numbers(5, 2)
    for op in ("elementwise_add", "elementwise_mul", "less_than"):
        for a, b in ((x, plain), (plain, x), (x, y)):
            yield case(op, {"X": a, "Y": b}, {}, ["Out"])
    for many in ([x, y], [plain, x], [x, plain], [plain, x, y]):
        yield case("sum", {"X": many}, {}, ["Out"])
        for axis in (0, 1, -1):
            yield case("concat", {"X": many}, {"axis": axis}, ["Out"])
    two = [seq(numbers(5, 2), TWO), seq(numbers(3, 2), [[0, 2], [0, 1, 3]])]
    yield case("concat", {"X": two}, {"axis": 0}, ["Out"])
    yield case("concat", {"X": [two[0], x]}, {"axis": 0}, ["Out"])
    weight = numbers(2, 3)
    yield case("mul", {"X": x, "Y": weight}, {}, ["Out"])
    table = {"W": numbers(6, 2), "Ids": seq(ids(3, 1, 4, 1, 5), TWO)}
    yield case("lookup_table", table, {}, ["Out"])
    table = dict(table, Ids=seq(ids(3, 1, 4, 1, 5).reshape(-1), ONE))
    yield case("lookup_table_v2", table, {}, ["Out"])
    for op in ("relu", "softmax", "scale", "cast"):
        attrs = {"in_dtype": 5, "out_dtype": 6} if op == "cast" else {}
        yield case(op, {"X": x}, attrs, ["Out"])


def unknown():
    """What is inferred where the number of rows is not known."""
    x, shape = seq(numbers(5, 2), ONE), {"X": [-1, 2]}

    def told(op, inputs, attrs, outs=("Out",), **shapes):
        sizes = dict(shape, **shapes)
        return case(op, inputs, attrs, list(outs), shapes=sizes, run=False)

    yield told("sequence_conv", {"X": x, "Filter": numbers(2, 3)}, {"contextLength": 1})
    yield told("row_conv", {"X": x, "Filter": numbers(2, 2)}, {})
    yield told("sequence_concat", {"X": [x, x]}, {})
    yield told("sequence_reverse", {"X": x}, {}, ["Y"])
    yield told("sequence_reshape", {"X": x}, {"new_dim": 4})
    yield told("sequence_pad", {"X": x, "PadValue": numbers(1)}, {}, ["Out", "Length"])
    pair = {"X": numbers(2, 4, 2), "Length": whole(2, 3)}
    yield told("sequence_unpad", pair, {}, X=[-1, 4, 2], Length=[-1])
    pair = {"X": numbers(2, 4, 2), "Length": whole(2, 3)}
    yield told("sequence_unpad", pair, {}, X=[-1, -1, 2], Length=[-1])
    attrs = {"maxlen": 3, "out_dtype": 3}
    yield told("sequence_mask", {"X": whole(2, 3)}, attrs, ["Y"], X=[-1])
    words = {"X": seq(ids(1, 2, 3), [[0, 1, 3]])}
    yield told("sequence_enumerate", words, {"win_size": 2}, X=[-1, 1])
    yield told("hash", words, {}, X=[-1, 1])
    cut = {"X": x, "Offset": ids(0, 0), "Length": ids(1, 1)}
    yield told("sequence_slice", cut, {})
    yield told("lod_reset", {"X": x}, {"target_lod": [0, 5]})
    pair = {"X": numbers(2, 2), "Y": seq(numbers(5, 1), TWO)}
    yield told("sequence_expand", pair, {"ref_level": 0})
    yield told("sequence_expand_as", pair, {})
    yield told("sequence_softmax", {"X": seq(numbers(5, 1), TWO)}, {}, X=[-1, 1])


FAMILIES = {
    "sequence_conv": (convolutions, softmaxes),
    "sequence_moves": (expansions, moves),
    "sequence_pads": (paddings, words),
    "sequence_lods": (resets, others, unknown),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES:
        families = FAMILIES[name]
        cases = [c for family in families for c in family()]
        record(cases, os.path.join(HERE, name + ".json"))
