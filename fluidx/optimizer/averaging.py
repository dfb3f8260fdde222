"""Averages of parameters, for evaluation: ExponentialMovingAverage, ModelAverage.

Both append ops to the training program and keep two small programs of their own: one
puts the averages in the parameters' place, the other puts the parameters back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import (
    Block,
    Parameter,
    Program,
    Variable,
    default_main_program,
    name_scope,
    unique_name,
)
from fluidx.kernels import VarType

from .base import Optimizer, global_variable

__all__ = ["ExponentialMovingAverage", "ModelAverage"]


def _tmp(block: Block, dtype: VarType) -> Variable:
    return block.create_var(name=unique_name.generate("tmp"), dtype=dtype)


def _emit(
    block: Block,
    type: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any] | None = None,
    out: Variable | None = None,
    dtype: VarType | None = None,
) -> Variable:
    if out is None:
        first = next(iter(inputs.values()))
        first = first[0] if isinstance(first, list) else first
        out = _tmp(block, first.dtype if dtype is None else dtype)
    block.append_op(type, inputs, {"Out": out}, attrs)
    return out


def _cast(block: Block, x: Variable, dtype: VarType) -> Variable:
    attrs = {"in_dtype": int(x.dtype), "out_dtype": int(dtype)}
    return _emit(block, "cast", {"X": x}, attrs, dtype=dtype)


def _backups(suffix: str) -> list[tuple[Parameter, Variable]]:
    """Trainable parameters, each with the variable that keeps it meanwhile."""
    block = default_main_program().global_block()
    found = []
    for param in block.all_parameters():
        if param.do_model_average is not False and param.trainable:
            name = unique_name.generate(f"{param.name}{suffix}")
            facts = {"dtype": param.dtype, "shape": param.shape}
            kept = block.create_var(
                name=name, persistable=False, stop_gradient=True, **facts
            )
            found.append((param, kept))
    return found


def _here(block: Block, var: Variable) -> Variable:
    """An equal persistable variable of a program of ours."""
    return block._clone_variable(var)


class _Swap:
    """Two programs: averages into the parameters' place, and back."""

    apply_program: Program
    restore_program: Program

    @contextlib.contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Inside, parameters hold their averages; behind it, their own values.

        need_restore False: they keep the averages until `restore`.
        """
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Put the parameters' own values back."""
        executor.run(self.restore_program)

    def _restoring(self, pairs: list[tuple[Parameter, Variable]]) -> Program:
        program = Program()
        block = program.global_block()
        for param, kept in pairs:
            inputs = {"X": _here(block, kept)}
            _emit(block, "assign", inputs, out=_here(block, param))
        return program


class ExponentialMovingAverage(_Swap):
    """average = decay * average + (1 - decay) * parameter, after every step.

    decay: below 1. thres_steps: a Variable, the number of steps t; decay is then
    min(decay, (1 + t) / (10 + t)). Call `update` once, behind `minimize`. `apply`
    divides by 1 - decay ** steps, since averages start at zero (Kingma and Ba, 2015,
    section 3). Mirrors ``fluid.optimizer.ExponentialMovingAverage``; there an integer
    t has no effect, and a second `apply` divides what the first has divided.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> average = fluid.optimizer.ExponentialMovingAverage(0.5)
    >>> average.update()
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(2)]
    [0.8, 0.6]
    >>> with average.apply(exe):  # (0.8 / 4 + 0.6 / 2) / (1 - 1/4)
    ...     w = np.array(fluid.global_scope().find_var("w").get_tensor())
    >>> round(float(w[0, 0]), 4)
    0.6667
    """

    def __init__(
        self,
        decay: float = 0.999,
        thres_steps: Variable | None = None,
        name: str | None = None,
    ) -> None:
        self._name = name or ""
        self._decay = as_number(decay, "decay", self.__class__.__name__)
        self._thres_steps = thres_steps
        main = default_main_program()
        self._rate = global_variable(
            "scheduled_ema_decay_rate",
            [1],
            VarType.FP32,
            self._decay,
            stop_gradient=True,
        )
        if thres_steps is not None:
            with main._lr_schedule_guard():
                self._schedule(main.global_block(), thres_steps)
        self._pairs = _backups(f"{self._name}.ema_tmp")
        self._steps = global_variable(
            "@EMA_STEP_COUNTER@", [1], VarType.INT64, 0, stop_gradient=True
        )
        self._averages: dict[str, Variable] = {}
        with name_scope("moving_average"):
            for param, _ in self._pairs:
                self._averages[param.name] = global_variable(
                    unique_name.generate(f"{self._name}{param.name}_ema"),
                    param.shape,
                    param.dtype,
                    0.0,
                    stop_gradient=True,
                )
        self.apply_program = self._applying()
        self.restore_program = self._restoring(self._pairs)

    def _schedule(self, block: Block, steps: Variable) -> None:
        t = _cast(block, steps, VarType.FP32)
        above = _emit(block, "scale", {"X": t}, {"scale": 1.0, "bias": 1.0})
        below = _emit(block, "scale", {"X": t}, {"scale": 1.0, "bias": 10.0})
        attrs = {"axis": -1}
        slow = _emit(block, "elementwise_div", {"X": above, "Y": below}, attrs)
        fixed = {"shape": [1], "dtype": int(VarType.FP32), "value": self._decay}
        limit = _emit(block, "fill_constant", {}, fixed, _tmp(block, VarType.FP32))
        inputs = {"X": slow, "Y": limit}
        _emit(block, "elementwise_min", inputs, attrs, out=self._rate)

    def update(self) -> None:
        """Append the averaging to the main program."""
        block = default_main_program().global_block()
        block._prepend_op(
            "increment", {"X": self._steps}, {"Out": self._steps}, {"step": 1.0}
        )
        for param, kept in self._pairs:
            program = block.program
            with (
                program._optimized_guard([param, kept]),
                name_scope("moving_average"),
            ):
                self._average(block, param)

    def _average(self, block: Block, param: Parameter) -> None:
        average, attrs = self._averages[param.name], {"axis": -1}
        rate = self._rate
        if param.dtype != rate.dtype:
            rate = _cast(block, rate, param.dtype)
        old = _emit(block, "elementwise_mul", {"X": average, "Y": rate}, attrs)
        rest = _emit(block, "scale", {"X": rate}, {"scale": -1.0, "bias": 1.0})
        new = _emit(block, "elementwise_mul", {"X": param, "Y": rest}, attrs)
        total = _emit(block, "elementwise_add", {"X": old, "Y": new}, attrs)
        _emit(block, "assign", {"X": total}, out=average)

    def _applying(self) -> Program:
        program = Program()
        block = program.global_block()
        attrs = {"axis": -1}
        steps = _cast(block, _here(block, self._steps), VarType.FP32)
        rate = _here(block, self._rate)
        power = _emit(block, "elementwise_pow", {"X": rate, "Y": steps}, attrs)
        fixed = {"shape": [1], "dtype": int(VarType.FP32), "value": 0.0}
        zero = _emit(block, "fill_constant", {}, fixed, _tmp(block, VarType.FP32))
        inputs = {"X": steps, "Y": zero}
        began = _emit(block, "greater_than", inputs, dtype=VarType.BOOL)
        # before the first step nothing is divided
        inputs = {"X": power, "Y": _cast(block, began, VarType.FP32)}
        missing = _emit(block, "elementwise_mul", inputs, attrs)
        share = _emit(block, "scale", {"X": missing}, {"scale": -1.0, "bias": 1.0})
        for param, kept in self._pairs:
            target = _here(block, param)
            _emit(block, "assign", {"X": target}, out=_here(block, kept))
            average = _here(block, self._averages[param.name])
            by = share
            if param.dtype != VarType.FP32:
                by = _cast(block, share, param.dtype)
            inputs = {"X": average, "Y": by}
            _emit(block, "elementwise_div", inputs, attrs, out=target)
        return program


