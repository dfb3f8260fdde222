"""Training without servers: every worker holds all parameters, rings keep them equal.

Mirrors ``fluid.transpiler.collective``: `GradAllReduce`, `LocalSGD`,
`SingleProcessMultiThread`. They are facades over the passes `ring_startup`,
`grad_allreduce_main`, `local_sgd_main` and `local_sgd_startup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import (
    Block,
    Editor,
    Operator,
    OpRole,
    Parameter,
    Program,
    default_main_program,
    default_startup_program,
)
from fluidx.kernels import VarType

from .config import TranspileError
from .edits import adopt, declare, new_op, where_of
from .facts import is_update, role_pairs

__all__ = [
    "GradAllReduce",
    "LocalSGD",
    "SingleProcessMultiThread",
    "grad_allreduce_main",
    "local_sgd_main",
    "local_sgd_startup",
    "ring_startup",
]

_BACKWARD = int(OpRole.Backward)
_UPDATE = int(OpRole.Optimize)


def _on(
    block: Block, type: str, name: str, role: int, like: Operator | None, **attrs: Any
) -> Operator:
    """An op that works on one variable in place."""
    return new_op(block, type, {"X": [name]}, {"Out": [name]}, attrs, role, like)


def _parameters(block: Block) -> list[Parameter]:
    return [v for v in block.vars.values() if isinstance(v, Parameter)]


# ------------------------------------------------------------------ startup


def ring_startup(
    program: Program, *, rank: int, endpoints: Sequence[str], nrings: int
) -> Program:
    """Every ring exists, and all workers have the parameters of worker 0."""
    made = program.clone()
    block = made.global_block()
    edit = Editor(block)
    others = [e for i, e in enumerate(endpoints) if i != rank]
    for ring in range(nrings):
        name = declare(block, f"nccl_id_{ring}", kind=VarType.RAW, persistable=True)
        mine = {"rank": rank, "endpoint": endpoints[rank], "other_endpoints": others}
        edit.append(new_op(block, "c_gen_nccl_id", {}, {"Out": [name]}, mine))
        sizes = {"nranks": len(endpoints), "rank": rank, "ring_id": ring}
        edit.append(new_op(block, "c_comm_init", {"X": [name]}, {}, sizes))
    last = None
    for at, param in enumerate(_parameters(block)):
        last = param.name
        edit.append(
            _on(block, "c_broadcast", last, 0, None, ring_id=at % nrings, root=0)
        )
    for ring in range(nrings) if last else ():
        edit.append(_on(block, "c_sync_comm_stream", last or "", 0, None, ring_id=ring))
    edit.commit()
    return made


def all_startup(program: Program) -> Program:
    """One communicator over all devices of this process."""
    made = program.clone()
    block = made.global_block()
    block.ops.append(
        new_op(block, "c_comm_init_all", {}, {}, {"ring_id": 0, "devices": []})
    )
    return made


# ------------------------------------------------------------------ gradients


def grad_allreduce_main(
    program: Program, *, nranks: int, nrings: int, mean: bool = True
) -> Program:
    """Every gradient is the mean over the workers before anything is updated.

    mean False: their sum.
    """
    made = program.clone()
    block = made.global_block()
    edit = Editor(block)
    for op in block.ops:
        if mean and op.role == _BACKWARD | OpRole.Loss:
            seed = op.outputs["Out"][0]
            edit.after(op, _on(block, "scale", seed, _BACKWARD, op, scale=1.0 / nranks))
    ring, last = 0, None
    for op in reversed(block.ops):
        grads = [g for _, g in role_pairs(op)] if op.role & _BACKWARD else []
        if not grads:
            continue
        sums: list[Operator] = []
        for last in grads:
            attrs = {"ring_id": ring % nrings, "use_calc_stream": False}
            sums.insert(0, _on(block, "c_allreduce_sum", last, _BACKWARD, op, **attrs))
            ring += 1
        sync = _on(block, "c_sync_calc_stream", grads[0], _BACKWARD, op)
        edit.after(op, sync, *sums)
    first = next((op for op in block.ops if op.role & _UPDATE), None)
    if first is not None and last is not None:
        for number in range(nrings):
            done = _on(
                block, "c_sync_comm_stream", last, _BACKWARD, first, ring_id=number
            )
            edit.before(first, done)
    edit.commit()
    return made


# ------------------------------------------------------------------ local SGD


def snapshot_name(name: str) -> str:
    """What the last agreed value of a parameter is called."""
    return f"{name}@SNAPSHOT"


def _snapshot(block: Block, param: Parameter) -> str:
    return declare(
        block,
        snapshot_name(param.name),
        param.shape,
        param.dtype,
        persistable=True,
        stop_gradient=True,
    )


def local_sgd_startup(program: Program) -> Program:
    """Every parameter has a snapshot of its first value."""
    made = program.clone()
    block = made.global_block()
    for param in _parameters(block):
        outputs = {"Out": [_snapshot(block, param)]}
        block.ops.append(new_op(block, "assign", {"X": [param.name]}, outputs, {}))
    return made


def local_sgd_main(program: Program, *, nranks: int, nrings: int) -> Program:
    """Every step ends with the mean of all workers' steps from the last snapshot."""
    made = program.clone()
    block = made.global_block()
    edit = Editor(block)
    updates = [op for op in block.ops if is_update(op)]
    names = [op.inputs["Param"][0] for op in updates]
    for at, (op, name) in enumerate(zip(reversed(updates), reversed(names))):
        param = block.vars[name]
        if isinstance(param, Parameter):
            _snapshot(block, param)
        attrs = {"ring_id": at % nrings, "use_calc_stream": False}
        edit.after(
            op,
            _step(block, name, op),
            _on(block, "c_sync_calc_stream", name, _UPDATE, op),
            _on(block, "c_allreduce_sum", name, _UPDATE, op, **attrs),
        )
    like = where_of(updates)
    for ring in range(nrings) if names else ():
        edit.append(
            _on(block, "c_sync_comm_stream", names[0], _UPDATE, like, ring_id=ring)
        )
    for op, name in zip(updates, names):
        mean = 1.0 / nranks
        keep = {"Out": [snapshot_name(name)]}
        edit.append(
            _on(block, "scale", name, _UPDATE, op, scale=mean),
            _step(block, name, op),
            new_op(block, "assign", {"X": [name]}, keep, {}, _UPDATE, op),
        )
    edit.commit()
    return made


