"""Values of variables: from the scope to files, and from files to the scope."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidx.executor import CompiledProgram, Executor
from fluidx.executor.cuda import to_host
from fluidx.ir import Parameter, Program, Variable, default_main_program
from fluidx.kernels import SelectedRows, VarType
from fluidx.tensor import Scope, global_scope

from .errors import ModelFileError

__all__ = [
    "get_parameter_value",
    "get_parameter_value_by_name",
    "get_program_parameter",
    "get_program_persistable_vars",
    "is_belong_to_optimizer",
    "is_parameter",
    "is_persistable",
]

_NO_VALUE = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER)


def is_parameter(var: Variable) -> bool:
    """Whether a variable is a parameter.

    >>> import fluidx as fluid
    >>> y = fluid.layers.fc(fluid.data("x", [None, 2]), 1, name="line")
    >>> main = fluid.default_main_program().global_block()
    >>> is_parameter(main.var("line.w_0")), is_parameter(y)
    (True, False)
    """
    return isinstance(var, Parameter)


def is_persistable(var: Variable) -> bool:
    """Whether a variable keeps its value between runs (feed and fetch do not)."""
    return var.type not in _NO_VALUE and var.persistable


def is_belong_to_optimizer(var: Variable) -> bool:
    """Whether a variable is persistable, but neither parameter nor input."""
    return not (is_parameter(var) or var.need_check_feed) and is_persistable(var)


def get_program_parameter(program: Program) -> list[Variable]:
    """All parameters of a program."""
    return [v for v in program.list_vars() if is_parameter(v)]


def get_program_persistable_vars(program: Program) -> list[Variable]:
    """All persistable variables of a program."""
    return [v for v in program.list_vars() if is_persistable(v)]


def get_parameter_value(para: Parameter, executor: Executor) -> Any:
    """A copy of a parameter's value in the global scope, as a numpy array.

    TypeError: not a parameter. ModelFileError: it has no value yet.
    """
    if not is_parameter(para):
        raise TypeError(f"expected a Parameter, got {para!r:.60}")
    return np.array(value_of(para.name, global_scope())[0])


def get_parameter_value_by_name(
    name: str, executor: Executor, program: Program | None = None
) -> Any:
    """The same for a name; program: by default the default main program.

    ValueError: the program has no such variable.
    """
    block = valid_program(program).global_block()
    return get_parameter_value(block.var(name), executor)  # type: ignore[arg-type]


# ---------------------------------------------------------------- used inside


def valid_program(program: Any) -> Program:
    """The program that was meant; TypeError for what is none."""
    if program is None:
        return default_main_program()
    if isinstance(program, CompiledProgram):
        return program.program
    if not isinstance(program, Program):
        raise TypeError(
            f"main_program must be a Program, got {program.__class__.__name__}"
        )
    return program


def value_of(name: str, scope: Scope) -> tuple[Any, Any]:
    """(value with numpy arrays, LoD or None) of a variable.

    ModelFileError: it has none, or one that no file can hold.
    """
    found = scope.find_var(name)
    value = found.value if found is not None else None
    if found is None or value is None:
        raise ModelFileError(
            f"variable {name!r} has no value in this scope; was the startup program "
            "run in it?"
        )
    if isinstance(value, SelectedRows):
        rows, data = to_host(value.rows), to_host(value.value)
        return SelectedRows(rows, data, value.height), None
    if isinstance(value, list):
        raise ModelFileError(f"variable {name!r} holds a list, which cannot be saved")
    return np.asarray(to_host(value)), found.lod


def put(values: Mapping[str, tuple[Any, Any]], executor: Any) -> None:
    """Give variables of the global scope their values, on the executor's device."""
    scope = global_scope()
    xp = getattr(executor, "xp", np)
    for name, (value, lod) in values.items():
        var = scope.find_var(name) or scope.var(name)
        if xp is not np:
            value = _on_device(value, xp)
        var.value, var.lod = value, lod


def _on_device(value: Any, xp: Any) -> Any:
    if isinstance(value, SelectedRows):
        rows, data = xp.asarray(value.rows), xp.asarray(value.value)
        return SelectedRows(rows, data, value.height)
    return xp.asarray(value)


def check_shapes(
    variables: Iterable[Variable],
    values: Mapping[str, tuple[Any, Any]],
    fixed: Collection[str] = (),
) -> None:
    """Parameters, and variables named by `fixed`, must come in the shape that the
    program declares."""
    for var in variables:
        if not (is_parameter(var) or var.name in fixed) or var.name not in values:
            continue
        came = tuple(values[var.name][0].shape)
        if not _fits(var.shape, came):
            kind = "parameter" if is_parameter(var) else "variable"
            raise ModelFileError(
                f"{kind} {var.name!r} has shape {list(var.shape)} in the program, "
                f"but {list(came)} in the file"
            )


def _fits(declared: Sequence[int], came: Sequence[int]) -> bool:
    return len(declared) == len(came) and all(
        want in (-1, got) for want, got in zip(declared, came)
    )
