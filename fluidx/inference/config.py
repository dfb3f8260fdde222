"""How a predictor is made: which model, which device, which switches."""

from __future__ import annotations

import copy
import enum
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from fluidx.executor.cuda import device_count

from .values import PaddleTensor

__all__ = [
    "AnalysisConfig",
    "MkldnnQuantizerConfig",
    "NativeConfig",
    "PredictorConfig",
]


class PredictorConfig:
    """``core.PaddlePredictor.Config``: the model's files.

    model_dir: a folder with ``__model__`` and a file for each parameter; or prog_file,
    and all parameters in one other file.
    """

    model_dir: str = ""
    prog_file: str = ""


class NativeConfig(PredictorConfig):
    """The settings of a `NativePaddlePredictor` (``core.NativeConfig``).

    use_gpu, device: run on that GPU. specify_input_name: inputs are known by their
    names, not by their order. fraction_of_gpu_memory has no meaning here.
    """

    param_file: str = ""
    use_gpu: bool = False
    device: int = 0
    fraction_of_gpu_memory: float = -1.0
    specify_input_name: bool = False
    _threads: int = 1

    def cpu_math_library_num_threads(self) -> int:
        return self._threads

    def set_cpu_math_library_num_threads(self, number: int) -> None:
        """Kept; the environment (``OMP_NUM_THREADS``) says what BLAS uses."""
        self._threads = int(number)


class MkldnnQuantizerConfig:
    """What an int8 quantizer is told (``core.MkldnnQuantizerConfig``); kept only."""

    def __init__(self, other: MkldnnQuantizerConfig | None = None) -> None:
        self._batch_size = 1
        self._data: list[PaddleTensor] = []
        self._op_types: set[str] = set()
        if other is not None:
            self.__dict__.update(other.__dict__)

    def set_quant_data(self, data: Sequence[PaddleTensor]) -> None:
        self._data = list(data)

    def set_quant_batch_size(self, size: int) -> None:
        self._batch_size = int(size)

    def set_enabled_op_types(self, types: Iterable[str]) -> None:
        self._op_types = set(types)


class _Precision(enum.IntEnum):
    """``core.AnalysisConfig.Precision``."""

    Float32 = 0
    Int8 = 1
    Half = 2

    def __str__(self) -> str:
        return f"Precision.{self.name}"

    __repr__ = __str__


