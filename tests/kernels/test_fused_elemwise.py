"""fused_elemwise_activation: the pairs of functions that the reference knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, grads_of, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta

PAIRS = [
    ["elementwise_add", "scale"],
    ["scale", "elementwise_add"],
    ["elementwise_add", "relu"],
    ["relu", "elementwise_add"],
    ["tanh", "elementwise_add"],
    ["elementwise_mul", "scale"],
    ["elementwise_mul", "tanh"],
    ["elementwise_mul", "sigmoid"],
]
FUNCTIONS: dict[str, Any] = {
    "scale": lambda x: 1.5 * x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "elementwise_add": np.add,
    "elementwise_mul": np.multiply,
}


def _expected(x: Any, a: dict[str, Any]) -> Any:
    outer, inner = (FUNCTIONS[name] for name in a["functor_list"])
    one, two = x["X"], x["Y"]
    if a["functor_list"][1].startswith("elementwise"):
        kept = inner(one, two)
        return {"Out": outer(kept), "IntermediateOut": kept}
    kept = inner(two)
    return {"Out": outer(one, kept), "IntermediateOut": kept}


BOTH = {"X": normal(2, 3, 4), "Y": normal(2, 3, 4, seed=1)}
LOW = {"X": normal(2, 3, 4), "Y": normal(4, seed=1)}
CASES = [
    OpCase(
        "fused_elemwise_activation",
        inputs,
        {"functor_list": pair, "scale": 1.5, "save_intermediate_out": True},
        _expected,
        "-".join([*pair, name]),
    )
    for pair in PAIRS
    for name, inputs in (("alike", BOTH), ("rows", LOW))
]
test_fused_elemwise = suite(CASES)
test_against_reference = oracle_suite("partial_ops", "fused_elemwise_activation")


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_what_is_not_saved_is_computed_anew(pair: list[str]) -> None:
    heads, found = {"Out": normal(2, 3, 4, seed=2)}, []
    for saved in (True, False):
        attrs = {"functor_list": pair, "scale": 1.5, "save_intermediate_out": saved}
        case = OpCase("fused_elemwise_activation", LOW, attrs)
        made = run_op(case.op, LOW, attrs)
        assert made["IntermediateOut"].size == (made_size(pair) if saved else 0)
        found.append(grads_of(case, LOW, made, heads))
    for slot in ("X", "Y"):
        np.testing.assert_array_equal(found[0][slot], found[1][slot])


def made_size(pair: list[str]) -> int:
    return 4 if pair[0].startswith("elementwise") else 24


def test_other_pairs_are_refused() -> None:
    metas = {"X": [Meta((2, 3))], "Y": [Meta((2, 3))]}
    definition = kernels.find("fused_elemwise_activation")
    attrs = {**definition.defaults, "functor_list": ["relu", "elementwise_mul"]}
    context = InferContext(definition.type, metas, attrs, {"Out": 1})
    with pytest.raises(InferError, match=r"'relu', 'elementwise_mul'\] is none of"):
        definition.infer(context)
