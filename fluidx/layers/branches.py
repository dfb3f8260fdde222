"""Branches: `cond`, `case`, `switch_case`, `Switch`, `IfElse`'s conditional block."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fluidx.ir import Block, Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.control_flow import equal, logical_and, logical_not
from fluidx.layers.emit import check_dtype, check_variable, is_integer
from fluidx.layers.sub_blocks import (
    check_callable,
    check_condition,
    flatten,
    outside,
    pack,
    step_scopes,
    structure,
    sub_block,
)
from fluidx.layers.tensor import assign, cast, fill_constant

__all__ = ["Switch", "case", "cond", "switch_case"]

Branch = Callable[[], Any]


@contextlib.contextmanager
def conditional_block(
    helper: LayerHelper, conditions: Sequence[Variable], is_scalar: bool = True
) -> Iterator[Block]:
    """What is built inside runs only if the condition holds."""
    program = helper.main_program
    with sub_block(program) as inner:
        yield inner
    append_conditional_block(inner, conditions, is_scalar)


def append_conditional_block(
    inner: Block, conditions: Sequence[Variable], is_scalar: bool
) -> None:
    """Append the op that runs a block, in the block around it."""
    reads, writes = outside(inner)
    around = inner.parent
    assert around is not None
    around.append_op(
        "conditional_block",
        {"Cond": list(conditions), "Input": reads},
        {"Out": writes, "Scope": step_scopes(around)},
        {"sub_block": inner, "is_scalar_condition": is_scalar},
    )


# --- cond ----------------------------------------------------------------------------


def cond(
    pred: Variable,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    name: str | None = None,
) -> Any:
    """What true_fn returns if `pred` is true, else what false_fn returns.

    pred: bool, shape [1]. Both functions are called while the program is built, one
    of their blocks is run. They return nothing, or Variables that are nested alike
    and of equal dtypes; a branch that was not taken gets gradients of zero. TypeError,
    ValueError if the results do not go together. Mirrors ``fluid.layers.cond``.

    >>> import fluidx as fluid
    >>> x = fluid.layers.fill_constant([1], "float32", 3.0)
    >>> small = fluid.layers.less_than(x, fluid.layers.zeros([1], "float32"))
    >>> y = fluid.layers.cond(small, lambda: -x, lambda: x * 2.0)
    >>> fluid.Executor().run(fetch_list=[y])
    [array([6.], dtype=float32)]
    """
    check_condition(pred, "pred", "cond")
    helper = LayerHelper("cond", name=name)
    results: list[Any] = []
    for fn, arg in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if fn is None:
            results.append(None)
            continue
        check_callable(fn, arg, "cond")
        chosen = pred if arg == "true_fn" else logical_not(pred)
        with conditional_block(helper, [chosen]) as inner:
            results.append(_handed_out(inner, fn(), arg))
    if all(r is None for r in results):
        return None
    return _merged(helper, pred, *results)


def _handed_out(inner: Block, result: Any, arg: str) -> Any:
    """Variables around the block that take what a branch returns."""
    if result is None:
        return None
    around = inner.parent
    assert around is not None
    made = []
    for leaf in flatten(result):
        var = check_variable(leaf, f"what {arg} returns", "cond")
        if var.type == VarType.LOD_TENSOR_ARRAY and var.block is not inner:
            made.append(var)
            continue
        out = around.create_var(shape=var.shape, dtype=var.dtype, type=var.type)
        made.append(assign(var, out))
    return pack(result, made)


def _merged(helper: LayerHelper, pred: Variable, yes: Any, no: Any) -> Any:
    if yes is None or no is None:
        which = "true_fn" if yes is None else "false_fn"
        raise ValueError(
            f"cond: {which} returns nothing, but the other function returns "
            f"{yes if no is None else no!r:.200}"
        )
    if structure(yes) != structure(no):
        raise ValueError(
            f"cond: true_fn and false_fn return differently nested results: "
            f"{yes!r:.200} and {no!r:.200}"
        )
    mask = cast(pred, "int32")
    pairs = zip(flatten(yes), flatten(no))
    return pack(yes, [_select(helper, mask, a, b) for a, b in pairs])


def _select(helper: LayerHelper, mask: Variable, a: Variable, b: Variable) -> Variable:
    if a.dtype != b.dtype:
        raise TypeError(
            f"cond: true_fn returns {a.name} of {a.dtype.name}, false_fn {b.name} of "
            f"{b.dtype.name}"
        )
    if a is b:
        return a
    made = helper.create_variable(shape=b.shape, dtype=b.dtype, type=b.type)
    helper.append_op("select_input", {"X": [b, a], "Mask": mask}, {"Out": made})
    return made


# --- case, switch_case ---------------------------------------------------------------


def case(
    pred_fn_pairs: Sequence[tuple[Variable, Branch]],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """What the function of the first true predicate returns.

    default: taken if none is true; the last function if it is not given. Mirrors
    ``fluid.layers.case``.

    >>> import fluidx as fluid
    >>> three, five = (fluid.layers.fill_constant([1], "float32", v) for v in (3, 5))
    >>> y = fluid.layers.case(
    ...     [(fluid.layers.greater_than(three, five), lambda: three - five),
    ...      (fluid.layers.less_than(three, five), lambda: five - three)],
    ...     default=lambda: three * 0.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [2.0]
    """
    if not isinstance(pred_fn_pairs, (list, tuple)) or not pred_fn_pairs:
        raise TypeError(
            "case: pred_fn_pairs must be a list of (Variable, function), got "
            f"{pred_fn_pairs!r:.60}"
        )
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"case: pred_fn_pairs must hold (Variable, function), got {pair!r:.60}"
            )
        check_condition(pair[0], "a predicate", "case")
        check_callable(pair[1], "a function", "case")
    pairs = list(pred_fn_pairs)
    if default is None:
        default = pairs.pop()[1]
    last = check_callable(default, "default", "case")
    for pred, fn in reversed(pairs[1:]):
        last = partial(cond, pred, fn, last)
    if not pairs:
        return last()
    return cond(pairs[0][0], pairs[0][1], last, name)


def switch_case(
    branch_index: Variable,
    branch_fns: Any,
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """What the function of number `branch_index` returns.

    branch_index: int32, int64 or uint8, shape [1]. branch_fns: a dict, or a list of
    (number, function), or of functions, which count from 0. default: for all other
    numbers; the function of the largest number if it is not given. Mirrors
    ``fluid.layers.switch_case``.

    >>> import fluidx as fluid
    >>> which = fluid.layers.fill_constant([1], "int32", 2)
    >>> value = lambda v: lambda: fluid.layers.fill_constant([1], "float32", v)
    >>> y = fluid.layers.switch_case(which, {1: value(10), 2: value(20)}, value(30))
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [20.0]
    """
    allowed = (VarType.INT32, VarType.INT64, VarType.UINT8)
    check_dtype(branch_index, "branch_index", "switch_case", allowed)
    branches = _numbered(branch_fns)
    last = branches[-1][1] if default is None else default
    check_callable(last, "default", "switch_case")
    if default is None:
        branches.pop()
    if branch_index.dtype != VarType.INT64:
        branch_index = cast(branch_index, "int64")
    for number, fn in branches:
        same = equal(branch_index, fill_constant([1], "int64", number))
        last = partial(cond, same, fn, last)
    return last()


def _numbered(branch_fns: Any) -> list[tuple[int, Branch]]:
    """(number, function) pairs by number."""
    if isinstance(branch_fns, dict):
        branch_fns = list(branch_fns.items())
    if not isinstance(branch_fns, (list, tuple)) or not branch_fns:
        raise TypeError(
            f"switch_case: branch_fns must be a list or a dict, got {branch_fns!r:.60}"
        )
    if all(callable(fn) for fn in branch_fns):
        branch_fns = list(enumerate(branch_fns))
    for pair in branch_fns:
        if not isinstance(pair, tuple) or len(pair) != 2 or not is_integer(pair[0]):
            raise TypeError(
                "switch_case: branch_fns must hold (integer, function), got "
                f"{pair!r:.60}"
            )
        check_callable(pair[1], "a function", "switch_case")
    numbers = [n for n, _ in branch_fns]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"switch_case: a number occurs twice in {sorted(numbers)}")
    return sorted(branch_fns, key=lambda pair: pair[0])


# --- Switch --------------------------------------------------------------------------


class Switch:
    """Blocks of which the first with a true condition runs.

    Blocks write into variables from outside. Mirrors ``fluid.layers.Switch``.

    >>> import fluidx as fluid
    >>> x = fluid.layers.fill_constant([1], "float32", 3.0)
    >>> out = fluid.layers.create_global_var([1], 0.0, "float32", True)
    >>> with fluid.layers.Switch() as switch:
    ...     with switch.case(fluid.layers.less_than(x, x)):
    ...         out = fluid.layers.assign(x, out)
    ...     with switch.default():
    ...         out = fluid.layers.assign(x * 2.0, out)
    >>> fluid.Executor().run(fetch_list=[out])
    [array([6.], dtype=float32)]
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("switch", name=name)
        self.inside_scope = False
        #: true where none of the cases so far was
        self._others: Variable | None = None

    def case(self, condition: Variable) -> contextlib.AbstractContextManager[Block]:
        """What is built inside runs if `condition` is true and no earlier one is."""
        self._check_inside("case")
        check_condition(condition, "condition", "Switch.case")
        none = logical_not(condition)
        if self._others is not None:
            earlier = self._others
            none = logical_and(earlier, none)
            condition = logical_and(earlier, condition)
        self._others = none
        return conditional_block(self.helper, [condition])

    def default(self) -> contextlib.AbstractContextManager[Block]:
        """What is built inside runs if no case's condition is true."""
        self._check_inside("default")
        if self._others is None:
            raise ValueError("Switch: default() needs a case() before it")
        return conditional_block(self.helper, [self._others])

    def _check_inside(self, method: str) -> None:
        if not self.inside_scope:
            raise ValueError(f"Switch: {method}() is for inside `with Switch()`")

    def __enter__(self) -> Switch:
        self.inside_scope = True
        return self

    def __exit__(self, *exc: object) -> None:
        self.inside_scope = False
