"""Rates per element from past gradients: Adagrad, Adadelta, RMSProp, Ftrl, ..."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Block, Operator

from .base import Optimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "DecayedAdagradOptimizer",
    "FtrlOptimizer",
    "RMSPropOptimizer",
]


class AdagradOptimizer(Optimizer):
    """moment += grad ** 2; param -= rate * grad / (sqrt(moment) + epsilon).

    Duchi, Hazan and Singer, 2011. initial_accumulator_value: first moment.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.Adagrad(0.1).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.9, 0.8293]
    """

    type = "adagrad"

    def __init__(
        self,
        learning_rate: Any,
        epsilon: float = 1.0e-6,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._epsilon = as_number(epsilon, "epsilon", self.__class__.__name__)
        self.initial_accumulator_value = as_number(
            initial_accumulator_value,
            "initial_accumulator_value",
            self.__class__.__name__,
        )

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator(
                "moment", param, fill_value=self.initial_accumulator_value
            )

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        attrs = {"epsilon": self._epsilon}
        return self._update(block, param_and_grad, {"Moment": "moment"}, attrs)


class DecayedAdagradOptimizer(Optimizer):
    """Adagrad with moment = decay * moment + (1 - decay) * grad ** 2.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.DecayedAdagrad(0.1, decay=0.5).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.8586, 0.7431]
    """

    type = "decayed_adagrad"

    def __init__(
        self,
        learning_rate: Any,
        decay: float = 0.95,
        epsilon: float = 1.0e-6,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._decay = as_number(decay, "decay", self.__class__.__name__)
        self._epsilon = as_number(epsilon, "epsilon", self.__class__.__name__)

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("moment", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        attrs = {"epsilon": self._epsilon, "decay": self._decay}
        return self._update(block, param_and_grad, {"Moment": "moment"}, attrs)


class AdadeltaOptimizer(Optimizer):
    """Steps from running averages of squared gradients and squared steps.

    Zeiler, 2012. The update has no rate: learning_rate counts for nothing, as in
    the reference.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.Adadelta(1.0, epsilon=0.01, rho=0.5).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.8007, 0.6071]
    """

    type = "adadelta"

    def __init__(
        self,
        learning_rate: Any,
        epsilon: float = 1.0e-6,
        rho: float = 0.95,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._epsilon = as_number(epsilon, "epsilon", self.__class__.__name__)
        self._rho = as_number(rho, "rho", self.__class__.__name__)

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("_avg_squared_grad", param)
            self._add_accumulator("_avg_squared_update", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        states = {
            "AvgSquaredGrad": "_avg_squared_grad",
            "AvgSquaredUpdate": "_avg_squared_update",
        }
        attrs = {"epsilon": self._epsilon, "rho": self._rho}
        no_rate = {"LearningRate": None}
        return self._update(block, param_and_grad, states, attrs, no_rate)


class RMSPropOptimizer(Optimizer):
    """A running average of squared gradients scales the step, with momentum.

    mean_square = rho * mean_square + (1 - rho) * grad ** 2;
    moment = momentum * moment + rate * grad / sqrt(mean_square + epsilon);
    param -= moment. centered: the squared running mean of the gradient is taken
    from mean_square (Graves, 2013).

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.RMSProp(0.1, rho=0.75).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.8, 0.6488]
    """

    type = "rmsprop"

    def __init__(
        self,
        learning_rate: Any,
        rho: float = 0.95,
        epsilon: float = 1.0e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._rho = as_number(rho, "rho", self.__class__.__name__)
        self._epsilon = as_number(epsilon, "epsilon", self.__class__.__name__)
        self._momentum = as_number(momentum, "momentum", self.__class__.__name__)
        self._centered = bool(centered)

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("momentum", param)
            self._add_accumulator("mean_square", param)
            self._add_accumulator("mean_grad", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        states = {
            "Moment": "momentum",
            "MeanSquare": "mean_square",
            "MeanGrad": "mean_grad",
        }
        attrs = {
            "epsilon": self._epsilon,
            "decay": self._rho,
            "momentum": self._momentum,
            "centered": self._centered,
        }
        return self._update(block, param_and_grad, states, attrs)


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader, for sparse models.

    McMahan et al., 2013. l1: strength of both penalties: the reference's FtrlOptimizer
    hands l1 to the op as ``l2``, too, and so do we; the argument l2 counts for
    nothing. lr_power: exponent of the rate's decay, at most 0.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.Ftrl(0.1).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.9, 0.8293]
    """

    type = "ftrl"

    def __init__(
        self,
        learning_rate: Any,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._l1 = as_number(l1, "l1", self.__class__.__name__)
        self._l2 = as_number(l2, "l2", self.__class__.__name__)
        self._lr_power = as_number(lr_power, "lr_power", self.__class__.__name__)

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        for param in parameters:
            self._add_accumulator("squared", param)
            self._add_accumulator("linear", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        states = {"SquaredAccumulator": "squared", "LinearAccumulator": "linear"}
        outs = {
            "SquaredAccumulator": "SquaredAccumOut",
            "LinearAccumulator": "LinearAccumOut",
        }
        # l2 = l1: a quirk of the reference's FtrlOptimizer, kept for equal results
        attrs = {"l1": self._l1, "l2": self._l1, "lr_power": self._lr_power}
        return self._update(block, param_and_grad, states, attrs, outs=outs)
