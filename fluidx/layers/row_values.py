"""Layers over `SelectedRows`: sparse gradients as such."""

from __future__ import annotations

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_variable

__all__ = ["get_tensor_from_selected_rows", "merge_selected_rows"]


def _check(x: object, layer: str) -> Variable:
    var = check_variable(x, "x", layer)
    if var.type != VarType.SELECTED_ROWS:
        raise TypeError(
            f"{layer}: x must be SelectedRows, {var.name} is {var.type.name}"
        )
    return var


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Each row of x (SelectedRows) once, ascending, with the sum of what it had.

    Mirrors ``fluid.layers.merge_selected_rows``.

    >>> import fluidx as fluid, numpy as np
    >>> ids = fluid.layers.assign(np.array([[1], [1], [0]], "int64"))
    >>> table = fluid.layers.embedding(ids, [3, 2], is_sparse=True)
    >>> loss = fluid.layers.reduce_sum(table)
    >>> (_, grad), = fluid.backward.append_backward(loss)
    >>> merged = fluid.layers.merge_selected_rows(grad)
    >>> y = fluid.layers.get_tensor_from_selected_rows(merged)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[y])[0].tolist()  # rows 0 and 1; id 1 came twice
    [[1.0, 1.0], [2.0, 2.0]]
    """
    _check(x, "merge_selected_rows")
    helper = LayerHelper("merge_selected_rows", name=name)
    made = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("merge_selected_rows", {"X": x}, {"Out": made})
    return made


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """The rows that x (SelectedRows) holds, as they lie, without their numbers.

    How many that are is not known when the program is built. Mirrors
    ``fluid.layers.get_tensor_from_selected_rows``.

    >>> import fluidx as fluid, numpy as np
    >>> ids = fluid.layers.assign(np.array([[1], [1], [0]], "int64"))
    >>> table = fluid.layers.embedding(ids, [3, 2], is_sparse=True)
    >>> loss = fluid.layers.reduce_sum(table)
    >>> (_, grad), = fluid.backward.append_backward(loss)
    >>> y = fluid.layers.get_tensor_from_selected_rows(grad)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[y])[0].tolist()  # a row for each id
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """
    _check(x, "get_tensor_from_selected_rows")
    helper = LayerHelper("get_tensor_from_selected_rows", name=name)
    made = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("get_tensor_from_selected_rows", {"X": x}, {"Out": made})
    return made
