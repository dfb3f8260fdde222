"""nccl2 mode: what `CompiledProgram.with_data_parallel` makes of a main program.

The transpiler leaves the main program alone in this mode; these passes bring in the
collectives when it is compiled for several trainers, as the reference's
``ParallelExecutor`` does within its graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Block, Program, Variable
from fluidx.kernels import VarType

from .collective import grad_allreduce_main
from .edits import declare, new_op

__all__ = ["data_parallel_main", "equal_start"]


def data_parallel_main(
    program: Program, *, nranks: int, nrings: int = 1, mean: bool = True
) -> Program:
    """Every gradient is summed over the trainers before anything reads it.

    mean: the loss's gradient is divided by their number first, so that the sum is
    the mean (``GradientScaleStrategy.CoeffNumDevice``); False leaves it as it is.
    """
    made = grad_allreduce_main(program, nranks=nranks, nrings=nrings, mean=mean)
    made._trainers_endpoints = []  # what was asked for there is done
    return made


def equal_start(
    program: Program,
    *,
    trainers: Sequence[str],
    trainer_id: int,
    nrings: int = 1,
    opened: bool = False,
) -> Program:
    """A program that gives all trainers the persistable values of trainer 0.

    opened: the startup program has opened the rings; else this program does.
    """
    made = Program()
    block = made.global_block()
    if not opened:
        attrs = {
            "trainers": list(trainers),
            "trainer_id": trainer_id,
            "nccl_comm_num": nrings,
            "use_hierarchical_allreduce": False,
            "hierarchical_allreduce_inter_nranks": 0,
        }
        name = declare(block, "NCCLID", kind=VarType.RAW, persistable=True)
        block.ops.append(new_op(block, "gen_nccl_id", {}, {"NCCLID": [name]}, attrs))
    for at, var in enumerate(_values(program.global_block())):
        name = declare(block, var.name, var.shape, var.dtype, persistable=True)
        attrs = {"ring_id": at % nrings, "root": 0}
        ends = {"X": [name]}, {"Out": [name]}
        block.ops.append(new_op(block, "c_broadcast", *ends, attrs))
    made._touch()
    return made


def _values(block: Block) -> list[Variable]:
    """Persistable tensors that ops of the program use."""
    used = {
        name
        for each in block.program.blocks
        for op in each.ops
        for name in (*op.input_arg_names, *op.output_arg_names)
    }
    return [
        var
        for name, var in block.vars.items()
        if var.persistable and var.type == VarType.LOD_TENSOR and name in used
    ]
