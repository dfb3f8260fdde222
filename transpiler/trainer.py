"""Passes that make a trainer's main program from the local one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from fluidx.ir import Block, Editor, Operator, OpRole, Program
from fluidx.kernels import VarType

from .clipping import ClipPlan
from .config import TranspileError
from .edits import (
    RPC,
    control_names,
    declare,
    drop_vars,
    new_op,
    rename_slots,
    where_of,
)
from .facts import OPTIMIZE, Facts, names_in, names_out, role_of
from .lookups import remote_lookups
from .plan import Sharded, ShardPlan

__all__ = ["leaving_vars", "trainer_main"]

_DIST = int(OpRole.Dist)


def trainer_main(program: Program, *, plan: ShardPlan, trainer_id: int) -> Program:
    """The program sends every gradient to its servers and receives the parameters.

    Updates and the learning-rate schedule are gone; clip ops stay; sparse tables are
    looked up on the servers.
    """
    made = program.clone()
    rewrite_trainer(made, plan, trainer_id)
    return made


def rewrite_trainer(program: Program, plan: ShardPlan, trainer_id: int) -> None:
    """`trainer_main`, in place."""
    _Trainer(program, plan, trainer_id).run()


def leaving_vars(facts: Facts, plan: ShardPlan) -> set[str]:
    """Variables that only the update used: accumulators, learning rates, temporaries.

    A variable that an op which stays still reads or writes is not among them.
    """
    kept = {n for p in plan.parameters for n in (p.name, p.grad)}
    block = facts.main.global_block()
    used: set[str] = set()
    gone: set[str] = set()
    for op in block.ops:
        if not facts.moves(op):
            _touched(op, used)
        elif role_of(op) & OPTIMIZE:
            gone.update(names_in(op))
    return gone - kept - used


def _touched(op: Operator, found: set[str]) -> None:
    found.update(names_in(op))
    found.update(names_out(op))
    for block in op.sub_blocks:
        for inner in block.ops:
            _touched(inner, found)


def _at_backward(op: Operator) -> None:
    """Make an op, and those of the blocks that it runs, part of the backward pass."""
    op.attrs["op_role"] = int(OpRole.Backward)
    for block in op.sub_blocks:
        for inner in block.ops:
            _at_backward(inner)


def _rename_all(block: Block, renamed: Mapping[str, str]) -> None:
    for op in block.ops:
        rename_slots(op, renamed)
        for inner in op.sub_blocks:
            _rename_all(inner, renamed)


class _Trainer:
    def __init__(self, program: Program, plan: ShardPlan, trainer_id: int) -> None:
        self.program = program
        self.block: Block = program.global_block()
        self.plan = plan
        self.setting = plan.setting
        self.id = trainer_id
        self.facts = Facts.of(program, Program(), self.setting.suffixed)
        self.edit = Editor(self.block)
        self.control: Callable[[], str] = control_names(self.block)
        self.controls: dict[str, str] = {}
        self.renamed = dict(plan.renamed(trainer_id))
        for factor in plan.clip.factors if plan.clip else ():
            self.renamed[factor] = plan.sent_name(factor, trainer_id)
        self.like = where_of(op for ops in self.facts.updates.values() for op in ops)

    def run(self) -> None:
        gone = leaving_vars(self.facts, self.plan)
        self._declare_slices()
        self._remove_updates()
        self._send_gradients()
        self._send_counters()
        after = self._barrier(self.plan.sending)
        if self.plan.clip:
            after = self._exchange_norm(self.plan.clip, after)
        received = self._receive(after)
        self._fetched(after, received)
        self._join()
        remote_lookups(self.program, self.plan, self.id, self.edit)
        self.edit.commit()
        self._rename()
        drop_vars(self.block, gone)

    def _append(
        self,
        type: str,
        inputs: Mapping[str, list[str]],
        outputs: Mapping[str, list[str]],
        attrs: Mapping[str, object],
        role: int = RPC,
        pair: tuple[str, str] | tuple[()] = (),
    ) -> None:
        like = self.facts.updates[pair[0]][0] if pair else self.like
        self.edit.append(
            new_op(self.block, type, inputs, outputs, attrs, role, like, pair)
        )

    # ------------------------------------------------ names

    def _pair(self, param: Sharded) -> tuple[str, str]:
        return param.name, self.renamed.get(param.grad, param.grad)

    def _slices(self, param: Sharded) -> list[str]:
        """Variables that hold the slices of a gradient in this program."""
        if not self.setting.sync:
            return [s.grad for s in param.slices]
        return [self.plan.sent_name(s.grad, self.id) for s in param.slices]

    def _declare_slices(self) -> None:
        for param in self.plan.parameters:
            if not param.sliced:
                continue
            kind = VarType.SELECTED_ROWS if param.sparse else VarType.LOD_TENSOR
            for piece, name in zip(param.slices, self._slices(param)):
                declare(self.block, piece.name, piece.shape, param.dtype)
                declare(self.block, name, piece.shape, param.dtype, kind)

    # ------------------------------------------------ what goes

    def _remove_updates(self) -> None:
        for op in self.block.ops:
            if id(op) in self.facts.staying:
                _at_backward(op)
            elif self.facts.moves(op):
                self.edit.remove(op)

    def _rename(self) -> None:
        if not self.renamed:
            return
        for op in self.block.ops:
            rename_slots(op, self.renamed)
            if id(op) in self.facts.staying:  # elsewhere blocks keep the bare names
                for inner in op.sub_blocks:
                    _rename_all(inner, self.renamed)
        for old, new in self.renamed.items():
            var = self.block.vars.pop(old)
            var.name = new
            self.block.vars[new] = var

    # ------------------------------------------------ what is sent

    def _send_gradients(self) -> None:
        behind: dict[int, list[list[Operator]]] = defaultdict(list)
        anchors: dict[int, Operator] = {}
        for param in self.plan.dealt:
            anchor = self.facts.writers[param.grad]
            anchors[id(anchor)] = anchor
            behind[id(anchor)].append(self._sends(param, anchor))
        for key, groups in behind.items():
            for ops in reversed(groups):  # the later parameter's send comes first
                self.edit.after(anchors[key], *ops)

    def _sends(self, param: Sharded, anchor: Operator) -> list[Operator]:
        made = []
        values = [self._pair(param)[1]]
        attrs: dict[str, object] = {"epmap": param.endpoints}
        if self.setting.runtime_split:
            names = [self.plan.sent_name(s.grad, self.id) for s in param.slices]
            attrs |= {"send_varnames": names, "sections": param.sections}
        elif param.sliced:
            values = self._slices(param)
            made.append(self._split(param, values, anchor))
        self.controls[param.name] = self.control()
        outputs = {"Out": [self.controls[param.name]]}
        pair = self._pair(param)
        made.append(
            new_op(self.block, "send", {"X": values}, outputs, attrs, RPC, anchor, pair)
        )
        return made

    def _split(self, param: Sharded, names: list[str], anchor: Operator) -> Operator:
        rows = {"height_sections" if param.sparse else "sections": param.sections}
        type = "split_selected_rows" if param.sparse else "split_byref"
        inputs, outputs = {"X": [param.grad]}, {"Out": names}
        return new_op(self.block, type, inputs, outputs, rows, _DIST, anchor)

    def _send_counters(self) -> None:
        """Without barriers each trainer tells the servers that it made a step."""
        if self.setting.sync:
            return
        for counter in self.plan.counters:
            for trainer in range(self.setting.trainers):
                name = f"{counter}.trainer_{trainer}"
                declare(self.block, name, [1], VarType.INT64, persistable=True)
            name = f"{counter}.trainer_{self.id}"
            self.controls[counter] = self.control()
            attrs = {
                "epmap": list(self.setting.endpoints),
                "merge_add": True,
                "use_send_handler": False,
            }
            if self.setting.runtime_split:
                attrs["send_varnames"] = [name]
            op = new_op(
                self.block,
                "send",
                {"X": [name]},
                {"Out": [self.controls[counter]]},
                attrs,
                RPC,
                self.facts.writers[counter],
                (name, name),
            )
            self.edit.append(op)

    def _barrier(self, sent: Iterable[str]) -> str | None:
        half = self.setting.half_async and self.setting.runtime_split
        if not (self.setting.sync or half):
            return None
        done = self.control()
        attrs = {
            "endpoints": list(self.setting.endpoints),
            "half_async": half and not self.setting.sync,
            "trainer_id": self.id,
        }
        sent = [*sent, *self.plan.counters]
        inputs = {"X": [self.controls[n] for n in sent if n in self.controls]}
        self._append("send_barrier", inputs, {"Out": [done]}, attrs)
        return done

    def _fetched(self, after: str | None, received: list[str]) -> None:
        if self.setting.sync:
            ends = {"endpoints": list(self.setting.endpoints), "trainer_id": self.id}
            inputs, outputs = {"X": [after or ""]}, {"Out": received}
            self._append("fetch_barrier", inputs, outputs, ends)

    # ------------------------------------------------ a norm over all servers

    def _exchange_norm(self, clip: ClipPlan, after: str | None) -> str | None:
        """Receive what each slice adds to the norm, send back the common factor."""
        parts: dict[str, list[str]] = {}
        for name, of in clip.gathered:
            param = self.plan.by_name[of]
            names = [self.plan.part_name(name, s) for s in param.slices]
            var = self.block.vars[name]
            for part in names:
                declare(self.block, part, var.shape, var.dtype)
            parts[name] = names
            attrs = {"epmap": param.endpoints, "trainer_id": self.id}
            control = after or self.controls[of]
            self._append("recv", {"X": [control]}, {"Out": names}, attrs)
        self._fetched(after, [n for names in parts.values() for n in names])
        for op in self.facts.across:
            self.edit.remove(op)
            self._gather(op, parts)
            self.edit.append(op)
        for factor in clip.factors:
            self.controls[factor] = self.control()
            name, to = self.renamed[factor], {"epmap": self.plan.busy}
            done = {"Out": [self.controls[factor]]}
            self._append("send", {"X": [name]}, done, to)
        for param in self.plan.parameters:
            self.controls[param.name] = self.controls[clip.factors[-1]]
        return self._barrier(clip.factors)

    def _gather(self, op: Operator, parts: Mapping[str, list[str]]) -> None:
        """Read the parts of the slices instead of a whole."""
        for slot, args in op.inputs.items():
            if any(len(parts.get(n, ())) > 1 for n in args) and op.type != "sum":
                raise TranspileError(
                    f"{op.type} ({op.where}) looks at several parameters at once; "
                    "with slices only sums can: set config.slice_var_up = False"
                )
            op.inputs[slot] = [p for n in args for p in parts.get(n, [n])]

    # ------------------------------------------------ what comes back

    def _receive(self, after: str | None) -> list[str]:
        received = []
        for param in self.plan.parameters:
            if param.table:
                continue
            attrs = {"epmap": param.endpoints, "trainer_id": self.id}
            names = [s.name for s in param.slices]
            if self.setting.runtime_split:
                attrs["recv_varnames"] = names
                names = [param.name]
            control = after if self.setting.sync else self.controls[param.name]
            inputs, outputs = {"X": [control or ""]}, {"Out": names}
            self._append("recv", inputs, outputs, attrs, pair=self._pair(param))
            received += names
        return received

    def _join(self) -> None:
        if self.setting.runtime_split:
            return
        for param in self.plan.parameters:
            if param.sliced and not param.table:
                names = [s.name for s in param.slices]
                inputs, outputs = {"X": names}, {"Out": [param.name]}
                self._append("concat", inputs, outputs, {"axis": 0}, _DIST)
