"""What the environment says of this process's rank."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

__all__ = ["adopt", "trainer_variables", "under_mpi"]

#: (rank, size) variables of MPICH and its kin, and of Open MPI
_MPI = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
)
FIRST_PORT = 6170


def under_mpi(env: Mapping[str, str]) -> tuple[int, int] | None:
    """(rank, number of ranks) if an mpiexec started this process."""
    for rank, size in _MPI:
        if rank in env and size in env:
            return int(env[rank]), int(env[size])
    return None


def trainer_variables(
    rank: int, endpoints: list[str], role: str = "TRAINER"
) -> dict[str, str]:
    """The reference's variables for one rank of a collective job."""
    host = endpoints[rank].rpartition(":")[0]
    return {
        "TRAINING_ROLE": role,
        "PADDLE_TRAINING_ROLE": role,
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": str(len(endpoints)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
        "POD_IP": host,
    }


def adopt(env: MutableMapping[str, str]) -> None:
    """Under a bare mpiexec, set the variables that the reference's scripts read.

    Only where none of them is set. Endpoints then merely number the ranks: MPI does
    not need them.
    """
    found = under_mpi(env)
    if found is None or found[1] < 2:
        return
    if "PADDLE_TRAINER_ID" in env or "PADDLE_TRAINERS_NUM" in env:
        return
    rank, size = found
    endpoints = [f"127.0.0.1:{FIRST_PORT + i}" for i in range(size)]
    for name, value in trainer_variables(rank, endpoints).items():
        env.setdefault(name, value)
