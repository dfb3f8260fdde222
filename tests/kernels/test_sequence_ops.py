"""The sequence ops against plain loops over sequences, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, output_lods, run_op, suite

from fluidx.kernels import InferError

ONE = [[0, 2, 5]]
HOLES = [[0, 0, 3, 3, 5]]
TWO = [[0, 1, 3], [0, 2, 2, 5]]
LEVELS = {"one": ONE, "holes": HOLES}


def _cut(x: Any, lod: Any) -> list[Any]:
    return [x[a:b] for a, b in pairwise(lod[-1])]


# ------------------------------------------------ convolutions


def _convolved(lod: Any) -> Callable[..., Any]:
    def expected(x: Any, a: Any) -> Any:
        length, start = a["contextLength"], a["contextStart"]
        above = max(0, -start)
        rows = []
        for part in _cut(x["X"], lod):
            for p in range(len(part)):
                window = []
                for q in range(p + start, p + start + length):
                    if 0 <= q < len(part):
                        window.append(part[q])
                    elif not a["paddingTrainable"]:
                        window.append(0 * x["X"][0])
                    else:
                        place = q if q < 0 else q - len(part)
                        window.append(x["PaddingData"][above + place])
                rows.append(np.concatenate(window) @ x["Filter"])
        return {"Out": np.array(rows)}

    return expected


def _conv(lod: Any, length: int, start: int, trained: bool, name: str) -> OpCase:
    above, below = max(0, -start), max(0, start + length - 1)
    x = {"X": normal(5, 2), "Filter": normal(2 * length, 3, seed=1)}
    if trained:
        x["PaddingData"] = normal(above + below, 2, seed=2)
    attrs = {
        "contextLength": length,
        "contextStart": start,
        "paddingTrainable": trained,
    }
    return OpCase("sequence_conv", x, attrs, _convolved(lod), name, lod={"X": lod})


def _looked_ahead(lod: Any) -> Callable[..., Any]:
    def expected(x: Any, a: Any) -> Any:
        weight = x["Filter"]
        parts = _cut(x["X"], lod) if lod else list(x["X"])
        made = []
        for part in parts:
            out = np.zeros_like(part)
            for t in range(len(part)):
                for j in range(min(len(weight), len(part) - t)):
                    out[t] += part[t + j] * weight[j]
            made.append(out)
        return {"Out": np.concatenate(made) if lod else np.stack(made)}

    return expected


CONVOLUTIONS = [
    _conv(lod, length, start, trained, f"{name}{length}{start}{trained}")
    for name, lod in LEVELS.items()
    for length, start in ((3, -1), (4, -3), (2, 1), (7, -3), (1, 0))
    for trained in (False, True)
    if not trained or start < 0
]
CONVOLUTIONS += [
    OpCase(
        "row_conv",
        {"X": normal(5, 2), "Filter": normal(size, 2, seed=1)},
        {},
        _looked_ahead(lod),
        f"{name}{size}",
        lod={"X": lod},
    )
    for name, lod in LEVELS.items()
    for size in (1, 3, 7)
]
CONVOLUTIONS.append(
    OpCase(
        "row_conv",
        {"X": normal(2, 4, 3), "Filter": normal(3, 3, seed=1)},
        {},
        _looked_ahead(None),
        "batch",
    )
)
test_convolutions = suite(CONVOLUTIONS)

# ------------------------------------------------ softmax, rows


def _softmax(part: Any) -> Any:
    e = np.exp(part - part.max(initial=-1e9))
    return e / e.sum()


def _each(lod: Any, fn: Any, slot: str = "Out") -> Any:
    def expected(x: Any, a: Any) -> Any:
        return {slot: np.concatenate([fn(part) for part in _cut(x["X"], lod)])}

    return expected


def _expanded(lod: Any, like: Any, level: int) -> Any:
    def expected(x: Any, a: Any) -> Any:
        parts = _cut(x["X"], lod) if lod else [row[None] for row in x["X"]]
        times = np.diff(like[level])
        made = [part for part, n in zip(parts, times) for _ in range(n)]
        return {"Out": np.concatenate(made)}

    return expected


ROWS = [
    OpCase(
        "sequence_softmax",
        {"X": normal(*shape)},
        {},
        _each(lod, _softmax),
        f"{name}{len(shape)}",
        lod={"X": lod},
    )
    for name, lod in (*LEVELS.items(), ("two", TWO))
    for shape in ((5, 1), (5,))
]
ROWS += [
    OpCase(
        "sequence_reverse",
        {"X": normal(5, 2)},
        {},
        _each(lod, lambda part: part[::-1], "Y"),
        name,
        lod={"X": lod},
    )
    for name, lod in LEVELS.items()
]
ROWS += [
    OpCase(
        "sequence_expand",
        {"X": normal(rows, 2), "Y": normal(5, 1)},
        {"ref_level": level},
        _expanded(lod, like, level),
        f"{rows}-{level}",
        lod={"X": lod, "Y": like},
        grad=["X"],
    )
    for rows, lod, like, level in (
        (2, None, ONE, -1),
        (4, None, HOLES, 0),
        (2, None, TWO, 0),
        (3, None, TWO, -1),
        (5, [[0, 2, 5]], ONE, 0),
        (5, HOLES, [[0, 1, 1, 3, 5]], 0),
    )
]
ROWS += [
    OpCase(
        "sequence_expand_as",
        {"X": normal(len(lod[0]) - 1, 2), "Y": normal(5, 1)},
        {},
        _expanded(None, lod, 0),
        name,
        lod={"X": None, "Y": lod},
        grad=["X"],
    )
    for name, lod in LEVELS.items()
]


def _concatenated(lods: Any) -> Any:
    def expected(x: Any, a: Any) -> Any:
        parts = zip(*(_cut(each, lod) for each, lod in zip(x["X"], lods)))
        return {"Out": np.concatenate([p for group in parts for p in group])}

    return expected


ROWS += [
    OpCase(
        "sequence_concat",
        {"X": [normal(5, 2), normal(3, 2, seed=1), normal(5, 2, seed=2)]},
        {},
        _concatenated([one, other, one]),
        name,
        lod={"X": [one, other, one]},
    )
    for name, one, other in (
        ("one", ONE, [[0, 1, 3]]),
        ("holes", HOLES, [[0, 1, 1, 1, 3]]),
    )
]


def _sliced(lod: Any) -> Any:
    def expected(x: Any, a: Any) -> Any:
        pairs = zip(x["Offset"].reshape(-1), x["Length"].reshape(-1))
        parts = zip(_cut(x["X"], lod), pairs)
        return {"Out": np.concatenate([p[o : o + n] for p, (o, n) in parts])}

    return expected


ROWS += [
    OpCase(
        "sequence_slice",
        {
            "X": normal(5, 2),
            "Offset": np.array(offset).reshape(-1, 1),
            "Length": np.array(length).reshape(-1, 1),
        },
        {},
        _sliced(lod),
        f"{len(offset)}{sum(length)}",
        lod={"X": lod, "Offset": None, "Length": None},
        infer=False,  # the reference infers the rows of X
    )
    for lod, offset, length in (
        (ONE, (1, 0), (1, 2)),
        (HOLES, (0, 1, 0, 0), (0, 2, 0, 1)),
        (ONE, (0, 0), (0, 0)),
    )
]
ROWS += [
    OpCase(
        "sequence_reshape",
        {"X": normal(6, 2)},
        {"new_dim": width},
        lambda x, a: {"Out": x["X"].reshape(-1, a["new_dim"])},
        str(width),
        lod={"X": [[0, 2, 2, 6]]},
    )
    for width in (4, 1, 2)
]


def _scattered(x: Any, a: Any) -> Any:
    out = x["X"].copy()
    row = np.repeat([0, 1], [2, 3])
    np.add.at(out, (row, x["Ids"].reshape(-1)), x["Updates"].reshape(-1))
    return {"Out": out}


ROWS.append(
    OpCase(
        "sequence_scatter",
        {
            "X": normal(2, 6),
            "Ids": np.array([[0], [2], [5], [1], [5]]),
            "Updates": normal(5, 1, seed=1),
        },
        {},
        _scattered,
        lod={"X": None, "Ids": ONE, "Updates": ONE},
    )
)
test_rows = suite(ROWS)

# ------------------------------------------------ padding, masks, ids, LoD


def _padded(lod: Any) -> Any:
    def expected(x: Any, a: Any) -> Any:
        parts = _cut(x["X"], lod)
        lengths = [len(p) for p in parts]
        width = max(lengths) if a["padded_length"] < 0 else a["padded_length"]
        out = np.empty((len(parts), width, *x["X"].shape[1:]))
        out[...] = x["PadValue"]
        for row, part in zip(out, parts):
            row[: len(part)] = part
        return {"Out": out, "Length": np.array(lengths)}

    return expected


def _unpadded(x: Any, a: Any) -> Any:
    rows = [row[:n] for row, n in zip(x["X"], x["Length"])]
    return {"Out": np.concatenate(rows).reshape(-1, *(x["X"].shape[2:] or (1,)))}


PADS = [
    OpCase(
        "sequence_pad",
        {"X": normal(5, 2), "PadValue": pad},
        {"padded_length": length},
        _padded(lod),
        f"{name}{length}{pad.size}",
        lod={"X": lod, "PadValue": None},
        infer=length > 0,  # the reference infers an unknown length as 1
        weights=["Out"],
    )
    for name, lod in LEVELS.items()
    for length in (-1, 4)
    for pad in (normal(1, seed=3), normal(2, seed=3))
]
PADS += [
    OpCase(
        "sequence_unpad",
        {"X": normal(2, 4, *tail), "Length": np.array(lengths)},
        {},
        _unpadded,
        f"{tail}{lengths}",
    )
    for tail in ((), (2,), (2, 3))
    for lengths in ([2, 3], [0, 4], [4, 0])
]
PADS += [
    OpCase(
        "sequence_mask",
        {"X": x, **({"MaxLenTensor": np.array([5], "i4")} if given else {})},
        {"maxlen": maxlen, "out_dtype": dtype},
        lambda x, a, n=(5 if given else maxlen if maxlen > 0 else 4): {
            "Y": x["X"][..., None] > np.arange(n)
        },
        f"{maxlen}{dtype}{given}",
    )
    for x in (np.array([1, 4, 0]), np.array([[2], [4]]))
    for maxlen, dtype, given in ((-1, 3, False), (3, 5, False), (-1, 0, True))
]


def _windows(lod: Any) -> Any:
    def expected(x: Any, a: Any) -> Any:
        width, pad = a["win_size"], a["pad_value"]
        rows = []
        for part in _cut(x["X"].reshape(-1), lod):
            tall = [*part.tolist(), *[pad] * width]
            rows += [tall[i : i + width] for i in range(len(part))]
        return {"Out": np.array(rows)}

    return expected


PADS += [
    OpCase(
        "sequence_enumerate",
        {"X": integers(5, 1, high=9)},
        {"win_size": width, "pad_value": 7},
        _windows(lod),
        f"{name}{width}",
        lod={"X": lod},
    )
    for name, lod in LEVELS.items()
    for width in (2, 4)
]
PADS.append(
    OpCase(
        "sequence_erase",
        {"X": np.array([[3], [1], [4], [1], [5]])},
        {"tokens": [1, 5]},
        {"Out": np.array([[3], [4]])},
        lod={"X": ONE},
        infer=False,  # how many stay is not known
    )
)
PADS.append(
    OpCase(
        "hash",
        {"X": np.array([[3], [1]])},
        {"num_hash": 1, "mod_by": 1000},
        {"Out": np.array([[[465]], [[269]]])},  # the reference's
    )
)
PADS.append(
    OpCase(
        "lod_reset",
        {"X": normal(5, 2)},
        {"target_lod": [0, 1, 5]},
        lambda x, a: {"Out": x["X"]},
    )
)
test_paddings_and_ids = suite(PADS)


def test_no_sequence_has_a_row() -> None:
    x, lod = np.zeros((0, 2), "f4"), {"X": [[0, 0, 0]]}
    weight = np.ones((6, 3), "f4")
    attrs = {"contextLength": 3, "contextStart": -1}
    given = {"X": x, "Filter": weight}
    assert run_op("sequence_conv", given, attrs, lod=lod)["Out"].shape == (0, 3)
    assert run_op("sequence_reverse", {"X": x}, {}, lod=lod)["Y"].shape == (0, 2)
    flat = run_op("sequence_softmax", {"X": x[:, :1]}, {}, lod=lod)["Out"]
    assert flat.shape == (0, 1)
    given = {"X": x, "PadValue": np.ones(1, "f4")}
    padded = run_op("sequence_pad", given, {"padded_length": 2}, lod=lod)
    assert padded["Out"].tolist() == np.ones((2, 2, 2)).tolist()


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "lod", "message"),
    [
        (
            "sequence_conv",
            {"X": normal(5, 2), "Filter": normal(2, 3)},
            {"contextLength": 1},
            {"X": TWO},
            "sequence_conv: takes one level of sequences, the LoD of X has 2",
        ),
        ("sequence_reverse", {"X": normal(5, 2)}, {}, {}, "X has no LoD"),
        (
            "sequence_concat",
            {"X": [normal(5, 2), normal(3, 2)]},
            {},
            {"X": [ONE, [[0, 1, 2, 3]]]},
            r"the inputs have \[2, 3\] sequences",
        ),
        (
            "sequence_slice",
            {
                "X": normal(5, 2),
                "Offset": np.array([[0], [2]]),
                "Length": np.array([[1], [2]]),
            },
            {},
            {"X": ONE},
            "2 rows from 2 on are not in sequence 1, which has 3",
        ),
        (
            "sequence_pad",
            {"X": normal(5, 2), "PadValue": normal(1)},
            {"padded_length": 2},
            {"X": ONE},
            "padded_length is 2, a sequence has 3 rows",
        ),
        (
            "lod_reset",
            {"X": normal(5, 2)},
            {"target_lod": [0, 4]},
            {},
            "the LoD of X ends at 4, X has 5 rows",
        ),
    ],
)
def test_errors_name_the_op_and_what_came(
    op: str, inputs: Any, attrs: Any, lod: Any, message: str
) -> None:
    with pytest.raises((ValueError, InferError), match=message):
        run_op(op, inputs, attrs, lod=lod)


def test_lod_of_concatenated_parts() -> None:
    parts = {"X": [normal(5, 2), normal(3, 2)]}
    lods = {"X": [TWO, [[0, 2], [0, 1, 3]]]}
    found = output_lods("concat", lods, parts, {"axis": 0})
    assert found == {"Out": [[0, 1, 3, 5], [0, 2, 2, 5, 6, 8]]}
    lods = {"X": [ONE, None]}
    assert output_lods("concat", lods, parts, {"axis": 1}) == {"Out": ONE}
