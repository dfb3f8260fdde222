"""One rank of a real collective job: ``ranks.py OUT MODES [FAULT]``.

Trains `collective_toy` in every mode (``nccl2/2``: inner rings of two) and writes the
parameters to OUT. FAULT befalls rank 1: "import" (before anything), or at step 2 of
the first mode "kill", "raise", "exit", "end", "freeze" or "order".
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

if sys.argv[3:] == ["import"] and os.environ["PADDLE_TRAINER_ID"] == "1":
    sys.exit(4)

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from distributed import collective_toy as toy

import fluidx as fluid
from fluidx.distributed.collective import traffic, world


def strike(fault):
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "raise":
        raise ValueError("bad batch")
    elif fault in ("exit", "end"):
        sys.exit(5 if fault == "exit" else 0)
    elif fault == "freeze":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "order":
        world(fluid.CPUPlace()).group(0).barrier()


def check_ops(rank, ranks):
    """Every primitive, with dtypes that MPI knows and does not know."""
    place = fluid.CPUPlace()
    world(place).open_ring(7, rank, ranks)
    ring = world(place).group(7)
    whole = np.arange(4 * ranks, dtype="float32").reshape(-1, 2)
    for dtype in ("float16", "float32", "float64", "int32", "int64"):
        given = [(whole * (r + 1)).astype(dtype) for r in range(ranks)]
        mine = given[rank]
        for op, function in {"sum": np.sum, "max": np.max, "min": np.min}.items():
            (got,) = ring.all_reduce([mine], op, ["x"])
            assert got.dtype == dtype
            np.testing.assert_array_equal(
                got,
                function(given, 0, dtype="float64")
                if op == "sum"
                else function(given, 0),
            )
        part = ring.reduce_scatter(mine, "x")
        np.testing.assert_array_equal(
            part, np.split(np.sum(given, 0, dtype="float64"), ranks)[rank]
        )
        np.testing.assert_array_equal(ring.all_gather(mine, "x"), np.concatenate(given))
        np.testing.assert_array_equal(ring.broadcast(mine, ranks - 1, "x"), given[-1])
    rows = fluid.kernels.SelectedRows(
        np.arange(rank, dtype="int64"), np.full((rank, 2), rank, "float32"), 9
    )
    (joined,) = ring.all_reduce([rows], "sum", ["x"])
    wanted = [r for r in range(ranks) for _ in range(r)]
    np.testing.assert_array_equal(joined.value[:, 0], wanted)
    np.testing.assert_array_equal(
        joined.rows, [i for r in range(ranks) for i in range(r)]
    )
    ring.barrier()
    print("ops are right", traffic(place)[7]["broadcast"].calls, flush=True)


def main():
    out, modes, *fault = sys.argv[1:]
    rank = int(os.environ["PADDLE_TRAINER_ID"])
    ranks = int(os.environ["PADDLE_TRAINERS_NUM"])
    found = {}
    for mode in modes.split(","):

        def before_step(step):
            if step == 2 and rank == 1 and fault:
                strike(fault[0])

        name, _, inner = mode.partition("/")
        got = toy.train(
            name,
            rank,
            ranks,
            before_step=before_step,
            rings=2,
            inner=int(inner or 0),
        )
        found.update({f"{mode}:{n}": v for n, v in got.items()})
    check_ops(rank, ranks)
    np.savez(Path(out) / f"rank-{rank}.npz", **found)


if __name__ == "__main__":
    main()
