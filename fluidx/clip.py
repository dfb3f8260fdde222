"""Clipping of gradients: by value, by norm, by global norm (``fluid.clip``).

Two ways lead here: ``grad_clip=`` of an optimizer, and the older
`set_gradient_clip`. They give the same numbers in ops of different name scopes
(``gradient_clip`` and ``..._clip_@CLIP``), by which the transpiler tells them apart.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import (
    Block,
    Parameter,
    Program,
    Variable,
    default_main_program,
    name_scope,
)
from fluidx.ir.roles import NAMESCOPE, ROLE_VAR
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper

__all__ = [
    "ErrorClipByValue",
    "GradientClipBase",
    "GradientClipByGlobalNorm",
    "GradientClipByNorm",
    "GradientClipByValue",
    "append_gradient_clip_ops",
    "error_clip_callback",
    "set_gradient_clip",
    "warn_if_ineffective",
]

Pairs = list[tuple[Any, Any]]
NeedClip = Callable[[Any], bool]

#: name scope of the second half of `set_gradient_clip`, spelled as the reference does
_SECOND = "graident_clip_@CLIP"


def _emit(type: str, attrs: Mapping[str, Any] | None = None, **inputs: Any) -> Variable:
    helper = LayerHelper(type)
    first = next(iter(inputs.values()))
    first = first[0] if isinstance(first, list) else first
    out = helper.create_variable_for_type_inference(first.dtype)
    helper.append_op(type, inputs, {"Out": out}, dict(attrs or {}))
    return out


def _constant(value: float, dtype: VarType) -> Variable:
    helper = LayerHelper("fill_constant")
    out = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    attrs = {
        "shape": [1],
        "dtype": int(dtype),
        "value": value,
        "str_value": str(value),
        "force_cpu": False,
    }
    helper.append_op("fill_constant", {}, {"Out": out}, attrs)
    return out


# ---------------------------------------------------------------- error clips


class BaseErrorClipAttr:
    """Base of what `Variable.set_error_clip` takes."""

    def _append_clip_op(self, block: Block, grad_name: str) -> None:
        raise NotImplementedError


class ErrorClipByValue(BaseErrorClipAttr):
    """Clip a variable's gradient to [min, max] while it flows backward.

    min: -max by default.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> y.error_clip = fluid.clip.ErrorClipByValue(0.5)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=["w"])[0].round(4).ravel()  # half of 3 and 4
    array([0.85, 0.8 ], dtype=float32)
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max, self.min = _bounds("ErrorClipByValue", max, min)

    def __str__(self) -> str:
        return f"ByValue, min={self.min:f}, max={self.max:f}"

    def _append_clip_op(self, block: Block, grad_name: str) -> None:
        attrs = {"min": self.min, "max": self.max}
        with block.program._backward_role_guard():
            block.append_op("clip", {"X": grad_name}, {"Out": grad_name}, attrs)


def error_clip_callback(block: Block, context: Mapping[str, str]) -> None:
    """Callback of `append_backward`: clips behind the op that was just added."""
    for grad in list(block.ops[-1].output_arg_names):
        source = block._find_var_recursive(context.get(grad, ""))
        clip = getattr(source, "error_clip", None)
        if clip is None:
            continue
        if not isinstance(clip, BaseErrorClipAttr):
            raise TypeError(
                f"error_clip of {context[grad]} must be an ErrorClipByValue, got "
                f"{clip!r:.60}"
            )
        clip._append_clip_op(block, grad)


def _bounds(who: str, max: float, min: float | None) -> tuple[float, float]:
    high = as_number(max, "max", who)
    low = -high if min is None else as_number(min, "min", who)
    if low > high:
        raise ValueError(f"{who}: min {low} is above max {high}")
    return high, low


# ---------------------------------------------------------------- gradient clips


class GradientClipBase:
    """Base of the gradient clips.

    need_clip: a function of a parameter that tells whether to clip its gradient;
    None: all are clipped.
    """

    _name = ""

    def __init__(self, need_clip: NeedClip | None = None) -> None:
        if need_clip is not None and not callable(need_clip):
            raise TypeError(
                f"{self.__class__.__name__}: need_clip must be a function of a "
                f"parameter, got {need_clip!r}"
            )
        self._need_clip_func = need_clip

    def __call__(self, params_grads: Pairs) -> Pairs:
        """Clip; returns (parameter, new gradient) pairs."""
        with name_scope("gradient_clip"):
            chosen = [self._wants(p, g) for p, g in params_grads]
            clipped = self._clip([pair for pair, c in zip(params_grads, chosen) if c])
            fresh = iter(clipped)
            made = [
                (p, next(fresh)) if c else (p, g)
                for (p, g), c in zip(params_grads, chosen)
            ]
        _correct_role_vars(params_grads, made)
        return made

    def _wants(self, param: Any, grad: Any) -> bool:
        return grad is not None and (
            self._need_clip_func is None or bool(self._need_clip_func(param))
        )

    def _clip(self, pairs: Pairs) -> list[Variable]:
        """New gradients of pairs that are all to be clipped."""
        made = []
        for param, grad in pairs:
            with param.block.program._optimized_guard([param, grad]):
                made.append(self._one(grad))
        return made

    def _one(self, grad: Variable) -> Variable:
        raise NotImplementedError


