"""Sequence layers that the reference keeps in ``layers.nn``: LoD, row_conv, hash."""

from __future__ import annotations

from typing import Any

from fluidx.arguments import as_integer
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    FLOATS,
    INTEGERS,
    check_dtype,
    check_variable,
    emit,
    int_list,
    is_integer,
)

__all__ = ["hash", "lod_append", "lod_reset", "row_conv"]


def lod_reset(
    x: Variable, y: Variable | None = None, target_lod: Any = None
) -> Variable:
    """x with other sequences: those of y, those whose offsets y holds, or target_lod.

    target_lod: the offsets of one level, where y is None. ValueError without either.
    Mirrors ``fluid.layers.lod_reset``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> y = fluid.layers.lod_reset(x, target_lod=[0, 2, 3])
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[1.0], [2.0], [3.0]], [[0, 2, 3]])
    """
    check_variable(x, "x", "lod_reset")
    if y is not None:
        return emit("lod_reset", {"X": x, "Y": check_variable(y, "y", "lod_reset")})
    if target_lod is None:
        raise ValueError("lod_reset: give y or target_lod")
    offsets = int_list(target_lod, "target_lod", "lod_reset")
    return emit("lod_reset", {"X": x}, {"target_lod": offsets})


def lod_append(x: Variable, level: Any) -> Variable:
    """x with one more, innermost level of sequences.

    level: its offsets, or a Variable with them or with such a level. Mirrors
    ``fluid.layers.lod_append``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> y = fluid.layers.lod_append(x, [0, 1, 3])
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[1.0], [2.0], [3.0]], [[0, 1, 3]])
    """
    check_variable(x, "x", "lod_append")
    attrs: dict[str, Any] = {"append": True}
    given = {"X": x}
    if isinstance(level, Variable):
        given["Y"] = level
    elif isinstance(level, (list, tuple)):
        attrs["target_lod"] = int_list(level, "level", "lod_append")
    else:
        raise TypeError(
            f"lod_append: level must be a list or a Variable, got {level!r:.60}"
        )
    return emit("lod_reset", given, attrs, layer="lod_append")


def row_conv(
    input: Variable,
    future_context_size: int,
    param_attr: Any = None,
    act: str | None = None,
) -> Variable:
    """Each row and the `future_context_size` ones behind it, weighted by column.

    input: [rows, width] of one LoD level, or [N, length, width]. Amodei et al., "Deep
    Speech 2" (2015). Mirrors ``fluid.layers.row_conv``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 3])
    >>> ones = fluid.initializer.Constant(1.0)
    >>> y = fluid.layers.row_conv(x, future_context_size=1, param_attr=ones)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist()  # each row and the next
    [[3.0], [5.0], [3.0]]
    """
    check_dtype(input, "input", "row_conv", FLOATS)
    helper = LayerHelper("row_conv", input=input, param_attr=param_attr, act=act)
    ahead = as_integer(future_context_size, "future_context_size", "row_conv")
    shape = [ahead + 1, input.shape[-1]]
    weight = helper.create_parameter(helper.param_attr, shape, input.dtype)
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("row_conv", {"X": input, "Filter": weight}, {"Out": made})
    return helper.append_activation(made)


def hash(
    input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None
) -> Variable:
    """[rows, num_hash, 1]: numbers below `hash_size`, from the ids of each row.

    input: int32 or int64 [rows, ids]. Mirrors ``fluid.layers.hash``, which cannot be
    called in 1.8.5: its check of hash_size fails for any value.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4], [1, 2]], "int64"))
    >>> y = fluid.layers.hash(x, hash_size=1000, num_hash=2)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0]
    >>> made.shape, bool((made[0] == made[2]).all()), bool((made < 1000).all())
    ((3, 2, 1), True, True)
    """
    check_dtype(input, "input", "hash", INTEGERS)
    for arg, value in (("hash_size", hash_size), ("num_hash", num_hash)):
        if not is_integer(value) or value < 1:
            raise ValueError(f"hash: {arg} must be a positive integer, got {value!r}")
    attrs = {"num_hash": num_hash, "mod_by": hash_size}
    return emit("hash", {"X": input}, attrs, name=name, stop_gradient=True)
