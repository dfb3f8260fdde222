"""Loops: `While` and `while_loop`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_variable
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
from fluidx.layers.tensor import assign

__all__ = ["While", "while_loop"]


class While:
    """A block that is run again and again as long as `cond` is true.

    cond: bool, shape [1]; the block must set it anew. Variables from outside that the
    block writes (``assign``, ``increment``, ``array_write``, outputs given to layers)
    go from step to step; those made inside begin anew in each. is_test: nothing is
    kept for a backward pass. Mirrors ``fluid.layers.While``.

    >>> import fluidx as fluid
    >>> i = fluid.layers.fill_constant([1], "int64", 0)
    >>> n = fluid.layers.fill_constant([1], "int64", 10)
    >>> cond = fluid.layers.less_than(i, n)
    >>> with fluid.layers.While(cond).block():
    ...     i = fluid.layers.increment(i)
    ...     cond = fluid.layers.less_than(i, n, cond=cond)
    >>> fluid.Executor().run(fetch_list=[i])
    [array([10])]
    """

    BEFORE_WHILE_BLOCK = 0
    IN_WHILE_BLOCK = 1
    AFTER_WHILE_BLOCK = 2

    def __init__(
        self, cond: Variable, is_test: bool = False, name: str | None = None
    ) -> None:
        self.helper = LayerHelper("while", name=name)
        self.status = While.BEFORE_WHILE_BLOCK
        self.cond_var = check_condition(cond, "cond", "While")
        self.is_test = is_test

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """What is built inside is the loop's body."""
        program = self.helper.main_program
        with sub_block(program) as body:
            self.status = While.IN_WHILE_BLOCK
            yield
        self.status = While.AFTER_WHILE_BLOCK
        reads, writes = outside(body)
        if self.cond_var.name not in writes:
            raise ValueError(
                f"While: nothing in its block sets the condition {self.cond_var.name} "
                "anew, so it would never end; give it to a comparison as cond, or "
                "assign to it"
            )
        around = program.current_block()
        around.append_op(
            "while",
            {"X": reads, "Condition": self.cond_var},
            {"Out": writes, "StepScopes": step_scopes(around)},
            {"sub_block": body, "is_test": self.is_test},
        )


def while_loop(
    cond: Callable[..., Variable],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> Any:
    """Run `body` on the loop variables as long as `cond` of them is true.

    cond: takes loop_vars, returns a bool of shape [1]. body: takes loop_vars and
    returns their next values, as many, nested alike. Returns the last values, in
    loop_vars' own variables. Mirrors ``fluid.layers.while_loop``.

    >>> import fluidx as fluid
    >>> i = fluid.layers.fill_constant([1], "int64", 0)
    >>> n = fluid.layers.fill_constant([1], "int64", 10)
    >>> [i] = fluid.layers.while_loop(
    ...     lambda i: fluid.layers.less_than(i, n), lambda i: i + 3, [i]
    ... )
    >>> fluid.Executor().run(fetch_list=[i])
    [array([12])]
    """
    check_callable(cond, "cond", "while_loop")
    check_callable(body, "body", "while_loop")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"while_loop: loop_vars must be a list, got {loop_vars!r:.60}")
    if not loop_vars:
        raise ValueError("while_loop: loop_vars is empty")
    before = check_condition(cond(*loop_vars), "what cond returns", "while_loop")
    loop = While(before, is_test, name)
    with loop.block():
        results = body(*loop_vars)
        if not isinstance(results, (list, tuple)):
            results = [results]
        if structure(results) != structure(loop_vars):
            raise ValueError(
                "while_loop: body must return as many variables as loop_vars holds, "
                f"nested alike; loop_vars is {loop_vars!r:.200}, body returned "
                f"{results!r:.200}"
            )
        for new in flatten(results):
            check_variable(new, "what body returns", "while_loop")
        after = cond(*results)
        for new, old in zip(flatten(results), flatten(loop_vars)):
            assign(new, old)
        assign(after, before)
    return pack(loop_vars, flatten(loop_vars))
