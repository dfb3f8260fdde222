"""Programs as text for people; `parse` reads it back.

    block 0 {
      data  x          : float32[-1, 13] stop_gradient
      param fc_0.w_0   : float32[13, 1]
      var   fc_0.tmp_0 : float32[-1, 1]

      mul(X=x, Y=fc_0.w_0) -> (Out=fc_0.tmp_0) {x_num_col_dims: 2}
      mean_grad(...) -> (...) : backward
      sgd(...) -> (ParamOut=fc_0.w_0) : optimize(fc_0.w_0, fc_0.w_0@GRAD) in /optimizer/
    }

Data comes first, then parameters, other lasting variables, and the rest, each by name.
Attributes at their default are left out, and so are empty slots. Behind the colon stand
the op's role (none: forward), the variables of ``op_role_var``, and its name scope.
Long ops go on over several lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidx import kernels
from fluidx.kernels import VarType

from .attrs import coerce, is_block, kind_of
from .roles import CALLSTACK, DEVICE, NAMESCOPE, ROLE, ROLE_VAR, OpRole
from .variable import Parameter, Variable

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator
    from .program import Program

__all__ = ["DTYPE_WORDS", "block_text", "op_line", "program_text", "var_line"]

_PLAIN = re.compile(r"[A-Za-z0-9_@.\-/+]+\Z")
_WIDTH = 100
_NAME_WIDTH = 40
_FLOAT_WORDS = {
    VarType.FP16: "float16",
    VarType.BF16: "bfloat16",
    VarType.FP32: "float32",
    VarType.FP64: "float64",
}
#: element types and variable kinds as words: ``float32``, ``int64``, ``selected_rows``
DTYPE_WORDS = {t: _FLOAT_WORDS.get(t, t.name.lower()) for t in VarType}
_TENSOR = VarType.LOD_TENSOR


def name_text(name: str) -> str:
    """A name as it stands, or quoted if it holds odd characters."""
    return name if _PLAIN.match(name) else json.dumps(name)


# ---------------------------------------------------------------- variables


def _word(var: Variable) -> str:
    return "param" if isinstance(var, Parameter) else "data" if var.is_data else "var"


def _type_text(var: Variable) -> str:
    shape = ", ".join(map(str, var.shape))
    elements = f"{DTYPE_WORDS[var.dtype]}[{shape}]"
    if var.type == _TENSOR:
        return elements
    kind = DTYPE_WORDS[var.type]
    told = var.shape or var.dtype != VarType.FP32
    return f"{kind} {elements}" if told else kind


def _facts(var: Variable) -> list[str]:
    facts = [f"lod_level={var.lod_level}"] if var.lod_level else []
    if isinstance(var, Parameter):
        facts += [] if var.trainable else ["frozen"]
        facts += ["distributed"] if var.is_distributed else []
        facts += [] if var.persistable else ["transient"]
    elif var.persistable:
        facts.append("persistable")
    if var.stop_gradient:
        facts.append("stop_gradient")
    if var.need_check_feed:
        facts.append("check_feed")
    return facts


def var_line(var: Variable, width: int = 0) -> str:
    """``var NAME : dtype[shape] facts``; facts at their default are left out.

    width: what the name is padded to, with the word before it padded likewise.
    """
    word = f"{_word(var):5}" if width else _word(var)
    head = f"{word} {name_text(var.name):{width or 1}} : {_type_text(var)}"
    return " ".join([head, *_facts(var)])


def _var_order(var: Variable) -> tuple[int, list[str], str]:
    """Data first, parameters, other lasting variables, the rest; tmp_2 < tmp_10."""
    group = 2 if var.persistable else 3
    if isinstance(var, Parameter):
        group = 1
    elif var.is_data:
        group = 0
    digits = re.split(r"([0-9]+)", var.name)
    natural = [d.zfill(9) if d.isdecimal() else d for d in digits]
    return group, natural, var.name


def _var_lines(variables: Iterable[Variable]) -> list[str]:
    ordered = sorted(variables, key=_var_order)
    widths = [len(name_text(v.name)) for v in ordered]
    width = max((w for w in widths if w <= _NAME_WIDTH), default=1)
    return [f"  {var_line(v, width)}" for v in ordered]


# ---------------------------------------------------------------- ops


def _slots(slots: Mapping[str, Sequence[str]]) -> list[str]:
    shown = []
    for slot in sorted(slots):
        args = slots[slot]
        if len(args) == 1:
            shown.append(f"{name_text(slot)}={name_text(args[0])}")
        elif args:
            shown += _listed(f"{name_text(slot)}=", [name_text(n) for n in args])
    return shown


def _listed(head: str, items: list[str]) -> list[str]:
    """``head[a, b]`` as pieces that commas join."""
    first, *rest = [f"{head}[{items[0]}" if items else f"{head}[", *items[1:]]
    return [first, *rest[:-1], rest[-1] + "]"] if rest else [first + "]"]


def value_text(name: str, value: Any) -> str:
    """An attribute's value: JSON, but ``block 1`` and names of element types."""
    if is_block(value):
        return f"block {value.idx}"
    if isinstance(value, list):
        return f"[{', '.join(value_text('', v) for v in value)}]"
    if name.endswith("dtype") and type(value) is int and value in DTYPE_WORDS:
        return DTYPE_WORDS[VarType(value)]
    return json.dumps(value)


