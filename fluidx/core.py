"""``fluid.core``: the names of it that user code touches.

The reference's `core` is its C++ half. What of it has a meaning here is the same object
as elsewhere in fluidx; what has none raises AttributeError.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from types import ModuleType
from typing import Any

from fluidx import kernels
from fluidx.core_parts import (
    EventSortingKey,
    ProfilerState,
    TracerOption,
    avx_supported,
    disable_profiler,
    enable_profiler,
    from_dlpack,
    get_glibc_ver,
    init_devices,
    init_gflags,
    init_glog,
    is_profiler_enabled,
    less_than_ver,
    load_op_library,
    prune,
    prune_backward,
    reset_profiler,
    run_shell_command,
    set_tracer_option,
    var_names,
)
from fluidx.executor.cuda import device_count
from fluidx.flags import FLAGS
from fluidx.inference import (
    AnalysisConfig,
    AnalysisPredictor,
    MkldnnQuantizerConfig,
    NativeConfig,
    NativePaddlePredictor,
    PaddleBuf,
    PaddleDType,
    PaddlePlace,
    PaddlePredictor,
    PaddleTensor,
    ZeroCopyTensor,
    create_paddle_predictor,
    paddle_dtype_size,
    paddle_tensor_to_bytes,
)
from fluidx.ir import Operator, OpRole, make_op
from fluidx.ir.attrs import is_block
from fluidx.ir.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc, plain_of
from fluidx.ir.errors import EnforceNotMet, EOFException
from fluidx.ir.roles import CALLSTACK, DEVICE, NAMESCOPE, ROLE, ROLE_VAR
from fluidx.kernels import EMPTY, GRAD, AttrType, GradContext
from fluidx.tensor import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    LoDTensor,
    LoDTensorArray,
    Scope,
    ScopeVar,
)
from fluidx.tensor import HeldRows as SelectedRows
from fluidx.tensor import Place as _Place

__all__ = [
    "AnalysisConfig",
    "AnalysisPredictor",
    "AttrType",
    "BlockDesc",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "EOFException",
    "EnforceNotMet",
    "EventSortingKey",
    "LoDTensor",
    "LoDTensorArray",
    "MkldnnQuantizerConfig",
    "NativeConfig",
    "NativePaddlePredictor",
    "OpDesc",
    "PaddleBuf",
    "PaddleDType",
    "PaddlePlace",
    "PaddlePredictor",
    "PaddleTensor",
    "Place",
    "ProfilerState",
    "ProgramDesc",
    "Scope",
    "SelectedRows",
    "Tensor",
    "TracerOption",
    "VarDesc",
    "Variable",
    "ZeroCopyTensor",
    "avx_supported",
    "create_paddle_predictor",
    "disable_profiler",
    "empty_var_name",
    "enable_profiler",
    "from_dlpack",
    "get_all_op_protos",
    "get_cuda_device_count",
    "get_fetch_variable",
    "get_glibc_ver",
    "get_grad_op_desc",
    "get_op_attrs_default_value",
    "get_variable_tensor",
    "globals",
    "grad_var_suffix",
    "has_grad_op_maker",
    "has_non_empty_grad_op_maker",
    "init_devices",
    "init_gflags",
    "init_glog",
    "is_compiled_with_brpc",
    "is_compiled_with_cuda",
    "is_compiled_with_dist",
    "is_compiled_with_mkldnn",
    "is_profiler_enabled",
    "kAll",
    "kAllOpDetail",
    "kAve",
    "kCPU",
    "kCUDA",
    "kCalls",
    "kControlDepVarName",
    "kDefault",
    "kDisabled",
    "kEmptyVarName",
    "kGradVarSuffix",
    "kMax",
    "kMin",
    "kNewGradSuffix",
    "kOpDetail",
    "kTempVarName",
    "kTotal",
    "kZeroVarSuffix",
    "less_than_ver",
    "load_op_library",
    "loaded_var_suffix",
    "op_proto_and_checker_maker",
    "op_support_gpu",
    "paddle_dtype_size",
    "paddle_tensor_to_bytes",
    "prune",
    "prune_backward",
    "reset_profiler",
    "run_shell_command",
    "set_feed_variable",
    "set_tracer_option",
    "size_of_dtype",
    "var_names",
]

Tensor = LoDTensor
Variable = ScopeVar
_Scope = Scope

kDisabled, kCPU = ProfilerState.kDisabled, ProfilerState.kCPU
kCUDA, kAll = ProfilerState.kCUDA, ProfilerState.kAll
kDefault, kCalls = EventSortingKey.kDefault, EventSortingKey.kCalls
kTotal, kMin = EventSortingKey.kTotal, EventSortingKey.kMin
kMax, kAve = EventSortingKey.kMax, EventSortingKey.kAve
kOpDetail, kAllOpDetail = TracerOption.kOpDetail, TracerOption.kAllOpDetail

#: what ``core.<name>`` needs that fluidx has not
_ABSENT = {
    "VarBase": "dygraph mode",
    "Tracer": "dygraph mode",
    "Layer": "dygraph mode",
    "ParallelExecutor": "use fluid.CompiledProgram",
    "Executor": "use fluid.Executor",
    "Graph": "graphs are views: program.graph()",
    "IrGraph": "graphs are views: program.graph()",
    "ops": "dygraph mode",
    "BackwardStrategy": "dygraph mode",
    "LoDTensorBlockingQueue": "use fluid.io.DataLoader.from_generator",
    "BoxPS": "BoxPS hardware",
    "PaddlePassBuilder": "there are no lists of graph passes",
    "Gloo": "the Gloo library",
}


def __getattr__(name: str) -> Any:
    why = _ABSENT.get(name)
    raise AttributeError(
        f"fluid.core has no {name!r} in fluidx" + (f": {why}" if why else "")
    )


class Place(_Place):
    """Any place, to be set (``core.Place``).

    >>> place = Place()
    >>> place.set_place(CUDAPlace(1))
    >>> place.is_gpu_place(), place.gpu_device_id()
    (True, 1)
    """

    def __init__(self) -> None:
        self.place: _Place = CPUPlace()

    def set_place(self, place: _Place) -> None:
        self.place = place.place if isinstance(place, Place) else place

    def is_cpu_place(self) -> bool:
        return isinstance(self.place, CPUPlace)

    def is_gpu_place(self) -> bool:
        return isinstance(self.place, CUDAPlace)

    def is_cuda_pinned_place(self) -> bool:
        return isinstance(self.place, CUDAPinnedPlace)

    def gpu_device_id(self) -> int:
        if not isinstance(self.place, CUDAPlace):
            raise ValueError(f"{self.place} is not a CUDAPlace")
        return self.place.device_id


# ---------------------------------------------------------------- what is there


def get_cuda_device_count() -> int:
    """How many CUDA devices this process can use."""
    return device_count()


def is_compiled_with_cuda() -> bool:
    """Whether CUDAPlace can be used: CuPy, a driver and a device are there.

    Scripts choose their place by this; in the reference it says how it was built.
    """
    return device_count() > 0


def is_compiled_with_dist() -> bool:
    return True


def is_compiled_with_brpc() -> bool:
    return False


def is_compiled_with_mkldnn() -> bool:
    return False


def op_support_gpu(op_type: str) -> bool:
    """Every op's array code runs on CuPy; False for one that is not known."""
    return kernels.has(op_type)


