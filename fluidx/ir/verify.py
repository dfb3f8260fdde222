"""Is a program sound? Checks that need one program only, with readable findings.

    for problem in verify(program):
        print(problem)
    check(program)          # or raise all of them as one BuildError

What is checked, by `Problem.kind`:

    op          the type is known
    slot        slots are the op's own, filled as they must be
    attribute   attributes are the op's own, of the right kind, none missing
    block       blocks that attributes name are blocks of this program
    variable    every variable that an op names is declared
    order       nothing is read before it is made, unless it lasts or is fed
    inference   shapes and element types are what inference finds
    duplicate   no op writes a variable twice at once
    role        the variables in ``op_role_var`` exist
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fluidx import kernels
from fluidx.kernels import EMPTY, In, Meta, Out, VarType

from .attrs import coerce, is_block, kind_of
from .errors import BuildError, Where
from .order import check_order
from .roles import COMMON

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator
    from .program import Program

__all__ = ["Problem", "check", "verify"]

_TENSORS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)


@dataclass(frozen=True)
class Problem:
    """One finding. `op` counts in its block; `variable` is "" where none is meant."""

    kind: str
    message: str
    block: int = 0
    op: int | None = None
    op_type: str = ""
    variable: str = ""
    where: Where | None = None

    def __str__(self) -> str:
        place = f"block {self.block}"
        if self.op is not None:
            place += f", op {self.op} ({self.op_type})"
        text = f"{place}: {self.message}"
        return f"{text}\n  built at {self.where}" if self.where else text


def check(program: Program, feeds: Collection[str] | None = None) -> None:
    """Raise BuildError with everything that `verify` finds, if it finds something."""
    found = verify(program, feeds)
    if found:
        head = (
            "the program has a problem"
            if len(found) == 1
            else (f"the program has {len(found)} problems")
        )
        raise BuildError("\n".join([f"{head}:", *map(str, found)]))


def verify(program: Program, feeds: Collection[str] | None = None) -> list[Problem]:
    """Everything that is wrong with a program, in the order of its ops.

    feeds: names that will be fed besides data variables. None: those that no op
    writes, in a program that marks no variable as data (saved programs do not say).
    """
    found: list[Problem] = []
    facts = _Facts(program)
    for block in program.blocks:
        for index, op in enumerate(block.ops):
            found += _op_problems(op, block, index, facts)
    found += check_order(program, feeds, _problem)
    return sorted(found, key=lambda p: (p.block, -1 if p.op is None else p.op))


def _problem(
    kind: str, op: Operator, block: Block, index: int, message: str, variable: str = ""
) -> Problem:
    return Problem(kind, message, block.idx, index, op.type, variable, op.where)


class _Facts:
    """What checks of single ops need to know of the whole program."""

    def __init__(self, program: Program) -> None:
        self.blocks = {id(b) for b in program.blocks}
        self.names = {name for b in program.blocks for name in b.vars}
        owners = [(op.type, b.idx) for op in program.all_ops() for b in op.sub_blocks]
        #: blocks that differentiate others see variables that lookup does not
        self.gradient_blocks = {i for type, i in owners if type.endswith("_grad")}
        #: servers hold slices, and keep the names of the wholes in op_role_var
        self.serves = any(type == "listen_and_serv" for type, _ in owners)


def _op_problems(
    op: Operator, block: Block, index: int, facts: _Facts
) -> Iterator[Problem]:
    def problem(kind: str, message: str, variable: str = "") -> Problem:
        return _problem(kind, op, block, index, message, variable)

    for name in _doubles(op):
        yield problem("duplicate", f"writes {name!r} twice", name)
    for text in _block_faults(op, facts):
        yield problem("block", text)
    if not kernels.has(op.type):
        yield problem("op", f"fluidx has no op {op.type!r}")
        return
    sound = block.idx not in facts.gradient_blocks
    for kind, text in [*_slot_faults(op), *_attr_faults(op)]:
        sound = False
        yield problem(kind, text)
    lookup = block._find_var_recursive
    if sound and all(lookup(n) is not None for n in _named(op)):
        for name, text in _inference_faults(op):
            yield problem("inference", text, name)
    for name in op.role_var:
        if name not in facts.names and not facts.serves:
            yield problem("role", f"op_role_var: no variable {name!r}", name)


def _named(op: Operator) -> list[str]:
    return [n for n in op.input_arg_names + op.output_arg_names if n != EMPTY]


def _doubles(op: Operator) -> list[str]:
    names = [n for n in op.output_arg_names if n != EMPTY]
    if len(set(names)) == len(names):
        return []
    return sorted(n for n, count in Counter(names).items() if count > 1)


def _block_faults(op: Operator, facts: _Facts) -> Iterator[str]:
    for name, value in op.attrs.items():
        for item in value if isinstance(value, list) else (value,):
            if not is_block(item):
                continue
            if id(item) not in facts.blocks:
                yield f"attribute {name} names a block that is not of this program"
            elif item.idx <= op.block.idx:
                yield f"attribute {name} names block {item.idx}, which is not inside"


def _slot_faults(op: Operator) -> Iterator[tuple[str, str]]:
    definition = kernels.find(op.type)
    sides: tuple[tuple[str, Mapping[str, Sequence[str]], Sequence[In | Out]], ...] = (
        ("input", op.inputs, definition.ins),
        ("output", op.outputs, definition.outs),
    )
    for side, given, slots in sides:
        known = {s.name: s for s in slots}
        for name, args in given.items():
            if name not in known and args:
                yield "slot", f"has no {side} {name!r}; it has {list(known)}"
            elif len(args) > 1 and not known[name].duplicable:
                yield "slot", f"{side} {name} takes one variable, got {list(args)}"
        for slot in slots:
            if side == "input" and op.needs(slot) and not given.get(slot.name):
                yield "slot", f"{side} {slot.name} is missing"


def _attr_faults(op: Operator) -> Iterator[tuple[str, str]]:
    definition = kernels.find(op.type)
    for name, value in op.attrs.items():
        # names like @THIS@ are notes to the engine that any op may carry
        if name not in definition.attrs and name not in COMMON and name[:1] != "@":
            known = sorted(definition.attrs)
            yield "attribute", f"has no attribute {name!r}; it has {known}"
            continue
        try:
            coerce(kind_of(op.type, name, value), value)
        except TypeError as error:
            yield "attribute", f"attribute {name}: {error}"
    for name, attr in definition.attrs.items():
        if attr.default is None and name not in op.attrs and not definition.forward:
            yield "attribute", f"attribute {name} is missing"


def _inference_faults(op: Operator) -> Iterator[tuple[str, str]]:
    """(variable, text) for outputs whose facts are not what inference finds."""
    try:
        inferred = op.inferred()
    except BuildError as error:
        text = str(error).partition("\n")[0].removeprefix(f"op {op.type}: ")
        yield "", text
        return
    for slot, metas in inferred.items():
        for name, meta in zip(op.outputs.get(slot, ()), metas):
            var = op.block._find_var_recursive(name)
            if var is None or var.type not in _TENSORS or meta.kind not in _TENSORS:
                continue
            text = _differs(var.meta, meta)
            if text:
                yield name, f"{slot} {name}: {text}"


def _differs(declared: Meta, inferred: Meta) -> str:
    """What two facts say that cannot both be; unknown sizes agree with any."""
    if declared == replace(declared, shape=(), dtype=VarType.FP32):
        return ""  # nobody told this variable anything
    if declared.shape and inferred.shape:
        pairs = list(zip(declared.shape, inferred.shape))
        same = len(declared.shape) == len(inferred.shape)
        if not same or any(a != b and -1 not in (a, b) for a, b in pairs):
            return (
                f"declared with shape {list(declared.shape)}, "
                f"inferred is {list(inferred.shape)}"
            )
    if declared.dtype != inferred.dtype:
        return f"declared as {declared.dtype.name}, inferred is {inferred.dtype.name}"
    return ""
