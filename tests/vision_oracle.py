"""Recorded results of the reference for convolution, pooling and the like.

tests/golden/oracle/vision.py made the data; `check` runs a case here and compares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, grads_of, run_op

from fluidx import kernels

FOLDER = Path(__file__).parent / "golden" / "oracle"


def _array(record: dict[str, Any]) -> np.ndarray:
    return np.array(record["data"], record["dtype"]).reshape(record["shape"])


def cases(family: str) -> list[Any]:
    """pytest parameters: the recorded cases of one family."""
    records = json.loads((FOLDER / f"vision_{family}.json").read_text())
    return [
        pytest.param(r, id=f"{r['op']}-{r['name']}-{i}") for i, r in enumerate(records)
    ]


def check(record: dict[str, Any], skip: Sequence[str] = (), tol: float = 2e-5) -> None:
    """Every step's outputs and gradients equal the reference's.

    skip: slots whose content the reference leaves undefined.
    """
    inputs = {k: _array(v) for k, v in record["inputs"].items()}
    definition = kernels.find(record["op"])
    for step in record["steps"]:
        outs = run_op(record["op"], inputs, record["attrs"])
        wanted = {k: _array(v) for k, v in step.items() if v and k not in skip}
        grads = {}
        if record["d_out"]:
            head = definition.outs[0].name
            if definition.type == "norm":
                head = "Out"
            case = OpCase(record["op"], inputs, record["attrs"])
            d_outs = {
                s.name: np.zeros_like(outs[s.name])
                for s in definition.outs
                if s.name in outs
            }
            d_outs[head] = _array(record["d_out"])
            made = grads_of(case, inputs, outs, d_outs)
            grads = {k + "@GRAD": v for k, v in made.items()}
        for slot, value in wanted.items():
            got = grads[slot] if slot.endswith("@GRAD") else outs[slot]
            assert got.dtype == value.dtype, slot
            assert got.shape == value.shape, slot
            scale = max(1.0, float(np.abs(value).max()))
            np.testing.assert_allclose(got, value, tol, tol * scale, err_msg=slot)
        for slot, source in definition.inplace.items():
            inputs[source] = outs[slot]