# ---------------------------------------------------------------- names


def grad_var_suffix() -> str:
    return GRAD


def loaded_var_suffix() -> str:
    return "@LOADED"


def empty_var_name() -> str:
    return EMPTY


def kEmptyVarName() -> str:
    return EMPTY


def kGradVarSuffix() -> str:
    return GRAD


def kTempVarName() -> str:
    return "@TEMP@"


def kZeroVarSuffix() -> str:
    return "@ZERO"


def kControlDepVarName() -> str:
    return "__control_var"


def kNewGradSuffix() -> str:
    return "@NEWGRAD@"


class _OpMaker(ModuleType):
    """``core.op_proto_and_checker_maker``: roles, and names of common attributes."""

    OpRole = OpRole

    @staticmethod
    def kOpRoleAttrName() -> str:
        return ROLE

    @staticmethod
    def kOpRoleVarAttrName() -> str:
        return ROLE_VAR

    @staticmethod
    def kOpNameScopeAttrName() -> str:
        return NAMESCOPE

    @staticmethod
    def kOpCreationCallstackAttrName() -> str:
        return CALLSTACK

    @staticmethod
    def kOpDeviceAttrName() -> str:
        return DEVICE


op_proto_and_checker_maker = _OpMaker(f"{__name__}.op_proto_and_checker_maker")


