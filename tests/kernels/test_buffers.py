"""Kernels that may overwrite an input give the same results when they do.

Over all cases of all families, forward and gradient: `out` is the very array of the
input, as the executor passes it, fitting or not.
"""

import importlib.util
from pathlib import Path

import numpy as np
import op_run
import opcase
import pytest
from opcase import OpCase

from fluidx import kernels
from fluidx.kernels import GradContext

HERE = Path(__file__).parent


def all_cases() -> list[OpCase]:
    """The cases of every test module beside this one."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        if "suite(" in path.read_text() and path != Path(__file__):
            before = len(opcase.DECLARED)
            spec = importlib.util.spec_from_file_location(f"buffers_{path.stem}", path)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            found += opcase.DECLARED[before:]
    return found


def overwritable(op, inputs):
    """The input array that the kernel may overwrite, or None."""
    value = inputs.get(kernels.find(op).overwrites)
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, np.ndarray) else None


def copied(values):
    """A deep copy in which no two slots share memory."""
    if isinstance(values, dict):
        return {k: copied(v) for k, v in values.items()}
    if isinstance(values, list):
        return [copied(v) for v in values]
    return values.copy() if isinstance(values, np.ndarray) else values


def call(op, inputs, attrs, case, out, wants=None):
    return opcase.run_op(
        op, inputs, attrs, counts=case.out_counts, lod=case.lod, out=out, wants=wants
    )


def same(got, wanted):
    assert got.keys() == wanted.keys()
    for slot, value in wanted.items():
        many = value if isinstance(value, list) else [value]
        ours = got[slot] if isinstance(value, list) else [got[slot]]
        for g, w in zip(ours, many, strict=True):
            np.testing.assert_array_equal(op_run._dense(g), op_run._dense(w), slot)


def check(op, inputs, attrs, case, wants=None):
    wanted = call(op, copied(inputs), attrs, case, None, wants)
    mine = copied(inputs)
    same(call(op, mine, attrs, case, overwritable(op, mine), wants), wanted)


def gradient(case, dtype):
    """The gradient op of a case and its inputs, if it is one op that may overwrite."""
    definition = kernels.find(case.op)
    inputs = {k: op_run._cast(v, dtype) for k, v in case.inputs.items()}
    outs = call(case.op, copied(inputs), case.attrs, case, None)
    names_in = {k: op_run._names(k, v) for k, v in inputs.items()}
    names_out = {k: op_run._names(k, v) for k, v in outs.items()}
    attrs = {**definition.defaults, **case.attrs}
    specs = definition.grad_specs(GradContext(case.op, names_in, names_out, attrs))
    if len(specs) != 1 or kernels.find(specs[0].type).overwrites is None:
        return None
    made = kernels.find(specs[0].type)
    rng = np.random.default_rng(4)
    values = {}
    for slot in made.ins:
        source = slot.name.removesuffix(kernels.GRAD)
        value = inputs.get(source, outs.get(source))
        if slot.name != source and isinstance(value, np.ndarray):
            value = rng.standard_normal(value.shape).astype(value.dtype)
        if value is not None:
            values[slot.name] = value
    return made.type, values, specs[0].attrs, list(specs[0].outputs)


CASES = [c for c in all_cases() if not kernels.find(c.op).random]
FORWARD = [c for c in CASES if kernels.find(c.op).overwrites]
BACKWARD = [
    c
    for c in CASES
    if isinstance(kernels.find(c.op).grad, kernels.grad_op)
    and kernels.find(c.op).grad_def.overwrites
    and c.grad != ()
]


@pytest.mark.parametrize("case", FORWARD, ids=str)
def test_forward(case):
    inputs = {k: op_run._cast(v, "float32") for k, v in case.inputs.items()}
    if overwritable(case.op, inputs) is None:
        # a sparse tensor has no buffer of the result's shape
        assert any(isinstance(v, kernels.SelectedRows) for v in inputs.values()) or (
            case.op == "sum"
        )
        return
    check(case.op, inputs, case.attrs, case)


@pytest.mark.parametrize("case", BACKWARD, ids=str)
def test_backward(case):
    found = gradient(case, "float32")
    assert found is not None
    op, inputs, attrs, wants = found
    check(op, inputs, attrs, case, wants)


def test_there_is_something_to_test():
    assert {"relu", "scale", "elementwise_add", "sum"} <= {c.op for c in FORWARD}
    assert {"relu", "elementwise_add"} <= {c.op for c in BACKWARD}
