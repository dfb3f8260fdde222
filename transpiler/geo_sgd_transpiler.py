"""Geo-SGD: trainers update on their own and exchange differences now and then.

Mirrors ``fluid.transpiler.geo_sgd_transpiler.GeoSgdTranspiler``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fluidx.ir import Block, Editor, Operator, OpRole, Program
from fluidx.kernels import VarType

from .config import DistributeTranspilerConfig, ServerRuntimeConfig, Setting
from .distribute_transpiler import DistributeTranspiler
from .edits import adopt, control_names, declare, new_op
from .facts import LOOKUPS, Facts, is_clip
from .plan import Sharded, ShardPlan
from .pserver import serving
from .startup import receive_parameters

__all__ = [
    "GeoSgdTranspiler",
    "geo_server_main",
    "geo_trainer_main",
    "geo_trainer_startup",
]

COMMUNICATOR = ["127.0.0.1:6164"]  # not a server: the trainer's own communicator
PARAM_INIT = "param_init"


def delta(name: str) -> str:
    """What the difference of a parameter (slice) is called."""
    return f"{name}.delta"


def _is_sparse_lookup(op: Operator) -> bool:
    forward = not op.role & OpRole.Backward
    return forward and op.type in LOOKUPS and bool(op.attrs.get("is_sparse"))


def _declare_delta(block: Block, name: str, like: Sharded, shape: Any) -> None:
    kind = VarType.SELECTED_ROWS if like.sparse else VarType.LOD_TENSOR
    declare(block, delta(name), shape, like.dtype, kind)


def geo_trainer_main(program: Program, *, plan: ShardPlan) -> Program:
    """The whole local program, and at its end the ids of all sparse lookups are told.

    Tables are looked up locally.
    """
    made = program.clone()
    block = made.global_block()
    edit = Editor(block)
    ids, tables, like = [], [], None
    for op in block.ops:
        if is_clip(op):
            op.attrs["op_role"] = int(OpRole.Backward)
        if _is_sparse_lookup(op):
            if op.type == "lookup_table":  # v2 keeps it in the reference; no meaning
                op.attrs["remote_prefetch"] = False
            ids.append(op.inputs["Ids"][0])
            tables.append(op.inputs["W"][0])
            like = like or op
    for param in plan.parameters:
        _declare_delta(block, param.name, param, param.shape)
        for piece in param.slices if param.sliced else ():
            declare(block, piece.name, piece.shape, param.dtype)
            _declare_delta(block, piece.name, param, piece.shape)
    done = control_names(block)()
    attrs = {"send_varnames": tables, "epmap": COMMUNICATOR}
    edit.append(new_op(block, "send", {"X": ids}, {"Out": [done]}, attrs, 0, like))
    edit.commit()
    return made


def geo_trainer_startup(
    program: Program, *, plan: ShardPlan, trainer_id: int
) -> Program:
    """Everything is initialised; dense parameters are then received."""
    made = program.clone()
    block = made.global_block()
    edit = Editor(block)
    control = control_names(block)
    for param in plan.parameters:
        _declare_delta(block, param.name, param, param.shape)
    receive_parameters(block, plan, trainer_id, edit, control())
    declare(block, PARAM_INIT, dtype=VarType.BOOL)
    attrs = {"send_varnames": [PARAM_INIT], "epmap": COMMUNICATOR}
    ins, outs = {"X": [PARAM_INIT]}, {"Out": [control()]}
    edit.append(new_op(block, "send", ins, outs, attrs))
    edit.commit()
    return made


def geo_server_main(
    *, plan: ShardPlan, endpoint: str, facts: Facts, runtime: ServerRuntimeConfig
) -> Program:
    """One block per local slice adds the differences that arrive."""
    made = Program()
    main = made.global_block()
    blocks, keys, sparse = [], [], []
    mine = plan.on(endpoint)
    for param in plan.parameters:
        like = facts.updates[param.name][0]
        for piece in mine.get(param.name, ()):
            declare(main, piece.name, piece.shape, param.dtype, persistable=True)
            _declare_delta(main, piece.name, param, piece.shape)
            block = made._create_block(0)
            ins = {"X": [piece.name, delta(piece.name)]}
            op = new_op(block, "sum", ins, {"Out": [piece.name]}, {}, 0, like)
            block.ops.append(op)
            blocks.append(block)
            keys.append(f"{delta(piece.name)}:{block.idx}")
            if param.sparse:
                sparse.append(f"{delta(piece.name)}:{piece.name}")
    if not blocks:
        blocks.append(made._create_block(0))
    made.current_block_idx = 0
    attrs = serving(plan.setting, endpoint, runtime) | {
        "pserver_id": -1,
        "optimize_blocks": blocks,
        "grad_to_block_id": keys,
        "sparse_grad_to_param": sparse,
    }
    like = next(op for ops in facts.updates.values() for op in ops)
    main.ops.append(new_op(main, "listen_and_serv", {}, {}, attrs, 0, like))
    return made


class GeoSgdTranspiler(DistributeTranspiler):
    """`DistributeTranspiler` for geo-SGD; the same getters."""

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        super().__init__(config)
        if config is None:
            self.config.sync_mode = False
            self.config.geo_sgd_mode = True

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: Any = 1,
        sync_mode: bool = False,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """As of `DistributeTranspiler`; sync_mode has no meaning here."""
        super().transpile(
            trainer_id,
            program,
            pservers,
            trainers,
            False,
            startup_program,
            current_endpoint,
        )

    def _setting(self, pservers: str, trainers: int, sync: bool) -> Setting:
        made = super()._setting(pservers, trainers, sync)
        return replace(
            made,
            geo=True,
            geo_push_nums=self.config.geo_sgd_need_push_nums,
            runtime_split=False,
            dc_asgd=False,
        )

    def _rewrite(self, main: Program, startup: Program, trainer_id: int) -> None:
        plan, _ = self._planned("transpile")
        adopt(main, geo_trainer_main(main, plan=plan))
        made = geo_trainer_startup(startup, plan=plan, trainer_id=trainer_id)
        adopt(startup, made)
        # the runtime finds the servers here: the op names the communicator's endpoint
        startup._parameters_on_pservers = plan

    @property
    def vars_info(self) -> dict[str, dict[str, list[str]]]:
        """What a Communicator of a trainer is told (``push_vars``)."""
        plan, _ = self._planned("vars_info")
        return {
            p.name: {
                "var_names": [s.name for s in p.slices],
                "sections": [str(n) for n in p.sections],
                "epmap": list(p.endpoints),
                "is_sparse": [str(p.table)],
            }
            for p in plan.parameters
        }

    def _server(self, plan: ShardPlan, facts: Facts, endpoint: str) -> Program:
        return geo_server_main(
            plan=plan, endpoint=endpoint, facts=facts, runtime=self.server_config
        )
