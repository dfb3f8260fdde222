"""Python in the middle of a program: print and py_func."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .context import RunContext
from .grad import GradContext, OpSpec
from .infer import InferContext, no_outputs, same_as
from .registry import op
from .schema import Attr, AttrType, In, Out
from .sharding import to_host

__all__ = ["register_callable"]

# --- print -------------------------------------------------------------------------


def _grad_print(op: GradContext) -> Sequence[OpSpec]:
    """The gradient passes through a print of its own."""
    attrs = {**op.attrs, "is_forward": False}
    inputs = {"In": op.output_grad("Out")}
    return [OpSpec("print", inputs, {"Out": op.input_grad("In")}, attrs)]


print_ = op(
    "print",
    ins=[In("In")],
    outs=[Out("Out")],
    attrs=[
        Attr("first_n", int),
        Attr("is_forward", bool, True),
        Attr("message", str),
        Attr("print_phase", str, "BOTH"),
        Attr("print_tensor_lod", bool),
        Attr("print_tensor_name", bool),
        Attr("print_tensor_shape", bool),
        Attr("print_tensor_type", bool),
        Attr("summarize", int),
    ],
    infer=same_as("In"),
    grad=_grad_print,
    effect=True,
    view=True,
)

# how often each print of a program (program -> output variable) has printed
_printed: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()


def _may_print(ctx: RunContext, name: str, first_n: int) -> bool:
    """Whether the op still prints; counts how often it did in this program."""
    if first_n <= 0:
        return True
    counts = _printed.setdefault(getattr(ctx, "program", ctx), {})
    counts[name] = counts.get(name, 0) + 1
    return counts[name] <= first_n


@print_.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: RunContext,
    names: dict[str, list[str]],
    lod: dict[str, Any],
    first_n: int,
    is_forward: bool,
    message: str,
    print_phase: str,
    print_tensor_lod: bool,
    print_tensor_name: bool,
    print_tensor_shape: bool,
    print_tensor_type: bool,
    summarize: int,
) -> Any:
    """Writes what In holds to the standard output; Out is In.

    first_n: the first runs only. summarize: so many elements (negative: all).
    """
    phase = "FORWARD" if is_forward else "BACKWARD"
    if print_phase not in (phase, "BOTH") or not _may_print(
        ctx, names["Out"][0], first_n
    ):
        return x
    lines = [message] if message else []
    if print_tensor_name:
        lines.append(f"Tensor[{names['In'][0]}]")
    if print_tensor_shape:
        lines.append(f"  shape: {list(x.shape)}")
    if print_tensor_lod and lod.get("In"):
        lines.append(f"  LoD: {lod['In']}")
    if print_tensor_type:
        lines.append(f"  dtype: {x.dtype}")
    flat = x.reshape(-1)
    shown = to_host(flat if summarize < 0 else flat[:summarize])
    more = "" if len(shown) == flat.size else ", ..."
    values = ", ".join(str(v) for v in shown)
    lines.append(f"  data: [{values}{more}]")
    sys.stdout.write("\n".join(lines) + "\n")
    return x


# --- py_func -----------------------------------------------------------------------

_callables: list[Callable[..., Any]] = []


def register_callable(function: Callable[..., Any]) -> int:
    """Keep a function for `py_func` ops of this process; returns its number."""
    _callables.append(function)
    return len(_callables) - 1


def _grad_py_func(op: GradContext) -> Sequence[OpSpec]:
    """Another py_func: inputs, outputs (but those skipped) and the outputs'
    gradients go in, the inputs' gradients come out."""
    function = op.attrs.get("backward_callable_id", -1)
    if function < 0:
        return []
    skipped = set(op.attrs.get("backward_skip_vars", ()))
    seen = [n for n in op.input("X") + op.output("Out") if n not in skipped]
    attrs = {
        "forward_callable_id": function,
        "backward_callable_id": -1,
        "backward_skip_vars": [],
    }
    inputs = {"X": seen + op.output_grad("Out")}
    return [OpSpec("py_func", inputs, {"Out": op.input_grad("X")}, attrs)]


def _infer_py_func(op: InferContext) -> None:
    """Its outputs are what the user declared them to be."""
    no_outputs(op)


py_func = op(
    "py_func",
    ins=[In("X", duplicable=True)],
    outs=[Out("Out", duplicable=True)],
    attrs=[
        Attr("backward_callable_id", int, -1),
        Attr("backward_skip_vars", AttrType.STRINGS, []),
        Attr("forward_callable_id", int, 0),
    ],
    infer=_infer_py_func,
    grad=_grad_py_func,
    effect=True,
    lod=None,
)


@py_func.kernel
def _(
    xp: Any,
    xs: list[Any],
    *,
    names: dict[str, list[str]],
    forward_callable_id: int,
) -> list[Any]:
    """Calls the function with numpy arrays; it returns one array per output."""
    if not 0 <= forward_callable_id < len(_callables):
        raise ValueError(
            f"py_func: function {forward_callable_id} is not known in this process; "
            "a program with py_func runs only where it was built"
        )
    wanted = names.get("Out", [])
    made = _callables[forward_callable_id](*(to_host(x) for x in xs or ()))
    many = list(made) if isinstance(made, (list, tuple)) else [made]
    if made is None and not wanted:
        many = []
    if len(many) != len(wanted):
        raise ValueError(
            f"py_func: the function returned {len(many)} values for {len(wanted)} "
            f"outputs {wanted}"
        )
    return [None if m is None else xp.asarray(np.asarray(m)) for m in many]
