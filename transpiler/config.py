"""How a program is to be distributed: the options, and their frozen form.

Mirrors ``fluid.DistributeTranspilerConfig``, ``ServerRuntimeConfig`` and
``DistributedMode``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .ps_dispatcher import PSDispatcher, RoundRobin

__all__ = [
    "DistributeTranspilerConfig",
    "DistributedMode",
    "ServerRuntimeConfig",
    "Setting",
    "TranspileError",
]

MODES = ("pserver", "nccl2", "collective")
COLLECTIVE_MODES = ("grad_allreduce", "local_sgd", "single_process_multi_thread")


class TranspileError(ValueError):
    """A program cannot be distributed as asked; one line says why."""


class DistributedMode:
    """Values of ``distributed_mode`` of `listen_and_serv`.

    The reference writes `HALF_ASYNC` for plain async and `ASYNC` for async with
    runtime splitting; so do we.
    """

    SYNC = 0
    ASYNC = 1
    HALF_ASYNC = 2
    GEO = 3


class ServerRuntimeConfig:
    """Thread counts that a server is told (``rpc_*_thread_num``)."""

    def __init__(self) -> None:
        self._rpc_send_thread_num = 12
        self._rpc_get_thread_num = 12
        self._rpc_prefetch_thread_num = 12


class DistributeTranspilerConfig:
    """Options of `DistributeTranspiler`; the defaults are the reference's.

    slice_var_up: cut large parameters into row blocks. min_block_size: a block has
    at least that many elements. split_method: a `PSDispatcher` class (default
    `RoundRobin`). mode: "pserver", "nccl2" or "collective". sync_mode,
    runtime_split_send_recv, half_async, completely_not_async, enable_dc_asgd,
    geo_sgd_mode, geo_sgd_need_push_nums: how gradients travel. nccl_comm_num,
    use_hierarchical_allreduce, hierarchical_allreduce_inter_nranks,
    collective_mode: the modes without servers. print_log: print the plan.
    wait_port: kept for scripts; a rewrite never waits, the runtime's client does.
    verify: check the programs of all roles against each other before they are
    handed out (an option of fluidx).
    """

    slice_var_up = True
    split_method: Callable[[Sequence[str]], PSDispatcher] | None = None
    min_block_size = 8192
    enable_dc_asgd = False
    mode = "pserver"
    print_log = False
    wait_port = True
    half_async = False
    completely_not_async = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100
    nccl_comm_num = 1
    use_hierarchical_allreduce = False
    hierarchical_allreduce_inter_nranks = 0
    collective_mode: str | None = None
    verify = True

    def __init__(self) -> None:
        self._runtime_split_send_recv = False
        self._sync_mode = True

    @property
    def runtime_split_send_recv(self) -> bool:
        """Gradients are cut when they are sent, not by ops of the program."""
        return self._runtime_split_send_recv

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: bool) -> None:
        if value and self._sync_mode:
            raise ValueError(
                "runtime_split_send_recv needs sync_mode off: set "
                "config.sync_mode = False first"
            )
        self._runtime_split_send_recv = bool(value)

    @property
    def sync_mode(self) -> bool:
        """Guards `runtime_split_send_recv`; ``transpile(sync_mode=...)`` decides."""
        return self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value: bool) -> None:
        if value and self._runtime_split_send_recv:
            raise ValueError(
                "sync_mode excludes runtime_split_send_recv: set "
                "config.runtime_split_send_recv = False first"
            )
        self._sync_mode = bool(value)


@dataclass(frozen=True)
class Setting:
    """One cluster and one mode: all that a plan depends on beside the program."""

    endpoints: tuple[str, ...]
    trainers: int
    sync: bool = True
    runtime_split: bool = False
    half_async: bool = False
    completely_not_async: bool = False
    dc_asgd: bool = False
    geo: bool = False
    geo_push_nums: int = 100
    slice_up: bool = True
    min_block_size: int = 8192
    dispatcher: Callable[[Sequence[str]], PSDispatcher] = RoundRobin

    @property
    def merging(self) -> bool:
        """Servers add up what all trainers sent; each trainer's part has a name."""
        return self.sync or (self.runtime_split and self.completely_not_async)

    @property
    def suffixed(self) -> bool:
        """Gradients travel as ``NAME.trainer_T``."""
        return self.merging and self.trainers > 1

    @property
    def distributed_mode(self) -> int:
        if self.geo:
            return DistributedMode.GEO
        if self.merging:
            return DistributedMode.SYNC
        if self.runtime_split:
            return DistributedMode.ASYNC
        return DistributedMode.HALF_ASYNC

    def index(self, endpoint: str) -> int:
        """Position of a server; TranspileError if it is not in the list."""
        found = self._places.get(endpoint)
        if found is None:
            raise TranspileError(
                f"endpoint {endpoint!r} is none of the pservers {list(self.endpoints)}"
            )
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        return {e: i for i, e in enumerate(self.endpoints)}


def check_config(config: Any) -> None:
    """One-line errors for option values that mean nothing."""
    if config.mode not in MODES:
        raise TranspileError(f"config.mode must be one of {MODES}, got {config.mode!r}")
    if config.min_block_size < 1:
        raise TranspileError(
            f"config.min_block_size must be at least 1, got {config.min_block_size}"
        )
    for name in ("nccl_comm_num", "geo_sgd_need_push_nums"):
        if getattr(config, name) < 1:
            raise TranspileError(
                f"config.{name} must be at least 1, got {getattr(config, name)}"
            )
    if config.split_method is not None and not callable(config.split_method):
        raise TranspileError(
            "config.split_method must be a PSDispatcher class, got "
            f"{config.split_method!r}"
        )


def pserver_endpoints(pservers: Any) -> tuple[str, ...]:
    """The endpoints of ``"host:port,host:port"``; each one once."""
    if not isinstance(pservers, str):
        raise TranspileError(
            "pservers must be a string of endpoints joined by commas, got "
            f"{pservers.__class__.__name__} {pservers!r}"
        )
    found = tuple(e.strip() for e in pservers.split(",") if e.strip())
    if not found:
        raise TranspileError("pservers names no endpoint")
    if len(set(found)) != len(found):
        raise TranspileError(f"an endpoint occurs twice in pservers {list(found)}")
    return found


def check_trainers(trainer_id: Any, trainers: Any) -> int:
    """The number of trainers; trainer_id must be one of them."""
    if isinstance(trainers, bool) or not isinstance(trainers, int) or trainers < 1:
        raise TranspileError(
            f"trainers must be a positive number in pserver mode, got {trainers!r}"
        )
    if isinstance(trainer_id, bool) or not isinstance(trainer_id, int):
        raise TranspileError(f"trainer_id must be a number, got {trainer_id!r}")
    if not 0 <= trainer_id < trainers:
        raise TranspileError(
            f"trainer_id {trainer_id} is not below trainers {trainers}"
        )
    return trainers
