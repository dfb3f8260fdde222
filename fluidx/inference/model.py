"""The model behind predictors: a program, its parameters, a place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from fluidx.executor import Executor
from fluidx.io.errors import MissingFileError, ModelFileError
from fluidx.io.inference import feeds_and_fetches, load_inference_model
from fluidx.io.paths import open_write, read_bytes
from fluidx.io.values import is_persistable
from fluidx.io.vars import save_values
from fluidx.ir import Program
from fluidx.kernels import to_numpy
from fluidx.tensor import CPUPlace, CUDAPlace, Place, Scope, scope_guard

from .config import AnalysisConfig

__all__ = ["Model", "load", "model_of"]


@dataclass(frozen=True)
class Model:
    """What a predictor and its clones have in common."""

    program: Program
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    #: of the inputs, by name
    dtypes: dict[str, Any]
    scope: Scope
    place: Place

    def save(self, folder: str, program_file: str, params_file: str) -> None:
        """Write the program, and all parameters into one file."""
        with open_write(os.path.join(folder, program_file)) as file:
            file.write(self.program.serialize_to_string())
        names = [v.name for v in self.program.list_vars() if is_persistable(v)]
        with scope_guard(self.scope):
            save_values(folder, names, params_file, {})


def load(config: AnalysisConfig, scope: Scope) -> Model:
    """The model that a config names, its parameters put into a scope."""
    place = _place(config)
    with scope_guard(scope):
        program = _program(config, Executor(place))
    return model_of(program, scope, config)


def model_of(program: Program, scope: Scope, config: AnalysisConfig) -> Model:
    """The model of a program with feed and fetch ops, and of parameters."""
    if config.ir_optim():
        _set_to_testing(program)
    inputs, outputs = feeds_and_fetches(program)
    block = program.global_block()
    return Model(
        program,
        tuple(inputs),
        tuple(v.name for v in outputs),
        {name: to_numpy(block.var(name).dtype) for name in inputs},
        scope,
        _place(config),
    )


def _place(config: AnalysisConfig) -> Place:
    return CUDAPlace(config.gpu_device_id()) if config.use_gpu() else CPUPlace()


def _program(config: AnalysisConfig, executor: Executor) -> Program:
    """The program; the parameters are put into the current scope."""
    folder, program = config.model_dir(), config.prog_file()
    if config._buffers is not None:
        found = load_inference_model(None, executor, *config._buffers)
    elif folder:
        found = load_inference_model(folder, executor)
    elif program:
        found = _two_files(program, config.params_file(), executor)
    else:
        raise ValueError(
            "a predictor's config names no model: give it a folder, or the files of "
            "the program and of the parameters"
        )
    return found[0]  # type: ignore[no-any-return]


def _two_files(program: str, params: str, executor: Executor) -> list[Any]:
    if not params:
        raise ValueError("a predictor's config names a program, but no parameters")
    for path, what in ((program, "program"), (params, "parameters")):
        if os.path.isdir(path):
            raise ModelFileError(
                f"{path!r}, which would hold the model's {what}, is a folder"
            )
        if not os.path.exists(path):
            raise MissingFileError(
                f"there is no file {path!r}, which would hold the model's {what}"
            )
    (folder, name), (other, params_name) = map(os.path.split, (program, params))
    if folder == other:
        return load_inference_model(folder or ".", executor, name, params_name)
    return load_inference_model(None, executor, read_bytes(program), read_bytes(params))


def _set_to_testing(program: Program) -> None:
    for op in program.all_ops():
        if "is_test" in op.attrs:
            op.attrs["is_test"] = True
