"""Elements by several indices, by condition, and distinct ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    INTEGERS,
    check_dtype,
    check_variable,
    check_variables,
    emit,
    one_of,
)
from fluidx.layers.picking import slice
from fluidx.layers.tensor import zeros

__all__ = [
    "gather_nd",
    "index_sample",
    "index_select",
    "multiplex",
    "nonzero",
    "scatter_nd",
    "scatter_nd_add",
    "shard_index",
    "unique",
    "unique_with_counts",
    "where",
]


def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """The parts of input at the places that the last dimension of index names.

    index: int32 or int64 [..., k]; returns index's shape without k, then what is left
    of input's after k dimensions. IndexError for places outside. Mirrors
    ``fluid.layers.gather_nd``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> places = fluid.layers.assign(np.array([[1, 0], [0, 1]], "int64"))
    >>> y = fluid.layers.gather_nd(x, places)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [3.0, 2.0]
    """
    check_dtype(index, "index", "gather_nd", INTEGERS)
    return emit("gather_nd", {"X": input, "Index": index}, name=name)


def scatter_nd_add(
    ref: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """ref with updates added at the places that the last dimension of index names.

    A place that is named twice gets both. Mirrors ``fluid.layers.scatter_nd_add``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 1, 1], "float32"))
    >>> places = fluid.layers.assign(np.array([[2], [2]], "int64"))
    >>> more = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> y = fluid.layers.scatter_nd_add(x, places, more)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [1.0, 1.0, 8.0]
    """
    check_variable(ref, "ref", "scatter_nd_add")
    check_variable(updates, "updates", "scatter_nd_add")
    check_dtype(index, "index", "scatter_nd_add", INTEGERS)
    if ref.dtype != updates.dtype:
        raise ValueError(
            f"scatter_nd_add: ref is {ref.dtype.name}, updates is {updates.dtype.name}"
        )
    inputs = {"X": ref, "Index": index, "Updates": updates}
    return emit("scatter_nd_add", inputs, name=name)


def scatter_nd(
    index: Variable, updates: Variable, shape: Any, name: str | None = None
) -> Variable:
    """`scatter_nd_add` to zeros of this shape. Mirrors ``fluid.layers.scatter_nd``.

    >>> import fluidx as fluid
    >>> index = fluid.data("scatter_i", [None, 1], "int64")
    >>> updates = fluid.data("scatter_u", [None, 4])
    >>> fluid.layers.scatter_nd(index, updates, [6, 4]).shape
    (6, 4)
    """
    check_variable(updates, "updates", "scatter_nd")
    return scatter_nd_add(zeros(shape, updates.dtype), index, updates, name)


def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """The slices of input along `dim` that index names; they may repeat.

    Mirrors ``fluid.layers.index_select``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2, 3]], "float32"))
    >>> rows = fluid.layers.assign(np.array([2, 0], "int32"))
    >>> y = fluid.layers.index_select(x, rows, dim=1)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[3.0, 1.0]]
    """
    check_dtype(index, "index", "index_select", INTEGERS)
    return emit("index_select", {"X": input, "Index": index}, {"dim": dim})


def index_sample(x: Variable, index: Variable) -> Variable:
    """Row by row, the elements of x [n, m] in the columns of index [n, k].

    Mirrors ``fluid.layers.index_sample``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2, 3], [4, 5, 6]], "float32"))
    >>> which = fluid.layers.assign(np.array([[2], [0]], "int64"))
    >>> y = fluid.layers.index_sample(x, which)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[3.0], [4.0]]
    """
    check_dtype(index, "index", "index_sample", INTEGERS)
    return emit("index_sample", {"X": x, "Index": index})


def multiplex(inputs: Sequence[Variable], index: Variable) -> Variable:
    """Row i of the input that index [n, 1] names in its row i.

    inputs: two at least, of one shape. Mirrors ``fluid.layers.multiplex``.

    >>> import fluidx as fluid
    >>> x, y = fluid.data("multi_x", [None, 4]), fluid.data("multi_y", [None, 4])
    >>> fluid.layers.multiplex([x, y], fluid.data("multi_i", [None, 1], "int32")).shape
    (-1, 4)
    """
    if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
        raise ValueError(
            f"multiplex: inputs must be a list of two at least: {inputs!r}"
        )
    many = check_variables(inputs, "inputs", "multiplex")
    check_dtype(index, "index", "multiplex", INTEGERS)
    dtype = many[0].dtype
    return emit("multiplex", {"X": many, "Ids": index}, dtype=dtype)


def where(condition: Variable) -> Variable:
    """The places where condition holds, one a row: int64 [count, rank].

    Mirrors ``fluid.layers.where``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[True, False], [True, True]]))
    >>> y = fluid.layers.where(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[0, 0], [1, 0], [1, 1]]
    """
    return emit("where_index", {"Condition": condition}, dtype=VarType.INT64)


def nonzero(input: Variable, as_tuple: bool = False) -> Any:
    """The places of elements that are not 0, one a row: int64 [count, rank].

    as_tuple: instead one tensor [count, 1] for each dimension ([count] for a vector's).
    Mirrors ``fluid.layers.nonzero``.

    >>> import fluidx as fluid
    >>> x = fluid.data("nonzero_x", [None, 3])
    >>> [v.shape for v in fluid.layers.nonzero(x, as_tuple=True)]
    [(-1, 1), (-1, 1)]
    """
    places = where(input)
    if not as_tuple:
        return places
    rank = len(input.shape)
    if rank == 1:
        return (places,)
    return tuple(slice(places, [1], [i], [i + 1]) for i in range(rank))


def _distinct(type: str, x: Variable, dtype: Any, *more: str) -> tuple[Variable, ...]:
    check_variable(x, "x", type)
    kind = one_of(as_dtype(dtype), "dtype", type, INTEGERS)
    helper = LayerHelper(type)
    made = {"Out": helper.create_variable_for_type_inference(x.dtype)}
    for slot in ("Index", *more):
        made[slot] = helper.create_variable_for_type_inference(kind)
    helper.append_op(type, {"X": x}, made, {"dtype": int(kind)})
    return tuple(made.values())


def unique(x: Variable, dtype: Any = "int32") -> tuple[Variable, ...]:
    """The distinct elements of a vector, in order of first appearance.

    Also, for each element, its number among them (of this dtype). Mirrors
    ``fluid.layers.unique``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([7, 2, 7], "int64"))
    >>> found, index = fluid.layers.unique(x)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[found, index])
    >>> [v.tolist() for v in made]
    [[7, 2], [0, 1, 0]]
    """
    return _distinct("unique", x, dtype)


def unique_with_counts(x: Variable, dtype: Any = "int32") -> tuple[Variable, ...]:
    """The same, and how often each one occurs. ``fluid.layers.unique_with_counts``.

    >>> import fluidx as fluid
    >>> made = fluid.layers.unique_with_counts(fluid.data("counts_x", [5], "int64"))
    >>> [v.shape for v in made]
    [(-1,), (5,), (-1,)]
    """
    return _distinct("unique_with_counts", x, dtype, "Count")


def shard_index(
    input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Variable:
    """Ids [..., 1] as places within one of nshards equal ranges of [0, index_num).

    Ids of other ranges become ignore_value. Mirrors ``fluid.layers.shard_index``.

    >>> import fluidx as fluid
    >>> x = fluid.data("shard_x", [None, 1], "int64")
    >>> fluid.layers.shard_index(x, index_num=20, nshards=2, shard_id=0).shape
    (-1, 1)
    """
    check_dtype(input, "input", "shard_index", INTEGERS)
    if not 0 <= shard_id < nshards:
        raise ValueError(f"shard_index: shard_id {shard_id} is not in [0, {nshards})")
    attrs = {
        "index_num": index_num,
        "nshards": nshards,
        "shard_id": shard_id,
        "ignore_value": ignore_value,
    }
    return emit("shard_index", {"X": input}, attrs)
