"""The steps of mixed precision by themselves, for scripts that take them one by one.

Mirrors ``fluid.contrib.mixed_precision.fp16_utils``; `decorate` does all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from fluidx import core, layers
from fluidx.ir import Operator, Program, Variable
from fluidx.ir.desc import BlockDesc, OpDesc, plain_of

from .decorator import detach_casts
from .lists import AutoMixedPrecisionLists
from .rewrite import rewrite
from .scaling import DynamicScale

__all__ = [
    "core",
    "find_op_index",
    "find_true_post_op",
    "find_true_prev_op",
    "layers",
    "rewrite_program",
    "update_loss_scaling",
    "update_role_var_grad",
]


def rewrite_program(main_prog: Program, amp_lists: AutoMixedPrecisionLists) -> None:
    """Put casts into a program without backward ops, as the lists say."""
    rewrite(main_prog, amp_lists)


def update_role_var_grad(
    main_prog: Program, params_grads: Sequence[tuple[Variable, Variable]]
) -> None:
    """Let the makers of gradients in half precision be known as the makers.

    The casts behind them move to the end, to the update.
    """
    detach_casts(list(params_grads))


def update_loss_scaling(
    is_overall_finite: Variable,
    prev_loss_scaling: Variable,
    num_good_steps: Variable,
    num_bad_steps: Variable,
    incr_every_n_steps: Variable,
    decr_every_n_nan_or_inf: Variable,
    incr_ratio: float,
    decr_ratio: float,
) -> None:
    """Append the ops that count this step and change the scale.

    The scale grows after incr_every_n_steps finite steps in a row, and shrinks after
    decr_every_n_nan_or_inf others, never below one.
    """
    DynamicScale(
        prev_loss_scaling,
        incr_every_n_steps,
        decr_every_n_nan_or_inf,
        num_good_steps,
        num_bad_steps,
        incr_ratio,
        decr_ratio,
    ).update(is_overall_finite)


def find_op_index(block_desc: BlockDesc, cur_op_desc: OpDesc) -> int:
    """The place of an op in a block; -1 if it is not there."""
    wanted = plain_of(cur_op_desc)
    for place, op in enumerate(plain_of(block_desc).ops):
        if op is wanted:
            return place
    return -1


def _place(ops: Sequence[Operator], cur_op: Operator) -> int:
    return next(i for i, op in enumerate(ops) if op is cur_op)


def find_true_prev_op(
    ops: Sequence[Operator], cur_op: Operator, var_name: str
) -> Operator | None:
    """The op before this one that makes a variable; None if there is none.

    ValueError: there are several.
    """
    made = [op for op in ops[: _place(ops, cur_op)] if var_name in op.output_arg_names]
    if len(made) > 1:
        raise ValueError(
            "There must be only one previous op that outputs "
            f"{var_name} variable, there are {len(made)}"
        )
    return made[0] if made else None


def find_true_post_op(
    ops: Sequence[Operator], cur_op: Operator, var_name: str
) -> list[Operator] | None:
    """The ops behind this one that read a variable; None if there are none."""
    later = ops[_place(ops, cur_op) + 1 :]
    return [op for op in later if var_name in op.input_arg_names] or None
