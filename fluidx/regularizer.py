"""Weight decay, added to gradients before the update (``fluid.regularizer``).

A parameter's own regularizer (`ParamAttr`) comes before the optimizer's. Ops carry
the role of the optimizer, ``op_role_var`` of their parameter, and the name scope
``regularization``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Block, Variable, default_main_program, name_scope
from fluidx.kernels import VarType

__all__ = [
    "L1Decay",
    "L1DecayRegularizer",
    "L2Decay",
    "L2DecayRegularizer",
    "WeightDecayRegularizer",
    "append_regularization_ops",
]


class WeightDecayRegularizer:
    """Base: called with (parameter, gradient, block), returns the decay variable."""

    def __call__(self, param: Variable, grad: Variable, block: Block) -> Variable:
        raise NotImplementedError(f"{self.__class__.__name__} cannot be called")


class _Decay(WeightDecayRegularizer):
    _name = ""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        if isinstance(regularization_coeff, bool) or not isinstance(
            regularization_coeff, (int, float)
        ):
            raise TypeError(
                f"{self._name}: regularization_coeff must be a number, got "
                f"{regularization_coeff!r}"
            )
        self._regularization_coeff = float(regularization_coeff)

    def _decay(self, param: Variable, block: Block) -> Variable:
        """A variable for the decay, of the parameter's shape."""
        return block.create_var(
            dtype=param.dtype, shape=param.shape, lod_level=param.lod_level
        )

    def _scaled(self, source: Variable, out: Variable, block: Block) -> Variable:
        attrs = {"scale": self._regularization_coeff}
        block.append_op("scale", {"X": source}, {"Out": out}, attrs)
        return out

    def __str__(self) -> str:
        return f"{self._name}, regularization_coeff={self._regularization_coeff:f}"


class L2DecayRegularizer(_Decay):
    """coeff * parameter, the gradient of coeff / 2 * sum(parameter ** 2).

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> decay = fluid.regularizer.L2Decay(0.5)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1, regularization=decay).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    ... # 1 - 0.1 * (2 + 0.5 * 1), ...
    [0.75, 0.5125]
    """

    _name = "L2Decay"

    def __call__(self, param: Variable, grad: Variable, block: Block) -> Variable:
        return self._scaled(param, self._decay(param, block), block)


class L1DecayRegularizer(_Decay):
    """coeff * sign(parameter), the gradient of coeff * sum(abs(parameter)).

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> decay = fluid.regularizer.L1Decay(0.5)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1, regularization=decay).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    ... # 1 - 0.1 * (2 + 0.5), ...
    [0.75, 0.5]
    """

    _name = "L1Decay"

    def __call__(self, param: Variable, grad: Variable, block: Block) -> Variable:
        decay = self._decay(param, block)
        block.append_op("sign", {"X": param}, {"Out": decay})
        return self._scaled(decay, decay, block)


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer


def append_regularization_ops(
    parameters_and_grads: Sequence[tuple[Any, Any]],
    regularization: WeightDecayRegularizer | None = None,
) -> list[tuple[Any, Any]]:
    """Add the decay to each gradient; returns (parameter, new gradient) pairs.

    A dense gradient is updated in place; a sparse one becomes a dense variable,
    ``<gradient>@NEWGRAD@``.
    """
    made = []
    with name_scope("regularization"):
        for param, grad in parameters_and_grads:
            own = getattr(param, "regularizer", None)
            rule = own if own is not None else regularization
            if grad is None or rule is None:
                made.append((param, grad))
                continue
            with default_main_program()._optimized_guard([param, grad]):
                made.append((param, _add_decay(param, grad, rule)))
    return made


def _add_decay(param: Any, grad: Variable, rule: WeightDecayRegularizer) -> Variable:
    block = grad.block
    decay = rule(param, grad, block)
    out = grad
    if grad.type == VarType.SELECTED_ROWS:
        out = block.create_var(
            name=f"{grad.name}@NEWGRAD@", dtype=param.dtype, shape=param.shape
        )
    block.append_op("sum", {"X": [grad, decay]}, {"Out": out})
    return out
