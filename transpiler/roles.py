"""The programs of every role of a cluster, from one program: for looking and checking.

    made = distribute(main, startup, mode="geo", servers=2, trainers=2)
    made.programs["pserver-0"]["main"]

The programs given stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fluidx.ir import Program, program_guard

from .config import DistributeTranspilerConfig, TranspileError, pserver_endpoints
from .distribute_transpiler import DistributeTranspiler
from .geo_sgd_transpiler import GeoSgdTranspiler
from .plan import ShardPlan

__all__ = ["MODES", "Distributed", "config_for", "distribute"]

#: name of a mode -> (what it is, options of the config; sync_mode decides `transpile`)
MODES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "pserver": ("servers update once per step, when all trainers have sent", {}),
    "async": ("servers update as each gradient comes", {"sync_mode": False}),
    "async-split": (
        "as async; gradients are cut when they are sent",
        {"sync_mode": False, "runtime_split_send_recv": True},
    ),
    "half-async": (
        "as async-split, with a barrier behind the sends",
        {"sync_mode": False, "runtime_split_send_recv": True, "half_async": True},
    ),
    "completely-not-async": (
        "cut at run time, but servers update once per step",
        {
            "sync_mode": False,
            "runtime_split_send_recv": True,
            "completely_not_async": True,
        },
    ),
    "dc-asgd": (
        "async with delay compensation",
        {"sync_mode": False, "enable_dc_asgd": True},
    ),
    "geo": (
        "trainers update on their own and exchange differences now and then",
        {"sync_mode": False, "geo_sgd_mode": True},
    ),
    "nccl2": ("no servers: the startup program agrees on NCCL ids", {"mode": "nccl2"}),
    "grad-allreduce": (
        "no servers: gradients are summed over a ring",
        {"mode": "collective", "collective_mode": "grad_allreduce"},
    ),
    "local-sgd": (
        "no servers: workers' steps are averaged over a ring",
        {"mode": "collective", "collective_mode": "local_sgd"},
    ),
    "single-process-multi-thread": (
        "no servers: one communicator over this process's devices",
        {"mode": "collective", "collective_mode": "single_process_multi_thread"},
    ),
}
FIRST_SERVER, FIRST_WORKER = 6174, 7164
_ALONE = "single_process_multi_thread"


@dataclass(frozen=True)
class Distributed:
    """What `distribute` made.

    programs: role -> {"main", "startup"}, trainers first. main, startup: copies of the
    local ones. plan: which server holds which rows; None without servers.
    """

    programs: Mapping[str, Mapping[str, Program]]
    main: Program
    startup: Program
    config: DistributeTranspilerConfig
    sync_mode: bool
    plan: ShardPlan | None = None

    @property
    def trainers(self) -> list[str]:
        return [r for r in self.programs if r.startswith("trainer")]

    @property
    def servers(self) -> list[str]:
        return [r for r in self.programs if r.startswith("pserver")]


def config_for(mode: str, **options: Any) -> DistributeTranspilerConfig:
    """The config of a named mode (a key of `MODES`), with further options set.

    >>> config_for("half-async", slice_var_up=False).half_async
    True
    """
    if mode not in MODES:
        raise TranspileError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    config = DistributeTranspilerConfig()
    config.verify = False  # who asks for all roles verifies them all at once
    for name, value in {**MODES[mode][1], **options}.items():
        if not hasattr(config, name):
            raise TranspileError(f"DistributeTranspilerConfig has no option {name!r}")
        setattr(config, name, value)
    return config


def endpoints(count: int, first: int) -> str:
    """``count`` endpoints of this machine, joined by commas."""
    return ",".join(f"127.0.0.1:{first + i}" for i in range(count))


def distribute(
    main: Program,
    startup: Program,
    config: DistributeTranspilerConfig | str = "pserver",
    *,
    trainers: int = 2,
    pservers: str | int = 2,
    sync_mode: bool | None = None,
) -> Distributed:
    """The programs of every role; `main` and `startup` are left alone.

    config: a config, or the name of a mode. pservers: endpoints joined by commas, or
    how many. sync_mode: by default what the config says. TranspileError as of
    `DistributeTranspiler.transpile`.
    """
    if isinstance(config, str):
        config = config_for(config)
    sync = config.sync_mode if sync_mode is None else sync_mode
    if isinstance(pservers, int):
        pservers = endpoints(pservers, FIRST_SERVER)
    made: dict[str, dict[str, Program]] = {}
    plan = None
    serving = config.mode == "pserver"
    if config.mode == "collective" and config.collective_mode == _ALONE:
        trainers = 1  # its ranks are this process's devices
    workers = endpoints(trainers, FIRST_WORKER)
    for rank in range(trainers):
        pair = main.clone(), startup.clone()
        transpiler = _transpiler(config)
        with program_guard(*pair):
            transpiler.transpile(
                rank,
                pservers=pservers,
                trainers=trainers if serving else workers,
                sync_mode=sync,
                current_endpoint=workers.split(",")[rank],
            )
        made[f"trainer-{rank}"] = {"main": pair[0], "startup": pair[1]}
    if serving:
        plan = transpiler._plan
        for i, endpoint in enumerate(pserver_endpoints(pservers)):
            both = transpiler.get_pserver_programs(endpoint)
            made[f"pserver-{i}"] = dict(zip(("main", "startup"), both))
    return Distributed(made, main.clone(), startup.clone(), config, sync, plan)


def _transpiler(config: DistributeTranspilerConfig) -> DistributeTranspiler:
    return (GeoSgdTranspiler if config.geo_sgd_mode else DistributeTranspiler)(config)
