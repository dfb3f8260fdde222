"""Probability distributions as ops: samples, entropy, log-density, divergence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidx.ir import Variable
from fluidx.layers import manipulation
from fluidx.layers.control_flow import less_than
from fluidx.layers.elementwise import elementwise_pow
from fluidx.layers.emit import check_variable
from fluidx.layers.linalg import diag
from fluidx.layers.manipulation import reshape
from fluidx.layers.nn import matmul
from fluidx.layers.ops import exp, log
from fluidx.layers.random import (
    gaussian_random,
    uniform_random,
    uniform_random_batch_size_like,
)
from fluidx.layers.reduce import reduce_max, reduce_prod, reduce_sum
from fluidx.layers.tensor import (
    assign,
    cast,
    create_tensor,
    fill_constant,
    fill_constant_batch_size_like,
)

__all__ = ["Categorical", "MultivariateNormalDiag", "Normal", "Uniform"]


class Distribution:
    """Base of all distributions."""

    def sample(self) -> Any:
        """Random values."""
        raise NotImplementedError(f"{self.__class__.__name__} cannot be sampled")

    def entropy(self) -> Any:
        """The entropy in nats."""
        raise NotImplementedError(f"{self.__class__.__name__} has no entropy")

    def kl_divergence(self, other: Any) -> Any:
        """How far this distribution is from another of its kind, in nats."""
        raise NotImplementedError(f"{self.__class__.__name__} has no kl_divergence")

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density at `value`."""
        raise NotImplementedError(f"{self.__class__.__name__} has no log_prob")


def _parameters(owner: str, *given: Any) -> list[Any]:
    """Variables as they are; numbers, lists and arrays as float32 tensors."""
    if all(isinstance(v, Variable) for v in given):
        return list(given)
    if any(isinstance(v, Variable) for v in given):
        raise ValueError(f"{owner}: either all parameters are Variables or none")
    arrays = []
    for value in given:
        if not isinstance(value, (int, float, list, tuple, np.ndarray)):
            raise TypeError(
                f"{owner}: a parameter is a number, a list, an array or a Variable, "
                f"got {value!r:.60}"
            )
        arrays.append(np.atleast_1d(np.asarray(value, "float32")))
    made = []
    for array in np.broadcast_arrays(*arrays):
        out = create_tensor("float32")
        assign(np.ascontiguousarray(array), out)
        made.append(out)
    return made


def _sample_shape(owner: str, given: Any) -> list[int]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{owner}: shape must be a list, got {given!r}")
    return [int(s) for s in given]


