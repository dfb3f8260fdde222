"""Small layers: fused, partial and shuffled (``fluid.contrib.layers``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable, unique_name
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    check_dtype,
    check_variable,
    check_variables,
    emit,
    is_integer,
)

__all__ = [
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "partial_concat",
    "partial_sum",
    "shuffle_batch",
]


def fused_elemwise_activation(
    x: Variable,
    y: Variable,
    functor_list: Sequence[str] | str,
    axis: int = -1,
    scale: float = 0.0,
    save_intermediate_out: bool = True,
) -> Variable:
    """An elementwise op of x and y and an activation, in one op.

    functor_list: two names, or both in a string with a comma between. ["relu",
    "elementwise_add"] is relu(x + y), ["elementwise_add", "relu"] is x + relu(y);
    the pairs are those of ``fluidx.kernels.fused_elemwise``. axis: as of
    `fluid.layers.elementwise_add`. scale: the factor of "scale". save_intermediate_out:
    the inner function's result is kept for the gradient, otherwise computed anew.
    ValueError: not two names.
    Mirrors ``fluid.contrib.layers.fused_elemwise_activation``.

    >>> import fluidx as fluid, numpy as np
    >>> x, y = fluid.data("fused_x", [None, 3]), fluid.data("fused_y", [None, 3])
    >>> out = fluid.contrib.layers.fused_elemwise_activation(
    ...     x, y, ["relu", "elementwise_add"]
    ... )
    >>> feed = {"fused_x": np.float32([[1, 2, 3]]), "fused_y": np.float32([[-2, 1, 0]])}
    >>> fluid.Executor().run(feed=feed, fetch_list=[out])[0].tolist()
    [[0.0, 3.0, 3.0]]
    """
    names = functor_list.split(",") if isinstance(functor_list, str) else functor_list
    if not isinstance(names, (list, tuple)) or len(names) != 2:
        raise ValueError(
            f"fused_elemwise_activation: functor_list must have two names, "
            f"got {functor_list!r}"
        )
    attrs = {
        "axis": axis,
        "scale": scale,
        "save_intermediate_out": save_intermediate_out,
        "functor_list": list(names),
    }
    check_variable(x, "x", "fused_elemwise_activation")
    return emit(
        "fused_elemwise_activation",
        {"X": x, "Y": y},
        attrs,
        extra={"IntermediateOut": x.dtype},
    )


def fused_embedding_seq_pool(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """The sum of the embeddings of each sequence of ids, in one op.

    input: int64 ids (rows, 1) of one LoD level. size: rows and width of the table.
    is_sparse: the gradient holds only the rows that were used. padding_idx: an id that
    counts not (negative: from the end). combiner: "sum". Returns (sequences, width);
    zeros for an empty sequence.
    Mirrors ``fluid.contrib.layers.fused_embedding_seq_pool``.

    >>> import fluidx as fluid
    >>> ids = fluid.data("pooled_ids", [None, 1], "int64", lod_level=1)
    >>> fluid.contrib.layers.fused_embedding_seq_pool(ids, [100, 16]).shape
    (-1, 16)
    """
    layer = "fused_embedding_seq_pool"
    check_dtype(input, "input", layer, (VarType.INT64,))
    rows = int(size[0])
    padding = -1
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ValueError(
                f"{layer}: padding_idx must be in [-{rows}, {rows}), got {padding_idx}"
            )
        padding = padding_idx % rows
    helper = LayerHelper(layer, param_attr=param_attr)
    table = helper.create_parameter(helper.param_attr, size, dtype)
    made = helper.create_variable_for_type_inference(table.dtype)
    attrs = {"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding}
    helper.append_op(layer, {"Ids": input, "W": table}, {"Out": made}, attrs)
    return made


def partial_concat(input: Any, start_index: int = 0, length: int = -1) -> Variable:
    """Columns of matrices side by side.

    input: matrices of one width. start_index: the first column; a negative one counts
    from the end. length: how many of each; -1: all that follow. Mirrors
    ``fluid.contrib.layers.partial_concat``.

    >>> import fluidx as fluid, numpy as np
    >>> x, y = fluid.data("part_x", [None, 3]), fluid.data("part_y", [None, 3])
    >>> out = fluid.contrib.layers.partial_concat([x, y], start_index=1, length=2)
    >>> feed = {"part_x": np.float32([[0, 1, 2]]), "part_y": np.float32([[3, 4, 5]])}
    >>> fluid.Executor().run(feed=feed, fetch_list=[out])[0].tolist()
    [[1.0, 2.0, 4.0, 5.0]]
    """
    xs = check_variables(input, "input", "partial_concat")
    attrs = {"start_index": start_index, "length": length}
    return emit("partial_concat", {"X": xs}, attrs)


def partial_sum(input: Any, start_index: int = 0, length: int = -1) -> Variable:
    """Columns of matrices, summed; arguments as of `partial_concat`.

    A negative start_index counts from the end here too (the reference reads elsewhere).
    Mirrors ``fluid.contrib.layers.partial_sum``.

    >>> import fluidx as fluid, numpy as np
    >>> x, y = fluid.data("sum_x", [None, 3]), fluid.data("sum_y", [None, 3])
    >>> out = fluid.contrib.layers.partial_sum([x, y], start_index=1)
    >>> feed = {"sum_x": np.float32([[0, 1, 2]]), "sum_y": np.float32([[3, 4, 5]])}
    >>> fluid.Executor().run(feed=feed, fetch_list=[out])[0].tolist()
    [[5.0, 7.0]]
    """
    xs = check_variables(input, "input", "partial_sum")
    attrs = {"start_index": start_index, "length": length}
    return emit("partial_sum", {"X": xs}, attrs)


def shuffle_batch(x: Variable, seed: Any = None) -> Variable:
    """x's rows (of its last dimension) in another order in each run.

    seed: an integer; an int64 Variable that holds one and gets that of the next run; or
    None: drawn from the program's generator (the reference: from numpy's, when the
    program is built). TypeError: a seed of another kind. Mirrors
    ``fluid.contrib.layers.shuffle_batch``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.data("shuffled_x", [None, 1])
    >>> out = fluid.contrib.layers.shuffle_batch(x, seed=1)
    >>> rows = np.arange(4, dtype="float32").reshape(4, 1)
    >>> made = fluid.Executor().run(feed={"shuffled_x": rows}, fetch_list=[out])[0]
    >>> sorted(made[:, 0].tolist())
    [0.0, 1.0, 2.0, 3.0]
    """
    check_variable(x, "x", "shuffle_batch")
    helper = LayerHelper("shuffle_batch")
    made = helper.create_variable_for_type_inference(x.dtype)
    places = helper.create_variable_for_type_inference(VarType.INT64)
    attrs = {}
    if not isinstance(seed, Variable):
        if seed is not None and not is_integer(seed):
            raise TypeError(
                f"shuffle_batch: seed must be an integer or a Variable, got {seed!r}"
            )
        attrs["startup_seed"] = 0 if seed is None else int(seed)
        seed = helper.create_variable(
            name=unique_name.generate("shuffle_batch_seed"),
            dtype=VarType.INT64,
            persistable=True,
        )
    helper.append_op(
        "shuffle_batch",
        {"X": x, "Seed": seed},
        {"Out": made, "ShuffleIdx": places, "SeedOut": seed},
        attrs,
    )
    return made
