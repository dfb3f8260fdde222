"""``fluid.save`` and ``fluid.load``: a program's state as two dicts and its program."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidx.executor import Executor
from fluidx.ir import Program, Variable
from fluidx.kernels import SelectedRows
from fluidx.tensor import global_scope

from .errors import MissingFileError, ModelFileError
from .paths import open_read, open_write, read_bytes
from .pickled import write_arrays
from .remote import pulled_tables
from .tensors import read_all
from .unpickle import loads
from .values import (
    check_shapes,
    get_program_parameter,
    is_belong_to_optimizer,
    put,
    valid_program,
    value_of,
)
from .vars import read_vars

__all__ = ["load", "load_program_state", "save", "set_program_state"]

_log = logging.getLogger("fluidx.io")
_SUFFIXES = (".pdparams", ".pdopt", ".pdmodel")


def save(program: Program, model_path: str) -> None:
    """Save a program and the values of its variables in the global scope.

    Writes ``model_path.pdparams`` (parameters), ``.pdopt`` (what optimizers keep) and
    ``.pdmodel`` (the program). ValueError: the path has no file name. ModelFileError: a
    variable has no value, or no dense one. Mirrors ``fluid.save``; see `pickled` for
    what is in the files.
    """
    program = valid_program(program)
    if not os.path.basename(model_path):
        raise ValueError(f"save: {model_path!r} must be a folder and a file name")
    params = [v.name for v in get_program_parameter(program)]
    others = [v.name for v in program.list_vars() if is_belong_to_optimizer(v)]
    pulled_tables(program, params, None)  # refuses: servers have the values
    for suffix, names in ((".pdparams", params), (".pdopt", others)):
        arrays = {name: _dense(name) for name in names}
        with open_write(model_path + suffix) as file:
            write_arrays(file, arrays)
    with open_write(model_path + ".pdmodel") as file:
        file.write(program.serialize_to_string())


def load(
    program: Program,
    model_path: str,
    executor: Executor | None = None,
    var_list: Sequence[Variable] | None = None,
) -> None:
    """Load what `save` saved into the global scope.

    model_path: with or without one of the suffixes. If there is no ``.pdparams``, it
    may be the folder or the combined file of `save_params`, `save_persistables` or
    `save_vars`; then var_list says which variables it holds (for a folder, by default
    all persistable ones of the program that have a file there).

    MissingFileError, ModelFileError: a file or a variable is missing, damaged, or a
    parameter has another shape. Nothing changes then. Mirrors ``fluid.load``.
    """
    program = valid_program(program)
    prefix = _prefix(model_path)
    if not os.path.exists(prefix + ".pdparams"):
        variables = _others_files(program, prefix, var_list)
        is_file = os.path.isfile(prefix)
        folder, name = os.path.split(prefix) if is_file else (prefix, None)
        values = read_vars(folder, variables, name)
        check_shapes(variables, values)
        put(values, executor)
        return
    put(_taken(program, prefix), executor)


def load_program_state(
    model_path: str, var_list: Sequence[Variable] | None = None
) -> dict[str, Any]:
    """What `save` (or `save_params` and its like) saved, as name -> numpy array.

    var_list: the variables of a combined file, or those wanted of a folder; not used
    for what `save` saved. MissingFileError, ModelFileError: as in `load`. Mirrors
    ``fluid.io.load_program_state``.
    """
    prefix = _prefix(model_path)
    if os.path.exists(prefix + ".pdparams"):
        state = _read_arrays(prefix + ".pdparams")
        if os.path.exists(prefix + ".pdopt"):
            state.update(_read_arrays(prefix + ".pdopt"))
        return {name: np.array(value) for name, value in state.items()}
    if os.path.isfile(prefix):
        if var_list is None:
            raise ValueError(
                f"load_program_state: {prefix!r} is one file, var_list must say which "
                "variables it holds"
            )
        values = read_vars(os.path.dirname(prefix), var_list, os.path.basename(prefix))
    elif os.path.isdir(prefix):
        values = _folder(prefix, var_list)
    else:
        raise MissingFileError(f"there is no file {prefix + '.pdparams'!r}")
    return {name: value for name, (value, _) in values.items()}


def set_program_state(program: Program, state_dict: Mapping[str, Any]) -> None:
    """Give the persistable variables of a program values from a dict of arrays.

    Names that the program lacks are left out, with a warning; variables that the dict
    lacks stay. ModelFileError: a variable has no value yet (run the startup program
    first), or one of another shape or dtype. Mirrors ``fluid.io.set_program_state``.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            "set_program_state: state_dict must be a dict name -> array, got "
            f"{state_dict!r:.60}"
        )
    scope = global_scope()
    unused = set(state_dict)
    values = {}
    for var in valid_program(program).list_vars():
        if not var.persistable or var.name not in state_dict:
            continue
        now, lod = value_of(var.name, scope)
        came = np.array(state_dict[var.name])
        if tuple(now.shape) != came.shape or now.dtype != came.dtype:
            raise ModelFileError(
                f"variable {var.name!r} is {now.dtype}{list(now.shape)}, but the state "
                f"has {came.dtype}{list(came.shape)}"
            )
        values[var.name] = (came, lod)
        unused.discard(var.name)
    put(values, None)
    if unused:
        warnings.warn(
            f"the program has no variable for {', '.join(sorted(unused))}", stacklevel=2
        )


