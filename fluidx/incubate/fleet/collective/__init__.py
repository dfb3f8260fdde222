"""The fleet without servers: gradients are averaged among the workers.

    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    optimizer = fleet.distributed_optimizer(optimizer, strategy=DistributedStrategy())
    optimizer.minimize(loss)
    exe.run(fleet.startup_program)
    ... exe.run(fleet.main_program, ...) ...

Mirrors ``paddle.fluid.incubate.fleet.collective``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx import io
from fluidx.distributed.fs_wrapper import BDFS, LocalFS
from fluidx.executor import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    Executor,
)
from fluidx.incubate.fleet.base.fleet_base import DistributedOptimizer, Fleet, Mode
from fluidx.ir import Program, Variable, default_startup_program
from fluidx.transpiler import DistributeTranspiler, DistributeTranspilerConfig

from .checkpoints import Checkpoints, TrainStatus

__all__ = [
    "BDFS",
    "Collective",
    "CollectiveOpBasedOptimizer",
    "CollectiveOptimizer",
    "DistFCConfig",
    "DistributedStrategy",
    "LambConfig",
    "LocalFS",
    "TrainStatus",
    "fleet",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"fleet.collective has no {name!r} in fluidx")


class LambConfig:
    """Without options."""


class DistFCConfig:
    """Without options; see `DistributedStrategy.use_dist_fc`."""


class DistributedStrategy(BuildStrategy):
    """How a collective fleet trains.

    mode: "nccl2" (averaged by the compiled program) or "collective" (by ops in it,
    see collective_mode: "grad_allreduce" or "local_sgd"; use_local_sgd says the same).
    forward_recompute, recompute_checkpoints: as `RecomputeOptimizer`. use_amp,
    amp_loss_scaling: as ``mixed_precision.decorate``. nccl_comm_num,
    use_hierarchical_allreduce, hierarchical_allreduce_inter_nranks: rings.
    use_dist_fc is not part of fluidx.
    """

    def __init__(self) -> None:
        super().__init__()
        self.mode = "nccl2"
        self.collective_mode: str | None = None
        self.use_local_sgd = False
        self.use_dist_fc = False
        self.dist_fc_config: DistFCConfig | None = None
        self.forward_recompute = False
        self.recompute_checkpoints: list[Any] = []
        self.use_amp = False
        self.amp_loss_scaling = 32768
        self.exec_strategy = ExecutionStrategy()


class Collective(Checkpoints, Fleet):
    """The fleet of this process; use the module's `fleet`."""

    def __init__(self) -> None:
        super().__init__(Mode.COLLECTIVE)
        self._transpiled_program: Program | None = None

    def init_server(self, model_dir: str | None = None) -> None:
        """Nothing to do: there are no servers."""

    def run_server(self) -> None:
        """Nothing to do: there are no servers."""

    def init_worker(self) -> None:
        """Nothing to do: workers meet when programs run."""

    def run_worker(self, main_programs: Any = None, scopes: Any = None) -> None:
        """Nothing to do: the script runs its programs."""

    def stop_worker(self) -> None:
        """Nobody has to be told."""

    def distributed_optimizer(
        self, optimizer: Any, strategy: Any = None
    ) -> CollectiveOptimizer:
        """The optimizer whose `minimize` makes `main_program`.

        strategy: a `DistributedStrategy`.
        """
        made = self._optimizer = CollectiveOptimizer(optimizer, strategy, self)
        return made

    def _whole(self, program: Any) -> Program:
        program = program or self._origin_program
        if isinstance(program, CompiledProgram):
            program = program.program
        return program  # type: ignore[no-any-return]

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str] | None = None,
        target_vars: Sequence[Variable] | None = None,
        main_program: Any = None,
        export_for_deployment: bool = True,
    ) -> list[str]:
        """As ``fluid.io.save_inference_model``, of this fleet's program."""
        return io.save_inference_model(
            dirname,
            list(feeded_var_names or ()),
            list(target_vars or ()),
            executor,
            self._whole(main_program),
            export_for_deployment=export_for_deployment,
        )

    def save_persistables(
        self,
        executor: Executor,
        dirname: str,
        main_program: Any = None,
        filename: str | None = None,
    ) -> None:
        """As ``fluid.io.save_persistables``, of this fleet's program."""
        io.save_persistables(executor, dirname, self._whole(main_program), filename)


