"""What a saved model consists of, found without loading its parameters."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fluidx import kernels
from fluidx.ir import Program, Variable
from fluidx.kernels import VarType, to_numpy

from .errors import MissingFileError, ModelFileError
from .inference import feeds_and_fetches, read_program
from .paths import open_read, read_bytes, var_path
from .tensors import Reader
from .unpickle import loads
from .values import get_program_persistable_vars

__all__ = ["Outline", "outline"]

_Found = tuple[str, dict[str, tuple[str, list[int]]]]

_NAMES = ("__model__", "__model__.main_program")


@dataclass
class Outline:
    """A saved model at a glance.

    ops: type -> how many. unsupported: op types that fluidx has no kernel for.
    feeds, fetches, parameters: name, dtype, shape (-1 where unknown), lod_level or
    bytes. parameters_in: the files that hold them, None if there are none.
    problems: what is wrong with these files.
    """

    model: str
    version: int | None
    blocks: int
    ops: dict[str, int]
    unsupported: list[str]
    feeds: list[dict[str, Any]]
    fetches: list[dict[str, Any]]
    parameters: list[dict[str, Any]]
    parameters_in: str | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def parameter_bytes(self) -> int:
        return sum(p["bytes"] for p in self.parameters)


def outline(
    path: str, model_filename: str | None = None, params_filename: str | None = None
) -> Outline:
    """Look at a model folder, a ``__model__`` file, or what `save` wrote.

    MissingFileError, ModelFileError: there is no program, or it is damaged. What is
    wrong with parameter files stands in ``problems``.
    """
    file = _program_file(path, model_filename)
    program = read_program(file)
    feeds, fetches = feeds_and_fetches(program)
    block = program.global_block()
    counts = Counter(op.type for op in program.all_ops())
    variables = get_program_persistable_vars(program)
    made = Outline(
        model=file,
        version=program._desc_version,
        blocks=program.num_blocks,
        ops=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        unsupported=sorted(t for t in counts if not _has_kernel(t)),
        feeds=[_io_facts(block.var(n), n) for n in feeds if block.has_var(n)],
        fetches=[_io_facts(v, v.name) for v in fetches],
        parameters=[_facts(v) for v in sorted(variables, key=lambda v: v.name)],
    )
    _look_at_parameters(made, program, variables, params_filename)
    return made


def _has_kernel(type: str) -> bool:
    return kernels.has(type) and kernels.find(type).run is not None


def _program_file(path: str, model_filename: str | None) -> str:
    if os.path.isdir(path):
        names = [model_filename] if model_filename else list(_NAMES)
        names += [n for n in sorted(os.listdir(path)) if n.endswith(".pdmodel")]
        for name in names:
            if os.path.isfile(os.path.join(path, name)):
                return os.path.join(path, name)
        raise MissingFileError(f"{path!r} has no {names[0]}")
    for candidate in (path, path + ".pdmodel"):
        if os.path.isfile(candidate):
            return candidate
    raise MissingFileError(f"there is no file or folder {path!r}")


def _io_facts(var: Variable, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "dtype": _dtype_name(var.dtype),
        "shape": list(var.shape),
        "lod_level": var.lod_level,
    }


def _dtype_name(kind: VarType) -> str:
    return "bfloat16" if kind is VarType.BF16 else str(to_numpy(kind))


def _facts(var: Variable) -> dict[str, Any]:
    shape = list(var.shape)
    size = 2 if var.dtype is VarType.BF16 else to_numpy(var.dtype).itemsize
    count = math.prod(shape) if all(d >= 0 for d in shape) else 0
    return {
        "name": var.name,
        "dtype": _dtype_name(var.dtype),
        "shape": shape,
        "bytes": count * size,
    }


# ---------------------------------------------------------------- their files


def _look_at_parameters(
    made: Outline, program: Program, variables: list[Variable], given: str | None
) -> None:
    """Find the parameters' files and compare them with the program."""
    if not variables:
        return
    folder = os.path.dirname(made.model)
    stem = made.model.removesuffix(".pdmodel")
    found: _Found | None
    try:
        if stem != made.model:
            found = _from_pickles(stem)
        elif given is not None:
            found = _from_combined(
                os.path.join(folder, os.path.basename(given)), variables
            )
        else:
            found = _from_folder(made, folder, variables)
    except ModelFileError as error:
        made.problems.append(str(error))
        return
    if found is None:
        return
    where, facts = found
    made.parameters_in = where
    for entry in made.parameters:
        came = facts.get(entry["name"])
        if came is None:
            made.problems.append(f"variable {entry['name']!r} has no value in {where}")
        elif not _same(entry, *came):
            made.problems.append(
                f"variable {entry['name']!r} is {entry['dtype']}{entry['shape']} in "
                f"the program, but {came[0]}{came[1]} in {where}"
            )


def _same(entry: dict[str, Any], dtype: str, shape: list[int]) -> bool:
    declared = entry["shape"]
    return (
        dtype == entry["dtype"]
        and len(shape) == len(declared)
        and all(want in (-1, got) for want, got in zip(declared, shape))
    )


def _from_pickles(stem: str) -> _Found:
    facts: dict[str, tuple[str, list[int]]] = {}
    for suffix in (".pdparams", ".pdopt"):
        path = stem + suffix
        if suffix == ".pdopt" and not os.path.exists(path):
            continue
        held = loads(read_bytes(path), repr(path))
        if not isinstance(held, dict):
            raise ModelFileError(f"{path!r} holds no dict")
        for name, value in held.items():
            if hasattr(value, "dtype"):
                facts[name] = (str(value.dtype), list(value.shape))
    return f"{os.path.basename(stem)}.pdparams", facts


def _from_combined(path: str, variables: list[Variable]) -> _Found:
    facts = {}
    with open_read(path) as file:
        reader = Reader(file, repr(path))
        for name, kind in sorted((v.name, v.type) for v in variables):
            reader.what = f"{path!r}, variable {name!r}"
            dtype, shape = reader.outline(kind)
            facts[name] = (_dtype_name(dtype), shape)
        reader.end()
    return os.path.basename(path), facts


def _from_folder(
    made: Outline, folder: str, variables: list[Variable]
) -> _Found | None:
    """Separate files; or the one file that stands beside the program."""
    paths = {v.name: var_path(folder, v.name) for v in variables}
    if not any(os.path.isfile(p) for p in paths.values()):
        model = os.path.basename(made.model)
        others = [n for n in sorted(os.listdir(folder or ".")) if n != model]
        if len(others) != 1:
            return None
        return _from_combined(os.path.join(folder, others[0]), variables)
    facts: dict[str, tuple[str, list[int]]] = {}
    for var in variables:
        if os.path.isfile(paths[var.name]):
            _, one = _from_combined(paths[var.name], [var])
            facts |= one
    return "separate files", facts