# ---------------------------------------------------------------- parts


def _prefix(path: str) -> str:
    path = os.fspath(path)
    for suffix in _SUFFIXES:
        path = path.removesuffix(suffix)
    return path


def _dense(name: str) -> Any:
    value, _ = value_of(name, global_scope())
    if isinstance(value, SelectedRows):
        raise ModelFileError(f"variable {name!r} holds SelectedRows: use save_vars")
    return value


def _read_arrays(path: str) -> dict[str, Any]:
    """The dict of a .pdparams or .pdopt file; values that are no arrays left out."""
    found = loads(read_bytes(path), repr(path))
    if not isinstance(found, dict):
        raise ModelFileError(f"{path!r} holds a {found.__class__.__name__}, not a dict")
    return {k: v for k, v in found.items() if isinstance(v, np.ndarray)}


def _taken(program: Program, prefix: str) -> dict[str, tuple[Any, Any]]:
    """The values of all persistable variables of a program.

    A program that was read from a file has no parameters, only variables; so where a
    value is does not count.
    """
    params = get_program_parameter(program)
    others = [v for v in program.list_vars() if is_belong_to_optimizer(v)]
    path = prefix + ".pdparams"
    found = _read_arrays(path)
    if any(v.name not in found for v in others):
        path = prefix + ".pdopt"
        found = {**_read_arrays(path), **found}
    for var in (*params, *others):
        if var.name not in found:
            raise ModelFileError(f"{path!r} holds nothing for variable {var.name!r}")
    values = {v.name: (np.array(found[v.name]), None) for v in (*params, *others)}
    check_shapes(params, values)
    return values


def _others_files(
    program: Program, path: str, var_list: Sequence[Variable] | None
) -> list[Variable]:
    """The variables to load from files that `save` did not write."""
    if os.path.isfile(path):
        if var_list is None:
            raise ValueError(
                f"load: {path!r} is one file, var_list must say what it holds"
            )
        return list(var_list)
    if not os.path.isdir(path):
        raise MissingFileError(f"there is no file {path + '.pdparams'!r}")
    if var_list is not None:
        return list(var_list)
    _log.info("%s.pdparams is not there: loading separate files", path)
    names = set(_files(path))
    return [v for v in program.list_vars() if v.persistable and v.name in names]


def _folder(
    path: str, var_list: Sequence[Variable] | None
) -> dict[str, tuple[Any, Any]]:
    if var_list is not None:
        return read_vars(path, var_list, None)
    values: dict[str, tuple[Any, Any]] = {}
    for name in _files(path):
        with open_read(os.path.join(path, name)) as file:
            values |= read_all(file, os.path.join(path, name), [(name, 0)])
    return values


def _files(folder: str) -> list[str]:
    """Names of all files below a folder, as variables would have them."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), folder)
            found.append(path.replace(os.sep, "/"))
    return sorted(found)
