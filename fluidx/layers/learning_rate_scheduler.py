"""Learning rates that change with the step.

Each appends ops of role ``LRSched`` that compute the rate from a step counter,
``@LR_DECAY_COUNTER@``, shared by all schedules of a program, and returns the rate as a
Variable of shape [1] for an optimizer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.arguments import as_number, not_zero
from fluidx.ir import Variable, default_main_program
from fluidx.layers.branches import Switch
from fluidx.layers.control_flow import autoincreased_step_counter
from fluidx.layers.elementwise import elementwise_min
from fluidx.layers.emit import is_number
from fluidx.layers.ops import ceil, cos, exp, floor
from fluidx.layers.tensor import assign, cast, create_global_var, fill_constant

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "inverse_time_decay",
    "linear_lr_warmup",
    "natural_exp_decay",
    "noam_decay",
    "piecewise_decay",
    "polynomial_decay",
]


def _step(begin: int = 0) -> Any:
    """The counter as a float Variable; the first step is number `begin`."""
    counter = autoincreased_step_counter("@LR_DECAY_COUNTER@", begin, 1)
    return cast(counter, "float32")


#: the reference's name: scripts import it for schedules of their own
_decay_step_counter = _step


def _guard() -> Any:
    return default_main_program()._lr_schedule_guard()


def _rate(value: Any, who: str) -> Any:
    """A learning rate: TypeError unless it is a number or a Variable."""
    if not (is_number(value) or isinstance(value, Variable)):
        raise TypeError(
            f"{who}: learning_rate must be a number or a Variable, got {value!r:.60}"
        )
    return value


def _progress(rate: Any, decay_steps: float, staircase: bool, who: str) -> Any:
    """Steps over `decay_steps`, whole with `staircase`; checks the rate too."""
    _rate(rate, who)
    not_zero(decay_steps, "decay_steps", who)
    share = _step() / decay_steps
    return floor(share) if staircase else share


def exponential_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Any:
    """learning_rate * decay_rate ** (step / decay_steps).

    staircase: the exponent is cut to whole numbers. Mirrors
    ``fluid.layers.exponential_decay``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.exponential_decay(0.8, decay_steps=1, decay_rate=0.5)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [0.8, 0.4, 0.2, 0.1]
    """
    with _guard():
        progress = _progress(learning_rate, decay_steps, staircase, "exponential_decay")
        return learning_rate * (decay_rate**progress)


def natural_exp_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Any:
    """learning_rate * exp(-decay_rate * step / decay_steps).

    Mirrors ``fluid.layers.natural_exp_decay``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.natural_exp_decay(1.0, decay_steps=1, decay_rate=1.0)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [1.0, 0.3679, 0.1353, 0.0498]
    """
    with _guard():
        progress = _progress(learning_rate, decay_steps, staircase, "natural_exp_decay")
        return learning_rate * exp(-1 * decay_rate * progress)


def inverse_time_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Any:
    """learning_rate / (1 + decay_rate * step / decay_steps).

    Mirrors ``fluid.layers.inverse_time_decay``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.inverse_time_decay(0.6, decay_steps=1, decay_rate=1.0)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [0.6, 0.3, 0.2, 0.15]
    """
    with _guard():
        progress = _progress(
            learning_rate, decay_steps, staircase, "inverse_time_decay"
        )
        return learning_rate / (1 + decay_rate * progress)


def noam_decay(d_model: float, warmup_steps: float, learning_rate: Any = 1.0) -> Any:
    """learning_rate / sqrt(d_model) * min(step ** -0.5, step * warmup_steps ** -1.5).

    Steps count from 1. Vaswani et al. (2017). Mirrors ``fluid.layers.noam_decay``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.noam_decay(d_model=4, warmup_steps=2)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [0.1768, 0.3536, 0.2887, 0.25]
    """
    _rate(learning_rate, "noam_decay")
    not_zero(d_model, "d_model", "noam_decay")
    not_zero(warmup_steps, "warmup_steps", "noam_decay")
    with _guard():
        step = _step(1)
        falling = step**-0.5
        rising = (warmup_steps**-1.5) * step
        return learning_rate * (d_model**-0.5) * elementwise_min(falling, rising)


def cosine_decay(learning_rate: Any, step_each_epoch: int, epochs: int) -> Any:
    """learning_rate / 2 * (cos(pi * epoch / epochs) + 1).

    Loshchilov and Hutter (2016). Mirrors ``fluid.layers.cosine_decay``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.cosine_decay(0.2, step_each_epoch=1, epochs=2)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [0.2, 0.1, 0.0, 0.1]
    """
    _rate(learning_rate, "cosine_decay")
    not_zero(step_each_epoch, "step_each_epoch", "cosine_decay")
    not_zero(epochs, "epochs", "cosine_decay")
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

    By (1 - step / decay_steps) ** power. cycle: beyond that, decay_steps becomes the
    next multiple of it. Mirrors ``fluid.layers.polynomial_decay``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.polynomial_decay(0.9, decay_steps=3, end_learning_rate=0.3)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [0.9, 0.7, 0.5, 0.3]
    """
    _rate(learning_rate, "polynomial_decay")
    not_zero(decay_steps, "decay_steps", "polynomial_decay")
    with _guard():
        step = _step()
        if cycle:
            rounds: Any = ceil(step / decay_steps)
            zero = fill_constant([1], "float32", 0.0)
            one = fill_constant([1], "float32", 1.0)
            with Switch() as switch, switch.case(step == zero):
                assign(one, rounds)
            share = (1 - step / (decay_steps * rounds)) ** power
            return (learning_rate - end_learning_rate) * share + end_learning_rate
        limit = fill_constant([1], "float32", float(decay_steps))
        capped: Any = elementwise_min(step, limit)
        share = (1 - capped / decay_steps) ** power
        return (learning_rate - end_learning_rate) * share + end_learning_rate


