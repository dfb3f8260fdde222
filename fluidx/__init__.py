"""fluidx: PaddlePaddle Fluid 1.8's static-graph programs on today's Python."""

from fluidx.executor import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    Executor,
)
from fluidx.ir import (
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    device_guard,
    name_scope,
    program_guard,
    unique_name,
)
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

__version__ = "0.1.0"
