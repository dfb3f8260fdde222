"""Look-ups by id: rows of tables, one-hot rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.arguments import as_integer
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    INTEGERS,
    check_dtype,
    check_variable,
    emit,
    is_integer,
)

__all__ = ["embedding", "one_hot"]


def lookup(
    type: str,
    input: Variable,
    size: Sequence[int],
    is_sparse: bool,
    is_distributed: bool,
    padding_idx: int | None,
    param_attr: Any,
    dtype: Any,
) -> Variable:
    """Both embedding layers: `type` is the op."""
    check_dtype(input, "input", "embedding", (VarType.INT64,))
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise ValueError(f"embedding: size must be [rows, width], got {size!r}")
    helper = LayerHelper("embedding", param_attr=param_attr)
    rows, _ = (as_integer(n, "a size", "embedding") for n in size)
    if padding_idx is None:
        padding = -1
    else:
        padding_idx = as_integer(padding_idx, "padding_idx", "embedding")
        if not -rows <= padding_idx < rows:
            raise ValueError(
                f"embedding: padding_idx must be in [-{rows}, {rows}), got "
                f"{padding_idx}"
            )
        padding = padding_idx if padding_idx >= 0 else rows + padding_idx
    table = helper.create_parameter(helper.param_attr, list(size), dtype)
    made = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        type,
        {"Ids": input, "W": table},
        {"Out": made},
        {
            "is_sparse": bool(is_sparse),
            "is_distributed": bool(is_distributed),
            "remote_prefetch": bool(is_sparse and not is_distributed),
            "padding_idx": padding,
        },
    )
    return made


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Rows of a table, one for each id.

    input: int64 ids whose last dimension is 1, which the result replaces by
    size[1] (`fluid.embedding` appends it instead). size: [rows, width] of the table.
    is_sparse: its gradient holds only the rows that were used; on a cluster only
    these travel. padding_idx: rows of this id come out as zeros. Mirrors
    ``fluid.layers.embedding``.

    >>> import fluidx as fluid, numpy as np
    >>> ids = fluid.layers.assign(np.array([[2], [0]], "int64"))
    >>> table = np.array([[0, 1], [10, 11], [20, 21]], "float32")
    >>> start = fluid.initializer.NumpyArrayInitializer(table)
    >>> y = fluid.layers.embedding(ids, size=[3, 2], param_attr=start)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[y])[0].tolist()
    [[20.0, 21.0], [0.0, 1.0]]
    """
    check_variable(input, "input", "embedding")
    if input.shape and input.shape[-1] not in (1, -1):
        raise ValueError(
            "layers.embedding: the last dimension of input must be 1, got "
            f"{list(input.shape)}; fluid.embedding takes ids of any shape"
        )
    return lookup(
        "lookup_table",
        input,
        size,
        is_sparse,
        is_distributed,
        padding_idx,
        param_attr,
        dtype,
    )


def one_hot_op(
    type: str, input: Variable, depth: Any, allow_out_of_range: bool, stop: bool
) -> Variable:
    """Both one_hot layers: `type` is the op."""
    check_dtype(input, "input", "one_hot", INTEGERS)
    attrs: dict[str, Any] = {
        "allow_out_of_range": allow_out_of_range,
        "dtype": int(VarType.FP32),
    }
    inputs = {"X": input}
    if isinstance(depth, Variable):
        depth.stop_gradient = True
        inputs["depth_tensor"] = depth
    elif is_integer(depth) and depth > 0:
        attrs["depth"] = int(depth)
    else:
        raise ValueError(
            f"one_hot: depth must be a positive integer or a Variable, got {depth!r}"
        )
    return emit(type, inputs, attrs, dtype="float32", stop_gradient=stop)


def one_hot(input: Variable, depth: Any, allow_out_of_range: bool = False) -> Variable:
    """A row of zeros with a one at each id.

    input: integers with last dimension 1, which the result replaces by `depth`
    (`fluid.one_hot` appends it instead). allow_out_of_range: ids outside give zeros
    instead of an error. Returns float32. Mirrors ``fluid.layers.one_hot``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2], [0]], "int64"))
    >>> y = fluid.layers.one_hot(x, depth=3)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return one_hot_op("one_hot", input, depth, allow_out_of_range, True)
