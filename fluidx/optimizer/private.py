"""Dpsgd: SGD with clipped and noisy gradients, for differential privacy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Block, Operator

from .base import Optimizer

__all__ = ["DpsgdOptimizer"]


class DpsgdOptimizer(Optimizer):
    """Clip a gradient to norm `clip`, add noise, step (Abadi et al., 2016).

    sigma: standard deviation of the noise, one number per step for all elements.
    batch_size: what the noise is divided by.

    >>> import fluidx as fluid
    >>> x = fluid.data("dpsgdoptimizer_x", [None, 4])
    >>> loss = fluid.layers.mean(fluid.layers.fc(x, 2))
    >>> updates, _ = fluid.optimizer.Dpsgd(0.1).minimize(loss)
    >>> [op.type for op in updates]
    ['dpsgd', 'dpsgd']
    """

    type = "dpsgd"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        clip: float = 0.9,
        batch_size: float = 0.999,
        sigma: float = 1e-8,
        parameter_list: Iterable[Any] | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list)
        self._clip = as_number(clip, "clip", self.__class__.__name__)
        self._batch_size = as_number(batch_size, "batch_size", self.__class__.__name__)
        self._sigma = as_number(sigma, "sigma", self.__class__.__name__)
        # set it to draw the same noise in every run
        self._seed: int | None = None

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        attrs = {
            "clip": self._clip,
            "batch_size": self._batch_size,
            "sigma": self._sigma,
            "seed": 0 if self._seed is None else int(self._seed),
        }
        return self._update(block, param_and_grad, {}, attrs)
