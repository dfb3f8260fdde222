"""Collective ops as layers (``fluid.layers.collective``): for users' own programs.

Every rank runs the same op. ring_id: which communicator. use_calc_stream: wait for what
was computed before; here ops run in order anyway.
"""

from __future__ import annotations

from fluidx.ir import Variable, unique_name
from fluidx.layer_helper import LayerHelper

__all__: list[str] = []

_REDUCTIONS = ("sum", "prod", "max", "min")


def _made(x: Variable, type: str) -> Variable:
    """A new variable like `x`, named after it and the op."""
    block = LayerHelper(type, name="").main_program.current_block()
    name = unique_name.generate(f"{x.name}.{type}")
    return block.create_var(name=name, shape=x.shape, dtype=x.dtype)


def _append(
    type: str, x: Variable, out: Variable, **attrs: int | bool | str
) -> Variable:
    LayerHelper(type, name="").append_op(type, {"X": x}, {"Out": out}, attrs)
    return out


def _c_allreduce(
    x: Variable,
    out: Variable | None = None,
    reduce_type: str = "sum",
    ring_id: int = 0,
    use_calc_stream: bool = False,
) -> Variable:
    """The reduction of all ranks' x, on every rank; out may be x itself.

    reduce_type: sum, prod, max or min; TypeError for others.
    """
    if reduce_type not in _REDUCTIONS:
        raise TypeError(f"reduce_type {reduce_type!r} is none of {_REDUCTIONS}")
    type = f"c_allreduce_{reduce_type}"
    out = _made(x, type) if out is None else out
    return _append(type, x, out, ring_id=ring_id, use_calc_stream=use_calc_stream)


def _c_allgather(
    x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False
) -> Variable:
    """All ranks' x, one below the other."""
    more = {"ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append("c_allgather", x, _made(x, "c_allgather"), nranks=nranks, **more)


def _c_broadcast(
    x: Variable, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False
) -> Variable:
    """x of the rank `root`, put into x everywhere."""
    more = {"ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append("c_broadcast", x, x, root=root, **more)


def _c_reducescatter(
    x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False
) -> Variable:
    """This rank's part of the sum: one of `nranks` equal blocks of rows.

    TypeError: nranks is no integer. ValueError: the rows cannot be shared out.
    """
    if not isinstance(nranks, int):
        raise TypeError(f"nranks must be an integer, got {nranks!r}")
    if x.shape[0] > 0 and x.shape[0] % nranks:
        raise ValueError(f"{x.shape[0]} rows cannot be shared out among {nranks} ranks")
    type = "c_reducescatter"
    more = {"ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append(type, x, _made(x, type), nranks=nranks, **more)


def _c_sync_calc_stream(x: Variable) -> Variable:
    """Wait until x is computed."""
    return _append("c_sync_calc_stream", x, x)


def _c_sync_comm_stream(x: Variable, ring_id: int) -> Variable:
    """Wait until x has been exchanged."""
    return _append("c_sync_comm_stream", x, x, ring_id=ring_id)
