"""What all fleets have in common (``fleet.base.fleet_base``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.executor import Executor
from fluidx.ir import Program
from fluidx.tensor import CPUPlace

from .role_maker import PaddleCloudRoleMaker, RoleMakerBase

__all__ = ["DistributedOptimizer", "Fleet", "Mode"]


class Mode:
    """How a fleet is distributed."""

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


class Fleet:
    """One process of a cluster, seen from the script.

    `main_program` and `startup_program` are there after a distributed optimizer's
    `minimize`. mode: of `Mode`.
    """

    def __init__(self, mode: int) -> None:
        self._mode = mode
        self._is_initialized = False
        self._role_maker: RoleMakerBase | None = None
        self._executor: Executor | None = None
        self._optimizer: Any = None
        self._origin_program: Program | None = None
        self.main_program: Any = None
        self.startup_program: Any = None

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Find out who this process is; by default the environment tells.

        TypeError: role_maker is none.
        """
        if role_maker is None:
            role_maker = PaddleCloudRoleMaker(self._mode == Mode.COLLECTIVE)
        if not isinstance(role_maker, RoleMakerBase):
            kind = role_maker.__class__.__name__
            raise TypeError(f"fleet.init takes a role maker, got {kind}")
        role_maker.generate_role()
        self._role_maker = role_maker
        self._executor = Executor(CPUPlace())
        self._is_initialized = True

    @property
    def _role(self) -> RoleMakerBase:
        if self._role_maker is None:
            raise RuntimeError("fleet.init(role_maker) comes first")
        return self._role_maker

    @property
    def _exe(self) -> Executor:
        if self._executor is None:
            raise RuntimeError("fleet.init(role_maker) comes first")
        return self._executor

    # ------------------------------------------------ who is who

    def is_first_worker(self) -> bool:
        return self._role.is_first_worker()

    def is_worker(self) -> bool:
        return self._role.is_worker()

    def is_server(self) -> bool:
        return self._role.is_server()

    def worker_index(self) -> int:
        return self._role.worker_index()

    def worker_num(self) -> int:
        return self._role.worker_num()

    def server_index(self) -> int:
        return self._role.server_index()

    def server_num(self) -> int:
        return len(self._role.get_pserver_endpoints())

    def worker_endpoints(self, to_string: bool = False) -> Any:
        found = self._role.get_trainer_endpoints()
        return ",".join(found) if to_string else found

    def server_endpoints(self, to_string: bool = False) -> Any:
        found = self._role.get_pserver_endpoints()
        return ",".join(found) if to_string else found

    def split_files(self, files: Sequence[str]) -> list[str]:
        """This worker's share: neighbours, the first workers get one more.

        TypeError: files is no list.
        """
        if not isinstance(files, list):
            raise TypeError(f"split_files takes a list of files, got {files!r:.60}")
        index, workers = self.worker_index(), self.worker_num()
        each, more = divmod(len(files), workers)
        begin = index * each + min(index, more)
        return files[begin : begin + each + (index < more)]

    # ------------------------------------------------ all workers

    def barrier_worker(self) -> None:
        self._role.barrier_worker()

    def all_reduce_worker(self, input: Any, output: Any) -> None:
        self._role.all_reduce_worker(input, output)

    # ------------------------------------------------ of each kind of fleet

    def _not_here(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{self.__class__.__name__} has no {what}")

    def init_worker(self) -> None:
        raise self._not_here("init_worker")

    def init_server(self, model_dir: str | None = None) -> None:
        raise self._not_here("init_server")

    def run_server(self) -> None:
        raise self._not_here("run_server")

    def stop_worker(self) -> None:
        raise self._not_here("stop_worker")

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        raise self._not_here("distributed_optimizer")

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Any],
        main_program: Any = None,
        export_for_deployment: bool = True,
    ) -> Any:
        raise self._not_here("save_inference_model")

    def save_persistables(
        self, executor: Executor, dirname: str, main_program: Any = None
    ) -> None:
        raise self._not_here("save_persistables")


class DistributedOptimizer:
    """An optimizer, and the strategy by which its work is spread.

    TypeError: `optimizer` is none.
    """

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        if not hasattr(optimizer, "apply_gradients"):
            kind = optimizer.__class__.__name__
            raise TypeError(f"distributed_optimizer takes an optimizer, got {kind}")
        self._optimizer = optimizer
        self._strategy = strategy

    def backward(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> Any:
        """As the optimizer's own."""
        return self._optimizer.backward(
            loss, startup_program, parameter_list, no_grad_set, callbacks
        )

    def apply_gradients(self, params_grads: Any) -> Any:
        """As the optimizer's own."""
        return self._optimizer.apply_gradients(params_grads)

    def minimize(
        self,
        losses: Any,
        scopes: Any = None,
        startup_programs: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> Any:
        """Of each kind of fleet."""
        kind = self.__class__.__name__
        raise NotImplementedError(f"{kind} has no minimize: backward, apply_gradients")