class AnalysisConfig:
    """The settings of an `AnalysisPredictor` (``core.AnalysisConfig``).

        AnalysisConfig(model_dir)  AnalysisConfig(prog_file, params_file)
        AnalysisConfig(another_config)  AnalysisConfig()

    Of the switches, these say what a predictor does: the model, the GPU,
    `switch_use_feed_fetch_ops`, `switch_specify_input_names` and `switch_ir_optim` (ops
    that know training from testing test). The others are kept and can be asked for:
    plans fuse ops and reuse memory in any case, and there is no MKL-DNN, TensorRT or
    Lite.

    >>> config = AnalysisConfig("model")
    >>> config.switch_use_feed_fetch_ops(False)
    >>> config.model_dir(), config.use_feed_fetch_ops_enabled(), config.ir_optim()
    ('model', False, True)
    """

    Precision = _Precision
    Float32, Int8, Half = _Precision.Float32, _Precision.Int8, _Precision.Half

    def __init__(
        self, model: str | AnalysisConfig | None = None, params_file: str | None = None
    ) -> None:
        self._model_dir = self._prog_file = self._params_file = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._gpu: int | None = None
        self._pool_mb = 100
        self._feed_fetch = self._ir_optim = True
        self._names = False
        self._threads = 1
        self._glog_off = self._mkldnn = False
        self._quantizer: MkldnnQuantizerConfig | None = None
        #: switches that mean nothing here: what they were given
        self._kept: dict[str, Any] = {}
        if isinstance(model, AnalysisConfig):
            self.__dict__.update(copy.deepcopy(model.__dict__))
        elif model is not None:
            self.set_model(*([model] if params_file is None else [model, params_file]))

    # ------------------------------------------------ the model

    def set_model(self, model: str, params_file: str | None = None) -> None:
        """A folder (which counts if there are both); or the files of the program and
        of all parameters."""
        if params_file is None:
            self._model_dir = _path(model)
        else:
            self._prog_file, self._params_file = _path(model), _path(params_file)

    def set_prog_file(self, path: str) -> None:
        self._prog_file = _path(path)

    def set_params_file(self, path: str) -> None:
        self._params_file = _path(path)

    def set_model_buffer(
        self, program: bytes, program_size: int, params: bytes, params_size: int
    ) -> None:
        """The bytes of the program and of all parameters, instead of files."""
        self._buffers = (program[:program_size], params[:params_size])

    def model_dir(self) -> str:
        return self._model_dir

    def prog_file(self) -> str:
        return self._prog_file

    def params_file(self) -> str:
        return self._params_file

    def model_from_memory(self) -> bool:
        return self._buffers is not None

    # ------------------------------------------------ the device

    def enable_use_gpu(self, memory_pool_init_size_mb: int, device_id: int = 0) -> None:
        """Run on a GPU; where there is none, it warns and stays on the CPU."""
        if device_count() <= 0:
            warnings.warn(
                "AnalysisConfig.enable_use_gpu: there is no CUDA device (or no CuPy) "
                "here; the predictor runs on the CPU",
                stacklevel=2,
            )
            return
        self._pool_mb, self._gpu = int(memory_pool_init_size_mb), int(device_id)

    def disable_gpu(self) -> None:
        self._gpu = None

    def use_gpu(self) -> bool:
        return self._gpu is not None

    def gpu_device_id(self) -> int:
        return self._gpu or 0

    def memory_pool_init_size_mb(self) -> int:
        return self._pool_mb

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """0: no memory is set aside."""
        return 0.0

    # ------------------------------------------------ switches with a meaning

    def switch_use_feed_fetch_ops(self, x: int = True) -> None:
        """True: use `run`. False: use `get_input_tensor` and `zero_copy_run`."""
        self._feed_fetch = _switch("switch_use_feed_fetch_ops", x)

    def use_feed_fetch_ops_enabled(self) -> bool:
        return self._feed_fetch

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Whether `run` knows its inputs by their names, not by their order."""
        self._names = _switch("switch_specify_input_names", x)

    def specify_input_name(self) -> bool:
        return self._names

    def switch_ir_optim(self, x: int = True) -> None:
        """Whether ops that know training from testing are set to testing."""
        self._ir_optim = _switch("switch_ir_optim", x)

    def ir_optim(self) -> bool:
        return self._ir_optim

    # ------------------------------------------------ switches that are kept

    def set_cpu_math_library_num_threads(self, number: int) -> None:
        """Kept; the environment (``OMP_NUM_THREADS``) says what BLAS uses."""
        self._threads = int(number)

    def cpu_math_library_num_threads(self) -> int:
        return self._threads

    def disable_glog_info(self) -> None:
        """Kept: predictors log nothing."""
        self._glog_off = True

    def glog_info_disabled(self) -> bool:
        return self._glog_off

    def enable_mkldnn(self) -> None:
        self._mkldnn = True

    def mkldnn_enabled(self) -> bool:
        return self._mkldnn

    def set_mkldnn_cache_capacity(self, capacity: int = 0) -> None:
        self._kept["mkldnn_cache_capacity"] = capacity

    def set_mkldnn_op(self, types: Iterable[str]) -> None:
        self._kept["mkldnn_op"] = set(types)

    def enable_quantizer(self) -> None:
        self._quantizer = MkldnnQuantizerConfig()

    def quantizer_config(self) -> MkldnnQuantizerConfig:
        """ValueError: `enable_quantizer` was not called."""
        if self._quantizer is None:
            raise ValueError("AnalysisConfig: call enable_quantizer() first")
        return self._quantizer

    def enable_memory_optim(self) -> None:
        """Kept: plans reuse memory in any case."""
        self._kept["memory_optim"] = True

    def enable_profile(self) -> None:
        """Kept: ``fluid.profiler`` profiles predictors as it does executors."""
        self._kept["profile"] = True

    def switch_ir_debug(self, x: int = True) -> None:
        self._kept["ir_debug"] = _switch("switch_ir_debug", x)

    def set_optim_cache_dir(self, path: str) -> None:
        self._kept["optim_cache_dir"] = _path(path)

    def delete_pass(self, name: str) -> None:
        """Kept: there are no such passes; what a plan fuses computes the same."""
        self._kept.setdefault("deleted_passes", []).append(name)

    def pass_builder(self) -> NoReturn:
        """AttributeError: there are none (in the reference, using them crashes)."""
        raise AttributeError(
            "AnalysisConfig.pass_builder: fluidx has no list of graph passes; "
            "delete_pass(name) is accepted"
        )

    def enable_tensorrt_engine(
        self,
        workspace_size: int = 1 << 20,
        max_batch_size: int = 1,
        min_subgraph_size: int = 3,
        precision_mode: _Precision = _Precision.Float32,
        use_static: bool = False,
        use_calib_mode: bool = True,
    ) -> None:
        """Kept: there is no TensorRT here, as in the reference built without it."""
        self._kept["tensorrt"] = (
            *(workspace_size, max_batch_size, min_subgraph_size, precision_mode),
            *(use_static, use_calib_mode),
        )

    def tensorrt_engine_enabled(self) -> bool:
        return False

    def set_trt_dynamic_shape_info(
        self,
        min_input_shape: Mapping[str, list[int]] = {},
        max_input_shape: Mapping[str, list[int]] = {},
        optim_input_shape: Mapping[str, list[int]] = {},
        disable_trt_plugin_fp16: bool = False,
    ) -> None:
        self._kept["trt_shapes"] = (min_input_shape, max_input_shape, optim_input_shape)

    def enable_lite_engine(
        self,
        zero_copy: bool = False,
        precision_mode: _Precision = _Precision.Float32,
        passes_filter: Sequence[str] = (),
        ops_filter: Sequence[str] = (),
    ) -> None:
        """Kept: there is no Lite here, as in the reference built without it."""
        self._kept["lite"] = (zero_copy, precision_mode, passes_filter, ops_filter)

    def lite_engine_enabled(self) -> bool:
        return False

    def to_native_config(self) -> NativeConfig:
        """The same model, device and way of naming inputs for a `NativeConfig`."""
        made = NativeConfig()
        made.model_dir = self._model_dir
        if not self._model_dir:
            made.prog_file, made.param_file = self._prog_file, self._params_file
        made.use_gpu, made.device = self.use_gpu(), self.gpu_device_id()
        made.fraction_of_gpu_memory = 0.0
        made.specify_input_name = self._names
        return made


def _path(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"AnalysisConfig: a path is a str, got {value!r:.60}")
    return value


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, int)):
        raise TypeError(f"AnalysisConfig.{name} takes True or False, got {value!r:.60}")
    return bool(value)