class Uniform(Distribution):
    """Even spread over [low, high). Mirrors ``fluid.layers.Uniform``.

    low, high: numbers, lists, arrays or float Variables of one shape.

    >>> import fluidx as fluid
    >>> fluid.layers.Uniform(0.0, [1.0, 2.0]).sample([3]).shape
    (3, 2)
    """

    def __init__(self, low: Any, high: Any) -> None:
        self._single = isinstance(low, float) and isinstance(high, float)
        self.low, self.high = _parameters("Uniform", low, high)

    def sample(self, shape: Any, seed: int = 0) -> Any:  # type: ignore[override]
        """Values of shape `shape` + the parameters' shape.

        The reference draws from [2 * low - high, high) where that shape is known.
        """
        wanted = _sample_shape("Uniform.sample", shape)
        batch = list((self.low + self.high).shape)
        if -1 in batch:
            total = self.low + self.high
            zeros: Any = fill_constant_batch_size_like(
                total, batch + wanted, self.low.dtype, 0.0
            )
            draws: Any = uniform_random_batch_size_like(
                zeros, list(zeros.shape), min=0.0, max=1.0, seed=seed
            )
            made = draws * (zeros + self.high - self.low) + self.low
            return reshape(made, wanted + batch)
        draws = uniform_random(wanted + batch, min=0.0, max=1.0, seed=seed)
        zeros = fill_constant(wanted + batch, self.low.dtype, 0.0)
        made = draws * (zeros + (self.high - self.low)) + self.low
        return reshape(made, wanted) if self._single else made

    def entropy(self) -> Any:
        return log(self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        check_variable(value, "value", "Uniform.log_prob")
        above = less_than(self.low, value)
        below = less_than(value, self.high)
        inside: Any = cast(above, value.dtype)
        inside = inside * cast(below, value.dtype)
        return log(inside) - log(self.high - self.low)


class Normal(Distribution):
    """Gaussian of mean `loc` and deviation `scale`. ``fluid.layers.Normal``.

    loc, scale: numbers, lists, arrays or float Variables of one shape.

    >>> import fluidx as fluid
    >>> fluid.layers.Normal(0.0, 1.0).entropy().shape
    (1,)
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        self._single = isinstance(loc, float) and isinstance(scale, float)
        self.loc, self.scale = _parameters("Normal", loc, scale)

    def sample(self, shape: Any, seed: int = 0) -> Any:  # type: ignore[override]
        """Values of shape `shape` + the parameters' shape."""
        wanted = _sample_shape("Normal.sample", shape)
        batch = list((self.loc + self.scale).shape)
        if -1 in batch:
            total = self.loc + self.scale
            zeros: Any = fill_constant_batch_size_like(
                total, batch + wanted, self.loc.dtype, 0.0
            )
            draws: Any = gaussian_random(manipulation.shape(zeros), 0.0, 1.0, seed)
            made = draws * (zeros + self.scale) + self.loc
            return reshape(made, wanted + batch)
        draws = gaussian_random(wanted + batch, 0.0, 1.0, seed)
        zeros = fill_constant(wanted + batch, self.loc.dtype, 0.0)
        made = draws * (zeros + self.scale) + self.loc
        return reshape(made, wanted) if self._single else made

    def entropy(self) -> Any:
        batch = list((self.loc + self.scale).shape)
        zeros = fill_constant_batch_size_like(
            self.loc + self.scale, batch, self.loc.dtype, 0.0
        )
        return 0.5 + 0.5 * math.log(2 * math.pi) + log(self.scale + zeros)

    def log_prob(self, value: Any) -> Any:
        check_variable(value, "value", "Normal.log_prob")
        variance = self.scale * self.scale
        deviation: Any = log(self.scale)
        square = (value - self.loc) * (value - self.loc)
        return (
            -1.0 * square / (2.0 * variance)
            - deviation
            - math.log(math.sqrt(2.0 * math.pi))
        )

    def kl_divergence(self, other: Normal) -> Any:
        _same_kind(self, other)
        ratio = self.scale / other.scale
        ratio = ratio * ratio
        distance = (self.loc - other.loc) / other.scale
        distance = distance * distance
        return 0.5 * (ratio + distance - 1.0 - log(ratio))


class Categorical(Distribution):
    """Classes, by unnormalised log-probabilities [..., classes].

    Mirrors ``fluid.layers.Categorical``.

    >>> import fluidx as fluid
    >>> logits = fluid.data("categorical_in", [None, 5])
    >>> fluid.layers.Categorical(logits).entropy().shape
    (-1, 1)
    """

    def __init__(self, logits: Any) -> None:
        (self.logits,) = _parameters("Categorical", logits)

    def _shifted(self) -> Any:
        return self.logits - reduce_max(self.logits, dim=-1, keep_dim=True)

    def kl_divergence(self, other: Categorical) -> Any:
        _same_kind(self, other)
        mine, theirs = self._shifted(), other._shifted()
        my_exp: Any = exp(mine)
        their_exp = exp(theirs)
        my_sum = reduce_sum(my_exp, dim=-1, keep_dim=True)
        their_sum = reduce_sum(their_exp, dim=-1, keep_dim=True)
        share = my_exp / my_sum
        difference = mine - log(my_sum) - theirs + log(their_sum)
        return reduce_sum(share * difference, dim=-1, keep_dim=True)

    def entropy(self) -> Any:
        shifted = self._shifted()
        exponents: Any = exp(shifted)
        total = reduce_sum(exponents, dim=-1, keep_dim=True)
        share = exponents / total
        mean: Any = reduce_sum(share * (shifted - log(total)), dim=-1, keep_dim=True)
        return -1.0 * mean


class MultivariateNormalDiag(Distribution):
    """Gaussian of several independent dimensions.

    loc: the means, [k]. scale: a matrix [k, k] with the variances on its diagonal and
    zeros elsewhere. Float Variables, or arrays or lists, of which loc is repeated to
    the shape of scale. Mirrors ``fluid.layers.MultivariateNormalDiag``.

    >>> import fluidx as fluid
    >>> fluid.layers.MultivariateNormalDiag(
    ...     [0.0, 0.0], [[1.0, 0.0], [0.0, 4.0]]).entropy().shape
    (1,)
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = _parameters("MultivariateNormalDiag", loc, scale)

    def _ones(self, scale: Any) -> tuple[Any, Any]:
        """Ones everywhere, and ones on the diagonal only."""
        shape = list(scale.shape)
        everywhere: Any = fill_constant(shape, self.loc.dtype, 1.0)
        return everywhere, diag(fill_constant(shape[:1], self.loc.dtype, 1.0))

    def _det(self, scale: Any) -> Any:
        everywhere, diagonal = self._ones(scale)
        return reduce_prod(scale + everywhere - diagonal)

    def _inverse(self, scale: Any) -> Any:
        everywhere, diagonal = self._ones(scale)
        return elementwise_pow(scale, everywhere - 2.0 * diagonal)

    def entropy(self) -> Any:
        size = self.scale.shape[0]
        spread: Any = log(self._det(self.scale))
        return 0.5 * (size * (1.0 + math.log(2 * math.pi)) + spread)

    def kl_divergence(self, other: MultivariateNormalDiag) -> Any:
        _same_kind(self, other)
        trace = reduce_sum(self._inverse(other.scale) * self.scale)
        distance = matmul(other.loc - self.loc, self._inverse(other.scale))
        third = matmul(distance, other.loc - self.loc)
        size = self.scale.shape[0]
        spread: Any = log(self._det(other.scale))
        spread = spread - log(self._det(self.scale))
        return 0.5 * (trace + third - size + spread)


def _same_kind(one: Distribution, other: Any) -> None:
    if not isinstance(other, one.__class__):
        kind = one.__class__.__name__
        raise TypeError(f"{kind}.kl_divergence: expected a {kind}, got {other!r:.60}")
