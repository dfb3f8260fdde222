"""The LoD level that inference gives to an output is the reference's."""

import json
from pathlib import Path

import pytest

from fluidx import kernels
from fluidx.kernels import InferContext, Meta, as_dtype

HERE = Path(__file__).parents[1] / "golden" / "oracle"
RECORDS = json.loads((HERE / "lod_levels.json").read_text())


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r[0]}-{r[2]}")
def test_level(record):
    op, inputs, attrs, level = record
    definition = kernels.find(op)
    metas = {
        slot: [Meta(tuple(shape), as_dtype(dtype), lod)]
        for slot, (shape, dtype, lod) in inputs.items()
    }
    context = InferContext(op, metas, {**definition.defaults, **attrs}, {"Out": 1})
    definition.infer(context)
    assert context.outs["Out"][0].lod_level == level
    if level:  # and at run time it comes from an input that has one
        assert definition.lod_rule or inputs[definition.lod][2] == level
