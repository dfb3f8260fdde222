"""Collective ops: every rank of a ring runs the same ones, in the same order.

The work is done by ``ctx.world`` (`World`) and its rings (`Group`): NCCL, MPI or
in-process. The ``c_allreduce_*`` ops form the batch group ``collective``: a stretch
of them is one call per ring, in which a backend may put small tensors together.

Mirrors the operators that ``fluid.transpiler.collective`` and nccl2 mode insert. The
two ops that make NCCL ids have no slots in ``ops.json``: a CPU build of the reference
lacks them; theirs are what the transpilers pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .grad import GradContext, OpSpec
from .infer import InferContext, no_outputs, same_as
from .registry import Call, OpDef, batch_kernel, op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

GROUP = "collective"
_RING = Attr("ring_id", int, 0)
_CALC_STREAM = Attr("use_calc_stream", bool, False)
_SYNC_MODE = Attr("sync_mode", bool, False)
# the attribute reduce_type of `allreduce`, numbered as NCCL does
_REDUCE_TYPES = ("sum", "prod", "max", "min")


def _first(names: dict[str, list[str]], slot: str = "X") -> str:
    return next(iter(names.get(slot, ())), "")


def _grad_by(type: str) -> Any:
    """Gradient rule: one op of this type on the gradient, with the same attributes."""

    def rule(op: GradContext) -> list[OpSpec]:
        inputs, outputs = {"X": op.output_grad("Out")}, {"Out": op.input_grad("X")}
        return [OpSpec(type, inputs, outputs, dict(op.attrs))]

    return rule


# ------------------------------------------------------------------ reductions


@batch_kernel(GROUP)
def _reductions(xp: Any, ctx: Any, calls: Sequence[Call]) -> list[tuple[Any, ...]]:
    """One all_reduce per (ring, reduction), in the order of their first ops."""
    stretches: dict[tuple[int, str], list[int]] = {}
    for place, call in enumerate(calls):
        kind = call.op.type.rpartition("_")[2]
        stretches.setdefault((call.attrs["ring_id"], kind), []).append(place)
    results: list[tuple[Any, ...]] = [()] * len(calls)
    for (ring, kind), places in stretches.items():
        values = [calls[i].inputs[0] for i in places]
        names = [_first(calls[i].names) for i in places]
        reduced = ctx.world.group(ring).all_reduce(values, kind, names)
        for place, value in zip(places, reduced):
            results[place] = (value,)
    return results


def _declare(kind: str, grad: Any) -> OpDef:
    made = op(
        f"c_allreduce_{kind}",
        ins=[In("X")],
        outs=[Out("Out")],
        attrs=[_RING, _CALC_STREAM],
        infer=same_as("X"),
        grad=grad,
        effect=True,
        batch=GROUP,
    )

    @made.kernel
    def _(xp: Any, x: Any, *, ctx: Any, names: Any, ring_id: int) -> Any:
        return ctx.world.group(ring_id).all_reduce([x], kind, [_first(names)])[0]

    return made


c_allreduce_sum = _declare("sum", _grad_by("c_allreduce_sum"))
c_allreduce_max = _declare("max", None)
c_allreduce_min = _declare("min", None)
c_allreduce_prod = _declare("prod", None)

allreduce = op(
    "allreduce",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("reduce_type", int, 0), _SYNC_MODE],
    infer=same_as("X"),
    grad=None,
    effect=True,
)


@allreduce.kernel
def _(xp: Any, x: Any, *, ctx: Any, names: Any, reduce_type: int) -> Any:
    if not 0 <= reduce_type < len(_REDUCE_TYPES):
        raise ValueError(f"allreduce: reduce_type {reduce_type}, expected 0 to 3")
    kind = _REDUCE_TYPES[reduce_type]
    return ctx.world.group(0).all_reduce([x], kind, [_first(names)])[0]


# ------------------------------------------------------------------ copies

c_broadcast = op(
    "c_broadcast",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[_RING, Attr("root", int, 0), _CALC_STREAM],
    infer=same_as("X"),
    grad=None,
    effect=True,
)


@c_broadcast.kernel
def _(xp: Any, x: Any, *, ctx: Any, names: Any, ring_id: int, root: int) -> Any:
    return ctx.world.group(ring_id).broadcast(x, root, _first(names))


broadcast = op(
    "broadcast",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("root", int, 0), _SYNC_MODE],
    infer=same_as("X"),
    grad=None,
    effect=True,
)


@broadcast.kernel
def _(xp: Any, x: Any, *, ctx: Any, names: Any, root: int) -> Any:
    return ctx.world.group(0).broadcast(x, root, _first(names))


def _infer_allgather(op: InferContext) -> None:
    x, ranks = op.input("X"), op.attr("nranks")
    op.check(ranks > 0, f"nranks {ranks}, expected at least 1")
    op.check(len(x.shape) > 0, "X is a scalar, expected rows to gather")
    rows = x.shape[0] * ranks if x.shape[0] >= 0 else -1
    op.set("Out", (rows, *x.shape[1:]), like=x)


c_allgather = op(
    "c_allgather",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("nranks", int), _RING, _CALC_STREAM],
    infer=_infer_allgather,
    grad=_grad_by("c_reducescatter"),
    effect=True,
    lod=None,
)


@c_allgather.kernel
def _(xp: Any, x: Any, *, ctx: Any, names: Any, ring_id: int, nranks: int) -> Any:
    group = _sized(ctx, "c_allgather", ring_id, nranks)
    return group.all_gather(x, _first(names))


def _infer_reducescatter(op: InferContext) -> None:
    x, ranks = op.input("X"), op.attr("nranks")
    op.check(ranks > 0, f"nranks {ranks}, expected at least 1")
    op.check(len(x.shape) > 0, "X is a scalar, expected rows to scatter")
    rows = x.shape[0]
    op.check(rows < 0 or rows % ranks == 0, f"{rows} rows for {ranks} ranks")
    op.set("Out", (rows if rows < 0 else rows // ranks, *x.shape[1:]), like=x)


c_reducescatter = op(
    "c_reducescatter",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("nranks", int, 1), _RING, _CALC_STREAM],
    infer=_infer_reducescatter,
    grad=None,
    effect=True,
    lod=None,
)


@c_reducescatter.kernel
def _(xp: Any, x: Any, *, ctx: Any, names: Any, ring_id: int, nranks: int) -> Any:
    group = _sized(ctx, "c_reducescatter", ring_id, nranks)
    if x.shape[0] % nranks:
        raise ValueError(f"c_reducescatter: {x.shape[0]} rows for {nranks} ranks")
    return group.reduce_scatter(x, _first(names))


def _sized(ctx: Any, type: str, ring_id: int, nranks: int) -> Any:
    group = ctx.world.group(ring_id)
    if group.nranks != nranks:
        raise ValueError(
            f"{type}: nranks is {nranks}, ring {ring_id} has {group.nranks} ranks"
        )
    return group


# ------------------------------------------------------------------ streams


def _stream_op(type: str, attrs: list[Attr]) -> OpDef:
    return op(
        type,
        ins=[In("X")],
        outs=[Out("Out")],
        attrs=attrs,
        infer=same_as("X"),
        grad=None,
        effect=True,
        view=True,
    )


c_sync_calc_stream = _stream_op("c_sync_calc_stream", [])
c_sync_comm_stream = _stream_op("c_sync_comm_stream", [_RING])


@c_sync_calc_stream.kernel
def _(xp: Any, x: Any, *, ctx: Any) -> Any:
    if xp is not np:
        ctx.world.settle(None)
    return x


@c_sync_comm_stream.kernel
def _(xp: Any, x: Any, *, ctx: Any, ring_id: int) -> Any:
    if xp is not np:
        ctx.world.settle(ring_id)
    return x


# ------------------------------------------------------------------ beginnings

c_gen_nccl_id = op(
    "c_gen_nccl_id",
    outs=[Out("Out")],
    attrs=[
        Attr("rank", int),
        Attr("endpoint", str),
        Attr("other_endpoints", AttrType.STRINGS),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@c_gen_nccl_id.kernel
def _(
    xp: Any,
    *,
    ctx: Any,
    names: Any,
    rank: int,
    endpoint: str,
    other_endpoints: list[str],
) -> Any:
    ends = [*other_endpoints[:rank], endpoint, *other_endpoints[rank:]]
    return ctx.world.ring_key(_first(names, "Out"), rank, ends)


gen_nccl_id = op(
    "gen_nccl_id",
    outs=[Out("NCCLID")],
    attrs=[
        Attr("trainers", AttrType.STRINGS),
        Attr("trainer_id", int),
        Attr("nccl_comm_num", int),
        Attr("use_hierarchical_allreduce", bool),
        Attr("hierarchical_allreduce_inter_nranks", int),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@gen_nccl_id.kernel
def _(
    xp: Any,
    *,
    ctx: Any,
    names: Any,
    trainers: list[str],
    trainer_id: int,
    nccl_comm_num: int,
    use_hierarchical_allreduce: bool,
    hierarchical_allreduce_inter_nranks: int,
) -> Any:
    world, first = ctx.world, None
    ranks = len(trainers)
    inner = hierarchical_allreduce_inter_nranks if use_hierarchical_allreduce else 0
    for ring in range(nccl_comm_num):
        name = f"{_first(names, 'NCCLID')}_{ring}"
        key = world.ring_key(name, trainer_id, trainers)
        world.open_ring(ring, trainer_id, ranks, key, inner)
        first = key if first is None else first
    return first


c_comm_init = op(
    "c_comm_init",
    ins=[In("X")],
    attrs=[Attr("nranks", int), Attr("rank", int), _RING],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@c_comm_init.kernel
def _(xp: Any, x: Any, *, ctx: Any, nranks: int, rank: int, ring_id: int) -> None:
    ctx.world.open_ring(ring_id, rank, nranks, x)


c_comm_init_all = op(
    "c_comm_init_all",
    attrs=[Attr("devices", AttrType.INTS, []), _RING],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@c_comm_init_all.kernel
def _(xp: Any, *, ctx: Any, devices: list[int], ring_id: int) -> None:
    if len(devices) > 1:
        raise ValueError(
            f"c_comm_init_all: devices {devices}: a process runs on one; start one "
            "process per device (fluidx launch --collective)"
        )
    ctx.world.open_alone(ring_id)