# ---------------------------------------------------------------- ops


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def get_all_op_protos() -> list[Any]:
    """The definition of every op; ``proto.type`` is its name."""
    return [kernels.find(t) for t in kernels.all_types()]


def get_op_attrs_default_value(op_type: str | bytes) -> dict[str, Any]:
    """Attribute -> default, the common ones included."""
    common = {
        ROLE: int(OpRole.NotSpecified),
        ROLE_VAR: [],
        NAMESCOPE: "",
        CALLSTACK: [],
        DEVICE: "",
    }
    return {**kernels.find(_text(op_type)).defaults, **common}


def has_grad_op_maker(op_type: str | bytes) -> bool:
    """Whether `append_backward` adds ops for this one."""
    op_type = _text(op_type)
    return kernels.has(op_type) and kernels.find(op_type).grad is not None


has_non_empty_grad_op_maker = has_grad_op_maker


def get_grad_op_desc(
    op_desc: OpDesc | Operator,
    no_grad_set: Iterable[str],
    grad_sub_block: Sequence[BlockDesc] = (),
) -> tuple[list[OpDesc], dict[str, str]]:
    """The gradient ops of one op, in no program, and {gradient: variable}.

    no_grad_set: names of variables, or of their gradients, that get none.
    EnforceNotMet for an op with a sub-block: `append_backward` makes those.
    """
    op: Operator = plain_of(op_desc)
    if grad_sub_block or any(is_block(v) for v in op.attrs.values()):
        raise EnforceNotMet(
            f"get_grad_op_desc: {op.type} has a sub-block; use append_backward"
        )
    no_grad = frozenset(n.removesuffix(GRAD) for n in no_grad_set)
    attrs = {**op.definition.defaults, **op.attrs}
    context = GradContext(op.type, op.inputs, op.outputs, attrs, no_grad)
    made, grads = [], {}
    for spec in op.definition.grad_specs(context):
        role = int(OpRole.Backward)
        spec_attrs = {**spec.attrs, ROLE: role}
        made.append(make_op(op.block, spec.type, spec.inputs, spec.outputs, spec_attrs))
        for name in made[-1].output_arg_names:
            if name != EMPTY:
                grads[name] = name.removesuffix(GRAD)
    return [OpDesc(op) for op in made], grads


def size_of_dtype(dtype: int) -> int:
    """Bytes of one element."""
    return kernels.to_numpy(dtype).itemsize


# ---------------------------------------------------------------- feed and fetch


def set_feed_variable(
    scope: Scope, tensor: LoDTensor | Any, name: str, index: int
) -> None:
    """Put a tensor at a position of a feed list that is kept in a scope."""
    held = _list_in(scope, name)
    held.extend([None] * (index + 1 - len(held)))
    held[index] = tensor if isinstance(tensor, LoDTensor) else LoDTensor(tensor)


def get_fetch_variable(scope: Scope, name: str, index: int) -> LoDTensor:
    """The tensor at a position of a fetch list in a scope."""
    held = _list_in(scope, name)
    if index >= len(held):
        raise EnforceNotMet(f"{name} holds {len(held)} values, asked for {index}")
    item = held[index]
    return item if isinstance(item, LoDTensor) else LoDTensor(item)


def _list_in(scope: Scope, name: str) -> list[Any]:
    var = scope.var(name)
    if var.value is None:
        var.value = []
    if not isinstance(var.value, list):
        raise EnforceNotMet(f"{name} is no feed or fetch list but {var!r}")
    return var.value


def get_variable_tensor(scope: Scope, name: str) -> LoDTensor:
    """The tensor of a variable; EnforceNotMet if the scope has none of that name."""
    var = scope.find_var(name)
    if var is None:
        raise EnforceNotMet(f"the scope has no variable {name!r}")
    return var.get_tensor()


# ---------------------------------------------------------------- flags


def globals() -> MutableMapping[str, Any]:
    """Flags: name -> value; see `fluidx.flags`."""
    return FLAGS