class GradientClipByValue(GradientClipBase):
    """Clip each element of a gradient to [min, max]; min is -max by default.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> clip = fluid.clip.GradientClipByValue(1.0)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1, grad_clip=clip).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=["w"])[0].round(4).ravel()  # 3 and 4 become 1 and 1
    array([0.9, 0.9], dtype=float32)
    """

    def __init__(
        self, max: float, min: float | None = None, need_clip: NeedClip | None = None
    ) -> None:
        super().__init__(need_clip)
        self.max, self.min = _bounds("GradientClipByValue", max, min)

    def __str__(self) -> str:
        return f"Gradient Clip By Value, min={self.min:f}, max={self.max:f}"

    def _one(self, grad: Variable) -> Variable:
        return _emit("clip", {"min": self.min, "max": self.max}, X=grad)


class GradientClipByNorm(GradientClipBase):
    """Scale a gradient down to an L2 norm of at most `clip_norm`, each on its own.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> clip = fluid.clip.GradientClipByNorm(1.0)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1, grad_clip=clip).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=["w"])[0].round(4).ravel()  # 3 and 4 become 0.6, 0.8
    array([0.94, 0.92], dtype=float32)
    """

    def __init__(self, clip_norm: float, need_clip: NeedClip | None = None) -> None:
        super().__init__(need_clip)
        self.clip_norm = as_number(clip_norm, "clip_norm", self.__class__.__name__)

    def __str__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"

    def _one(self, grad: Variable) -> Variable:
        return _emit("clip_by_norm", {"max_norm": self.clip_norm}, X=grad)


class GradientClipByGlobalNorm(GradientClipBase):
    """Scale all gradients by one factor, so that their joint norm is at most this.

    The factor is clip_norm / max(global norm, clip_norm); the global norm is the
    root of the sum of all squared elements (Pascanu, Mikolov and Bengio, 2013).
    group_name: with `set_gradient_clip`, parameters of one group share a norm.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> clip = fluid.clip.GradientClipByGlobalNorm(1.0)
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1, grad_clip=clip).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=["w"])[0].round(4).ravel()  # 3 and 4 become 0.6, 0.8
    array([0.94, 0.92], dtype=float32)
    """

    def __init__(
        self,
        clip_norm: float,
        group_name: str = "default_group",
        need_clip: NeedClip | None = None,
    ) -> None:
        super().__init__(need_clip)
        self.clip_norm = as_number(clip_norm, "clip_norm", self.__class__.__name__)
        self.group_name = group_name

    def __str__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"

    def _clip(self, pairs: Pairs) -> list[Variable]:
        if not pairs:
            return []
        squares = []
        for param, grad in pairs:
            with param.block.program._optimized_guard([param, grad]):
                squares.append(_square_sum(grad))
        # the joint ops carry the role variables of the last parameter
        with default_main_program()._optimized_guard(pairs[-1]):
            norm = _emit("sqrt", X=_emit("sum", X=squares))
            bound = _constant(self.clip_norm, pairs[-1][1].dtype)
            factor = _factor(bound, norm)
        made = []
        for param, grad in pairs:
            with param.block.program._optimized_guard([param, grad]):
                made.append(_emit("elementwise_mul", {"axis": -1}, X=grad, Y=factor))
        return made


# names that the reference has, too
ClipByValue, ClipByNorm = GradientClipByValue, GradientClipByNorm
ClipByGlobalNorm = GradientClipByGlobalNorm


def _square_sum(grad: Variable) -> Variable:
    if grad.type == VarType.SELECTED_ROWS:
        merged = _emit("merge_selected_rows", X=grad)
        merged.type = VarType.SELECTED_ROWS
        grad = _emit("get_tensor_from_selected_rows", X=merged)
    attrs = {"dim": [0], "reduce_all": True, "keep_dim": False}
    return _emit("reduce_sum", attrs, X=_emit("square", X=grad))


def _factor(bound: Variable, norm: Variable) -> Variable:
    larger = _emit("elementwise_max", {"axis": -1}, X=bound, Y=norm)
    return _emit("elementwise_div", {"axis": -1}, X=bound, Y=larger)


