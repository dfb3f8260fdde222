"""The fleet with parameter servers, over `DistributeTranspiler`.

    fleet.init(role_maker.PaddleCloudRoleMaker())
    ...
    strategy = StrategyFactory.create_sync_strategy()
    optimizer = fleet.distributed_optimizer(optimizer, strategy)
    optimizer.minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        fleet.init_worker()
        exe.run(fleet.startup_program)
        ... exe.run(fleet.main_program, ...) ...
        fleet.stop_worker()

Mirrors ``paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler``; programs
are the reference's, op for op. In those of the sync strategy gradients are cut when
they are sent and the barrier ends the trainer's batch only: servers keep the step.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from fluidx import io
from fluidx.communicator import Communicator
from fluidx.executor import CompiledProgram, Executor, hooks
from fluidx.incubate.fleet.base.fleet_base import DistributedOptimizer, Fleet, Mode
from fluidx.incubate.fleet.base.role_maker import RoleMakerBase
from fluidx.io.vars import save_values
from fluidx.ir import (
    Program,
    Variable,
    default_startup_program,
)
from fluidx.transpiler import (
    DistributedMode,
    DistributeTranspiler,
    DistributeTranspilerConfig,
    GeoSgdTranspiler,
)
from fluidx.transpiler.config import ServerRuntimeConfig

from .distributed_strategy import (
    AsyncStrategy,
    DistributedStrategy,
    GeoStrategy,
    HalfAsyncStrategy,
    StrategyFactory,
    SyncStrategy,
    TrainerRuntimeConfig,
)
from .held import load_on, pulled

__all__ = [
    "AsyncStrategy",
    "DistributedMode",
    "DistributedStrategy",
    "DistributedTranspiler",
    "DistributeTranspilerConfig",
    "GeoStrategy",
    "HalfAsyncStrategy",
    "ServerRuntimeConfig",
    "StrategyFactory",
    "SyncStrategy",
    "TrainerRuntimeConfig",
    "TranspilerOptimizer",
    "fleet",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"fleet.parameter_server.distribute_transpiler has no {name!r} in fluidx"
    )


_MODES: dict[int, type[DistributedStrategy]] = {
    DistributedMode.SYNC: SyncStrategy,
    DistributedMode.ASYNC: AsyncStrategy,
    DistributedMode.HALF_ASYNC: HalfAsyncStrategy,
}


class DistributedTranspiler(Fleet):
    """The fleet of this process; use the module's `fleet`."""

    def __init__(self) -> None:
        super().__init__(Mode.TRANSPILER)
        self._transpiler: Any = None
        self._communicator: Communicator | None = None
        self._clients: weakref.WeakSet[Any] = weakref.WeakSet()

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        super().init(role_maker)
        import fluidx.distributed  # noqa: F401  gives the executor its client

        make = hooks.rpc_factory
        if make is None or getattr(make, "__self__", None) is self:
            return
        self._make_client = make
        hooks.rpc_factory = self._client

    def _client(self) -> Any:
        """The RPC client of an executor; `stop_worker` says goodbye for all of them."""
        made = self._make_client()
        self._clients.add(made)
        return made

    # ------------------------------------------------ workers

    def init_worker(self) -> None:
        """Start the communicator, where the strategy has one."""
        program = self.main_program
        if program is None:
            raise RuntimeError("fleet.init_worker comes after minimize")
        strategy = self._strategy
        if strategy.mode == DistributedMode.SYNC or self._communicator is not None:
            return
        flags = strategy.get_trainer_runtime_config().get_communicator_flags()
        kwargs: dict[str, Any] = {}
        if strategy.mode == DistributedMode.GEO:
            kwargs["trainers"] = self.worker_num()
            config = strategy.get_program_config()
            kwargs["push_nums"] = config.geo_sgd_need_push_nums
        self._communicator = Communicator(program, strategy.mode, kwargs, flags)
        self._communicator.start()

    @property
    def _strategy(self) -> DistributedStrategy:
        return self._optimizer._strategy  # type: ignore[no-any-return]

    def stop_worker(self) -> None:
        """Send what still waits, and tell the servers that this worker is done."""
        if self._communicator is not None:
            communicator, self._communicator = self._communicator, None
            communicator.stop()
        for client in list(self._clients):
            client.close()
        self._exe.close()

    # ------------------------------------------------ servers

    def init_server(self, model_dir: str | None = None) -> None:
        """Make this server's variables; those of a saved model are loaded.

        model_dir: of `save_persistables`, of any number of servers or none; whole
        variables in separate files.
        """
        if self.startup_program is None:
            raise RuntimeError("fleet.init_server comes after minimize")
        self._exe.run(self.startup_program)
        if model_dir:
            endpoint = self.server_endpoints()[self.server_index()]
            made = self._transpiler
            plan = load_on(made._plan, made._facts, endpoint, model_dir, self._exe)
            self.main_program._parameters_on_pservers = plan

    def run_server(self) -> None:
        """Serve until all workers are done."""
        if self.main_program is None:
            raise RuntimeError("fleet.run_server comes after minimize")
        self._exe.run(self.main_program)

    # ------------------------------------------------ programs

    def distributed_optimizer(
        self, optimizer: Any, strategy: Any = None
    ) -> TranspilerOptimizer:
        """The optimizer whose `minimize` makes this process's programs.

        strategy: of `StrategyFactory`, or a `DistributeTranspilerConfig`; by default
        sync. TypeError for anything else.
        """
        made = self._optimizer = TranspilerOptimizer(optimizer, strategy, self)
        return made

    def _transpile(self, main: Program, startup: Program) -> None:
        strategy = self._strategy
        config = strategy.get_program_config()
        geo = strategy.mode == DistributedMode.GEO
        made = GeoSgdTranspiler(config) if geo else DistributeTranspiler(config)
        self._origin_program = main.clone()
        made.transpile(
            trainer_id=self.worker_index() if self.is_worker() else 0,
            program=main,
            pservers=self.server_endpoints(to_string=True),
            trainers=self.worker_num(),
            sync_mode=config.sync_mode,
            startup_program=startup,
        )
        self._transpiler = made
        if self.is_worker():
            self.main_program = made.get_trainer_program()
            self.startup_program = startup
        else:
            endpoint = self.server_endpoints()[self.server_index()]
            programs = made.get_pserver_programs(endpoint)
            self.main_program, self.startup_program = programs

    # ------------------------------------------------ saving

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Variable],
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> list[str]:
        """As ``fluid.io.save_inference_model``, of this fleet's program."""
        return io.save_inference_model(
            dirname,
            feeded_var_names,
            target_vars,
            executor,
            main_program or self.main_program,
            export_for_deployment=export_for_deployment,
        )

    def save_persistables(
        self, executor: Executor, dirname: str, main_program: Program | None = None
    ) -> None:
        """Save the whole model into a folder, a file per variable.

        What servers hold is asked of them: parameters, what optimizers keep, the
        schedule's step. main_program: by default this fleet's. executor: the one that
        trains. Some other program, or one that was not transpiled, is saved as
        ``fluid.io.save_persistables`` does.
        """
        program = main_program or self.main_program
        if program is None:
            raise RuntimeError("fleet.save_persistables comes after minimize")
        if isinstance(program, CompiledProgram):
            raise TypeError("save_persistables takes a Program, got a CompiledProgram")
        plan = program._parameters_on_pservers
        if plan is None or not self.is_worker():
            io.save_persistables(executor, dirname, program)
            return
        made = self._transpiler
        values = pulled(plan, made._facts, executor, self.worker_index())
        kept = [v.name for v in program.list_vars() if io.is_persistable(v)]
        block = made._facts.main.global_block()
        kept = [n for n in kept if block.has_var(n)]
        save_values(dirname, sorted({*kept, *values}), None, values)


