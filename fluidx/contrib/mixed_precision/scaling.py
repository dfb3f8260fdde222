"""Dynamic loss scaling: the ops that follow the gradients.

The scale grows after a number of steps in a row with finite gradients, shrinks after
a number of others, and never goes below one. Where a gradient is not finite, all are
set to zero, so that the step leaves plain SGD's parameters alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluidx import layers
from fluidx.ir import Variable, unique_name

__all__ = ["DynamicScale", "all_finite", "clear_unless"]


def all_finite(grads: Sequence[Variable]) -> Variable:
    """Whether the sum of all elements of all gradients is finite: bool, shape [1]."""
    sums = [layers.reduce_sum(g) for g in grads]
    return layers.isfinite(layers.reduce_sum(layers.concat(sums)))


def clear_unless(finite: Variable, grads: Sequence[Variable]) -> None:
    """Set the gradients to zero where one of them is not finite."""
    with layers.Switch() as switch:
        with switch.case(finite):
            pass
        with switch.default():
            for grad in grads:
                layers.assign(layers.zeros_like(grad), grad)


def _counter(name: str) -> Variable:
    return layers.create_global_var(
        [1], 0, "int32", persistable=True, name=unique_name.generate(name)
    )


@dataclass
class DynamicScale:
    """The scale, its counters and its rules, as variables of the programs."""

    scale: Variable
    incr_every: Variable
    decr_every: Variable
    good: Variable
    bad: Variable
    incr_ratio: float
    decr_ratio: float

    @classmethod
    def create(
        cls,
        scale: Variable,
        incr_every: int,
        decr_every: int,
        incr_ratio: float,
        decr_ratio: float,
    ) -> DynamicScale:
        """Declare the counters in the default programs."""
        most_good = layers.fill_constant([1], "int32", incr_every)
        most_bad = layers.fill_constant([1], "int32", decr_every)
        good, bad = _counter("num_good_steps"), _counter("num_bad_steps")
        return cls(scale, most_good, most_bad, good, bad, incr_ratio, decr_ratio)

    def update(self, finite: Variable) -> None:
        """Append the ops that count this step and change the scale."""
        zero = layers.fill_constant([1], "int32", 0)
        with layers.Switch() as switch:
            with switch.case(finite):
                self._count_good(zero)
            with switch.default():
                self._count_bad(zero)

    def _count_good(self, zero: Variable) -> None:
        due = layers.less_than(self.incr_every, self.good + 1)
        with layers.Switch() as switch:
            with switch.case(due):
                larger = self.scale * self.incr_ratio
                with layers.Switch() as bounded:
                    with bounded.case(layers.isfinite(larger)):
                        layers.assign(larger, self.scale)
                    with bounded.default():
                        pass
                self._restart(zero)
            with switch.default():
                layers.increment(self.good)
                layers.assign(zero, self.bad)

    def _count_bad(self, zero: Variable) -> None:
        due = layers.less_than(self.decr_every, self.bad + 1)
        with layers.Switch() as switch:
            with switch.case(due):
                smaller = self.scale * self.decr_ratio
                one = layers.fill_constant([1], "float32", 1.0)
                with layers.Switch() as bounded:
                    with bounded.case(layers.less_than(smaller, one)):
                        layers.assign(one, self.scale)
                    with bounded.default():
                        layers.assign(smaller, self.scale)
                self._restart(zero)
            with switch.default():
                layers.assign(zero, self.good)
                layers.increment(self.bad)

    def _restart(self, zero: Variable) -> None:
        layers.assign(zero, self.good)
        layers.assign(zero, self.bad)
