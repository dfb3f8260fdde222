"""Strategies of training with servers: sync, async, half-async, geo.

Mirrors ``fleet.parameter_server.distribute_transpiler.distributed_strategy``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from fluidx.executor import BuildStrategy, ExecutionStrategy
from fluidx.transpiler import DistributedMode, DistributeTranspilerConfig
from fluidx.transpiler.config import ServerRuntimeConfig

__all__ = [
    "AsyncStrategy",
    "DistributedStrategy",
    "GeoStrategy",
    "HalfAsyncStrategy",
    "StrategyFactory",
    "SyncStrategy",
    "TrainerRuntimeConfig",
]

_COMMUNICATOR = {
    "communicator_max_merge_var_num": "20",
    "communicator_send_queue_size": "20",
    "communicator_independent_recv_thread": "1",
    "communicator_min_send_grad_num_before_recv": "20",
    "communicator_thread_pool_size": "5",
    "communicator_send_wait_times": "5",
    "communicator_is_sgd_optimizer": "1",
}


class TrainerRuntimeConfig:
    """What the communicator of a trainer is told (``communicator_*``).

    The environment's ``FLAGS_communicator_*`` count first, and without them CPU_NUM
    gives the queue sizes.
    """

    def __init__(self) -> None:
        self.mode: int | None = None
        threads = os.environ.get("CPU_NUM", "1")
        sized = {k: threads if v == "20" else v for k, v in _COMMUNICATOR.items()}
        sized.update(rpc_deadline="180000", rpc_retry_times="3")
        self.runtime_configs = {
            k: os.environ.get(f"FLAGS_{k}", v) for k, v in sized.items()
        }

    def get_communicator_flags(self) -> dict[str, str]:
        """The settings for `Communicator`."""
        return {
            k: v
            for k, v in self.runtime_configs.items()
            if k.startswith("communicator_")
        }

    def display(self, configs: Mapping[str, Any]) -> str:
        """One setting a line."""
        return "\n".join(f"{k:<45}{v}" for k, v in configs.items())

    def __repr__(self) -> str:
        return self.display(self.get_communicator_flags())


def _updated(current: Any, config: Any, kind: type, what: str) -> Any:
    """An object of `kind` as given, or the current one changed by a dict."""
    if isinstance(config, kind):
        return config
    if not isinstance(config, Mapping):
        raise TypeError(
            f"{what} takes a dict or a {kind.__name__}, got {config.__class__.__name__}"
        )
    for name, value in config.items():
        if not hasattr(current, name):
            raise ValueError(f"{what}: {kind.__name__} has no {name!r}")
        setattr(current, name, value)
    return current


class DistributedStrategy:
    """Options of the transpiler, of servers, of trainers, and of the executor."""

    mode: int = DistributedMode.SYNC

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._build_strategy = BuildStrategy()
        self._execute_strategy = ExecutionStrategy()
        self._debug_opt: dict[str, Any] = {}
        self.check_program_config()
        self.check_trainer_runtime_config()

    def get_program_config(self) -> DistributeTranspilerConfig:
        return self._program_config

    def set_program_config(self, config: Any) -> None:
        self._program_config = _updated(
            self._program_config,
            config,
            DistributeTranspilerConfig,
            "set_program_config",
        )
        self.check_program_config()

    def check_program_config(self) -> None:
        """Put what the strategy itself decides."""
        config = self._program_config
        config.runtime_split_send_recv = False
        config.sync_mode = False
        config.runtime_split_send_recv = True

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config: Any) -> None:
        if isinstance(config, Mapping):
            known = self._trainer_runtime_config.runtime_configs
            unknown = sorted(set(config) - set(known))
            if unknown:
                raise ValueError(f"set_trainer_runtime_config: there is no {unknown}")
            known.update({k: str(v) for k, v in config.items()})
        else:
            self._trainer_runtime_config = _updated(
                None, config, TrainerRuntimeConfig, "set_trainer_runtime_config"
            )
        self.check_trainer_runtime_config()

    def check_trainer_runtime_config(self) -> None:
        self._trainer_runtime_config.mode = self.mode

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        return self._server_runtime_config

    def set_server_runtime_config(self, config: Any) -> None:
        self._server_runtime_config = _updated(
            self._server_runtime_config,
            config,
            ServerRuntimeConfig,
            "set_server_runtime_config",
        )

    def check_server_runtime_config(self) -> None:
        """Nothing is decided by the strategy."""

    def get_execute_strategy(self) -> ExecutionStrategy:
        return self._execute_strategy

    def set_execute_strategy(self, config: Any) -> None:
        self._execute_strategy = _updated(
            self._execute_strategy, config, ExecutionStrategy, "set_execute_strategy"
        )

    def check_execute_strategy(self) -> None:
        """Nothing is decided by the strategy."""

    def get_build_strategy(self) -> BuildStrategy:
        return self._build_strategy

    def set_build_strategy(self, config: Any) -> None:
        self._build_strategy = _updated(
            self._build_strategy, config, BuildStrategy, "set_build_strategy"
        )

    def check_build_strategy(self) -> None:
        """Nothing is decided by the strategy."""

    def get_debug_opt(self) -> dict[str, Any]:
        return self._debug_opt

    def set_debug_opt(self, opt_info: Mapping[str, Any]) -> None:
        self._debug_opt = dict(opt_info)


class SyncStrategy(DistributedStrategy):
    """All trainers' gradients are merged once per step."""

    mode = DistributedMode.SYNC

    def check_program_config(self) -> None:
        super().check_program_config()
        self._program_config.half_async = True
        self._program_config.completely_not_async = True


class AsyncStrategy(DistributedStrategy):
    """Gradients travel beside the training."""

    mode = DistributedMode.ASYNC


class HalfAsyncStrategy(DistributedStrategy):
    """A trainer's batch ends with an exchange; trainers do not wait for each other."""

    mode = DistributedMode.HALF_ASYNC

    def check_program_config(self) -> None:
        super().check_program_config()
        self._program_config.half_async = True


class GeoStrategy(DistributedStrategy):
    """Trainers train alone and push differences every update_frequency steps."""

    mode = DistributedMode.GEO

    def __init__(self, update_frequency: int = 100) -> None:
        self._update_frequency = update_frequency
        super().__init__()

    def check_program_config(self) -> None:
        super().check_program_config()
        self._program_config.geo_sgd_mode = True
        self._program_config.geo_sgd_need_push_nums = self._update_frequency


class StrategyFactory:
    """Makes strategies by name."""

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        return GeoStrategy(update_frequency)
