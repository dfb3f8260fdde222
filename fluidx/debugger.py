"""Programs as text and pictures (``fluid.debugger``), and a search for NaN and Inf."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fluidx.executor import Executor
from fluidx.flags import FLAGS
from fluidx.graphviz import GraphPreviewGenerator, Node
from fluidx.ir import Block, Operator, OpRole, Parameter, Program, Variable
from fluidx.ir.desc import plain_of
from fluidx.kernels import VarType

__all__ = [
    "draw_block_graphviz",
    "pprint_block_codes",
    "pprint_program_codes",
    "prepare_fast_nan_inf_debug",
    "run_fast_nan_inf_debug",
]


def pprint_program_codes(program_desc: Program | Any) -> str:
    """All blocks as text, one op a line; takes a program or its ``desc``."""
    blocks = plain_of(program_desc).blocks
    return "\n".join(pprint_block_codes(block, True) for block in blocks)


def pprint_block_codes(block_desc: Block | Any, show_backward: bool = False) -> str:
    """A block's ops as text; those of the backward part only if asked for."""
    block = plain_of(block_desc)
    lines = [f"# block {block.idx}"]
    for op in block.ops:
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
    block = plain_of(block)
    made = GraphPreviewGenerator("block")
    nodes: dict[str, Node] = {}
    marked = set(highlights or ())

    def of(name: str) -> Node:
        if name not in nodes:
            var = block._find_var_recursive(name)
            if var is None:
                nodes[name] = made.add_arg(name, name in marked)
            elif isinstance(var, Parameter):
                nodes[name] = made.add_param(name, str(list(var.shape)), name in marked)
            else:
                shown = f"{name}\n{list(var.shape)}"
                nodes[name] = made.add_arg(shown, name in marked)
        return nodes[name]

    for op in block.ops:
        box = made.add_op(op.type)
        for name in dict.fromkeys(op.input_arg_names):
            made.add_edge(of(name), box)
        for name in dict.fromkeys(op.output_arg_names):
            made.add_edge(box, of(name))
    Path(path).write_text(made.graph.code())


# ---------------------------------------------------------------- parts as text


def repr_data_type(type: Any) -> str:
    """A dtype in a word.

    >>> repr_data_type(VarType.INT64)
    'int64'
    """
    return VarType(type).name.lower().replace("fp", "float")


def repr_var(vardesc: Variable | Any) -> str:
    """A variable on a line."""
    return plain_of(vardesc).to_string()  # type: ignore[no-any-return]


def repr_tensor(proto: Variable | Any) -> str:
    """The same, whatever kind of variable it is."""
    return repr_var(proto)


repr_lodtensor = repr_selected_rows = repr_tensor_array = repr_tensor


def repr_attr(desc: tuple[str, Any]) -> str:
    """An attribute, given as (name, value)."""
    name, value = desc
    return f"{name}={value!r}"


def repr_op(opdesc: Operator | Any) -> str:
    """An op on a line."""
    return plain_of(opdesc).to_string()  # type: ignore[no-any-return]


# ---------------------------------------------------------------- NaN and Inf


def prepare_fast_nan_inf_debug(_program: Program) -> None:
    """Nothing to do: `run_fast_nan_inf_debug` needs no change of the program."""


def run_fast_nan_inf_debug(
    executor: Executor,
    program: Program | None = None,
    feed: Any = None,
    fetch_list: Any = None,
    feed_var_name: str = "feed",
    fetch_var_name: str = "fetch",
    scope: Any = None,
    return_numpy: bool = True,
    use_program_cache: bool = False,
    dump_core: bool = True,
) -> Any:
    """`Executor.run` with FLAGS_check_nan_inf on, for this run.

    RunError names the first op that makes a NaN or Inf, the variable, and the line that
    built the op. (The reference ends the process and dumps it, if `dump_core`.)
    """
    kept = FLAGS["FLAGS_check_nan_inf"]
    FLAGS["FLAGS_check_nan_inf"] = True
    try:
        return executor.run(
            program,
            feed=feed,
            fetch_list=fetch_list,
            feed_var_name=feed_var_name,
            fetch_var_name=fetch_var_name,
            scope=scope,
            return_numpy=return_numpy,
            use_program_cache=use_program_cache,
        )
    finally:
        FLAGS["FLAGS_check_nan_inf"] = kept
