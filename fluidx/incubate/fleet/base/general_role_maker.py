"""Role makers that make all processes of a job meet: over sockets, or over MPI."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from .roles import Role, RoleMakerBase, endpoints_of

__all__ = ["GeneralRoleMaker", "MPIRoleMaker", "MPISymetricRoleMaker"]

_KNOWN = (
    *("hdfs_name", "hdfs_ugi", "path", "iface", "prefix", "http_ip_port"),
    *("init_timeout_seconds", "run_timeout_seconds"),
)
_INIT, _RUN = 3600, 9999999


class GeneralRoleMaker(RoleMakerBase):
    """Workers and servers that meet at ``http_ip_port``, without MPI.

    The environment tells the role: TRAINING_ROLE, PADDLE_TRAINER_ENDPOINTS,
    PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_TRAINER_ID; of a server PADDLE_PSERVER_ID, or
    POD_IP and PADDLE_PORT. The first worker listens: at FLUIDX_MEET, else at
    ``http_ip_port``, else at its own endpoint. kwargs: ``init_timeout_seconds`` and
    ``run_timeout_seconds`` bound the first and later meetings; what the reference's
    Gloo needs (``hdfs_name``, ``hdfs_ugi``, ``path``, ``iface``, ``prefix``) is kept
    and not used. PADDLE_IS_BARRIER_ALL_ROLE=0 turns `barrier_all` off.

    KeyError, ValueError: the environment does not tell. Mirrors
    ``role_maker.GeneralRoleMaker``.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        unknown = sorted(set(kwargs) - set(_KNOWN))
        if unknown:
            raise TypeError(f"GeneralRoleMaker takes {_KNOWN}, got {unknown}")
        self._hdfs_name = kwargs.get("hdfs_name", "")
        self._hdfs_ugi = kwargs.get("hdfs_ugi", "")
        self._hdfs_path = kwargs.get("path", "").rstrip("/")
        self._iface = kwargs.get("iface", "")
        self._prefix = kwargs.get("prefix", "")
        self._init_timeout_seconds = kwargs.get("init_timeout_seconds", _INIT)
        self._run_timeout_seconds = kwargs.get("run_timeout_seconds", _RUN)
        self._http_ip_port = [p for p in [kwargs.get("http_ip_port", "")] if p]
        self._is_barrier_all = True
        self._cur_endpoint = ""
        self._trainers_num = 0

    def generate_role(self) -> None:
        if self._role_is_generated:
            return
        env = os.environ
        servers = endpoints_of(_needed("PADDLE_PSERVERS_IP_PORT_LIST"))
        role = _needed("TRAINING_ROLE")
        workers = endpoints_of(_needed("PADDLE_TRAINER_ENDPOINTS"))
        if role not in ("TRAINER", "PSERVER"):
            raise ValueError(f"TRAINING_ROLE must be TRAINER or PSERVER, got {role!r}")
        self._is_barrier_all = env.get("PADDLE_IS_BARRIER_ALL_ROLE", "1") != "0"
        if role == "TRAINER":
            self._role, of = Role.WORKER, workers
            self._current_id = int(_needed("PADDLE_TRAINER_ID"))
        else:
            self._role, of = Role.SERVER, servers
            self._current_id = _server_number(servers)
        if not 0 <= self._current_id < len(of):
            raise ValueError(f"there is no number {self._current_id} among {of}")
        self._cur_endpoint = of[self._current_id]
        self._worker_endpoints, self._server_endpoints = workers, servers
        self._trainers_num = len(workers)
        self._role_is_generated = True

    def get_local_endpoint(self) -> str:
        self._made()
        return self._cur_endpoint

    def _worker_num(self) -> int:
        return self.worker_num()

    def _server_num(self) -> int:
        return self.server_num()

    def _get_size(self) -> int:
        """How many processes there are."""
        return self.worker_num() + self.server_num()

    def _get_rank(self) -> int:
        """This one's number: workers come first."""
        return self._current_id + self.is_server() * self.worker_num()

    # ------------------------------------------------ meeting

    def all_gather(self, input: Any) -> list[Any]:
        """What all processes came with: workers, then servers."""
        return self._gather("all", "all_gather", input)

    _all_gather = all_gather

    def _worker_gather(self, obj: Any) -> list[Any] | None:
        """What all workers came with; None on a server."""
        return (
            self._gather("workers", "worker_gather", obj) if self.is_worker() else None
        )

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:
        """Over the workers; a server takes no part."""
        if self.is_worker():
            super().all_reduce_worker(input, output, mode)

    def barrier_worker(self) -> None:
        """Wait for all workers; a server takes no part."""
        if self.is_worker():
            super().barrier_worker()

    def barrier_all(self) -> None:
        if self._is_barrier_all:
            super().barrier_all()

    def _barrier_server(self) -> None:
        if self.is_server():
            super()._barrier_server()

    def _board(self) -> str:
        if "FLUIDX_MEET" not in os.environ and self._http_ip_port:
            return str(self._http_ip_port[0])
        return super()._board()

    def _bounds(self) -> Any:
        found = super()._bounds()
        if self._init_timeout_seconds != _INIT:
            found = replace(found, start_deadline=float(self._init_timeout_seconds))
        if self._run_timeout_seconds != _RUN:
            found = replace(found, deadline=float(self._run_timeout_seconds))
        return found


