"""Predictors: a saved model, run on what is given to it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from fluidx.executor import Executor
from fluidx.executor.context import Context
from fluidx.executor.cuda import to_host
from fluidx.ir import Program
from fluidx.ir.desc import ProgramDesc
from fluidx.ir.errors import EnforceNotMet, FeedError
from fluidx.tensor import Scope
from fluidx.tensor.lod_tensor import Cell

from .config import AnalysisConfig, NativeConfig, PredictorConfig
from .model import Model, load, model_of
from .tensors import ZeroCopyTensor
from .values import PaddleTensor

__all__ = [
    "AnalysisPredictor",
    "NativePaddlePredictor",
    "PaddlePredictor",
    "create_paddle_predictor",
]


class PaddlePredictor:
    """A saved model that runs (``core.PaddlePredictor``); `create_paddle_predictor`.

    `clone` gives another one with the same parameters, for another thread.
    """

    Config = PredictorConfig

    def __init__(self, *config: Any) -> None:
        raise TypeError("PaddlePredictor: use create_paddle_predictor(config)")

    def _start(self, config: AnalysisConfig, model: Model | None) -> None:
        self._config = config
        self._loaded = model
        if model is not None:
            self._executor = Executor(model.place)

    @property
    def _model(self) -> Model:
        if self._loaded is None:
            raise EnforceNotMet(
                f"{type(self).__name__}: its model is not loaded yet; "
                "create_paddle_predictor(config) does that, or init()"
            )
        return self._loaded

    def run(self, inputs: Sequence[PaddleTensor]) -> list[PaddleTensor]:
        """Run once; a tensor for each output, whose memory is its own.

        inputs: in the order of the model's inputs, or in any order with their names
        if the config says `switch_specify_input_names`.

        FeedError: wrong number, name or dtype of inputs. RunError: an op failed.
        """
        model = self._model
        if not self._config.use_feed_fetch_ops_enabled():
            raise EnforceNotMet(
                "predictor.run: the config says switch_use_feed_fetch_ops(False); set "
                "inputs with get_input_tensor(name) and call zero_copy_run()"
            )
        feed, lods = self._fed(inputs)
        results = self._run(model.outputs, feed, lods)
        return [
            PaddleTensor._of(name, array, lod, f"output {name!r}")
            for name, (array, lod) in zip(model.outputs, results)
        ]

    def _fed(self, inputs: Sequence[PaddleTensor]) -> tuple[dict[str, Any], Any]:
        """Arrays by name; and the LoD of those that have one."""
        names = self._model.inputs
        if not isinstance(inputs, (list, tuple)):
            kind = type(inputs).__name__
            raise TypeError(f"predictor.run takes a list of PaddleTensors, not {kind}")
        if len(inputs) != len(names):
            raise FeedError(
                f"predictor.run: the model takes {len(names)} inputs {names}, got "
                f"{len(inputs)}"
            )
        by_name = self._config.specify_input_name()
        feed: dict[str, Any] = {}
        lods = {}
        for place, tensor in enumerate(inputs):
            if not isinstance(tensor, PaddleTensor):
                raise TypeError(
                    f"predictor.run takes PaddleTensors; input {place} is a "
                    f"{type(tensor).__name__}"
                )
            name = tensor.name if by_name else names[place]
            if by_name and (name not in names or name in feed):
                why = "is given twice" if name in feed else "is none of the model's"
                raise FeedError(
                    f"predictor.run: input {place} is named {name!r}, which {why}; the "
                    f"inputs are {names}"
                )
            feed[name] = tensor._array()
            if tensor.lod:
                lods[name] = tensor.lod
        return feed, lods or None

    def _run(
        self, fetches: tuple[str, ...], feed: dict[str, Any], lods: Any
    ) -> list[tuple[Any, Any]]:
        """(array of its own, LoD) for each fetch."""
        model, executor = self._model, self._executor
        for name, array in feed.items():
            if array.dtype != model.dtypes[name]:
                raise FeedError(
                    f"input {name!r}: expected dtype {model.dtypes[name]}, came "
                    f"{array.dtype}"
                )
            if executor.xp is not np:
                feed[name] = executor.xp.asarray(array)
        program = model.program
        with_lod = frozenset(lods or ())
        plan = executor.plan_of(program, 0, tuple(feed), fetches, with_lod)
        fetched = plan.run(Context(executor, program, model.scope), feed, lods)
        found = []
        for name, (value, lod), fresh in zip(fetches, fetched, plan.fresh):
            if not hasattr(value, "dtype"):
                kind = type(value).__name__
                raise EnforceNotMet(f"output {name!r} is no tensor but a {kind}")
            host = to_host(value)
            found.append((host if fresh or host is not value else host.copy(), lod))
        return found

    def zero_copy_run(self) -> bool:
        """Not supported by this predictor: False, as in the reference."""
        return False

    def get_input_names(self) -> list[str]:
        """None known, as in the reference."""
        return []

    def get_output_names(self) -> list[str]:
        return []

    def get_input_tensor(self, name: str) -> ZeroCopyTensor | None:
        return None

    def get_output_tensor(self, name: str) -> ZeroCopyTensor | None:
        return None

    def get_serialized_program(self) -> bytes | str:
        return "NotImplemented"

    def clone(self) -> PaddlePredictor:
        """Another predictor, which shares the parameters."""
        made = type(self).__new__(type(self))
        made._start(self._config, self._model)
        return made

    def scope(self) -> Scope:
        """The parameters; clones share it."""
        return self._model.scope


class NativePaddlePredictor(PaddlePredictor):
    """The plain predictor (``core.NativePaddlePredictor``): `run`, `clone`, no more."""

    def __init__(self, config: NativeConfig) -> None:
        if not isinstance(config, NativeConfig):
            raise TypeError(f"NativePaddlePredictor takes a NativeConfig: {config!r}")
        self._start(_analysis_config(config), None)

    def init(self, parent_scope: Scope | None = None) -> bool:
        """Load the model; parameters go to a scope inside the given one."""
        self._start(self._config, load(self._config, Scope(parent_scope)))
        return True


class AnalysisPredictor(PaddlePredictor):
    """The predictor with both ways of running (``core.AnalysisPredictor``).

    `run` copies tensors in and out. With ``switch_use_feed_fetch_ops(False)`` inputs
    are set with `get_input_tensor`, `zero_copy_run` runs, `get_output_tensor` reads.
    """

    def __init__(self, config: AnalysisConfig) -> None:
        if not isinstance(config, AnalysisConfig):
            raise TypeError(f"AnalysisPredictor takes an AnalysisConfig: {config!r}")
        self._start(AnalysisConfig(config), None)

    def _start(self, config: AnalysisConfig, model: Model | None) -> None:
        super()._start(config, model)
        self._tensors: dict[str, ZeroCopyTensor] = {}
        self._fetches = model.outputs if model is not None else ()

    def init(
        self, parent_scope: Scope | None = None, program: ProgramDesc | None = None
    ) -> bool:
        """Load the model; or run a program on the parameters of the given scope."""
        scope = Scope() if parent_scope is None else parent_scope
        if program is None:
            model = load(self._config, scope)
        else:
            plain = getattr(program, "_of", program)
            if not isinstance(plain, Program):
                raise TypeError(f"AnalysisPredictor.init: no ProgramDesc: {program!r}")
            model = model_of(plain.clone(), scope, self._config)
        self._start(self._config, model)
        return True

    def get_input_names(self) -> list[str]:
        """What the model is fed, in order."""
        return list(self._model.inputs)

    def get_output_names(self) -> list[str]:
        """What it computes, in order."""
        return list(self._model.outputs)

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """The declared shapes of the inputs; -1 where any size will do."""
        block = self._model.program.global_block()
        return {n: list(block.var(n).shape) for n in self._model.inputs}

    def get_input_tensor(self, name: str) -> ZeroCopyTensor:
        """The handle of an input, or of a parameter, by name.

        EnforceNotMet: the model has no such variable.
        """
        return self._tensor(name)

    def get_output_tensor(self, name: str) -> ZeroCopyTensor:
        """The handle of an output; or of another variable that a later run computes.

        EnforceNotMet: the model has no such variable.
        """
        model, made = self._model, self._tensor(name)
        known = self._fetches + model.inputs
        if name not in known and model.scope.find_var(name) is None:
            self._fetches += (name,)
        return made

    def _tensor(self, name: str) -> ZeroCopyTensor:
        found = self._tensors.get(name)
        if found is not None:
            return found
        model = self._model
        if not model.program.global_block().has_var(name):
            raise EnforceNotMet(
                f"the model has no variable {name!r}; its inputs are "
                f"{list(model.inputs)}, its outputs {list(model.outputs)}"
            )
        cell: Cell = model.scope.find_var(name) or Cell()
        made = ZeroCopyTensor._of(name, cell, self._executor.xp)
        self._tensors[name] = made
        return made

    def zero_copy_run(self) -> bool:
        """Run on what the input tensors hold; the output tensors hold the results.

        EnforceNotMet: an input has no value; or the config does not say
        ``switch_use_feed_fetch_ops(False)``. FeedError, RunError: as `run`.
        """
        if self._config.use_feed_fetch_ops_enabled():
            raise EnforceNotMet(
                "predictor.zero_copy_run needs switch_use_feed_fetch_ops(False) in "
                "the config"
            )
        feed, lods = {}, {}
        for name in self._model.inputs:
            tensor = self._tensor(name)
            feed[name] = tensor._value()
            if tensor._cell.lod:
                lods[name] = tensor._cell.lod
        fetches = self._fetches
        for name, (array, lod) in zip(fetches, self._run(fetches, feed, lods or None)):
            cell = self._tensor(name)._cell
            cell.value, cell.lod = array, lod or None
        return True

    def program(self) -> ProgramDesc:
        """The program that is run."""
        return ProgramDesc(self._model.program)

    def get_serialized_program(self) -> bytes:
        """The bytes of the program."""
        return self._model.program.serialize_to_string()

    def SaveOptimModel(self, dir: str) -> None:
        """Save the program as ``dir/model`` and all parameters as ``dir/params``.

        ``AnalysisConfig(dir + "/model", dir + "/params")`` loads them.
        """
        os.makedirs(dir, exist_ok=True)
        self._model.save(dir, "model", "params")

    # ------------------------------------------------ steps of the reference's inside

    def prepare_argument(self) -> None:
        """Nothing to do: `init` has prepared all."""

    def prepare_feed_fetch(self) -> None:
        """Nothing to do: `init` has found the inputs and outputs."""

    def optimize_inference_program(self) -> None:
        """Nothing to do: plans are made at the first run."""

    def create_feed_fetch_var(self, scope: Scope) -> None:
        """Declare ``feed`` and ``fetch`` in a scope."""
        scope.var("feed")
        scope.var("fetch")

    def analysis_argument(self) -> NoReturn:
        """TypeError, as in the reference: Python has no such object."""
        raise TypeError("AnalysisPredictor.analysis_argument gives nothing in Python")

    def mkldnn_quantize(self) -> NoReturn:
        """EnforceNotMet: there is no MKL-DNN here."""
        raise EnforceNotMet("AnalysisPredictor.mkldnn_quantize: no MKL-DNN here")


def create_paddle_predictor(config: AnalysisConfig | NativeConfig) -> PaddlePredictor:
    """A predictor that runs a saved model (``core.create_paddle_predictor``).

    An `AnalysisPredictor` for an `AnalysisConfig`, a `NativePaddlePredictor` for a
    `NativeConfig`.

    ValueError: the config names no model. MissingFileError, ModelFileError: its files
    are not there; they are damaged, or do not fit together.
    """
    made: AnalysisPredictor | NativePaddlePredictor
    if isinstance(config, AnalysisConfig):
        made = AnalysisPredictor(config)
    elif isinstance(config, NativeConfig):
        made = NativePaddlePredictor(config)
    else:
        raise TypeError(
            "create_paddle_predictor takes an AnalysisConfig or a NativeConfig, got "
            f"{type(config).__name__}"
        )
    made.init()
    return made


def _analysis_config(config: NativeConfig) -> AnalysisConfig:
    made = AnalysisConfig()
    if config.model_dir:
        made.set_model(config.model_dir)
    else:
        made.set_model(config.prog_file, config.param_file)
    if config.use_gpu:
        made.enable_use_gpu(0, config.device)
    made.switch_specify_input_names(config.specify_input_name)
    made.switch_ir_optim(False)
    return made
