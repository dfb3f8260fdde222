"""Shapes: reshaping, joining and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    check_variable,
    check_variables,
    emit,
    has_variable,
    int_list,
    is_integer,
    plain_or_variable,
    shape_tensors,
)

__all__ = [
    "concat",
    "expand",
    "flatten",
    "reshape",
    "shape",
    "split",
    "squeeze",
    "stack",
    "transpose",
    "unsqueeze",
    "unstack",
]


def _with_xshape(
    type: str,
    layer: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any],
    name: str | None,
) -> Variable:
    """One of the ops that also put out the shape they had."""
    dtype = inputs["X"].dtype
    return emit(type, inputs, attrs, layer=layer, name=name, extra={"XShape": dtype})


def reshape(
    x: Variable,
    shape: Any,
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """The same elements in another shape.

    shape: sizes; one -1 is worked out, 0 copies the size at that place; Variables of
    shape [1] may stand in the list, or an int32 Variable in its place. actual_shape:
    an int32 Variable that overrides `shape` when running. inplace: x itself takes the
    shape. ValueError, BuildError for shapes that cannot be. Mirrors
    ``fluid.layers.reshape``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.arange(8, dtype="float32").reshape(2, 4))
    >>> y = fluid.layers.reshape(x, [0, 2, -1])  # 0: as it is; -1: what is left
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]]
    """
    check_variable(x, "x", "reshape")
    helper = LayerHelper("reshape2", act=act, name=name)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["Shape"] = shape
    elif isinstance(shape, (list, tuple)):
        if not shape:
            raise ValueError("reshape: shape must not be empty")
        attrs["shape"] = plain_or_variable(shape, "shape", "reshape")
        _check_sizes(x, shape)
        if has_variable(shape):
            inputs["ShapeTensor"] = shape_tensors(helper, shape)
        elif isinstance(actual_shape, Variable):
            actual_shape.stop_gradient = True
            inputs["Shape"] = actual_shape
    else:
        raise TypeError(
            f"reshape: shape must be a list of integers or a Variable, got {shape!r}"
        )
    made = x if inplace else helper.create_variable_for_type_inference(x.dtype)
    before = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("reshape2", inputs, {"Out": made, "XShape": before}, attrs)
    return helper.append_activation(made)


def _check_sizes(x: Variable, shape: Sequence[Any]) -> None:
    plain = [v for v in shape if not isinstance(v, Variable)]
    if plain.count(-1) > 1:
        raise ValueError(f"reshape: only one size may be -1, got {list(shape)}")
    if any(v < -1 for v in plain):
        raise ValueError(f"reshape: sizes must be positive, 0 or -1, got {list(shape)}")
    for i, size in enumerate(shape):
        if not isinstance(size, Variable) and size == 0 and i >= len(x.shape):
            raise ValueError(
                f"reshape: size 0 at {i} copies a dimension that {x.name} of shape "
                f"{list(x.shape)} does not have"
            )


def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Dimensions in another order: the i-th is x's perm[i]-th.

    Mirrors ``fluid.layers.transpose``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2, 3]], "float32"))
    >>> y = fluid.layers.transpose(x, perm=[1, 0])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0], [2.0], [3.0]]
    """
    check_variable(x, "x", "transpose")
    axis = int_list(perm, "perm", "transpose")
    if sorted(a % max(len(x.shape), 1) for a in axis) != list(range(len(x.shape))):
        raise ValueError(
            f"transpose: perm {axis} is no order of the dimensions of {x.name} "
            f"{list(x.shape)}"
        )
    return _with_xshape("transpose2", "transpose", {"X": x}, {"axis": axis}, name)


def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """Without the dimensions `axes` of size 1; [] drops all of them.

    Mirrors ``fluid.layers.squeeze``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[[1], [2]]], "float32"))
    >>> y = fluid.layers.squeeze(x, axes=[2])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 2.0]]
    """
    check_variable(input, "input", "squeeze")
    attrs = {"axes": int_list(axes, "axes", "squeeze")}
    return _with_xshape("squeeze2", "squeeze", {"X": input}, attrs, name)


