"""Beam search answers as the reference does, with ties, ends and empty sources."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, output_lods, run_op, suite
from replay_oracle import FOLDER, oracle_suite
from strict_xp import strict_xp

from fluidx.kernels.tensor_array import TensorArray

test_steps = oracle_suite("beam_ops", "beam_search")
test_trees = oracle_suite("beam_ops", "gather_tree")

DECODES = json.loads((FOLDER / "beam_decodes.json").read_text())["decodes"]


def _arrays(steps: Any) -> dict[str, TensorArray]:
    ids, scores = (
        TensorArray(np.array(s[k], t).reshape(-1, 1) for s in steps)
        for k, t in ((0, "i8"), (1, "f4"))
    )
    ids.lods = scores.lods = {t: s[2] for t, s in enumerate(steps)}
    return {"Ids": ids, "Scores": scores}


@pytest.mark.parametrize("recorded", DECODES)
def test_hypotheses(recorded: Any) -> None:
    inputs = _arrays(recorded["steps"])
    attrs = {"beam_size": recorded["beam"], "end_id": 0}
    made = run_op("beam_search_decode", inputs, attrs)
    lods = output_lods("beam_search_decode", {}, inputs, attrs)
    for (slot, value), (data, lod) in zip(made.items(), recorded["answer"]):
        np.testing.assert_allclose(value, np.array(data, value.dtype), 1e-6)
        assert lods[slot] == lod, slot
    assert made["SentenceIds"].dtype == np.int64
    assert made["SentenceScores"].dtype == np.float32


def _source(count: int) -> Any:
    return [[0, count], list(range(count + 1))]


def test_fewer_hypotheses_than_beams() -> None:
    """The reference crashes here."""
    inputs = _arrays([[[7], [0.5], _source(1)], [[3], [0.25], _source(1)]])
    made = run_op("beam_search_decode", inputs, {"beam_size": 4, "end_id": 0})
    assert made["SentenceIds"].tolist() == [7, 3]
    assert made["SentenceScores"].tolist() == [0.5, 0.25]


def test_a_source_that_never_selects_has_no_hypothesis() -> None:
    steps = [[[], [], [[0, 0, 0], [0]]]]
    inputs = _arrays(steps)
    attrs = {"beam_size": 4, "end_id": 0}
    assert run_op("beam_search_decode", inputs, attrs)["SentenceIds"].tolist() == []
    lods = output_lods("beam_search_decode", {}, inputs, attrs)
    assert lods["SentenceIds"] == [[0, 0, 0], [0]]


WIDE = [[[7, 8], [1, 2], [[0, 2], [0, 1, 2]]]]


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        (_arrays(WIDE), "a source has 2 hypotheses, beam_size is 1"),
        (_arrays([]), "0 steps in Ids, 0 in Scores"),
        (_arrays(WIDE) | {"Scores": []}, "1 steps in Ids, 0 in Scores"),
        (_arrays(WIDE) | {"Ids": [np.ones((2, 1))]}, "step 0 of Ids must have two"),
    ],
)
def test_steps_that_do_not_go_together(inputs: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        run_op("beam_search_decode", inputs, {"beam_size": 1, "end_id": 0})


def _step(count: int, levels: Any, rows: int | None = None, level: int = 0) -> Any:
    inputs = {
        "pre_ids": np.ones((count if rows is None else rows, 1), "i8"),
        "pre_scores": np.ones((count, 1), "f4"),
        "scores": np.ones((count, 2), "f4"),
    }
    attrs = {"level": level, "beam_size": 2, "end_id": 0}
    return run_op("beam_search", inputs, attrs, lod={"scores": levels})


test_no_prefix_selects_nothing = suite(
    [
        OpCase(
            "beam_search",
            {
                "pre_ids": np.zeros((0, 1), "i8"),
                "pre_scores": np.zeros((0, 1)),
                "scores": np.zeros((0, 3)),
            },
            {"level": 0, "beam_size": 2, "end_id": 0},
            {
                "selected_ids": np.zeros((0, 1)),
                "selected_scores": np.zeros((0, 1)),
                "parent_idx": np.zeros(0),
            },
            lod={"scores": [[0, 0], [0]]},
        )
    ]
)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((2, None), "a level 0, it has 0 levels"),
        ((2, [[0, 2]], None, 1), "a level 1, it has 1 levels"),
        ((2, _source(3)), "ends at 3, scores has 2 rows"),
        ((2, _source(2), 1), "scores has 2 rows, pre_ids 1"),
    ],
)
def test_prefixes_that_do_not_go_together(arguments: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        _step(*arguments)


def _tree(inputs: Any, attrs: Any) -> Any:
    ids, parents = inputs["Ids"], inputs["Parents"].astype("i8")
    out = np.zeros_like(ids)
    times, batches, beams = ids.shape
    for b in range(batches):
        for k in range(beams):
            at = k
            for t in reversed(range(times)):
                out[t, b, k] = ids[t, b, at]
                at = parents[t, b, at]
    return {"Out": out}


def _tree_case(*shape: int) -> OpCase:
    rng = np.random.default_rng(len(shape))
    ids = rng.integers(0, 99, shape)
    return OpCase(
        "gather_tree",
        {"Ids": ids, "Parents": rng.integers(0, max(shape[2], 1), shape)},
        {},
        _tree,
    )


test_tree_by_loops = suite(
    [_tree_case(5, 3, 4), _tree_case(1, 1, 1), _tree_case(0, 2, 2), _tree_case(3, 0, 2)]
)


def test_a_parent_that_is_no_beam() -> None:
    inputs = {"Ids": np.zeros((2, 1, 2), "i8"), "Parents": np.full((2, 1, 2), 2)}
    with pytest.raises(ValueError, match="Parents holds 2 to 2, there are 2 beams"):
        run_op("gather_tree", inputs, {})


def test_they_need_only_what_cupy_has() -> None:
    inputs = _arrays(DECODES[0]["steps"])
    attrs = {"beam_size": 9, "end_id": 0}
    xp = strict_xp()
    made = run_op("beam_search_decode", inputs, attrs, xp=xp)["SentenceIds"]
    np.testing.assert_array_equal(
        made, run_op("beam_search_decode", inputs, attrs)["SentenceIds"]
    )
