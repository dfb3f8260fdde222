"""``fluid.framework``: programs, places, and the helpers that user code touches."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from fluidx.core import is_compiled_with_cuda
from fluidx.executor.cuda import device_count
from fluidx.flags import get_flags, set_flags
from fluidx.ir import (
    Block,
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    device_guard,
    name_scope,
    program_guard,
    switch_main_program,
    switch_startup_program,
    unique_name,
)
from fluidx.ir.roles import COMMON
from fluidx.kernels import EMPTY, GRAD, OpDef, VarType, as_dtype, is_floating
from fluidx.kernels import all_types as _all_types
from fluidx.kernels import find as _find
from fluidx.kernels import grad_name as _grad_name
from fluidx.tensor import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, cpu_places

__all__ = [
    "Block",
    "OpProtoHolder",
    "Operator",
    "Parameter",
    "Program",
    "Variable",
    "convert_np_dtype_to_dtype_",
    "cpu_places",
    "cuda_pinned_places",
    "cuda_places",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "dtype_is_floating",
    "get_flags",
    "grad_var_name",
    "in_dygraph_mode",
    "is_compiled_with_cuda",
    "load_op_library",
    "name_scope",
    "program_guard",
    "require_version",
    "set_flags",
    "switch_main_program",
    "switch_startup_program",
    "unique_name",
]

GRAD_VAR_SUFFIX = GRAD
EMPTY_VAR_NAME = EMPTY
TEMP_VAR_NAME = "@TEMP@"
ZERO_VAR_SUFFIX = "@ZERO"
CONTROL_DEP_VAR_PREFIX = "__control_var"

#: the release whose programs and names fluidx runs
_VERSION = "1.8.5"


def in_dygraph_mode() -> bool:
    """Whether ops run as they are called: never, fluidx runs programs."""
    return False


def grad_var_name(var_name: str) -> str:
    """The name of a variable's gradient.

    >>> grad_var_name("w")
    'w@GRAD'
    """
    return _grad_name(var_name)


def convert_np_dtype_to_dtype_(np_dtype: Any) -> VarType:
    """The `VarType` of a numpy dtype or its name.

    >>> str(convert_np_dtype_to_dtype_("int64"))
    'VarType.INT64'
    """
    return as_dtype(np_dtype)


def dtype_is_floating(dtype: Any) -> bool:
    """Whether it is a dtype of real numbers."""
    return is_floating(as_dtype(dtype))


def generate_control_dev_var_name() -> str:
    """A fresh name for a variable that only orders ops."""
    return f"{CONTROL_DEP_VAR_PREFIX}@{unique_name.generate('control')}"


def disable_dygraph() -> None:
    """Nothing to do: it never is in dygraph mode."""


disable_imperative = disable_dygraph


def _current_expected_place() -> Place:
    return CPUPlace()


def _dygraph_tracer() -> None:
    return None


def dygraph_not_support(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for functions that build programs: nothing else exists here."""
    return function


def cuda_places(device_ids: Sequence[int] | None = None) -> list[CUDAPlace]:
    """CUDA places by index; by default those of ``FLAGS_selected_gpus``, or all.

    EnforceNotMet: no CUDA device can be used.
    """
    count = device_count()
    if not count:
        from fluidx.ir.errors import EnforceNotMet

        raise EnforceNotMet(
            "cuda_places: no CUDA device can be used; check is_compiled_with_cuda()"
        )
    if device_ids is None:
        chosen = os.environ.get("FLAGS_selected_gpus", "")  # noqa: SIM112
        device_ids = [int(i) for i in chosen.split(",") if i.strip()] or range(count)
    elif not isinstance(device_ids, (list, tuple)):
        device_ids = [int(device_ids)]  # type: ignore[call-overload]
    return [CUDAPlace(i) for i in device_ids]


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """As many pinned places as asked for, by default ``CPU_NUM`` or 1."""
    return [CUDAPinnedPlace()] * len(cpu_places(device_count))


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Check that release 1.8.5 lies in the range that a script asks for.

    TypeError, ValueError: not a version such as "1.5.2". Exception: out of range.
    """
    low = _numbers("min_version", min_version)
    high = None if max_version is None else _numbers("max_version", max_version)
    ours = _numbers("version", _VERSION)
    if high is not None and not low <= ours <= high:
        raise Exception(
            f"VersionError: PaddlePaddle version in [{min_version}, {max_version}] "
            f"required; fluidx runs programs of {_VERSION}"
        )
    if low > ours:
        raise Exception(
            f"VersionError: PaddlePaddle version {min_version} or higher is required; "
            f"fluidx runs programs of {_VERSION}"
        )


def _numbers(which: str, version: str) -> tuple[int, ...]:
    if not isinstance(version, str):
        kind = version.__class__.__name__
        raise TypeError(f"require_version: {which} must be a string, got {kind}")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", version):
        raise ValueError(
            f"require_version: {which} must be like '1.5.2', got {version!r}"
        )
    found = tuple(map(int, version.split(".")))
    return found + (0,) * (4 - len(found))


def load_op_library(lib_filename: str) -> None:
    """Custom C++ ops link against the reference's libraries: always refused."""
    raise NotImplementedError(
        f"load_op_library({lib_filename!r}): ops compiled against the reference cannot "
        "be loaded; declare the op in Python with fluidx.kernels.op"
    )


class OpProtoHolder:
    """What is known of each op type (``framework.OpProtoHolder``)."""

    _instance: OpProtoHolder | None = None

    @classmethod
    def instance(cls) -> OpProtoHolder:
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    @staticmethod
    def generated_op_attr_names() -> set[str]:
        """Attributes that every op has."""
        return set(COMMON)

    def update_op_proto(self) -> None:
        """Nothing to do: ops are looked up where they are declared."""

    def get_op_proto(self, type: str) -> OpDef:
        """The definition of an op; ValueError for one that does not exist."""
        try:
            return _find(type)
        except KeyError as error:
            raise ValueError(str(error.args[0])) from None


def get_all_op_protos() -> list[OpDef]:
    """The definition of every op."""
    return [_find(t) for t in _all_types()]