def unsqueeze(input: Variable, axes: Any, name: str | None = None) -> Variable:
    """With new dimensions of size 1 at `axes` of the result.

    axes: an integer, a list that may hold Variables, or a Variable. Mirrors
    ``fluid.layers.unsqueeze``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.unsqueeze(x, axes=[1])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0], [2.0]]
    """
    check_variable(input, "input", "unsqueeze")
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {}
    helper = LayerHelper("unsqueeze2", name=name)
    if isinstance(axes, Variable):
        axes.stop_gradient = True
        inputs["AxesTensor"] = axes
    elif isinstance(axes, (list, tuple)) and has_variable(axes):
        inputs["AxesTensorList"] = shape_tensors(helper, axes)
    else:
        attrs["axes"] = int_list(axes, "axes", "unsqueeze")
    made = helper.create_variable_for_type_inference(input.dtype)
    before = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("unsqueeze2", inputs, {"Out": made, "XShape": before}, attrs)
    return made


def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """A matrix whose rows are the dimensions before `axis`. ``layers.flatten``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[[1, 2], [3, 4]]], "float32"))
    >>> y = fluid.layers.flatten(x, axis=1)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """
    check_variable(x, "x", "flatten")
    if not is_integer(axis) or not 0 <= axis <= len(x.shape):
        raise ValueError(
            f"flatten: axis must be in [0, {len(x.shape)}] for {x.name} of shape "
            f"{list(x.shape)}, got {axis!r}"
        )
    return _with_xshape("flatten2", "flatten", {"X": x}, {"axis": axis}, name)


def expand(x: Variable, expand_times: Any, name: str | None = None) -> Variable:
    """x repeated: expand_times[i] times along dimension i.

    expand_times: a list that may hold Variables, or an int32 Variable. Mirrors
    ``fluid.layers.expand``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> y = fluid.layers.expand(x, expand_times=[2, 2])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0]]
    """
    check_variable(x, "x", "expand")
    helper = LayerHelper("expand", name=name)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(expand_times, Variable):
        expand_times.stop_gradient = True
        inputs["ExpandTimes"] = expand_times
    elif isinstance(expand_times, (list, tuple)):
        plain = plain_or_variable(expand_times, "expand_times", "expand")
        for item, given in zip(plain, expand_times):
            if item < 1 and not isinstance(given, Variable):
                raise ValueError(
                    f"expand: expand_times must be positive, got {expand_times!r}"
                )
        attrs["expand_times"] = plain
        if has_variable(expand_times):
            inputs["expand_times_tensor"] = shape_tensors(helper, expand_times)
    else:
        raise TypeError(
            f"expand: expand_times must be a list or a Variable, got {expand_times!r}"
        )
    made = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("expand", inputs, {"Out": made}, attrs)
    return made


def concat(input: Any, axis: Any = 0, name: str | None = None) -> Variable:
    """Tensors joined along `axis`, an integer or an int32 Variable.

    Mirrors ``fluid.layers.concat``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> below = fluid.layers.concat([x, x], axis=0)
    >>> beside = fluid.layers.concat([x, x], axis=1)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[below, beside])
    >>> [v.tolist() for v in made]
    [[[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0, 1.0, 2.0]]]
    """
    many = check_variables(input, "input", "concat")
    for var in many:
        if var.dtype != many[0].dtype:
            raise ValueError(
                f"concat: {many[0].name} is {many[0].dtype.name}, {var.name} is "
                f"{var.dtype.name}; cast one of them"
            )
    inputs: dict[str, Any] = {"X": many}
    attrs: dict[str, Any] = {}
    if isinstance(axis, Variable):
        axis.stop_gradient = True
        inputs["AxisTensor"] = axis
    else:
        attrs["axis"] = int_list(axis, "axis", "concat")[0]
    return emit("concat", inputs, attrs, name=name)