def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> Any:
    """values[i] up to step boundaries[i], the last value from the last one on.

    There is one value more than boundaries (ValueError). Mirrors
    ``fluid.layers.piecewise_decay``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.piecewise_decay([1, 3], [0.1, 0.05, 0.01])
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [0.1, 0.05, 0.05, 0.01]
    """
    for arg, given in (("boundaries", boundaries), ("values", values)):
        if not isinstance(given, (list, tuple, np.ndarray)):
            raise TypeError(f"piecewise_decay: {arg} must be a list, got {given!r:.60}")
    if len(values) != len(boundaries) + 1:
        raise ValueError(
            f"piecewise_decay: {len(boundaries)} boundaries need "
            f"{len(boundaries) + 1} values, got {len(values)}"
        )
    with _guard():
        step = _step()
        rate = create_global_var(
            [1], 0.0, "float32", persistable=True, name="learning_rate"
        )
        with Switch() as switch:
            for boundary, value in zip(boundaries, values):
                end = fill_constant([1], "float32", float(boundary), force_cpu=True)
                now = fill_constant([1], "float32", float(value))
                with switch.case(step < end):
                    assign(now, rate)
            last = fill_constant([1], "float32", float(values[-1]))
            with switch.default():
                assign(last, rate)
    return rate


def linear_lr_warmup(
    learning_rate: Any, warmup_steps: int, start_lr: float, end_lr: float
) -> Any:
    """From start_lr to end_lr in `warmup_steps` steps, then `learning_rate`.

    learning_rate: a number, or the rate that another schedule returned. TypeError for
    anything else. Mirrors ``fluid.layers.linear_lr_warmup``.

    >>> import fluidx as fluid
    >>> rate = fluid.layers.linear_lr_warmup(0.5, 2, start_lr=0.1, end_lr=0.5)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=[rate])[0][0]), 4) for _ in range(4)]
    [0.1, 0.3, 0.5, 0.5]
    """
    who = "linear_lr_warmup"
    _rate(learning_rate, who)
    not_zero(warmup_steps, "warmup_steps", who)
    dtype = learning_rate.dtype if isinstance(learning_rate, Variable) else "float32"
    slope = as_number(end_lr, "end_lr", who) - as_number(start_lr, "start_lr", who)
    with _guard():
        rate = create_global_var(
            [1], 0.0, dtype, persistable=True, name="learning_rate_warmup"
        )
        step = _step()
        with Switch() as switch:
            with switch.case(step < warmup_steps):
                risen: Any = start_lr + slope * (step / float(warmup_steps))
                assign(risen, rate)
            with switch.default():
                after = learning_rate
                if not isinstance(after, Variable):
                    after = fill_constant([1], dtype, float(after))
                assign(after, rate)
    return rate