def _correct_role_vars(old: Pairs, new: Pairs) -> None:
    """Ops of the clip name the clipped gradient in their ``op_role_var``."""
    renamed = {p.name: g.name for (p, g), (_, o) in zip(new, old) if g is not o}
    if not renamed:
        return
    for op in default_main_program().global_block().ops:
        param = next(iter(op.role_var), None)
        if param in renamed and "gradient_clip" in op.attrs.get(NAMESCOPE, ""):
            op._set_attr(ROLE_VAR, [param, renamed[param]])


# ---------------------------------------------------------------- the older way


def set_gradient_clip(
    clip: GradientClipBase,
    param_list: Sequence[Parameter | str] | None = None,
    program: Program | None = None,
) -> None:
    """Clip the gradients of these parameters (default: all of the program).

    To be called before `minimize`; an optimizer's own ``grad_clip`` comes before
    it. Mirrors ``fluid.clip.set_gradient_clip``, which clips nothing at all if some
    parameter has no clip.

    >>> import warnings
    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> one = fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    >>> y = fluid.layers.fc(x, 1, param_attr=one, bias_attr=False)
    >>> with warnings.catch_warnings():  # grad_clip is the way now
    ...     warnings.simplefilter("ignore")
    ...     fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(1.0))
    >>> loss = fluid.layers.mean(y)
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=["w"])[0].round(4).ravel()  # 3 and 4 become 1 and 1
    array([0.9, 0.9], dtype=float32)
    """
    if not isinstance(clip, GradientClipBase):
        raise TypeError(f"set_gradient_clip: expected a gradient clip, got {clip!r}")
    program = program or default_main_program()
    block = program.global_block()
    chosen = program.all_parameters() if param_list is None else list(param_list)
    for item in chosen:
        param = block.var(item) if isinstance(item, str) else item
        if not isinstance(param, Parameter):
            raise TypeError(f"set_gradient_clip: {item!r} is no parameter")
        param.gradient_clip_attr = copy.copy(clip)


def append_gradient_clip_ops(params_grads: Pairs) -> Pairs:
    """Clip as `set_gradient_clip` asked for; returns (parameter, gradient) pairs."""
    clips = [getattr(p, "gradient_clip_attr", None) for p, _ in params_grads]
    clips = [
        c if c is not None and c._wants(p, g) else None
        for c, (p, g) in zip(clips, params_grads)
    ]
    if not any(clips):
        return list(params_grads)
    groups: dict[str, _Group] = {}
    for (param, grad), clip in zip(params_grads, clips):
        if clip is not None:
            with (
                param.block.program._optimized_guard([param, grad]),
                name_scope("gradient_clip_@CLIP"),
            ):
                if isinstance(clip, GradientClipByGlobalNorm):
                    _join_group(clip, grad, groups)
    made = []
    for (param, grad), clip in zip(params_grads, clips):
        if clip is None:
            made.append((param, grad))
            continue
        with (
            param.block.program._optimized_guard([param, grad]),
            name_scope(_SECOND),
        ):
            if isinstance(clip, GradientClipByGlobalNorm):
                group = groups[clip.group_name]
                if group.factor is None:
                    norm = _emit("sqrt", X=_emit("sum", X=group.squares))
                    group.factor = _factor(group.bound, norm)
                new = _emit("elementwise_mul", {"axis": -1}, X=grad, Y=group.factor)
            else:
                new = clip._one(grad)
        made.append((param, new))
    _correct_role_vars(params_grads, made)
    return made


@dataclass
class _Group:
    """Parameters that share a global norm."""

    clip_norm: float
    bound: Variable
    squares: list[Variable] = field(default_factory=list)
    factor: Variable | None = None


def _join_group(
    clip: GradientClipByGlobalNorm, grad: Variable, groups: dict[str, _Group]
) -> None:
    group = groups.get(clip.group_name)
    if group is None:
        bound = _constant(clip.clip_norm, grad.dtype)
        group = groups[clip.group_name] = _Group(clip.clip_norm, bound)
    elif group.clip_norm != clip.clip_norm:
        raise ValueError(
            f"set_gradient_clip: group {clip.group_name!r} has clip_norm "
            f"{group.clip_norm} and {clip.clip_norm}"
        )
    group.squares.append(_square_sum(grad))


def warn_if_ineffective(program: Program) -> None:
    """Warn when `set_gradient_clip` is overruled by an optimizer's grad_clip."""
    if any(p.gradient_clip_attr is not None for p in program.all_parameters()):
        warnings.warn(
            "set_gradient_clip has no effect: the optimizer has a grad_clip",
            stacklevel=4,
        )
