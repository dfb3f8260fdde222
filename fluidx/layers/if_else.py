"""`IfElse`: two blocks that each work on their rows of the inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fluidx.ir import Block, Variable, unique_name
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.branches import conditional_block
from fluidx.layers.emit import check_dtype, check_variable, emit
from fluidx.layers.tensor import assign

__all__ = ["IfElse"]


class IfElse:
    """Rows where `cond` is true go through one block, the others through another.

    cond: bool, one element per row. A block takes its rows of a Variable by
    `input` and hands its results out by `output`; calling the object puts the rows
    back in order. Mirrors ``fluid.layers.IfElse``.

    >>> import fluidx as fluid
    >>> x = fluid.data("rows", [4, 1])
    >>> big = fluid.layers.greater_than(x, fluid.layers.ones([4, 1], "float32"))
    >>> chosen = fluid.layers.IfElse(big)
    >>> with chosen.true_block():
    ...     chosen.output(chosen.input(x) * 2.0)
    >>> with chosen.false_block():
    ...     chosen.output(chosen.input(x))
    >>> [y] = chosen()
    >>> y.shape
    (4, 1)
    """

    OUT_IF_ELSE_BLOCKS = 0
    IN_IF_ELSE_TRUE_BLOCKS = 1
    IN_IF_ELSE_FALSE_BLOCKS = 2

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        self.cond = check_dtype(cond, "cond", "IfElse", (VarType.BOOL,))
        self.helper = LayerHelper("ifelse", name=name)
        self.status = IfElse.OUT_IF_ELSE_BLOCKS
        self._inputs: dict[str, tuple[Variable, Variable]] = {}
        self._outputs: dict[int, list[Variable]] = {}

    def true_block(self) -> contextlib.AbstractContextManager[None]:
        """What is built inside works on the rows where cond is true."""
        return self._block(IfElse.IN_IF_ELSE_TRUE_BLOCKS)

    def false_block(self) -> contextlib.AbstractContextManager[None]:
        """What is built inside works on the other rows."""
        return self._block(IfElse.IN_IF_ELSE_FALSE_BLOCKS)

    @contextlib.contextmanager
    def _block(self, which: int) -> Iterator[None]:
        if which in self._outputs:
            raise ValueError("IfElse: this block was built before")
        self._outputs[which] = []
        with conditional_block(self.helper, [self.cond], is_scalar=False):
            self.status = which
            yield
            self.status = IfElse.OUT_IF_ELSE_BLOCKS
        if not self._outputs[which]:
            raise ValueError("IfElse: a block must hand something out by output()")

    def _around(self, method: str) -> Block:
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError(f"IfElse: {method}() is for inside its blocks")
        found = self.helper.main_program.current_block().parent
        assert found is not None
        return found

    def input(self, x: Variable) -> Variable:
        """This block's rows of x."""
        around = self._around("input")
        check_variable(x, "x", "IfElse.input")
        if x.name not in self._inputs:
            key = f"ifelse_input{self.helper.name}"
            yes, no = (
                around.create_var(name=unique_name.generate(key), dtype=x.dtype)
                for _ in range(2)
            )
            around.append_op(
                "split_lod_tensor",
                {"X": x, "Mask": self.cond},
                {"OutTrue": yes, "OutFalse": no},
                {"level": 0},
            )
            self._inputs[x.name] = yes, no
        in_true = self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS
        return self._inputs[x.name][0 if in_true else 1]

    def output(self, *outs: Variable) -> None:
        """Hand out this block's rows of the results."""
        around = self._around("output")
        for out in outs:
            check_variable(out, "outs", "IfElse.output")
            name = unique_name.generate(f"{self.helper.name}_output")
            made = around.create_var(name=name, dtype=out.dtype)
            self._outputs[self.status].append(assign(out, made))

    def __call__(self) -> list[Variable]:
        """The results, with the rows of both blocks in order."""
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("IfElse: its results are taken outside of its blocks")
        yes, no = (self._outputs.get(which, []) for which in (1, 2))
        if not yes or len(yes) != len(no):
            raise ValueError(
                f"IfElse: true_block hands out {len(yes)} results, false_block "
                f"{len(no)}"
            )
        return [
            emit(
                "merge_lod_tensor",
                {"InTrue": a, "InFalse": b, "Mask": self.cond, "X": self.cond},
                {"level": 0},
            )
            for a, b in zip(yes, no)
        ]
