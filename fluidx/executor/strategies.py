"""BuildStrategy and ExecutionStrategy: options that scripts set."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable
from typing import Any

__all__ = ["BuildStrategy", "ExecutionStrategy"]


class _Option:
    """An attribute with a default; `take` makes what it holds of what it is set to."""

    def __init__(self, default: Any, take: Callable[[Any], Any] | None = None) -> None:
        self.default = default
        self.take = take or type(default)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, strategy: Any, owner: type | None = None) -> Any:
        if strategy is None:
            return self
        default = self.default
        if isinstance(default, (list, set)):  # each strategy has its own
            return strategy.__dict__.setdefault(self.name, type(default)())
        return strategy.__dict__.get(self.name, default)

    def __set__(self, strategy: Any, value: Any) -> None:
        try:
            strategy.__dict__[self.name] = self.take(value)
        except (TypeError, ValueError):
            kind = type(self.default).__name__
            raise TypeError(
                f"{type(strategy).__name__}.{self.name} takes a value of {kind}, got "
                f"{value!r}"
            ) from None


class _Strategy:
    """Takes the options that it has; of subclasses, anything."""

    def __setattr__(self, name: str, value: Any) -> None:
        owner = type(self)
        if owner.__module__ == __name__ and not hasattr(owner, name):
            known = [n for n, held in vars(owner).items() if isinstance(held, _Option)]
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(f"{owner.__name__} has no option {name!r}{hint}")
        object.__setattr__(self, name, value)


def _whole(value: Any) -> int:
    if isinstance(value, float):
        raise TypeError(value)
    return int(value)


def _maybe(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _member(kind: type[enum.IntEnum]) -> Callable[[Any], Any]:
    def take(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(value)
        return value

    return take


class BuildStrategy(_Strategy):
    """Options of `CompiledProgram` (``fluid.BuildStrategy``).

    num_trainers, trainer_id, trainers_endpoints, nccl_comm_num and
    gradient_scale_strategy say how gradients are averaged over trainers. The others
    are kept for scripts; plans need none of them.

    AttributeError: an option that does not exist is set. TypeError: a value of another
    kind.
    """

    class ReduceStrategy(enum.IntEnum):
        AllReduce = 0
        Reduce = 1

    class GradientScaleStrategy(enum.IntEnum):
        CoeffNumDevice = 0
        One = 1
        Customized = 2

    reduce_strategy = _Option(ReduceStrategy.AllReduce, _member(ReduceStrategy))
    gradient_scale_strategy = _Option(
        GradientScaleStrategy.CoeffNumDevice, _member(GradientScaleStrategy)
    )
    debug_graphviz_path = _Option("")
    num_trainers = _Option(1, _whole)
    trainer_id = _Option(0, _whole)
    trainers_endpoints = _Option([])
    nccl_comm_num = _Option(1, _whole)
    hierarchical_allreduce_inter_nranks = _Option(0, _whole)
    use_hierarchical_allreduce = _Option(False)
    is_distribution = _Option(False)
    async_mode = _Option(False)
    memory_optimize = _Option(None, _maybe)
    enable_inplace = _Option(True)
    enable_sequential_execution = _Option(False)
    enable_auto_fusion = _Option(False)
    enable_backward_optimizer_op_deps = _Option(True)
    remove_unnecessary_lock = _Option(True)
    cache_runtime_context = _Option(False)
    sync_batch_norm = _Option(False)
    fuse_elewise_add_act_ops = _Option(False)
    fuse_bn_act_ops = _Option(False)
    fuse_relu_depthwise_conv = _Option(False)
    fuse_broadcast_ops = _Option(True)
    fuse_all_optimizer_ops = _Option(False)
    fuse_all_reduce_ops = _Option(True)
    mkldnn_enabled_op_types = _Option(set())


class ExecutionStrategy(_Strategy):
    """Options of `CompiledProgram`; kept for scripts (``fluid.ExecutionStrategy``)."""

    num_threads = _Option(0, _whole)
    num_iteration_per_drop_scope = _Option(100, _whole)
    num_iteration_per_run = _Option(1, _whole)
    use_thread_barrier = _Option(False)
    allow_op_delay = _Option(False)
    use_cuda = _Option(True)
    use_experimental_executor = _Option(True)
    _dry_run = _Option(False)
