"""`DistributeTranspiler`: from one program to the programs of a cluster.

Facade over the passes of this package with the signatures of
``fluid.DistributeTranspiler``. It alone writes into the user's programs; its getters
may be called in any order, any number of times, with equal results.
"""

from __future__ import annotations

from typing import Any

from fluidx.ir import Program, default_main_program, default_startup_program

from .collective import GradAllReduce, LocalSGD, SingleProcessMultiThread
from .config import (
    COLLECTIVE_MODES,
    DistributedMode,
    DistributeTranspilerConfig,
    ServerRuntimeConfig,
    Setting,
    TranspileError,
    check_config,
    check_trainers,
    pserver_endpoints,
)
from .edits import adopt
from .facts import Facts
from .nccl import nccl2_startup
from .plan import ShardPlan, make_plan
from .ps_dispatcher import PSDispatcher, RoundRobin
from .pserver import pserver_main
from .slicing import VarBlock, same_or_split_var, slice_variable
from .startup import pserver_startup, rewrite_startup
from .trainer import rewrite_trainer
from .verify import verify

__all__ = [
    "DistributeTranspiler",
    "DistributeTranspilerConfig",
    "DistributedMode",
    "ServerRuntimeConfig",
    "TranspileError",
    "VarBlock",
    "same_or_split_var",
    "slice_variable",
]

_COLLECTIVES = {
    "grad_allreduce": GradAllReduce,
    "local_sgd": LocalSGD,
    "single_process_multi_thread": SingleProcessMultiThread,
}


