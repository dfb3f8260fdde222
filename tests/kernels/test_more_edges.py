"""Edges that the families' own cases leave out: nothing at all, and odd numbers.

A batch may hold a sequence without rows, or no row at all: shapes stay, values are
what is left of the sum, the padding or the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite

from fluidx.kernels import SelectedRows

NAN, INF = np.nan, np.inf
NONE = [[0, 0]]  # one sequence, without rows


def _rows(*width: int, dtype: str = "f8") -> np.ndarray:
    return np.zeros((0, *width), dtype)


def _of_nothing(op: str, out: Any, attrs: Any = None, **inputs: Any) -> OpCase:
    """A case whose sequences are empty: X, and what is named like Y or updates."""
    lod = {
        slot: [NONE] * len(value) if isinstance(value, list) else NONE
        for slot, value in inputs.items()
        if len(value if isinstance(value, np.ndarray) else value[0]) == 0
    }
    return OpCase(op, inputs, attrs or {}, out, "no-rows", lod=lod, infer=False)


SEQUENCES = [
    _of_nothing("sequence_concat", {"Out": _rows(2)}, X=[_rows(2), _rows(2)]),
    _of_nothing(
        "sequence_conv",
        {"Out": _rows(3)},
        {"contextLength": 3, "contextStart": -1},
        X=_rows(2),
        Filter=normal(6, 3),
    ),
    _of_nothing(
        "sequence_enumerate",
        {"Out": _rows(4, dtype="i8")},
        {"win_size": 4},
        X=_rows(1, dtype="i8"),
    ),
    _of_nothing(
        "sequence_erase",
        {"Out": _rows(1, dtype="i8")},
        {"tokens": [2]},
        X=_rows(1, dtype="i8"),
    ),
    _of_nothing("sequence_expand", {"Out": _rows(2)}, X=normal(1, 2), Y=_rows(1)),
    _of_nothing("sequence_expand_as", {"Out": _rows(2)}, X=normal(1, 2), Y=_rows(1)),
    _of_nothing(
        "sequence_pad",
        {"Out": np.full((1, 3, 2), 7.0), "Length": np.array([0])},
        {"padded_length": 3},
        X=_rows(2),
        PadValue=np.array([7.0]),
    ),
    *(
        _of_nothing(
            "sequence_pool",
            {"Out": np.full((1, 2), 5.0)},
            {"pooltype": kind, "pad_value": 5.0},
            X=_rows(2),
        )
        for kind in ("SUM", "AVERAGE", "SQRT", "MAX", "LAST", "FIRST")
    ),
    _of_nothing("sequence_reshape", {"Out": _rows(4)}, {"new_dim": 4}, X=_rows(2)),
    _of_nothing("sequence_reverse", {"Y": _rows(2)}, X=_rows(2)),
    _of_nothing(
        "sequence_scatter",
        {"Out": np.array([[1.0, 2.0, 3.0]])},
        X=np.array([[1.0, 2.0, 3.0]]),
        Ids=_rows(1, dtype="i8"),
        Updates=_rows(1),
    ),
    _of_nothing(
        "sequence_slice",
        {"Out": _rows(2)},
        X=_rows(2),
        Offset=np.array([[0]]),
        Length=np.array([[0]]),
    ),
    _of_nothing("sequence_softmax", {"Out": _rows(1)}, X=_rows(1)),
    _of_nothing("row_conv", {"Out": _rows(2)}, X=_rows(2), Filter=normal(3, 2)),
    # all of the other one is inserted
    OpCase(
        "edit_distance",
        {"Hyps": _rows(1, dtype="i8"), "Refs": np.array([[1], [2], [3]])},
        {},
        {"Out": np.array([[3.0]]), "SequenceNum": np.array([1])},
        "no-rows",
        lod={"Hyps": NONE, "Refs": [[0, 3]]},
        dtypes=["float32"],
        infer=False,  # declared with the shape of Hyps, as in the reference
    ),
    _of_nothing(
        "crf_decoding",
        {"ViterbiPath": _rows(1, dtype="i8")},
        Emission=_rows(3),
        Transition=normal(5, 3),
    ),
    # the only path, of no step, has all of the likelihood
    _of_nothing(
        "linear_chain_crf",
        {"LogLikelihood": np.zeros((1, 1))},
        Emission=_rows(3),
        Transition=normal(5, 3),
        Label=_rows(1, dtype="i8"),
    ),
]
test_empty_sequences = suite(SEQUENCES)


def _drawn(op: str, out: Any, attrs: Any = None, **inputs: Any) -> OpCase:
    return OpCase(
        op, inputs, attrs or {}, out, "no-rows", grad=(), infer=False, strict=False
    )


DRAWN = [
    _drawn("dropout", {"Out": _rows(3)}, {"dropout_prob": 0.5}, X=_rows(3)),
    _drawn(
        "dpsgd",
        {"ParamOut": _rows(2)},
        Param=_rows(2),
        Grad=_rows(2),
        LearningRate=np.array([0.1]),
    ),
    _drawn("sampling_id", {"Out": np.zeros(0, "i8")}, X=_rows(3)),
    _drawn(
        "nce",
        {"Cost": _rows(1)},
        {"num_total_classes": 5, "num_neg_samples": 2},
        Input=_rows(4),
        Label=_rows(1, dtype="i8"),
        Weight=normal(5, 4),
    ),
    _drawn(
        "sample_logits",
        {"SampledLogits": _rows(3), "SampledLabels": _rows(1, dtype="i8")},
        {"num_samples": 2},
        Logits=_rows(5),
        Labels=_rows(1, dtype="i8"),
    ),
    *(
        _drawn(
            f"{kind}_random_batch_size_like",
            {"Out": _rows(2)},
            {"shape": [-1, 2], "dtype": 5},
            Input=_rows(4, dtype="f4"),
        )
        for kind in ("gaussian", "uniform")
    ),
    _drawn(
        "random_crop",
        {"Out": _rows(2, 2)},
        {"shape": [2, 2]},
        X=_rows(4, 4),
        Seed=np.array([1]),
    ),
]
test_nothing_to_draw = suite(DRAWN)


def _odd() -> Iterator[tuple[str, np.ndarray]]:
    yield "odd", np.array([[1e9, NAN], [1e-9, INF], [1e9, -1e-9]])
    yield "integers", np.array([[5, 7], [1, 2], [3, 4]])


def _sparse() -> Iterator[OpCase]:
    """SelectedRows of rows 4, 1, 4 out of 6; and of none."""
    for name, value in _odd():
        x = SelectedRows(np.array([4, 1, 4]), value, 6)
        summed = np.zeros((6, 2), value.dtype)
        summed[1], summed[4] = value[1], value[0] + value[2]
        yield OpCase("merge_selected_rows", {"X": x}, {}, {"Out": summed}, name)
        yield OpCase(
            "get_tensor_from_selected_rows", {"X": x}, {}, {"Out": value}, name
        )
        yield OpCase(
            "split_selected_rows",
            {"X": x},
            {"height_sections": [2, 4]},
            {"Out": [summed[:2], summed[2:]]},
            name,
            out_counts={"Out": 2},
            grad=(),
        )
    x = SelectedRows(np.zeros(0, "i8"), _rows(2), 6)
    none = np.zeros((6, 2))
    yield OpCase("merge_selected_rows", {"X": x}, {}, {"Out": none}, "no-rows")
    yield OpCase(
        "get_tensor_from_selected_rows", {"X": x}, {}, {"Out": x.value}, "none"
    )
    yield OpCase(
        "split_selected_rows",
        {"X": x},
        {"height_sections": [2, 4]},
        {"Out": [none[:2], none[2:]]},
        "no-rows",
        out_counts={"Out": 2},
        grad=(),
    )


test_sparse_rows = suite(list(_sparse()))


def _bilinear(x: Any, attrs: Any) -> Any:
    made = np.zeros((len(x["X"]), len(x["Weight"])))
    for n in range(len(x["X"])):
        for k, weight in enumerate(x["Weight"]):
            for i, left in enumerate(x["X"][n]):
                for j, right in enumerate(x["Y"][n]):
                    made[n, k] += left * weight[i, j] * right
    return {"Out": made}


def _counted(start: float, end: float, step: float, values: Any, name: str) -> OpCase:
    inputs = {"Start": [start], "End": [end], "Step": [step]}
    given = {k: np.array(v, "f8") for k, v in inputs.items()}
    return OpCase("range", given, {}, {"Out": np.array(values)}, name, infer=False)


NUMBERS = [
    OpCase(
        "bilinear_tensor_product",
        {
            "X": np.array([[INF, 1.0], [1.0, 2.0], [NAN, 0.0]]),
            "Y": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            "Weight": np.arange(1.0, 9.0).reshape(2, 2, 2),
        },
        {},
        _bilinear,
        "nonfinite",
        grad=(),
    ),
    *(
        OpCase(
            f"elementwise_{op}",
            {"X": np.array([[7, 9], [8, 5]]), "Y": np.array([2, 4])},
            {"axis": -1},
            {"Out": np.array(out)},
            "last-axis",
        )
        for op, out in (("mod", [[1, 1], [0, 1]]), ("floordiv", [[3, 2], [4, 1]]))
    ),
    OpCase(
        "is_empty",
        {"X": np.array([1e9, 1e-9, NAN])},
        {},
        {"Out": np.array([False])},
        "odd",
    ),
    _counted(1e7, 1e7 + 3, 1.0, [1e7, 1e7 + 1, 1e7 + 2], "big"),
    _counted(0.0, 2.5e-9, 1e-9, [0.0, 1e-9, 2e-9], "tiny"),
    # the second one would be infinite; the reference leaves out the first one too
    _counted(0.0, 5.0, INF, [0.0], "nonfinite"),
    OpCase(
        "unique",
        {"X": np.array([1e9, 1e-9, 1e9])},
        {"dtype": 2},
        {"Out": np.array([1e9, 1e-9]), "Index": np.array([0, 1, 0])},
        "odd",
        infer=False,
    ),
    OpCase(
        "where",
        {
            "X": np.array([1, 2, 3]),
            "Y": np.array([7, 8, 9]),
            "Condition": np.array([True, False, True]),
        },
        {},
        {"Out": np.array([1, 8, 3])},
        "integers",
        grad=(),
    ),
    OpCase(
        "merge_lod_tensor",
        {
            "X": np.array([[0], [0], [0]]),
            "Mask": np.array([[True], [False], [True]]),
            "InTrue": np.array([[1], [2]]),
            "InFalse": np.array([[9]]),
        },
        {},
        {"Out": np.array([[1], [9], [2]])},
        "integers",
        grad=(),
        infer=False,
    ),
]
test_odd_numbers = suite(NUMBERS)


def _likelihood(emission: Any, transition: Any, label: Any) -> float:
    """-log P(label) of one sequence, over all paths by plain loops in log space."""
    start, end, steps = transition[0], transition[1], transition[2:]
    scores = start + emission[0]
    mine = start[label[0]] + emission[0][label[0]]
    for before, now, row in zip(label, label[1:], emission[1:]):
        mine += steps[before][now] + row[now]
        scores = np.array(
            [
                np.logaddexp.reduce(scores + steps[:, k]) + row[k]
                for k in range(len(row))
            ]
        )
    return float(np.logaddexp.reduce(scores + end) - mine - end[label[-1]])


CRF_TRANSITION = normal(4, 2)


def _crf(emission: list[list[float]], label: list[int], name: str) -> OpCase:
    rows, tags = np.array(emission), np.array(label)
    with np.errstate(invalid="ignore"):
        wanted = np.array([[_likelihood(rows, CRF_TRANSITION, tags)]])
    return OpCase(
        "linear_chain_crf",
        {
            "Emission": rows,
            "Transition": CRF_TRANSITION,
            "Label": tags.reshape(-1, 1),
        },
        {},
        {"LogLikelihood": wanted},
        name,
        rtol=1e-4,  # 2e6 leaves float32 few digits for the rest
        lod={"Emission": [[0, len(tags)]], "Label": [[0, len(tags)]]},
        grad=(),
        infer=False,
    )


test_crf = suite(
    [
        _crf([[2e6, 0], [0, 1.0]], [0, 1], "big"),
        _crf([[1e-9, 0], [0, 1.0]], [0, 1], "tiny"),
        _crf([[NAN, 0], [0, 1.0]], [0, 1], "nonfinite"),
    ]
)


@pytest.mark.parametrize(
    ("start", "end", "step"), [(0.0, INF, 1.0), (NAN, 1.0, 1.0), (0.0, 1.0, NAN)]
)
def test_a_range_without_end_is_refused(start: float, end: float, step: float) -> None:
    inputs = {"Start": [start], "End": [end], "Step": [step]}
    with pytest.raises(ValueError, match="range: no way"):
        run_op("range", {k: np.array(v) for k, v in inputs.items()}, {})
