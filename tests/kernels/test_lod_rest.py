"""im2sequence, edit_distance, tensor_array_to_tensor, sample_logits by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, output_lods, run_op, suite

from fluidx.kernels import sample_logits as module

# ------------------------------------------------ im2sequence


def _windows(x: Any, a: Any) -> Any:
    top, left, bottom, right = a["paddings"]
    padded = np.pad(x["X"], ((0, 0), (0, 0), (top, bottom), (left, right)))
    (kh, kw), (sh, sw) = a["kernels"], a["strides"]
    rows = [
        image[:, i : i + kh, j : j + kw].ravel()
        for image in padded
        for i in range(0, padded.shape[2] - kh + 1, sh)
        for j in range(0, padded.shape[3] - kw + 1, sw)
    ]
    return {"Out": np.array(rows)}


def _images(name: str, kernel: Any, stride: Any, pads: Any) -> OpCase:
    attrs = {"kernels": kernel, "strides": stride, "paddings": pads}
    x = {"X": normal(2, 3, 5, 6)}
    # the number of rows is inferred as that of images
    return OpCase("im2sequence", x, attrs, _windows, name, infer=False)


test_windows = suite(
    [
        _images("plain", [2, 3], [1, 1], [0, 0, 0, 0]),
        _images("strides", [2, 2], [2, 3], [0, 0, 0, 0]),
        _images("pads", [3, 2], [2, 1], [1, 0, 2, 1]),
        _images("whole", [5, 1], [1, 1], [0, 0, 0, 0]),
    ]
)


IDS = {"Hyps": np.array([[1], [2], [3]]), "Refs": np.array([[3], [2], [4], [5]])}
PAIRS = {"Hyps": [[0, 3, 3]], "Refs": [[0, 2, 4]]}
PARTS = {"X": [normal(2, 3), normal(2, 1, seed=1)]}
CHOSEN = {
    "Logits": normal(2, 5),
    "Labels": np.array([[1], [4]]),
    "CustomizedSamples": np.array([[1, 0, 1], [4, 2, 2]]),
    "CustomizedProbabilities": np.full((2, 3), 0.25),
}


def _corrected(x: Any, a: Any) -> Any:
    logits = np.take_along_axis(x["Logits"], x["CustomizedSamples"], 1)
    return {"SampledLogits": logits - np.log(0.25)}


test_others = suite(
    [
        OpCase(
            "edit_distance",
            IDS,
            {"normalized": True},
            {"Out": np.array([[1.0], [1.0]]), "SequenceNum": np.array([2])},
            lod=PAIRS,
            infer=False,  # declared as ids, as in the reference
        ),
        OpCase(
            "tensor_array_to_tensor",
            PARTS,
            {"axis": 1},
            {"Out": np.hstack(PARTS["X"]), "OutIndex": np.array([3, 1])},
            infer=False,  # of arrays: in the programs
            grad=(),
        ),
        OpCase(
            "sample_logits",
            CHOSEN,
            {
                "num_samples": 2,
                "use_customized_samples": True,
                "remove_accidental_hits": False,
            },
            _corrected,
            weights=["SampledLogits"],
        ),
    ]
)


def test_no_gradient_with_sizes() -> None:
    x = {"X": normal(2, 1, 3, 3), "Out@GRAD": normal(5, 4)}
    attrs = {"kernels": [2, 2]}
    with pytest.raises(ValueError, match="no gradient with sizes"):
        run_op("im2sequence_grad", x, attrs)


# ------------------------------------------------ edit_distance


def _edits(a: Any, b: Any) -> int:
    """Wagner and Fischer, row by row."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
    return row[-1]


@pytest.mark.parametrize("seed", range(8))
def test_distances_of_random_sequences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sides, lods, inputs = [], {}, {}
    for slot in ("Hyps", "Refs"):
        lengths = rng.integers(0, 12, 9)
        parts = [rng.integers(0, 4, n) for n in lengths]
        inputs[slot] = np.concatenate(parts).reshape(-1, 1)
        lods[slot] = [[0, *np.cumsum(lengths).tolist()]]
        sides.append(parts)
    made = run_op("edit_distance", inputs, {"normalized": False}, lod=lods)
    assert made["SequenceNum"].tolist() == [9]
    assert made["Out"].dtype == "float32"
    assert made["Out"].ravel().tolist() == [_edits(a, b) for a, b in zip(*sides)]


def test_padded_ids_behind_the_ends_do_not_count() -> None:
    rng = np.random.default_rng(3)
    hyps, refs = rng.integers(0, 3, (7, 9)), rng.integers(0, 3, (7, 5))
    m, n = rng.integers(0, 10, 7), rng.integers(1, 6, 7)
    x = {"Hyps": hyps, "Refs": refs, "HypsLength": m, "RefsLength": n}
    made = run_op("edit_distance", x, {"normalized": True})["Out"].ravel()
    wanted = [_edits(h[:i], r[:j]) / j for h, r, i, j in zip(hyps, refs, m, n)]
    np.testing.assert_allclose(made, wanted, 1e-6)


def test_lengths_must_fit() -> None:
    x = {"Hyps": np.zeros((2, 3), "i8"), "Refs": np.zeros((2, 3), "i8")}
    x |= {"HypsLength": np.array([1, 4]), "RefsLength": np.array([1, 1])}
    with pytest.raises(ValueError, match=r"HypsLength is \[1, 4\]"):
        run_op("edit_distance", x, {})


# ------------------------------------------------ arrays


def test_an_array_needs_all_its_elements() -> None:
    with pytest.raises(ValueError, match="nothing was written at index 1"):
        run_op("tensor_array_to_tensor", {"X": [np.ones(2), None]}, {"axis": 0})
    with pytest.raises(ValueError, match="no elements"):
        run_op("tensor_array_to_tensor", {"X": []}, {"axis": 0})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("stacks", [False, True])
