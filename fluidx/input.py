"""`fluid.data`, `fluid.embedding`, `fluid.one_hot`: the later forms of these layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.io import data_shape
from fluidx.layers.lookup import lookup, one_hot_op

__all__ = ["data", "embedding", "one_hot"]


def data(
    name: str,
    shape: Sequence[int | None],
    dtype: Any = "float32",
    lod_level: int = 0,
) -> Variable:
    """A variable that `Executor.run` is to be fed, of the global block.

    shape: sizes, None or -1 where any goes. What is fed is checked against shape and
    dtype. TypeError for a wrong name or shape. Mirrors ``fluid.data``.

    >>> import fluidx as fluid
    >>> fluid.data("pixels", [None, 784]).shape
    (-1, 784)
    """
    if not isinstance(name, str):
        raise TypeError(f"data: name must be a string, got {name!r}")
    sizes = data_shape(shape, "data")
    return LayerHelper("data", name=name).create_global_data(
        name, sizes, as_dtype(dtype), lod_level, VarType.LOD_TENSOR, True, True
    )


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Rows of a table, one for each id: input.shape + [size[1]].

    As `fluidx.layers.embedding`, which wants a last dimension of 1 and replaces it.
    Mirrors ``fluid.embedding``.

    >>> import fluidx as fluid
    >>> ids = fluid.data("ids_of_v2", [None, 3], "int64")
    >>> fluid.embedding(ids, [100, 8]).shape
    (-1, 3, 8)
    """
    return lookup(
        "lookup_table_v2",
        input,
        size,
        is_sparse,
        is_distributed,
        padding_idx,
        param_attr,
        dtype,
    )


def one_hot(input: Variable, depth: Any, allow_out_of_range: bool = False) -> Variable:
    """A row of zeros with a one at each id: input.shape + [depth], float32.

    As `fluidx.layers.one_hot`, which wants a last dimension of 1 and replaces it.
    Mirrors ``fluid.one_hot``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([2, 0], "int64"))
    >>> y = fluid.one_hot(x, depth=3)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return one_hot_op("one_hot_v2", input, depth, allow_out_of_range, False)
