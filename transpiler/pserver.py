"""Passes that make a server's main program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fluidx.ir import Block, Operator, Program, Variable
from fluidx.kernels import VarType

from .config import ServerRuntimeConfig, Setting
from .edits import Slots, declare, new_op
from .facts import Facts, names_in, names_out
from .plan import ShardPlan, Slice
from .schedule import copy_schedule, schedule_block

__all__ = ["local_names", "pserver_main", "serving"]

TRAINER_ID = "@TRAINER_ID@"


def local_names(plan: ShardPlan, facts: Facts, piece: Slice) -> dict[str, str]:
    """How the variables of one parameter's update are called for one slice.

    Accumulators keep their names, unless a server holds several slices of one
    parameter: then each has its own.
    """
    param = plan.by_name[piece.param]
    names = {param.name: piece.name, param.grad: piece.grad}
    if plan.clip and param.sliced:
        gathered = (n for n, of in plan.clip.gathered if of == param.name)
        names.update((n, plan.part_name(n, piece)) for n in gathered)
    if len(plan.on(piece.endpoint)[param.name]) > 1:
        for old in _own_vars(facts, param.name):
            names.setdefault(old, f"{old}.block{piece.index}")
    return names


def measuring(ops: Sequence[Operator], wanted: set[str]) -> set[int]:
    """ids of the ops that these values depend on."""
    wanted, found = set(wanted), set()
    for op in reversed(ops):
        if wanted.intersection(names_out(op)):
            found.add(id(op))
            wanted.update(names_in(op))
    return found


def _own_vars(facts: Facts, name: str) -> Iterable[str]:
    """Variables that the update of one parameter writes: nobody else's."""
    for op in facts.updates[name]:
        yield from names_out(op)


def pserver_main(
    program: Program,
    *,
    plan: ShardPlan,
    endpoint: str,
    facts: Facts | None = None,
    runtime: ServerRuntimeConfig | None = None,
) -> Program:
    """One block per local slice updates it; `listen_and_serv` says when.

    The learning-rate schedule, if any, has the first block on every server.
    """
    facts = facts or Facts.of(program, Program(), plan.setting.suffixed)
    return _Server(plan, endpoint, facts, runtime or ServerRuntimeConfig()).made


