"""Tests from recorded runs of single ops under the reference.

tests/golden/oracle/<name>.json holds a list of op calls with inputs, outputs,
compile-time shapes and gradients (see oracle_ops.py there). `oracle_suite` makes one
test of each: values, dtypes, shapes, inferred shapes and gradients must be equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, grads_of, run_op

from fluidx import kernels
from fluidx.kernels import InferContext, Meta

HERE = Path(__file__).parent / "golden" / "oracle"


def _array(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_array(p) for p in plain]
    if plain is None:
        return None
    return np.array(plain["data"], plain["dtype"]).reshape(plain["shape"])


def load(name: str) -> list[dict[str, Any]]:
    """The recorded cases of a file."""
    found: list[dict[str, Any]] = json.loads((HERE / f"{name}.json").read_text())
    return found


def infer(record: dict[str, Any], inputs: dict[str, Any]) -> InferContext:
    """What inference says of a recorded case, with its compile-time shapes."""
    definition = kernels.find(record["op"])
    metas = {}
    for slot, value in inputs.items():
        many = value if isinstance(value, list) else [value]
        shape = record["declared"].get(slot)
        metas[slot] = [
            Meta(tuple(shape or a.shape), kernels.as_dtype(a.dtype)) for a in many
        ]
    context = InferContext(
        record["op"],
        metas,
        {**definition.defaults, **record["attrs"]},
        dict.fromkeys(record["outs"], 1),
    )
    definition.infer(context)
    return context


def check(
    record: dict[str, Any], instead: Mapping[str, Any], rtol: float, atol: float
) -> None:
    """Compare one case; `instead` replaces recorded results (output or X@GRAD)."""
    inputs = {k: _array(v) for k, v in record["inputs"].items()}
    context = infer(record, inputs)
    with np.errstate(all="ignore"):
        outs = run_op(record["op"], inputs, record["attrs"])
    for slot, plain in record["outputs"].items():
        got = outs[slot]
        meta = context.outs[slot][0]
        assert kernels.to_numpy(meta.dtype) == got.dtype
        assert list(meta.shape) == record["shapes"][slot]
        wanted = _array(plain)
        if slot in instead:
            wanted = np.asarray(instead[slot])
        else:
            assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol, atol, err_msg=slot)
    if "grads" not in record:
        return
    slot = record["outs"][0]
    case = OpCase(record["op"], inputs, record["attrs"])
    with np.errstate(all="ignore"):
        found = grads_of(case, inputs, outs, {slot: _array(record["d_out"])})
    for slot, plain in record["grads"].items():
        wanted = _array(plain)
        if slot + "@GRAD" in instead:
            wanted = instead[slot + "@GRAD"]
            if callable(wanted):
                wanted = wanted(_array(plain), _array(record["d_out"]))
            wanted = np.asarray(wanted, inputs[slot].dtype)
        assert found[slot].shape == wanted.shape
        assert found[slot].dtype == wanted.dtype
        np.testing.assert_allclose(found[slot], wanted, rtol, atol, err_msg=slot)


def oracle_suite(
    name: str,
    instead: Mapping[str, Mapping[str, Any]] | None = None,
    rtol: float = 2e-6,
    atol: float = 1e-6,
) -> Callable[..., None]:
    """One test for each case that the reference accepted.

    instead: case name -> {output slot or slot@GRAD: what comes here}, where fluidx
    means to differ; for a gradient also a function (recorded one, Out@GRAD) -> that.
    An entry without a case is an error.
    """
    differ = dict(instead or {})
    records = [r for r in load(name) if "error" not in r]
    unknown = set(differ) - {r["name"] for r in records}
    assert not unknown, f"no such cases in {name}.json: {sorted(unknown)}"

    @pytest.mark.parametrize("record", [pytest.param(r, id=r["name"]) for r in records])
    def test(record: dict[str, Any]) -> None:
        check(record, differ.get(record["name"], {}), rtol, atol)

    return test
