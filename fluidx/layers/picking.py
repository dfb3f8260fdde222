"""Parts of tensors: slices, rows by index, reversed order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    check_variable,
    emit,
    has_variable,
    int_list,
    plain_or_variable,
    shape_tensors,
)

__all__ = ["gather", "reverse", "scatter", "slice", "strided_slice"]


def _bounds(
    helper: LayerHelper,
    inputs: dict[str, Any],
    attrs: dict[str, Any],
    key: str,
    value: Any,
) -> list[bool]:
    """Put starts, ends or strides into a slice op; tells which are Variables."""
    slot = key.capitalize()
    if isinstance(value, Variable):
        value.stop_gradient = True
        inputs[f"{slot}Tensor"] = value
        return [True] * len(attrs["axes"])
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"{helper.layer_type}: {key} must be a list or a Variable, got {value!r}"
        )
    attrs[key] = plain_or_variable(value, key, helper.layer_type)
    if len(value) != len(attrs["axes"]):
        raise ValueError(
            f"{helper.layer_type}: {len(attrs['axes'])} axes, but {len(value)} {key}"
        )
    if has_variable(value):
        inputs[f"{slot}TensorList"] = shape_tensors(helper, value)
    return [isinstance(v, Variable) for v in value]


def _slice(type: str, input: Variable, axes: Any, **bounds: Any) -> Variable:
    check_variable(input, "input", type)
    helper = LayerHelper(type)
    inputs: dict[str, Any] = {"Input": input}
    attrs: dict[str, Any] = {"axes": int_list(axes, "axes", type)}
    unknown = [False] * len(attrs["axes"])
    for key, value in bounds.items():
        found = _bounds(helper, inputs, attrs, key, value)
        unknown = [a or b for a, b in zip(unknown, found)]
    attrs["infer_flags"] = [-1 if u else 1 for u in unknown]
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type, inputs, {"Out": made}, attrs)
    return made


def slice(input: Variable, axes: Sequence[int], starts: Any, ends: Any) -> Variable:
    """input[start:end] along each of `axes`.

    starts, ends: lists that may hold Variables, or int32 Variables; negative ones
    count from the end, too large ones are cut. Mirrors ``fluid.layers.slice``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2, 3], [4, 5, 6]], "float32"))
    >>> y = fluid.layers.slice(x, axes=[0, 1], starts=[1, -2], ends=[2, 9])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[5.0, 6.0]]
    """
    return _slice("slice", input, axes, starts=starts, ends=ends)


def strided_slice(
    input: Variable, axes: Sequence[int], starts: Any, ends: Any, strides: Any
) -> Variable:
    """input[start:end:stride] along each of `axes`. ``layers.strided_slice``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3, 4, 5], "float32"))
    >>> y = fluid.layers.strided_slice(x, axes=[0], starts=[0], ends=[5], strides=[2])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [1.0, 3.0, 5.0]
    """
    return _slice(
        "strided_slice", input, axes, starts=starts, ends=ends, strides=strides
    )


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """Rows of input by index (along dimension 0).

    overwrite: where an index repeats, the gradient keeps one of its rows instead of
    adding them. Mirrors ``fluid.layers.gather``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4], [5, 6]], "float32"))
    >>> rows = fluid.layers.assign(np.array([2, 0], "int32"))
    >>> y = fluid.layers.gather(x, rows)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[5.0, 6.0], [1.0, 2.0]]
    """
    return emit("gather", {"X": input, "Index": index}, {"overwrite": overwrite})


def reverse(x: Variable, axis: Any) -> Variable:
    """x with the order along `axis`, one or several, turned round.

    Mirrors ``fluid.layers.reverse``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.reverse(x, axis=0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    return emit("reverse", {"X": x}, {"axis": int_list(axis, "axis", "reverse")})


def scatter(
    input: Variable,
    index: Variable,
    updates: Variable,
    name: str | None = None,
    overwrite: bool = True,
) -> Variable:
    """input with rows at `index` replaced by updates, or with their sum.

    Mirrors ``fluid.layers.scatter``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 1], [2, 2], [3, 3]], "float32"))
    >>> rows = fluid.layers.assign(np.array([2, 0], "int64"))
    >>> new = fluid.layers.assign(np.array([[7, 8], [5, 6]], "float32"))
    >>> y = fluid.layers.scatter(x, rows, new)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[5.0, 6.0], [2.0, 2.0], [7.0, 8.0]]
    """
    inputs = {"X": input, "Ids": index, "Updates": updates}
    return emit("scatter", inputs, {"overwrite": overwrite}, name=name)
