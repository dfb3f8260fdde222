"""One op of a test: its case, and running the kernel and its gradient by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidx import kernels
from fluidx.kernels import GRAD, GradContext, OpDef, SelectedRows
from fluidx.kernels.compiled import compiled_kernel

__all__ = [
    "Arrays",
    "OpCase",
    "TestContext",
    "grads_of",
    "integers",
    "normal",
    "output_lods",
    "run_op",
    "uniform",
]

Arrays = dict[str, Any]


class TestContext:
    """A `RunContext` for kernels: seeded generators, nothing else."""

    __test__ = False

    def __init__(self, seed: int = 7) -> None:
        self._generator = np.random.default_rng(seed)
        self.scope = self.place = self.rpc = None
        self.xp = np

    def generator(self, seed: int = 0) -> np.random.Generator:
        return np.random.default_rng(seed) if seed else self._generator

    host_generator = generator


@dataclass
class OpCase:
    """One op call and what must come of it.

    inputs: slot -> array or list of arrays. expected: fn(inputs, attrs) -> slot ->
    array (computed in float64), or such a dict, or None where only gradients and
    inference are looked at. grad: slots to check by finite differences (None: all
    floating inputs that have a gradient; (): none). weights: outputs that the
    differentiated scalar is made of (None: all floating non-intermediate ones).
    """

    op: str
    inputs: Arrays
    attrs: Mapping[str, Any] = field(default_factory=dict)
    expected: Callable[[Arrays, dict[str, Any]], Arrays] | Arrays | None = None
    name: str = ""
    grad: Sequence[str] | None = None
    weights: Sequence[str] | None = None
    rtol: float = 1e-5
    atol: float = 1e-6
    grad_tol: float = 1e-6
    dtypes: Sequence[str] = ("float64", "float32")
    infer: bool = True
    strict: bool = True
    lod: Mapping[str, Any] | None = None
    out_counts: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.op}-{self.name}" if self.name else self.op


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Standard normal float64 numbers, the same in every run."""
    return np.random.default_rng(seed).standard_normal(shape) * scale


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, seed: int = 0) -> Any:
    """Uniform float64 numbers, the same in every run."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def integers(*shape: int, high: int, seed: int = 0) -> np.ndarray:
    """int64 numbers in [0, high)."""
    return np.random.default_rng(seed).integers(0, high, shape)


def _cast(value: Any, dtype: str) -> Any:
    if isinstance(value, list):
        return [_cast(v, dtype) for v in value]
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows, _cast(value.value, dtype), value.height)
    if np.issubdtype(np.asarray(value).dtype, np.floating):
        return np.array(value, dtype)
    return np.array(value)


def _positional(definition: OpDef, values: Arrays) -> list[Any]:
    return [values.get(slot.name) for slot in definition.ins]


def run_op(
    type: str,
    inputs: Arrays,
    attrs: Mapping[str, Any],
    *,
    xp: Any = np,
    wants: Sequence[str] | None = None,
    counts: Mapping[str, int] | None = None,
    lod: Mapping[str, Any] | None = None,
    out: Any = None,
    compiled: bool = False,
) -> Arrays:
    """Call an op's kernel as the executor would; slot -> value."""
    definition = kernels.find(type)
    every = {**definition.defaults, **attrs}
    asked = [wants is None or s.name in wants for s in definition.outs]
    extra = {
        "ctx": TestContext(),
        "wants": tuple(asked),
        "lod": dict(lod or {}),
        "counts": {s.name: (counts or {}).get(s.name, 1) for s in definition.outs},
        "names": {k: _names(k, v) for k, v in inputs.items()},
        "out": out,
    }
    given = {k: extra[k] if k in extra else every.get(k) for k in definition.keywords}
    run = compiled_kernel(type) if compiled else None
    run = run or definition.run
    assert run is not None, f"{type} has no kernel"
    result = run(xp, *_positional(definition, inputs), **given)
    if len(definition.outs) == 1:
        result = (result,)
    return {s.name: r for s, r in zip(definition.outs, result or ()) if r is not None}