def own_attrs(op: Operator) -> dict[str, Any]:
    """The attributes that say something, in the op's order, each in its kind's form.

    Not those at their default, nor what every op has (role, scope, call stack).
    """
    defaults: Mapping[str, Any] = {}
    if kernels.has(op.type):
        defaults = kernels.find(op.type).defaults
    hidden = {ROLE, ROLE_VAR, NAMESCOPE, CALLSTACK}
    declared = [n for n in defaults if n in op.attrs]
    others = sorted(n for n in op.attrs if n not in defaults and n not in hidden)
    found = {n: _in_form(op, n) for n in declared + others}
    return {
        n: v
        for n, v in found.items()
        if not (n in defaults and _same(v, defaults[n])) and (n, v) != (DEVICE, "")
    }


def _in_form(op: Operator, name: str) -> Any:
    value = op.attrs[name]
    try:
        return coerce(kind_of(op.type, name, value), value)
    except TypeError:  # `verify` complains
        return value


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


# An op as text is a few parts: what opens it, pieces between commas, what closes it.
_Part = tuple[str, list[str], str]


def _role_part(op: Operator) -> _Part:
    """``: backward(parameter, gradient) in /scope/``; nothing for a plain op."""
    label = OpRole(op.role).label
    scope = op.attrs.get(NAMESCOPE, "/")
    tail = f" in {name_text(scope)}" if scope != "/" else ""
    names = [name_text(n) for n in op.role_var]
    if names:
        return f": {label}(", names, f"){tail}"
    told = tail or label != "forward"
    return (f": {label}{tail}" if told else ""), [], ""


def _op_parts(op: Operator) -> list[_Part]:
    attrs: list[str] = []
    for name, value in own_attrs(op).items():
        head = f"{name_text(name)}: "
        if isinstance(value, list):
            attrs += _listed(head, [value_text("", v) for v in value])
        else:
            attrs.append(head + value_text(name, value))
    parts = [
        (f"{name_text(op.type)}(", _slots(op.inputs), ")"),
        ("-> (", _slots(op.outputs), ")"),
        ("{" if attrs else "", attrs, "}" if attrs else ""),
        _role_part(op),
    ]
    return [p for p in parts if p[0]]


def _flat(part: _Part) -> str:
    return f"{part[0]}{', '.join(part[1])}{part[2]}"


def op_line(op: Operator) -> str:
    """``type(inputs) -> (outputs) {attributes} : role(variables) in scope``."""
    return " ".join(map(_flat, _op_parts(op)))


def _op_lines(op: Operator) -> list[str]:
    """The same, over several lines where one would be too long."""
    lines: list[str] = []
    for part in _op_parts(op):
        text = _flat(part)
        if lines and len(lines[-1]) + len(text) < _WIDTH:
            lines[-1] += f" {text}"
        elif len(text) + 4 <= _WIDTH:
            lines.append(("    " if lines else "  ") + text)
        else:
            lines += _filled(part, "    " if lines else "  ")
    return lines


def _filled(part: _Part, indent: str) -> list[str]:
    """One part over several lines, broken behind commas."""
    head, pieces, tail = part
    lines = [indent + head]
    for i, piece in enumerate(pieces):
        piece += tail if i == len(pieces) - 1 else ","
        if i and len(lines[-1]) + 1 + len(piece) > _WIDTH:
            lines.append(f"        {piece}")
        else:
            lines[-1] += piece if i == 0 else f" {piece}"
    return lines


# ---------------------------------------------------------------- blocks


def block_text(block: Block) -> str:
    """A block: its variables, then its ops in order."""
    head = f"block {block.idx}"
    if block.parent_idx >= 0:
        head += f" in {block.parent_idx}"
    if block.forward_block_idx >= 0:
        head += f" of {block.forward_block_idx}"
    lines = [head + " {"]
    lines += _var_lines(block.vars.values())
    if block.vars and block.ops:
        lines.append("")
    for op in block.ops:
        lines += _op_lines(op)
    return "\n".join([*lines, "}"])


def program_text(program: Program) -> str:
    """All blocks, and the random seed if there is one."""
    parts = [f"seed {program.random_seed}"] if program.random_seed else []
    parts += [block_text(b) for b in program.blocks]
    return "\n".join(parts) + "\n"
