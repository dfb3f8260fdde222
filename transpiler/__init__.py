"""From one Program to the programs of a cluster.

Every pass is ``Program -> Program``: its input is left alone, and one sentence of its
docstring says what is true afterwards. One frozen `ShardPlan`, computed from program
and options alone, feeds the passes of all roles. `DistributeTranspiler` and its kin
are facades with the reference's signatures; only they write into the user's programs.
"""

from collections.abc import Callable
from typing import Any

from . import collective, distribute_transpiler, geo_sgd_transpiler, ps_dispatcher
from .config import (
    DistributedMode,
    DistributeTranspilerConfig,
    ServerRuntimeConfig,
    Setting,
    TranspileError,
)
from .cost import Cost, Network, Workload, cost, scaling
from .distribute_transpiler import DistributeTranspiler
from .facts import Facts
from .geo_sgd_transpiler import GeoSgdTranspiler
from .memory_optimization_transpiler import memory_optimize, release_memory
from .plan import Sharded, ShardPlan, Slice, make_plan
from .ps_dispatcher import HashName, PSDispatcher, RoundRobin
from .roles import Distributed, config_for, distribute
from .verify import VerificationError, verify

__all__ = [
    "Cost",
    "DistributeTranspiler",
    "DistributeTranspilerConfig",
    "Distributed",
    "DistributedMode",
    "Facts",
    "GeoSgdTranspiler",
    "HashName",
    "Network",
    "PSDispatcher",
    "RoundRobin",
    "ServerRuntimeConfig",
    "Setting",
    "ShardPlan",
    "Sharded",
    "Slice",
    "TranspileError",
    "VerificationError",
    "Workload",
    "collective",
    "config_for",
    "cost",
    "distribute",
    "distribute_transpiler",
    "geo_sgd_transpiler",
    "make_plan",
    "memory_optimize",
    "ps_dispatcher",
    "release_memory",
    "scaling",
    "verify",
]

# Names that belong here but need to run programs: `fluidx.distributed`, which can,
# puts in what gives them.
_LATER: dict[str, Callable[[], Any]] = {}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return _LATER[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
