"""Programs of trainers: what lives on servers, and the same program without them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fluidx.ir import Operator, OpRole, Program
from fluidx.ir.editor import Editor

from .errors import ModelFileError

__all__ = ["local_program", "pulled_tables", "remote_tables", "replace_endpoints"]

_LOOKUP = "distributed_lookup_table"
_ELSEWHERE = OpRole.RPC | OpRole.Dist


def pulled_tables(
    program: Program, names: Iterable[str], executor: Any
) -> dict[str, Any]:
    """The tables among `names` that only servers have, fetched from them."""
    if not program._is_distributed:
        return {}
    wanted = set(names)
    found: dict[str, Any] = {}
    for op in program.all_ops():
        table = op.inputs["W"][0] if op.type == _LOOKUP else ""
        if table in wanted and table not in found:
            found[table] = _pulled(op, executor)
    return found


def remote_tables(program: Program) -> set[str]:
    """Tables that a program only looks up on servers."""
    found = {op.inputs["W"][0] for op in program.all_ops() if op.type == _LOOKUP}
    for op in program.all_ops():
        if op.type != _LOOKUP:
            found -= set(op.input_arg_names)
    return found


def _pulled(op: Operator, executor: Any) -> Any:
    table = op.inputs["W"][0]
    rpc = getattr(executor, "rpc", None)
    if rpc is None:
        raise ModelFileError(
            f"table {table!r} is on servers: the executor of the training is needed"
        )
    asked = list(zip(op.attr("endpoints"), op.attr("table_names")))
    parts = rpc.exchange([], asked, op.attr("trainer_id"))
    return np.concatenate([np.asarray(p) for p in parts])


def local_program(program: Program) -> None:
    """Take out, in place, all that needs other processes.

    Lookups of remote tables become lookups of whole tables again; ops that send,
    receive or combine across ranks go.
    """
    for block in program.blocks:
        edit = Editor(block)
        for op in block.ops:
            if op.type == _LOOKUP:
                edit.replace(op, *_local_lookups(edit, op))
            elif op.role & _ELSEWHERE:
                edit.remove(op)
            elif op.attrs.get("remote_prefetch"):
                _forget_servers(op)
        edit.commit()
    program._is_distributed = program._is_chief = False
    program._endpoints = []
    program._trainers_endpoints = []
    program._parameters_on_pservers = None
    program._distributed_lookup_table = None


def _local_lookups(edit: Editor, op: Operator) -> list[Operator]:
    attrs = {"padding_idx": op.attr("padding_idx")}
    return [
        edit.op(
            op.attr("lookup_table_version"),
            {"Ids": [ids], "W": op.input("W")},
            {"Out": [out]},
            attrs,
            role=op.role,
            where=op.where,
        )
        for ids, out in zip(op.input("Ids"), op.output("Outputs"))
    ]


def _forget_servers(op: Operator) -> None:
    op.attrs["remote_prefetch"] = False
    for name in ("epmap", "table_names", "height_sections"):
        if name in op.attrs:
            op.attrs[name] = []


def replace_endpoints(program: Program, endpoints: list[str]) -> None:
    """Make the ops that look up tables on servers ask these."""
    for op in program.all_ops():
        for name in ("epmap", "endpoints"):
            if op.attrs.get(name):
                op._set_attr(name, list(endpoints))