def test_the_gradient_takes_apart_what_was_joined(axis: int, stacks: bool) -> None:
    parts = [normal(2, 3, seed=i) for i in range(3)]
    attrs = {"axis": axis, "use_stack": stacks}
    whole = run_op("tensor_array_to_tensor", {"X": parts}, attrs)["Out"]
    back = run_op(
        "tensor_array_to_tensor_grad", {"X": parts, "Out@GRAD": whole}, attrs
    )["X@GRAD"]
    assert len(back) == 3
    for one, other in zip(back, parts):
        np.testing.assert_array_equal(one, other)


# ------------------------------------------------ sample_logits


def test_samples_come_as_often_as_their_chances_say() -> None:
    """Over many runs a class is among the drawn ones as often as `_chances` has it."""
    rng = np.random.default_rng(5)
    seen, said, runs = np.zeros(12), np.zeros(12), 3000
    for _ in range(runs):
        drawn, tries = module._draw(rng, 4, 12)
        assert len(set(drawn.tolist())) == 4
        seen[drawn] += 1
        said += module._chances(np, np.arange(12), 12, tries, "f8")
    np.testing.assert_allclose(seen / runs, said / runs, atol=0.03)


def test_logits_lose_the_log_of_their_chance() -> None:
    x = {"Logits": normal(3, 20), "Labels": integers(3, 2, high=20)}
    attrs = {"num_samples": 6, "seed": 4, "remove_accidental_hits": True}
    made = run_op("sample_logits", x, attrs)
    samples, chances = made["Samples"], made["Probabilities"]
    np.testing.assert_array_equal(samples[:, :2], x["Labels"])
    assert (samples[0, 2:] == samples[1, 2:]).all()
    assert made["SampledLabels"].tolist() == [[0, 1]] * 3
    plain = np.take_along_axis(x["Logits"], samples, 1) - np.log(chances)
    hits = np.zeros((3, 8), bool)
    for row in range(3):
        hits[row, 2:] = np.isin(samples[row, 2:], samples[row, :2])
    np.testing.assert_allclose(made["SampledLogits"][~hits], plain[~hits], 1e-12)
    assert (made["SampledLogits"][hits] < -1e19).all()
    again = run_op("sample_logits", x, attrs)
    np.testing.assert_array_equal(again["Samples"], samples)


def test_gradients_of_a_class_drawn_twice_add_up() -> None:
    x = {
        "LogitsDim": np.zeros((1, 4, 0), "f4"),
        "LabelsDim": np.zeros((1, 1, 0), "i8"),
        "Samples": np.array([[1, 3, 1]]),
        "SampledLogits@GRAD": np.array([[1, 2, 4]], "f4"),
    }
    made = run_op("sample_logits_grad", x, {"num_samples": 2})
    assert made["Logits@GRAD"].tolist() == [[0, 5, 0, 2]]


def test_more_samples_than_classes() -> None:
    x = {"Logits": normal(1, 3), "Labels": np.array([[1]])}
    with pytest.raises(ValueError, match="num_samples is 4, there are 3 classes"):
        run_op("sample_logits", x, {"num_samples": 4})


def test_custom_samples_must_have_their_shape() -> None:
    x = {"Logits": normal(1, 3), "Labels": np.array([[1]])}
    x |= {"CustomizedSamples": np.array([[1, 2]]), "CustomizedProbabilities": 0.5}
    x["CustomizedProbabilities"] = np.full((1, 2), 0.5)
    attrs = {"num_samples": 2, "use_customized_samples": True}
    with pytest.raises(ValueError, match=r"must have shape \(1, 3\)"):
        run_op("sample_logits", x, attrs)


# ------------------------------------------------ reorder_lod_tensor_by_rank

TABLE = [(2, 3), (0, 2), (1, 1)]
RAMP = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("levels", "rows", "wanted"),
    [  # as the reference answered for lengths 2, 1, 3
        ([[0, 1, 4, 6]], [4, 5, 0, 1, 2, 3], [[0, 2, 3, 6]]),
        (
            [[0, 1, 3, 4], [0, 1, 4, 5, 6]],
            [5, 0, 1, 2, 3, 4],
            [[0, 1, 2, 4], [0, 1, 2, 5, 6]],
        ),
    ],
)
def test_sequences_by_rank(levels: Any, rows: list[int], wanted: Any) -> None:
    name, lod = "reorder_lod_tensor_by_rank", {"X": levels}
    x = {"X": RAMP, "RankTable": TABLE}
    made = run_op(name, x, {}, lod=lod)["Out"]
    np.testing.assert_array_equal(made, RAMP[rows])
    assert output_lods(name, lod, x, {})["Out"] == wanted
    back = {"X": made, "RankTable": TABLE}
    again = run_op(f"{name}_grad", back, {}, lod={"X": wanted})["Out"]
    np.testing.assert_array_equal(again, RAMP)
    assert output_lods(f"{name}_grad", {"X": wanted}, back, {})["Out"] == levels


test_rows_by_rank = suite(
    [
        OpCase(
            "reorder_lod_tensor_by_rank",
            {"X": RAMP[:3], "RankTable": TABLE},
            {},
            {"Out": RAMP[[2, 0, 1]]},
            infer=False,  # of a rank table: in programs
            grad=(),
            dtypes=("float64",),
            strict=False,
        )
    ]
)


def test_a_table_of_other_sequences() -> None:
    with pytest.raises(ValueError, match="X has 6 sequences, RankTable ranks 3"):
        run_op("reorder_lod_tensor_by_rank", {"X": RAMP, "RankTable": TABLE}, {})
