"""CompiledProgram and the strategies that scripts set."""

from __future__ import annotations

import enum
from typing import Any

from fluidx.ir import Program

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]


class BuildStrategy:
    """Options of `CompiledProgram`; kept for scripts, plans need none of them.

    Any attribute of the reference's ``fluid.BuildStrategy`` can be set.
    """

    class ReduceStrategy(enum.IntEnum):
        AllReduce = 0
        Reduce = 1

    class GradientScaleStrategy(enum.IntEnum):
        CoeffNumDevice = 0
        One = 1
        Customized = 2

    def __init__(self) -> None:
        self.reduce_strategy = self.ReduceStrategy.AllReduce
        self.gradient_scale_strategy = self.GradientScaleStrategy.CoeffNumDevice
        self.debug_graphviz_path = ""
        self.enable_sequential_execution = False
        self.remove_unnecessary_lock = True
        self.fuse_elewise_add_act_ops = False
        self.fuse_bn_act_ops = False
        self.fuse_relu_depthwise_conv = False
        self.fuse_broadcast_ops = False
        self.fuse_all_optimizer_ops = False
        self.fuse_all_reduce_ops = False
        self.sync_batch_norm = False
        self.memory_optimize: bool | None = None
        self.enable_inplace = False
        self.num_trainers = 1
        self.trainer_id = 0
        self.trainers_endpoints: list[str] = []
        self.cache_runtime_context = False


class ExecutionStrategy:
    """Options of `CompiledProgram`; kept for scripts (``fluid.ExecutionStrategy``)."""

    def __init__(self) -> None:
        self.num_threads = 1
        self.num_iteration_per_drop_scope = 1
        self.num_iteration_per_run = 1
        self.use_thread_barrier = False
        self.allow_op_delay = False


class CompiledProgram:
    """A program with run options (``fluid.CompiledProgram``).

    Every program is compiled by the executor, so this wraps one. Data parallelism
    within a process runs on the executor's one place.
    """

    def __init__(
        self,
        program_or_graph: Program,
        build_strategy: BuildStrategy | None = None,
    ) -> None:
        if not isinstance(program_or_graph, Program):
            raise TypeError(
                f"CompiledProgram takes a Program, got "
                f"{program_or_graph.__class__.__name__}"
            )
        self.program = program_or_graph
        self.build_strategy = build_strategy or BuildStrategy()
        self.exec_strategy = ExecutionStrategy()
        self._is_data_parallel = False

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Any = None,
    ) -> CompiledProgram:
        """Ask for data parallelism; a list of more than one place is refused."""
        if isinstance(places, (list, tuple)) and len(places) > 1:
            raise ValueError(
                f"with_data_parallel: {len(places)} places were given; within a "
                "process fluidx runs on one. Use several processes (fluidx launch)"
            )
        self._is_data_parallel = True
        self.build_strategy = build_strategy or self.build_strategy
        self.exec_strategy = exec_strategy or self.exec_strategy
        return self
