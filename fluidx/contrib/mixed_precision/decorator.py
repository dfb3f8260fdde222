"""`decorate`: an optimizer that trains in mixed precision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fluidx import layers
from fluidx.ir import (
    Operator,
    OpRole,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    program_guard,
    unique_name,
)
from fluidx.ir.roles import ROLE, ROLE_VAR
from fluidx.optimizer import Optimizer

from .lists import AutoMixedPrecisionLists
from .rewrite import rewrite
from .scaling import DynamicScale, all_finite, clear_unless

__all__ = ["AutoMixedPrecisionLists", "OptimizerWithMixedPrecision", "decorate"]

Pairs = list[tuple[Any, Any]]


class OptimizerWithMixedPrecision:
    """An optimizer whose programs run in mixed precision; made by `decorate`."""

    def __init__(
        self,
        optimizer: Any,
        amp_lists: AutoMixedPrecisionLists,
        init_loss_scaling: float,
        use_dynamic_loss_scaling: bool,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int,
        incr_ratio: float,
        decr_ratio: float,
    ) -> None:
        self._optimizer = optimizer
        self._amp_lists = amp_lists
        self._scaled_loss: Variable | None = None
        self._loss_scaling = layers.create_global_var(
            [1],
            float(init_loss_scaling),
            "float32",
            persistable=True,
            name=unique_name.generate("loss_scaling"),
        )
        self._dynamic = (
            DynamicScale.create(
                self._loss_scaling,
                incr_every_n_steps,
                decr_every_n_nan_or_inf,
                incr_ratio,
                decr_ratio,
            )
            if use_dynamic_loss_scaling
            else None
        )
        # before the optimizer's own state, where the reference makes it
        getattr(optimizer, "_optimizer", optimizer)._create_global_learning_rate()

    def get_loss_scaling(self) -> Variable:
        """The variable that holds the scale: float32, shape [1]."""
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """The loss times the scale; None before `backward`."""
        return self._scaled_loss

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> Pairs:
        """Put casts into the loss's program and append the backward ops.

        Returns (parameter, gradient of the loss itself) pairs. See
        `Optimizer.backward`.
        """
        program = loss.block.program
        rewrite(program, self._amp_lists)
        with program_guard(program, startup_program or default_startup_program()):
            self._scaled_loss = loss * self._loss_scaling
        pairs = self._optimizer.backward(
            self._scaled_loss, startup_program, parameter_list, no_grad_set, callbacks
        )
        detach_casts(pairs)
        made = []
        for param, grad in pairs:
            with program._optimized_guard([param, grad]):
                made.append((param, grad / self._loss_scaling))
        return made

    def apply_gradients(self, scaled_params_grads: Pairs) -> list[Operator]:
        """Append loss scaling and the optimizer's updates; returns the update ops."""
        if self._dynamic is not None:
            grads = [grad for _, grad in scaled_params_grads]
            # the reference gives these ops no role, and so cannot clone for testing
            with default_main_program()._optimized_guard([]):
                finite = all_finite(grads)
                self._dynamic.update(finite)
                clear_unless(finite, grads)
        made: list[Operator] = self._optimizer.apply_gradients(scaled_params_grads)
        return made

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Operator], Pairs]:
        """Append everything that makes a training step of `loss`.

        Returns the update ops and the (parameter, gradient) pairs.
        """
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(pairs), pairs


def decorate(
    optimizer: Any,
    amp_lists: AutoMixedPrecisionLists | None = None,
    init_loss_scaling: float = 2**15,
    incr_every_n_steps: int = 1000,
    decr_every_n_nan_or_inf: int = 2,
    incr_ratio: float = 2.0,
    decr_ratio: float = 0.8,
    use_dynamic_loss_scaling: bool = True,
) -> OptimizerWithMixedPrecision:
    """An optimizer like the given one that trains in mixed precision.

    amp_lists: which op runs in which precision. The loss is multiplied by a scale,
    its gradients are divided by it. With use_dynamic_loss_scaling the scale is
    multiplied by incr_ratio after more than incr_every_n_steps steps in a row with
    finite gradients, and by decr_ratio after more than decr_every_n_nan_or_inf others
    in a row, whose updates get gradients of zero. Mirrors
    ``contrib.mixed_precision.decorate``.

    >>> import fluidx as fluid
    >>> from fluidx.contrib import mixed_precision
    >>> x = fluid.data("x", [None, 4])
    >>> loss = fluid.layers.mean(fluid.layers.fc(x, 2))
    >>> mixed = mixed_precision.decorate(fluid.optimizer.SGD(0.1))
    >>> updates, pairs = mixed.minimize(loss)
    >>> [op.type for op in fluid.default_main_program().global_block().ops][:3]
    ['cast', 'cast', 'mul']
    """
    if not isinstance(getattr(optimizer, "_optimizer", optimizer), Optimizer):
        raise TypeError(f"decorate: not an optimizer: {optimizer!r:.60}")
    return OptimizerWithMixedPrecision(
        optimizer,
        AutoMixedPrecisionLists() if amp_lists is None else amp_lists,
        init_loss_scaling,
        use_dynamic_loss_scaling,
        incr_every_n_steps,
        decr_every_n_nan_or_inf,
        incr_ratio,
        decr_ratio,
    )


def detach_casts(pairs: Pairs) -> None:
    """Casts of parameters' gradients go behind the backward ops, to the update.

    The op that makes the gradient in half precision is then the one that is known as
    the maker (a collective pass sums up the halves).
    """
    for param, grad in pairs:
        cast, block = grad.op, grad.block
        if cast is None or cast.type != "cast" or not cast.role_var:
            continue
        half = block._var_recursive(cast.input("X")[0])
        maker = half.op
        if maker is None:
            continue
        maker._set_attr(ROLE_VAR, [param.name, half.name, *maker.role_var])
        cast._set_attr(ROLE_VAR, [])
        cast._set_attr(ROLE, int(OpRole.Optimize))
        block.ops.append(block.ops.pop(cast.idx))
        block.program._touch()
