"""Running programs: Block -> Plan -> run."""

from fluidx.tensor import global_scope, scope_guard

from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from .dataset_run import FetchHandler
from .executor import Executor
from .fetched import as_numpy, has_feed_operators, has_fetch_operators
from .fetched import fetch_var as _fetch_var
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
    "_fetch_var",
    "as_numpy",
    "global_scope",
    "has_feed_operators",
    "has_fetch_operators",
    "scope_guard",
]
