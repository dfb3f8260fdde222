"""mode "nccl2": the main program stays, the startup program makes NCCL's ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Program
from fluidx.kernels import VarType

from .config import TranspileError
from .edits import declare, new_op

__all__ = ["nccl2_startup"]


def nccl2_startup(
    program: Program, *, trainer_id: int, workers: Sequence[str], config: Any
) -> Program:
    """The startup program ends by agreeing on one NCCL id per communicator.

    With hierarchical allreduce also on one per inner and outer ring. TranspileError
    if the workers cannot be put into equal groups.
    """
    if not 0 <= trainer_id < len(workers):
        raise TranspileError(
            f"trainer_id {trainer_id} is not below the number of workers {len(workers)}"
        )
    ranks = config.hierarchical_allreduce_inter_nranks
    if config.use_hierarchical_allreduce:
        _check_groups(len(workers), ranks)
    made = program.clone()
    block = made.global_block()
    number = config.nccl_comm_num
    names = ["NCCLID", *(f"NCCLID_{i}" for i in range(1, number))]
    if config.use_hierarchical_allreduce:
        for way in ("inter", "exter"):
            names += [f"Hierarchical_{way}_NCCLID_{i}" for i in range(number)]
    for name in names:
        declare(block, name, kind=VarType.RAW, persistable=True)
    attrs = {
        "trainers": list(workers),
        "trainer_id": trainer_id,
        "nccl_comm_num": number,
        "use_hierarchical_allreduce": config.use_hierarchical_allreduce,
        "hierarchical_allreduce_inter_nranks": ranks,
    }
    outputs = {"NCCLID": ["NCCLID"]}
    block.ops.append(new_op(block, "gen_nccl_id", {}, outputs, attrs))
    return made


def _check_groups(workers: int, ranks: int) -> None:
    if ranks < 2:
        raise TranspileError(
            "config.hierarchical_allreduce_inter_nranks must be at least 2 (workers "
            f"per inner ring), got {ranks}"
        )
    if workers <= ranks or workers % ranks:
        raise TranspileError(
            f"{workers} workers do not make several inner rings of {ranks}: config."
            "hierarchical_allreduce_inter_nranks"
        )