def _strategy_of(given: Any) -> DistributedStrategy:
    if given is None:
        return StrategyFactory.create_sync_strategy()
    if isinstance(given, DistributedStrategy):
        return given
    if isinstance(given, DistributeTranspilerConfig):
        if given.geo_sgd_mode:
            return GeoStrategy(given.geo_sgd_need_push_nums)
        made = DistributedStrategy()
        made.mode = DistributedMode.SYNC
        if given.runtime_split_send_recv:
            made.mode = DistributedMode.ASYNC
            if given.half_async:
                made.mode = DistributedMode.HALF_ASYNC
        made._program_config = given
        return made
    raise TypeError(
        "distributed_optimizer takes a strategy of StrategyFactory or a "
        f"DistributeTranspilerConfig, got {given.__class__.__name__}"
    )


class TranspilerOptimizer(DistributedOptimizer):
    """See `DistributedTranspiler.distributed_optimizer`."""

    def __init__(
        self, optimizer: Any, strategy: Any = None, of: Fleet | None = None
    ) -> None:
        super().__init__(optimizer, _strategy_of(strategy))
        self._fleet: Any = of or fleet

    def minimize(
        self,
        loss: Any,
        scopes: Any = None,
        startup_program: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> Any:
        """Add backward and update ops, then make the programs of this role."""
        if isinstance(loss, (list, tuple)):
            if len(loss) != 1:
                raise ValueError(f"minimize takes one loss, got {len(loss)}")
            loss = loss[0]
        if isinstance(startup_program, (list, tuple)):
            startup_program = startup_program[0]
        startup = startup_program or default_startup_program()
        result = self._optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        self._fleet._transpile(loss.block.program, startup)
        return result


fleet = DistributedTranspiler()