def _step(block: Block, name: str, like: Operator) -> Operator:
    """snapshot - parameter, into the parameter."""
    inputs = {"X": [snapshot_name(name)], "Y": [name]}
    outputs, attrs = {"Out": [name]}, {"axis": -1}
    return new_op(block, "elementwise_sub", inputs, outputs, attrs, _UPDATE, like)


# ------------------------------------------------------------------ facades


class Collective:
    """Base class: checks the workers, then rewrites both programs in place."""

    mode = ""
    alone = False

    def __init__(self, nrings: int) -> None:
        if isinstance(nrings, bool) or not isinstance(nrings, int) or nrings < 1:
            raise TranspileError(f"nrings must be at least 1, got {nrings!r}")
        self.nrings = nrings
        self.nranks = 0
        self.rank = 0
        self.endpoints: list[str] = []
        self.current_endpoint = ""
        self.main_program: Program | None = None
        self.startup_program: Program | None = None

    def transpile(
        self,
        startup_program: Program | None,
        main_program: Program | None,
        rank: int,
        endpoints: str | Sequence[str],
        current_endpoint: str,
        wait_port: bool,
    ) -> None:
        """Rewrite both programs for worker `rank` of `endpoints`.

        wait_port is accepted and has no effect: the collective's start waits.
        TranspileError if the workers make no sense.
        """
        if isinstance(endpoints, str):
            endpoints = endpoints.split(",")
        self._check(rank, endpoints, current_endpoint)
        self.endpoints = list(endpoints)
        self.current_endpoint = current_endpoint
        self.nranks, self.rank = len(self.endpoints), rank
        main = main_program if main_program is not None else default_main_program()
        startup = startup_program
        if startup is None:
            startup = default_startup_program()
        self.main_program, self.startup_program = main, startup
        adopt(startup, self._startup(startup))
        adopt(main, self._main(main))

    def _check(self, rank: int, endpoints: Sequence[str], current: str) -> None:
        if len(endpoints) < 2 and not self.alone:
            raise TranspileError(
                f"{self.mode} needs at least two workers, got {list(endpoints)}"
            )
        if len(set(endpoints)) != len(endpoints):
            raise TranspileError(f"an endpoint occurs twice in {list(endpoints)}")
        if not 0 <= rank < len(endpoints):
            raise TranspileError(
                f"rank {rank} is not below the number of workers {len(endpoints)}"
            )
        if endpoints[rank] != current:
            raise TranspileError(
                f"worker {rank} is {endpoints[rank]}, the current endpoint {current}"
            )

    def _startup(self, startup: Program) -> Program:
        return ring_startup(
            startup, rank=self.rank, endpoints=self.endpoints, nrings=self.nrings
        )

    def _main(self, main: Program) -> Program:
        return grad_allreduce_main(main, nranks=self.nranks, nrings=self.nrings)


class GradAllReduce(Collective):
    """Gradients are summed over all workers, and each one updates alike."""

    mode = "grad_allreduce"

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)


class LocalSGD(Collective):
    """Workers update on their own; after each step their steps are averaged."""

    mode = "local_sgd"

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)
        self.snapshot_key = "@SNAPSHOT"

    def snapshot_name(self, param_name: str) -> str:
        """What the last agreed value of a parameter is called."""
        return snapshot_name(param_name)

    def _startup(self, startup: Program) -> Program:
        return local_sgd_startup(super()._startup(startup))

    def _main(self, main: Program) -> Program:
        return local_sgd_main(main, nranks=self.nranks, nrings=self.nrings)


class SingleProcessMultiThread(Collective):
    """As `GradAllReduce`, with one communicator over this process's devices."""

    mode = "single_process_multi_thread"
    alone = True

    def __init__(self) -> None:
        super().__init__(1)

    def _startup(self, startup: Program) -> Program:
        return all_startup(startup)
