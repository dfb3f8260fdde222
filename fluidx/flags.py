"""Flags (``fluid.set_flags``, ``fluid.get_flags``, ``core.globals()``).

The reference's flags tune its C++ half; scripts set them, in the environment or with
`set_flags`, and read them back. Here they are kept. FLAGS_check_nan_inf does what it
does there: programs stop at the first op whose output has a NaN or Inf.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

__all__ = ["FLAGS", "SWITCHES", "get_flags", "read_environment", "set_flags"]

#: of the reference built for CPUs, and, below, built for GPUs
_DEFAULTS: dict[str, Any] = {
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_benchmark": False,
    "FLAGS_check_nan_inf": False,
    "FLAGS_cpu_deterministic": False,
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_enable_parallel_graph": False,
    "FLAGS_enable_rpc_profiler": False,
    "FLAGS_fraction_of_cpu_memory_to_use": 1.0,
    "FLAGS_free_idle_chunk": False,
    "FLAGS_free_when_no_cache_hit": False,
    "FLAGS_fuse_parameter_groups_size": 1,
    "FLAGS_fuse_parameter_memory_size": -1.0,
    "FLAGS_init_allocated_mem": False,
    "FLAGS_initial_cpu_memory_in_mb": 500,
    "FLAGS_inner_op_parallelism": 0,
    "FLAGS_memory_fraction_of_eager_deletion": 1.0,
    "FLAGS_multiple_of_cupti_buffer_size": 1,
    "FLAGS_paddle_num_threads": 1,
    "FLAGS_pe_profile_fname": "",
    "FLAGS_print_sub_graph_dir": "",
    "FLAGS_reader_queue_speed_test_mode": False,
    "FLAGS_tracer_profile_fname": "xxgperf",
    "FLAGS_use_mkldnn": False,
    "FLAGS_use_pinned_memory": True,
    "FLAGS_use_system_allocator": False,
    # ------------------------------------------------ GPUs
    "FLAGS_conv_workspace_size_limit": 512,
    "FLAGS_cudnn_batchnorm_spatial_persistent": False,
    "FLAGS_cudnn_deterministic": False,
    "FLAGS_cudnn_exhaustive_search": False,
    "FLAGS_fast_eager_deletion_mode": True,
    "FLAGS_fraction_of_gpu_memory_to_use": 0.92,
    "FLAGS_max_inplace_grad_add": 0,
    "FLAGS_selected_gpus": "",
    "FLAGS_sort_sum_gradient": False,
    "FLAGS_sync_nccl_allreduce": True,
}

#: flags that the environment can set, and nothing else
_FIXED = frozenset(
    ["FLAGS_free_idle_chunk", "FLAGS_free_when_no_cache_hit", "FLAGS_use_mkldnn"]
)

#: flags that ask for something which is not done here
_NOT_DONE = {"FLAGS_benchmark": "nothing is timed; use fluid.profiler"}


class _Switches:
    """Flags that a run looks at, as plain attributes."""

    check_nan_inf = False


SWITCHES = _Switches()


def _as(name: str, value: Any, like: Any) -> Any:
    try:
        if isinstance(like, bool):
            if isinstance(value, str):
                return value.strip().lower() in ("1", "true", "yes", "on", "t", "y")
            return bool(value)
        return type(like)(value)
    except (TypeError, ValueError):
        kind = type(like).__name__
        raise ValueError(f"{name} takes a value of {kind}, got {value!r}") from None


class _Flags(MutableMapping[str, Any]):
    """Flags by name, at first as the environment says."""

    def __init__(self) -> None:
        self._set: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._set:
            return self._set[name]
        if name not in _DEFAULTS:
            raise KeyError(f"there is no flag {name}")
        default = _DEFAULTS[name]
        given = os.environ.get(name)
        return default if given is None else _as(name, given, default)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in _DEFAULTS:
            raise KeyError(f"there is no flag {name}")
        if name in _FIXED:
            raise ValueError(f"{name} can be set in the environment only")
        value = _as(name, value, _DEFAULTS[name])
        if value and name in _NOT_DONE:
            text = f"{name} has no effect in fluidx: {_NOT_DONE[name]}"
            warnings.warn(text, stacklevel=3)
        self._set[name] = value
        read_environment()

    def __delitem__(self, name: str) -> None:
        raise TypeError("a flag cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(_DEFAULTS)

    def __len__(self) -> int:
        return len(_DEFAULTS)

    def is_public(self, name: str) -> bool:
        """Whether scripts may ask for it: all that there are."""
        return name in _DEFAULTS


#: what ``core.globals()`` gives
FLAGS = _Flags()


def read_environment() -> None:
    """Set the switches as the flags are now; each new `Executor` has this done."""
    SWITCHES.check_nan_inf = FLAGS["FLAGS_check_nan_inf"]


def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags; ValueError for one that is not known. Mirrors ``fluid.set_flags``.

    FLAGS_check_nan_inf holds for the next runs, of all executors.
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags takes a dict, got {flags.__class__.__name__}")
    for name, value in flags.items():
        if name not in FLAGS:
            raise ValueError(f"set_flags: there is no flag {name}")
        FLAGS[name] = value


def get_flags(flags: str | Sequence[str]) -> dict[str, Any]:
    """Flags by name. Mirrors ``fluid.get_flags``.

    >>> get_flags("FLAGS_cudnn_deterministic")
    {'FLAGS_cudnn_deterministic': False}
    """
    if not isinstance(flags, (str, list, tuple)):
        kind = flags.__class__.__name__
        raise TypeError(f"get_flags takes a name or a list of names, got {kind}")
    found = {}
    for name in [flags] if isinstance(flags, str) else flags:
        if name not in FLAGS:
            raise ValueError(f"get_flags: there is no flag {name}")
        found[name] = FLAGS[name]
    return found
