"""`op`: the one declaration of everything about an op, and the registry of all.

    leaky_relu = op("leaky_relu", ins=[In("X")], outs=[Out("Out")],
                    attrs=[Attr("alpha", float, 0.02)],
                    infer=same_as("X"), grad=grad_op(needs=["X"]))

    @leaky_relu.kernel
    def _(xp, x, *, alpha):
        return xp.where(x > 0, x, alpha * x)

    @leaky_relu.grad_kernel
    def _(xp, x, d_out, *, alpha):
        return xp.where(x > 0, d_out, alpha * d_out)

How a kernel is called: ``kernel(xp, *inputs, **keywords)``. Inputs come in slot
order (a list for a duplicable slot, None for an absent one). Keyword-only
parameters say what else the kernel wants: any attribute by its name, or

    ctx    the `RunContext` (random generator, scope, RPC client, ...)
    wants  tuple of bool, one per output slot: is that output asked for
    lod    dict slot -> LoD (list of lists of offsets) of its variable, or None; a
           list of those for a duplicable slot. A gradient has its variable's LoD.
    counts dict output slot -> number of variables in it
    names  dict slot -> names of its variables (inputs and outputs)
    out    an array that may be overwritten with the first output, or None
    prior  what the first output's variable held before, or None

It returns the outputs in slot order: a bare value where there is one slot, else a
tuple (None where not wanted); a list for a duplicable slot.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .grad import GRAD, GradContext, GradRule, OpSpec, grad_op
from .infer import InferContext, InferRule
from .schema import Attr, In, Out

__all__ = [
    "Call",
    "OpDef",
    "all_types",
    "batch_kernel",
    "batch_of",
    "declared",
    "find",
    "has",
    "op",
    "takes",
]

Kernel = Callable[..., Any]

_ops: dict[str, OpDef] = {}
_batches: dict[str, Kernel] = {}
_loaded = False
_SPECIAL = ("ctx", "wants", "lod", "counts", "names", "out", "prior")


@dataclass(slots=True)
class Call:
    """One op of a batch: its inputs in slot order, attributes, and names by slot."""

    op: OpDef
    inputs: list[Any]
    attrs: dict[str, Any]
    names: dict[str, list[str]]


class OpDef:
    """Everything that is known about one op type.

    effect: it acts on the world (sends, prints, saves); never dropped or moved.
    random: it draws random numbers through ``ctx``.
    inplace: {output slot: input slot}; the kernel updates that input's array and
        returns it. The executor hands it an array that nobody else looks at.
    view: the output may share memory with the first input.
    overwrites: input slot whose buffer the kernel can reuse through ``out``.
    lod: input slot whose LoD the outputs share; None: outputs have no LoD.
    makes_lod: its LoD rule is asked even where no input has a LoD.
    unset: input slots that may hold no value yet (the kernel then gets None).
    batch: consecutive ops of one batch group run as one call of its batch kernel.
    scoped: it runs sub-blocks. Its kernel gets None for all inputs but gradients,
        takes variables from ``ctx.scope`` by name and leaves its outputs there; only
        gradients are returned.
    shares: outputs may share memory with any of the inputs.
    """

    def __init__(
        self,
        type: str,
        ins: Sequence[In],
        outs: Sequence[Out],
        attrs: Iterable[Attr],
        infer: InferRule,
        grad: grad_op | GradRule | None,
        **traits: Any,
    ) -> None:
        self.type = type
        self.ins = tuple(ins)
        self.outs = tuple(outs)
        self.attrs = {a.name: a for a in attrs}
        self.infer = infer
        self.grad = grad
        self.effect: bool = traits.pop("effect", False)
        self.random: bool = traits.pop("random", False)
        self.inplace: dict[str, str] = traits.pop("inplace", {})
        self.view: bool = traits.pop("view", False)
        self.overwrites: str | None = traits.pop("overwrites", None)
        self.lod: str | None = traits.pop("lod", self.ins[0].name if ins else None)
        self.makes_lod: bool = traits.pop("makes_lod", False)
        self.batch: str | None = traits.pop("batch", None)
        self.scoped: bool = traits.pop("scoped", False)
        self.shares: bool = traits.pop("shares", False)
        self.unset: frozenset[str] = frozenset(traits.pop("unset", ()))
        self.shape_only: frozenset[str] = frozenset(traits.pop("shape_only", ()))
        self.forward: OpDef | None = traits.pop("forward", None)
        if traits:
            raise TypeError(f"op {type}: unknown traits {sorted(traits)}")
        self.defaults = {
            a.name: a.default for a in self.attrs.values() if a.default is not None
        }
        self.run: Kernel | None = None
        self.keywords: tuple[str, ...] = ()
        self.lod_rule: Kernel | None = None

    def __repr__(self) -> str:
        return f"<op {self.type}>"

    @property
    def module(self) -> str:
        return inspect.getmodule(self.run).__name__ if self.run else "?"  # type: ignore[union-attr]

    def kernel(self, fn: Kernel) -> Kernel:
        """Decorator: the array code of this op (calling rule: top of the module)."""
        wanted = inspect.signature(fn).parameters.values()
        self.keywords = tuple(p.name for p in wanted if p.kind is p.KEYWORD_ONLY)
        for name in self.keywords:
            if name not in self.attrs and name not in _SPECIAL:
                raise TypeError(f"kernel of {self.type}: no attribute {name!r}")
        if "out" not in self.keywords:
            self.overwrites = None
        self.run = fn
        return fn

    def grad_kernel(self, fn: Kernel) -> Kernel:
        """Decorator: the array code of ``<type>_grad`` (rule `grad_op` only)."""
        return self.grad_def.kernel(fn)

    def lod_kernel(self, fn: Kernel) -> Kernel:
        """Decorator: LoD of the outputs where it is not shared from an input.

        Called as fn(lod, values, attrs) with dicts by input slot, lists where a slot
        is duplicable; returns a dict output slot -> LoD. A LoD may be None.
        """
        self.lod_rule = fn
        return fn

    @property
    def grad_def(self) -> OpDef:
        """The op that the rule `grad_op` adds for this one."""
        if not isinstance(self.grad, grad_op):
            raise TypeError(f"op {self.type} has no gradient op of its own")
        return _ops[self.grad.type or f"{self.type}_grad"]

    def grad_specs(self, op: GradContext) -> Sequence[OpSpec]:
        """The ops that `append_backward` adds for this op."""
        if self.grad is None:
            return []
        if not isinstance(self.grad, grad_op):
            return self.grad(op)
        made = self.grad_def
        inputs: dict[str, list[str]] = {}
        for slot in made.ins:
            if slot.name.endswith(GRAD):
                inputs[slot.name] = op.output_grad(slot.name[: -len(GRAD)])
            else:
                inputs[slot.name] = op.input(slot.name) or op.output(slot.name)
        outputs = {s.name: op.input_grad(s.name[: -len(GRAD)]) for s in made.outs}
        return [
            OpSpec(
                made.type,
                {k: v for k, v in inputs.items() if v},
                {k: v for k, v in outputs.items() if v},
                dict(op.attrs),
            )
        ]


def op(
    type: str,
    *,
    ins: Sequence[In] = (),
    outs: Sequence[Out] = (),
    attrs: Iterable[Attr] = (),
    infer: InferRule,
    grad: grad_op | GradRule | None,
    **traits: Any,
) -> OpDef:
    """Declare an op; see `OpDef` for the traits. `grad=None`: it has no gradient."""
    if type in _ops:
        raise ValueError(f"op {type} is declared twice")
    made = OpDef(type, ins, outs, attrs, infer, grad, **traits)
    _ops[type] = made
    if isinstance(grad, grad_op):
        _declare_grad(made, grad)
    return made


def _declare_grad(forward: OpDef, rule: grad_op) -> None:
    """Register ``<type>_grad`` with the slots that the rule names."""
    name = rule.type or f"{forward.type}_grad"
    if name in _ops:  # several forward ops may share a gradient op
        return
    known_in = {s.name: s for s in forward.ins}
    known_out = {s.name: s for s in forward.outs}
    ins = []
    for slot in rule.needs:
        source = known_in.get(slot) or known_out.get(slot)
        if source is None:
            raise ValueError(f"gradient of {forward.type}: no slot {slot}")
        ins.append(In(slot, source.duplicable, True))
    of = rule.of
    if of is None:
        of = [s.name for s in forward.outs if not s.intermediate]
    arriving = [In(s + GRAD, known_out[s].duplicable, True) for s in of]
    ins = [*arriving, *ins] if rule.view else [*ins, *arriving]
    to = rule.to
    if to is None:
        to = [s.name for s in forward.ins if not s.no_grad]
    outs = [Out(s + GRAD, known_in[s].duplicable, False, True) for s in to]
    _ops[name] = OpDef(
        name,
        ins,
        outs,
        forward.attrs.values(),
        _like_forward,
        None,
        shape_only=rule.shape_only,
        view=rule.view,
        forward=forward,
        lod=None,
    )


def _like_forward(op: InferContext) -> None:
    """A gradient looks like its variable, wherever that one is an input."""
    for slot in op.out_counts:
        metas = op.ins.get(slot[: -len(GRAD)])
        if metas and len(metas) == op.out_counts[slot]:
            op.set_each(slot, metas)


def takes(attrs: Iterable[Attr]) -> Callable[[Kernel], Kernel]:
    """Decorator: a kernel's ``**window`` stands for these attributes as keywords."""

    def spell_out(kernel: Kernel) -> Kernel:
        own = inspect.signature(kernel)
        kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(a.name, inspect.Parameter.KEYWORD_ONLY) for a in attrs
        ]
        kernel.__signature__ = own.replace(parameters=kept + more)  # type: ignore[attr-defined]
        return kernel

    return spell_out


