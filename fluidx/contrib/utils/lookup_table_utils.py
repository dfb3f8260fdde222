"""Programs with tables on servers, without them (``contrib.utils``).

Here servers hand over whole tables (`fluid.io.save_persistables` on a trainer), so
that a saved table is one file like any parameter.
"""

from __future__ import annotations

import os
from typing import Any

from fluidx import io
from fluidx.io.remote import local_program
from fluidx.ir import Program, Variable

__all__ = [
    "convert_dist_to_sparse_program",
    "get_inference_model",
    "load_persistables_for_increment",
    "load_persistables_for_inference",
]

_LOOKUPS = ("lookup_table", "lookup_table_v2")


def convert_dist_to_sparse_program(program: Program) -> Program:
    """A copy of a trainer's program that needs no servers: tables are local, their
    gradients sparse."""
    made = program.clone()
    local_program(made)
    for op in made.all_ops():
        if op.type.removesuffix("_grad") in _LOOKUPS:
            op._set_attr("is_distributed", False)
            op._set_attr("is_sparse", True)
    return made


def _is_table(name: str) -> Any:
    def other(var: Variable) -> bool:
        return io.is_persistable(var) and var.name != name

    return other


def _load(executor: Any, dirname: str, program: Program, name: str, path: str) -> None:
    if not program.global_block().has_var(name):
        raise ValueError(f"the program has no table {name!r}")
    io.load_vars(executor, dirname, program, predicate=_is_table(name))
    folder, file = os.path.split(path)
    table = program.global_block().var(name)
    io.load_vars(executor, folder, program, [table], filename=file)


def load_persistables_for_increment(
    dirname: str,
    executor: Any,
    program: Program,
    lookup_table_var: Any,
    lookup_table_var_path: str,
) -> None:
    """Load what `dirname` has, and the table from a file of its own.

    lookup_table_var: the variable, or its name. ValueError: there is none.
    """
    name = getattr(lookup_table_var, "name", lookup_table_var)
    _load(executor, dirname, program, name, lookup_table_var_path)


def load_persistables_for_inference(
    dirname: str, executor: Any, program: Program, lookup_table_var_name: str
) -> None:
    """Load all that `dirname` has, the table from its file there.

    ValueError: there is no such table.
    """
    path = os.path.join(dirname, lookup_table_var_name)
    _load(executor, dirname, program, lookup_table_var_name, path)


def get_inference_model(
    main_program: Program, feeded_var_names: list[str], target_vars: list[Variable]
) -> Program:
    """What computes the targets, without training, feeds, fetches or servers."""
    made = convert_dist_to_sparse_program(main_program.clone(for_test=True))
    return made._prune_with_input(feeded_var_names, target_vars)
