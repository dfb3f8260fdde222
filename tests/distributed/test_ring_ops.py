"""The startup ops of rings, run by ranks in one process."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx.distributed.equivalent import equivalent
from fluidx.transpiler import distribute


def _built() -> tuple[fluid.Program, fluid.Program]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3])
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 2)))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup


def _feed(step: int, trainer: int, trainers: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([step, trainer])
    return {"x": rng.standard_normal((4, 3)).astype("f4")}


@pytest.mark.parametrize(
    ("mode", "ops"),
    [
        ("grad-allreduce", ["c_gen_nccl_id", "c_comm_init"]),
        ("single-process-multi-thread", ["c_comm_init_all"]),
    ],
)
def test_startup_ops_open_the_ring_that_training_uses(
    mode: str, ops: list[str]
) -> None:
    main, startup = _built()
    made = distribute(main, startup, mode)
    for role in made.trainers:
        kinds = [op.type for op in made.programs[role]["startup"].global_block().ops]
        assert [k for k in kinds if k in ops][: len(ops)] == ops
    if mode == "grad-allreduce":
        ops_of = made.programs["trainer-0"]["main"].global_block().ops
        kinds = [op.type for op in ops_of]
        first, last = map(kinds.index, ("c_sync_calc_stream", "c_sync_comm_stream"))
        assert "c_allreduce_sum" in kinds[first:last]
    report = equivalent(main, mode, _feed, 2, startup_program=startup)
    assert report.same is True
    assert report.largest < 1e-5
