"""Programs as text and pictures (``fluid.debugger``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fluidx.graphviz import Graph
from fluidx.ir import Block, OpRole, Parameter, Program

__all__ = ["draw_block_graphviz", "pprint_block_codes", "pprint_program_codes"]


def pprint_program_codes(program_desc: Program) -> str:
    """All blocks as text, one op a line."""
    return "\n".join(pprint_block_codes(block, True) for block in program_desc.blocks)


def pprint_block_codes(block_desc: Block, show_backward: bool = False) -> str:
    """A block's ops as text; those of the backward part only if asked for."""
    lines = [f"# block {block_desc.idx}"]
    for op in block_desc.ops:
        if show_backward or not op.role & (OpRole.Backward | OpRole.Optimize):
            lines.append(op.to_string())
    return "\n".join(lines) + "\n"


def draw_block_graphviz(
    block: Block, highlights: Sequence[str] | None = None, path: str = "./temp.dot"
) -> None:
    """Write a block's data flow in Graphviz's language: ops as boxes, variables round.

    highlights: names of variables that get a colour. The file is drawn with
    ``dot -Tpdf``.
    """
    graph = Graph("block")
    nodes = {}
    marked = set(highlights or ())

    def of(name: str) -> str:
        if name not in nodes:
            var = block._find_var_recursive(name)
            colour = "lightyellow" if isinstance(var, Parameter) else "white"
            colour = "orange" if name in marked else colour
            shape = f"\n{list(var.shape)}" if var is not None else ""
            nodes[name] = graph.node(
                name + shape, "var", shape="ellipse", fillcolor=colour
            )
        return nodes[name]

    for op in block.ops:
        box = graph.node(op.type, "op", shape="box", fillcolor="lightblue")
        for name in dict.fromkeys(op.input_arg_names):
            graph.edge(of(name), box)
        for name in dict.fromkeys(op.output_arg_names):
            graph.edge(box, of(name))
    Path(path).write_text(graph.code())
