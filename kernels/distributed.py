"""Ops that talk to parameter servers.

`send`, `recv` and the barriers form the batch group ``rpc``: a stretch of them runs
as one call, so that a synchronous step (``send_barrier, recv..., fetch_barrier``)
costs one round trip per server. All of them talk to ``ctx.rpc`` (`Rpc`) only, or to
the communicator that it says stands between.

Mirrors the operators that ``fluid.transpiler.DistributeTranspiler`` inserts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .infer import no_outputs
from .registry import Call, batch_kernel, op
from .schema import Attr, AttrType, In, Out
from .sharding import cut_rows, to_device, to_host

__all__ = ["addressed"]

GROUP = "rpc"
_HOME = ["127.0.0.1:6164"]  # the reference's default endpoint
# what a control variable (`send` -> `send_barrier` -> `recv`) holds
_TOKEN = np.zeros((0,), np.bool_)

_TRAINER = Attr("trainer_id", int, 0)
_VARNAMES = Attr("send_varnames", AttrType.STRINGS, [])

send = op(
    "send",
    ins=[In("X", duplicable=True)],
    outs=[Out("Out", duplicable=True)],
    attrs=[
        Attr("epmap", AttrType.STRINGS, _HOME),
        Attr("merge_add", bool, False),
        Attr("num", int, 0),
        Attr("sections", AttrType.LONGS, []),
        _VARNAMES,
        _TRAINER,
        Attr("use_send_handler", bool, True),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    batch=GROUP,
    lod=None,
)

recv = op(
    "recv",
    ins=[In("X", duplicable=True)],
    outs=[Out("Out", duplicable=True)],
    attrs=[
        Attr("do_not_run", int, 0),
        Attr("epmap", AttrType.STRINGS, []),
        Attr("recv_varnames", AttrType.STRINGS, []),
        _TRAINER,
        Attr("varnames", AttrType.STRINGS, []),
        Attr("with_barrier", bool, True),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    batch=GROUP,
    lod=None,
)

send_barrier = op(
    "send_barrier",
    ins=[In("X", duplicable=True)],
    outs=[Out("Out", duplicable=True)],
    attrs=[
        Attr("endpoints", AttrType.STRINGS, _HOME),
        Attr("half_async", bool, False),
        _TRAINER,
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    batch=GROUP,
    lod=None,
)

fetch_barrier = op(
    "fetch_barrier",
    ins=[In("X", duplicable=True, dispensable=True)],
    outs=[Out("Out", duplicable=True)],
    attrs=[Attr("endpoints", AttrType.STRINGS, _HOME), _TRAINER],
    infer=no_outputs,
    grad=None,
    effect=True,
    batch=GROUP,
    lod=None,
)

listen_and_serv = op(
    "listen_and_serv",
    ins=[In("X", duplicable=True)],
    attrs=[
        Attr("Fanin", int, 1),
        Attr("checkpint_block_id", int, -1),
        Attr("dc_asgd", bool, False),
        Attr("distributed_mode", int, 0),
        Attr("endpoint", str, _HOME[0]),
        Attr("grad_to_block_id", AttrType.STRINGS, []),
        Attr("lr_decay_block_id", int, -1),
        Attr("optimize_blocks", AttrType.BLOCKS, []),
        Attr("prefetch_var_name_to_block_id", AttrType.STRINGS, []),
        Attr("pserver_id", int, -1),
        Attr("rpc_get_thread_num", int, 1),
        Attr("rpc_prefetch_thread_num", int, 1),
        Attr("rpc_send_thread_num", int, 1),
        Attr("sparse_grad_to_param", AttrType.STRINGS, []),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@listen_and_serv.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: Any,
    names: dict[str, list[str]],
    endpoint: str,
    Fanin: int,
    distributed_mode: int,
    dc_asgd: bool,
    grad_to_block_id: list[str],
    lr_decay_block_id: int,
    optimize_blocks: list[int],
    sparse_grad_to_param: list[str],
) -> None:
    ctx.serve(
        names.get("X", []),
        {
            "endpoint": endpoint,
            "Fanin": Fanin,
            "distributed_mode": distributed_mode,
            "dc_asgd": dc_asgd,
            "grad_to_block_id": grad_to_block_id,
            "lr_decay_block_id": lr_decay_block_id,
            "optimize_blocks": optimize_blocks,
            "sparse_grad_to_param": sparse_grad_to_param,
        },
    )


def addressed(
    names: Sequence[str], values: list[Any], attrs: Mapping[str, Any]
) -> list[tuple[str, str, Any]]:
    """What a `send` of these variables gives to whom: (endpoint, name, value)."""
    epmap, pieces = attrs["epmap"], attrs["send_varnames"]
    if any(v is None for v in values):
        raise ValueError(f"send: one of {', '.join(names)} has no value")
    if len(pieces) > 1:  # the slices are cut here, at run time
        if len(values) != 1 or len(pieces) != len(epmap):
            raise ValueError(
                f"send: {len(values)} variables cannot become the slices {pieces}"
            )
        values = cut_rows(values[0], attrs["sections"])
    names = pieces or names
    if len(values) == 1 and len(epmap) > 1:  # the same to every server
        values = values * len(epmap)
        names = list(names) * len(epmap)
    if not len(values) == len(epmap) == len(names):
        raise ValueError(
            f"send: {len(values)} variables for {len(epmap)} endpoints {epmap}"
        )
    return list(zip(epmap, names, values))


class _Stretch:
    """One pass over consecutive RPC ops; what can travel together is gathered.

    Sends and receives go through what stands between (`Between`), where something
    does: a communicator.
    """

    def __init__(self, xp: Any, ctx: Any) -> None:
        self.xp = xp
        self.ctx = ctx
        self.rpc = ctx.rpc
        self.between = self.rpc.between(ctx)
        self.trainer = 0
        self.barriers: list[str] = []
        self.wanted: list[tuple[str, str]] = []
        self.targets: list[tuple[list[Any], list[int]]] = []
        self.received: dict[str, Any] = {}

    def run(self, calls: Sequence[Call]) -> list[tuple[Any, ...]]:
        outs: list[list[Any]] = []
        fetches: list[tuple[list[Any], list[str]]] = []
        for call in calls:
            out_names = call.names.get("Out", [])
            out: list[Any] = [_TOKEN] * len(out_names)
            outs.append(out)
            kind = call.op.type
            if kind == "recv":
                self._recv(call, out, out_names)
                continue
            if kind == "fetch_barrier":
                self.trainer = call.attrs["trainer_id"]
                self.rpc.register(call.attrs["endpoints"], self.trainer)
                fetches.append((out, out_names))
                continue
            self.flush()  # a send behind a recv belongs to the next exchange
            if kind == "send":
                self._send(call)
            else:
                self.trainer = call.attrs["trainer_id"]
                if call.attrs["half_async"]:  # it ends this trainer's batch only
                    self.rpc.register(call.attrs["endpoints"], self.trainer)
                else:
                    self.barriers += call.attrs["endpoints"]
        self.flush()
        if self.barriers:
            self._exchange()
        for out, out_names in fetches:
            # its outputs are the control variable, or what the recvs before it got
            out[:] = [self.received.get(n, _TOKEN) for n in out_names]
        return [(out,) for out in outs]

    def _send(self, call: Call) -> None:
        attrs = call.attrs
        names = call.names.get("X", [])
        values = [to_host(v) for v in call.inputs[0] or ()]
        if self.between is not None:
            self.between.send(names, values, attrs, self.received)
            return
        for endpoint, name, value in addressed(names, values, attrs):
            self.rpc.push(endpoint, name, value)

    def _recv(self, call: Call, out: list[Any], out_names: list[str]) -> None:
        attrs = call.attrs
        if attrs["do_not_run"]:  # the variables stay as they are
            for place, name in enumerate(out_names):
                holder = self.ctx.scope.find_var(name)
                if holder is not None and holder.value is not None:
                    out[place] = holder.value
            return
        self.trainer = attrs["trainer_id"]
        remote = attrs["recv_varnames"] or attrs["varnames"] or out_names
        if len(remote) != len(attrs["epmap"]):
            raise ValueError(f"recv: {remote} from endpoints {attrs['epmap']}")
        first = len(self.wanted)
        self.wanted += zip(attrs["epmap"], remote)
        self.targets.append((out, list(range(first, len(self.wanted)))))

    def flush(self) -> None:
        """Exchange what has been gathered, if something is wanted back."""
        if self.wanted:
            self._exchange()

    def _exchange(self) -> None:
        if self.between is not None and not self.barriers:
            values = self.between.receive(self.wanted, self.trainer)
        else:
            values = self.rpc.exchange(self.barriers, self.wanted, self.trainer)
        values = [to_device(self.xp, v) for v in values]
        for out, places in self.targets:
            got = [values[i] for i in places]
            if len(out) == 1 and len(got) > 1:
                got = [self.xp.concatenate(got)]
            out[:] = got
        self.received.update((n, v) for (_, n), v in zip(self.wanted, values))
        self.barriers, self.wanted, self.targets = [], [], []


@batch_kernel(GROUP)
def _rpc_batch(xp: Any, ctx: Any, calls: Sequence[Call]) -> list[tuple[Any, ...]]:
    return _Stretch(xp, ctx).run(calls)


def _one(definition: Any, xp: Any, ctx: Any, x: Any, names: Any, **attrs: Any) -> Any:
    """A single op of the group outside a batch."""
    every = {**definition.defaults, **attrs}
    return _rpc_batch(xp, ctx, [Call(definition, [x], every, names)])[0][0]


@send.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: Any,
    names: Any,
    epmap: Any,
    sections: Any,
    send_varnames: Any,
) -> Any:
    return _one(
        send,
        xp,
        ctx,
        x,
        names,
        epmap=epmap,
        sections=sections,
        send_varnames=send_varnames,
    )


@recv.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: Any,
    names: Any,
    do_not_run: Any,
    epmap: Any,
    recv_varnames: Any,
    varnames: Any,
    trainer_id: int,
) -> Any:
    return _one(
        recv,
        xp,
        ctx,
        x,
        names,
        do_not_run=do_not_run,
        epmap=epmap,
        recv_varnames=recv_varnames,
        varnames=varnames,
        trainer_id=trainer_id,
    )


@send_barrier.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: Any,
    names: Any,
    endpoints: Any,
    half_async: bool,
    trainer_id: int,
) -> Any:
    return _one(
        send_barrier,
        xp,
        ctx,
        x,
        names,
        endpoints=endpoints,
        half_async=half_async,
        trainer_id=trainer_id,
    )


@fetch_barrier.kernel
def _(xp: Any, x: Any, *, ctx: Any, names: Any, endpoints: Any, trainer_id: int) -> Any:
    return _one(
        fetch_barrier, xp, ctx, x, names, endpoints=endpoints, trainer_id=trainer_id
    )
