"""ParallelExecutor: the older way to say `CompiledProgram.with_data_parallel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Program, Variable, default_main_program
from fluidx.tensor import Scope, global_scope
from fluidx.tensor.places import CPUPlace, CUDAPlace

from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from .executor import Executor

__all__ = ["ParallelExecutor"]


class ParallelExecutor:
    """Runs one program, over several trainers if asked to (``fluid.ParallelExecutor``).

    use_cuda: run on the first device. num_trainers, trainer_id: gradients are averaged
    over that many processes, of which this is one. loss_name and share_vars_from are
    accepted; the loss is known by its role, and scopes share variables anyway.
    """

    def __init__(
        self,
        use_cuda: bool,
        loss_name: str | None = None,
        main_program: Program | None = None,
        share_vars_from: ParallelExecutor | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        build_strategy: BuildStrategy | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:
        strategy = build_strategy or BuildStrategy()
        if num_trainers > 1:
            strategy.num_trainers, strategy.trainer_id = num_trainers, trainer_id
        program = main_program if main_program is not None else default_main_program()
        self._program = CompiledProgram(program).with_data_parallel(
            loss_name, strategy, exec_strategy
        )
        self._scope = scope or global_scope()
        self._executor = Executor(CUDAPlace(0) if use_cuda else CPUPlace())

    @property
    def device_count(self) -> int:
        """Devices of this process: one."""
        return 1

    def run(
        self,
        fetch_list: Sequence[Variable | str],
        feed: Any = None,
        feed_dict: Any = None,
        return_numpy: bool = True,
    ) -> Any:
        """Run the program once, as `Executor.run`; feed_dict is feed's older name."""
        return self._executor.run(
            self._program,
            feed=feed if feed is not None else feed_dict,
            fetch_list=fetch_list,
            scope=self._scope,
            return_numpy=return_numpy,
        )

    def drop_local_exe_scopes(self) -> None:
        """Nothing is kept between runs: accepted, does nothing."""
