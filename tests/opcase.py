"""The op test harness: a case states inputs, attributes and what must come out.

    CASES = [
        OpCase("leaky_relu", {"X": normal(3, 4)}, {"alpha": 0.1},
               lambda x, a: {"Out": np.where(x["X"] > 0, x["X"], 0.1 * x["X"])}),
    ]
    test_activation = suite(CASES)

From each case the harness makes: the forward check in float64 and float32, the
inferred shapes and dtypes against the real ones, the gradient op against central
finite differences in float64, and the same run under the strict-xp proxy, which
refuses what CuPy lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from op_run import (
    Arrays,
    OpCase,
    TestContext,
    _cast,
    _dense,
    _floating,
    _listed,
    grads_of,
    integers,
    normal,
    output_lods,
    run_op,
    uniform,
)
from strict_xp import strict_xp

from fluidx import kernels
from fluidx.kernels import InferContext, Meta, SelectedRows
from fluidx.kernels import compiled as compiled_kernels
from fluidx.kernels.compiled import COMPILED

__all__ = [
    "DECLARED",
    "OpCase",
    "TestContext",
    "check_forward",
    "grads_of",
    "integers",
    "normal",
    "output_lods",
    "run_op",
    "suite",
    "uniform",
]


def check_forward(case: OpCase, dtype: str) -> None:
    """The kernel's outputs equal the expected ones in this precision."""
    inputs = {k: _cast(v, dtype) for k, v in case.inputs.items()}
    outs = run_op(case.op, inputs, case.attrs, counts=case.out_counts, lod=case.lod)
    if case.infer:
        _check_infer(case, inputs, outs)
    _check_sharing(case.op, inputs, outs)
    if case.expected is None:
        return
    attrs = {**kernels.find(case.op).defaults, **case.attrs}
    wanted = case.expected
    if callable(wanted):
        wanted = wanted({k: _cast(v, "float64") for k, v in case.inputs.items()}, attrs)
    loose = 1.0 if dtype == "float64" else 20.0
    for slot, value in wanted.items():
        got = outs[slot] if isinstance(outs[slot], list) else [outs[slot]]
        want = value if isinstance(value, list) else [value]
        assert len(got) == len(want), slot
        for g, w in zip(got, want):
            assert _dense(g).shape == np.shape(w), f"{slot}: shape"
            np.testing.assert_allclose(
                _dense(g), w, case.rtol * loose, case.atol * loose, err_msg=slot
            )


def _check_sharing(type: str, inputs: Arrays, outs: Arrays) -> None:
    """Only ops that say so (view, inplace) may return memory of their inputs."""
    definition = kernels.find(type)
    if definition.view or definition.effect or definition.shares:
        return
    given = [a for v in inputs.values() for a in _listed(v) if hasattr(a, "__array__")]
    for slot, value in outs.items():
        if slot in definition.inplace:
            continue
        for got in _listed(value):
            if hasattr(got, "__array__"):
                assert not any(np.shares_memory(got, a) for a in given), (
                    f"{slot} shares memory with an input, but {type} is no view"
                )


def _meta(value: Any) -> Meta:
    sparse = isinstance(value, SelectedRows)
    kind = kernels.VarType.SELECTED_ROWS if sparse else kernels.VarType.LOD_TENSOR
    return Meta(tuple(value.shape), kernels.as_dtype(value.dtype), 0, kind)


def _check_infer(case: OpCase, inputs: Arrays, outs: Arrays) -> None:
    """What inference promises is what the kernel returned."""
    definition = kernels.find(case.op)
    metas = {
        k: [_meta(a) for a in (v if isinstance(v, list) else [v])]
        for k, v in inputs.items()
    }
    counts = {k: len(v) if isinstance(v, list) else 1 for k, v in outs.items()}
    context = InferContext(
        case.op, metas, {**definition.defaults, **case.attrs}, counts
    )
    definition.infer(context)
    for slot, value in outs.items():
        for meta, got in zip(
            context.outs.get(slot, ()), value if isinstance(value, list) else [value]
        ):
            real = tuple(got.shape)
            assert len(meta.shape) == len(real), f"{slot}: {meta.shape} for {real}"
            assert all(m in (-1, r) for m, r in zip(meta.shape, real)), (
                f"{slot}: inferred {meta.shape}, came {real}"
            )
            assert kernels.to_numpy(meta.dtype) == got.dtype, f"{slot}: dtype"


