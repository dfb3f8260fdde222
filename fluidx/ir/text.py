"""Programs as text for people; `parse` reads it back.

    block 0 {
      data x : float32[-1, 13] stop_gradient
      param fc_0.w_0 : float32[13, 1]
      var fc_0.tmp_0 : float32[-1, 1]

      mul(X=x, Y=fc_0.w_0) -> (Out=fc_0.tmp_0) {"x_num_col_dims": 1} forward
    }

Attributes at their default are left out; the role stands as words at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidx import kernels
from fluidx.kernels import VarType

from .roles import CALLSTACK, NAMESCOPE, ROLE, ROLE_VAR, OpRole
from .variable import Parameter, Variable

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator
    from .program import Program

__all__ = ["program_text", "block_text", "op_line", "var_line"]

_PLAIN = re.compile(r"[A-Za-z0-9_@.\-/+]+\Z")
_HIDDEN = {ROLE, CALLSTACK}
_DTYPE_WORDS = {
    VarType.FP16: "float16",
    VarType.BF16: "bfloat16",
    VarType.FP32: "float32",
    VarType.FP64: "float64",
}


def dtype_word(dtype: VarType) -> str:
    return _DTYPE_WORDS.get(dtype, dtype.name.lower())


def name_text(name: str) -> str:
    """A name as it stands, or quoted if it holds odd characters."""
    return name if _PLAIN.match(name) else json.dumps(name)


def var_line(var: Variable) -> str:
    """``var NAME : dtype[shape] facts``; facts at their default are left out."""
    word = "param" if isinstance(var, Parameter) else "data" if var.is_data else "var"
    facts = []
    if var.type != VarType.LOD_TENSOR:
        facts.append(var.type.name.lower())
    if var.lod_level:
        facts.append(f"lod_level={var.lod_level}")
    if isinstance(var, Parameter):
        facts += [] if var.trainable else ["frozen"]
    elif var.persistable:
        facts.append("persistable")
    if var.stop_gradient:
        facts.append("stop_gradient")
    if var.need_check_feed:
        facts.append("check_feed")
    shape = ", ".join(map(str, var.shape))
    head = f"{word} {name_text(var.name)} : {dtype_word(var.dtype)}[{shape}]"
    return " ".join([head, *facts])


def _slots(slots: Mapping[str, Sequence[str]]) -> str:
    shown = []
    for slot, args in slots.items():
        if len(args) == 1:
            shown.append(f"{slot}={name_text(args[0])}")
        else:
            shown.append(f"{slot}=[{', '.join(map(name_text, args))}]")
    return ", ".join(shown)


def attr_value(value: Any) -> Any:
    """An attribute as JSON: blocks become ``{"block": index}``."""
    if hasattr(value, "parent_idx"):
        return {"block": value.idx}
    if isinstance(value, list):
        return [attr_value(v) for v in value]
    return value


def shown_attrs(op: Operator) -> dict[str, Any]:
    """The attributes that are not at their default."""
    defaults: dict[str, Any] = {ROLE_VAR: [], NAMESCOPE: "/"}
    if kernels.has(op.type):
        defaults.update(kernels.find(op.type).defaults)
    return {
        k: attr_value(v)
        for k, v in op.attrs.items()
        if k not in _HIDDEN and not (k in defaults and _same(v, defaults[k]))
    }


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def op_line(op: Operator) -> str:
    """``type(inputs) -> (outputs) {attributes} role``."""
    text = f"{op.type}({_slots(op.inputs)}) -> ({_slots(op.outputs)})"
    attrs = shown_attrs(op)
    if attrs:
        text += " " + json.dumps(attrs)
    return f"{text} {OpRole(op.role).label}"


def block_text(block: Block) -> str:
    """A block: its variables by name, then its ops in order."""
    head = f"block {block.idx}"
    if block.parent_idx >= 0:
        head += f" in {block.parent_idx}"
    if block.forward_block_idx >= 0:
        head += f" of {block.forward_block_idx}"
    lines = [head + " {"]
    lines += [f"  {var_line(block.vars[n])}" for n in sorted(block.vars)]
    if block.vars and block.ops:
        lines.append("")
    lines += [f"  {op_line(op)}" for op in block.ops]
    return "\n".join([*lines, "}"])


def program_text(program: Program) -> str:
    """All blocks, and the random seed if there is one."""
    parts = [f"seed {program.random_seed}"] if program.random_seed else []
    parts += [block_text(b) for b in program.blocks]
    return "\n".join(parts) + "\n"