def output_lods(
    type: str, lod: Mapping[str, Any], inputs: Arrays, attrs: Mapping[str, Any]
) -> dict[str, Any]:
    """The LoD of an op's outputs, from the LoD of its inputs; output slot -> LoD."""
    definition = kernels.find(type)
    known = any(
        levels and any(_listed(levels))
        for slot, levels in lod.items()
        if slot in inputs
    )
    if definition.lod_rule is not None and (known or definition.makes_lod):
        given = {slot: lod.get(slot) for slot in inputs}
        every = {**definition.defaults, **attrs}
        found: dict[str, Any] = definition.lod_rule(given, inputs, every)
        return found
    levels = lod.get(definition.lod or "")
    if levels and isinstance(inputs.get(definition.lod or ""), list):
        levels = levels[0]
    return {s.name: levels for s in definition.outs} if levels else {}


def _lods_by_name(
    lod: Mapping[str, Any], ins: Any, outs: Any, wanted: Mapping[str, list[str]]
) -> dict[str, Any]:
    """LoD by slot of a gradient op that calls the variables by other slots."""
    known = {}
    for slot, levels in lod.items():
        forward = slot[: -len(GRAD)] if slot.endswith(GRAD) else slot
        for name in (outs if slot.endswith(GRAD) else ins).get(forward, ())[:1]:
            known[name + slot[len(forward) :]] = levels
    return {slot: known[n[0]] for slot, n in wanted.items() if n and n[0] in known}


def grads_of(
    case: OpCase,
    inputs: Arrays,
    outs: Arrays,
    d_outs: Arrays,
    compiled: bool = False,
) -> Arrays:
    """Run the gradient op(s) of a case; input slot -> gradient."""
    definition = kernels.find(case.op)
    names_in = {k: _names(k, v) for k, v in inputs.items()}
    names_out = {k: _names(k, v) for k, v in outs.items()}
    env: Arrays = {}
    for names, values in ((names_in, inputs), (names_out, outs)):
        for slot, value in values.items():
            env.update(zip(names[slot], value if isinstance(value, list) else [value]))
    for slot, value in d_outs.items():
        grads = value if isinstance(value, list) else [value]
        env.update((n + GRAD, g) for n, g in zip(names_out[slot], grads))
    attrs = {**definition.defaults, **case.attrs}
    # a non-floating input has no gradient variable
    frozen = frozenset(n for n, v in env.items() if not _floating(v))
    lod = dict(case.lod or {})
    for slot, levels in output_lods(case.op, lod, inputs, attrs).items():
        lod[slot + GRAD] = levels
    for spec in definition.grad_specs(
        GradContext(case.op, names_in, names_out, attrs, frozen)
    ):
        made = kernels.find(spec.type)
        many = {s.name for s in made.ins if s.duplicable}
        values = {
            slot: [env[n] for n in names] if slot in many else env[names[0]]
            for slot, names in spec.inputs.items()
            if all(n in env for n in names)
        }
        results = run_op(
            spec.type,
            values,
            spec.attrs,
            wants=list(spec.outputs),
            counts={k: len(v) for k, v in spec.outputs.items()},
            lod=_lods_by_name(lod, names_in, names_out, spec.inputs) | lod,
            compiled=compiled,
        )
        for slot, names in spec.outputs.items():
            value = results.get(slot)
            got = value if isinstance(value, list) else [value]
            env.update(zip(names, got))
    return {
        slot: [env.get(n + GRAD) for n in names]
        if isinstance(inputs[slot], list)
        else env.get(names[0] + GRAD)
        for slot, names in names_in.items()
    }


def _names(slot: str, value: Any) -> list[str]:
    count = len(value) if isinstance(value, list) else 1
    return [f"{slot}.{i}" for i in range(count)]


def _floating(value: Any) -> bool:
    return np.issubdtype(np.asarray(getattr(value, "value", value)).dtype, np.floating)


def _dense(value: Any) -> np.ndarray:
    return value.to_dense() if isinstance(value, SelectedRows) else np.asarray(value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
