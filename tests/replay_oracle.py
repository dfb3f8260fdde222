"""Replays recorded questions to the reference against our ops.

The records (tests/golden/oracle/*.json, made by op_probe.py there) hold inputs,
attributes, and what the reference inferred, computed and refused. `replay` asserts
that ours infers the same shapes and LoD levels, returns the same values, dtypes and
LoDs, makes the same gradients, and refuses what the reference refuses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, grads_of, output_lods, run_op

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta, SelectedRows, VarType

FOLDER = Path(__file__).parent / "golden" / "oracle"
REFUSALS = (InferError, ValueError, IndexError)


def records(name: str) -> list[dict[str, Any]]:
    """The recorded cases of a file."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def oracle_suite(name: str, *ops: str) -> Any:
    """A parametrized test over the records of some ops (none named: of all)."""
    chosen = [r for r in records(name) if not ops or r["case"]["op"] in ops]
    assert chosen, f"no record of {ops} in {name}"
    labels = [f"{r['case']['op']}-{i}" for i, r in enumerate(chosen)]

    @pytest.mark.parametrize("recorded", chosen, ids=labels)
    def test(recorded: dict[str, Any]) -> None:
        replay(recorded)

    return test


def array(plain: dict[str, Any]) -> Any:
    return np.array(plain["data"], plain["dtype"]).reshape(plain["shape"])


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(p) for p in plain]
    if "rows" in plain:
        return SelectedRows(
            np.array(plain["rows"], "i8"), array(plain["value"]), plain["height"]
        )
    return array(plain["data"] if "lod" in plain else plain)


def _lod(plain: Any) -> Any:
    """The LoD of a slot; a list where it holds a list. None: none has one."""
    if isinstance(plain, list):
        many = [p.get("lod") for p in plain]
        return many if any(many) else None
    return plain.get("lod")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def replay(recorded: dict[str, Any]) -> None:
    """Assert that ours answers as the reference did."""
    case, answer = recorded["case"], recorded["answer"]
    if "error" in answer:
        with pytest.raises(REFUSALS):
            _infer_and_run(case)
        return
    _check_infer(infer(case), answer["infer"])
    if "outs" not in answer:
        return
    values, outs = _run(case)
    _check_outs(case, values, outs, answer["outs"])
    if "grads" in answer:
        _check_grads(case, values, outs, answer["grads"])


def _infer_and_run(case: dict[str, Any]) -> None:
    infer(case)
    values, _ = _run(case)
    lods = {s: _lod(p) for s, p in case["inputs"].items()}
    output_lods(case["op"], lods, values, case["attrs"])


def infer(case: dict[str, Any]) -> dict[str, list[Meta]]:
    """Our inference of a recorded case."""
    definition = kernels.find(case["op"])
    metas = {}
    for slot, plain in case["inputs"].items():
        metas[slot] = [
            Meta(
                tuple(case.get("shapes", {}).get(slot, v.shape)),
                kernels.as_dtype(v.dtype),
                len(p.get("lod", ())),
                VarType.SELECTED_ROWS
                if isinstance(v, SelectedRows)
                else VarType.LOD_TENSOR,
            )
            for p, v in zip(_listed(plain), _listed(_value(plain)))
        ]
    attrs = {**definition.defaults, **case["attrs"]}
    context = InferContext(case["op"], metas, attrs, _counts(case))
    definition.infer(context)
    return context.outs


def _counts(case: dict[str, Any]) -> dict[str, int]:
    outs = case["outs"]
    return outs if isinstance(outs, dict) else dict.fromkeys(outs, 1)


def _check_infer(ours: dict[str, list[Meta]], theirs: dict[str, Any]) -> None:
    for slot, facts in theirs.items():
        assert len(ours[slot]) == len(facts), slot
        for meta, fact in zip(ours[slot], facts):
            assert list(meta.shape) == fact["shape"], f"{slot}: inferred shape"
            # XShape and its like carry no sequences
            if 0 not in meta.shape:
                assert meta.lod_level == fact["lod_level"], f"{slot}: LoD level"


def _run(case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    values = {slot: _value(plain) for slot, plain in case["inputs"].items()}
    lod = {slot: _lod(plain) for slot, plain in case["inputs"].items()}
    outs = run_op(case["op"], values, case["attrs"], counts=_counts(case), lod=lod)
    return values, outs


def _check_outs(
    case: dict[str, Any], values: Any, outs: Any, theirs: dict[str, Any]
) -> None:
    definition = kernels.find(case["op"])
    lods = {s: _lod(p) for s, p in case["inputs"].items()}
    shared = output_lods(case["op"], lods, values, case["attrs"])
    # nobody sees the sequences of these
    hidden = {s.name for s in definition.outs if s.intermediate}
    for slot, recorded in theirs.items():
        if slot in ("XShape", "MaxIndex") and recorded[0]["shape"] == [0]:
            continue  # the reference leaves these without memory
        for ours, plain in zip(_listed(outs[slot]), recorded):
            wanted = array(plain)
            assert ours.dtype == wanted.dtype, f"{slot}: dtype"
            assert tuple(ours.shape) == wanted.shape, f"{slot}: shape"
            np.testing.assert_allclose(ours, wanted, 2e-6, 1e-6, err_msg=slot)
            if slot not in hidden:
                assert (shared.get(slot) or None) == plain.get("lod"), f"{slot}: LoD"


def _check_grads(
    case: dict[str, Any], values: Any, outs: Any, theirs: dict[str, Any]
) -> None:
    d_outs = {slot: _value(plain) for slot, plain in case["grads"].items()}
    lod = {slot: _lod(plain) for slot, plain in case["inputs"].items()}
    asked = OpCase(case["op"], values, case["attrs"], lod=lod)
    with np.errstate(divide="ignore"):
        grads = grads_of(asked, values, outs, d_outs)
    for name, plain in theirs.items():
        slot, _, index = name.rpartition("_")
        ours = _listed(grads[slot])[int(index)]
        if "rows" in plain:
            assert ours.rows.tolist() == plain["rows"], f"{name}: rows"
            assert ours.height == plain["height"], f"{name}: height"
            ours = ours.value
        np.testing.assert_allclose(ours, array(plain), 5e-6, 2e-6, err_msg=name)
