"""The tape: gradient ops of one block, collected first and built at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fluidx import kernels
from fluidx.ir import Block, Operator, OpRole, Variable, make_op, unique_name
from fluidx.ir.errors import Where
from fluidx.ir.operator import user_line
from fluidx.ir.roles import CALLSTACK, NAMESCOPE, ROLE, ROLE_VAR
from fluidx.kernels import EMPTY, GRAD, GradContext, OpSpec, VarType, grad_name

__all__ = ["Callback", "Tape", "block_rule", "differentiable"]

Callback = Callable[..., None]

#: how the gradient op of an op with sub-blocks is made, by op type
_block_rules: dict[str, Callable[[Tape, Operator], Sequence[OpSpec]]] = {}


def block_rule(type: str) -> Callable[[Any], Any]:
    """Decorator: the gradient rule of an op with sub-blocks.

    Called as fn(tape, op); it may open gradient blocks in ``tape.program`` and fill
    them with a `Tape` of their own. Returns `OpSpec`s like any gradient rule.
    """

    def register(fn: Any) -> Any:
        _block_rules[type] = fn
        return fn

    return register


def differentiable(op: Operator) -> bool:
    """Whether the op has a gradient rule."""
    if op.type in _block_rules:
        return True
    return kernels.has(op.type) and op.definition.grad is not None


@dataclass
class _Draft:
    """A gradient op that is not built yet."""

    spec: OpSpec
    role: int = int(OpRole.Backward)
    scope: str = "/"
    where: Where | None = None


@dataclass
class _Grad:
    """The parts of one variable's gradient so far, and where the name stands.

    closed: the op that made the variable's value has been differentiated; a further
    part belongs to an earlier value of the same variable. given: the first part
    comes from outside the block, under its plain name.
    """

    parts: list[str]
    places: list[tuple[list[str], int]] = field(default_factory=list)
    closed: bool = False
    given: bool = False


class Tape:
    """Gradient ops of one block, in the order in which they will run."""

    def __init__(
        self,
        block: Block,
        no_grad: frozenset[str],
        times: int = 1,
        nested: bool = False,
    ) -> None:
        self.block = block
        self.program = block.program
        self.no_grad = no_grad
        self.drafts: list[_Draft] = []
        self.var_of: dict[str, str] = {}
        self._grads: dict[str, _Grad] = {}
        self._actual: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        # names of a gradient block are its own: none is taken
        self._prefix = "" if nested else "grad/" * max(times, 2)
        #: variables whose gradient from outside was used
        self.used: set[str] = set()
        self._where = user_line()

    def actual(self, grad: str) -> str:
        """The name under which a gradient is made: prefixed if it is taken."""
        found = self._actual.get(grad)
        if found is None:
            taken = self.block._find_var_recursive(grad) is not None
            found = self._actual[grad] = self._prefix + grad if taken else grad
        return found

    def grad_of(self, name: str) -> str | None:
        """The name of a variable's finished gradient, None if there is none."""
        grad = self.actual(grad_name(name))
        found = self._grads.get(grad)
        return found.parts[0] if found is not None else None

    # ------------------------------------------------ seeds

    def seed(self, target: Variable, specs: list[OpSpec], role: int) -> None:
        """Start at a target with a gradient of ones; the last spec makes it."""
        grad = grad_name(target.name)
        taken = self.block._find_var_recursive(grad) is not None
        self._actual[grad] = unique_name.generate(grad) if taken else grad
        self.var_of[self._actual[grad]] = target.name
        out = specs[-1].outputs["Out"]
        out[:] = [self._actual[grad]]
        self.drafts += [_Draft(s, role, where=self._where) for s in specs]
        self._define(out[0], out, 0)

    def seed_with(self, target: str, given: str) -> None:
        """Start at a target with a variable of the user's as its gradient."""
        self._grads[self.actual(grad_name(target))] = _Grad([given])

    def expect(self, name: str) -> None:
        """The gradient of this variable comes from outside the block."""
        grad = grad_name(name)
        self.var_of[grad] = name
        self._grads[grad] = _Grad([grad], given=True)

    def leaves(self, name: str) -> bool:
        """Whether there is a gradient of the value that a variable had before."""
        found = self._grads.get(self.actual(grad_name(name)))
        return found is not None and not found.closed

    # ------------------------------------------------ ops

    def differentiate(
        self, op: Operator, again: Mapping[str, str] | None = None
    ) -> set[str]:
        """Add the gradient ops of a forward op; returns the values that they read.

        again: variables that are computed anew for the backward pass, and the names
        under which that happens.
        """
        own = {*op.input_arg_names, *op.output_arg_names}
        read: set[str] = set()
        for spec in self._specs(op):
            made = self._add(spec, own, op)
            if made is None:
                continue
            for args in made.inputs.values():
                read.update(n for n in args if n in own)
                if again:
                    args[:] = [again.get(n, n) if n in own else n for n in args]
        return read

    def replay(
        self, ops: Sequence[Operator], again: Mapping[str, str], at: int
    ) -> None:
        """Add forward ops once more, in front of draft `at`."""
        self.var_of.update((new, old) for old, new in again.items())
        made = []
        for op in ops:
            ins, outs = (
                {k: [again.get(n, n) for n in v] for k, v in slots.items()}
                for slots in (op.inputs, op.outputs)
            )
            scope = str(op.attrs.get(NAMESCOPE, "/"))
            spec = OpSpec(op.type, ins, outs, dict(op.attrs))
            made.append(_Draft(spec, scope=scope, where=op.where))
        self.drafts[at:at] = made

    def close(self, op: Operator) -> None:
        """Behind an op that overwrites variables, earlier values are meant."""
        if op.sub_blocks:  # may or may not run: no clean overwriting
            return
        reads = op.input_arg_names
        for name in op.output_arg_names:
            grad = self._grads.get(self.actual(grad_name(name)))
            if grad is not None and name not in reads:
                grad.closed = not self._is_array(self.actual(grad_name(name)))

    def _specs(self, op: Operator) -> Sequence[OpSpec]:
        rule = _block_rules.get(op.type)
        if rule is not None:
            return rule(self, op)
        attrs = {**op.definition.defaults, **op.attrs}
        context = GradContext(op.type, op.inputs, op.outputs, attrs, self.no_grad)
        specs: Sequence[OpSpec] = op.definition.grad_specs(context)
        return specs

    def _add(self, spec: OpSpec, own: set[str], op: Operator) -> OpSpec | None:
        outputs = {k: [self._out(n) for n in v] for k, v in spec.outputs.items()}
        outputs = {k: v for k, v in outputs.items() if any(n != EMPTY for n in v)}
        if not outputs:
            return None
        inputs = {k: list(v) for k, v in spec.inputs.items()}
        arriving = []
        for args in inputs.values():
            for i, name in enumerate(args):
                if name.endswith(GRAD) and name not in own:
                    args[i] = self.actual(name)
                    self.var_of.setdefault(args[i], name[: -len(GRAD)])
                    arriving.append((args, i))
        grads = [args[i] for args, i in arriving]
        if grads and not any(self._is_made(g) for g in grads):
            return None
        for grad in dict.fromkeys(grads):
            self._sum_up(grad)
        for grad in dict.fromkeys(grads):
            if not self._is_made(grad) and not self._is_filled_in(grad, op):
                self._fill_zeros(grad)
        for args, i in arriving:
            self._use(args, i)
        scope = str(op.attrs.get(NAMESCOPE, "/"))
        made = OpSpec(spec.type, inputs, outputs, dict(spec.attrs))
        self.drafts.append(_Draft(made, scope=scope, where=op.where))
        for args in outputs.values():
            for i, grad in enumerate(args):
                if grad in grads and grad in self._grads:
                    self._redefine(grad, args, i)
                elif GRAD in grad:  # increment counts a variable itself back
                    self._define(grad, args, i)
        return made

    def _out(self, grad: str) -> str:
        if grad == EMPTY or not grad.endswith(GRAD):
            return grad
        made = self.actual(grad)
        self.var_of[made] = grad[: -len(GRAD)]
        return made

    # ------------------------------------------------ parts and sums

    def _is_made(self, grad: str) -> bool:
        found = self._grads.get(grad)
        return found is not None and not found.closed

    def _define(self, grad: str, args: list[str], i: int) -> None:
        """args[i] is a new part of this gradient."""
        found = self._grads.get(grad)
        if found is None or found.closed:
            self._grads.pop(grad, None)
            self._grads[grad] = _Grad([grad], [(args, i)])
            return
        if found.given and self._is_array(grad):
            self.used.add(self.var_of[grad])
            return  # its elements add up in place
        if found.parts == [grad] and not found.given:
            # the first part gives up the plain name
            first = self._part(grad)
            for place, k in found.places:
                place[k] = first
            found.parts, found.places = [first], []
        args[i] = self._part(grad)
        found.parts.append(args[i])

    def _is_array(self, grad: str) -> bool:
        var = self.block._find_var_recursive(self.var_of.get(grad, ""))
        return var is not None and var.type == VarType.LOD_TENSOR_ARRAY

    def _redefine(self, grad: str, args: list[str], i: int) -> None:
        """args[i] takes the place of the gradient that the same op reads."""
        found = self._grads[grad]
        if found.parts == [grad]:
            found.places.append((args, i))
        else:
            self._grads[grad] = _Grad([grad], [(args, i)], given=found.given)

    def _part(self, grad: str) -> str:
        number = self._counts.get(grad, 0)
        self._counts[grad] = number + 1
        part = f"{grad}@RENAME@block{self.block.idx}@{number}"
        self.var_of[part] = self.var_of[grad]
        return part

    def _is_filled_in(self, grad: str, op: Operator) -> bool:
        """Whether the gradient op itself takes a missing gradient as zero: loops do so
        for what they go on with (``backward._find_no_grad_vars``)."""
        return op.type == "while" and self.var_of[grad] in op.input("X")

    def _use(self, args: list[str], i: int) -> None:
        found = self._grads.get(args[i])
        if found is None:
            return  # see `_is_filled_in`
        if found.given:
            self.used.add(self.var_of[args[i]])
        if found.parts == [args[i]]:
            found.places.append((args, i))
        else:
            args[i] = found.parts[0]

    def _sum_up(self, grad: str) -> None:
        found = self._grads.get(grad)
        if found is None or len(found.parts) < 2:
            return
        if found.given:
            self.used.add(self.var_of[grad])
        out = [grad]
        spec = OpSpec("sum", {"X": found.parts}, {"Out": out}, {})
        self.drafts.append(_Draft(spec, where=self._where))
        found.parts = [grad]
        found.places = [(out, 0)]

    def _fill_zeros(self, grad: str) -> None:
        out = [grad]
        source = self.var_of[grad].removeprefix(self._prefix).split(GRAD)[0]
        spec = OpSpec("fill_zeros_like", {"X": [source]}, {"Out": out}, {})
        self.drafts.append(_Draft(spec, where=self._where))
        self._define(grad, out, 0)

    def finish(self) -> None:
        """Add up what is still in parts."""
        for grad in list(self._grads):
            self._sum_up(grad)

    # ------------------------------------------------ building

    def build(self, callbacks: Sequence[Callback] = ()) -> dict[str, Operator]:
        """Append the ops to the block; returns the last writer of each gradient."""
        writers: dict[str, Operator] = {}
        for draft in self.drafts:
            op = self._build(draft)
            for name in op.output_arg_names:
                writers[name] = op
            for callback in callbacks:
                callback(block=self.block, context=self.var_of)
        self.program._touch()
        return writers

    def build_block(self, parent: Block) -> Block:
        """Build the ops into a new gradient block of the one that was taped."""
        current = self.program.current_block_idx
        made = self.program._create_block(parent.idx)
        self.program.current_block_idx = current
        made.forward_block_idx = self.block.idx
        self.block = made
        self.build()
        return made

    def _build(self, draft: _Draft) -> Operator:
        spec, block = draft.spec, self.block
        attrs = {
            k: v.build_block(block) if isinstance(v, Tape) else v
            for k, v in spec.attrs.items()
            if k not in (ROLE, ROLE_VAR, CALLSTACK, NAMESCOPE)
        }
        attrs[NAMESCOPE] = draft.scope
        for name in (n for args in spec.outputs.values() for n in args):
            if name != EMPTY and block._find_var_recursive(name) is None:
                self._declare(name)
        op = make_op(
            block,
            spec.type,
            spec.inputs,
            spec.outputs,
            attrs,
            role=draft.role,
            where=draft.where,
        )
        op.infer()
        block.ops.append(op)
        for name in op.output_arg_names:
            var = block._find_var_recursive(name)
            if var is not None:
                var.op = op
        return op

    def _declare(self, grad: str) -> None:
        source = self.block._find_var_recursive(self.var_of.get(grad, ""))
        if source is None:
            self.block.create_var(name=grad)
        else:
            self.block.create_var(
                name=grad,
                shape=source.shape,
                dtype=source.dtype,
                lod_level=source.lod_level,
            )
