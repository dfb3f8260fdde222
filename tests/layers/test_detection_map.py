"""DetectionMAP of fluid.metrics and fluid.evaluator, and their layer, as recorded."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
import fluidx.evaluator
from fluidx.layers.detection import detection_map

GOLDEN = Path(__file__).parents[1] / "golden" / "oracle" / "detection_evaluators.json"
RECORDED = json.loads(GOLDEN.read_text())
BATCHES, ANSWERS = RECORDED["batches"], RECORDED["answers"]


def _build(case: dict[str, Any]) -> Any:
    found = fluid.data("found", [None, 6], "float32", lod_level=1)
    label = fluid.data("label", [None, 1], case["label"], lod_level=1)
    box = fluid.data("box", [None, 4], "float32", lod_level=1)
    difficult = None
    if case["difficult"]:
        difficult = fluid.data("difficult", [None, 1], case["label"], lod_level=1)
    home = {"metrics": fluid.metrics, "evaluator": fluidx.evaluator}[case["of"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return home.DetectionMAP(
            found, label, box, difficult, class_num=4, **case.get("more", {})
        )


def _feed(case: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    found, true = (np.array(batch[k], "f4") for k in ("found", "true"))
    given = {
        "found": (found, 0),
        "label": (true[:, :1].astype(case["label"]), 1),
        "box": (true[:, 2:], 1),
    }
    if case["difficult"]:
        given["difficult"] = (true[:, 1:2].astype(case["label"]), 1)
    return {
        name: fluid.create_lod_tensor(rows, [batch["sizes"][which]])
        for name, (rows, which) in given.items()
    }


def _same_ops(program: fluid.Program, recorded: list[dict[str, Any]]) -> None:
    ops = program.global_block().ops
    assert [op.type for op in ops] == [op["type"] for op in recorded]
    for mine, wanted in zip(ops, recorded):
        assert {k: v for k, v in mine.inputs.items() if v} == wanted["inputs"]
        assert {k: v for k, v in mine.outputs.items() if v} == wanted["outputs"]
        for name, value in wanted["attrs"].items():
            assert mine.attr(name) == pytest.approx(value), f"{mine.type}: {name}"


@pytest.mark.parametrize("kind", sorted(ANSWERS))
def test_programs_and_values_equal_the_reference(kind: str) -> None:
    answer = ANSWERS[kind]
    case = answer["case"]
    made = _build(case)
    assert [v.name for v in made.get_map_var()] == answer["fetch"]
    assert made.has_state.name == answer["flag"]
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    _same_ops(main, answer["main"])
    _same_ops(startup, answer["startup"])
    exe, reset = fluid.Executor(fluid.CPUPlace()), fluid.Program()
    exe.run(startup)
    values = []
    for again in (False, True):
        if again:
            made.reset(exe, reset)
        for batch in BATCHES[again:]:
            got = exe.run(feed=_feed(case, batch), fetch_list=made.get_map_var())
            values.append([float(v[0]) for v in got])
    np.testing.assert_allclose(values, answer["values"], 2e-6)
    _same_ops(reset, answer["reset"])
    state = next(n for n in main.global_block().vars if "accum_pos" in n)
    counts = np.asarray(fluid.global_scope().find_var(state).get_tensor())
    assert counts.reshape(-1).tolist() == answer["counts"]


def test_the_layer_takes_states_as_the_reference_does() -> None:
    found = fluid.data("found", [None, 6], "float32", lod_level=1)
    true = fluid.data("true", [None, 6], "float32", lod_level=1)
    block = fluid.default_main_program().global_block()
    kinds = (("counts", "int32"), ("hits", "float32"), ("misses", "float32"))
    states = [
        block.create_var(name=n, dtype=d, shape=[1], persistable=True) for n, d in kinds
    ]
    flag = block.create_var(name="flag", dtype="int32", shape=[1])
    detection_map(found, true, 3, 1, 0.4, False, flag, states, None, "11point")
    detection_map(found, true, 3, out_states=states)
    _same_ops(fluid.default_main_program(), RECORDED["layer"])


def test_states_follow_the_scope() -> None:
    """Each scope has its own counts, with their sequences."""
    case = ANSWERS["metrics"]["case"]
    made = _build(case)
    exe = fluid.Executor(fluid.CPUPlace())
    values = ANSWERS["metrics"]["values"]
    scopes = [fluid.Scope(), fluid.Scope()]
    for scope in scopes:
        exe.run(fluid.default_startup_program(), scope=scope)
    for batch, (_, total) in zip(BATCHES, values[:3]):
        for scope in scopes:
            feed = _feed(case, batch)
            got = exe.run(feed=feed, fetch_list=[made.accum_map], scope=scope)
            assert got[0][0] == pytest.approx(total, rel=2e-6)


@pytest.mark.parametrize("lacks", ["input", "gt_label", "gt_box", "gt_difficult"])
def test_what_is_no_variable_is_named(lacks: str) -> None:
    given: dict[str, Any] = {
        "input": fluid.data("found", [None, 6], lod_level=1),
        "gt_label": fluid.data("label", [None, 1], lod_level=1),
        "gt_box": fluid.data("box", [None, 4], lod_level=1),
    }
    given[lacks] = [[1.0]]
    with pytest.raises(TypeError, match=f"DetectionMAP: {lacks} must be a Variable"):
        fluid.metrics.DetectionMAP(**given, class_num=2)


def test_wrong_arguments_are_told() -> None:
    found = fluid.data("found", [None, 6], lod_level=1)
    label = fluid.data("label", [None, 1], lod_level=1)
    box = fluid.data("box", [None, 4], lod_level=1)
    with pytest.raises(TypeError, match="class_num must be given"):
        fluid.metrics.DetectionMAP(found, label, box)
    with pytest.raises(ValueError, match="ap_version must be one of"):
        fluid.metrics.DetectionMAP(found, label, box, class_num=2, ap_version="x")
    with pytest.raises(fluid.ir.BuildError, match=r"DetectRes has shape .*\(n, 6\)"):
        fluid.metrics.DetectionMAP(box, label, box, class_num=2)
