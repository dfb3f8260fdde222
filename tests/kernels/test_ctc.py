"""CTC answers as the reference does, and as a sum over all paths."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, output_lods, run_op, suite
from replay_oracle import oracle_suite

test_loss = oracle_suite("ctc_ops", "warpctc")
test_align = oracle_suite("ctc_ops", "ctc_align")


def _collapsed(path: Any, blank: int) -> list[int]:
    return [k for k, _ in groupby(path) if k != blank]


def _by_paths(x: Any, label: Any, blank: int) -> float:
    """-log of the sum over all paths that collapse to the label; 0 without one."""
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    total = sum(
        np.prod(p[np.arange(len(x)), list(path)])
        for path in product(range(x.shape[1]), repeat=len(x))
        if _collapsed(path, blank) == list(label)
    )
    return float(-np.log(total)) if len(x) and total else 0.0


def _loss(times: Any, counts: Any) -> Any:
    def expected(inputs: Any, attrs: Any) -> Any:
        x, ids = inputs["Logits"], inputs["Label"]
        made = []
        for b, (t, n) in enumerate(zip(times, counts)):
            if x.ndim == 3:
                made.append((x[:t, b], ids[b, :n]))
            else:
                at, first = sum(times[:b]), sum(counts[:b])
                made.append((x[at : at + t], ids[first : first + n, 0]))
        found = [_by_paths(*pair, attrs["blank"]) for pair in made]
        return {"Loss": np.array(found).reshape(-1, 1)}

    return expected


def _case(times: Any, ids: Any, blank: int = 0, scale: float = 1.0, **case: Any) -> Any:
    counts = [len(i) for i in ids]
    flat = np.array([i for each in ids for i in each], "i8").reshape(-1, 1)
    x = {"Logits": normal(sum(times), 3) * scale, "Label": flat}
    ends = [[0, *np.cumsum(n).tolist()] for n in (times, counts)]
    lod = {"Logits": [ends[0]], "Label": [ends[1]]}
    attrs = {"blank": blank}
    return OpCase("warpctc", x, attrs, _loss(times, counts), lod=lod, **case)


def _padded(times: Any, ids: Any, **case: Any) -> Any:
    counts = [len(i) for i in ids]
    label = np.zeros((len(ids), max(counts, default=0)), "i8")
    for row, each in zip(label, ids):
        row[: len(each)] = each
    x = {
        "Logits": normal(max(times, default=0), len(times), 3),
        "Label": label,
        "LogitsLength": np.array(times, "i8"),
        "LabelLength": np.array(counts, "i8"),
    }
    return OpCase("warpctc", x, {"blank": 0}, _loss(times, counts), **case)


def _holding(value: float) -> Any:
    """The second sequence holds this: the first is not touched."""
    case = _case([3, 2], [[1], [2]], grad=(), infer=False)
    case.inputs["Logits"][3, 1] = value
    case.expected = None
    return case


def _far() -> Any:
    """Logits so far apart that one path is left: it costs what it lies behind."""
    case = _case([2], [[1, 2]], grad=(), infer=False)
    case.inputs["Logits"] = np.array([[0.0, 1e7, 0.0], [3e7, 0.0, 1e7]])
    case.expected = {"Loss": np.array([[2e7]])}
    return case


FAR: Any = {"grad": (), "infer": False}
test_by_paths = suite(
    [
        _case([4, 3], [[1, 2], [2]], infer=False),
        _case([5], [[1, 1]], infer=False),
        _case([4, 2], [[1, 2, 1], [2]], blank=0, infer=False),
        _case([4, 4], [[0, 1], [1, 0]], blank=2, infer=False),
        _case([3, 2], [[], [1]], infer=False),
        _case([3, 1], [[1, 1, 2], [2]], infer=False),
        _case([0, 3], [[1], [1]], infer=False),
        _case([0], [[]], **FAR),
        _case([], [], **FAR),
        _case([3], [[1]], scale=1e-9, **FAR),
        _holding(-np.inf),
        _far(),
        _padded([4, 3], [[1, 2], [2]], infer=False),
        _padded([3, 1, 2], [[], [1], [2, 2]], infer=False),
        _padded([0, 0], [[1], [2]], **FAR),
    ]
)


def test_far_logits_lose_nothing() -> None:
    x = np.array([[0, 1e6, 0], [0, 0, 1e6]], "f4")
    lod = {"Logits": [[0, 2]], "Label": [[0, 2]]}
    for ids, wanted in (([1, 2], 0), ([2, 1], 2e6)):
        inputs = {"Logits": x, "Label": np.array(ids).reshape(-1, 1)}
        made = run_op("warpctc", inputs, {"blank": 0}, lod=lod)
        np.testing.assert_allclose(made["Loss"], [[wanted]], 1e-6)
        assert np.isfinite(made["WarpCTCGrad"]).all()


def test_what_is_no_number_is_seen_in_its_own_loss_only() -> None:
    x = normal(5, 3).astype("f4")
    x[3, 1] = np.nan
    inputs = {"Logits": x, "Label": np.array([[1], [2]])}
    lod = {"Logits": [[0, 3, 5]], "Label": [[0, 1, 2]]}
    with np.errstate(invalid="ignore"):  # as when a program runs
        made = run_op("warpctc", inputs, {"blank": 0}, lod=lod)
    assert np.isnan(made["Loss"]).ravel().tolist() == [False, True]
    assert np.isfinite(made["WarpCTCGrad"][:, 0]).all()


def test_a_class_that_never_comes() -> None:
    """-inf: as if it were not there."""
    x = normal(4, 4)
    inputs = {"Logits": x, "Label": np.array([[1], [2]])}
    lod = {"Logits": [[0, 4]], "Label": [[0, 2]]}
    x[:, 3] = -np.inf
    made = run_op("warpctc", inputs, {"blank": 0}, lod=lod)
    less = run_op("warpctc", inputs | {"Logits": x[:, :3]}, {"blank": 0}, lod=lod)
    np.testing.assert_allclose(made["Loss"], less["Loss"], 1e-12)
    np.testing.assert_allclose(made["WarpCTCGrad"][..., :3], less["WarpCTCGrad"])
    inputs["Label"][1] = 3  # cannot be
    made = run_op("warpctc", inputs, {"blank": 0}, lod=lod)
    assert made["Loss"].tolist() == [[0.0]]
    assert not made["WarpCTCGrad"].any()


@pytest.mark.parametrize(
    ("change", "levels", "error", "told"),
    [
        ({"Label": np.array([[4], [1]])}, None, IndexError, "id of Label 4 is not in"),
        ({}, [[0, 1, 2, 2]], ValueError, "2 sequences in Logits, 3 labels"),
        ({}, [[0, 3]], ValueError, "the LoD of Label ends at 3"),
    ],
)
def test_labels_that_do_not_fit(
    change: Any, levels: Any, error: Any, told: str
) -> None:
    inputs = {"Logits": normal(5, 4), "Label": np.array([[1], [2]]), **change}
    lod = {"Logits": [[0, 3, 5]], "Label": levels or [[0, 1, 2]]}
    with pytest.raises(error, match=told):
        run_op("warpctc", inputs, {"blank": 0}, lod=lod)


def test_lengths_that_do_not_fit() -> None:
    case = _padded([4, 3], [[1, 2], [2]])
    case.inputs["LogitsLength"] = np.array([4, 5])
    with pytest.raises(ValueError, match=r"LogitsLength is \[4, 5\], not all within"):
        run_op("warpctc", case.inputs, case.attrs)


# ------------------------------------------------ ctc_align


def _aligned(inputs: Any, attrs: Any) -> Any:
    x, lengths = inputs["Input"], inputs["InputLength"].reshape(-1)
    out, counts = np.full_like(x, attrs["padding_value"]), []
    for row, n, to in zip(x, lengths, out):
        merged = (
            [k for k, _ in groupby(row[:n])] if attrs["merge_repeated"] else row[:n]
        )
        left = [k for k in merged if k != attrs["blank"]]
        to[: len(left)] = left
        counts.append(len(left))
    return {"Output": out, "OutputLength": np.array(counts).reshape(-1, 1)}


def _align_case(rows: int, width: int, **attrs: Any) -> Any:
    rng = np.random.default_rng(rows)
    x = rng.integers(0, 3, (rows, width))
    length = rng.integers(0, width + 1, (rows, 1))
    return OpCase("ctc_align", {"Input": x, "InputLength": length}, attrs, _aligned)


test_align_by_loops = suite(
    [
        _align_case(5, 9),
        _align_case(4, 7, merge_repeated=False, padding_value=-1),
        _align_case(6, 1, blank=2),
        _align_case(0, 4),
        _align_case(3, 0),
    ]
)


def test_nothing_left_is_one_row() -> None:
    """As in the reference: -1, which no sequence holds."""
    inputs, lod = {"Input": np.zeros((3, 1), "i8")}, {"Input": [[0, 2, 3]]}
    made = run_op("ctc_align", inputs, {}, lod=lod)["Output"]
    assert made.tolist() == [[-1]]
    assert output_lods("ctc_align", lod, inputs, {"blank": 0, "merge_repeated": True})[
        "Output"
    ] == [[0, 0, 0]]
    # and edit_distance takes it as no id at all
    refs = {"Hyps": made, "Refs": np.array([[1], [2], [3]])}
    levels = {"Hyps": [[0, 0, 0]], "Refs": [[0, 1, 3]]}
    found = run_op("edit_distance", refs, {}, lod=levels)
    assert found["Out"].tolist() == [[1.0], [2.0]]
