"""Learning rates that change with the step.

Each appends ops of role ``LRSched`` that compute the rate from a step counter,
``@LR_DECAY_COUNTER@``, shared by all schedules of a program, and returns the rate as a
Variable of shape [1] for an optimizer.
"""

from __future__ import annotations

import math
from typing import Any

from fluidx.ir import default_main_program
from fluidx.layers.control_flow import autoincreased_step_counter
from fluidx.layers.elementwise import elementwise_min
from fluidx.layers.ops import cos, exp, floor
from fluidx.layers.tensor import cast, fill_constant

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "inverse_time_decay",
    "natural_exp_decay",
    "noam_decay",
    "polynomial_decay",
]


def _step(begin: int = 0) -> Any:
    """The counter as a float Variable; the first step is number `begin`."""
    counter = autoincreased_step_counter("@LR_DECAY_COUNTER@", begin, 1)
    return cast(counter, "float32")


def _guard() -> Any:
    return default_main_program()._lr_schedule_guard()


def _progress(decay_steps: float, staircase: bool) -> Any:
    """Steps over `decay_steps`, whole with `staircase`."""
    share = _step() / decay_steps
    return floor(share) if staircase else share


def exponential_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Any:
    """learning_rate * decay_rate ** (step / decay_steps).

    staircase: the exponent is cut to whole numbers. Mirrors
    ``fluid.layers.exponential_decay``.

    >>> import fluidx as fluid
    >>> fluid.layers.exponential_decay(0.1, 1000, 0.9).shape
    (1,)
    """
    with _guard():
        return learning_rate * (decay_rate ** _progress(decay_steps, staircase))


def natural_exp_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Any:
    """learning_rate * exp(-decay_rate * step / decay_steps).

    Mirrors ``fluid.layers.natural_exp_decay``.
    """
    with _guard():
        progress = _progress(decay_steps, staircase)
        return learning_rate * exp(-1 * decay_rate * progress)


def inverse_time_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Any:
    """learning_rate / (1 + decay_rate * step / decay_steps).

    Mirrors ``fluid.layers.inverse_time_decay``.
    """
    with _guard():
        progress = _progress(decay_steps, staircase)
        return learning_rate / (1 + decay_rate * progress)


def noam_decay(d_model: float, warmup_steps: float, learning_rate: Any = 1.0) -> Any:
    """learning_rate / sqrt(d_model) * min(step ** -0.5, step * warmup_steps ** -1.5).

    Steps count from 1. Vaswani et al. (2017). Mirrors ``fluid.layers.noam_decay``.
    """
    with _guard():
        step = _step(1)
        falling = step**-0.5
        rising = (warmup_steps**-1.5) * step
        return learning_rate * (d_model**-0.5) * elementwise_min(falling, rising)


def cosine_decay(learning_rate: Any, step_each_epoch: int, epochs: int) -> Any:
    """learning_rate / 2 * (cos(pi * epoch / epochs) + 1).

    Loshchilov and Hutter (2016). Mirrors ``fluid.layers.cosine_decay``.
    """
    with _guard():
        epoch: Any = floor(_step() / step_each_epoch)
        wave: Any = cos(epoch * math.pi / epochs)
        return learning_rate * 0.5 * (wave + 1)


def polynomial_decay(
    learning_rate: Any,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Any:
    """From learning_rate to end_learning_rate in `decay_steps` steps, then constant.

    By (1 - step / decay_steps) ** power. ValueError for cycle=True, which needs
    conditional blocks. Mirrors ``fluid.layers.polynomial_decay``.
    """
    if cycle:
        raise ValueError(
            "polynomial_decay: cycle=True needs conditional blocks, which this version "
            "does not have yet"
        )
    with _guard():
        step = _step()
        limit = fill_constant([1], "float32", float(decay_steps))
        capped: Any = elementwise_min(step, limit)
        share = (1 - capped / decay_steps) ** power
        return (learning_rate - end_learning_rate) * share + end_learning_rate