class ModelAverage(_Swap, Optimizer):
    """The mean of each parameter over the last part of the training.

    average_window_rate: the window's length as a part of the steps done, bounded by
    min_average_window and max_average_window (Polyak and Juditsky, 1992). To be made
    behind `minimize`. Mirrors ``fluid.optimizer.ModelAverage``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> average = fluid.optimizer.ModelAverage(1.0)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [round(float(exe.run(fetch_list=["w"])[0][0, 0]), 4) for _ in range(3)]
    [0.8, 0.6, 0.4]
    >>> with average.apply(exe):
    ...     w = np.array(fluid.global_scope().find_var("w").get_tensor())
    >>> round(float(w[0, 0]), 4)
    0.6
    """

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: Any = None,
        name: str | None = None,
    ) -> None:
        Optimizer.__init__(self, 0.0, None, regularization, None, name)
        self.average_window = as_number(
            average_window_rate, "average_window_rate", self.__class__.__name__
        )
        self.min_average_window = int(min_average_window)
        self.max_average_window = int(max_average_window)
        self._pairs = _backups(".tmp")
        block = default_main_program().global_block()
        for param, kept in self._pairs:
            with (
                block.program._optimized_guard([param, kept]),
                name_scope("move_average"),
            ):
                self._accumulate(block, param)
        self.apply_program = self._applying()
        self.restore_program = self._restoring(self._pairs)

    def _accumulate(self, block: Block, param: Parameter) -> None:
        states = {n: self._add_accumulator(n, param) for n in _SUMS}
        for name in _COUNTS:
            states[name] = self._add_accumulator(name, param, "int64", shape=[1])
        attrs = {
            "average_window": self.average_window,
            "min_average_window": self.min_average_window,
            "max_average_window": self.max_average_window,
        }
        inputs = {"param": param} | {f"in_{n}": v for n, v in states.items()}
        outputs = {f"out_{n}": v for n, v in states.items()}
        block.append_op("average_accumulates", inputs, outputs, attrs)

    def _applying(self) -> Program:
        program = Program()
        block = program.global_block()
        for param, kept in self._pairs:
            target = _here(block, param)
            _emit(block, "assign", {"X": target}, out=_here(block, kept))
            counts, sums = (
                [_here(block, self._get_accumulator(n, param)) for n in names]
                for names in (_COUNTS[:2], _SUMS)
            )
            count = _emit(block, "sum", {"X": counts})
            total = _emit(block, "sum", {"X": sums})
            inputs = {"X": total, "Y": _cast(block, count, param.dtype)}
            _emit(block, "elementwise_div", inputs, {"axis": -1}, out=target)
        return program


_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")
