"""What all optimizers share: rates, state, and the way from a loss to updates.

`Optimizer.minimize` appends, in this order, the backward ops, gradient clipping,
weight decay, and one update op per parameter, sorted by name. State lives in
persistable variables ``<parameter>_<state>_<n>``, initialised in the startup
program. Mirrors ``fluid.optimizer.Optimizer``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NoReturn

from fluidx import clip
from fluidx.arguments import as_number
from fluidx.backward import append_backward
from fluidx.initializer import Constant
from fluidx.ir import (
    Block,
    Operator,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    name_scope,
    program_guard,
    unique_name,
)
from fluidx.ir.roles import DEVICE
from fluidx.kernels import VarType, as_dtype
from fluidx.regularizer import WeightDecayRegularizer, append_regularization_ops

__all__ = ["Optimizer", "global_variable"]

Pairs = list[tuple[Any, Any]]


def global_variable(
    name: str,
    shape: Sequence[int],
    dtype: Any,
    value: float,
    device: str | None = None,
    stop_gradient: bool = False,
) -> Variable:
    """A persistable variable of the default programs, filled with a number.

    device: where its value lives, "cpu" for numbers that a GPU need not hold.
    """
    main = default_main_program().global_block()
    facts = {"name": name, "shape": shape, "dtype": dtype, "persistable": True}
    var = main.create_var(**facts, stop_gradient=stop_gradient)
    block = default_startup_program().global_block()
    if not block.has_var(name):
        op = Constant(value)(block.create_var(**facts), block)
        if device is not None:
            op._set_attr(DEVICE, device)
    return var


class Optimizer:
    """Base of the optimizers.

    learning_rate: a number, or a Variable of shape [1] (a schedule's result).
    parameter_list: what to train (default: all trainable parameters).
    regularization: weight decay for parameters without their own. grad_clip: one of
    `fluidx.clip`. name: goes into the names of the state variables. TypeError where
    one of them is of another type.
    """

    #: op type of the update
    type: ClassVar[str] = ""

    def __init__(
        self,
        learning_rate: Any,
        parameter_list: Iterable[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        who = self.__class__.__name__
        if isinstance(learning_rate, int) and not isinstance(learning_rate, bool):
            learning_rate = float(learning_rate)
        if not isinstance(learning_rate, (float, Variable)):
            raise TypeError(
                f"{who}: learning_rate must be a number or a Variable, got "
                f"{learning_rate.__class__.__name__} {learning_rate!r:.60}"
            )
        if isinstance(learning_rate, Variable) and any(
            d != 1 for d in learning_rate.shape
        ):
            raise ValueError(
                f"{who}: learning_rate must have one element, {learning_rate.name} has "
                f"shape {list(learning_rate.shape)}"
            )
        if grad_clip is not None and not isinstance(grad_clip, clip.GradientClipBase):
            raise TypeError(
                f"{who}: grad_clip must be a gradient clip of fluid.clip, got "
                f"{grad_clip!r:.60}"
            )
        if regularization is not None and not isinstance(
            regularization, WeightDecayRegularizer
        ):
            raise TypeError(
                f"{who}: regularization must be one of fluid.regularizer, got "
                f"{regularization!r:.60}"
            )
        self._parameter_list = list(parameter_list) if parameter_list else None
        self.regularization = regularization
        self._grad_clip = grad_clip
        self._name = name
        self._learning_rate = learning_rate
        self._dtype: VarType | None = None
        self._learning_rate_map: dict[Program, Variable] = {}
        if isinstance(learning_rate, Variable):
            self._learning_rate_map[learning_rate.block.program] = learning_rate
        self._accumulators: dict[str, dict[str, Variable]] = defaultdict(dict)
        self._opti_name_list: list[str] = []

    # ------------------------------------------------ learning rate

    def _create_global_learning_rate(self) -> None:
        program = default_main_program()
        if program in self._learning_rate_map:
            return
        if isinstance(self._learning_rate, Variable):
            raise TypeError(
                f"{self.__class__.__name__}: the learning rate Variable "
                f"{self._learning_rate.name} belongs to another program"
            )
        self._learning_rate_map[program] = global_variable(
            unique_name.generate("learning_rate"),
            [1],
            VarType.FP32 if self._dtype is None else self._dtype,
            self._learning_rate,
            stop_gradient=True,
        )

    def _global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The rate's variable in a program (default: the current one), or None."""
        return self._learning_rate_map.get(program or default_main_program())

    def _create_param_lr(self, param_and_grad: Sequence[Any]) -> Any:
        """The rate for one parameter: the global one times its own factor."""
        param = param_and_grad[0]
        factor = param.optimize_attr["learning_rate"]
        if isinstance(factor, Variable):
            return factor
        rate = self._global_learning_rate()
        if factor == 1.0:
            return rate
        program = default_main_program()
        with program._lr_schedule_guard(True), name_scope("scale_with_param_lr"):
            block = program.current_block()
            name = unique_name.generate("tmp")
            assert rate is not None
            out = block.create_var(name=name, dtype=rate.dtype)
            block.append_op(
                "scale", {"X": rate}, {"Out": out}, {"scale": float(factor)}
            )
        return out

    def current_step_lr(self) -> NoReturn:
        self._dygraph_only("current_step_lr")

    # ------------------------------------------------ state

    def _add_accumulator(
        self,
        name: str,
        param: Any,
        dtype: Any = None,
        fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
        device: str | None = None,
    ) -> Variable:
        """Declare a state variable of one parameter (like it, by default)."""
        if self._name is not None:
            name = f"{self._name}_{name}"
        if param.name in self._accumulators[name]:
            raise ValueError(
                f"{self.__class__.__name__}: state {name} of {param.name} exists "
                "already; minimize was called twice on one optimizer"
            )
        var = global_variable(
            unique_name.generate(f"{param.name}_{name}"),
            list(param.shape) if shape is None else list(shape),
            param.dtype if dtype is None else as_dtype(dtype),
            as_number(fill_value, f"start of {name}", self.__class__.__name__),
            device,
        )
        self._accumulators[name][param.name] = var
        self._opti_name_list.append(var.name)
        return var

    def _get_accumulator(self, name: str, param: Any) -> Variable:
        """A parameter's state variable; ValueError if there is none."""
        if self._name is not None:
            name = f"{self._name}_{name}"
        found = self._accumulators.get(name, {}).get(param.name)
        if found is None:
            raise ValueError(
                f"{self.__class__.__name__}: {param.name} has no state {name}"
            )
        return found

    def get_opti_var_name_list(self) -> list[str]:
        """Names of all state variables."""
        return self._opti_name_list

    def state_dict(self) -> dict[str, Variable]:
        """The state variables by name (their values are in the scope)."""
        return {
            var.name: var
            for vars_ in self._accumulators.values()
            for var in vars_.values()
        }

    def set_dict(self, state_dict: Any) -> NoReturn:
        self._dygraph_only("set_dict")

    def clear_gradients(self) -> NoReturn:
        self._dygraph_only("clear_gradients")

    def _dygraph_only(self, method: str) -> NoReturn:
        raise RuntimeError(
            f"{self.__class__.__name__}.{method} exists in dygraph mode only"
        )

    # ------------------------------------------------ what a kind of optimizer gives

    def _create_accumulators(self, block: Block, parameters: Sequence[Any]) -> None:
        """Declare the state of all parameters."""

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        """Append one parameter's update."""
        raise NotImplementedError(f"{self.__class__.__name__} has no update op")

    def _finish_update(self, block: Block, parameters_and_grads: Pairs) -> None:
        """Append what follows all updates."""

    def _update(
        self,
        block: Block,
        param_and_grad: Any,
        states: dict[str, str],
        attrs: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        read_only: Sequence[str] = (),
        outs: dict[str, str] | None = None,
    ) -> Operator:
        """Append an op of `type`: slots Param, Grad, LearningRate and the states.

        states: slot -> name of the state; each is written to slot + "Out" (`outs`
        gives another name) unless it is `read_only`.
        """
        param, grad = param_and_grad
        found = {s: self._get_accumulator(n, param) for s, n in states.items()}
        given = {"Param": param, "Grad": grad, **found, **(inputs or {})}
        if "LearningRate" not in given:
            given["LearningRate"] = self._create_param_lr(param_and_grad)
        given = {k: v for k, v in given.items() if v is not None}
        named = outs or {}
        made = {"ParamOut": param} | {
            named.get(s, f"{s}Out"): v for s, v in found.items() if s not in read_only
        }
        return block.append_op(self.type, given, made, attrs)

    # ------------------------------------------------ the way to an update

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> Pairs:
        """Append the backward ops; returns (parameter, gradient) pairs.

        loss: one element. See `append_backward` for the rest.
        """
        if not isinstance(loss, Variable):
            raise TypeError(f"the loss must be a Variable, got {loss!r:.60}")
        if tuple(loss.shape) not in ((1,), ()):
            raise ValueError(
                f"the loss {loss.name} must have shape [1], not {list(loss.shape)}; "
                "take layers.mean of it"
            )
        if callbacks is None:
            callbacks = [clip.error_clip_callback]
        self._dtype = loss.dtype
        wanted = list(parameter_list) if parameter_list else self._parameter_list
        startup = startup_program or default_startup_program()
        program = loss.block.program
        cut = self._without_frozen(program, no_grad_set)
        with program_guard(program, startup):
            return list(append_backward(loss, wanted, cut, callbacks))

    @staticmethod
    def _without_frozen(program: Program, no_grad_set: Any) -> Any:
        """no_grad_set and all parameters that are not trainable."""
        given = [] if no_grad_set is None else no_grad_set
        if not isinstance(given, (set, frozenset, list, tuple)):
            return given  # append_backward says what is wrong
        return [*given, *(p for p in program.all_parameters() if not p.trainable)]

    def apply_gradients(self, params_grads: Pairs) -> list[Operator]:
        """Append clipping, weight decay and updates; returns the ops of updates."""
        if not isinstance(params_grads, (list, tuple)):
            raise TypeError(
                f"{self.__class__.__name__}.apply_gradients takes a list of "
                f"(parameter, gradient), got {params_grads!r:.60}"
            )
        pairs = sorted(params_grads, key=lambda pair: str(pair[0].name))
        made, pairs = self._update_distributed_tables(pairs)
        if self._grad_clip is not None:
            clip.warn_if_ineffective(default_main_program())
            pairs = self._grad_clip(pairs)
        else:
            pairs = clip.append_gradient_clip_ops(pairs)
        pairs = append_regularization_ops(pairs, self.regularization)
        return made + self._create_optimization_pass(pairs)

    def _update_distributed_tables(self, pairs: Pairs) -> tuple[list[Operator], Pairs]:
        """Plain SGD, first, for tables of ``layers.embedding(is_distributed=True)``.

        Whatever the optimizer, and without clipping or weight decay: so the reference
        does (``distribute_lookup_table``), for one table; here for any number.
        """
        program = default_main_program()
        tables = {
            op.input("W")[0]
            for op in program.global_block().ops
            if op.type == "lookup_table" and op.attr("is_distributed")
        }
        ours = [(p, g) for p, g in pairs if p.name in tables and g is not None]
        if not ours:
            return [], pairs
        self._create_global_learning_rate()
        made = []
        for param, grad in ours:
            with program._optimized_guard((param, grad)), name_scope("optimizer"):
                slots = {
                    "Param": param,
                    "Grad": grad,
                    "LearningRate": self._create_param_lr((param, grad)),
                }
                block = program.current_block()
                made.append(block.append_op("sgd", slots, {"ParamOut": param}))
        return made, [(p, g) for p, g in pairs if p.name not in tables]

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Pairs
    ) -> list[Operator]:
        """`apply_gradients` into the loss's program."""
        startup = startup_program or default_startup_program()
        with program_guard(loss.block.program, startup):
            return self.apply_gradients(params_grads)

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Operator], Pairs]:
        """Append everything that makes a training step of `loss`.

        Returns the update ops and the (parameter, gradient) pairs before clipping
        and weight decay.
        """
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, pairs), pairs

    def _create_optimization_pass(self, pairs: Pairs) -> list[Operator]:
        program = default_main_program()
        block = program.current_block()
        pairs = [(p, g) for p, g in pairs if g is not None and p.trainable]
        start = len(block.ops)
        self._create_accumulators(block, [p for p, _ in pairs])
        self._create_global_learning_rate()
        for pair in pairs:
            with program._optimized_guard(pair), name_scope("optimizer"):
                self._append_optimize_op(block, pair)
        self._finish_update(block, pairs)
        return block.ops[start:]
