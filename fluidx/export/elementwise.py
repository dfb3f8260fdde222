"""ONNX rules: arithmetic, comparison and logic of two values, with fluid's `axis`."""

from __future__ import annotations

from fluidx.ir import Operator

from .errors import Unsupported
from .graph import Graph
from .rules import rule

__all__: list[str] = []

_BINARY = {
    "elementwise_add": "Add",
    "elementwise_sub": "Sub",
    "elementwise_mul": "Mul",
    "elementwise_div": "Div",
    "elementwise_pow": "Pow",
    "elementwise_max": "Max",
    "elementwise_min": "Min",
    "equal": "Equal",
    "less_than": "Less",
    "less_equal": "LessOrEqual",
    "greater_than": "Greater",
    "greater_equal": "GreaterOrEqual",
}
_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


def operands(g: Graph, op: Operator) -> list[str]:
    """X and Y, with Y's sizes standing where `axis` puts them."""
    x, y = g.take(op, "X"), g.take(op, "Y")
    x_rank, y_rank = len(g.shape(op, "X")), len(g.shape(op, "Y"))
    axis = op.attrs.get("axis", -1)
    if axis == -1 or x_rank <= y_rank:
        return [x, y]
    after = x_rank - axis - y_rank
    if after > 0:
        y = g.node("Unsqueeze", [y, g.ints(*range(y_rank, y_rank + after))])
    elif after < 0:  # trailing sizes of 1 do not count
        y = g.node("Squeeze", [y, g.ints(*range(y_rank + after, y_rank))])
    return [x, y]


@rule(*_BINARY)
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node(_BINARY[op.type], operands(g, op)))


@rule("not_equal")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node("Not", [g.node("Equal", operands(g, op))]))


@rule("elementwise_mod", "elementwise_floordiv")
def _(g: Graph, op: Operator) -> None:
    if g.dtype(op, "X").kind != "i":
        raise Unsupported("only integers are exported")
    mod = g.node("Mod", pair := operands(g, op))
    if op.type == "elementwise_mod":
        g.give(op, "Out", mod)
    else:
        whole = g.node("Sub", [pair[0], mod])
        g.give(op, "Out", g.node("Div", [whole, pair[1]]))


@rule(*_LOGIC)
def _(g: Graph, op: Operator) -> None:
    pair = [g.take(op, "X"), g.take(op, "Y")]
    g.give(op, "Out", g.node(_LOGIC[op.type], pair))


@rule("logical_not")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node("Not", [g.take(op, "X")]))


@rule("minus")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node("Sub", [g.take(op, "X"), g.take(op, "Y")]))


@rule("sum")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node("Sum", g.take_all(op, "X")))


@rule("where")
def _(g: Graph, op: Operator) -> None:
    three = [g.take(op, slot) for slot in ("Condition", "X", "Y")]
    g.give(op, "Out", g.node("Where", three))
