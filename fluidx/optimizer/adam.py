"""Adam and its relatives: Adam, Adamax, Lamb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Block, Operator, Variable, name_scope

from .base import Optimizer, Pairs

__all__ = ["AdamOptimizer", "AdamaxOptimizer", "LambOptimizer"]

_STATES = {
    "Moment1": "moment1",
    "Moment2": "moment2",
    "Beta1Pow": "beta1_pow_acc",
    "Beta2Pow": "beta2_pow_acc",
}


class AdamOptimizer(Optimizer):
    """Steps from running averages of gradients and squared gradients.

    Kingma and Ba, 2015, with epsilon beside the uncorrected root (their section 2).
    beta1, beta2: a number, or a Variable of shape [1]. lazy_mode: with a sparse
    gradient, only its rows move.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.Adam(0.1).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    ... # a step is about the rate
    [0.9, 0.8]
    """

    type = "adam"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: float = 1e-08,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        lazy_mode: bool = False,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._beta1, self._beta2 = beta1, beta2
        self._epsilon = as_number(epsilon, "epsilon", self.__class__.__name__)
        self._lazy_mode = bool(lazy_mode)

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("moment1", param)
            self._add_accumulator("moment2", param)
            for name, beta, default in (
                ("beta1_pow_acc", self._beta1, 0.9),
                ("beta2_pow_acc", self._beta2, 0.999),
            ):
                start = default if isinstance(beta, Variable) else beta
                self._add_accumulator(
                    name, param, fill_value=start, shape=[1], device="cpu"
                )

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        attrs: dict[str, Any] = {
            "epsilon": self._epsilon,
            "lazy_mode": self._lazy_mode,
            "min_row_size_to_use_multithread": 1000,
        }
        inputs: dict[str, Any] = {}
        for key, beta in (("beta1", self._beta1), ("beta2", self._beta2)):
            if isinstance(beta, Variable):
                inputs[f"{key.capitalize()}Tensor"] = beta
            else:
                attrs[key] = as_number(beta, key, self.__class__.__name__)
        return self._update(block, param_and_grad, _STATES, attrs, inputs)


class AdamaxOptimizer(Optimizer):
    """Adam with the largest decayed gradient in place of the root mean square.

    Kingma and Ba, 2015, section 7.1.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.Adamax(0.1).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.9, 0.8]
    """

    type = "adamax"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        who = self.__class__.__name__
        self._beta1 = as_number(beta1, "beta1", who)
        self._beta2 = as_number(beta2, "beta2", who)
        self._epsilon = as_number(epsilon, "epsilon", self.__class__.__name__)

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("moment", param)
            self._add_accumulator("inf_norm", param)
            self._add_accumulator(
                "beta1_pow_acc", param, fill_value=self._beta1, shape=[1]
            )

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        states = {
            "Moment": "moment",
            "InfNorm": "inf_norm",
            "Beta1Pow": "beta1_pow_acc",
        }
        attrs = {
            "beta1": self._beta1,
            "beta2": self._beta2,
            "epsilon": self._epsilon,
        }
        return self._update(
            block, param_and_grad, states, attrs, read_only=["Beta1Pow"]
        )

    def _finish_update(self, block: Block, parameters_and_grads: Pairs) -> None:
        for pair in parameters_and_grads:
            power = self._get_accumulator("beta1_pow_acc", pair[0])
            attrs = {"scale": self._beta1}
            with block.program._optimized_guard(pair), name_scope("adamx"):
                block.append_op("scale", {"X": power}, {"Out": power}, attrs)


class LambOptimizer(AdamOptimizer):
    """Adam with weight decay and a step as long as the layer's weights allow.

    You et al., 2020. lamb_weight_decay: the decay; exclude_from_weight_decay_fn: a
    function of a parameter, true where there shall be none.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.Lamb(0.1, lamb_weight_decay=0.0).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.9, 0.81]
    """

    type = "lamb"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-06,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Any], bool] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            as_number(beta1, "beta1", self.__class__.__name__),
            as_number(beta2, "beta2", self.__class__.__name__),
            epsilon,
            parameter_list,
            regularization,
            grad_clip,
            name,
        )
        self._weight_decay = as_number(
            lamb_weight_decay, "lamb_weight_decay", self.__class__.__name__
        )
        self._exclude = exclude_from_weight_decay_fn

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        excluded = self._exclude is not None and self._exclude(param_and_grad[0])
        attrs = {
            "beta1": self._beta1,
            "beta2": self._beta2,
            "epsilon": self._epsilon,
            "weight_decay": 0.0 if excluded else self._weight_decay,
        }
        powers = ["Beta1Pow", "Beta2Pow"]
        return self._update(block, param_and_grad, _STATES, attrs, read_only=powers)