def check_grad(case: OpCase) -> None:
    """The gradient op agrees with central finite differences in float64."""
    definition = kernels.find(case.op)
    inputs = {k: _cast(v, "float64") for k, v in case.inputs.items()}
    slots = case.grad
    if slots is None:
        slots = [
            s.name
            for s in definition.ins
            if not s.no_grad and s.name in inputs and _all_floating(inputs[s.name])
        ]
    outs = run_op(case.op, inputs, case.attrs, counts=case.out_counts, lod=case.lod)
    heads = case.weights
    if heads is None:
        heads = [
            s.name
            for s in definition.outs
            if not s.intermediate and s.name in outs and _all_floating(outs[s.name])
        ]
    rng = np.random.default_rng(3)
    d_outs: Arrays = {}
    for s in definition.outs:
        if s.name in outs and _all_floating(outs[s.name]):
            value = outs[s.name]
            scale = float(s.name in heads)
            many = value if isinstance(value, list) else [value]
            made = [rng.standard_normal(v.shape) * scale for v in many]
            d_outs[s.name] = made if isinstance(value, list) else made[0]

    def total() -> float:
        now = run_op(case.op, inputs, case.attrs, counts=case.out_counts, lod=case.lod)
        flat = 0.0
        for slot in heads:
            pairs = zip(_listed(now[slot]), _listed(d_outs[slot]))
            flat += sum(float((v * d).sum()) for v, d in pairs)
        return flat

    got = grads_of(case, inputs, outs, d_outs)
    for slot in slots:
        for value, gradient in zip(_listed(inputs[slot]), _listed(got[slot])):
            assert gradient is not None, f"no gradient for {slot}"
            assert _dense(gradient).shape == value.shape, f"{slot}@GRAD: shape"
            wanted = _differences(total, value)
            scale = max(1.0, float(np.abs(wanted).max(initial=0)))
            np.testing.assert_allclose(
                _dense(gradient), wanted, 0, case.grad_tol * scale, err_msg=slot
            )


def _all_floating(value: Any) -> bool:
    return all(_floating(v) for v in _listed(value))


def _differences(total: Callable[[], float], value: np.ndarray) -> np.ndarray:
    step = 1e-5
    result = np.zeros_like(value)
    flat, out = value.reshape(-1), result.reshape(-1)
    for i in range(flat.size):
        kept = flat[i]
        flat[i] = kept + step
        above = total()
        flat[i] = kept - step
        out[i] = (above - total()) / (2 * step)
        flat[i] = kept
    return result


def check_strict(case: OpCase) -> None:
    """Forward under the proxy that refuses what CuPy lacks."""
    inputs = {k: _cast(v, "float32") for k, v in case.inputs.items()}
    run_op(
        case.op,
        inputs,
        case.attrs,
        xp=strict_xp(),
        counts=case.out_counts,
        lod=case.lod,
    )


def has_compiled(type: str) -> bool:
    """Whether the op or its gradient has a compiled kernel here."""
    either = type in COMPILED or f"{type}_grad" in COMPILED
    return either and compiled_kernels.available()


def check_compiled(case: OpCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled kernels give what the op's own give, on small inputs too."""
    monkeypatch.setattr(compiled_kernels, "SMALLEST", 0)
    given: Any = {"counts": case.out_counts, "lod": case.lod}
    for dtype in {"float64", *case.dtypes}:
        inputs = {k: _cast(v, dtype) for k, v in case.inputs.items()}
        plain = run_op(case.op, inputs, case.attrs, **given)
        inputs = {k: _cast(v, dtype) for k, v in case.inputs.items()}  # some change
        fast = run_op(case.op, inputs, case.attrs, compiled=True, **given)
        _same(plain, fast, case)
    inputs = {k: _cast(v, "float32") for k, v in case.inputs.items()}
    plain = run_op(case.op, inputs, case.attrs, **given)
    if case.grad == () or kernels.find(case.op).grad is None:
        return
    heads = {k: normal(*_dense(v).shape).astype("float32") for k, v in plain.items()}
    _same(
        grads_of(case, inputs, plain, heads),
        grads_of(case, inputs, plain, heads, compiled=True),
        case,
    )


def _same(plain: Arrays, fast: Arrays, case: OpCase) -> None:
    assert plain.keys() == fast.keys()
    for slot, value in plain.items():
        if value is None:
            assert fast[slot] is None, slot
            continue
        assert fast[slot].dtype == value.dtype, slot
        np.testing.assert_allclose(
            fast[slot], value, case.rtol * 20, case.atol * 20, err_msg=slot
        )


# every case of every suite that was made, for the test that each op has one
DECLARED: list[OpCase] = []


def suite(cases: Sequence[OpCase]) -> Callable[..., None]:
    """A parametrized test with every check of every case."""
    DECLARED.extend(cases)
    jobs = []
    for i, case in enumerate(cases):
        label = f"{case}-{i}"
        for dtype in case.dtypes:
            jobs.append(pytest.param(case, dtype, id=f"{label}-{dtype}"))
        if case.grad != () and kernels.find(case.op).grad is not None:
            jobs.append(pytest.param(case, "grad", id=f"{label}-grad"))
        if has_compiled(case.op):
            jobs.append(pytest.param(case, "compiled", id=f"{label}-compiled"))
        if case.strict:
            jobs.append(pytest.param(case, "strict", id=f"{label}-strict"))

    @pytest.mark.parametrize(("case", "check"), jobs)
    def test(case: OpCase, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
        if check == "grad":
            check_grad(case)
        elif check == "compiled":
            check_compiled(case, monkeypatch)
        elif check == "strict":
            check_strict(case)
        else:
            check_forward(case, check)

    return test
