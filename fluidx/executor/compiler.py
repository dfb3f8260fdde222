"""CompiledProgram: a program with run options."""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

from fluidx.ir import OpRole, Program
from fluidx.ir.errors import EnforceNotMet
from fluidx.tensor import Scope
from fluidx.transpiler.data_parallel import data_parallel_main, equal_start

from .strategies import BuildStrategy, ExecutionStrategy

if TYPE_CHECKING:
    from .executor import Executor

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]


_warned: weakref.WeakSet[Program] = weakref.WeakSet()


def warn_of_lone_training(program: Program) -> None:
    """Once per program: mode nccl2 averages gradients in a `CompiledProgram` only."""
    if program in _warned:
        return
    _warned.add(program)
    if any(op.role & OpRole.Backward for op in program.global_block().ops):
        warnings.warn(
            f"this program was transpiled for {len(program._trainers_endpoints)} "
            "trainers in mode nccl2, but runs as it is: gradients are not averaged. "
            "Use fluid.CompiledProgram(program).with_data_parallel(loss_name=...)",
            stacklevel=4,
        )


class CompiledProgram:
    """A program with run options (``fluid.CompiledProgram``).

    Every program is compiled by the executor, so this wraps one. Data parallelism
    within a process runs on the executor's one place. With `with_data_parallel` and
    several trainers (``build_strategy.num_trainers``, or a program transpiled in mode
    nccl2) gradients are averaged over these, and the first run in a scope gives all
    trainers the persistable values of trainer 0.
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
        self._made: tuple[object, Program] | None = None
        self._equal: weakref.WeakSet[Scope] = weakref.WeakSet()

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Any = None,
    ) -> CompiledProgram:
        """Ask for data parallelism, once; a list of more than one place is refused."""
        if self._is_data_parallel:
            raise EnforceNotMet("with_data_parallel: it was called before on this one")
        if loss_name is not None and not isinstance(loss_name, str):
            raise TypeError(
                f"with_data_parallel: loss_name must be a string, got {loss_name!r:.60}"
            )
        for arg, given, kind in (
            ("build_strategy", build_strategy, BuildStrategy),
            ("exec_strategy", exec_strategy, ExecutionStrategy),
            ("share_vars_from", share_vars_from, CompiledProgram),
        ):
            if given is not None and not isinstance(given, kind):
                raise TypeError(
                    f"with_data_parallel: {arg} must be a {kind.__name__}, got "
                    f"{given!r:.60}"
                )
        if isinstance(places, (list, tuple)) and len(places) > 1:
            raise ValueError(
                f"with_data_parallel: {len(places)} places were given; within a "
                "process fluidx runs on one. Use several processes (fluidx launch)"
            )
        self._is_data_parallel = True
        self.build_strategy = build_strategy or self.build_strategy
        self.exec_strategy = exec_strategy or self.exec_strategy
        return self

    # ------------------------------------------------ several trainers

    def _trainers(self) -> tuple[list[str], int]:
        """Endpoints of the trainers, and the number of rings to use."""
        strategy, program = self.build_strategy, self.program
        found = list(program._trainers_endpoints or strategy.trainers_endpoints)
        number = max(len(found), strategy.num_trainers)
        if not found:
            found = [f"trainer-{i}" for i in range(number)]
        if len(found) != number:
            raise ValueError(
                f"build_strategy.num_trainers is {number}, but there are {len(found)} "
                f"trainers: {found}"
            )
        return found, max(program._nccl_comm_num, strategy.nccl_comm_num)

    def _ready(self, executor: Executor, scope: Scope) -> Program:
        """The program to run; the first time in a scope, the trainers meet here."""
        if not self._is_data_parallel:
            return self.program
        trainers, rings = self._trainers()
        if len(trainers) < 2:
            return self.program
        scale = self.build_strategy.gradient_scale_strategy
        key = (self.program._version, len(trainers), rings, scale)
        if self._made is None or self._made[0] != key:
            mean = scale == BuildStrategy.GradientScaleStrategy.CoeffNumDevice
            made = data_parallel_main(
                self.program, nranks=len(trainers), nrings=rings, mean=mean
            )
            self._made = key, made
        if scope not in self._equal:
            start = equal_start(
                self.program,
                trainers=trainers,
                trainer_id=self.build_strategy.trainer_id,
                nrings=rings,
                opened=executor.has_rings(rings),
            )
            executor.run(start, scope=scope)
            self._equal.add(scope)
        return self._made[1]