class CollectiveOptimizer(DistributedOptimizer):
    """See `Collective.distributed_optimizer`."""

    def __init__(
        self, optimizer: Any, strategy: Any = None, of: Fleet | None = None
    ) -> None:
        strategy = DistributedStrategy() if strategy is None else strategy
        if not isinstance(strategy, DistributedStrategy):
            kind = strategy.__class__.__name__
            raise TypeError(f"collective fleet takes a DistributedStrategy, got {kind}")
        super().__init__(optimizer, strategy)
        self._fleet: Any = of or fleet

    def raiseOptimizeError(self, strategy_name: str, optimize_name: str) -> None:
        """ValueError: this strategy does not go with this optimizer."""
        raise ValueError(f"{strategy_name} cannot be used with {optimize_name}")

    def minimize(  # type: ignore[override]
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> Any:
        """Add backward and update ops, and make this worker's programs."""
        strategy, fleet = self._strategy, self._fleet
        if strategy.use_dist_fc:
            if strategy.dist_fc_config is None:
                raise ValueError("use_dist_fc needs strategy.dist_fc_config")
            raise NotImplementedError("use_dist_fc is not part of fluidx")
        optimizer = self._optimizer
        if strategy.forward_recompute:
            if not strategy.recompute_checkpoints:
                raise ValueError("forward_recompute needs recompute_checkpoints")
            from fluidx.optimizer import RecomputeOptimizer

            optimizer = RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(strategy.recompute_checkpoints)
        if strategy.use_amp:
            optimizer = _amp(optimizer, strategy.amp_loss_scaling)
        startup = startup_program or default_startup_program()
        main = loss.block.program
        result = optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        fleet._origin_program = main
        fleet._transpiled_program = main
        fleet.startup_program = startup
        fleet.main_program = self._spread(main, startup, loss)
        return result

    def _spread(self, main: Program, startup: Program, loss: Variable) -> Any:
        strategy, fleet = self._strategy, self._fleet
        endpoints, rank = fleet.worker_endpoints(), fleet.worker_index()
        mode = "local_sgd" if strategy.use_local_sgd else strategy.collective_mode
        if len(endpoints) > 1:
            config = DistributeTranspilerConfig()
            config.mode = "collective" if strategy.use_local_sgd else strategy.mode
            config.collective_mode = mode
            config.nccl_comm_num = strategy.nccl_comm_num
            config.use_hierarchical_allreduce = strategy.use_hierarchical_allreduce
            config.hierarchical_allreduce_inter_nranks = (
                strategy.hierarchical_allreduce_inter_nranks
            )
            DistributeTranspiler(config).transpile(
                rank,
                program=main,
                startup_program=startup,
                trainers=",".join(endpoints),
                current_endpoint=endpoints[rank],
            )
        if len(endpoints) == 1 or strategy.mode == "collective" or mode == "local_sgd":
            return main
        strategy.num_trainers = len(endpoints)
        strategy.trainer_id = rank
        strategy.trainers_endpoints = list(endpoints)
        return CompiledProgram(main).with_data_parallel(
            loss_name=loss.name,
            build_strategy=strategy,
            exec_strategy=strategy.exec_strategy,
        )


class CollectiveOpBasedOptimizer(DistributedOptimizer):
    """An optimizer's backward and apply_gradients, with a strategy beside them.

    TypeError: strategy is no `DistributedStrategy`.
    """

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        if not isinstance(strategy, DistributedStrategy):
            kind = strategy.__class__.__name__
            raise TypeError(f"strategy must be a DistributedStrategy, got {kind}")
        super().__init__(optimizer, strategy)


def _amp(optimizer: Any, scaling: float) -> Any:
    from importlib import import_module

    try:
        made = import_module("fluidx.contrib.mixed_precision")
    except ModuleNotFoundError:
        raise NotImplementedError(
            "use_amp needs fluidx.contrib.mixed_precision"
        ) from None
    return made.decorate(optimizer, init_loss_scaling=scaling)


fleet = Collective()
