"""Optimizers around an optimizer: RecomputeOptimizer, LookaheadOptimizer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from fluidx.arguments import as_number
from fluidx.backward import append_backward
from fluidx.clip import error_clip_callback
from fluidx.ir import (
    Block,
    Operator,
    Program,
    Variable,
    default_startup_program,
    program_guard,
    unique_name,
)
from fluidx.kernels import VarType

from .base import Optimizer, Pairs, global_variable

__all__ = ["LookaheadOptimizer", "RecomputeOptimizer"]


class RecomputeOptimizer(Optimizer):
    """Trades time for memory: values between checkpoints are computed twice.

    `_set_checkpoints` names the variables that are kept; see `append_backward`. The
    parameters come out the same. Ops with random numbers or running statistics run
    once, so dropout and batch_norm keep their meaning.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    >>> optimizer._set_checkpoints([y])
    >>> loss = fluid.layers.mean(y)
    >>> _ = optimizer.minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=["w"])[0].round(4).ravel()  # 1 - 0.1 * 3, as without it
    array([0.7, 0.6], dtype=float32)
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"RecomputeOptimizer: not an optimizer: {optimizer!r:.60}")
        self._optimizer = optimizer
        self._checkpoints: list[Variable | str] | None = None
        self._learning_rate = optimizer._learning_rate
        self._learning_rate_map = optimizer._learning_rate_map
        self._accumulators = optimizer._accumulators
        self._opti_name_list = optimizer._opti_name_list

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        """The variables whose values are kept for the backward pass."""
        self._checkpoints = list(checkpoints)

    def load(self, stat_dict: Any) -> NoReturn:
        raise NotImplementedError("RecomputeOptimizer.load exists in no release")

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> Pairs:
        """As `Optimizer.backward`; ValueError where no checkpoints are set."""
        if not self._checkpoints:
            raise ValueError("RecomputeOptimizer: call _set_checkpoints first")
        inner = self._optimizer
        inner._dtype = loss.dtype
        wanted = list(parameter_list) if parameter_list else inner._parameter_list
        with program_guard(
            loss.block.program, startup_program or default_startup_program()
        ):
            return list(
                append_backward(
                    loss,
                    wanted,
                    inner._without_frozen(loss.block.program, no_grad_set),
                    callbacks or [error_clip_callback],
                    self._checkpoints,
                )
            )

    def apply_gradients(self, params_grads: Pairs) -> list[Operator]:
        return self._optimizer.apply_gradients(params_grads)

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Pairs
    ) -> list[Operator]:
        return self._optimizer.apply_optimize(loss, startup_program, params_grads)


class LookaheadOptimizer:
    """Every k steps the weights go back part of the way (Zhang et al., 2019).

    The inner optimizer moves the fast weights, which are the parameters. After each
    k-th step slow = slow + alpha * (fast - slow), and fast = slow. Slow weights are
    ``<parameter>@SLOW``. Where the reference branches with conditional blocks, these
    ops choose by arithmetic.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> fast = fluid.optimizer.SGD(0.1)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.LookaheadOptimizer(fast, alpha=0.5, k=2).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(4)]
    ... # the second step leads to 0.6, half of the way back is 0.8
    [0.8, 0.8, 0.6, 0.6]
    """

    def __init__(
        self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5
    ) -> None:
        if inner_optimizer is None:
            raise TypeError("LookaheadOptimizer needs an inner optimizer, got None")
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(
                f"LookaheadOptimizer: alpha must be in [0, 1], got {alpha}"
            )
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ValueError(
                f"LookaheadOptimizer: k must be a positive integer, got {k!r}"
            )
        self.inner_optimizer = inner_optimizer
        self.alpha = as_number(alpha, "alpha", self.__class__.__name__)
        self.k = k
        self.type = "lookahead"

    def minimize(
        self, loss: Variable, startup_program: Program | None = None
    ) -> tuple[list[Operator], Pairs]:
        """Append a training step with both kinds of weights."""
        made = self.inner_optimizer.minimize(loss, startup_program)
        startup = startup_program or default_startup_program()
        program = loss.block.program
        # role Optimize, so that a clone for testing leaves the weights alone
        with program_guard(program, startup), program._optimized_guard([]):
            block = program.global_block()
            due = self._due(block)
            for param, _ in made[1]:
                self._pull(block, startup.global_block(), param, due)
        return made

    def _due(self, block: Block) -> Variable:
        """1 in every k-th step, else 0."""
        step = global_variable("lookahead_step", [1], VarType.INT32, 0)
        count = global_variable("lookahead_k", [1], VarType.INT32, self.k)
        zero = global_variable("lookahead_zero", [1], VarType.INT32, 0)
        block.append_op("increment", {"X": step}, {"Out": step}, {"step": 1.0})
        rest = _temporary(block, VarType.INT32)
        block.append_op("elementwise_mod", {"X": step, "Y": count}, {"Out": rest})
        equal = _temporary(block, VarType.BOOL)
        block.append_op("equal", {"X": rest, "Y": zero}, {"Out": equal})
        return equal

    def _pull(self, block: Block, startup: Block, fast: Any, due: Variable) -> None:
        slow = block.create_var(
            name=f"{fast.name}@SLOW",
            shape=fast.shape,
            dtype=fast.dtype,
            persistable=True,
        )
        startup.create_var(
            name=slow.name, shape=fast.shape, dtype=fast.dtype, persistable=True
        )
        startup.append_op("assign", {"X": fast.name}, {"Out": slow.name})
        pull = _temporary(block, fast.dtype)
        attrs = {"in_dtype": int(due.dtype), "out_dtype": int(fast.dtype)}
        block.append_op("cast", {"X": due}, {"Out": pull}, attrs)
        stay = _scaled(block, pull, -1.0, 1.0)
        mixed = _sum(
            block,
            _scaled(block, fast, self.alpha),
            _scaled(block, slow, 1.0 - self.alpha),
        )
        for weights in (slow, fast):
            moved = _product(block, mixed, pull)
            kept = _product(block, weights, stay)
            attrs = {"axis": -1}
            inputs = {"X": moved, "Y": kept}
            block.append_op("elementwise_add", inputs, {"Out": weights}, attrs)


def _temporary(block: Block, dtype: VarType) -> Variable:
    return block.create_var(name=unique_name.generate("tmp"), dtype=dtype)


def _scaled(block: Block, x: Variable, scale: float, bias: float = 0.0) -> Variable:
    out = _temporary(block, x.dtype)
    block.append_op("scale", {"X": x}, {"Out": out}, {"scale": scale, "bias": bias})
    return out


def _product(block: Block, x: Variable, y: Variable) -> Variable:
    out = _temporary(block, x.dtype)
    block.append_op("elementwise_mul", {"X": x, "Y": y}, {"Out": out}, {"axis": -1})
    return out


def _sum(block: Block, x: Variable, y: Variable) -> Variable:
    out = _temporary(block, x.dtype)
    block.append_op("elementwise_add", {"X": x, "Y": y}, {"Out": out}, {"axis": -1})
    return out
