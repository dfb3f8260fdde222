"""A table of a network's layers, parameters and operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from fluidx.ir import Block, Operator, Program

__all__ = ["summary"]

_ACTIVATIONS = ("sigmoid", "tanh", "relu", "leaky_relu", "prelu")


@dataclass
class _Row:
    """One op; shapes without the batch."""

    type: str
    input: tuple[int, ...]
    output: tuple[int, ...]
    params: int
    flops: int


def summary(main_prog: Program) -> None:
    """Print input, output, parameters and floating-point operations per op.

    Counted are convolutions, fully connected layers, batch norm, pooling and
    activations, for a batch of one; a multiplication and an addition are two
    operations. Mirrors ``fluid.contrib.summary``; numbers of grouped convolutions, of
    fully connected layers and of activations are the true ones.
    """
    rows = [row for op in main_prog.global_block().ops if (row := _row(op))]
    _print_table(rows)
    params, flops = sum(r.params for r in rows), sum(r.flops for r in rows)
    print(f"Total PARAMs: {params}({params / 1e6:.4f}M)")
    print(f"Total FLOPs: {flops}({flops / 1e9:.2f}G)")
    print(
        "Notice: \n now supported ops include [Conv, DepthwiseConv, FC(mul), "
        "BatchNorm, Pool, Activation(sigmoid, tanh, relu, leaky_relu, prelu)]"
    )


def _shape(block: Block, name: str) -> tuple[int, ...]:
    return block._var_recursive(name).shape


def _row(op: Operator) -> _Row | None:
    kind = "activation" if op.type in _ACTIVATIONS else op.type
    count = _COUNTERS.get(kind)
    return count(op) if count is not None else None


def _made(op: Operator, source: str, target: str, params: int, flops: int) -> _Row:
    into = _shape(op.block, op.input(source)[0])
    out = _shape(op.block, op.output(target)[0])
    return _Row(op.type, into[1:], out[1:], params, flops)


def _conv(op: Operator) -> _Row:
    weights = _shape(op.block, op.input("Filter")[0])
    out = _shape(op.block, op.output("Output")[0])
    flops = 2 * prod(out[1:]) * prod(weights[1:])
    return _made(op, "Input", "Output", prod(weights), flops)


def _fc(op: Operator) -> _Row | None:
    weights = _shape(op.block, op.input("Y")[0])
    if op.input("Y")[0] not in {p.name for p in op.block.program.all_parameters()}:
        return None
    return _made(op, "X", "Out", prod(weights), 2 * prod(weights))


def _batch_norm(op: Operator) -> _Row:
    out = _shape(op.block, op.output("Y")[0])
    scale = _shape(op.block, op.input("Scale")[0])
    return _made(op, "X", "Y", 2 * prod(scale), 2 * prod(out[1:]))


def _pool(op: Operator) -> _Row:
    into = _shape(op.block, op.input("X")[0])
    out = _shape(op.block, op.output("Out")[0])
    window = into[2:] if op.attr("global_pooling") else op.attr("ksize")
    return _made(op, "X", "Out", 0, prod(out[1:]) * prod(window))


def _activation(op: Operator) -> _Row:
    out = _shape(op.block, op.output("Out")[0])
    alpha = op.input("Alpha") if op.type == "prelu" else []
    params = prod(_shape(op.block, alpha[0])) if alpha else 0
    return _made(op, "X", "Out", params, prod(out[1:]))


_COUNTERS: dict[str, Callable[[Operator], _Row | None]] = {
    "conv2d": _conv,
    "depthwise_conv2d": _conv,
    "mul": _fc,
    "batch_norm": _batch_norm,
    "pool2d": _pool,
    "activation": _activation,
}


def _print_table(rows: list[_Row]) -> None:
    head = ["No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs"]
    cells = [
        [str(i), r.type, str(r.input), str(r.output), str(r.params), str(r.flops)]
        for i, r in enumerate(rows)
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells)]
    rule = "+" + "+".join("-" * (w + 2) for w in widths) + "+"
    print(rule)
    for number, row in enumerate([head, *cells]):
        print("|" + "|".join(f" {c:>{w}} " for c, w in zip(row, widths)) + "|")
        if number == 0:
            print(rule)
    print(rule)
