"""Program files, binary or text, and what is in them (``fleet.utils.utils``)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fluidx.debugger import draw_block_graphviz
from fluidx.io.errors import ModelFileError
from fluidx.ir import Block, Program
from fluidx.ir.proto_schema import messages
from fluidx.kernels import VarType

__all__ = [
    "check_not_expected_ops",
    "check_pruned_program_vars",
    "graphviz",
    "load_program",
    "load_program_binary",
    "load_program_text",
    "parse_program",
    "program_type_trans",
    "save_program",
]

logger = logging.getLogger("fluidx.fleet")
feed_fetch_type_list = [VarType.FEED_MINIBATCH, VarType.FETCH_LIST]
not_expected_op_types = ["lookup_table"]
persistable_vars_out_fn = "vars_persistable.log"
all_vars_out_fn = "vars_all.log"
ops_out_fn = "ops.log"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"fleet.utils.utils has no {name!r} in fluidx")


def load_program_binary(model_filename: str) -> Program:
    """A program of ProgramDesc bytes."""
    return Program.parse_from_string(Path(model_filename).read_bytes())


def load_program_text(model_filename: str) -> Program:
    """A program of a ProgramDesc's protobuf text; ModelFileError: it is none."""
    from google.protobuf import text_format

    message = messages().Program()
    try:
        text_format.Parse(Path(model_filename).read_text(), message)
    except text_format.ParseError as error:
        raise ModelFileError(f"{model_filename} is no program: {error}") from None
    return Program.parse_from_string(message.SerializePartialToString())


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """A program of a file, binary or text."""
    return (load_program_text if is_text else load_program_binary)(model_filename)


def save_program(
    program: Program, model_filename: str = "__model__", is_text: bool = False
) -> None:
    """Write a program as ProgramDesc, binary or text."""
    data = program.serialize_to_string()
    if not is_text:
        Path(model_filename).write_bytes(data)
        return
    from google.protobuf import text_format

    message = messages().Program.FromString(data)
    Path(model_filename).write_text(text_format.MessageToString(message))


def program_type_trans(prog_dir: str, prog_fn: str, is_text: bool) -> str:
    """Write a program file in the other form beside it; the new file's name.

    Text gets ``.bin`` behind its name, bytes ``.pbtxt``.
    """
    program = load_program(str(Path(prog_dir, prog_fn)), is_text)
    made = prog_fn + (".bin" if is_text else ".pbtxt")
    save_program(program, str(Path(prog_dir, made)), not is_text)
    return made


def check_not_expected_ops(prog: Program) -> None:
    """Log a warning for ops that need servers or older systems."""
    for op in prog.global_block().ops:
        if op.type in not_expected_op_types:
            logger.warning("op %s is not expected in an inference program", op.type)


def check_pruned_program_vars(train_prog: Program, pruned_prog: Program) -> bool:
    """Whether the persistable variables of a pruned program are the training's.

    Differences are logged.
    """
    well = True
    for name, var in pruned_prog.global_block().vars.items():
        if not var.persistable or var.type in feed_fetch_type_list:
            continue
        other = train_prog.global_block().vars.get(name)
        if other is None or (other.shape, other.dtype) != (var.shape, var.dtype):
            found = "missing" if other is None else f"{other.shape} {other.dtype}"
            logger.warning("%s: %s %s, %s", name, var.shape, var.dtype, found)
            well = False
    return well


def graphviz(block: Block, output_dir: str = "", filename: str = "debug") -> None:
    """Draw a block's data flow into ``filename.dot``."""
    draw_block_graphviz(block, path=str(Path(output_dir, f"{filename}.dot")))


def parse_program(program: Program, output_dir: str) -> None:
    """Write lists of all variables, persistable variables and ops into a folder."""
    block, folder = program.global_block(), Path(output_dir)
    shown = []
    for var in block.vars.values():
        if var.type not in feed_fetch_type_list:
            entry: dict[str, Any] = {"name": var.name, "shape": str(tuple(var.shape))}
            entry |= {"lod_level": var.lod_level, "dtype": str(var.dtype)}
            shown.append((var.persistable, entry, str(var.type)))
    kept = [{**e, "type": kind} for persistable, e, kind in shown if persistable]
    _write(folder / persistable_vars_out_fn, "persistable vars", kept)
    _write(folder / all_vars_out_fn, "all vars", [e for _, e, _ in shown])
    ops = [
        {
            "type": op.type,
            "input_arg_names": str(op.input_arg_names),
            "output_arg_names": str(op.output_arg_names),
        }
        for op in block.ops
    ]
    _write(folder / ops_out_fn, "ops", ops)


def _write(file: Path, title: str, entries: list[dict[str, Any]]) -> None:
    lines = [f"{title}:", *map(str, entries)]
    file.write_text("\n".join(lines) + "\n")
