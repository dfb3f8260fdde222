"""Who this process is: a worker or a server, which one, and where the others are.

Mirrors ``paddle.fluid.incubate.fleet.base.role_maker``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .general_role_maker import GeneralRoleMaker, MPIRoleMaker, MPISymetricRoleMaker
from .roles import Role, RoleMakerBase, checked_endpoints, endpoints_of

__all__ = [
    "GeneralRoleMaker",
    "MPIRoleMaker",
    "MPISymetricRoleMaker",
    "MockBarrier",
    "PaddleCloudRoleMaker",
    "Role",
    "RoleMakerBase",
    "UserDefinedCollectiveRoleMaker",
    "UserDefinedRoleMaker",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"role_maker has no {name!r} in fluidx")


#: of all ranks; launchers of 1.8, and of clouds before it
_ENDPOINTS = ("PADDLE_TRAINER_ENDPOINTS", "PADDLE_TRAINERS_IP_PORT_LIST")


class MockBarrier:
    """Of a process that is alone: nobody is waited for."""

    def barrier(self) -> None:
        """Nothing."""

    def barrier_all(self) -> None:
        """Nothing."""

    def all_reduce(self, obj: Any) -> Any:
        return obj

    def all_gather(self, obj: Any) -> list[Any]:
        return [obj]


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"PaddleCloudRoleMaker needs {name} in the environment; `fluidx launch` "
            "sets it"
        )
    return value


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role that the environment tells, as launchers set it.

    With servers: TRAINING_ROLE, PADDLE_TRAINERS_NUM, PADDLE_PSERVERS_IP_PORT_LIST,
    and PADDLE_TRAINER_ID, or of a server POD_IP and PADDLE_PORT. is_collective:
    PADDLE_TRAINER_ENDPOINTS (or PADDLE_TRAINERS_IP_PORT_LIST), PADDLE_TRAINER_ID.
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
        given = [os.environ.get(name, "") for name in _ENDPOINTS]
        self._worker_endpoints = endpoints_of(given[0] or given[1])
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
        self._server_endpoints = endpoints_of(_variable("PADDLE_PSERVERS_IP_PORT_LIST"))
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
        servers = checked_endpoints("server_endpoints", server_endpoints)
        if not isinstance(worker_num, int) or worker_num <= 0:
            raise ValueError(f"worker_num must be positive, got {worker_num!r}")
        among = worker_num if role == Role.WORKER else len(servers)
        if not isinstance(current_id, int) or not 0 <= current_id < among:
            raise ValueError(
                f"current_id must be from 0 to {among - 1}: {current_id!r}"
            )
        self._role = role
        self._current_id = current_id
        self._worker_num = worker_num
        self._server_endpoints = servers

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
        workers = checked_endpoints("worker_endpoints", worker_endpoints)
        if not 0 <= current_id < len(workers):
            raise ValueError(
                f"current_id must be from 0 to {len(workers) - 1}, got {current_id!r}"
            )
        self._role = Role.WORKER
        self._current_id = current_id
        self._worker_endpoints = workers

    def generate_role(self) -> None:
        self._role_is_generated = True