def batch_kernel(group: str) -> Callable[[Kernel], Kernel]:
    """Decorator: runs a stretch of consecutive ops of one batch group at once.

    Called as fn(xp, ctx, calls) with a list of `Call`; returns for each of them the
    tuple of its outputs in slot order. Ops of a batch that touch each other's
    variables are run one after the other: the executor splits the stretch there,
    unless the group's name starts with "rpc".
    """

    def register(fn: Kernel) -> Kernel:
        _batches[group] = fn
        return fn

    return register


def batch_of(group: str) -> Kernel | None:
    """The batch kernel of a group."""
    return _batches.get(group)


def _load() -> None:
    """Import every family once; each declares its ops."""
    global _loaded
    _loaded = True
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


def find(type: str) -> OpDef:
    """The definition of an op type; KeyError names near misses."""
    if not _loaded:
        _load()
    found = _ops.get(type)
    if found is None:
        import difflib

        near = difflib.get_close_matches(type, _ops, 3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise KeyError(f"fluidx has no op {type!r}{hint}")
    return found


def declared(type: str) -> OpDef:
    """The definition of an op whose family has been imported."""
    return _ops[type]


def has(type: str) -> bool:
    """Whether an op type is defined."""
    if not _loaded:
        _load()
    return type in _ops


def all_types(pattern: str = "") -> list[str]:
    """All op types, or those that match a regular expression."""
    if not _loaded:
        _load()
    return sorted(t for t in _ops if re.search(pattern, t))
