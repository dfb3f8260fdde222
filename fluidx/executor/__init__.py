"""Running programs: Block -> Plan -> run."""

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
]
