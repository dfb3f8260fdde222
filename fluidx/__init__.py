"""fluidx: PaddlePaddle Fluid 1.8's static-graph programs on today's Python.

    import fluidx as fluid

    x = fluid.data("x", [None, 13])
    ...
    exe = fluid.Executor(fluid.CPUPlace())

The names are those of ``paddle.fluid``.
"""

from fluidx import (
    average,
    backward,
    clip,
    communicator,
    core,
    data_feeder,
    dataset,
    distributed,
    executor,
    framework,
    initializer,
    io,
    ir,
    layers,
    metrics,
    nets,
    optimizer,
    param_attr,
    profiler,
    regularizer,
    transpiler,
)
from fluidx.backward import append_backward, gradients
from fluidx.data_feeder import DataFeeder
from fluidx.dataset_factory import DataFeedDesc, DatasetFactory
from fluidx.executor import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    Executor,
    ParallelExecutor,
)
from fluidx.framework import (
    cuda_pinned_places,
    cuda_places,
    get_flags,
    in_dygraph_mode,
    is_compiled_with_cuda,
    load_op_library,
    require_version,
    set_flags,
)
from fluidx.input import data, embedding, one_hot
from fluidx.io import load, load_program_state, save, set_program_state
from fluidx.ir import (
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    device_guard,
    name_scope,
    program_guard,
    unique_name,
)
from fluidx.param_attr import ParamAttr, WeightNormParamAttr
from fluidx.tensor import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    LoDTensor,
    LoDTensorArray,
    Scope,
    cpu_places,
    create_lod_tensor,
    create_random_int_lodtensor,
    global_scope,
    scope_guard,
)
from fluidx.transpiler import (
    DistributeTranspiler,
    DistributeTranspilerConfig,
    HashName,
    RoundRobin,
    memory_optimize,
    release_memory,
)

Tensor = LoDTensor

__version__ = "0.1.0"

__all__ = [
    "BuildStrategy",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CompiledProgram",
    "DataFeedDesc",
    "DataFeeder",
    "DatasetFactory",
    "DistributeTranspiler",
    "DistributeTranspilerConfig",
    "ExecutionStrategy",
    "Executor",
    "HashName",
    "LoDTensor",
    "LoDTensorArray",
    "ParallelExecutor",
    "ParamAttr",
    "Parameter",
    "Program",
    "RoundRobin",
    "Scope",
    "Tensor",
    "Variable",
    "WeightNormParamAttr",
    "append_backward",
    "average",
    "backward",
    "clip",
    "communicator",
    "core",
    "cpu_places",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "cuda_pinned_places",
    "cuda_places",
    "data",
    "data_feeder",
    "dataset",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "distributed",
    "embedding",
    "executor",
    "framework",
    "get_flags",
    "global_scope",
    "gradients",
    "in_dygraph_mode",
    "initializer",
    "io",
    "ir",
    "is_compiled_with_cuda",
    "layers",
    "load",
    "load_op_library",
    "load_program_state",
    "memory_optimize",
    "metrics",
    "name_scope",
    "nets",
    "one_hot",
    "optimizer",
    "param_attr",
    "profiler",
    "program_guard",
    "regularizer",
    "release_memory",
    "require_version",
    "save",
    "scope_guard",
    "set_flags",
    "set_program_state",
    "transpiler",
    "unique_name",
]


def __getattr__(name: str) -> object:
    from fluidx.compat.lazy import attribute

    return attribute(name)
