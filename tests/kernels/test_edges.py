"""Every op at its edges, against what the reference answered.

tests/golden/oracle/edges.json.xz holds each op's smallest case again with NaN and
infinities, big and tiny numbers, integers, no rows and negative axes
(edge_questions.py there). Where the reference refused, ours may compute, or refuse
with an error of its own; it must not fail in another way.
"""

from __future__ import annotations

import json
import lzma
from typing import Any

import numpy as np
import pytest
from edge_differences import DIFFERENT
from opcase import OpCase, grads_of, output_lods
from replay_oracle import (
    FOLDER,
    REFUSALS,
    _counts,
    _listed,
    _lod,
    _run,
    _value,
    array,
    infer,
)

from fluidx import kernels
from fluidx.kernels.floating import FLOATS_ONLY

with lzma.open(FOLDER / "edges.json.xz", "rt") as _file:
    RECORDED: list[dict[str, Any]] = json.load(_file)
ANSWERED = [r for r in RECORDED if "error" not in r["answer"]]
REFUSED = [r for r in RECORDED if "error" in r["answer"]]


def _name(record: dict[str, Any]) -> str:
    return str(record["case"]["name"])


def close(got: Any, wanted: Any, what: str) -> None:
    """Equal up to rounding, relative to the largest finite number of both kinds."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{what}: shape"
    scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0) if wanted.size else 0
    slack = max(4e-6 * float(scale), 1e-33)  # products of tiny numbers vanish
    np.testing.assert_allclose(got, wanted, 2e-5, slack, err_msg=what)


def _check_outs(case: dict[str, Any], outs: Any, theirs: dict[str, Any]) -> None:
    definition = kernels.find(case["op"])
    hidden = {s.name for s in definition.outs if s.intermediate}
    for slot, recorded in theirs.items():
        if slot in hidden or slot not in outs:
            continue
        for ours, plain in zip(_listed(outs[slot]), recorded):
            wanted = array(plain)
            if wanted.dtype == np.float64 and wanted.shape == (0,) != ours.shape:
                continue  # the reference left it without memory
            assert ours.dtype == wanted.dtype, f"{slot}: dtype"
            close(ours, wanted, slot)


def _check_grads(case: dict[str, Any], values: Any, outs: Any, theirs: Any) -> None:
    d_outs = {slot: _value(plain) for slot, plain in case["grads"].items()}
    lod = {slot: _lod(plain) for slot, plain in case["inputs"].items()}
    asked = OpCase(case["op"], values, case["attrs"], lod=lod)
    grads = grads_of(asked, values, outs, d_outs)
    for name, plain in theirs.items():
        slot, _, index = name.rpartition("_")
        ours = _listed(grads[slot])[int(index)]
        wanted = array(plain)
        if wanted.dtype == np.float64 and wanted.shape == (0,):
            continue  # the reference left it without memory
        close(getattr(ours, "value", ours), wanted, f"{name}@GRAD")


def replay(record: dict[str, Any]) -> None:
    case, answer = record["case"], record["answer"]
    inferred = infer(case)
    values, outs = _run(case)
    for slot, facts in answer["infer"].items():
        for meta, fact in zip(inferred.get(slot, ()), facts):
            if (
                fact["shape"]
                and 0 not in fact["shape"]
                and fact["kind"] == "LOD_TENSOR"
            ):
                assert len(meta.shape) == len(fact["shape"]), f"{slot}: inferred rank"
    _check_outs(case, outs, answer["outs"])
    if "grads" in answer:
        _check_grads(case, values, outs, answer["grads"])


@pytest.mark.parametrize("record", ANSWERED, ids=_name)
def test_equals_the_reference(record: dict[str, Any]) -> None:
    different = DIFFERENT.get(_name(record))
    with np.errstate(all="ignore"):
        if different is None:
            replay(record)
        else:
            different(record)


@pytest.mark.parametrize("record", REFUSED, ids=_name)
def test_what_the_reference_refuses(record: dict[str, Any]) -> None:
    case = record["case"]
    if case["op"] in FLOATS_ONLY and case["name"].endswith(("int32", "int64")):
        return  # the executor refuses these: tests/executor/test_floats_only.py
    with np.errstate(all="ignore"):
        try:
            inferred = infer(case)
            values, outs = _run(case)
        except REFUSALS:
            return
    counts = _counts(case)
    assert all(len(_listed(v)) == counts.get(s, 1) for s, v in outs.items())
    for slot, value in outs.items():
        for ours, meta in zip(_listed(value), inferred.get(slot, ())):
            assert ours.dtype == kernels.to_numpy(meta.dtype), f"{slot}: dtype"
    lods = {s: _lod(p) for s, p in case["inputs"].items()}
    output_lods(case["op"], lods, values, case["attrs"])