class _Server:
    def __init__(
        self,
        plan: ShardPlan,
        endpoint: str,
        facts: Facts,
        runtime: ServerRuntimeConfig,
    ) -> None:
        self.plan = plan
        self.setting = plan.setting
        self.endpoint = endpoint
        self.facts = facts
        self.source = facts.main.global_block()
        self.made = Program()
        self.made.random_seed = facts.main.random_seed
        self.made._parameters_on_pservers = plan
        self.main = self.made.global_block()
        self.mine = plan.on(endpoint)
        self.compensated = 0
        self.grad_blocks: list[str] = []
        self.schedule = -1
        blocks = self._two_exchanges() if plan.clip else self._one_exchange()
        if not blocks:
            blocks.append(self.made._create_block(0))
        self.made.current_block_idx = 0
        self._listen(blocks, runtime)

    def _pieces(self) -> Iterator[Slice]:
        """The local slices in order of the ops that update them."""
        for name in self.plan.update_order:
            yield from self.mine.get(name, ())

    def _one_exchange(self) -> list[Block]:
        """The schedule, then a block per slice that merges and updates."""
        blocks: list[Block] = []
        schedule = schedule_block(self.made, self.plan, self.facts)
        if schedule is not None:
            self.schedule = schedule.idx
            blocks.append(schedule)
        parent = len(self.made.blocks) - 1
        for piece in self._pieces():
            block = self._arrival(piece, parent)
            self._copy_ops(block, piece, self.facts.updates[piece.param])
            blocks.append(block)
        return blocks

    def _two_exchanges(self) -> list[Block]:
        """A block per slice merges and measures; one block, run when the factor of
        the global norm comes, makes the learning rate and updates all slices."""
        clip = self.plan.clip
        assert clip is not None
        blocks, later = [], []
        for piece in self._pieces():
            block = self._arrival(piece, 0)
            ops = self.facts.updates[piece.param]
            now = measuring(ops, {n for n, _ in clip.gathered})
            self._copy_ops(block, piece, [op for op in ops if id(op) in now])
            later.append((piece, [op for op in ops if id(op) not in now]))
            blocks.append(block)
        if not blocks:
            return []
        last = self.made._create_block(0)
        like = self.facts.across[0]
        for factor in clip.factors:
            self._declare_sum(factor, self.source.vars[factor])
            self._merge(last, factor, like)
        self.grad_blocks.append(f"{clip.factors[0]}:{last.idx}")
        copy_schedule(last, self.plan, self.facts)
        for piece, ops in later:
            self._copy_ops(last, piece, ops)
        return [*blocks, last]

    def _declare_sum(self, name: str, var: Variable) -> None:
        declare(self.main, name, var.shape, var.dtype, persistable=True)
        for part in self.plan.parts(name):
            declare(self.main, part, var.shape, var.dtype)

    # ------------------------------------------------ one slice

    def _arrival(self, piece: Slice, parent: int) -> Block:
        """The block that runs when a slice's gradient has come: it is merged."""
        block = self.made._create_block(parent)
        self.grad_blocks.append(f"{piece.grad}:{block.idx}")
        self._declare_gradient(piece.param, piece)
        if self.setting.suffixed:
            self._merge(block, piece.grad, self.facts.updates[piece.param][0])
        return block

    def _copy_ops(self, block: Block, piece: Slice, ops: Iterable[Operator]) -> None:
        name = piece.param
        names = local_names(self.plan, self.facts, piece)
        compensated = self.setting.dc_asgd and not self.plan.by_name[name].sparse
        for op in ops:
            made = op.copy_to(block)
            if compensated and made.inputs.get("Param"):
                names = names | self._compensate(block, name, piece, op)
            self._localise(made, name, names, piece)
            block.ops.append(made)

    def _declare_gradient(self, name: str, piece: Slice) -> None:
        param = self.plan.by_name[name]
        kind = VarType.SELECTED_ROWS if param.sparse else VarType.LOD_TENSOR
        declare(self.main, piece.grad, piece.shape, param.dtype, kind, True)
        for part in self.plan.parts(piece.grad):
            declare(self.main, part, piece.shape, param.dtype, kind)

    def _merge(self, block: Block, grad: str, like: Operator) -> None:
        """The mean of what the trainers sent."""
        ins, outs = {"X": self.plan.parts(grad)}, {"Out": [grad]}
        block.ops.append(new_op(block, "sum", ins, outs, {}, 0, like))
        mean = {"scale": 1.0 / self.setting.trainers}
        block.ops.append(new_op(block, "scale", {"X": [grad]}, outs, mean, 0, like))

    def _localise(
        self, op: Operator, name: str, names: Mapping[str, str], piece: Slice
    ) -> None:
        whole = self.plan.by_name[name].shape
        block = op.block
        for slots in (op.inputs, op.outputs):
            for args in slots.values():
                for i, old in enumerate(args):
                    args[i] = names.get(old, old)
                    if args[i] not in block.vars:
                        self._declare(old, args[i], whole, piece.shape)
        given = op.attrs.get("op_role_var")
        if given:
            renamed = self.plan.renamed(0)
            op.attrs["op_role_var"] = [renamed.get(n, n) for n in given]

    def _declare(
        self, old: str, new: str, whole: Sequence[int], part: Sequence[int]
    ) -> None:
        """A variable of the local program; sliced if it looks like the parameter."""
        if new in self.main.vars:
            return
        var = self.source.vars.get(old)
        if var is None:
            return
        facts = server_facts(var, new)
        if var.shape == tuple(whole):
            facts["shape"] = tuple(part)
        self.main.vars[new] = Variable(self.main, **facts)

    # ------------------------------------------------ delay compensation

    def _compensate(
        self, block: Block, name: str, piece: Slice, like: Operator
    ) -> dict[str, str]:
        """grad + grad * grad * (param - param when this trainer fetched it)."""
        param = self.plan.by_name[name]
        copies = [f"{piece.name}.trainer_{t}_bak" for t in range(self.setting.trainers)]
        for copy in copies:
            declare(self.main, copy, piece.shape, param.dtype)
        declare(block, TRAINER_ID, [1], VarType.INT64)
        old = declare(block, f"{piece.name}.local_bak", piece.shape, param.dtype)

        def op(type: str, ins: Slots, out: str) -> str:
            attrs = {"axis": -1} if type.startswith("elementwise") else {}
            made = new_op(block, type, ins, {"Out": [out]}, attrs, 0, like)
            block.ops.append(made)
            return out

        def step(type: str, x: str, y: str) -> str:
            out = f"tmp_dc_output_{self.compensated}"
            self.compensated += 1
            declare(block, out, piece.shape, param.dtype)
            return op(type, {"X": [x], "Y": [y]}, out)

        op("ref_by_trainer_id", {"X": copies, "TrainerId": [TRAINER_ID]}, old)
        way = step("elementwise_sub", piece.name, old)
        way = step("elementwise_mul", way, piece.grad)
        way = step("elementwise_mul", way, piece.grad)
        return {param.grad: step("elementwise_add", piece.grad, way)}

    # ------------------------------------------------ the op that serves

    def _listen(self, blocks: Sequence[Block], runtime: ServerRuntimeConfig) -> None:
        arriving = [
            part
            for pieces in self.mine.values()
            for piece in pieces
            for part in self.plan.parts(piece.grad)
        ]
        if self.plan.clip and self.mine:
            for factor in self.plan.clip.factors:
                arriving += self.plan.parts(factor)
        attrs = serving(self.setting, self.endpoint, runtime) | {
            "pserver_id": self.setting.index(self.endpoint),
            "optimize_blocks": list(blocks),
            "grad_to_block_id": self.grad_blocks,
            "sparse_grad_to_param": [
                f"{piece.grad}:{piece.name}"
                for name, pieces in self.mine.items()
                for piece in pieces
                if self.plan.by_name[name].sparse
            ],
            "lr_decay_block_id": self.schedule,
        }
        like = next((op for ops in self.facts.updates.values() for op in ops), None)
        self.main.ops.append(
            new_op(self.main, "listen_and_serv", {"X": arriving}, {}, attrs, 0, like)
        )


def serving(
    setting: Setting, endpoint: str, runtime: ServerRuntimeConfig
) -> dict[str, Any]:
    """Attributes that every `listen_and_serv` of a cluster has."""
    return {
        "endpoint": endpoint,
        "Fanin": setting.trainers,
        "distributed_mode": setting.distributed_mode,
        "dc_asgd": setting.dc_asgd,
        "lr_decay_block_id": -1,
        "prefetch_var_name_to_block_id": [],
        "checkpint_block_id": -1,
        "rpc_get_thread_num": runtime._rpc_get_thread_num,
        "rpc_send_thread_num": runtime._rpc_send_thread_num,
        "rpc_prefetch_thread_num": runtime._rpc_prefetch_thread_num,
    }


def server_facts(var: Variable, name: str) -> dict[str, Any]:
    """A plain variable like this one, kept between steps unless it is step scopes."""
    facts = Variable.facts(var)
    facts.update(name=name, stop_gradient=False, is_data=False)
    facts["persistable"] = var.type != VarType.STEP_SCOPES
    return facts
