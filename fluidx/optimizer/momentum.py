"""SGD and its relatives with momentum: SGD, Momentum, LarsMomentum, DGCMomentum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Block, Operator

from .base import Optimizer

__all__ = [
    "DGCMomentumOptimizer",
    "LarsMomentumOptimizer",
    "MomentumOptimizer",
    "SGDOptimizer",
]


class SGDOptimizer(Optimizer):
    """param -= rate * grad.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    ... # 1 - 0.1 * 2, ...
    [0.8, 0.6]
    """

    type = "sgd"

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        return self._update(block, param_and_grad, {})


class MomentumOptimizer(Optimizer):
    """velocity = momentum * velocity + grad; param -= rate * velocity.

    use_nesterov: param -= rate * (grad + momentum * velocity).

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.Momentum(0.1, momentum=0.5).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    ... # 0.8 - 0.1 * (0.5 * 2 + 2)
    [0.8, 0.5]
    """

    type = "momentum"

    def __init__(
        self,
        learning_rate: Any,
        momentum: float,
        parameter_list: Iterable[Any] | None = None,
        use_nesterov: bool = False,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum = as_number(momentum, "momentum", self.__class__.__name__)
        self._use_nesterov = bool(use_nesterov)

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("velocity", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        attrs = {"mu": self._momentum, "use_nesterov": self._use_nesterov}
        return self._update(block, param_and_grad, {"Velocity": "velocity"}, attrs)


class LarsMomentumOptimizer(Optimizer):
    """Momentum with a rate per layer, by the norms of weights and gradients.

    local = rate * coeff * |param| / (|grad| + decay * |param|);
    velocity = momentum * velocity + local * (grad + decay * param);
    param -= velocity (You, Gitman and Ginsburg, 2017).

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.LarsMomentum(  # the rate is 0.1 * |w| / |gradient|
    ...     1.0, momentum=0.0, lars_coeff=0.1, lars_weight_decay=0.0
    ... ).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.9, 0.81]
    """

    type = "lars_momentum"

    def __init__(
        self,
        learning_rate: Any,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum = as_number(momentum, "momentum", self.__class__.__name__)
        self._lars_coeff = as_number(lars_coeff, "lars_coeff", self.__class__.__name__)
        self._lars_weight_decay = as_number(
            lars_weight_decay, "lars_weight_decay", self.__class__.__name__
        )

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("velocity", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        attrs = {
            "mu": self._momentum,
            "lars_coeff": self._lars_coeff,
            "lars_weight_decay": self._lars_weight_decay,
        }
        return self._update(block, param_and_grad, {"Velocity": "velocity"}, attrs)


class DGCMomentumOptimizer(MomentumOptimizer):
    """Momentum with deep gradient compression: not available on a CPU.

    As in the reference, making one without CUDA is an error; its ``dgc`` op has no
    CPU form.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float,
        rampup_begin_step: int,
        rampup_step: int = 1,
        sparsity: Sequence[float] = (0.999,),
        parameter_list: Iterable[Any] | None = None,
        use_nesterov: bool = False,
        num_trainers: int | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        raise RuntimeError(
            "DGCMomentumOptimizer works on GPUs only; use MomentumOptimizer"
        )
