"""Running programs: Block -> Plan -> run."""

from fluidx.tensor import global_scope, scope_guard

from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from .dataset_run import FetchHandler
from .executor import Executor
from .parallel_executor import ParallelExecutor
from .plan import Plan

__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "FetchHandler",
    "ParallelExecutor",
    "Plan",
    "global_scope",
    "scope_guard",
]
