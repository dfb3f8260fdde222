"""Decoupled weight decay: parameters shrink beside the optimizer's own step.

Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019): with Adam this is
AdamW, but for the learning rate, which does not scale the decay here (as in the
reference).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fluidx import layers
from fluidx.ir import Operator, Program, Variable
from fluidx.optimizer import Optimizer

__all__ = ["DecoupledWeightDecay", "extend_with_decoupled_weight_decay"]

Pairs = list[tuple[Any, Any]]


class DecoupledWeightDecay:
    """What `extend_with_decoupled_weight_decay` adds to an optimizer.

    coeff: a number or a Variable. apply_decay_param_fun: name of a parameter -> whether
    it decays; by default all do.
    """

    def __init__(
        self,
        coeff: float | Variable = 0.0,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(coeff, (int, float, Variable)):
            raise TypeError(f"weight_decay must be a number or Variable, got {coeff!r}")
        self._coeff = coeff
        self._apply_decay_param_fun = apply_decay_param_fun
        super().__init__(**kwargs)

    def _decaying(self, pairs: Pairs) -> Pairs:
        if isinstance(self._coeff, (int, float)) and self._coeff == 0.0:
            return []
        chosen = self._apply_decay_param_fun or (lambda name: True)
        return [(p, g) for p, g in pairs if g is not None and chosen(p.name)]

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Operator], Pairs]:
        """Append backward ops, the decay, and the updates; returns these and pairs."""
        optimizer: Any = self
        pairs = optimizer.backward(
            loss,
            startup_program=startup_program,
            parameter_list=parameter_list,
            no_grad_set=no_grad_set,
        )
        self._decay(loss.block.program, self._decaying(pairs))
        ops = optimizer.apply_optimize(
            loss, startup_program=startup_program, params_grads=pairs
        )
        return ops, pairs

    def _decay(self, program: Program, pairs: Pairs) -> None:
        scaled = []
        for param, grad in pairs:
            with program._optimized_guard([param, grad]):
                scaled.append(param * self._coeff)
        for (param, grad), part in zip(pairs, scaled):
            with program._optimized_guard([param, grad]):
                layers.assign(layers.elementwise_sub(param, part), output=param)

    def __str__(self) -> str:
        return f"{type(self).__name__}, weight decay {self._coeff}"


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """A subclass of an optimizer's class that takes `weight_decay` first.

    >>> import fluidx as fluid
    >>> AdamW = extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
    >>> optimizer = AdamW(weight_decay=0.01, learning_rate=0.001)

    TypeError: not a class of optimizers. (With a weight decay of 0 the reference's
    `minimize` fails; here nothing decays.)
    """
    if not (isinstance(base_optimizer, type) and issubclass(base_optimizer, Optimizer)):
        raise TypeError(f"expected a class of optimizers, got {base_optimizer!r}")

    base: Any = base_optimizer

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecay, base):  # type: ignore[misc]
        """weight_decay: a number or a Variable; keywords: the optimizer's own."""

        def __init__(
            self,
            weight_decay: float | Variable,
            apply_decay_param_fun: Callable[[str], bool] | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(weight_decay, apply_decay_param_fun, **kwargs)

    return OptimizerWithDecoupledWeightDecay
