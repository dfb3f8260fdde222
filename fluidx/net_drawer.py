"""Programs as pictures: ops joined by the variables between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from fluidx.graphviz import Edge, Graph, Node
from fluidx.ir import Operator, Program
from fluidx.ir.desc import plain_of

__all__ = ["draw_edge", "draw_graph", "draw_node", "parse_graph", "unique_id"]

OP_STYLE = {
    "shape": "oval",
    "color": "#0F9D58",
    "style": "filled",
    "fontcolor": "#FFFFFF",
}
VAR_STYLE: dict[str, str] = {}
GRAPH_STYLE = {"rankdir": "TB"}
GRAPH_ID = 0


def unique_id() -> Callable[[], int]:
    """A function that counts from 0."""
    numbers = count()
    return lambda: next(numbers)


def draw_node(op: Operator, graph: Graph | None = None) -> Node:
    """The node of an op, in `graph` or in one of its own."""
    graph = Graph("op") if graph is None else graph
    return graph.node(op.type, "op", op.type, **OP_STYLE)


def draw_edge(
    var_parent: Mapping[str, Node], op: Node, var: str, arg: str, graph: Graph
) -> Edge:
    """The arrow from what made `arg` to an op that takes it in its slot `var`."""
    return graph.edge(var_parent[arg], op, label=f"{var}: {arg}", **VAR_STYLE)


def parse_graph(
    program: Program, graph: Graph, var_dict: dict[str, Node], **kwargs: Any
) -> None:
    """Add the ops of block 0 to a graph.

    var_dict: variable -> the op that made it last; those that no op makes get a node.
    kwargs: Graphviz attributes of the nodes of such variables.
    """
    for op in plain_of(program).global_block().ops:
        node = draw_node(op, graph)
        for slot, names in op.inputs.items():
            for name in names:
                if name not in var_dict:
                    var_dict[name] = graph.node(name, "var", name, **kwargs)
                draw_edge(var_dict, node, slot, name, graph)
        for name in op.output_arg_names:
            var_dict[name] = node


def draw_graph(startup_program: Program, main_program: Program, **kwargs: Any) -> Graph:
    """Both programs as one `fluid.graphviz.Graph`; ``.code()`` is its text.

    graph_attr: a dict of Graphviz attributes. output, or filename: a path, to which the
    text is written. (The reference's raises.)
    """
    attrs = {**GRAPH_STYLE, **dict(kwargs.get("graph_attr") or {})}
    graph = Graph("program", **attrs)
    made: dict[str, Node] = {}
    parse_graph(startup_program, graph, made)
    parse_graph(main_program, graph, made)
    path = kwargs.get("output") or kwargs.get("filename")
    if path:
        with open(path, "w") as file:
            file.write(graph.code())
    return graph
