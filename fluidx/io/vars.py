"""Saving and loading variables: one file each, or one for all."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from io import BytesIO
from typing import Any, BinaryIO

from fluidx.executor import Executor
from fluidx.ir import Program, Variable
from fluidx.kernels import VarType
from fluidx.tensor import global_scope

from .errors import MissingFileError
from .paths import open_read, open_write, var_path
from .remote import pulled_tables
from .tensors import read_all, write_value
from .values import (
    check_shapes,
    is_parameter,
    is_persistable,
    put,
    valid_program,
    value_of,
)

__all__ = [
    "load_params",
    "load_persistables",
    "load_values",
    "load_vars",
    "save_params",
    "save_persistables",
    "save_vars",
]

Predicate = Callable[[Variable], bool]


def save_vars(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    vars: Sequence[Variable] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Save variables of the global scope, in the reference's file format.

    vars: which; or those of `main_program` (by default the default one) for which
    `predicate` holds. filename: all into this file of `dirname`, in the order of
    their names; else each into a file of its own name. If both are None, the bytes
    of the one file are returned.

    ModelFileError: a variable without a value. Mirrors ``fluid.io.save_vars``.
    """
    program = valid_program(main_program) if vars is None else None
    names = [v.name for v in selected("save_vars", program, vars, predicate)]
    if not names and vars is None:
        warnings.warn("there is no variable to save", stacklevel=2)
    remote = pulled_tables(program, names, executor) if program else {}
    return save_values(dirname, names, filename, remote)


def save_params(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Save all parameters (arguments: `save_vars`).

    Mirrors ``fluid.io.save_params``.
    """
    return save_vars(
        executor,
        dirname,
        main_program=main_program,
        predicate=is_parameter,
        filename=filename,
    )


def save_persistables(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Save all persistable variables (arguments: `save_vars`).

    These are the parameters, what optimizers keep, running statistics and the
    learning rate. Mirrors ``fluid.io.save_persistables``.
    """
    return save_vars(
        executor,
        dirname,
        main_program=main_program,
        predicate=is_persistable,
        filename=filename,
    )


def load_vars(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    vars: Sequence[Variable] | None = None,
    predicate: Predicate | None = None,
    filename: Any = None,
) -> None:
    """Load variables into the global scope; arguments as for `save_vars`.

    filename: with dirname None, the bytes that `save_vars` returned. A combined file
    must be loaded with the variables that it was saved with. All is read and checked
    before any variable changes.

    ModelFileError: a file is missing or damaged, or a parameter has another shape
    than the program declares. Mirrors ``fluid.io.load_vars``.
    """
    found = selected("load_vars", main_program, vars, predicate)
    load_values(executor, dirname, found, filename)


def load_params(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    filename: Any = None,
) -> None:
    """Load all parameters (see `load_vars`). Mirrors ``fluid.io.load_params``."""
    load_vars(
        executor,
        dirname,
        main_program=main_program,
        predicate=is_parameter,
        filename=filename,
    )


def load_persistables(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    filename: Any = None,
) -> None:
    """Load all persistable variables (see `load_vars`).

    Mirrors ``fluid.io.load_persistables``.
    """
    load_vars(
        executor,
        dirname,
        main_program=main_program,
        predicate=is_persistable,
        filename=filename,
    )


def load_values(
    executor: Executor,
    dirname: str | None,
    variables: Sequence[Variable],
    filename: Any,
    fixed: Collection[str] = (),
) -> None:
    """Load these variables (see `load_vars`); the shapes of parameters and of those
    named by `fixed` must be the declared ones."""
    if not variables:
        return
    values = read_vars(dirname, variables, filename)
    check_shapes(variables, values, fixed)
    put(values, executor)


def read_vars(
    dirname: str | None, variables: Sequence[Variable], filename: Any
) -> dict[str, tuple[Any, Any]]:
    """The values that files hold for these variables; nothing is set."""
    kinds = sorted((v.name, v.type) for v in variables)
    if isinstance(filename, bytes) and dirname is None:
        return read_all(filename, "the given bytes", kinds)
    if dirname is None:
        raise TypeError("load_vars: without a dirname, filename must be bytes")
    if filename is not None:
        path = os.path.join(dirname, filename)
        with open_read(path) as file:
            return read_all(file, path, kinds)
    values: dict[str, tuple[Any, Any]] = {}
    for name, kind in kinds:
        path = var_path(dirname, name)
        try:
            with open_read(path) as file:
                values |= read_all(file, path, [(name, kind)])
        except MissingFileError:
            raise MissingFileError(
                f"there is no file {path!r} for variable {name!r}; is the model "
                "complete, and was it saved into separate files?"
            ) from None
    return values


def save_values(
    dirname: str | None,
    names: Sequence[str],
    filename: str | None,
    instead: Mapping[str, Any],
) -> bytes | None:
    """Save variables by name (see `save_vars`).

    instead: arrays to save in place of what the scope has.
    """
    scope = global_scope()

    def write(name: str, file: BinaryIO) -> None:
        if name in instead:
            write_value(file, instead[name])
        else:
            write_value(file, *value_of(name, scope))

    if not names:
        return None
    if dirname is None:
        if filename is not None:
            raise TypeError("save_vars: a filename needs a dirname")
        memory = BytesIO()
        for name in sorted(names):
            write(name, memory)
        return memory.getvalue()
    if filename is None:
        for name in names:
            with open_write(var_path(dirname, name)) as file:
                write(name, file)
        return None
    with open_write(os.path.join(dirname, filename)) as file:
        for name in sorted(names):
            write(name, file)
    return None


def selected(
    what: str,
    program: Program | None,
    variables: Sequence[Variable] | None,
    predicate: Predicate | None,
) -> list[Variable]:
    """The variables that were meant, each once; those of no value left out."""
    if variables is None:
        every = list(valid_program(program).list_vars())
        variables = [v for v in every if predicate is None or predicate(v)]
    if not isinstance(variables, (list, tuple, set, frozenset)):
        raise TypeError(
            f"{what}: vars must be a list of Variables, got {variables!r:.60}"
        )
    found: dict[str, Variable] = {}
    for var in variables:
        if not isinstance(var, Variable):
            raise TypeError(f"{what}: vars takes Variables, got {var!r:.60}")
        if var.type != VarType.RAW:
            found.setdefault(var.name, var)
    return list(found.values())
