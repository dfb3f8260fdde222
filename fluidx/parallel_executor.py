"""``fluid.parallel_executor``."""

from fluidx.executor import BuildStrategy, ExecutionStrategy, ParallelExecutor

__all__ = ["BuildStrategy", "ExecutionStrategy", "ParallelExecutor"]
