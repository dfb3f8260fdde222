"""Questions at the edges, made from the op cases of tests/kernels (runs under fluidx).

    python tests/golden/oracle/edge_questions.py && <reference's python> edges.py

Each op's smallest case is asked again with NaN and infinities, with big and tiny
numbers, as int32 and int64, with no rows, and with negative axes. `edges.py` lets the
reference answer; tests/kernels/test_edges.py replays the answers.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "kernels")]

import opcase  # noqa: E402
from op_probe import echo  # noqa: E402

from fluidx import kernels  # noqa: E402
from fluidx.kernels import SelectedRows  # noqa: E402

SKIPPED_FILES = ("test_schema", "test_buffers", "test_edges", "test_edge_coverage")
#: attributes that count dimensions from the end where they are negative
AXES = (
    "axis",
    "dim",
    "axes",
    "dim1",
    "dim2",
    "axis1",
    "axis2",
    "dims",
    "begin_norm_axis",
)
LONGEST = 400  # elements of a case


def collected() -> dict[str, list[opcase.OpCase]]:
    """All op cases by op."""
    if not opcase.DECLARED:
        for path in sorted((TESTS / "kernels").glob("test_*.py")):
            if path.stem not in SKIPPED_FILES:
                spec = importlib.util.spec_from_file_location(f"q_{path.stem}", path)
                assert spec is not None
                assert spec.loader is not None
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
    found: dict[str, list[opcase.OpCase]] = {}
    for case in opcase.DECLARED:
        found.setdefault(case.op, []).append(case)
    return found


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _size(case: opcase.OpCase) -> int:
    return sum(np.asarray(a).size for v in case.inputs.values() for a in _many(v))


def _usable(case: opcase.OpCase) -> bool:
    values = [a for v in case.inputs.values() for a in _many(v)]
    if case.attrs.get("adaptive"):
        return False  # max_pool2d_with_index does that; the reference's pool2d does not
    return 0 < _size(case) and not any(isinstance(a, SelectedRows) for a in values)


def _floats(value: Any) -> bool:
    return all(np.asarray(a).dtype.kind == "f" for a in _many(value))


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, list):
        return [change(np.asarray(a)) for a in value]
    return change(np.asarray(value))


def _strewn(array: Any) -> Any:
    flat = array.reshape(-1).copy()
    for i, odd in enumerate((np.nan, np.inf, -np.inf)):
        if i * 2 < flat.size:
            flat[i * 2] = odd
    return flat.reshape(array.shape)


def variants(
    case: opcase.OpCase,
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(label, inputs, attributes) of the questions that one case gives."""
    plain = {
        k: _each(v, lambda a: np.round(a, 2).astype("f4") if a.dtype.kind == "f" else a)
        for k, v in case.inputs.items()
    }
    attrs = dict(case.attrs)
    floats = [k for k, v in plain.items() if _floats(v)]
    for slot in floats[:2]:
        yield f"nan-{slot}", {**plain, slot: _each(plain[slot], _strewn)}, attrs
    if floats:
        for label, scale in (("big", 1e15), ("tiny", 1e-15)):
            scaled = {
                k: _each(plain[k], lambda a, s=scale: a * np.float32(s)) for k in floats
            }
            yield label, {**plain, **scaled}, attrs
        for kind in ("int32", "int64"):
            whole = {
                k: _each(plain[k], lambda a, t=kind: np.rint(a * 3).astype(t))
                for k in floats
            }
            yield kind, {**plain, **whole}, attrs
    first = np.asarray(_many(next(iter(plain.values())))[0])
    if first.ndim and not case.lod:
        rows = first.shape[0]

        def none(a: Any) -> Any:
            return a[:0] if a.ndim and a.shape[0] == rows else a

        yield "empty", {k: _each(v, none) for k, v in plain.items()}, attrs
    for name in AXES:
        given = attrs.get(name)
        if given is None or name not in kernels.find(case.op).attrs:
            continue
        rank = first.ndim
        below = [g - rank if g >= 0 else g for g in np.atleast_1d(given).tolist()]
        changed = below if isinstance(given, (list, tuple)) else below[0]
        if np.any(np.asarray(given) >= 0):
            yield f"negative-{name}", plain, {**attrs, name: changed}


def _with_lod(value: Any, levels: Any) -> Any:
    if not levels:
        return value
    if isinstance(value, list):
        return [_with_lod(v, lod) for v, lod in zip(value, levels)]
    return {"data": value, "lod": levels}


def question(
    label: str, case: opcase.OpCase, inputs: dict[str, Any], attrs: dict[str, Any]
) -> dict[str, Any]:
    """One question, with gradients asked for where ours has them."""
    definition = kernels.find(case.op)
    outs: dict[str, int] = {
        s.name: case.out_counts.get(s.name, 1) for s in definition.outs
    }
    made: dict[str, Any] = {
        "name": f"{case.op}-{label}",
        "op": case.op,
        "inputs": inputs,
        "attrs": attrs,
        "outs": outs,
    }
    if definition.inplace:
        made["inplace"] = {o: i for o, i in definition.inplace.items() if i in inputs}
    if case.lod:
        made["inputs"] = {k: _with_lod(v, case.lod.get(k)) for k, v in inputs.items()}
    given = copy.deepcopy(inputs)  # some ops write into their inputs
    try:
        with np.errstate(all="ignore"):
            got = opcase.run_op(
                case.op, given, attrs, counts=case.out_counts, lod=case.lod
            )
    except Exception:
        return made
    made["outs"] = {k: len(_many(v)) for k, v in got.items()}
    heads = [
        s.name
        for s in definition.outs
        if not s.intermediate and s.name in got and _floats(got[s.name])
    ]
    if definition.grad is not None and heads and not isinstance(got[heads[0]], list):
        shape = got[heads[0]].shape
        steps = np.arange(int(np.prod(shape))) % 5 - 1.5
        made["grads"] = {heads[0]: steps.reshape(shape).astype(got[heads[0]].dtype)}
    return made


def questions() -> Iterator[dict[str, Any]]:
    for op, cases in sorted(collected().items()):
        definition = kernels.find(op)
        usable = sorted((c for c in cases if _usable(c)), key=_size)
        if definition.random or definition.effect or not usable:
            continue
        if _size(usable[0]) > LONGEST:
            print("too large:", op, _size(usable[0]))
            continue
        seen = set()
        floating = [c for c in usable if any(_floats(v) for v in c.inputs.values())]
        with_axis = [c for c in usable if any(n in c.attrs for n in AXES)]
        for case in usable[:1] + with_axis[:1] + floating[:1]:
            for label, inputs, attrs in variants(case):
                if label not in seen:
                    seen.add(label)
                    yield question(label, case, inputs, attrs)


if __name__ == "__main__":
    asked = [echo(q) for q in questions()]
    (HERE / "edge_questions.json").write_text(json.dumps(asked))
    print(len(asked), "questions")
