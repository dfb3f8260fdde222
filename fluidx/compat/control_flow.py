"""Helper classes of ``fluid.layers.control_flow`` that scripts reach for.

`While`, `IfElse` and their like are built otherwise here; these build the same ops
with the reference's names: blocks as context managers, splitting and merging of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from fluidx.ir import Block, Operator, Program, Variable
from fluidx.ir.errors import EnforceNotMet
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.branches import append_conditional_block
from fluidx.layers.emit import check_variable, emit
from fluidx.layers.loops import While
from fluidx.layers.loss import cross_entropy
from fluidx.layers.tensor import assign

__all__ = [
    "BlockGuard",
    "ConditionalBlock",
    "ConditionalBlockGuard",
    "StaticRNNMemoryLink",
    "WhileGuard",
    "copy_var_to_parent_block",
    "cross_entropy2",
    "merge_lod_tensor",
    "select_input",
    "select_output",
    "split_lod_tensor",
]


class BlockGuard:
    """Ops built inside go into a new sub-block of a program's current block."""

    def __init__(self, main_program: Program) -> None:
        if not isinstance(main_program, Program):
            raise TypeError("BlockGuard takes a program")
        self.main_program = main_program

    def __enter__(self) -> Block | None:
        return self.main_program._create_block()

    def __exit__(self, *exc: Any) -> bool:
        self.main_program._rollback()
        return exc[0] is None


class ConditionalBlock:
    """A block that runs if a condition holds (``control_flow.ConditionalBlock``).

    inputs: the condition, a Variable in a list; a bool of one element with
    is_scalar_condition, else the block runs if the Variable has any row.

        with ConditionalBlock([condition], is_scalar_condition=True).block():
            layers.assign(value, out)
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        is_scalar_condition: bool = False,
        name: str | None = None,
    ) -> None:
        for each in inputs:
            check_variable(each, "inputs", "ConditionalBlock")
        self.inputs = list(inputs)
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block", name=name)

    def block(self) -> ConditionalBlockGuard:
        """What is built inside it is the block."""
        return ConditionalBlockGuard(self)

    def complete(self) -> None:
        """Append the op of the block that is current; the guard does that."""
        program = self.helper.main_program
        append_conditional_block(
            program.current_block(), self.inputs, self.is_scalar_condition
        )

    def need_append_conditional_block_grad(self, inside_block: Block) -> bool:
        """Never: `append_backward` makes the gradients of conditional blocks."""
        return False

    def append_conditional_block_grad(
        self, parent_block: Block, inside_block: Block, conditional_block_op: Operator
    ) -> NoReturn:
        """EnforceNotMet: see `need_append_conditional_block_grad`."""
        raise EnforceNotMet(
            "append_conditional_block_grad: append_backward makes the gradients of "
            "conditional blocks"
        )


class ConditionalBlockGuard(BlockGuard):
    """What `ConditionalBlock.block` gives."""

    def __init__(self, block: ConditionalBlock) -> None:
        if not isinstance(block, ConditionalBlock):
            raise TypeError(
                f"ConditionalBlockGuard takes a ConditionalBlock, got {block!r:.60}"
            )
        super().__init__(block.helper.main_program)
        self.block = block

    def __exit__(self, *exc: Any) -> bool:
        if exc[0] is None:
            self.block.complete()
        return super().__exit__(*exc)


class WhileGuard:
    """What is built inside is the body of a `While`."""

    def __init__(self, while_op: While) -> None:
        if not isinstance(while_op, While):
            raise TypeError("WhileGuard takes a while op")
        self.while_op = while_op
        self._inner = while_op.block()

    def __enter__(self) -> None:
        self._inner.__enter__()

    def __exit__(self, *exc: Any) -> Any:
        return self._inner.__exit__(*exc)


class StaticRNNMemoryLink:
    """What a `StaticRNN` knows of one memory: where it begins, before, after a step."""

    def __init__(self, init: Any, pre_mem: Any, mem: Any = None) -> None:
        self.init = init
        self.pre_mem = pre_mem
        self.mem = mem


def copy_var_to_parent_block(
    var: Variable | None, layer_helper: LayerHelper
) -> Variable | None:
    """A variable of the block around the current one, set from within; None for None.

    A tensor array that is not of this block is handed on as it is.
    """
    if var is None:
        return None
    current = layer_helper.main_program.current_block()
    around = current.parent
    if around is None:
        raise ValueError("copy_var_to_parent_block: the current block is in no other")
    if var.type == VarType.LOD_TENSOR_ARRAY and var.block is not current:
        return var
    made = around.create_var(dtype=var.dtype, shape=var.shape, type=var.type)
    return assign(var, made)


def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> list[Variable]:
    """[rows where mask is true, the other rows]; rows or sequences of one LoD level.

    mask: bool, shape [rows, 1]. Mirrors ``control_flow.split_lod_tensor``.
    """
    check_variable(input, "input", "split_lod_tensor")
    check_variable(mask, "mask", "split_lod_tensor")
    helper = LayerHelper("split_lod_tensor")
    yes, no = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    helper.append_op(
        "split_lod_tensor",
        {"X": input, "Mask": mask},
        {"OutTrue": yes, "OutFalse": no},
        {"level": level},
    )
    return [yes, no]


def merge_lod_tensor(
    in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0
) -> Variable:
    """The rows of two tensors, put together as `split_lod_tensor` took them apart.

    x: what was split. Mirrors ``control_flow.merge_lod_tensor``.
    """
    inputs = {"X": x, "Mask": mask, "InTrue": in_true, "InFalse": in_false}
    return emit("merge_lod_tensor", inputs, {"level": level}, dtype=in_true.dtype)


def select_input(inputs: Sequence[Variable], mask: Variable) -> Variable:
    """The input whose number `mask` (int32, shape [1]) holds."""
    helper = LayerHelper("select_input")
    first = check_variable(inputs[0], "inputs", "select_input")
    made = helper.create_variable(dtype=first.dtype, shape=first.shape, type=first.type)
    helper.append_op("select_input", {"X": list(inputs), "Mask": mask}, {"Out": made})
    return made


def select_output(
    input: Variable, outputs: Sequence[Variable], mask: Variable
) -> Sequence[Variable]:
    """Copy the input to the output whose number `mask` holds; returns the outputs."""
    helper = LayerHelper("select_output")
    slots = {"X": input, "Mask": mask}
    helper.append_op("select_output", slots, {"Out": list(outputs)})
    return outputs


def cross_entropy2(
    input: Variable, label: Variable, ignore_index: int = -100
) -> Variable:
    """`cross_entropy` of class numbers; mirrors ``layers.loss.cross_entropy2``."""
    return cross_entropy(input, label, False, ignore_index)
