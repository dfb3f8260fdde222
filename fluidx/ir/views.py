"""Programs as graphs (networkx), made when asked for.

    graph = data_flow(program.global_block())
    nx.ancestors(graph, op)                 # all that an op depends on
    print(dot(graph))                       # for Graphviz

Ops are nodes as themselves; variables are nodes by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fluidx.kernels import EMPTY

from .operator import Operator, flat
from .prune import reads

if TYPE_CHECKING:
    import networkx

    from .block import Block
    from .program import Program

__all__ = ["ancestors", "block_tree", "components", "data_flow", "dot", "variables"]


def _writes(op: Operator) -> set[str]:
    """Names an op writes, those outside that its sub-blocks write included."""
    names = set(flat(op.outputs))
    for block in op.sub_blocks:
        names |= {n for o in block.ops for n in _writes(o)} - set(block.vars)
    return names - {EMPTY}


def data_flow(block: Block) -> networkx.DiGraph[Operator]:
    """Which op must run before which.

    Every write makes a new version of a variable. Nodes have ``index``, ``type``, and
    ``reads`` and ``writes`` (name -> version; 0: from outside). An edge a -> b has
    ``flow``, names that b reads as a wrote them, and ``order``, names that b writes
    after a read or wrote an older version.
    """
    import networkx

    graph: networkx.DiGraph[Operator] = networkx.DiGraph()
    version: dict[str, int] = {}
    writer: dict[str, Operator] = {}
    readers: dict[str, list[Operator]] = {}
    for index, op in enumerate(block.ops):
        taken, written = sorted(reads(op) - {EMPTY}), sorted(_writes(op))
        graph.add_node(op, index=index, type=op.type)
        graph.nodes[op]["reads"] = {n: version.get(n, 0) for n in taken}
        for name in taken:
            if name in writer:
                _edge(graph, writer[name], op, "flow", name)
            readers.setdefault(name, []).append(op)
        for name in written:
            for earlier in readers.pop(name, ()):
                _edge(graph, earlier, op, "order", name)
            if name in writer:
                _edge(graph, writer[name], op, "order", name)
            version[name] = version.get(name, 0) + 1
            writer[name] = op
        graph.nodes[op]["writes"] = {n: version[n] for n in written}
    return graph


def _edge(graph: Any, before: Operator, after: Operator, kind: str, name: str) -> None:
    if before is after:
        return
    if not graph.has_edge(before, after):
        graph.add_edge(before, after, flow=set(), order=set())
    graph.edges[before, after][kind].add(name)


def variables(block: Block) -> networkx.DiGraph[Any]:
    """Variables and ops: an edge from what an op reads to it, and to what it writes.

    Nodes have ``bipartite`` 0 (variables, by name) or 1 (ops), edges ``slots``.
    """
    import networkx

    graph: networkx.DiGraph[Any] = networkx.DiGraph()
    for op in block.ops:
        graph.add_node(op, bipartite=1, type=op.type)
        for slots, inward in ((op.inputs, True), (op.outputs, False)):
            for slot, names in slots.items():
                for name in names:
                    if name == EMPTY:
                        continue
                    graph.add_node(name, bipartite=0)
                    ends = (name, op) if inward else (op, name)
                    if not graph.has_edge(*ends):
                        graph.add_edge(*ends, slots=[])
                    graph.edges[ends]["slots"].append(slot)
    return graph


def block_tree(program: Program) -> networkx.DiGraph[int]:
    """Blocks by index, an edge from each to those directly inside.

    Edges have ``op``: the op whose attribute names the inner block, or None.
    """
    import networkx

    owners = {b.idx: op for op in program.all_ops() for b in op.sub_blocks}
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    for block in program.blocks:
        graph.add_node(block.idx, ops=len(block.ops))
        if block.parent_idx >= 0:
            graph.add_edge(block.parent_idx, block.idx, op=owners.get(block.idx))
    return graph


def ancestors(block: Block, ops: Iterable[Operator]) -> list[Operator]:
    """The ops of a block that these ops get values from, and they; in program order."""
    graph = data_flow(block)
    found: set[Operator] = set()
    ahead = list(ops)
    while ahead:
        op = ahead.pop()
        if op not in found:
            found.add(op)
            ahead += [a for a in graph.predecessors(op) if graph.edges[a, op]["flow"]]
    return [op for op in block.ops if op in found]


def components(
    ops: Sequence[Operator], apart: Collection[str] = ()
) -> list[list[Operator]]:
    """Groups of ops that have nothing to do with each other, in program order.

    Ops belong together if one writes what the other reads or writes. What all only
    read (a learning rate) does not bind them, nor do variables in `apart`.
    """
    import networkx

    graph: networkx.Graph[Any] = networkx.Graph()
    graph.add_nodes_from(ops)
    written = {n for op in ops for n in _writes(op)} - set(apart)
    for op in ops:
        # sorted: a graph keeps the order in which it was built
        for name in sorted((reads(op) | _writes(op)) & written):
            graph.add_edge(op, ("variable", name))
    place = {op: i for i, op in enumerate(ops)}
    groups = [
        sorted((n for n in group if isinstance(n, Operator)), key=place.__getitem__)
        for group in networkx.connected_components(graph)
    ]
    return sorted(groups, key=lambda group: place[group[0]])


def dot(graph: networkx.DiGraph[Any], name: str = "program") -> str:
    """The graph as DOT text: boxes are ops, ellipses variables; dashed: order only."""
    number = {node: i for i, node in enumerate(graph)}
    lines = [f"digraph {_quoted(name)} {{"]
    for node, i in number.items():
        is_op = isinstance(node, Operator)
        label = node.type if isinstance(node, Operator) else str(node)
        shape = "box" if is_op else "ellipse"
        lines.append(f"  n{i} [label={_quoted(label)}, shape={shape}];")
    for before, after, data in graph.edges(data=True):
        lines.append(f"  n{number[before]} -> n{number[after]}{_edge_style(data)};")
    return "\n".join([*lines, "}"]) + "\n"


def _edge_style(data: dict[str, Any]) -> str:
    names = sorted(data.get("flow") or data.get("slots") or data.get("order") or ())
    style = [f"label={_quoted(', '.join(names))}"] if names else []
    if data.get("order") and not data.get("flow"):
        style.append("style=dashed")
    return f" [{', '.join(style)}]" if style else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
