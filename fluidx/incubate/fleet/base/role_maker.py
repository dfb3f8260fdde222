"""Who this process is: a worker or a server, which one, and where the others are.

Mirrors ``paddle.fluid.incubate.fleet.base.role_maker``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

__all__ = [
    "PaddleCloudRoleMaker",
    "Role",
    "RoleMakerBase",
    "UserDefinedCollectiveRoleMaker",
    "UserDefinedRoleMaker",
]


def __getattr__(name: str) -> Any:
    if name in ("GeneralRoleMaker", "MPISymetricRoleMaker", "MPIRoleMaker"):
        raise AttributeError(
            f"role_maker has no {name} in fluidx: use PaddleCloudRoleMaker with the "
            "variables that a launcher sets, or UserDefinedRoleMaker"
        )
    raise AttributeError(f"role_maker has no {name!r}")


class Role:
    """WORKER or SERVER."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """What every role maker answers; `generate_role` finds it out."""

    def __init__(self) -> None:
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._role_is_generated = False
        self._role: int | None = None
        self._current_id = -1

    def generate_role(self) -> None:
        """Find out; a second call does nothing."""
        raise NotImplementedError(f"{self.__class__.__name__}.generate_role")

    def _made(self) -> None:
        if not self._role_is_generated:
            self.generate_role()

    def is_worker(self) -> bool:
        self._made()
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        self._made()
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        return self.is_worker() and self._current_id == 0

    def worker_num(self) -> int:
        self._made()
        return len(self._worker_endpoints)

    def server_num(self) -> int:
        self._made()
        return len(self._server_endpoints)

    def worker_index(self) -> int:
        self._made()
        return self._current_id

    def server_index(self) -> int:
        self._made()
        return self._current_id

    def get_trainer_endpoints(self) -> list[str]:
        self._made()
        return self._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        self._made()
        return self._server_endpoints

    def to_string(self) -> str:
        """One line: role, number, and where all are."""
        return (
            f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: "
            f"{self._worker_endpoints}, server_endpoints: {self._server_endpoints}"
        )

    def _alone(self, what: str) -> None:
        if self.worker_num() > 1:
            raise NotImplementedError(
                f"{self.__class__.__name__}.{what} with {self.worker_num()} workers: "
                "role makers have no connection of their own; use collective ops in a "
                "program"
            )

    def all_gather(self, input: Any) -> list[Any]:
        """The inputs of all workers: with one worker, its own."""
        self._alone("all_gather")
        return [input]

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:
        """Reduce over the workers into `output`: with one worker, a copy."""
        if mode not in ("sum", "max", "min"):
            raise ValueError(f"all_reduce_worker: mode sum, max or min, got {mode!r}")
        self._alone("all_reduce_worker")
        output[:] = input

    def barrier_worker(self) -> None:
        """Wait for all workers."""
        self._alone("barrier_worker")

    def barrier_all(self) -> None:
        """Wait for all workers and servers."""
        self._alone("barrier_all")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"PaddleCloudRoleMaker needs {name} in the environment; `fluidx launch` "
            "sets it"
        )
    return value


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role that the environment tells, as launchers set it.

    With servers: TRAINING_ROLE, PADDLE_TRAINERS_NUM, PADDLE_PSERVERS_IP_PORT_LIST,
    and PADDLE_TRAINER_ID, or of a server POD_IP and PADDLE_PORT. is_collective:
    PADDLE_TRAINER_ENDPOINTS, PADDLE_CURRENT_ENDPOINT and PADDLE_TRAINER_ID.
    ValueError names a variable that is missing or wrong.
    """

    def __init__(self, is_collective: bool = False) -> None:
        super().__init__()
        self._is_collective = is_collective
        self._trainers_num = 0

    def generate_role(self) -> None:
        if self._role_is_generated:
            return
        if self._is_collective:
            self._from_ranks()
        else:
            self._from_cluster()
        self._role_is_generated = True

    def _from_ranks(self) -> None:
        self._worker_endpoints = _list(os.environ.get("PADDLE_TRAINER_ENDPOINTS", ""))
        if not self._worker_endpoints:
            raise ValueError(
                "PaddleCloudRoleMaker(is_collective=True) needs "
                "PADDLE_TRAINER_ENDPOINTS; `fluidx launch --collective` sets it"
            )
        self._current_id = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
        self._trainers_num = len(self._worker_endpoints)
        self._role = Role.WORKER

    def _from_cluster(self) -> None:
        self._trainers_num = int(_variable("PADDLE_TRAINERS_NUM"))
        self._server_endpoints = _list(_variable("PADDLE_PSERVERS_IP_PORT_LIST"))
        role = _variable("TRAINING_ROLE")
        if role == "TRAINER":
            self._role = Role.WORKER
            self._current_id = int(_variable("PADDLE_TRAINER_ID"))
        elif role == "PSERVER":
            self._role = Role.SERVER
            endpoint = f"{_variable('POD_IP')}:{_variable('PADDLE_PORT')}"
            if endpoint not in self._server_endpoints:
                raise ValueError(
                    f"this server is {endpoint} (POD_IP, PADDLE_PORT), which is not "
                    f"among {self._server_endpoints}"
                )
            self._current_id = self._server_endpoints.index(endpoint)
        else:
            raise ValueError(f"TRAINING_ROLE must be TRAINER or PSERVER, got {role!r}")

    def worker_num(self) -> int:
        self._made()
        return self._trainers_num


class UserDefinedRoleMaker(RoleMakerBase):
    """The role that the script tells.

    current_id: of this worker or server. role: `Role.WORKER` or `Role.SERVER`.
    TypeError, ValueError: an argument that makes no sense.
    """

    def __init__(
        self,
        current_id: int = 0,
        role: int = Role.WORKER,
        worker_num: int = 0,
        server_endpoints: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        if role not in (Role.WORKER, Role.SERVER):
            raise TypeError(f"role must be Role.WORKER or Role.SERVER, got {role!r}")
        if not isinstance(server_endpoints, (list, tuple)) or not server_endpoints:
            raise ValueError(f"server_endpoints: not a list: {server_endpoints!r}")
        if len(set(server_endpoints)) != len(server_endpoints):
            raise ValueError(f"server_endpoints has duplicates: {server_endpoints}")
        if not isinstance(worker_num, int) or worker_num <= 0:
            raise ValueError(f"worker_num must be positive, got {worker_num!r}")
        among = worker_num if role == Role.WORKER else len(server_endpoints)
        if not isinstance(current_id, int) or not 0 <= current_id < among:
            raise ValueError(
                f"current_id must be from 0 to {among - 1}: {current_id!r}"
            )
        self._role = role
        self._current_id = current_id
        self._worker_num = worker_num
        self._server_endpoints = list(server_endpoints)

    def generate_role(self) -> None:
        self._role_is_generated = True

    def worker_num(self) -> int:
        return self._worker_num


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """The same without servers."""

    def __init__(
        self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        if not isinstance(worker_endpoints, (list, tuple)) or not worker_endpoints:
            raise ValueError(f"worker_endpoints: not a list: {worker_endpoints!r}")
        if len(set(worker_endpoints)) != len(worker_endpoints):
            raise ValueError(f"worker_endpoints has duplicates: {worker_endpoints}")
        if not 0 <= current_id < len(worker_endpoints):
            raise ValueError(
                f"current_id must be from 0 to {len(worker_endpoints) - 1}, got "
                f"{current_id!r}"
            )
        self._role = Role.WORKER
        self._current_id = current_id
        self._worker_endpoints = list(worker_endpoints)

    def generate_role(self) -> None:
        self._role_is_generated = True