def _needed(name: str) -> str:
    if name not in os.environ:
        raise ValueError(f"GeneralRoleMaker needs {name} in the environment")
    return os.environ[name]


def _server_number(servers: list[str]) -> int:
    number = os.environ.get("PADDLE_PSERVER_ID")
    if number is not None:
        return int(number)
    endpoint = f"{_needed('POD_IP')}:{_needed('PADDLE_PORT')}"
    if endpoint not in servers:
        raise ValueError(
            f"this server is {endpoint} (POD_IP, PADDLE_PORT), not among {servers}"
        )
    return servers.index(endpoint)


class MPIRoleMaker(RoleMakerBase):
    """What role makers over MPI share. ImportError: mpi4py is not installed."""

    def __init__(self) -> None:
        super().__init__()
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise ImportError(
                "MPI role makers need mpi4py (pip install 'fluidx[mpi]')"
            ) from error
        self.MPI = MPI
        self._comm: Any = MPI.COMM_WORLD
        self._node_type_comm: Any = None
        self._ips: list[str] | None = None

    def _get_rank(self) -> int:
        return int(self._comm.Get_rank())

    def _get_size(self) -> int:
        return int(self._comm.Get_size())

    def _all_gather(self, obj: Any) -> list[Any]:
        """Of all processes."""
        self._barrier_all()
        found: list[Any] = self._comm.allgather(obj)
        return found

    def _worker_gather(self, obj: Any) -> list[Any] | None:
        """Of all workers; None on a server."""
        if not self.is_worker():
            return None
        self._node_type_comm.barrier()
        found: list[Any] = self._node_type_comm.allgather(obj)
        return found

    def _barrier_all(self) -> None:
        self._comm.barrier()

    def _finalize(self) -> None:
        """MPI ends by itself with the process."""

    def get_local_ip(self) -> str:
        import socket

        self._ip = socket.gethostbyname(socket.gethostname())
        return self._ip

    def _get_ips(self) -> list[str]:
        if self._ips is None:
            self._ips = self._comm.allgather(self.get_local_ip())
        return self._ips


class MPISymetricRoleMaker(MPIRoleMaker):
    """Every node runs one server and one worker: even ranks serve, odd ranks work.

    ValueError: an odd number of processes. Needs mpi4py and ``mpiexec``. Mirrors
    ``role_maker.MPISymetricRoleMaker``.
    """

    def generate_role(self) -> None:
        if self._role_is_generated:
            return
        if self._get_size() % 2:
            raise ValueError(
                f"MPISymetricRoleMaker needs pairs of processes, got {self._get_size()}"
            )
        ips = self._get_ips()
        port = int(os.environ.get("PADDLE_PORT", "60001"))
        self._role = Role.WORKER if self._get_rank() % 2 else Role.SERVER
        self._current_id = self._get_rank() // 2
        self._server_endpoints = [f"{ip}:{port + at}" for at, ip in enumerate(ips[::2])]
        self._worker_endpoints = list(ips[1::2])
        self._node_type_comm = self._comm.Split(self._role)
        self._role_is_generated = True

    def all_gather(self, input: Any) -> list[Any]:
        self._made()
        return self._all_gather(input)

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:
        """Over the workers; a server takes no part."""
        self._made()
        ops = {"sum": self.MPI.SUM, "max": self.MPI.MAX, "min": self.MPI.MIN}
        if mode not in ops:
            raise ValueError(f"all_reduce_worker: mode sum, max or min, got {mode!r}")
        if self.is_worker():
            found = np.empty_like(np.asarray(input))
            self._node_type_comm.Allreduce(
                np.ascontiguousarray(input), found, ops[mode]
            )
            output[...] = found

    def barrier_worker(self) -> None:
        if self.is_worker():
            self._node_type_comm.barrier()

    def barrier_all(self) -> None:
        self._made()
        self._barrier_all()

    def _barrier_server(self) -> None:
        if self.is_server():
            self._node_type_comm.barrier()

    def _worker_num(self) -> int:
        return self.worker_num()

    def _server_num(self) -> int:
        return self.server_num()
