"""Weight normalisation: a weight kept as length g and direction v.

Salimans and Kingma (2016); asked for by a `WeightNormParamAttr`. The startup program
sets g to the length of v, the main program computes ``v * g / |v|``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Block, Variable, unique_name
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelperBase
from fluidx.param_attr import ParamAttr, WeightNormParamAttr

__all__ = ["weight_norm_parameter"]


class _Norm:
    """Builds the op chain of a norm into one block, with the helper's names."""

    def __init__(self, helper: LayerHelperBase, block: Block, dtype: VarType) -> None:
        self.helper, self.block, self.dtype = helper, block, dtype

    def op(
        self,
        type: str,
        x: Variable,
        label: str,
        attrs: dict[str, Any] | None = None,
        out: Variable | None = None,
    ) -> Variable:
        if out is None:
            name = f"{self.helper.name}.weight_norm_{label}"
            out = self.block.create_var(
                name=unique_name.generate(name), dtype=self.dtype, persistable=False
            )
        self.block.append_op(type, {"X": x}, {"Out": out}, attrs)
        return out

    def length(self, x: Variable, dim: int | None, out: Variable | None) -> Variable:
        """Euclidean length of x, or of its slices along `dim`, into `out`."""
        if dim is None:
            return self._root_of_squares(x, {"dim": [0], "reduce_all": True}, out)
        last = len(x.shape) - 1
        if dim == last and last > 0:
            return self._last(x, out)
        if dim == 0:
            return self._first(x, out)
        perm = list(range(len(x.shape)))
        perm[0], perm[dim] = dim, 0
        turned = self.op("transpose", x, "transpose", {"axis": perm})
        length = self._first(turned, None)
        return self.op("transpose", length, "norm", {"axis": perm}, out)

    def _root_of_squares(
        self, x: Variable, attrs: dict[str, Any], out: Variable | None
    ) -> Variable:
        size = self.op("abs", x, "abs")
        square = self.op("pow", size, "pow", {"factor": 2.0})
        total = self.op("reduce_sum", square, "sum", {"keep_dim": False, **attrs})
        return self.op("pow", total, "norm", {"factor": 0.5}, out)

    def _first(self, x: Variable, out: Variable | None) -> Variable:
        shape = [x.shape[0]] + [1] * (len(x.shape) - 1)
        if out is None:
            out = self._named("norm")
        flat = self.op("reshape", x, "reshape", {"shape": [x.shape[0], -1]})
        length = self._root_of_squares(flat, {"dim": [1]}, None)
        return self.op("reshape", length, "norm", {"shape": shape}, out)

    def _last(self, x: Variable, out: Variable | None) -> Variable:
        shape = [1] * (len(x.shape) - 1) + [x.shape[-1]]
        if out is None:
            out = self._named("norm")
        flat = self.op("reshape", x, "reshape", {"shape": [-1, x.shape[-1]]})
        length = self._root_of_squares(flat, {"dim": [0]}, None)
        return self.op("reshape", length, "norm", {"shape": shape}, out)

    def _named(self, label: str) -> Variable:
        name = unique_name.generate(f"{self.helper.name}.weight_norm_{label}")
        return self.block.create_var(name=name, dtype=self.dtype, persistable=False)


def _length_shape(shape: Sequence[int], dim: int | None) -> list[int]:
    ones = [1] * len(shape)
    if dim is not None:
        ones[dim] = shape[dim]
    return ones


def weight_norm_parameter(
    helper: LayerHelperBase, attr: WeightNormParamAttr, shape: list[int], dtype: VarType
) -> Any:
    """The normalised weight, a plain Variable; its parts are the parameters."""
    if attr.dim is not None and not -1 <= attr.dim < len(shape):
        raise ValueError(
            f"{helper.layer_type}: WeightNormParamAttr dim {attr.dim} does not go with "
            f"a weight of shape {shape}"
        )
    dim = len(shape) - 1 if attr.dim == -1 else attr.dim
    length_attr, direction_attr = _part(attr, "g"), _part(attr, "v")
    length_attr.initializer = Constant(1.0)
    direction_attr.initializer = attr.initializer
    length_shape = _length_shape(shape, dim)
    startup = helper.startup_program.global_block()
    # the length has no initialiser of its own: the ops below compute it
    facts = {"shape": length_shape, "dtype": dtype}
    startup_length = startup.create_parameter(**facts, **length_attr._to_kwargs())
    length = helper.main_program.global_block().create_parameter(
        **facts, **length_attr._to_kwargs()
    )
    direction = helper.declare_parameter(direction_attr, shape, dtype)
    startup_norm = _Norm(helper, startup, dtype)
    source = startup.var(direction.name)
    startup_norm.length(source, dim, startup_length)
    startup_norm.op(
        "reshape", startup_length, "", {"shape": length_shape}, startup_length
    )
    made = _weight(helper, length, direction, dim, dtype)
    WeightNormParamAttr.params_with_weight_norm.append(made)
    return made


def _part(attr: WeightNormParamAttr, suffix: str) -> ParamAttr:
    made = ParamAttr(
        name=f"{attr.name}_{suffix}",
        learning_rate=attr.learning_rate,
        regularizer=copy.copy(attr.regularizer),
        trainable=attr.trainable,
        do_model_average=attr.do_model_average,
    )
    return made


def _weight(
    helper: LayerHelperBase,
    length: Variable,
    direction: Variable,
    dim: int | None,
    dtype: VarType,
) -> Variable:
    """direction * length / |direction| in the main program."""
    from fluidx.layers.elementwise import elementwise_div, elementwise_mul
    from fluidx.layers.manipulation import reshape

    block = helper.main_program.current_block()
    norm = _Norm(helper, block, dtype).length(direction, dim, None)
    factor = elementwise_div(length, norm)
    if dim is None:
        return elementwise_mul(direction, factor)
    factor = reshape(factor, [direction.shape[dim]])
    return elementwise_mul(direction, factor, axis=dim)