def split(
    input: Variable, num_or_sections: Any, dim: Any = -1, name: str | None = None
) -> list[Variable]:
    """Parts along `dim`: so many equal ones, or of the sizes of a list.

    One size may be -1; sizes and `dim` may be Variables. Mirrors
    ``fluid.layers.split``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2, 3, 4]], "float32"))
    >>> halves = fluid.layers.split(x, 2, dim=1)
    >>> parts = fluid.layers.split(x, [1, -1], dim=1)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[*halves, *parts])
    >>> [v.tolist() for v in made]
    [[[1.0, 2.0]], [[3.0, 4.0]], [[1.0]], [[2.0, 3.0, 4.0]]]
    """
    check_variable(input, "input", "split")
    helper = LayerHelper("split", name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {}
    extent = -1
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs["AxisTensor"] = dim
    else:
        axis = int_list(dim, "dim", "split")[0]
        rank = len(input.shape)
        if not -rank <= axis < rank:
            raise ValueError(
                f"split: dim {dim} is outside {input.name} of shape {list(input.shape)}"
            )
        attrs["axis"] = axis % rank
        extent = input.shape[axis]
    if is_integer(num_or_sections):
        count = int(num_or_sections)
        if count < 1 or (extent > 0 and extent % count):
            raise ValueError(
                f"split: cannot cut size {extent} into {count} equal parts"
            )
        attrs["num"] = count
    elif isinstance(num_or_sections, (list, tuple)):
        count = len(num_or_sections)
        attrs["num"] = 0
        attrs["sections"] = plain_or_variable(
            num_or_sections, "num_or_sections", "split"
        )
        if has_variable(num_or_sections):
            inputs["SectionsTensorList"] = shape_tensors(helper, num_or_sections)
    else:
        raise TypeError(
            "split: num_or_sections must be an integer or a list, got "
            f"{num_or_sections!r}"
        )
    made = [
        helper.create_variable_for_type_inference(input.dtype) for _ in range(count)
    ]
    helper.append_op("split", inputs, {"Out": made}, attrs)
    return made


def stack(x: Any, axis: int = 0) -> Variable:
    """Tensors of one shape along a new dimension `axis`. ``fluid.layers.stack``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.stack([x, x], axis=1)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    many = check_variables(x, "x", "stack")
    return emit("stack", {"X": many}, {"axis": axis}, slot="Y")


def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """The tensors that lie side by side along `axis`, which goes.

    num: how many, where the size is not known. Mirrors ``fluid.layers.unstack``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> rows = fluid.layers.unstack(x, axis=0)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=rows)
    >>> [v.tolist() for v in made]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    check_variable(x, "x", "unstack")
    if not (is_integer(axis) and -len(x.shape) <= axis < len(x.shape)):
        raise IndexError(
            f"unstack: axis {axis!r} is outside {x.name} of shape {list(x.shape)}"
        )
    if num is None:
        num = x.shape[axis]
        if num <= 0:
            raise ValueError(
                f"unstack: dimension {axis} of {x.name} {list(x.shape)} is not known; "
                "give num"
            )
    helper = LayerHelper("unstack")
    made = [helper.create_variable_for_type_inference(x.dtype) for _ in range(num)]
    helper.append_op("unstack", {"X": x}, {"Y": made}, {"axis": axis, "num": num})
    return made


def shape(input: Variable) -> Variable:
    """The sizes of input, as an int32 tensor. Mirrors ``fluid.layers.shape``.

    >>> import fluidx as fluid
    >>> x = fluid.data("shape_x", [None, 4])
    >>> fluid.layers.shape(x).shape
    (2,)
    """
    return emit("shape", {"Input": input}, dtype=VarType.INT32)