class DistributeTranspiler:
    """Rewrites a trained program for a cluster (``fluid.DistributeTranspiler``).

    >>> t = DistributeTranspiler()  # doctest: +SKIP
    >>> t.transpile(0, pservers="a:1,b:1", trainers=2)  # doctest: +SKIP
    >>> exe.run(t.get_trainer_program())  # or get_pserver_program  # doctest: +SKIP
    """

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        if config is None:
            config = DistributeTranspilerConfig()
        if not isinstance(config, DistributeTranspilerConfig):
            raise TypeError(
                f"{self.__class__.__name__}: config must be a "
                f"DistributeTranspilerConfig, got {config!r:.60}"
            )
        self.config = config
        self.server_config = ServerRuntimeConfig()
        self.trainer_id = 0
        self._plan: ShardPlan | None = None
        self._facts: Facts | None = None
        self._main: Program | None = None
        self._done = False

    # ------------------------------------------------ transpile

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: Any = 1,
        sync_mode: bool = True,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """Rewrite main and startup program of this trainer, and plan the servers.

        trainers: how many, or in modes without servers their endpoints joined by
        commas, of which current_endpoint is this one's. TranspileError says in one
        line what is wrong with the arguments or the program.
        """
        check_config(self.config)
        if self._done:
            raise TranspileError("transpile was called twice on one transpiler")
        main = program if program is not None else default_main_program()
        startup = startup_program
        if startup is None:
            startup = default_startup_program()
        for what in (main, startup):
            if not isinstance(what, Program):
                raise TypeError(f"transpile: expected a Program, got {what!r:.60}")
            if what._is_distributed:
                raise TranspileError("this program was transpiled before")
        if self.config.mode == "pserver":
            self._for_servers(main, startup, trainer_id, pservers, trainers, sync_mode)
        else:
            self._without_servers(main, startup, trainer_id, trainers, current_endpoint)
        self.trainer_id = trainer_id
        self._main = main
        self._done = True
        for what in (main, startup):
            what._is_distributed = True
            what._is_chief = trainer_id == 0
        if self.config.verify:
            verify(self._programs(main, startup), complete=False)

    def _setting(self, pservers: str, trainers: int, sync: bool) -> Setting:
        config = self.config
        if sync and config.enable_dc_asgd:
            raise TranspileError("enable_dc_asgd needs sync_mode=False")
        return Setting(
            endpoints=pserver_endpoints(pservers),
            trainers=trainers,
            sync=bool(sync),
            runtime_split=config.runtime_split_send_recv and not sync,
            half_async=config.half_async,
            completely_not_async=config.completely_not_async,
            dc_asgd=config.enable_dc_asgd,
            slice_up=config.slice_var_up,
            min_block_size=config.min_block_size,
            dispatcher=config.split_method or self._default_dispatcher(),
        )

    @staticmethod
    def _default_dispatcher() -> type[PSDispatcher]:
        return RoundRobin

    def _for_servers(
        self,
        main: Program,
        startup: Program,
        trainer_id: int,
        pservers: str,
        trainers: int,
        sync: bool,
    ) -> None:
        check_trainers(trainer_id, trainers)
        setting = self._setting(pservers, trainers, sync)
        # the passes read these; what the user holds is written at the end
        facts = Facts.of(main.clone(), startup.clone(), setting.suffixed)
        plan = make_plan(facts, setting)
        self._facts, self._plan = facts, plan
        if self.config.print_log:
            print(plan.to_text())
        self._rewrite(main, startup, trainer_id)
        main._endpoints = list(setting.endpoints)
        main._parameters_on_pservers = plan

    def _rewrite(self, main: Program, startup: Program, trainer_id: int) -> None:
        """Make these the programs of a trainer."""
        plan, facts = self._planned("transpile")
        rewrite_trainer(main, plan, trainer_id)
        rewrite_startup(startup, plan, trainer_id, facts)

    def _without_servers(
        self,
        main: Program,
        startup: Program,
        trainer_id: int,
        trainers: Any,
        current_endpoint: str,
    ) -> None:
        config = self.config
        if not isinstance(trainers, str):
            raise TranspileError(
                f"mode {config.mode} needs trainers as endpoints joined by commas, "
                f"got {trainers!r}"
            )
        workers = pserver_endpoints(trainers)
        if config.mode == "nccl2":
            made = nccl2_startup(
                startup, trainer_id=trainer_id, workers=workers, config=config
            )
            adopt(startup, made)
            main._trainers_endpoints = list(workers)
            main._nccl_comm_num = config.nccl_comm_num
            return
        if config.collective_mode not in _COLLECTIVES:
            raise TranspileError(
                f"config.collective_mode must be one of {COLLECTIVE_MODES}, got "
                f"{config.collective_mode!r}"
            )
        if config.collective_mode == "single_process_multi_thread":
            transpiler: Any = SingleProcessMultiThread()
        else:
            transpiler = _COLLECTIVES[config.collective_mode](config.nccl_comm_num)
        transpiler.transpile(
            startup_program=startup,
            main_program=main,
            rank=trainer_id,
            endpoints=list(workers),
            current_endpoint=current_endpoint,
            wait_port=config.wait_port,
        )

    def _programs(
        self, main: Program, startup: Program
    ) -> dict[str, dict[str, Program]]:
        """This trainer's programs and those of all servers."""
        found = {f"trainer-{self.trainer_id}": {"main": main, "startup": startup}}
        for i, endpoint in enumerate(
            self._plan.setting.endpoints if self._plan else ()
        ):
            made = self.get_pserver_programs(endpoint)
            found[f"pserver-{i}"] = dict(zip(("main", "startup"), made))
        return found

    # ------------------------------------------------ what was made

    def _planned(self, what: str) -> tuple[ShardPlan, Facts]:
        if self._plan is None or self._facts is None:
            raise TranspileError(
                f"{what}: call transpile() first"
                if not self._done
                else f"{what}: mode {self.config.mode} has no parameter servers"
            )
        return self._plan, self._facts

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The trainer's main program: the one given to `transpile`, rewritten.

        wait_port is accepted and has no effect: a rewrite waits for nobody; the
        client does, with a bound, when the program runs.
        """
        if self._main is None:
            raise TranspileError("get_trainer_program: call transpile() first")
        return self._main

    def get_pserver_program(self, endpoint: str) -> Program:
        """The main program of one server; each call makes an equal one."""
        plan, facts = self._planned("get_pserver_program")
        plan.setting.index(endpoint)
        return self._server(plan, facts, endpoint)

    def _server(self, plan: ShardPlan, facts: Facts, endpoint: str) -> Program:
        return pserver_main(
            facts.main,
            plan=plan,
            endpoint=endpoint,
            facts=facts,
            runtime=self.server_config,
        )

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """(main, startup) of one server."""
        main = self.get_pserver_program(endpoint)
        return main, self.get_startup_program(endpoint, main)

    def get_startup_program(
        self,
        endpoint: str,
        pserver_program: Program | None = None,
        startup_program: Program | None = None,
    ) -> Program:
        """The startup program of one server.

        pserver_program: its main program, made anew if not given. startup_program:
        another local startup program than the one that `transpile` saw.
        """
        plan, facts = self._planned("get_startup_program")
        plan.setting.index(endpoint)
        main = pserver_program
        if main is None:
            main = self._server(plan, facts, endpoint)
        if startup_program is not None and not startup_program._is_distributed:
            facts = Facts.of(facts.main, startup_program, plan.setting.suffixed)
        return pserver_startup(
            facts.startup, plan=plan, endpoint=endpoint, facts=facts, main=main
        )
