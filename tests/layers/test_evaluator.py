"""fluid.evaluator: programs, batch metrics and accumulated values, as recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx import evaluator

GOLDEN = Path(__file__).parents[1] / "golden" / "oracle" / "evaluators.json"
RECORDED = json.loads(GOLDEN.read_text())


KINDS: dict[str, Any] = {
    "chunks": lambda x, y: evaluator.ChunkEvaluator(x, y, "IOB", 3, [1]),
    "distance": lambda x, y: evaluator.EditDistance(x, y, [5]),
}


def _made(kind: str) -> tuple[Any, fluid.Executor]:
    x = fluid.data("x", [None, 1], "int64", lod_level=1)
    y = fluid.data("y", [None, 1], "int64", lod_level=1)
    with pytest.warns(DeprecationWarning, match="fluid.metrics"):
        made = KINDS[kind](x, y)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return made, exe


def _feed(batch: dict[str, Any]) -> dict[str, Any]:
    return {
        name: fluid.create_lod_tensor(
            np.array(batch[key]).reshape(-1, 1), [batch["sizes"]]
        )
        for name, key in (("x", "found"), ("y", "true"))
    }


def _plain(values: Any) -> list[Any]:
    return [np.asarray(v).reshape(-1).tolist() for v in values]


@pytest.mark.parametrize("kind", ["chunks", "distance"])
def test_evaluator_equals_the_reference(kind: str) -> None:
    answer = RECORDED["answers"][kind]
    made, exe = _made(kind)
    main = fluid.default_main_program()
    assert [s.name for s in made.states] == answer["states"]
    ops = main.global_block().ops
    assert [op.type for op in ops] == [op["type"] for op in answer["main"]]
    for mine, wanted in zip(ops, answer["main"]):
        assert {k: v for k, v in mine.inputs.items() if v} == wanted["inputs"]
        assert {k: v for k, v in mine.outputs.items() if v} == wanted["outputs"]
    made.reset(exe)
    for batch, metrics, values in zip(
        RECORDED["batches"], answer["metrics"], answer["values"]
    ):
        got = _plain(exe.run(main, feed=_feed(batch), fetch_list=made.metrics))
        assert got == [pytest.approx(m, rel=1e-6) for m in metrics]
        assert _plain(made.eval(exe)) == [pytest.approx(v, rel=1e-6) for v in values]


def test_reset_zeroes_the_states_and_shows_its_program() -> None:
    made, exe = _made("chunks")
    made.reset(exe)
    exe.run(feed=_feed(RECORDED["batches"][0]), fetch_list=made.metrics)
    assert made.eval(exe)[0][0] > 0
    program = fluid.Program()
    made.reset(exe, program)
    assert [op.type for op in program.global_block().ops] == ["fill_constant"] * 3
    assert _plain(made.eval(exe)) == RECORDED["answers"]["chunks"]["fresh"]


def test_the_base_keeps_states_and_has_no_value() -> None:
    with pytest.warns(DeprecationWarning, match="Evaluator is deprecated"):
        base = evaluator.Evaluator("mine")
    state = base._create_state("seen", "int64", [2])
    assert (state.name, tuple(state.shape), base.states) == (
        "mine_0_0_seen",
        (2,),
        [state],
    )
    with pytest.raises(NotImplementedError, match="Evaluator has no eval"):
        base.eval(fluid.Executor(fluid.CPUPlace()))
