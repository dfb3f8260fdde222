"""detection_map: the reference's answers, and cases by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, output_lods, run_op, suite
from replay_oracle import oracle_suite

test_against_reference = oracle_suite("detection_map")

BOX, FAR = [0.1, 0.1, 0.5, 0.5], [0.6, 0.6, 0.9, 0.9]
ATTRS = {"class_num": 3}


def _rows(*rows: list[float], width: int = 6) -> np.ndarray:
    return np.array(rows, "f8").reshape(-1, width)


def _case(name: str, found: Any, true: Any, expected: Any, **attrs: Any) -> OpCase:
    ends = {"DetectRes": [[0, len(found)]], "Label": [[0, len(true)]]}
    inputs = {"DetectRes": found, "Label": true}
    every = {**ATTRS, **attrs}
    # as in the reference, nothing is inferred of the accumulated states
    return OpCase("detection_map", inputs, every, expected, name, lod=ends, infer=False)


def _made(counts: list[int], hits: Any, average: float) -> dict[str, Any]:
    hits = np.array(hits, "f8").reshape(-1, 2)
    misses = hits.copy()
    misses[:, 1] = 1 - hits[:, 1]
    return {
        "AccumPosCount": np.array(counts, "i4").reshape(-1, 1),
        "AccumTruePos": hits,
        "AccumFalsePos": misses,
        "MAP": np.array([average]),
    }


NAN, INF = np.nan, np.inf
CASES = [
    # class 1: hit, miss, hit among 2 labels: (1 + 2/3) / 2; class 2: none of 1 found
    _case(
        "integral",
        _rows([1, 0.7, *FAR], [1, 0.9, *BOX], [1, 0.8, *BOX]),
        _rows([1, 0, *BOX], [1, 0, *FAR], [2, 0, *BOX]),
        _made([0, 2, 1], [[0.9, 1], [0.8, 0], [0.7, 1]], 5 / 12),
    ),
    # the same by 11 points: precision 1 up to recall 0.5 (6 points), 2/3 beyond (5)
    _case(
        "11point",
        _rows([1, 0.7, *FAR], [1, 0.9, *BOX], [1, 0.8, *BOX]),
        _rows([1, 0, *BOX], [1, 0, *FAR]),
        _made([0, 2, 0], [[0.9, 1], [0.8, 0], [0.7, 1]], (6 + 5 * 2 / 3) / 11),
        ap_type="11point",
    ),
    _case("empty", _rows(), _rows(), _made([0, 0, 0], [], 0)),
    # NaN overlaps nothing; an infinite box is cut to the image; NaN is of no class
    _case(
        "nonfinite",
        _rows([1, INF, -INF, -INF, INF, INF], [1, 0.5, NAN, 0, 1, 1], [NAN, 1, *BOX]),
        _rows([1, 0, 0, 0, 1, 1], [1, 0, NAN, 0, 1, 1]),
        _made([0, 2, 0], [[INF, 1], [0.5, 0]], 0.5),
    ),
    _case(
        "big-and-tiny",
        _rows([1, 1e-9, *BOX], [1, 1e9, *FAR]),
        _rows([1, 1e-9, *FAR], width=6),
        _made([0, 1, 0], [[1e9, 1], [1e-9, 0]], 1),
        evaluate_difficult=False,
    ),
    # what is beyond class_num counts for the batch, but has no place in the states
    _case(
        "other-classes",
        _rows([7, 0.9, *BOX], [-1, 0.8, *BOX], [0, 0.7, *BOX]),
        _rows([7, 0, *BOX], [0, 0, *FAR]),
        _made([1, 0, 0], [[0.7, 0]], 0.5),
    ),
]
test_detection_map = suite(CASES)


def test_whole_numbers_are_refused() -> None:
    whole = [np.ones((1, 6), "i4")] * 2
    case = _case("integers", *whole, None)
    with pytest.raises(ValueError, match="DetectRes must hold floats"):
        infer_case(case)


def infer_case(case: OpCase) -> None:
    from fluidx import kernels
    from fluidx.kernels import InferContext, Meta

    definition = kernels.find(case.op)
    metas = {
        k: [Meta(v.shape, kernels.as_dtype(v.dtype), 1)] for k, v in case.inputs.items()
    }
    attrs = {**definition.defaults, **case.attrs}
    definition.infer(InferContext(case.op, metas, attrs, {}))


def _run(found: Any, true: Any, ends: Any, **attrs: Any) -> Any:
    lod = {"DetectRes": [ends[0]], "Label": [ends[1]]}
    inputs = {"DetectRes": found, "Label": true}
    every = {**ATTRS, **attrs}
    made = run_op("detection_map", inputs, every, lod=lod)
    return made, output_lods("detection_map", lod, inputs, every)


def test_an_image_without_labels_or_detections() -> None:
    found = _rows([1, 0.9, *BOX], [2, 0.8, *FAR], [1, 0.7, *FAR])
    true = _rows([1, 0, *BOX], [1, 0, *FAR])
    made, lods = _run(found, true, ([0, 1, 3, 3], [0, 1, 1, 2]))
    # the second image has no label, the third no detection
    np.testing.assert_allclose(made["MAP"], [0.5])
    assert made["AccumTruePos"].tolist() == [[0.9, 1], [0.7, 0], [0.8, 0]]
    assert lods["AccumTruePos"] == lods["AccumFalsePos"] == [[0, 0, 2, 3]]


def test_batches_one_after_the_other_equal_one_batch() -> None:
    """Random images: the states of the first half, and the second half with them."""
    rng = np.random.default_rng(3)
    low = rng.uniform(0, 0.6, (40, 2))
    true = np.hstack(
        [rng.integers(0, 3, (40, 1)), rng.integers(0, 2, (40, 1)), low, low + 0.3]
    )
    found = true + np.hstack([np.zeros((40, 2)), rng.normal(0, 0.04, (40, 4))])
    found[:, 1] = rng.uniform(0, 1, 40)
    for more in (True, False):
        attrs = {**ATTRS, "evaluate_difficult": more}
        whole, _ = _run(found, true, ([0, 8, 20, 40],) * 2, evaluate_difficult=more)
        first, lods = _run(
            found[:20], true[:20], ([0, 8, 20],) * 2, evaluate_difficult=more
        )
        inputs = {
            "DetectRes": found[20:],
            "Label": true[20:],
            "HasState": np.array([1], "i4"),
            **{s: first[f"Accum{s}"] for s in ("PosCount", "TruePos", "FalsePos")},
        }
        lod = {
            "DetectRes": [[0, 20]],
            "Label": [[0, 20]],
            **{s: lods[f"Accum{s}"] for s in ("TruePos", "FalsePos")},
        }
        both = run_op("detection_map", inputs, attrs, lod=lod)
        assert 0.2 < whole["MAP"][0] < 1
        for slot, value in whole.items():
            np.testing.assert_allclose(both[slot], value, 1e-12, err_msg=slot)


def test_a_state_without_values_is_refused() -> None:
    inputs = {
        "DetectRes": _rows(),
        "Label": _rows(),
        "HasState": np.array([1], "i4"),
        "PosCount": np.zeros((3, 1), "i4"),
    }
    lod = {"DetectRes": [[0, 0]], "Label": [[0, 0]]}
    with pytest.raises(ValueError, match="HasState is set, but TruePos has no value"):
        run_op("detection_map", inputs, ATTRS, lod=lod)
    inputs["TruePos"] = _rows([0.5, 1], width=2)
    inputs["FalsePos"] = _rows(width=2)
    lod.update(TruePos=[[0, 1]], FalsePos=[[0, 0]])
    with pytest.raises(ValueError, match="TruePos and FalsePos differ in their LoD"):
        run_op("detection_map", inputs, ATTRS, lod=lod)
