"""From a program and a scope to an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fluidx.executor.cuda import to_host
from fluidx.ir import Operator, Program, Variable
from fluidx.ir.errors import EnforceNotMet
from fluidx.kernels import SelectedRows
from fluidx.tensor import Scope, global_scope

from . import (  # noqa: F401  the rules
    activation,
    conv,
    elementwise,
    linear,
    products,
    selection,
    shape,
)
from .errors import ExportError, Problem, Unsupported
from .graph import Graph, dtype_of
from .rules import RULES

__all__ = ["OPSET", "exportable_ops", "save_onnx", "to_onnx", "unexportable"]

#: of ONNX 1.12; what stands in it, current runtimes run
OPSET = 17
_IR_VERSION = 8
_SIGNATURE = ("feed", "fetch")


def exportable_ops() -> tuple[str, ...]:
    """The op types that have a rule.

    >>> "conv2d" in exportable_ops(), "nce" in exportable_ops()
    (True, False)
    """
    return tuple(sorted(RULES))


def unexportable(program: Program) -> list[Problem]:
    """The ops of a program that have no rule, by type.

    An op that has one may still be refused by `to_onnx`, for how it is used.
    """
    found: list[Problem] = []
    for op in program.global_block().ops:
        if op.type not in RULES and op.type not in _SIGNATURE:
            _note(found, op, "it has no ONNX rule")
    return found


def save_onnx(
    path: str | os.PathLike[str],
    program: Program,
    feeds: Sequence[Variable | str],
    fetches: Sequence[Variable | str],
    scope: Scope | None = None,
) -> None:
    """Write what `to_onnx` makes to a file; its folder must exist."""
    data = to_onnx(program, feeds, fetches, scope).SerializeToString()
    with open(path, "wb") as file:
        file.write(data)


def to_onnx(
    program: Program,
    feeds: Sequence[Variable | str],
    fetches: Sequence[Variable | str],
    scope: Scope | None = None,
) -> Any:
    """An inference program and its parameters as an ONNX model (``ModelProto``).

    program: of ``load_inference_model``, or a ``clone(for_test=True)``; it is cut down
    to what the fetches need. feeds, fetches: variables or names; they name the model's
    inputs and outputs. Unknown sizes become symbolic ones. scope: where parameters
    are, by default the global one. Opset 17, checked with ONNX's checker.

    ExportError names every op that cannot be exported, with the line that built it; or
    the parameters are larger than the 2 GiB that one file holds.
    EnforceNotMet: the package onnx is not installed (extra ``onnx``).

    >>> import fluidx as fluid, pytest
    >>> _ = pytest.importorskip("onnx")
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.layers.relu(x)
    >>> model = to_onnx(fluid.default_main_program(), [x], [y])
    >>> [n.op_type for n in model.graph.node]
    ['Relu']
    """
    onnx = _package()
    inputs, outputs = _names(feeds), _names(fetches)
    pruned = program._prune_with_input(inputs, outputs)
    graph = Graph(pruned.global_block(), _reader(pruned, scope or global_scope()))
    _declare(program, [*inputs, *outputs])
    for name in inputs:
        graph.values[name] = graph.unique(name)
    _write(graph, outputs)
    _check_size(graph)
    model = onnx.helper.make_model(
        _finished(onnx, graph, program, inputs, outputs),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="fluidx",
        ir_version=_IR_VERSION,
    )
    onnx.checker.check_model(model)
    return model


def _check_size(graph: Graph) -> None:
    """A protobuf message holds less than 2 GiB."""
    size = sum(value.nbytes for value in graph.constants.values())
    if size > 2**31 - 2**24:
        raise ExportError(
            [], f"export: the parameters have {size} bytes; an ONNX file holds 2 GiB"
        )


def _package() -> Any:
    try:
        import onnx
    except ImportError:
        raise EnforceNotMet(
            "export to ONNX needs the package onnx: pip install 'fluidx[onnx]'"
        ) from None
    return onnx


def _names(given: Sequence[Variable | str]) -> list[str]:
    if isinstance(given, (str, Variable)):
        given = [given]
    return [v if isinstance(v, str) else v.name for v in given]


def _declare(program: Program, names: Sequence[str]) -> None:
    block = program.global_block()
    for name in names:
        if not block.has_var(name):
            raise ExportError([], f"export: the program has no variable {name!r}")


def _reader(program: Program, scope: Scope) -> Any:
    block = program.global_block()

    def parameter(name: str) -> Any:
        if not (block.has_var(name) and block.var(name).persistable):
            return None
        found = scope.find_var(name)
        if found is None or found.value is None:
            return None
        if isinstance(found.value, (SelectedRows, list)):
            raise Unsupported(f"{name!r} is no dense tensor")
        return to_host(found.value)

    return parameter


def _write(graph: Graph, outputs: Sequence[str]) -> None:
    """Write all ops; ExportError with everything that could not be."""
    problems: list[Problem] = []
    for op in graph.block.ops:
        if op.type in _SIGNATURE:
            continue
        try:
            if op.type not in RULES:
                raise Unsupported("it has no ONNX rule")
            RULES[op.type](graph, op)
        except Unsupported as reason:
            _note(problems, op, str(reason))
            for name in op.output_arg_names:  # go on: name all that is in the way
                graph.values.setdefault(name, graph.unique(name))
    if problems:
        raise ExportError(problems)
    for name in outputs:
        try:
            graph.read(name)
        except Unsupported:
            raise ExportError(
                [], f"export: the fetched {name!r} is no exported output of any op"
            ) from None


def _note(problems: list[Problem], op: Operator, reason: str) -> None:
    for known in problems:
        if known.type == op.type and known.reason == reason:
            known.count += 1
            return
    problems.append(Problem(op, reason))


def _finished(
    onnx: Any,
    graph: Graph,
    program: Program,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Any:
    """The graph with its signature; outputs get their variables' names."""
    infos = {n: _info(onnx, program.global_block().var(n)) for n in (*inputs, *outputs)}
    made = {o for node in graph.nodes for o in node.output}
    out_infos = []
    for name in outputs:
        value = graph.read(name)
        if value != name or value not in made:
            free = name not in made and name not in graph.constants
            alias = name if free and name not in inputs else graph.unique(name)
            node = onnx.helper.make_node("Identity", [value], [alias])
            graph.nodes.append(node)
            infos[alias] = _info(onnx, program.global_block().var(name), alias)
            name = alias
        out_infos.append(infos[name])
    constants = [
        onnx.numpy_helper.from_array(value, name)
        for name, value in graph.constants.items()
    ]
    return onnx.helper.make_graph(
        graph.nodes, "fluidx", [infos[n] for n in inputs], out_infos, constants
    )


def _info(onnx: Any, var: Variable, name: str | None = None) -> Any:
    sizes = [f"{var.name}_{i}" if d < 0 else d for i, d in enumerate(var.shape)]
    element = onnx.helper.np_dtype_to_tensor_dtype(dtype_of(var.dtype))
    return onnx.helper.make_tensor_value_info(name or var.name, element, sizes)
